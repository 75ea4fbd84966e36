"""The keys of a page's data: every name that the page's JavaScript reads is declared here and nowhere else.

A :class:`Payload` becomes one JSON object; the fields of these classes are its keys. All keys are always
there, ``null`` stands for None. The scripts in ``assets/`` read them by the same names, which a test checks
both ways (``tests/viewer/test_viewer_payload_keys.py``). A pose is seven numbers: position x y z [m], unit
quaternion x y z w. T frames show N moving bodies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Literal

from robokit.dataclass_tools import frozen
from robokit.errors import Severity
from robokit.viewer.scene import Role

# ---- long tables of numbers, as robokit.viewer.motion_data writes them --------------------------

Packed = str  # base64 of little-endian float32
PackedBits = str  # base64 of single bits
Deflated = str  # base64 of deflated bytes (RFC 1950): uint8 or little-endian float64, by its key
Whole = str  # base64 of deflated whole numbers, positive or negative (``deflated_whole``)


# ---- the robot -----------------------------------------------------------------------------------


@frozen
class RobotData:
    """The robot in the page's header."""

    name: str  # the description's name
    mass: float  # of the moving bodies [kg]
    total_mass: float  # of all links, those of a fixed root too [kg]
    dof: int  # degrees of freedom, nv
    base: str  # "fixed" or "floating"
    bodies: int  # number of moving bodies, N
    joints: int  # number of movable joints, a floating base not counted
    size: float  # the length that overlays are scaled by [m]


@frozen
class BodiesData:
    """The tree."""

    name: list[str]  # of bodies 0..N
    parent: list[int]  # lambda of bodies 0..N, -1 for body 0
    # of bodies 0..N in body coordinates: m, m c (3), I about the body's origin (xx, xy, yy, xz, yz, zz),
    # fixed joints folded in [kg, kg m, kg m^2]
    inertial: list[list[float]]


@frozen
class LinkData:
    """A link: its frame, and its own mass, which its body carries."""

    name: str  # of the link
    body: int  # number of the body that carries it
    pose: list[float]  # of the link's frame in the body's frame
    mass: float  # [kg]
    moments: list[float] | None  # principal moments of inertia, ascending [kg m^2]; None without mass


@frozen
class JointData:
    """A joint: a row of the joint panel, and its data for forward kinematics."""

    name: str  # of the joint
    kind: str  # row of the joint table
    body: int  # the body that it moves
    q: tuple[int, int]  # first and end of its coordinates in q; both the same for a coupled mimic joint
    v: tuple[int, int]  # first and end of its coordinates in v
    axis: list[float]  # unit axis in joint coordinates, (3,)
    pitch: float  # of a helical joint [m/rad]
    lower: float | None  # position limit [rad | m], None where there is none
    upper: float | None  # position limit [rad | m], None where there is none
    velocity: float | None  # limit of its velocity [rad/s | m/s], None where there is none
    effort: float | None  # limit of its force [N m | N], None where there is none
    # for a coupled mimic joint the index in q that it follows and the multiplier, else None
    follows: tuple[int, float] | None
    mimic: str | None  # name of the joint that it mimics, or None
    parent_link: str  # name of the link that it hangs on
    child_link: str  # name of the link that it moves
    placement: list[float]  # pose of its body in the parent body at the neutral configuration
    # inertia of its rotors as the joint feels it, by degree of freedom, on the diagonal of H [kg m^2 | kg];
    # empty for a joint without
    rotor: list[float]


# ---- geometries, nodes, the ground ---------------------------------------------------------------


@frozen
class ShapeData:
    """A geometry, shared by the nodes that draw it. Its type says which of the other keys are not None."""

    type: Literal["box", "sphere", "cylinder", "capsule", "mesh"]  # kind of geometry
    size: tuple[float, float, float] | None = None  # edges of a box [m]
    radius: float | None = None  # of a sphere, cylinder or capsule [m]
    length: float | None = None  # of a cylinder, or of a capsule without its caps [m]
    low: list[float] | None = None  # lowest corner of a mesh [m]
    step: list[float] | None = None  # length of one unit of ``vertices`` along x, y, z [m]
    wide: bool | None = None  # whether ``faces`` holds 32-bit numbers instead of 16-bit ones
    vertices: str | None = None  # base64 of uint16 multiples of ``step`` from ``low``, (n, 3)
    faces: str | None = None  # base64 of vertex numbers, (m, 3)
    colours: str | None = None  # base64 of bytes, colours of the vertices, (n, 3); or None
    uv: Packed | None = None  # picture coordinates of the faces' corners, (m, 3, 2); or None


