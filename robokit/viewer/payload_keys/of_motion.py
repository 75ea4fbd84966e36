"""The run: frames for the eye, curves for the plots, figures."""

from __future__ import annotations

from dataclasses import dataclass, field

from robokit.viewer.payload_keys.packed_tables import Packed


@dataclass(frozen=True)
class PeaksData:
    """Samples of one coordinate that lie outside the range of the frames beside them.

    Attributes:
        line: "q", "v" or "tau".
        index: of the coordinate in q, or of the degree of freedom in v and tau.
        t: since the start [s].
        y: the values.
    """

    line: str
    index: int
    t: Packed
    y: Packed


@dataclass(frozen=True)
class AttachmentData:
    """A point that is fixed to a body.

    Attributes:
        body: its number; 0 for the world.
        pose: the point in the body's frame, (3,) [m].
    """

    body: int
    pose: list[float]


@dataclass(frozen=True)
class TieData:
    """What is drawn between two points.

    Attributes:
        spring: whether it is a spring, or else a rod that closes a loop.
        ends: both points.
    """

    spring: bool
    ends: list[AttachmentData]


@dataclass(frozen=True)
class FramesData:
    """The motion at display rate: T frames, or one for a pose.

    Attributes:
        count: T.
        sane: frames before the motion blew up; T where it did not. The view is fitted to these.
        t: since the start, (T,) [s].
        poses: of bodies 1..N in the world, (T, N, 7).
        q: configurations, (T, nq).
        com: centre of mass, (T, 3) [m]; NaN for a robot without mass.
        v: velocities, (T, nv); or None.
        tau: joint forces, (T, nv); or None.
        momentum: centroidal, angular then linear, (T, 6) [N m s; N s]; or None.
        force: of the ground on the robot, (T, 3) [N]; None where there is none all the time.
        contact_count: points that touch the ground, (T,); or None.
        contacts: positions [m] and forces [N] of these points, frame after frame, (sum, 6); or None.
        contact_normals: unit normals of these points out of what they touch, (sum, 3); None where all are
            those of the ground's plane, or are not known.
        met_count: points at which two bodies touch, (T,); or None.
        met: of these points positions [m], forces on the second body [N], and unit normals out of the first,
            (sum, 9); or None.
        peaks: what joints do between frames.
    """

    count: int
    sane: int
    t: Packed
    poses: Packed
    q: Packed
    com: Packed
    v: Packed | None = None
    tau: Packed | None = None
    momentum: Packed | None = None
    force: Packed | None = None
    contact_count: Packed | None = None
    contacts: Packed | None = None
    contact_normals: Packed | None = None
    met_count: Packed | None = None
    met: Packed | None = None
    peaks: list[PeaksData] = field(default_factory=list)


@dataclass(frozen=True)
class SeriesData:
    """One line of a plot.

    Attributes:
        name: in the legend; chooses the colour.
        y: values at the curve's times; NaN where a line of the caller's own has a gap.
    """

    name: str
    y: Packed


@dataclass(frozen=True)
class CurveData:
    """A plot over time.

    Attributes:
        key: which of the page's plots it is; begins with "own " for those of the caller.
        title: over the plot.
        unit: of all its lines.
        t: since the start [s].
        series: the lines.
        hold: how long each value holds until its time [s]: the step for what is a mean over it; else 0.
    """

    key: str
    title: str
    unit: str
    t: Packed
    series: list[SeriesData]
    hold: float = 0.0


@dataclass(frozen=True)
class LinkForceData:
    """The size of the ground's force on a link over time.

    Attributes:
        link: its name.
        t: since the start [s].
        y: size of the force [N].
        hold: how long each value holds until its time [s].
    """

    link: str
    t: Packed
    y: Packed
    hold: float


@dataclass(frozen=True)
class FigureData:
    """One figure of the run's summary: its key in ``Trajectory.summary``, and its value."""

    key: str
    value: float | str


@dataclass(frozen=True)
class StoppedData:
    """Why a run ended before its time.

    Attributes:
        time: of the last state [s].
        reason: what happened, a sentence.
        remedy: what to do, a sentence; may be empty.
    """

    time: float
    reason: str
    remedy: str
