"""One bad and one good twin for every code of the importer that a text can show.

A case is (bad, good, line, words): the bad text gives the code on that line, and the words stand in its
message or element; the good text differs as little as possible and gives no finding at all.
"""

INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
LIMIT = '<limit lower="-1" upper="1" effort="5" velocity="2"/>'
ROTOR = """<transmission name="t"><joint name="JOINT"/>
<actuator name="m"><rotorInertia>1e-4</rotorInertia></actuator></transmission>
"""
BODY = "<link name='a'/>\n<link name='b'>" + INERTIAL + "</link>"


def robot(body, name="r"):
    """A robot element; its body begins on line 2."""
    return f'<robot name="{name}">\n{body}\n</robot>'


def link(inside, name="b"):
    """Root a and one link with this inside, joined by a fixed joint; the link is on line 3."""
    return robot(
        f'<link name="a"/>\n<link name="{name}">{inside}</link>\n'
        f'<joint name="j" type="fixed"><parent link="a"/><child link="{name}"/></joint>'
    )


def inertial(mass="1", ixx="1", iyy="1", izz="1", products='ixy="0" ixz="0" iyz="0"'):
    return link(
        f'<inertial><mass value="{mass}"/>'
        f'<inertia ixx="{ixx}" iyy="{iyy}" izz="{izz}" {products}/></inertial>'
    )


def joint(inside=LIMIT, kind='type="revolute"', ends='<parent link="a"/><child link="b"/>', name="j"):
    """Links a and b (lines 2, 3) and one joint (line 4)."""
    return robot(f'{BODY}\n<joint name="{name}" {kind}>{ends}{inside}</joint>')


def two_joints(first, second):
    links = "".join(f'<link name="{n}">{INERTIAL}</link>' for n in "abc")
    return robot(
        f"{links}\n"
        f'<joint name="j" type="revolute"><parent link="a"/><child link="b"/>{LIMIT}{first}</joint>\n'
        f'<joint name="k" type="revolute"><parent link="b"/><child link="c"/>{LIMIT}{second}</joint>'
    )


def chain(*edges, links="abc"):
    """Links on line 2, then one fixed joint a line."""
    lines = ["".join(f'<link name="{n}"/>' for n in links)]
    for k, (parent, child) in enumerate(edges):
        lines.append(
            f'<joint name="j{k}" type="fixed"><parent link="{parent}"/><child link="{child}"/></joint>'
        )
    return robot("\n".join(lines))


def version(number, text):
    return text.replace("<robot ", f'<robot version="{number}" ', 1)


def visual(geometry, extra=""):
    return link(f"<visual>{extra}<geometry>{geometry}</geometry></visual>")


def solid(mass="1", moment="0.0017", xyz="0.02 0 0", shape='<box size="0.1 0.1 0.1"/>'):
    """A link with a shape round the origin and an inertial; line 3. The good values are those of the box."""
    return link(
        f'<inertial><origin xyz="{xyz}"/><mass value="{mass}"/>'
        f'<inertia ixx="{moment}" ixy="0" ixz="0" iyy="{moment}" iyz="0" izz="{moment}"/></inertial>'
        f"<collision><geometry>{shape}</geometry></collision>"
    )


