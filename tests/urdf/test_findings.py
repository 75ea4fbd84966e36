"""Hopeless files: the time for hints, the length of messages and the lines of findings stay bounded."""

import difflib
import json
import time

import pytest
from for_each import for_each
from urdf_cases import (
    BASE_CODES,
    BODY,
    CASES,
    CHECK_ONLY,
    FILE_CODES,
    GOOD,
    IN_WORDS,
    LIMIT,
    MORE,
    ON_DISK,
    joint,
    robot,
)

from robokit.errors import COMPARED, Diagnostic, UnknownName, UrdfError, nearest_names, one_line
from robokit.urdf import CODES, check_urdf, loads_urdf
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


# ---- Every verdict has a bad twin that gets it and a good twin that gets nothing -----------------


def test_every_code_has_twins():
    assert set(CASES) | FILE_CODES | BASE_CODES == set(CODES)
    assert set(CASES) | set(MORE) | set(ON_DISK) | set(IN_WORDS) == set(CODES)  # what the manual shows


def test_codes_are_kebab_case_and_explained():
    for code, row in CODES.items():
        assert code == code.lower() and " " not in code and "_" not in code
        assert row.severity in ("error", "warning", "note")
        assert row.meaning and row.fix


@for_each("code", CASES)
def test_bad_twin(code):
    bad, _, line, words = CASES[code]
    _, found = check_urdf(bad, plausible=True)
    hits = [d for d in found if d.code == code]
    assert len(hits) == 1, found
    (hit,) = hits
    assert hit.severity == CODES[code].severity
    assert hit.line == line
    assert hit.file == "<string>"
    assert words in f"{hit.element}: {hit.message}"
    assert str(hit).startswith(f"<string>:{line}: {hit.severity} {code}: ")


@for_each("code", CASES)
def test_good_twin_is_silent(code):
    _, good, _, _ = CASES[code]
    description, found = check_urdf(good, plausible=True)
    assert description is not None
    assert found == []
    assert loads_urdf(good, strict=True).diagnostics == []


@for_each("code", CASES)
def test_bad_twin_loads_unless_it_is_an_error(code):
    bad, severity = CASES[code][0], CODES[code].severity
    if severity == "error":
        with pytest.raises(UrdfError) as caught:
            loads_urdf(bad)
        assert code in {d.code for d in caught.value.diagnostics}
        assert code in str(caught.value)
        return
    if code in CHECK_ONLY:
        assert loads_urdf(bad, strict=True).diagnostics == []
        return
    assert code in {d.code for d in loads_urdf(bad).diagnostics}
    if severity == "warning":
        with pytest.raises(UrdfError, match="strict=True") as caught:
            loads_urdf(bad, strict=True)
        assert code in str(caught.value)
    else:
        loads_urdf(bad, strict=True)


@for_each("code", [c for c in CASES if CODES[c].severity == "error"])
def test_an_error_stands_alone(code):
    """One mistake, one message: no cascade of errors that follow from it."""
    _, found = check_urdf(CASES[code][0])
    assert [d.code for d in found if d.severity == "error"] == [code]


@for_each("code", MORE)
def test_what_no_pair_of_texts_shows(code):
    bad, options = MORE[code]
    hits = [d for d in check_urdf(bad, **options)[1] if d.code == code]
    assert len(hits) == 1 and hits[0].severity == CODES[code].severity


@pytest.mark.parametrize("code", ON_DISK)
def test_what_only_files_show(code, tmp_path):
    _, found = check_urdf(ON_DISK[code][1](tmp_path), plausible=True, meshes=True)
    assert [d.code for d in found if d.code in FILE_CODES] == [code]


def test_all_errors_come_at_once():
    text = (
        '<robot name="r">\n<link name="a"><inertial><mass value="x"/></inertial></link>\n<link name="a"/>\n'
        '<joint name="j" type="hinge"><parent link="a"/><child link="zz"/></joint>\n'
        '<joint name="k" type="revolute"><parent link="a"/><child link="b"/>'
        '<axis xyz="0 0 0"/></joint>\n</robot>'
    )
    with pytest.raises(UrdfError) as caught:
        loads_urdf(text)
    errors = [d for d in caught.value.diagnostics if d.severity == "error"]
    assert [(d.code, d.line) for d in errors] == [
        ("number-invalid", 2),
        ("link-duplicate", 3),
        ("joint-type-unknown", 4),
        ("link-undefined", 4),
        ("axis-zero", 5),
        ("link-undefined", 5),
    ]
    lines = str(caught.value).splitlines()
    assert "6 errors" in lines[0]
    assert [line.strip() for line in lines[1:]] == [str(d) for d in errors]