@frozen
class NodeData:
    """One thing to draw."""

    geometry: int  # place of its geometry in the payload's list
    body: int  # number of the body that carries it
    pose: list[float]  # in the body's frame
    rgba: list[float]  # colour, each 0 to 1 (sRGB)
    role: Role  # "visual" is the robot as seen, "ground" what it falls on; the others are overlays
    link: str  # name of its link
    picture: int | None  # place of the picture that covers it in the payload's list, or None


@frozen
class GroundData:
    """What the robot falls on."""

    plane: bool  # whether there is a plane
    height: float  # of the plane over the world's origin [m]
    normal: list[float]  # of the plane, unit, (3,)
    nodes: list[NodeData]  # height field and solids, in the world


# ---- the mass matrix -----------------------------------------------------------------------------


@frozen
class CountData:
    """Multiply-adds of factorising H and of solving with the factors."""

    entries: int  # of H
    zeros: int  # of H, by structure
    zeros_share: float  # zeros / entries
    factorise: int  # H = LᵀDL on the tree
    factorise_dense: int  # of a dense matrix
    solve: int  # with the factors of LᵀDL
    solve_dense: int  # with dense factors
    fill: int  # entries that fill in at Cholesky's H = LLᵀ
    cholesky_factorise: int  # H = LLᵀ with its fill-in
    cholesky_solve: int  # with the factors of LLᵀ


@frozen
class CostData:
    """Operations of one algorithm for one state, as ``robokit.cost`` counts them."""

    algorithm: str  # its name in the dynamics
    growth: str  # as the textbooks state it, in bodies n and depth d
    mul: int | None  # multiplications; None, like the next three, where they are not known
    add: int | None  # additions and subtractions
    div: int | None  # divisions
    sincos: int | None  # pairs of a sine and a cosine
    note: str  # why there are no counts; "" where there are


@frozen
class StructureData:
    """Patterns of the mass matrix and of its factors."""

    n: int  # rows of H, nv
    pattern: PackedBits  # where H can be nonzero, (n, n)
    cholesky: PackedBits  # where L of H = LLᵀ can be nonzero, (n, n)
    counts: CountData  # of factorisations and solves, by formula
    costs: list[CostData]  # of the algorithms, counted


# ---- frames, curves and figures of a run ---------------------------------------------------------


@frozen
class PeaksData:
    """Samples of one coordinate that lie outside the range of the frames beside them."""

    line: str  # "q", "v" or "tau"
    index: int  # of the coordinate in q, or of the degree of freedom in v and tau
    t: Packed  # since the start [s]
    y: Packed  # the values


@frozen
class AttachmentData:
    """A point that is fixed to a body."""

    body: int  # its number; 0 for the world
    pose: list[float]  # the point in the body's frame, (3,) [m]


@frozen
class TieData:
    """What is drawn between two points."""

    spring: bool  # whether it is a spring, or else a rod that closes a loop
    ends: list[AttachmentData]  # both points


@frozen
class FramesData:
    """The motion at display rate: T frames, or one for a pose."""

    count: int  # T
    sane: int  # frames before the motion blew up; T where it did not. The view is fitted to these.
    t: Packed  # since the start, (T,) [s]
    poses: Packed  # of bodies 1..N in the world, (T, N, 7)
    q: Packed  # configurations, (T, nq)
    com: Packed  # centre of mass, (T, 3) [m]; NaN for a robot without mass
    v: Packed | None = None  # velocities, (T, nv); or None
    tau: Packed | None = None  # joint forces, (T, nv); or None
    momentum: Packed | None = None  # centroidal, angular then linear, (T, 6) [N m s; N s]; or None
    # of the ground on the robot, (T, 3) [N]; None where there is none all the time
    force: Packed | None = None
    contact_count: Packed | None = None  # points that touch the ground, (T,); or None
    # positions [m] and forces [N] of these points, frame after frame, (sum, 6); or None
    contacts: Packed | None = None
    # unit normals of these points out of what they touch, (sum, 3); None where all are those of the ground's
    # plane, or are not known
    contact_normals: Packed | None = None
    met_count: Packed | None = None  # points at which two bodies touch, (T,); or None
    # of these points positions [m], forces on the second body [N], and unit normals out of the first, (sum,
    # 9); or None
    met: Packed | None = None
    peaks: list[PeaksData] = field(default_factory=list)  # what joints do between frames


