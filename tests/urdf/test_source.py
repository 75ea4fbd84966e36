"""Files, encodings, attacks, and the odd but valid things that real files hold."""

import gzip
import os
import sys
import time

import pytest
from for_each import for_each
from urdf_cases import GOOD, INERTIAL, LIMIT, inertial, joint, link, robot, two_joints

from robokit.errors import RobokitError, UnknownName, UrdfError
from robokit.urdf import CODES, check_urdf, load_urdf, loads_urdf, source


def refused(what, code):
    """The one error of a file or text."""
    _, found = check_urdf(what)
    errors = [d for d in found if d.severity == "error"]
    assert [d.code for d in errors] == [code], found
    assert CODES[code].severity == "error"
    loader = loads_urdf if isinstance(what, bytes) or str(what).lstrip()[:1] == "<" else load_urdf
    with pytest.raises(UrdfError) as caught:
        loader(what)
    assert str(errors[0]) in str(caught.value)
    return errors[0]


def silent(what):
    robot = load_urdf(what) if isinstance(what, os.PathLike) else loads_urdf(what, strict=True)
    assert robot.diagnostics == []
    return robot


# ---- what is no URDF file


def test_missing_file(tmp_path):
    assert str(tmp_path) in refused(tmp_path / "none.urdf", "file-missing").hint


def test_text_given_as_path():
    with pytest.raises(UrdfError, match="loads_urdf"):
        load_urdf(GOOD)
    with pytest.raises(UrdfError, match="use load_urdf"):
        loads_urdf("robot.urdf")


def test_path_with_nul():
    refused("a\0b", "file-unreadable")


def test_directory(tmp_path):
    (tmp_path / "arm.urdf").write_text(GOOD)
    assert "arm.urdf" in refused(tmp_path, "file-not-regular").hint


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes on this system")
def test_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.urdf")
    refused(tmp_path / "pipe.urdf", "file-not-regular")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_unreadable_file(tmp_path):
    path = tmp_path / "secret.urdf"
    path.write_text(GOOD)
    path.chmod(0)
    refused(path, "file-unreadable")


def test_too_large_file(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "MAX_BYTES", 100)
    path = tmp_path / "big.urdf"
    path.write_text(GOOD)
    refused(path, "file-too-large")
    refused(GOOD, "file-too-large")


@pytest.mark.parametrize(
    "data", [b"", b" \n\t ", b"\xef\xbb\xbf", b"\xef\xbb\xbf" * 3, b"<?xml version='1.0'?>"]
)
def test_empty_file(tmp_path, data):
    path = tmp_path / "empty.urdf"
    path.write_bytes(data)
    refused(path, "file-empty")


def test_gzip(tmp_path):
    path = tmp_path / "robot.urdf.gz"
    path.write_bytes(gzip.compress(GOOD.encode()))
    assert "gzip" in refused(path, "file-compressed").message


@pytest.mark.parametrize("data", [b"\x7fELF\x02\x01\x01\0\0\0\0", bytes(range(256)) * 4, b"solid \0\0\0"])
def test_binary(tmp_path, data):
    path = tmp_path / "noise.urdf"
    path.write_bytes(data)
    refused(path, "file-binary")


def test_every_cut_of_a_file_is_refused():
    text = GOOD.rstrip()
    for end in range(1, len(text) - 1, 7):
        with pytest.raises(UrdfError):
            loads_urdf(text[:end])


def test_cut_file_is_explained():
    assert "</robot>" in refused(GOOD[: len(GOOD) // 2], "xml-syntax").hint


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<sdf/>", "SDF"),
        ("<mujoco/>", "MJCF"),
        ("<COLLADA/>", "COLLADA"),
        ("<html/>", "HTML"),
        ("<!DOCTYPE html><html></html>", "HTML"),
        ("<Robot name='r'/>", "lower case"),
        ("<foo/>", "<foo>"),
    ],
)
def test_other_formats_are_recognised(text, words):
    found = refused(text, "root-not-robot")
    assert words in found.message + found.hint


