"""The parts of a robot are frozen dataclasses, whatever stores their fields; floats give NumPy's bits."""

import copy
import dataclasses
import inspect
import pickle
import typing
from typing import ClassVar

import numpy as np
import pytest

import robokit as rk
from robokit.dataclass_tools import frozen
from robokit.model.geometry import (
    Box,
    Mesh,
    Placement,
    Shape,
    product,
    product_of_rows,
    turned,
    turned_by_rows,
)
from robokit.model.parts import Joint, Link


@frozen
class Part:
    """A name, and two numbers that may be left out."""

    name: str
    size: float = 1.0
    holes: list = dataclasses.field(default_factory=list)


def test_is_a_frozen_dataclass():
    part = Part("lid", holes=[2])
    assert repr(part).endswith("Part(name='lid', size=1.0, holes=[2])")
    assert part == Part("lid", 1.0, [2]) != Part("lid", 2.0, [2])
    assert dataclasses.replace(part, size=3.0) == Part("lid", 3.0, [2])
    assert pickle.loads(pickle.dumps(part)) == copy.deepcopy(part) == part
    with pytest.raises(dataclasses.FrozenInstanceError):
        part.size = 2.0
    assert Part("lid").holes == [] and Part("lid").holes is not Part("lid").holes


def test_parts_that_hold_arrays_are_equal_where_these_are():
    def same(a, b):
        return Part("lid", a) == Part("lid", b)

    x, gap = np.array([1.0, 2.0]), np.array([1.0, np.nan])
    assert same(x, x.copy()) and not same(x, 2.0 * x) and not same(x, x[:1]) and not same(x, [1.0, 2.0])
    assert same(np.zeros(0), np.zeros(0)) and not same(np.ones(1), np.ones((1, 1))) and not same(x, None)
    assert same(gap, gap) and not same(gap, gap.copy())  # as NaN in a list
    assert same([x, {"a": x}], [x.copy(), {"a": x.copy()}]) and not same({"a": x}, {"b": x})
    assert Part("lid", (x, 1)) != Part("lid", (x, 2)) and Part("lid", x) != "lid"
    one, other = (rk.load_urdf(rk.find_robot("arm")) for _ in range(2))
    assert one.links == other.links and one.joints == other.joints and one.links[0] != one.links[1]
    start = one.neutral()
    run, again, later = (rk.simulate(one, start, duration=t) for t in (0.01, 0.01, 0.02))
    assert run == again != later and rk.PD(kp=np.ones(6)) == rk.PD(kp=np.ones(6))
    rows = [rk.rollout(one, np.stack([start, start]), duration=t) for t in (0.01, 0.01, 0.02)]
    assert rows[0] == rows[1] != rows[2]
    times = np.array([0.0, 1.0])
    one, two = (rk.Keyframes(times, ("a",), np.array([[0.0], [x]])) for x in (1.0, 2.0))
    assert copy.deepcopy(one) == one != two
    one, two = (rk.Push("a", np.array([0.0, 0.0, x])) for x in (1.0, 2.0))
    assert copy.deepcopy(one) == one != two
    sim = rk.Simulation(rk.load_urdf(rk.find_robot("arm")), start)
    begin, there = sim.state(), (sim.step(), sim.state())[1]
    assert pickle.loads(pickle.dumps(there)) == there == sim.state() != begin


@pytest.mark.parametrize("eq", [True, False])
def test_is_what_dataclasses_make(eq):
    """The same class body by both: what objects are, and what they refuse."""

    def made(decorator):
        class Base:
            """A part."""

            note: ClassVar[str] = "none"
            name: str
            size: float = dataclasses.field(default=1.0, compare=False)
            holes: tuple = dataclasses.field(default_factory=tuple, repr=False)
            own: tuple = ()
            kept: bool = dataclasses.field(default=False, kw_only=True)

            def __post_init__(self):
                object.__setattr__(self, "size", 2.0 * self.size)

        base = decorator(Base)

        class Under(base):
            """More of it."""

            more: int = 3

        return base, decorator(Under), type("Plain", (base,), {})

    answers = []
    for decorator in (dataclasses.dataclass(frozen=True, eq=eq), frozen(eq=eq)):
        seen = []
        for kind in made(decorator):
            one, other, third = kind("lid", 3.0, kept=True), kind("lid", 4.0, kept=True), kind("lid", 3.0)
            seen += [repr(one), one == other, one == third, one == one, one != "lid", one.__eq__(1)]
            seen += [hash(one) == hash(other), hash(one) == object.__hash__(one), dataclasses.astuple(one)]
            seen += [repr(dataclasses.replace(one, name="box")), one.__match_args__, kind.__doc__]
            seen += [str(inspect.signature(kind)), [f.name for f in dataclasses.fields(kind)]]
            seen += [vars(copy.deepcopy(one)), dataclasses.is_dataclass(kind)]
            for change in (setattr, lambda each, name, _: delattr(each, name)):
                for name in ("name", "other"):
                    try:
                        change(one, name, 1)
                        seen.append(vars(one).get(name))
                    except AttributeError as error:
                        seen.append((type(error), str(error)))
            for wrong in ((), ("lid", 1.0, (), (), True)):
                try:
                    kind(*wrong)
                except TypeError as error:
                    seen.append(str(error))
        answers.append(seen)
    assert answers[0] == answers[1]