@frozen
class SeriesData:
    """One line of a plot."""

    name: str  # in the legend; chooses the colour
    y: Packed  # values at the curve's times; NaN where a line of the caller's own has a gap


@frozen
class CurveData:
    """A plot over time."""

    key: str  # which of the page's plots it is; begins with "own " for those of the caller
    title: str  # over the plot
    unit: str  # of all its lines
    t: Packed  # since the start [s]
    series: list[SeriesData]  # the lines
    # how long each value holds until its time [s]: the step for what is a mean over it; else 0
    hold: float = 0.0


@frozen
class LinkForceData:
    """The size of the ground's force on a link over time."""

    link: str  # its name
    t: Packed  # since the start [s]
    y: Packed  # size of the force [N]
    hold: float  # how long each value holds until its time [s]


@frozen
class FigureData:
    """One figure of the run's summary: its key in ``Trajectory.summary``, and its value."""

    key: str
    value: float | str


@frozen
class StoppedData:
    """Why a run ended before its time."""

    time: float  # of the last state [s]
    reason: str  # what happened, a sentence
    remedy: str  # what to do, a sentence; may be empty


# ---- a second run --------------------------------------------------------------------------------


@frozen
class ComparedData:
    """One figure of both runs."""

    label: str  # what it is
    unit: str  # of both; may be empty
    first: float | None  # of the first run, or None
    second: float | None  # of the second run, or None


@frozen
class GhostData:
    """The second run."""

    labels: tuple[str, str]  # names of the two runs
    frames: FramesData  # of the second run
    pairs: list[CurveData]  # curves with one line for each run
    differences: list[CurveData]  # curves of their difference, in the order of ``pairs``
    figures: list[ComparedData]  # of both runs
    summary: list[FigureData]  # figures of the second run


# ---- events, answers, tables by link and by joint ------------------------------------------------


@frozen
class EventKindData:
    """A kind of event; they are listed with the most important one first: what a crowded mark shows."""

    kind: str  # its name
    family: str  # of kinds that are drawn and filtered alike


@frozen
class HappeningData:
    """An event of the run. (In the scripts ``event`` is the browser's.)"""

    time: float  # since the start [s]
    kind: str  # see :data:`robokit.contact.measures.KINDS`
    subject: str  # name of the link, joint or robot
    body: int | None  # number of the body that it happened to, or None
    link: str | None  # name of the link that is selected with it, or None
    text: str  # the event in words, without its subject
    size: str  # with its unit, in words; may be empty


@frozen
class AnswerData:
    """A question and its answer; also an assumption or an entry of the ledger."""

    label: str  # the question, in a word or two
    value: str  # the answer
    note: str  # what belongs to it; may be empty
    event: int | None  # place of its event in the list, or None
    doubtful: bool  # whether the reader should doubt the run because of it


@frozen
class TouchedData:
    """A link that touched the ground."""

    link: str  # its name
    first: int  # place of its first contact in the list of events
    peak: int | None  # place of its largest force, or None
    impacts: int  # how many
    slid: str  # way that it slid, in words


@frozen
class ReachedData:
    """A limit that a joint reached."""

    joint: str  # its name
    side: str  # "upper" or "lower"
    first: int  # place in the list of events where it reached it first
    past: int | None  # place where it was furthest past it, or None
    times: int  # how often it reached it
    force: str  # largest of the stop that is known, in words; may be empty


@frozen
class EventsData:
    """The lane of events and the summary panel."""

    happenings: list[HappeningData]  # the events in the order of time; of very many the important ones
    left_out: int  # how many are not among them
    sampled: str  # how often the events were looked for, "" where that is every step
    answers: list[AnswerData]  # to the usual questions
    touched: list[TouchedData]  # links that touched the ground, in the order of their first contact
    reached: list[ReachedData]  # limits that joints reached, the one furthest past first
    assumed: list[AnswerData]  # what was assumed
    books: list[AnswerData]  # how far energy and momentum are accounted for