def test_srdf_and_git_lfs_are_recognised():
    assert "SRDF" in refused("<robot name='r'><group name='arm'/></robot>", "no-links").message
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n"
    assert "git lfs pull" in refused(pointer, "file-lfs-pointer").hint
    with pytest.raises(UrdfError, match=r"file-lfs-pointer.*git lfs pull"):
        loads_urdf(pointer.decode())


@pytest.mark.parametrize(
    "text",
    [
        '<robot name="r" xmlns:xacro="http://ros.org/wiki/xacro"><xacro:include filename="a.xacro"/></robot>',
        '<robot name="r"><link name="${prefix}base"/></robot>',
        '<robot name="r"><link name="a"/><link name="b"/><joint name="j" type="fixed"><parent link="a"/>'
        '<child link="b"/><origin xyz="$(arg x) 0 0"/></joint></robot>',
    ],
)
def test_unexpanded_xacro(text):
    assert "xacro in.xacro > out.urdf" in refused(text, "xacro-unexpanded").hint


# ---- encodings


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1", "cp1252"]
)
def test_encodings(tmp_path, encoding):
    declared = "utf-8" if encoding.startswith("utf-8") else encoding
    text = f'<?xml version="1.0" encoding="{declared}"?>\n' + inertial().replace('"b"', '"Gelenkstück"')
    path = tmp_path / "robot.urdf"
    path.write_bytes(text.encode(encoding))
    assert silent(path).link_names == ("a", "Gelenkstück")


def test_declared_encoding_of_a_text_is_void():
    silent('<?xml version="1.0" encoding="utf-16"?>' + GOOD)
    silent("\n  <?xml version='1.0'\n encoding='latin-1' ?>" + GOOD)
    _, found = check_urdf("\n<?xml version='1.0'\n ?>\n<robot name='r'>\n<foo/></robot>")
    assert {d.line for d in found} == {4, 5}


@pytest.mark.parametrize(
    "data",
    [
        '<?xml version="1.0"?><robot name="ü"/>'.encode("latin-1"),
        b'<?xml version="1.0" encoding="klingon"?><robot/>',
        b'<?xml version="1.0" encoding="utf-7"?><robot/>',
        b'<?xml version="1.0" encoding="rot13"?><robot/>',
    ],
)
def test_undecodable(data):
    refused(data, "file-encoding")


# ---- attacks: refused at once, nothing read, nothing expanded

BOMB = "".join(f'<!ENTITY l{k} "{f"&l{k - 1};" * 10}">' for k in range(1, 12))


@for_each(
    "doctype",
    [
        f'<!DOCTYPE r [<!ENTITY l0 "ha">{BOMB}]>',
        '<!DOCTYPE r [<!ENTITY l11 SYSTEM "file:///etc/hostname">]>',
        '<!DOCTYPE r SYSTEM "http://localhost:9/x.dtd">',
        '<!-- x --><?pi y?>\n <!DOCTYPE r [<!ENTITY % p SYSTEM "file:///etc/passwd"> %p;]>',
    ],
)
@for_each("encoding", ["utf-8", "utf-16"])
def test_doctype_is_refused(doctype, encoding):
    text = f'<?xml version="1.0"?>{doctype}<robot name="&l11;"><link name="a&l11;"/></robot>'
    start = time.process_time()
    refused(text.encode(encoding), "xml-doctype")
    assert time.process_time() - start < 1.0


ENTITY = '<!DOCTYPE robot [<!ENTITY x "pwned">]>\n<robot name="r"><link name="&x;"/></robot>'
DECLARED = '<?xml version="1.0"?>'
HIDDEN = {
    "behind marks": "\ufeff" * 3 + ENTITY,
    "behind a declaration and a mark": DECLARED + "\ufeff" + ENTITY,
    "behind marks on both sides": "\ufeff\ufeff" + DECLARED + "\ufeff\ufeff" + ENTITY,
    "behind marks between line breaks": "\n\ufeff\n\ufeff" + ENTITY,
    "behind a comment and a mark": "<!-- a -->\ufeff" + ENTITY,
    "behind a no-break space": "\u00a0" + ENTITY,
}


