"""Hopeless files: the time for hints, the length of messages and the lines of findings stay bounded."""

import difflib
import json
import time

import pytest
from for_each import for_each
from urdf_cases import BODY, GOOD, LIMIT, joint, robot

from robokit.errors import COMPARED, Diagnostic, UnknownName, UrdfError, nearest_names, one_line
from robokit.urdf import check_urdf, loads_urdf
from robokit.urdf.findings import MOST_COMPARED
from robokit.urdf.lint import CheckedFile, Paint, as_json, listing

MANY = 2000


def wrong_links(k):
    return f'<joint name="j{k}" type="fixed"><parent link="l{k}_"/><child link="l{k}"/></joint>'


def wrong_mimics(k):
    follower = f'<joint name="j{k}" type="continuous"><parent link="a"/><child link="l{k}"/>'
    return f'{follower}<mimic joint="j{k}_"/></joint>'


def wrong_loops(k):
    ends = f'<predecessor link="l{k}"/><successor link="l{k}_"/>'
    return f'{wrong_links(k)}<loop_joint name="loop{k}" type="spherical">{ends}</loop_joint>'


WRONG = {
    "links": wrong_links,
    "mimics": wrong_mimics,
    "loops": wrong_loops,
    "attributes": lambda k: f'<link name="b{k}" typ{k}="1"/>',
}


@pytest.fixture
def compared(monkeypatch):
    """Counts the names that are compared."""
    counts = []
    search = difflib.get_close_matches
    monkeypatch.setattr(
        difflib,
        "get_close_matches",
        lambda word, names, *a, **k: (counts.append(len(names)), search(word, names, *a, **k))[1],
    )
    return counts


@pytest.mark.parametrize("what", WRONG)
def test_thousands_of_wrong_names_are_not_compared_with_thousands(what, compared):
    links = '<link name="a"/>' + "".join(f'<link name="l{k}"/>' for k in range(MANY))
    start = time.process_time()
    _, found = check_urdf(robot(links + "".join(map(WRONG[what], range(MANY)))))
    assert time.process_time() - start < 10  # 125 s once
    assert len(found) >= MANY
    assert 0 < sum(compared) <= MOST_COMPARED
    assert any("did you mean" in d.hint for d in found)


def turning(k, parent):
    ends = f'<parent link="l{parent}"/><child link="l{k}"/>'
    return f'<link name="l{k}"/><joint name="j{k}" type="continuous">{ends}</joint>'


def chain(k):
    return turning(k, k - 1)


def star(k):
    return turning(k, 0)


def circling(k):
    follows = f'<mimic joint="j{(k + 1) % 10_000}"/></joint>'
    return turning(k, 0).replace('"l0"/><child', '"a"/><child').replace("</joint>", follows)


ATTRIBUTES = " ".join(f'q{k}="1"' for k in range(30_000))
LARGE = {
    "unknown attributes of one element": (f'<link name="a" {ATTRIBUTES}/>', {"attribute-unknown"}),
    "unknown attributes of a limit": (
        turning(1, 0).replace("</joint>", f'<limit effort="1" velocity="1" {ATTRIBUTES}/></joint>')
        + '<link name="l0"/>',
        {"attribute-unknown", "massless-subtree"},
    ),
    "a circle of mimics": ('<link name="a"/>' + "".join(map(circling, range(10_000))), {"mimic-cycle"}),
}


@pytest.mark.parametrize("what", LARGE)
def test_large_oddities_take_no_square_of_time(what):
    inside, codes = LARGE[what]
    start = time.process_time()
    _, found = check_urdf(robot(inside))
    assert time.process_time() - start < 5
    assert {d.code for d in found} == codes


POINT = '<link name="l0"/><link name="p"><inertial><mass value="1"/></inertial></link>'


@pytest.mark.parametrize("shape", [chain, star])
def test_ten_thousand_joints_that_move_next_to_nothing_take_no_square_of_time(shape):
    last = '<joint name="p" type="continuous"><parent link="l9999"/><child link="p"/></joint>'
    text = robot(POINT + "".join(map(shape, range(1, 10_000))) + last)
    start = time.process_time()
    _, found = check_urdf(text)
    assert time.process_time() - start < 10
    assert {d.code for d in found} == {"massless-subtree", "inertia-zero"}


@pytest.mark.slow
def test_names_that_are_hard_to_compare_take_no_time():
    known = [f"{'ab' * 28}{k:03}" for k in range(300)]
    wrong = "".join(f'<link name="{name}"/>' for name in known)
    wrong += "".join(
        f'<joint name="j{k}" type="fixed"><parent link="{"ba" * 28}{k:03}"/><child link="{name}"/></joint>'
        for k, name in enumerate(known)
    )
    start = time.process_time()
    check_urdf(robot(wrong))
    assert time.process_time() - start < 10


def test_of_many_names_the_neighbours_are_compared(compared):
    known = [f"link_{k:05}" for k in range(20_000)]
    assert nearest_names("link_12345_", known)[0] == "link_12345"
    assert nearest_names("link_19999_", known)[0] == "link_19999"
    assert compared == [COMPARED, COMPARED]