# ---- the importer's findings ---------------------------------------------------------------------


@frozen
class FindingData:
    """What the importer found: a Diagnostic, and where it points."""

    severity: Severity  # "error", "warning" or "note"
    code: str  # stable identifier
    element: str  # path of the element in words
    line: int  # in the file, 0 where there is none
    message: str  # what was found
    hint: str  # what to do; may be empty
    link: str | None  # name of the link that it is about, or None
    body: int | None  # number of that link's body, or None


@frozen
class InertiaData:
    """A row of the table of inertias."""

    link: str  # its name
    body: int  # number of its body
    mass: float  # [kg]
    box: list[float]  # edges of the equivalent box [m]
    moments: list[float]  # principal moments, ascending [kg m^2]
    odd: bool  # whether a finding doubts them


@frozen
class CheckData:
    """The check panel: the findings, and the inertia of every link that has mass."""

    findings: list[FindingData]
    inertias: list[InertiaData]


# ---- inside the algorithms -----------------------------------------------------------------------


@frozen
class ProgramData:
    """All values of the lines as one list of operations on a state.

    Its numbers stand in slots: those of the constants, then of the inputs, then of the operations in order.
    """

    operations: list[str]  # names of the operations, as in ``robokit/engine/trace/ops.py``
    codes: Deflated  # uint8: of each operation the place of its name
    # first, second and third operands of the operations that have them: how many slots back, or -1 - slot of
    # a constant or an input
    operands: list[Whole]
    constants: Deflated  # float64 numbers
    inputs: Whole  # places in gravity (3), q, v, tau, forces on the bodies 0..N (6 each), one after another


@frozen
class ListingData:
    """A source file: its name and all of its text."""

    file: str
    text: str


@frozen
class SweepData:
    """A loop over all bodies: what it is for, and whether it goes from the root to the tips."""

    title: str
    outward: bool


@frozen
class LetterData:
    """A value of the text."""

    written: str  # as the text writes it, as ``v[p]``
    symbol: str  # as a book writes it; ``I^A`` has a superscript
    below: str  # its subscript
    meaning: str  # in words
    unit: str  # of its numbers
    out: bool  # whether the line writes it; else it reads it
    entry: bool  # whether it is an entry or a row of the algorithm's matrix


@frozen
class FormData:
    """What steps of one line have in common."""

    listing: int  # place of its file in the algorithm's listings
    line: int  # its first line in the file, from 1
    last: int  # its last line
    sweep: int  # place of its pass, -1 outside of all
    letters: list[int]  # places of the values that it reads and writes
    says: str  # what the line does, a sentence


@frozen
class AlgorithmData:
    """An algorithm as it ran."""

    key: str  # of the algorithm
    title: str  # its long name
    gives: str  # what goes in and what comes out
    listings: list[ListingData]  # its source files
    sweeps: list[SweepData]  # its passes
    indices: list[str]  # names of its indices, that of the body or dof at work first
    by_dof: bool  # whether the indices count degrees of freedom, not bodies
    matrix: str  # letter of the matrix that fills, or ""
    # letters, forms: of its lines
    letters: list[LetterData]
    forms: list[FormData]
    steps: Whole  # form of each step
    counters: Whole  # of each step its indices, -1 where the line does not speak of one
    # of each value of each step the body that it belongs to, -1 for none; of an entry of the matrix row (n +
    # 1) + column, with column n for a whole row
    places: Whole
    seen: Whole  # of each value of each step its place among the values, as the difference to the one before
    shapes: Whole  # kind and count of numbers of each value
    # of all values: twice the slot of the program, and 1 more where the sign is turned; as the difference to
    # the one before
    numbers: Whole
    whole: bool  # whether these are all of its steps


@frozen
class WalkData:
    """The algorithms, for every state that the page can show."""

    program: ProgramData  # finds all values for a state
    gravity: list[float]  # acceleration of free fall in world axes [m/s^2], where the page has no other
    touched: Whole | None  # body of each point of ``FramesData.contacts``; or None
    rows: list[int]  # body of each row of the matrices
    kinds: list[str]  # names of the kinds of values
    algorithms: list[AlgorithmData]  # in the order of the page
    notes: list[str]  # what the numbers stand for, and what is left out


