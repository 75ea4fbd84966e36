"""The keys of a page's data: every name that the page's JavaScript reads is declared here and nowhere else.

A :class:`Payload` becomes one JSON object; the fields of these classes are its keys. All keys are always
there, ``null`` stands for None. The scripts in ``assets/`` read them by the same names, which a test checks
both ways (``tests/viewer/test_viewer_payload_keys.py``). A pose is seven numbers: position x y z [m], unit
quaternion x y z w. T frames show N moving bodies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from robokit.errors import Severity
from robokit.viewer.scene import Role

# ---- long tables of numbers, as robokit.viewer.curves writes them --------------------------


Packed = str
"""Base64 of little-endian float32."""

PackedBits = str
"""Base64 of single bits."""

Deflated = str
"""Base64 of deflated bytes (RFC 1950): uint8, or little-endian float64, as the key's description says."""

Whole = str
"""Base64 of deflated whole numbers, positive or negative (``deflated_whole``)."""


# ---- the robot -----------------------------------------------------------------------------------


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
        inertial: of bodies 0..N in body coordinates: m, m c (3), I about the body's origin (xx, xy, yy, xz,
            yz, zz), fixed joints folded in [kg, kg m, kg m^2].
    """

    name: list[str]
    parent: list[int]
    inertial: list[list[float]]


@dataclass(frozen=True)
class LinkData:
    """A link: its frame, and its own mass, which its body carries.

    Attributes:
        name: of the link.
        body: number of the body that carries it.
        pose: of the link's frame in the body's frame.
        mass: [kg].
        moments: principal moments of inertia, ascending [kg m^2]; None without mass.
    """

    name: str
    body: int
    pose: list[float]
    mass: float
    moments: list[float] | None


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
        velocity: limit of its velocity [rad/s | m/s], None where there is none.
        effort: limit of its force [N m | N], None where there is none.
        follows: for a coupled mimic joint the index in q that it follows and the multiplier, else None.
        mimic: name of the joint that it mimics, or None.
        parent_link: name of the link that it hangs on.
        child_link: name of the link that it moves.
        placement: pose of its body in the parent body at the neutral configuration.
        rotor: inertia of its rotors as the joint feels it, by degree of freedom, on the diagonal of H
            [kg m^2 | kg]; empty for a joint without.
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
    velocity: float | None
    effort: float | None
    follows: tuple[int, float] | None
    mimic: str | None
    parent_link: str
    child_link: str
    placement: list[float]
    rotor: list[float]


# ---- geometries, nodes, the ground ---------------------------------------------------------------


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


# ---- the mass matrix -----------------------------------------------------------------------------


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
class CostData:
    """Operations of one algorithm for one state, as ``robokit.cost`` counts them.

    Attributes:
        algorithm: its name in the dynamics.
        growth: as the textbooks state it, in bodies n and depth d.
        mul: multiplications; None, like the next three, where they are not known.
        add: additions and subtractions.
        div: divisions.
        sincos: pairs of a sine and a cosine.
        note: why there are no counts; "" where there are.
    """

    algorithm: str
    growth: str
    mul: int | None
    add: int | None
    div: int | None
    sincos: int | None
    note: str


@dataclass(frozen=True)
class StructureData:
    """Patterns of the mass matrix and of its factors.

    Attributes:
        n: rows of H, nv.
        pattern: where H can be nonzero, (n, n).
        cholesky: where L of H = LLᵀ can be nonzero, (n, n).
        counts: of factorisations and solves, by formula.
        costs: of the algorithms, counted.
    """

    n: int
    pattern: PackedBits
    cholesky: PackedBits
    counts: CountData
    costs: list[CostData]


# ---- frames, curves and figures of a run ---------------------------------------------------------


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


# ---- a second run --------------------------------------------------------------------------------


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


# ---- events, answers, tables by link and by joint ------------------------------------------------


@dataclass(frozen=True)
class EventKindData:
    """A kind of event; they are listed with the most important one first: what a crowded mark shows.

    Attributes:
        kind: its name.
        family: of kinds that are drawn and filtered alike.
    """

    kind: str
    family: str


@dataclass(frozen=True)
class HappeningData:
    """An event of the run. (In the scripts ``event`` is the browser's.)

    Attributes:
        time: since the start [s].
        kind: see :data:`robokit.contact.measures.KINDS`.
        subject: name of the link, joint or robot.
        body: number of the body that it happened to, or None.
        link: name of the link that is selected with it, or None.
        text: the event in words, without its subject.
        size: with its unit, in words; may be empty.
    """

    time: float
    kind: str
    subject: str
    body: int | None
    link: str | None
    text: str
    size: str


@dataclass(frozen=True)
class AnswerData:
    """A question and its answer; also an assumption or an entry of the ledger.

    Attributes:
        label: the question, in a word or two.
        value: the answer.
        note: what belongs to it; may be empty.
        event: place of its event in the list, or None.
        doubtful: whether the reader should doubt the run because of it.
    """

    label: str
    value: str
    note: str
    event: int | None
    doubtful: bool


@dataclass(frozen=True)
class TouchedData:
    """A link that touched the ground.

    Attributes:
        link: its name.
        first: place of its first contact in the list of events.
        peak: place of its largest force, or None.
        impacts: how many.
        slid: way that it slid, in words.
    """

    link: str
    first: int
    peak: int | None
    impacts: int
    slid: str


@dataclass(frozen=True)
class ReachedData:
    """A limit that a joint reached.

    Attributes:
        joint: its name.
        side: "upper" or "lower".
        first: place in the list of events where it reached it first.
        past: place where it was furthest past it, or None.
        times: how often it reached it.
        force: largest of the stop that is known, in words; may be empty.
    """

    joint: str
    side: str
    first: int
    past: int | None
    times: int
    force: str


@dataclass(frozen=True)
class EventsData:
    """The lane of events and the summary panel.

    Attributes:
        happenings: the events in the order of time; of very many the important ones.
        left_out: how many are not among them.
        sampled: how often the events were looked for, "" where that is every step.
        answers: to the usual questions.
        touched: links that touched the ground, in the order of their first contact.
        reached: limits that joints reached, the one furthest past first.
        assumed: what was assumed.
        books: how far energy and momentum are accounted for.
    """

    happenings: list[HappeningData]
    left_out: int
    sampled: str
    answers: list[AnswerData]
    touched: list[TouchedData]
    reached: list[ReachedData]
    assumed: list[AnswerData]
    books: list[AnswerData]


# ---- the importer's findings ---------------------------------------------------------------------


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


# ---- inside the algorithms -----------------------------------------------------------------------


@dataclass(frozen=True)
class ProgramData:
    """All values of the lines as one list of operations on a state.

    Its numbers stand in slots: those of the constants, then of the inputs, then of the operations in order.

    Attributes:
        operations: names of the operations, as in ``robokit/engine/trace/ops.py``.
        codes: uint8: of each operation the place of its name.
        operands: first, second and third operands of the operations that have them: how many slots back, or
            -1 - slot of a constant or an input.
        constants: float64 numbers.
        inputs: places in gravity (3), q, v, tau, forces on the bodies 0..N (6 each), one after another.
    """

    operations: list[str]
    codes: Deflated
    operands: list[Whole]
    constants: Deflated
    inputs: Whole


@dataclass(frozen=True)
class ListingData:
    """A source file: its name and all of its text."""

    file: str
    text: str


@dataclass(frozen=True)
class SweepData:
    """A loop over all bodies: what it is for, and whether it goes from the root to the tips."""

    title: str
    outward: bool


@dataclass(frozen=True)
class LetterData:
    """A value of the text.

    Attributes:
        written: as the text writes it, as ``v[p]``.
        symbol: as a book writes it; ``I^A`` has a superscript.
        below: its subscript.
        meaning: in words.
        unit: of its numbers.
        out: whether the line writes it; else it reads it.
        entry: whether it is an entry or a row of the algorithm's matrix.
    """

    written: str
    symbol: str
    below: str
    meaning: str
    unit: str
    out: bool
    entry: bool


@dataclass(frozen=True)
class FormData:
    """What steps of one line have in common.

    Attributes:
        listing: place of its file in the algorithm's listings.
        line: its first line in the file, from 1.
        last: its last line.
        sweep: place of its pass, -1 outside of all.
        letters: places of the values that it reads and writes.
        says: what the line does, a sentence.
    """

    listing: int
    line: int
    last: int
    sweep: int
    letters: list[int]
    says: str


@dataclass(frozen=True)
class AlgorithmData:
    """An algorithm as it ran.

    Attributes:
        key: of the algorithm.
        title: its long name.
        gives: what goes in and what comes out.
        listings: its source files.
        sweeps: its passes.
        indices: names of its indices, that of the body or dof at work first.
        by_dof: whether the indices count degrees of freedom, not bodies.
        matrix: letter of the matrix that fills, or "".
        letters, forms: of its lines.
        steps: form of each step.
        counters: of each step its indices, -1 where the line does not speak of one.
        places: of each value of each step the body that it belongs to, -1 for none; of an entry of the matrix
            row (n + 1) + column, with column n for a whole row.
        seen: of each value of each step its place among the values, as the difference to the one before.
        shapes: kind and count of numbers of each value.
        numbers: of all values: twice the slot of the program, and 1 more where the sign is turned; as the
            difference to the one before.
        whole: whether these are all of its steps.
    """

    key: str
    title: str
    gives: str
    listings: list[ListingData]
    sweeps: list[SweepData]
    indices: list[str]
    by_dof: bool
    matrix: str
    letters: list[LetterData]
    forms: list[FormData]
    steps: Whole
    counters: Whole
    places: Whole
    seen: Whole
    shapes: Whole
    numbers: Whole
    whole: bool


@dataclass(frozen=True)
class WalkData:
    """The algorithms, for every state that the page can show.

    Attributes:
        program: finds all values for a state.
        gravity: acceleration of free fall in world axes [m/s^2], where the page has no other.
        touched: body of each point of ``FramesData.contacts``; or None.
        rows: body of each row of the matrices.
        kinds: names of the kinds of values.
        algorithms: in the order of the page.
        notes: what the numbers stand for, and what is left out.
    """

    program: ProgramData
    gravity: list[float]
    touched: Whole | None
    rows: list[int]
    kinds: list[str]
    algorithms: list[AlgorithmData]
    notes: list[str]


# ---- physics in the page -------------------------------------------------------------------------


@dataclass(frozen=True)
class SlotData:
    """An array of float64 in a module's memory.

    Attributes:
        name: of the array.
        at: first byte.
        count: numbers.
    """

    name: str
    at: int
    count: int


@dataclass(frozen=True)
class ModuleData:
    """A kernel as WebAssembly: it exports its memory and ``step()``.

    Attributes:
        content: the module, compressed by gzip, as base64.
        bytes: of the module.
        slots: arrays in its memory, inputs and outputs.
    """

    content: str
    bytes: int
    slots: list[SlotData]


@dataclass(frozen=True)
class StepperData:
    """The step of all robots, and a robot (robokit.sim.contact_page).

    Attributes:
        module: it exports its memory, ``contact_step`` and ``contact_look``; compressed by gzip, as base64.
        bytes: of the module.
        sizes: by name, in the order in which the functions take them.
        arrays: name and shape of each, in the order in which they are given; names are those of sizes.
        steps: how many of them the step takes: the others are the look's.
        whole: names of those of int32; the others are float64.
        kept: names of those that a step hands to the next.
        given: names of those whose numbers are those of the page, and how many of their lowest bytes are not
            0; the others are 0, but for the normals of faces, which are made of the corners.
        numbers: deflated, as base64: the lowest bytes of all numbers, one array after another, then all
            second bytes likewise.
    """

    module: str
    bytes: int
    sizes: list[tuple[str, int]]
    arrays: list[list[str | int]]
    steps: int
    whole: list[str]
    kept: list[str]
    given: list[tuple[str, int]]
    numbers: str


@dataclass(frozen=True)
class MotorData:
    """A driven joint: with the target t it is given bias + gain clip(t, -limit, limit) [N m | N].

    Attributes:
        joint: its name.
        kind: "position", "velocity" or "force": what its target is.
        unit: of the target.
        lower, upper: of the target, for a slider.
        gain, bias, limit: of that law; limit None where there is none.
    """

    joint: str
    kind: str
    unit: str
    lower: float
    upper: float
    gain: float
    bias: float
    limit: float | None


@dataclass(frozen=True)
class MotorsData:
    """The driven joints of a run, and what they wanted in it.

    Attributes:
        list: the joints, n.
        t: times at which targets change, or some of them, (K,) [s].
        targets: from these times on, (K, n).
        commands: what the joints are given in the first step, (n,) as base64 of float64.
        gains: of passive motion, the places of their gains among the parameters of the step.
    """

    list: list[MotorData]
    t: Packed
    targets: Packed
    commands: str
    gains: Sequence[int]


@dataclass(frozen=True)
class LiveData:
    """The step of the recording as WebAssembly, and its start.

    Attributes:
        worker: text of the Worker that runs it.
        stepper: the step of the integrator "contact"; None for that of passive motion
            (sim.stepping.page_step), of which the next five are.
        step: the step.
        look: what a state looks like.
        parameters: what the step is given besides the state, (P,) as base64 of float64: the step [s] first.
        own: arrays of a row of a sweep that differ from those of the program: name and content, as base64 of
            float64.
        momentum, energy: whether a step is handed the momentum and the energy of the one before.
        q, v: the start of the recording, (nq,) and (nv,) as base64 of float64.
        grips: least and largest coefficient of friction on the ground; empty where nothing can touch it.
        gravity: [m/s^2].
        dt: step of the recording [s].
        mass: of the moving bodies [kg].
        masses: of the bodies 1..N [kg].
        floats: whether nothing but the ground and the hand changes its momentum.
        ledger: names of the first entries of the ledger.
        stiffness, damping: of a hand that suits the robot [N/m], [N s/m].
        motors: the driven joints whose targets the page has sliders for; None where there are none.
    """

    worker: str
    stepper: StepperData | None
    step: ModuleData | None
    look: ModuleData | None
    parameters: str
    own: list[tuple[str, str]]
    momentum: bool
    energy: bool
    q: str
    v: str
    grips: list[float]
    gravity: tuple[float, float, float]
    dt: float
    mass: float
    masses: list[float]
    floats: bool
    ledger: list[str]
    stiffness: float
    damping: float
    motors: MotorsData | None = None


# ---- the report of a sweep -----------------------------------------------------------------------


@dataclass(frozen=True)
class ColumnData:
    """A parameter or a measure of the rows.

    Attributes:
        name: of the column in the sweep's table.
        title: in words.
        unit: "" where it has none.
        about: what it is, a sentence; may be empty.
        role: "parameter" or "measure".
        labels: what the values count, of a column of texts; else None.
        values: of the rows that the page holds: float32, all lowest bytes first and so on; NaN for none.
        low, high: range of the bins, over all rows of the sweep; places of the labels.
        counts: rows of the sweep in each bin.
        missing: rows of the sweep without a value.
        whole: whether all values are whole numbers.
    """

    name: str
    title: str
    unit: str
    about: str
    role: str
    labels: list[str] | None
    values: Deflated
    low: float
    high: float
    counts: list[int]
    missing: int
    whole: bool


@dataclass(frozen=True)
class ReasonData:
    """Why rows failed, and how many of the sweep did so."""

    text: str
    count: int


@dataclass(frozen=True)
class PartData:
    """Entries of an input that are kept in the same way.

    An entry is that of the base, or the base times a factor of the row, and the difference to it, counted in
    the float64 numbers between them; or kept as it is.

    Attributes:
        entries: their places in the input.
        factor: place of the factor; -1 for none.
        bytes: of a difference, 1 or 2; 8 for the number itself.
        values: (n, entries), all lowest bytes first and so on.
    """

    entries: list[int]
    factor: int
    bytes: int
    values: Deflated


@dataclass(frozen=True)
class InputData:
    """An input of the step, for each row: q, v, carried or parameters.

    Attributes:
        name: of the input.
        base: float64: that of the first row.
        parts: entries that are not the same in all rows.
    """

    name: str
    base: Deflated
    parts: list[PartData]


@dataclass(frozen=True)
class RerunData:
    """What the rows of one robot need to run again.

    Attributes:
        robot: its name in the table.
        payload: data of the row's page as JSON, without its motion.
        steps: of a row.
        places: uint32: of these rows among those of the page, (n,), ascending.
        factors: float64 numbers of the rows, (n,), all lowest bytes first and so on.
        inputs: of the step.
        hashes: uint64, in the same way: the hash of each row's last state; or None.
        inertial: whether the inertial parameters of its bodies, 10 each, are among the inputs of a row.
        problem: why rows cannot run in the page; "" where they can.
    """

    robot: str
    payload: Deflated
    steps: int
    places: Deflated
    factors: list[Deflated]
    inputs: list[InputData]
    hashes: Deflated | None
    inertial: bool
    problem: str


@dataclass(frozen=True)
class ReportData:
    """Everything that the report of a sweep shows.

    Attributes:
        title: name of the sweep's folder.
        robots: names of its robots.
        rows: of the sweep.
        held: rows that the page holds.
        sample: which these are, a sentence; "" where they are all.
        figures: label and value, for the header.
        recipe: label and text, in words.
        openings: name of a program and the line that opens the table in it.
        numbers: uint32: of the rows that the page holds, ascending.
        columns: of the table.
        sorted_by, across, up, tinted: places of the columns that the table and the scatter show first.
        reasons: why rows failed, the most frequent first.
        page: text of the page that shows a row, with the mark for its data.
        command: what writes the page of a row without this page; ROW stands for the row's number.
        reruns: for each robot.
    """

    title: str
    robots: str
    rows: int
    held: int
    sample: str
    figures: list[tuple[str, str]]
    recipe: list[tuple[str, str]]
    openings: list[tuple[str, str]]
    numbers: Deflated
    columns: list[ColumnData]
    sorted_by: int
    across: int
    up: int
    tinted: int
    reasons: list[ReasonData]
    page: Deflated
    command: str
    reruns: list[RerunData]


# ---- the whole page ------------------------------------------------------------------------------


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
