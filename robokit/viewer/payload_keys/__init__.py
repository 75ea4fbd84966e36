"""The keys of a page's data: every name that the page's JavaScript reads is declared here and nowhere else.

    of_robot       header, tree, links and joints
    of_scene       geometries, nodes, the ground
    of_structure   the mass matrix
    of_motion      frames, curves, figures of the run
    of_comparison  a second run
    of_events      events, answers, tables by link and joint
    of_findings    the importer's findings
    of_walk        inside the algorithms
    of_live        physics in the page
    of_report      the report of a sweep
    packed_tables  long tables of numbers

A :class:`Payload` becomes one JSON object; the fields of these classes are its keys. All keys are always
there, ``null`` stands for None. The scripts in ``assets/`` read them by the same names, which a test checks
both ways (``tests/viewer/test_viewer_payload_keys.py``). A pose is seven numbers: position x y z [m], unit
quaternion x y z w. T frames show N moving bodies.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from robokit.viewer.payload_keys.of_comparison import ComparedData, GhostData
from robokit.viewer.payload_keys.of_events import (
    AnswerData,
    EventKindData,
    EventsData,
    HappeningData,
    ReachedData,
    TouchedData,
)
from robokit.viewer.payload_keys.of_findings import CheckData, FindingData, InertiaData
from robokit.viewer.payload_keys.of_live import (
    LiveData,
    ModuleData,
    MotorData,
    MotorsData,
    SlotData,
    StepperData,
)
from robokit.viewer.payload_keys.of_motion import (
    AttachmentData,
    CurveData,
    FigureData,
    FramesData,
    LinkForceData,
    PeaksData,
    SeriesData,
    StoppedData,
    TieData,
)
from robokit.viewer.payload_keys.of_report import (
    ColumnData,
    InputData,
    PartData,
    ReasonData,
    ReportData,
    RerunData,
)
from robokit.viewer.payload_keys.of_robot import BodiesData, JointData, LinkData, RobotData
from robokit.viewer.payload_keys.of_scene import GroundData, NodeData, ShapeData
from robokit.viewer.payload_keys.of_structure import CostData, CountData, StructureData
from robokit.viewer.payload_keys.of_walk import (
    AlgorithmData,
    FormData,
    LetterData,
    ListingData,
    ProgramData,
    SweepData,
    WalkData,
)
from robokit.viewer.payload_keys.packed_tables import Deflated, Packed, PackedBits, Whole

__all__ = [
    "AlgorithmData",
    "AnswerData",
    "AttachmentData",
    "BodiesData",
    "CheckData",
    "ColumnData",
    "ComparedData",
    "CostData",
    "CountData",
    "CurveData",
    "Deflated",
    "EventKindData",
    "EventsData",
    "FigureData",
    "FindingData",
    "FormData",
    "FramesData",
    "GhostData",
    "GroundData",
    "HappeningData",
    "InertiaData",
    "InputData",
    "JointData",
    "LetterData",
    "LinkData",
    "LinkForceData",
    "ListingData",
    "LiveData",
    "ModuleData",
    "MotorData",
    "MotorsData",
    "NodeData",
    "Packed",
    "PackedBits",
    "PartData",
    "Payload",
    "PeaksData",
    "ProgramData",
    "ReachedData",
    "ReasonData",
    "ReportData",
    "RerunData",
    "RobotData",
    "SeriesData",
    "ShapeData",
    "SlotData",
    "StepperData",
    "StoppedData",
    "StructureData",
    "SweepData",
    "TieData",
    "TouchedData",
    "WalkData",
    "Whole",
]


@dataclass(frozen=True)
class Payload:
    """Everything that a page shows.

    Curves and frames have their own times: frames are for the eye, curves keep what happens between them.

    Attributes:
        robot: name and figures of the header.
        bodies, links, joints: what the page names.
        geometries: what nodes draw, each once.
        nodes: what is drawn where.
        pictures: on surfaces, as data URIs.
        structure: patterns of H and of its factors.
        bounds: lowest and highest corner of the robot over the whole motion [m].
        ground: what the robot falls on, or None.
        frames: the motion at display rate.
        curves: the plots; none for a pose.
        link_forces: of the ground, over time, by link.
        summary: figures of the run.
        stopped: why the run ended early, or None.
        events: what happened, or None where nobody knows.
        event_kinds: that there are, the most important first.
        check: the importer's findings, or None on pages without a check.
        ghost: a second run beside this one, or None.
        walk: inside the algorithms, or None on pages without.
        live: the step for the page to take, or None on pages that did not ask for it.
        ties: springs between points, and rods that close loops.
        follow: name of the link that the camera follows, true for the centre of mass, false for
            neither; None where the page chooses.
    """

    robot: RobotData
    bodies: BodiesData
    links: list[LinkData]
    joints: list[JointData]
    geometries: list[ShapeData]
    nodes: list[NodeData]
    pictures: list[str]
    structure: StructureData
    bounds: list[list[float]]
    ground: GroundData | None
    frames: FramesData
    curves: list[CurveData]
    summary: list[FigureData]
    link_forces: list[LinkForceData] = field(default_factory=list)
    stopped: StoppedData | None = None
    events: EventsData | None = None
    event_kinds: list[EventKindData] = field(default_factory=list)
    check: CheckData | None = None
    ghost: GhostData | None = None
    walk: WalkData | None = None
    live: LiveData | None = None
    ties: list[TieData] = field(default_factory=list)
    follow: bool | str | None = None