GOOD = joint()
GOOD_LINK = inertial()
GOOD_CHAIN = chain("ab", "bc")
BOX = '<box size="1 1 1"/>'
DEFINED = '<material name="red"><color rgba="1 0 0 1"/></material>'
XACRO = 'xmlns:xacro="http://www.ros.org/wiki/xacro"'
MASSLESS_TIP = robot(
    f'<link name="a"/><link name="b">{INERTIAL}</link><link name="c"/>\n'
    f'<joint name="j" type="revolute"><parent link="a"/><child link="b"/>{LIMIT}</joint>\n'
    f'<joint name="k" type="KIND"><parent link="b"/><child link="c"/>{LIMIT}</joint>'
)
LOOP = two_joints("", "").replace(
    "</robot>",
    '<loop_joint name="l" type="spherical">'
    '<predecessor link="a"/><successor link="c"/></loop_joint>\n</robot>',
)
CUT = two_joints("", "").replace(
    "\n<joint",
    """
<link name="{0}"/><link name="{1}"/>
<joint name="f" type="fixed"><origin xyz="0 0 1"/><parent link="a"/><child link="{0}"/></joint>
<joint name="g" type="fixed"><origin xyz="0 1 0"/><parent link="c"/><child link="{1}"/></joint>
<joint""",
    1,
)
TWO_PARENTS = two_joints("", "").replace(
    "</robot>",
    '<joint name="l" type="revolute"><origin xyz="0 0 1"/><parent link="a"/><child link="c"/>'
    f"{LIMIT}</joint>\n</robot>",
)
OWN_BASE = robot(
    f'<link name="world"/>\n<link name="b">{INERTIAL}</link>\n'
    '<joint name="free" type="floating"><parent link="world"/><child link="b"/></joint>'
)
MIMIC = '<mimic joint="{}"/>'
FIXED_END = two_joints("", "FOLLOWS").replace('"k" type="revolute"', '"k" type="fixed"')
SHAPE = '<visual><geometry><box size="0.9 0.9 0.9"/></geometry></visual>'
SEEN = robot(
    f'<link name="a"/>\n<link name="b">{{}}{{}}</link><link name="c">{INERTIAL}</link>\n'
    f'<joint name="j" type="revolute"><parent link="a"/><child link="b"/>{LIMIT}</joint>\n'
    f'<joint name="k" type="revolute"><parent link="b"/><child link="c"/>{LIMIT}</joint>'
)