def test_an_unknown_name_says_little_of_long_names():
    error = UnknownName("link", "x" * 140_000, ["y" * 140_000, "z\n\x1b[31m"])
    assert len(str(error)) < 500
    assert "\n" not in str(error) and "\x1b" not in str(error)
    assert (
        str(UnknownName("link", "hand", ["hands", "foot"])) == "no link named 'hand'; did you mean 'hands'?"
    )


# ---- messages


def test_the_message_of_an_error_shows_the_first_findings_and_says_how_many_more():
    with pytest.raises(UrdfError) as caught:
        loads_urdf(robot("<link/>" * 20_000))
    lines = str(caught.value).splitlines()
    assert lines[0] == "<string>: 20000 errors"
    assert lines[-1] == "  and 19980 more, all in .diagnostics"
    assert len(lines) == 22 and len(str(caught.value)) < 4000
    assert len(caught.value.diagnostics) == 20_000


def test_the_message_of_an_error_is_short_whatever_the_names_are():
    with pytest.raises(UrdfError) as caught:
        loads_urdf(robot(f'<link name="{"x" * 5000}"/>' * 100))
    assert len(str(caught.value)) < 15_000


def test_the_listing_shows_the_first_findings_of_a_code_and_says_how_many_more():
    text = robot("".join(f'<link name="l{k}"/><link name="l{k}"/>\n' for k in range(300)))
    lines = list(listing([CheckedFile("r.urdf", *check_urdf(text))], Paint(False)))
    assert sum("is defined a second time" in line for line in lines) == 100
    assert any("and 200 more like these: --json lists all" in line for line in lines)


HOSTILE_NAMES = {
    "line breaks": "a&#10;&#13;b",
    "other breaks": "a\u2028b\u2029c\u0085d",
    "marks of direction": "a\u202eb\u2066c",
    "a name of a book's length": "x" * 140_000,
    "C1 controls": "a\u009b31mb",
}
JOINT = '<joint name="j" type="revolute"><parent link="a"/><child link="b"/>'
ENDS = '<predecessor link="{0}"/><successor link="{0}"/>'
PLACES = {
    "link": BODY + '<joint name="j" type="fixed"><parent link="q"/><child link="{0}"/></joint>',
    "joint": BODY + '<joint name="{0}" type="{0}"><parent link="{0}"/><child link="{0}2"/></joint>',
    "mimic": f'{BODY}{JOINT}{LIMIT}<mimic joint="{{0}}"/></joint>',
    "mesh": '<link name="a"><visual name="{0}"><geometry><mesh filename="{0}"/></geometry></visual></link>',
    "texture": '<link name="a"/><material name="{0}"><texture filename="package://{0}/{0}"/></material>',
    "number": '<link name="a"><inertial><mass value="{0}"/></inertial></link>',
    "loop": f'{BODY}<loop_joint name="{{0}}" type="{{0}}">{ENDS}</loop_joint>',
    "robot": '</robot><robot name="{0}">',
}


@for_each("name", HOSTILE_NAMES)
@for_each("place", PLACES)
def test_every_finding_is_one_line_of_bounded_length(place, name):
    text = robot(PLACES[place].replace("{0}", HOSTILE_NAMES[name])).replace('<robot name="r">\n</robot>', "")
    description, found = check_urdf(text)
    assert found
    checked = [CheckedFile("<string>", description, found)]
    for diagnostic in found:
        assert str(diagnostic).isprintable() and len(str(diagnostic)) < 4000
    for line in listing(checked, Paint(False), inertias=True):
        assert not line or (line.isprintable() and len(line) < 2000)
    written = json.dumps(as_json(checked, inertias=True), ensure_ascii=False)
    assert len(written) < 20_000
    written.encode()


def test_a_finding_is_cleaned_wherever_it_is_made():
    long = "x" * 5000
    finding = Diagnostic("error", "c", "a\nb", "f\n\udcff", 1, f"{long}\x1b[31m end", "fix\r\nit")
    assert str(finding).startswith("f \\udcff:1: error c: a b: xxx")
    assert str(finding).endswith("\\x1b[31m end (fix  it)") and len(str(finding)) < 1200


def test_text_that_is_fine_is_kept():
    for text in ("", "plain", "Prüfstand 試験 ½ 🤖", "x" * 1000):
        assert one_line(text) is text
    assert check_urdf(joint(name="Prüf 試"))[1] == check_urdf(GOOD)[1] == []


CONTROLS = [chr(code) for code in range(32) if chr(code) not in "\t\n\r"]
MARKED = (
    '<robot name="r@"><link name="a"/></robot>',
    '<robot name="r">@<link name="a"/></robot>',
    '<robot name="r"><!-- @ --><link name="a"/></robot>',
    '<robot name="r"><?p @?><link name="a"/></robot>',
    '<robot name="r"><link name="a"/></robot>@',
    '<robot name="r"><x:y z="@"/><link name="a"/></robot>',
)


def test_control_characters_are_told_wherever_they_stand():
    for text in MARKED:
        for character in CONTROLS:
            _, found = check_urdf(text.replace("@", character))
            told = f"holds the control character U+{ord(character):04X}, which XML does not allow"
            assert [(d.code, d.line, d.message) for d in found] == [("xml-syntax", 1, told)], text
