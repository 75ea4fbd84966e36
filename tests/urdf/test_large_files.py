"""Large and hostile texts: time in proportion to the links, and a plain refusal where XML is abused."""

import gc
import random
import time
import tracemalloc

import pytest
from urdf_cases import GOOD, INERTIAL, LIMIT, robot

from robokit.errors import UrdfError
from robokit.urdf import check_urdf, dump, loads_urdf

pytestmark = pytest.mark.slow

SHAPES = (
    '<visual><origin xyz="{k} 0 0" rpy="0 0 0.{k}"/><geometry><box size="1 1 1.{k}"/></geometry>'
    '<material name="m{k}"><color rgba="1 0 0 1"/></material></visual>'
    '<collision><geometry><cylinder radius="0.1" length="1"/></geometry></collision>'
)
PARENT = {"chain": lambda k: k - 1, "star": lambda k: 0, "tree": lambda k: random.Random(k).randrange(k)}


def large(n, shape):
    """n links with shapes, no two of them alike."""
    links = [f'<link name="l{k}">{INERTIAL}{SHAPES.format(k=k)}</link>' for k in range(n)]
    joints = [
        f'<joint name="j{k}" type="revolute"><origin xyz="0 0 {k}"/><parent link="l{PARENT[shape](k)}"/>'
        f'<child link="l{k}"/><axis xyz="0 1 0"/>{LIMIT}</joint>'
        for k in range(1, n)
    ]
    return robot("\n".join(links + joints))


def taken(call, *args):
    """Time of a call [s of this process]."""
    gc.collect()
    start = time.process_time()
    call(*args)
    return time.process_time() - start


def four_times_as_long(call, few, many):
    """Whether the least time of three calls grows so; once one of the long calls is short, it does."""
    # A square would make it sixteen times; eight leaves room for what else the machine does.
    longest = 8.0 * min(taken(call, few) for _ in range(3))
    return any(taken(call, many) < longest for _ in range(3))


@pytest.mark.parametrize("shape", PARENT)
def test_four_times_the_links_take_four_times_the_time(shape):
    few, many = large(200, shape), large(800, shape)
    assert four_times_as_long(loads_urdf, few, many)
    assert four_times_as_long(dump, loads_urdf(few), loads_urdf(many))


def memory(text):
    """Most memory that Python holds while it loads a text [bytes]."""
    tracemalloc.start()
    loads_urdf(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_four_times_the_links_take_four_times_the_memory():
    few, many = large(200, "tree"), large(800, "tree")
    loads_urdf(few)  # what is imported at the first call is not counted
    assert memory(many) < 5.0 * memory(few)


HOSTILE = {
    "NUL inside": (GOOD.replace("<link", "\0<link", 1), "xml-syntax"),
    "NUL as a reference": (GOOD.replace('"j"', '"&#0;"'), "xml-syntax"),
    "a reference beyond Unicode": (GOOD.replace('"j"', '"&#x110000;"'), "xml-syntax"),
    "a lone surrogate": (GOOD.replace('"j"', '"\ud800"'), "xml-syntax"),
    "an escape character": (GOOD.replace('"j"', '"\x1b[31m"'), "xml-syntax"),
    "a UTF-16 file cut inside a character": (GOOD.encode("utf-16")[:-1], "file-encoding"),
    "UTF-16 that is UTF-8": (b"\xff\xfe" + (GOOD + " " * (len(GOOD) % 2)).encode(), "xml-syntax"),
    "an overlong sequence": (GOOD.encode().replace(b'"j"', b'"\xc0\xaf"'), "file-encoding"),
    "NUL bytes far inside": (GOOD.encode() + b" " * 5000 + b"\0", "xml-syntax"),
    "an attribute twice": (GOOD.replace('name="j"', 'name="j" name="j"'), "xml-syntax"),
    "deep nesting of other tags": (
        robot('<link name="a"/>' + "<x>" * 100_000 + "</x>" * 100_000),
        "xml-syntax",
    ),
    "deep nesting that never ends": ("<robot name='r'>" * 100_000, "xml-syntax"),
    "two million digits": (
        GOOD.replace('mass value="1"', f'mass value="1{"0" * 2_000_000}"'),
        "number-invalid",
    ),
    "an exponent of a thousand digits": (
        GOOD.replace('mass value="1"', f'mass value="1e{"9" * 300}"'),
        "number-not-finite",
    ),
    "a namespace of line breaks": (
        GOOD.replace("<robot", f'<robot xmlns:x="a{chr(10) * 20_000}b"'),
        "xml-syntax",
    ),
    "text behind the robot": (GOOD + "<robot/>", "xml-syntax"),
    "a DOCTYPE behind the robot": (GOOD + "<!DOCTYPE r>", "xml-syntax"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_texts_are_refused(what):
    text, code = HOSTILE[what]
    _, found = check_urdf(text)
    assert [d.code for d in found if d.severity == "error"] == [code], found
    with pytest.raises(UrdfError) as caught:
        loads_urdf(text)
    assert len(str(caught.value)) < 2000


LONG = " " * 11_000_000
BEYOND_THE_LIBRARY = {
    "white space between tags": GOOD.replace("<link", LONG + "<link", 1),
    "white space before the robot": LONG + GOOD,
    "white space inside a tag": GOOD.replace("<link", "<link" + LONG, 1),
    "a name": GOOD.replace('"j"', f'"{LONG}j"'),
}


@pytest.mark.parametrize("what", BEYOND_THE_LIBRARY)
def test_a_limit_of_the_library_is_told_as_one(what):
    _, (error,) = check_urdf(BEYOND_THE_LIBRARY[what])
    assert error.code == "xml-syntax" and "of more than 10,000,000 characters" in error.message
    assert "not well-formed" not in error.message and "delete what is too long" in error.hint


def test_elements_nested_too_deep_are_told_as_such():
    _, (error,) = check_urdf(HOSTILE["deep nesting of other tags"][0])
    assert "nested more than 256 deep" in error.message


ODD = {
    "an include that is not followed": '<include xmlns="http://www.w3.org/2001/XInclude" href="/etc/x"/>',
    "a style sheet that is not fetched": '<?xml-stylesheet href="http://localhost:9/x.xsl"?>',
    "a base that is not used": '<x xml:base="http://localhost:9/"/>',
    "a hundred thousand comments": "<!-- <x> -->" * 100_000,
    "twenty thousand attributes": "<x " + " ".join(f'a{k}="1"' for k in range(20_000)) + "/>",
    "a hundred thousand unknown tags": "<x/>" * 100_000,
    "two hundred levels of unknown tags": "<x>" * 200 + "</x>" * 200,
    "a megabyte of text": "x" * 2**20,
}


@pytest.mark.parametrize("what", ODD)
def test_what_is_only_odd_loads_with_a_note_at_most(what):
    robot_ = loads_urdf(robot('<link name="a"/>' + ODD[what]), strict=True)
    assert robot_.link_names == ("a",)
    assert len(robot_.diagnostics) <= 1