# ---- physics in the page -------------------------------------------------------------------------


@frozen
class SlotData:
    """An array of float64 in a module's memory."""

    name: str  # of the array
    at: int  # first byte
    count: int  # numbers


@frozen
class ModuleData:
    """A kernel as WebAssembly: it exports its memory and ``step()``."""

    content: str  # the module, compressed by gzip, as base64
    bytes: int  # of the module
    slots: list[SlotData]  # arrays in its memory, inputs and outputs


@frozen
class StepperData:
    """The step of all robots, and a robot (robokit.sim.page_step)."""

    module: str  # it exports its memory, ``contact_step`` and ``contact_look``; compressed by gzip, as base64
    bytes: int  # of the module
    sizes: list[tuple[str, int]]  # by name, in the order in which the functions take them
    # name and shape of each, separated by spaces, in the order in which they are given, separated by commas;
    # @ in a shape is the place of a size. Before it is how many of the lowest bytes of its numbers are given,
    # where these are the page's (the others are 0, but for the normals of faces, which are made of the
    # corners), # of int32, others are float64, and * of what a step hands to the next
    arrays: str
    steps: int  # how many of them the step takes: the others are the look's
    # deflated, as base64: the lowest bytes of all given numbers, one array after another, then all second
    # bytes likewise
    numbers: str


@frozen
class MotorData:
    """A driven joint: with the target t it is given bias + gain clip(t, -limit, limit) [N m | N]."""

    joint: str  # its name
    kind: str  # "position", "velocity" or "force": what its target is
    unit: str  # of the target
    # lower, upper: of the target, for a slider
    lower: float
    upper: float
    # gain, bias, limit: of that law; limit None where there is none
    gain: float
    bias: float
    limit: float | None


@frozen
class MotorsData:
    """The driven joints of a run, and their targets in it."""

    list: list[MotorData]  # the joints, n
    t: Packed  # times at which targets change, or some of them, (K,) [s]
    targets: Packed  # from these times on, (K, n)
    commands: str  # what the joints are given in the first step, (n,) as base64 of float64
    gains: Sequence[int]  # of passive motion, the places of their gains among the parameters of the step


@frozen
class LiveData:
    """The step of the recording as WebAssembly, and its start."""

    worker: str  # text of the Worker that runs it
    # the step of the integrator "contact"; None for that of passive motion (sim.page_step), of which
    # the next five are
    stepper: StepperData | None
    step: ModuleData | None  # the step
    look: ModuleData | None  # what a state looks like
    parameters: str  # what the step is given besides the state, (P,) as base64 of float64: the step [s] first
    # arrays of a row of a sweep that differ from those of the program: name and content, as base64 of float64
    own: list[tuple[str, str]]
    # momentum, energy: whether a step is handed the momentum and the energy of the one before
    momentum: bool
    energy: bool
    # q, v: the start of the recording, (nq,) and (nv,) as base64 of float64
    q: str
    v: str
    # least and largest coefficient of friction on the ground; empty where nothing can touch it
    grips: list[float]
    gravity: tuple[float, float, float]  # [m/s^2]
    dt: float  # step of the recording [s]
    mass: float  # of the moving bodies [kg]
    masses: list[float]  # of the bodies 1..N [kg]
    floats: bool  # whether nothing but the ground and the hand changes its momentum
    ledger: list[str]  # names of the first entries of the ledger
    # stiffness, damping: of a hand that suits the robot [N/m], [N s/m]
    stiffness: float
    damping: float
    # the driven joints whose targets the page has sliders for; None where there are none
    motors: MotorsData | None = None


# ---- the report of a sweep -----------------------------------------------------------------------


@frozen
class ColumnData:
    """A parameter or a measure of the rows."""

    name: str  # of the column in the sweep's table
    title: str  # in words
    unit: str  # "" where it has none
    about: str  # what it is, a sentence; may be empty
    role: str  # "parameter" or "measure"
    labels: list[str] | None  # what the values count, of a column of texts; else None
    # of the rows that the page holds: float32, all lowest bytes first and so on; NaN for none
    values: Deflated
    # low, high: range of the bins, over all rows of the sweep; places of the labels
    low: float
    high: float
    counts: list[int]  # rows of the sweep in each bin
    missing: int  # rows of the sweep without a value
    whole: bool  # whether all values are whole numbers