@for_each("encoding", ["utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@for_each("marks", [1, 2, 3])
@for_each("what", HIDDEN)
def test_no_mark_hides_a_doctype(what, marks, encoding):
    """Each of these is refused, before an entity is a name."""
    description, found = check_urdf(("\ufeff" * marks + HIDDEN[what]).encode(encoding))
    assert description is None
    assert [d.code for d in found] in (["xml-doctype"], ["xml-syntax"])
    if "marks" in what and "between" not in what:
        assert found[0].code == "xml-doctype"


def test_a_doctype_that_the_first_look_misses_is_refused_after_parsing(monkeypatch):
    monkeypatch.setattr(source, "_has_doctype", lambda text, report: False)
    refused(ENTITY, "xml-doctype")


@for_each("encoding", ["utf-8", "utf-16-le", "utf-16-be", "utf-32-le"])
@for_each("text", ["\ufeff" * 3 + GOOD, "\ufeff" + DECLARED + "\ufeff" + GOOD])
def test_marks_are_no_text(text, encoding):
    silent(("\ufeff" + text).encode(encoding))


def test_undefined_entity():
    refused('<robot name="r"><link name="a"/>&bomb;</robot>', "xml-syntax")


def test_deep_nesting():
    refused("<robot name='r'>" + "<link>" * 100_000 + "</link>" * 100_000 + "</robot>", "xml-syntax")


def test_huge_attribute():
    start = time.process_time()
    refused(f'<robot name="{"x" * 12_000_000}"><link name="a"/></robot>', "xml-syntax")
    refused(inertial(mass="1" * 1_000_000), "number-invalid")
    refused(inertial(mass="1" * 300_000 + "x"), "number-invalid")
    refused(joint(f'<origin xyz="{"0 " * 500_000}"/>{LIMIT}'), "number-count")
    assert time.process_time() - start < 5.0


def test_many_problems_stay_linear_and_readable():
    text = robot("".join(f'<joint name="j{k}" type="x"><child link="c{k}"/></joint>' for k in range(3000)))
    start = time.process_time()
    with pytest.raises(UrdfError) as caught:
        loads_urdf(text)
    assert time.process_time() - start < 3.0
    assert len(caught.value.diagnostics) > 6000
    assert len(str(caught.value).splitlines()) < 300
    assert "more, all in .diagnostics" in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["chain", "star", "cycle", "reversed"])
def test_twenty_thousand_links(shape):
    n = 20_000
    parent = {
        "chain": lambda k: k - 1,
        "star": lambda k: 0,
        "cycle": lambda k: k - 1,
        "reversed": lambda k: k - 1,
    }
    joints = [
        f'<joint name="j{k}" type="revolute"><parent link="l{parent[shape](k) % n}"/><child link="l{k}"/>'
        f"{LIMIT}</joint>"
        for k in range(0 if shape == "cycle" else 1, n)
    ]
    if shape == "reversed":
        joints.reverse()
    text = robot(
        "\n".join(f'<link name="l{k}">{INERTIAL}</link>' for k in range(n)) + "\n" + "\n".join(joints)
    )
    limit = sys.getrecursionlimit()
    start = time.process_time()
    _, found = check_urdf(text)
    assert time.process_time() - start < 10.0  # about 1 s on a free core
    assert sys.getrecursionlimit() == limit
    assert [d.code for d in found] == (["tree-cycle"] if shape == "cycle" else [])


def test_mimic_chain_of_thousands():
    n = 3000
    body = "".join(f'<link name="l{k}">{INERTIAL}</link>' for k in range(n + 1))
    for k in range(n):
        mimic = f'<mimic joint="j{k - 1}"/>' if k else ""
        ends = f'<parent link="l{k}"/><child link="l{k + 1}"/>'
        body += f'<joint name="j{k}" type="revolute">{ends}{LIMIT}{mimic}</joint>'
    assert check_urdf(robot(body))[1] == []


# ---- odd but valid: loads in silence

ODD_BUT_VALID = {
    "slashes in names": joint(name="left/arm/j").replace('"a"', '"left/a"').replace("'a'", "'left/a'"),
    "a joint named as a link": joint(name="a"),
    "zero axis on a fixed joint": joint('<axis xyz="0 0 0"/>', kind='type="fixed"'),
    "zero axis on a floating joint": joint('<axis xyz="0 0 0"/>', kind='type="floating"'),
    "no effort": joint(LIMIT.replace("5", "0")),
    "no velocity": joint(LIMIT.replace("2", "0")),
    "zero outside the limits": joint(LIMIT.replace('"-1"', '"0.5"')),
    "one limit left out": joint('<limit upper="1" effort="5" velocity="2"/>'),
    "white space in numbers": joint('<origin xyz="\n 1.\t-.5   +2e-3\n" rpy=" 0 0  0 "/>' + LIMIT),
    "root without inertial": GOOD,
    "frame link without inertial": link(""),
    "all zero inertial": inertial(mass="0", ixx="0", iyy="0", izz="0"),
    "an axis to seven digits": joint('<axis xyz="0.5773503 0.5773503 0.5773503"/>' + LIMIT),
    "a plate to four digits": inertial(ixx="0.08333", iyy="0.08333", izz="0.1667"),
    "a thin rod": inertial(ixx="0", iyy="1", izz="1"),
    "a chain of mimics": two_joints("", '<mimic joint="j" multiplier="-2" offset="0.1"/>'),
    "comments and white space": robot("<!-- <link> --><link name='a'><!-- x --></link>\n<?pi <a?>"),
    "a default namespace": GOOD.replace("<robot", '<robot xmlns="http://www.ros.org"'),
    "a version": GOOD.replace("<robot", '<robot version="1.0"'),
    "no masses, no joints": robot('<link name="a"/>'),
    "safety and calibration": joint(
        LIMIT
        + '<safety_controller soft_lower_limit="-0.9" soft_upper_limit="0.9" k_position="1" k_velocity="2"/>'
        '<calibration rising="0.1"/>'
    ),
    "a colour without a name": link(
        '<visual><geometry><capsule radius="1" length="2"/></geometry>'
        '<material name=""><color rgba="1 0 0 1"/></material></visual>'
    ),
    "joints before links": robot(
        f'<joint name="k" type="revolute"><parent link="b"/><child link="c"/>{LIMIT}</joint>'
        f'<joint name="j" type="revolute"><parent link="a"/><child link="b"/>{LIMIT}</joint>'
        + "".join(f'<link name="{n}">{INERTIAL}</link>' for n in "cba")
    ),
}


@for_each("what", ODD_BUT_VALID)
def test_odd_but_valid_is_silent(what):
    silent(ODD_BUT_VALID[what])


def test_undeclared_xacro_prefix_is_a_note():
    robot_ = loads_urdf(
        robot('<link name="a"/><xacro:arm side="left"/>\n<xacro:arm side="right"/>'), strict=True
    )
    (note,) = robot_.diagnostics
    assert (note.severity, note.code, note.line) == ("note", "xacro-leftover", 2)
    assert "2 times" in note.message


def test_notes_come_once_a_kind():
    _, found = check_urdf(robot('<link name="a"><x/><x/></link>' + "<gazebo/>" * 40 + '<y a="1"/>'))
    assert sorted((d.code, d.severity) for d in found) == [
        ("physics-ignored", "note"),
        ("tag-unknown", "note"),
        ("tag-unknown", "note"),
    ]


def test_lines_of_long_files_and_split_tags():
    text = (
        "<robot\n name='r'\n>"
        + "\n" * 70_000
        + "<link\n name='a'\n/>\n<!-- \n <link> -->\n<link name='a'/></robot>"
    )
    _, found = check_urdf(text)
    assert [d.line for d in found if d.code == "link-duplicate"] == [70_008]
    assert "line 70003" in found[0].message


def test_base():
    with pytest.raises(UnknownName, match="'floating'"):
        loads_urdf(GOOD, base="floatng")
    with pytest.raises(RobokitError):
        loads_urdf(GOOD, base=None)
