"""Every verdict has a bad twin that gets it and a good twin that gets nothing."""

import pytest
from for_each import for_each
from urdf_cases import BASE_CODES, CASES, CHECK_ONLY, FILE_CODES, IN_WORDS, MORE, ON_DISK

from robokit.errors import UrdfError
from robokit.urdf import CODES, check_urdf, loads_urdf


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
