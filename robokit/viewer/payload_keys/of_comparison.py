"""A second run of the same robot, which a page shows beside the first."""

from __future__ import annotations

from dataclasses import dataclass

from robokit.viewer.payload_keys.of_motion import CurveData, FigureData, FramesData


@dataclass(frozen=True)
class ComparedData:
    """One figure of both runs.

    Attributes:
        label: what it is.
        unit: of both; may be empty.
        first: of the first run, or None.
        second: of the second run, or None.
    """

    label: str
    unit: str
    first: float | None
    second: float | None


@dataclass(frozen=True)
class GhostData:
    """The second run.

    Attributes:
        labels: names of the two runs.
        frames: of the second run.
        pairs: curves with one line for each run.
        differences: curves of their difference, in the order of ``pairs``.
        figures: of both runs.
        summary: figures of the second run.
    """

    labels: tuple[str, str]
    frames: FramesData
    pairs: list[CurveData]
    differences: list[CurveData]
    figures: list[ComparedData]
    summary: list[FigureData]