@frozen
class ReasonData:
    """Why rows failed, and how many of the sweep did so."""

    text: str
    count: int


@frozen
class PartData:
    """Entries of an input that are kept in the same way.

    An entry is that of the base, or the base times a factor of the row, and the difference to it, counted in
    the float64 numbers between them; or kept as it is.
    """

    entries: list[int]  # their places in the input
    factor: int  # place of the factor; -1 for none
    bytes: int  # of a difference, 1 or 2; 8 for the number itself
    values: Deflated  # (n, entries), all lowest bytes first and so on


@frozen
class InputData:
    """An input of the step, for each row: q, v, carried or parameters."""

    name: str  # of the input
    base: Deflated  # float64: that of the first row
    parts: list[PartData]  # entries that are not the same in all rows


@frozen
class RerunData:
    """What the rows of one robot need to run again."""

    robot: str  # its name in the table
    payload: Deflated  # data of the row's page as JSON, without its motion
    steps: int  # of a row
    places: Deflated  # uint32: of these rows among those of the page, (n,), ascending
    factors: list[Deflated]  # float64 numbers of the rows, (n,), all lowest bytes first and so on
    inputs: list[InputData]  # of the step
    hashes: Deflated | None  # uint64, in the same way: the hash of each row's last state; or None
    inertial: bool  # whether the inertial parameters of its bodies, 10 each, are among the inputs of a row
    problem: str  # why rows cannot run in the page; "" where they can


@frozen
class ReportData:
    """Everything that the report of a sweep shows."""

    title: str  # name of the sweep's folder
    robots: str  # names of its robots
    rows: int  # of the sweep
    held: int  # rows that the page holds
    sample: str  # which these are, a sentence; "" where they are all
    figures: list[tuple[str, str]]  # label and value, for the header
    recipe: list[tuple[str, str]]  # label and text, in words
    openings: list[tuple[str, str]]  # name of a program and the line that opens the table in it
    numbers: Deflated  # uint32: of the rows that the page holds, ascending
    columns: list[ColumnData]  # of the table
    # sorted_by, across, up, tinted: places of the columns that the table and the scatter show first
    sorted_by: int
    across: int
    up: int
    tinted: int
    reasons: list[ReasonData]  # why rows failed, the most frequent first
    page: Deflated  # text of the page that shows a row, with the mark for its data
    command: str  # what writes the page of a row without this page; ROW stands for the row's number
    reruns: list[RerunData]  # for each robot


# ---- the whole page ------------------------------------------------------------------------------


@frozen
class Payload:
    """Everything that a page shows.

    Curves and frames have their own times: frames are for the eye, curves keep what happens between them.
    """

    robot: RobotData  # name and figures of the header
    # bodies, links, joints: what the page names
    bodies: BodiesData
    links: list[LinkData]
    joints: list[JointData]
    geometries: list[ShapeData]  # what nodes draw, each once
    nodes: list[NodeData]  # what is drawn where
    pictures: list[str]  # on surfaces, as data URIs
    structure: StructureData  # patterns of H and of its factors
    bounds: list[list[float]]  # lowest and highest corner of the robot over the whole motion [m]
    ground: GroundData | None  # what the robot falls on, or None
    frames: FramesData  # the motion at display rate
    curves: list[CurveData]  # the plots; none for a pose
    summary: list[FigureData]  # figures of the run
    link_forces: list[LinkForceData] = field(default_factory=list)  # of the ground, over time, by link
    stopped: StoppedData | None = None  # why the run ended early, or None
    events: EventsData | None = None  # what happened, or None where nobody knows
    event_kinds: list[EventKindData] = field(default_factory=list)  # that there are, the most important first
    check: CheckData | None = None  # the importer's findings, or None on pages without a check
    ghost: GhostData | None = None  # a second run beside this one, or None
    walk: WalkData | None = None  # inside the algorithms, or None on pages without
    live: LiveData | None = None  # the step for the page to take, or None on pages that did not ask for it
    ties: list[TieData] = field(default_factory=list)  # springs between points, and rods that close loops
    # name of the link that the camera follows, true for the centre of mass, false for neither; None where the
    # page chooses
    follow: bool | str | None = None