CASES = {
    # ---- errors
    "xml-doctype": (
        '<!DOCTYPE robot []>\n<robot name="r"><link name="a"/></robot>',
        robot('<link name="a"/>'),
        1,
        "",
    ),
    "xml-syntax": (robot('<link name="a">'), robot('<link name="a"/>'), 3, "not well-formed"),
    "root-not-robot": ('<sdf version="1.7"/>', robot('<link name="a"/>'), 1, "SDF"),
    "xacro-unexpanded": (
        f'<robot name="r" {XACRO}>\n<xacro:property name="m" value="1"/>\n'
        '<link name="a"><inertial><mass value="${m}"/></inertial></link></robot>',
        inertial(),
        3,
        "${m}",
    ),
    "no-links": (robot(""), robot('<link name="a"/>'), 1, "no <link>"),
    "name-missing": (robot("<link/>"), robot('<link name="a"/>'), 2, "no name"),
    "link-duplicate": (robot('<link name="a"/>\n<link name="a"/>'), robot('<link name="a"/>'), 3, "line 2"),
    "joint-duplicate": (
        GOOD_CHAIN.replace('"j1"', '"j0"'),
        GOOD_CHAIN,
        4,
        "'j0'",
    ),
    "joint-type-missing": (joint(kind=""), GOOD, 4, "no type"),
    "joint-type-unknown": (joint(kind='type="Revolute"'), GOOD, 4, "'Revolute'"),
    "joint-parent-missing": (joint(ends='<child link="b"/>'), GOOD, 4, "<parent>"),
    "joint-child-missing": (joint(ends='<parent link="a"/><child/>'), GOOD, 4, "<child>"),
    "link-undefined": (chain("ab", "bd"), GOOD_CHAIN, 4, "'d'"),
    "joint-self": (chain("ab", "cc"), GOOD_CHAIN, 4, "'c'"),
    "link-two-parents": (chain("ab", "bc", "ac"), GOOD_CHAIN, 5, "'j1'"),
    "loop-end-missing": (
        LOOP.replace('<successor link="c"/>', ""),
        LOOP,
        5,
        "no <successor>",
    ),
    "loop-length": (
        LOOP.replace('type="spherical"', 'type="distance" length="-1"'),
        LOOP.replace('type="spherical"', 'type="distance" length="1"'),
        5,
        "its length is -1",
    ),
    "loop-axes": (
        LOOP.replace('type="spherical">', 'type="universal"><axis2 xyz="1 1 0"/>'),
        LOOP.replace('type="spherical">', 'type="universal"><axis2 xyz="0 1 0"/>'),
        5,
        "at 45 degrees",
    ),
    "tree-cycle": (chain("ab", "bc", "ca"), GOOD_CHAIN, 3, "'c' -> 'a' -> 'b' -> 'c'"),
    "tree-two-roots": (chain("ab"), GOOD_CHAIN, 2, "'c'"),
    "attribute-missing": (link("<inertial><mass/></inertial>"), GOOD_LINK, 3, "value"),
    "orientation-twice": (
        joint('<origin rpy="0 0 0" quat_xyzw="0 0 0 1"/>' + LIMIT),
        version("1.1", joint('<origin quat_xyzw="0 0 0 1"/>' + LIMIT)),
        4,
        "quat_xyzw",
    ),
    "version-unknown": (version("2.7", joint()), version("1.2", joint()), 1, "there are 1.0, 1.1, 1.2"),
    "quat-needs-version": (
        joint('<origin quat_xyzw="0 0 0.6 0.8"/>' + LIMIT),
        version("1.1", joint('<origin quat_xyzw="0 0 0.6 0.8"/>' + LIMIT)),
        4,
        "quat_xyzw is URDF 1.1",
    ),
    "quat-not-unit": (
        version("1.1", joint('<origin quat_xyzw="0 0 6 8"/>' + LIMIT)),
        version("1.1", joint('<origin quat_xyzw="0 0 0.6 0.8"/>' + LIMIT)),
        4,
        "(0 0 6 8) has length 10; it was normalised",
    ),
    "version-too-low": (
        version("1.1", joint(LIMIT.replace("/>", ' deceleration="4"/>'))),
        version("1.2", joint(LIMIT.replace("/>", ' deceleration="4"/>'))),
        4,
        "deceleration of <limit>: URDF 1.2",
    ),
    "number-invalid": (inertial(mass="1,5"), inertial(mass="1.5"), 3, "1,5"),
    "number-not-finite": (inertial(mass="1e999"), inertial(mass="99"), 3, "1e999"),
    "number-count": (
        joint('<origin xyz="0 0"/>' + LIMIT),
        joint('<origin xyz="0 0 0"/>' + LIMIT),
        4,
        "'0 0'",
    ),
    "mass-missing": (link("<inertial/>"), GOOD_LINK, 3, "<mass>"),
    "mass-negative": (inertial(mass="-1"), GOOD_LINK, 3, "-1 kg"),
    "axis-zero": (joint('<axis xyz="0 0 0"/>' + LIMIT), joint('<axis xyz="0 0 1"/>' + LIMIT), 4, "0 0 0"),
    "limit-inverted": (
        joint('<limit lower="1" upper="-1" effort="5" velocity="2"/>'),
        GOOD,
        4,
        "lower 1 is above upper -1",
    ),
    "mimic-unknown": (two_joints("", MIMIC.format("jj")), two_joints("", MIMIC.format("j")), 4, "'jj'"),
    "mimic-self": (two_joints("", MIMIC.format("k")), two_joints("", MIMIC.format("j")), 4, "itself"),
    "mimic-cycle": (
        two_joints(MIMIC.format("k"), MIMIC.format("j")),
        two_joints(MIMIC.format("k"), ""),
        3,
        "'j'",
    ),
    # ---- warnings
    "robot-name-empty": (robot('<link name="a"/>', name=""), robot('<link name="a"/>'), 1, "no name"),
    "element-repeated": (joint(LIMIT + LIMIT), GOOD, 4, "<limit>"),
    "inertia-not-psd": (inertial(ixx="-1"), GOOD_LINK, 3, "'b'"),
    "inertia-triangle": (inertial(izz="2.1"), inertial(izz="2.0"), 3, "2.1"),
    "inertia-zero": (inertial(ixx="0", iyy="0", izz="0"), GOOD_LINK, 3, "1 kg"),
    "inertia-incomplete": (inertial(products='ixy="0"'), GOOD_LINK, 3, "ixz, iyz"),
    "massless-subtree": (
        MASSLESS_TIP.replace("KIND", "revolute"),
        MASSLESS_TIP.replace("KIND", "fixed"),
        4,
        "'k'",
    ),
    "limit-missing": (joint(""), joint("", kind='type="continuous"'), 4, "no <limit>"),
    "limit-range-missing": (joint('<limit effort="1" velocity="1"/>'), GOOD, 4, "neither"),
    "limit-incomplete": (joint('<limit lower="-1" upper="1" velocity="1"/>'), GOOD, 4, "effort"),
    "safety-incomplete": (
        joint(LIMIT + '<safety_controller k_position="9"/>'),
        joint(LIMIT + '<safety_controller k_velocity="9"/>'),
        4,
        "k_velocity",
    ),
    "limit-effort-negative": (joint(LIMIT.replace("5", "-5")), joint(LIMIT.replace("5", "0")), 4, "-5"),
    "limit-velocity-negative": (joint(LIMIT.replace("2", "-2")), joint(LIMIT.replace("2", "0")), 4, "-2"),
    "damping-negative": (
        joint(LIMIT + '<dynamics damping="-1"/>'),
        joint(LIMIT + '<dynamics damping="1"/>'),
        4,
        "-1",
    ),
    "friction-negative": (
        joint(LIMIT + '<dynamics friction="-1"/>'),
        joint(LIMIT + '<dynamics friction="1"/>'),
        4,
        "-1",
    ),
    "armature-negative": (
        joint(LIMIT + '<dynamics armature="-1"/>'),
        joint(LIMIT + '<dynamics armature="1"/>'),
        4,
        "-1",
    ),
    "transmission-joint": (
        joint().replace("</robot>", ROTOR.replace("JOINT", "k") + "</robot>"),
        joint().replace("</robot>", ROTOR.replace("JOINT", "j") + "</robot>"),
        6,
        "drives joint 'k', which is not there",
    ),
    "angle-beyond-turn": (
        joint('<origin rpy="0 -90 0"/>' + LIMIT),
        joint('<origin rpy="0 -6.2832 0"/>' + LIMIT),
        4,
        "(0 -90 0)",
    ),
    "axis-not-unit": (
        joint('<axis xyz="0 0 2"/>' + LIMIT),
        joint('<axis xyz="0 0.7071068 0.7071068"/>' + LIMIT),
        4,
        "length 2",
    ),
    "mesh-unresolved": (visual('<mesh filename="package://none/a.stl"/>'), visual(BOX), 3, "none"),
    "texture-unresolved": (
        visual(BOX, '<material name="m"><texture filename="package://none/a.png"/></material>'),
        visual(BOX, '<material name="m"><texture filename=""/><color rgba="1 1 1 1"/></material>'),
        3,
        "a.png",
    ),
    "geometry-missing": (visual("<cone/>"), visual(BOX), 3, "left out"),
    "geometry-negative": (visual('<sphere radius="-1"/>'), visual('<sphere radius="1"/>'), 3, "-1"),
    "xml-prefix-undeclared": (
        robot('<link name="a"/>\n<sensor:camera/>'),
        robot('<link name="a"/>'),
        3,
        "the prefix of sensor:camera",
    ),
    "inertial-missing": (
        SEEN.format(SHAPE, ""),
        SEEN.format(SHAPE, INERTIAL),
        3,
        "link 'b': moves and is visible",
    ),
    "mimic-of-fixed": (
        two_joints("", MIMIC.format("j")).replace("revolute", "fixed", 1),
        two_joints("", MIMIC.format("j")),
        4,
        "'j'",
    ),
    # ---- notes
    "physics-ignored": (robot('<link name="a"/>\n<gazebo/>'), robot('<link name="a"/>'), 3, "<gazebo>"),
    "tag-unknown": (robot('<link name="a"/>\n<frame/>'), robot('<link name="a"/>'), 3, "<frame>"),
    "attribute-unknown": (
        joint('<origin xzy="0 0 1"/>' + LIMIT),
        joint('<origin xyz="0 0 1"/>' + LIMIT),
        4,
        "'xzy'",
    ),
    "xacro-leftover": (
        f'<robot name="r" {XACRO}>\n<xacro:property name="m" value="1"/><link name="a"/></robot>',
        robot('<link name="a"/>'),
        2,
        "xacro:property",
    ),
    "material-undefined": (
        visual(BOX, '<material name="red"/>'),
        visual(BOX, '<material name="red"/>').replace("<link", DEFINED + "<link", 1),
        3,
        "'red'",
    ),
    "geometry-zero-size": (visual('<box size="0 1 1"/>'), visual(BOX), 3, "<box>"),
    "limit-on-continuous": (
        joint(kind='type="continuous"'),
        joint('<limit effort="1" velocity="1"/>', kind='type="continuous"'),
        4,
        "continuous",
    ),
    "limit-locked": (joint(LIMIT.replace("-1", "1")), GOOD, 4, "1"),
    "limit-excludes-zero": (
        joint(LIMIT.replace("-1", "0.5")),
        joint(LIMIT.replace("-1", "0")),
        4,
        "'j' [0.5, 1]",
    ),
    "density-implausible": (solid(mass="100", moment="0.17"), solid(), 3, "100 kg in shapes of 1 l: 1e+05"),
    "com-outside": (solid(xyz="0.2 0 0"), solid(), 3, "(0.2 0 0) m lies 0.15 m outside"),
    "inertia-implausible": (
        solid(moment="0.17"),
        solid(),
        3,
        "0.17 kg m^2 about x, but 1 kg inside 0.1 x 0.1 x 0.1 m have at most 0.005",
    ),
    "mass-too-dense": (
        inertial(mass="100", ixx="0.02", iyy="0.03", izz="0.01"),
        inertial(mass="100", ixx="0.5", iyy="0.4", izz="0.4"),
        3,
        "a ball of osmium (22,590 kg/m^3), it has at least 0.42",
    ),
    "inertia-without-mass": (inertial(mass="0"), GOOD_LINK, 3, "its mass is zero"),
    "loop-frames": (
        CUT.format("closing_pin_1", "closing_pin_2"),
        CUT.format("closing_pin_1", "closing_rod_2"),
        3,
        "'closing_pin_1': with link 'closing_pin_2' it marks a loop that is open",
    ),
    "mimic-on-fixed": (
        FIXED_END.replace("FOLLOWS", MIMIC.format("j")),
        FIXED_END.replace("FOLLOWS", ""),
        4,
        "'k'",
    ),
}