def test_classes_of_dataclasses_may_be_under_it():
    @dataclasses.dataclass(frozen=True)
    class Under(Part):
        color: str = "red"

    assert Under("lid", color="blue") != Under("lid")
    with pytest.raises(dataclasses.FrozenInstanceError):
        Under("lid").color = "blue"


def test_may_be_under_one_without_fields():
    @frozen
    class Base:
        """Nothing yet."""

    @frozen
    class Under(Base):
        """A name."""

        name: str

    assert Under("lid") == Under("lid") != Under("box")


@pytest.mark.parametrize(
    "first_use",
    [
        lambda kind: kind("lid", 3.0),
        dataclasses.fields,
        dataclasses.is_dataclass,
        inspect.signature,
        lambda kind: kind.__match_args__,
        lambda kind: kind.__init__,
        lambda kind: type("Under", (kind,), {})("lid"),
        lambda kind: dataclasses.dataclass(frozen=True)(type("Under", (kind,), {})),
        lambda kind: frozen(type("Under", (kind,), {"__doc__": "A lid."})),
    ],
)
def test_whatever_uses_a_class_first_finds_all_of_it(first_use):
    def made(decorator):
        class Plain:
            """A name and a size."""

            name: str
            size: float = 1.0

        return decorator(Plain)

    answers = []
    for decorator in (dataclasses.dataclass(frozen=True), frozen):
        kind = made(decorator)
        first_use(kind)
        match kind("lid", 2.0):
            case kind(name, size):
                answers.append((name, size))
        answers[-1] += ([f.name for f in dataclasses.fields(kind)], str(inspect.signature(kind)), kind.size)
        answers[-1] += (kind("lid") == kind("lid", 1.0), dataclasses.replace(kind("lid"), size=3.0).size)
    assert answers[0] == answers[1]


def test_a_class_under_it_may_have_an_init_of_its_own():
    @frozen
    class Base:
        """A name and a size."""

        name: str
        size: float = 1.0

    class Lid(Base):
        def __init__(self, size):
            super().__init__("lid", size)

    assert vars(Lid(7.0)) == {"name": "lid", "size": 7.0}
    assert vars(Lid(8.0)) == {"name": "lid", "size": 8.0}


def test_types_of_arguments_are_found_where_the_class_is_defined():
    assert typing.get_type_hints(Placement.__init__)["position"] is np.ndarray


def test_takes_the_arguments_of_a_dataclass():
    signature = "(name: str, size: float = 1.0, holes: list = <factory>) -> None"  # as dataclasses have it
    assert str(inspect.signature(Part)) == signature
    for wrong in ({}, {"name": "lid", "weight": 2.0}):
        with pytest.raises(TypeError, match=r"Part.__init__\(\)"):
            Part(**wrong)


def test_the_parts_of_a_robot():
    for kind in (Placement, Mesh, Shape, Link, Joint):
        names = [field.name for field in dataclasses.fields(kind)]
        made = kind(*range(len(names)))
        assert vars(made) == dict(zip(names, range(len(names)), strict=True))
        with pytest.raises(dataclasses.FrozenInstanceError):
            made.name = "other"
    first, second = Shape(Box((1.0, 1.0, 1.0))), Shape(Box((1.0, 1.0, 1.0)))
    first.placement.rotation[0, 0] = 2.0
    assert second.placement.rotation[0, 0] == 1.0


def test_rows_have_the_bits_of_arrays():
    rng = np.random.default_rng(3)
    for _ in range(50):
        A, B = rng.standard_normal((2, 3, 3)) * 10.0 ** rng.integers(-9, 9, (2, 3, 3))
        p = rng.standard_normal(3)
        assert np.array(product_of_rows(A.tolist(), B.tolist())).tobytes() == product(A, B).tobytes()
        assert np.array(turned_by_rows(A.tolist(), p.tolist())).tobytes() == turned(A, p).tobytes()


@pytest.mark.parametrize("name", ["arm", "quadruped", "four_bar"])
def test_the_arrays_of_a_robot_are_read_only(name):
    """Writing to them would change what is said of the robot, and nothing that is computed."""
    robot = rk.load_urdf(rk.find_robot(name))
    values = [x for part in (*robot.links, *robot.joints, *robot.loop_joints) for x in vars(part).values()]
    values += [x for value in values if type(value) is Placement for x in vars(value).values()]
    arrays = [x for x in values if type(x) is np.ndarray]
    assert len(arrays) > 4 * len(robot.links)
    for array in (robot.gravity, robot.inertial_parameters, *arrays):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5.0


def test_arrays_of_a_part_that_is_added_stay_its_makers():
    made = rk.load_urdf(rk.find_robot("arm")).links[0]
    placement = Placement(np.eye(3), np.zeros(3))
    own = rk.Link(made.name, 0, placement, 1.0, np.zeros(3), np.eye(3))
    builder = rk.ModelBuilder("one")
    builder.add(own)
    (link,) = builder.build().links
    for array, kept in ((own.com, link.com), (placement.position, link.placement.position)):
        array[0] = 5.0
        assert kept[0] == 0.0 and not kept.flags.writeable
