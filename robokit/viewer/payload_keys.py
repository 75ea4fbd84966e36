"""The keys of a page's data: every name that the page's JavaScript reads is declared here and nowhere else.

A :class:`Payload` becomes one JSON object; the fields of these classes are its keys. All keys are always
there, ``null`` stands for None. ``assets/*.js`` reads them by the same names, which a test checks both ways
(``tests/viewer/test_viewer_payload_keys.py``).

Long tables of numbers are strings: base64 of little-endian float32 (:data:`Packed`) or of single bits
(:data:`PackedBits`), made by :mod:`robokit.viewer.packing`. A pose is seven numbers: position x y z [m], unit
quaternion x y z w. T frames show N moving bodies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from robokit.errors import Severity
from robokit.viewer.nodes import Role

Packed = str
PackedBits = str


@dataclass(frozen=True)
class RobotData:
    """The robot in the page's header.

    Attributes:
        name: the description's name.
        mass: of the moving bodies [kg].
        total_mass: of all links, those of a fixed root too [kg].
        dof: degrees of freedom, nv.
        base: "fixed" or "floating".
        bodies: number of moving bodies, N.
        joints: number of movable joints, a floating base not counted.
        size: the length that overlays are scaled by [m].
    """

    name: str
    mass: float
    total_mass: float
    dof: int
    base: str
    bodies: int
    joints: int
    size: float


@dataclass(frozen=True)
class BodiesData:
    """The tree.

    Attributes:
        name: of bodies 0..N.
        parent: lambda of bodies 0..N, -1 for body 0.
    """

    name: list[str]
    parent: list[int]


@dataclass(frozen=True)
class LinkData:
    """A link's frame.

    Attributes:
        name: of the link.
        body: number of the body that carries it.
        pose: of the link's frame in the body's frame.
    """

    name: str
    body: int
    pose: list[float]


@dataclass(frozen=True)
class JointData:
    """A joint: a row of the joint panel, and what forward kinematics needs.

    Attributes:
        name: of the joint.
        kind: row of the joint table.
        body: the body that it moves.
        q: first and end of its coordinates in q; both the same for a coupled mimic joint.
        v: first and end of its coordinates in v.
        axis: unit axis in joint coordinates, (3,).
        pitch: of a helical joint [m/rad].
        lower: position limit [rad | m], None where there is none.
        upper: position limit [rad | m], None where there is none.
        follows: for a coupled mimic joint the index in q that it follows and the multiplier, else None.
        mimic: name of the joint that it mimics, or None.
        parent_link: name of the link that it hangs on.
        child_link: name of the link that it moves.
        placement: pose of its body in the parent body at the neutral configuration.
    """

    name: str
    kind: str
    body: int
    q: tuple[int, int]
    v: tuple[int, int]
    axis: list[float]
    pitch: float
    lower: float | None
    upper: float | None
    follows: tuple[int, float] | None
    mimic: str | None
    parent_link: str
    child_link: str
    placement: list[float]


@dataclass(frozen=True)
class ShapeData:
    """A geometry, shared by the nodes that draw it. Its type says which of the other keys are not None.

    Attributes:
        type: kind of geometry.
        size: edges of a box [m].
        radius: of a sphere, cylinder or capsule [m].
        length: of a cylinder, or of a capsule without its caps [m].
        low: lowest corner of a mesh [m].
        step: length of one unit of ``vertices`` along x, y, z [m].
        wide: whether ``faces`` holds 32-bit numbers instead of 16-bit ones.
        vertices: base64 of uint16 multiples of ``step`` from ``low``, (n, 3).
        faces: base64 of vertex numbers, (m, 3).
        colours: base64 of bytes, colours of the vertices, (n, 3); or None.
        uv: picture coordinates of the faces' corners, (m, 3, 2); or None.
    """

    type: Literal["box", "sphere", "cylinder", "capsule", "mesh"]
    size: tuple[float, float, float] | None = None
    radius: float | None = None
    length: float | None = None
    low: list[float] | None = None
    step: list[float] | None = None
    wide: bool | None = None
    vertices: str | None = None
    faces: str | None = None
    colours: str | None = None
    uv: Packed | None = None


@dataclass(frozen=True)
class NodeData:
    """One thing to draw.

    Attributes:
        geometry: place of its geometry in the payload's list.
        body: number of the body that carries it.
        pose: in the body's frame.
        rgba: colour, each 0 to 1 (sRGB).
        role: "visual" is the robot as seen, "ground" what it falls on; the others are overlays.
        link: name of its link.
        picture: place of the picture that covers it in the payload's list, or None.
    """

    geometry: int
    body: int
    pose: list[float]
    rgba: list[float]
    role: Role
    link: str
    picture: int | None


@dataclass(frozen=True)
class GroundData:
    """What the robot falls on.

    Attributes:
        plane: whether there is a plane.
        height: of the plane over the world's origin [m].
        normal: of the plane, unit, (3,).
        nodes: height field and solids, in the world.
    """

    plane: bool
    height: float
    normal: list[float]
    nodes: list[NodeData]


@dataclass(frozen=True)
class CountData:
    """Multiply-adds of factorising H and of solving with the factors.

    Attributes:
        entries: of H.
        zeros: of H, by structure.
        zeros_share: zeros / entries.
        factorise: H = LᵀDL on the tree.
        factorise_dense: of a dense matrix.
        solve: with the factors of LᵀDL.
        solve_dense: with dense factors.
        fill: entries that fill in at Cholesky's H = LLᵀ.
        cholesky_factorise: H = LLᵀ with its fill-in.
        cholesky_solve: with the factors of LLᵀ.
    """

    entries: int
    zeros: int
    zeros_share: float
    factorise: int
    factorise_dense: int
    solve: int
    solve_dense: int
    fill: int
    cholesky_factorise: int
    cholesky_solve: int


@dataclass(frozen=True)
class StructureData:
    """Patterns of the mass matrix and of its factors.

    Attributes:
        n: rows of H, nv.
        pattern: where H can be nonzero, (n, n).
        cholesky: where L of H = LLᵀ can be nonzero, (n, n).
        counts: of operations.
    """

    n: int
    pattern: PackedBits
    cholesky: PackedBits
    counts: CountData


@dataclass(frozen=True)
class FramesData:
    """The motion at display rate: T frames, or one for a pose.

    Attributes:
        count: T.
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
    """

    count: int
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


@dataclass(frozen=True)
class SeriesData:
    """One line of a plot.

    Attributes:
        name: in the legend; chooses the colour.
        y: values at the curve's times.
    """

    name: str
    y: Packed


@dataclass(frozen=True)
class CurveData:
    """A plot over time.

    Attributes:
        key: chooses its tab.
        title: over the plot.
        unit: of all its lines.
        t: since the start [s].
        series: the lines.
    """

    key: str
    title: str
    unit: str
    t: Packed
    series: list[SeriesData]


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


@dataclass(frozen=True)
class FindingData:
    """What the importer found: a Diagnostic, and where it points.

    Attributes:
        severity: "error", "warning" or "note".
        code: stable identifier.
        element: path of the element in words.
        line: in the file, 0 where there is none.
        message: what was found.
        hint: what to do; may be empty.
        link: name of the link that it is about, or None.
        body: number of that link's body, or None.
    """

    severity: Severity
    code: str
    element: str
    line: int
    message: str
    hint: str
    link: str | None
    body: int | None


@dataclass(frozen=True)
class InertiaData:
    """A row of the table of inertias.

    Attributes:
        link: its name.
        body: number of its body.
        mass: [kg].
        box: edges of the equivalent box [m].
        moments: principal moments, ascending [kg m^2].
        odd: whether a finding doubts them.
    """

    link: str
    body: int
    mass: float
    box: list[float]
    moments: list[float]
    odd: bool


@dataclass(frozen=True)
class CheckData:
    """The check panel: the findings, and the inertia of every link that has mass."""

    findings: list[FindingData]
    inertias: list[InertiaData]


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
        summary: figures of the run.
        stopped: why the run ended early, or None.
        check: the importer's findings, or None on pages without a check.
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
    stopped: StoppedData | None = None
    check: CheckData | None = None