CHECK_ONLY = {
    "limit-excludes-zero",
    "density-implausible",
    "com-outside",
    "inertia-implausible",
    "mass-too-dense",
}
"""Codes that only check_urdf(..., plausible=True) gives: loading is silent about them."""

FILE_CODES = {
    "file-missing",
    "file-not-regular",
    "file-unreadable",
    "file-too-large",
    "file-empty",
    "file-compressed",
    "file-binary",
    "file-encoding",
    "mesh-unreadable",
    "xacro-missing",
    "xacro-argument",
    "xacro-argument-unknown",
    "xacro-failed",
    "file-lfs-pointer",
    "mesh-lfs-pointer",
    "mesh-up-axis",
}
"""Codes that need a file or bytes; test_{source,plausible,xacro}.py show them."""

BASE_CODES = {
    "base-floats-twice",
    "joint-renamed",
    "base-massless",
    "base-own",
    "loop-limits",
    "mimic-independent",
    "mimic-not-coupled",
}
"""Codes that need another base, mimic= or loops=; test_load.py and test_checks.py show them."""

FREE = (
    robot(
        f'<link name="a"/>\n<link name="b">{INERTIAL}</link>\n'
        '<joint name="floating_base" type="TYPE"><parent link="a"/><child link="b"/></joint>'
    ),
    {"base": "floating"},
)

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 34567\n"

MORE = {
    "file-empty": (b" \n", {}),
    "file-compressed": (b"\x1f\x8b\x08\x00", {}),
    "file-binary": (b"\x7fELF\x02\x01\x01\0\0\0\0", {}),
    "file-encoding": ('<robot name="Prüfstand"><link name="a"/></robot>'.encode("latin-1"), {}),
    "base-floats-twice": (
        FREE[0].replace("TYPE", "floating").replace('"a"/>', f'"a">{INERTIAL}</link>', 1),
        FREE[1],
    ),
    "joint-renamed": (FREE[0].replace("TYPE", "fixed"), FREE[1]),
    "base-massless": (MASSLESS_TIP.replace("KIND", "fixed"), {"base": "either"}),
    "base-own": (OWN_BASE, {"base": "floating"}),
    "loop-limits": (TWO_PARENTS, {"loops": "close"}),
    "file-lfs-pointer": (POINTER, {}),
    "mimic-independent": (two_joints("", MIMIC.format("j")), {"mimic": "independent"}),
    "mimic-not-coupled": (
        two_joints("", MIMIC.format("j")).replace("revolute", "planar", 1),
        {"mimic": "couple"},
    ),
}
"""Code -> what gives it and with which options, beside CASES: the manual shows these too."""


def _circular_link(folder):
    (folder / "arm.urdf").symlink_to(folder / "arm.urdf")
    return folder / "arm.urdf"


def _large(folder):
    with open(folder / "scan.urdf", "wb") as file:
        file.truncate(70 * 2**20)
    return folder / "scan.urdf"


def _with_a_broken_mesh(folder):
    (folder / "hand.stl").write_bytes(b"solid hand\nfacet")
    path = folder / "arm.urdf"
    path.write_text(visual('<mesh filename="hand.stl"/>'))
    return path


def _with_a_pointer(folder):
    (folder / "hand.stl").write_bytes(POINTER)
    path = folder / "arm.urdf"
    path.write_text(visual('<mesh filename="hand.stl"/>'))
    return path


DAE = """<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><unit meter="{unit}"/><up_axis>{up}_UP</up_axis></asset>
<library_geometries><geometry id="g"><mesh>
<source id="p"><float_array id="a" count="12">0 0 0 0.3 0 0 0 0.2 0 0 0 0.1</float_array>
<technique_common><accessor source="#a" count="4" stride="3"/></technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
<triangles count="4"><input semantic="VERTEX" source="#v" offset="0"/>
<p>0 1 2 0 1 3 0 2 3 1 2 3</p></triangles>
</mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="s"><node><instance_geometry url="#g"/></node></visual_scene>
</library_visual_scenes><scene><instance_visual_scene url="#s"/></scene></COLLADA>"""
"""A tetrahedron with a corner at the origin and 0.3, 0.2 and 0.1 along x, y and z."""


def _with_y_up(folder):
    (folder / "hand.dae").write_text(DAE.format(unit=1, up="Y"))
    path = folder / "arm.urdf"
    path.write_text(visual('<mesh filename="hand.dae"/>'))
    return path


ON_DISK = {
    "file-missing": ("the name of a file that is not there", lambda folder: folder / "arm.urdf"),
    "file-not-regular": ("the name of a folder", lambda folder: folder),
    "file-unreadable": ("a symbolic link to itself, or a file of another user", _circular_link),
    "file-too-large": ("a scan of 70 MiB that was renamed to .urdf", _large),
    "mesh-lfs-pointer": ('<mesh filename="hand.stl"/>, whose file Git LFS has not fetched', _with_a_pointer),
    "mesh-up-axis": ('<mesh filename="hand.dae"/>, whose file has <up_axis>Y_UP</up_axis>', _with_y_up),
    "mesh-unreadable": ('<mesh filename="hand.stl"/>, whose file was cut off', _with_a_broken_mesh),
}
"""Code -> what gives it, in words, and a function that makes it in a folder and returns its path."""

IN_WORDS = {
    "xacro-argument": "arm.urdf.xacro, which uses $(arg mass) and gives it no default",
    "xacro-argument-unknown": "mas:=2 for arm.urdf.xacro, whose argument is mass",
    "xacro-missing": "arm.urdf.xacro, where the package xacro is not installed",
    "xacro-failed": "an expression such as ${length} of a property that the file does not define",
}
"""Code -> what gives it, in words; test_xacro.py shows them."""
