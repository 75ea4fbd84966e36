"""Random valid URDFs: every joint type, loops, mimics, shapes, odd white space, any order, odd names."""

from hypothesis import strategies as st

KINDS = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")
COUPLED = ("revolute", "continuous", "prismatic")  # what a mimic can follow
LOOP_KINDS = (*KINDS[:3], "spherical", "cylindrical", "helical")
AXES = ["1 0 0", "0 -1 0", "0 0 1", "0.6 0.8 0", "0.57735 0.57735 -0.57735"]
MESHES = ["package://nowhere/a.stl", "shape of things.OBJ", "file:///nowhere/b.dae"]

number = st.floats(-3, 3).map(repr) | st.floats(-3, 3).map(lambda x: repr(round(x, 3)))
positive = st.floats(0.01, 3).map(repr)
angle = st.floats(-3.1, 3.1).map(repr) | st.sampled_from(
    ["0", "1.5707963267948966", "-1.57079632679", "3.14159"]
)
unit = st.floats(0, 1).map(repr)
link_name = st.text(st.sampled_from("abzABZ019_/-. äλ&<>'\"\t\n"), min_size=1, max_size=8).filter(str.strip)
gap = st.sampled_from([" ", "  ", "\t", "\n", " \r\n "])


@st.composite
def numbers(draw, one, count):
    """Numbers with white space of any kind between them and around."""
    around = st.just("") | gap
    return draw(around) + draw(gap).join(draw(one) for _ in range(count)) + draw(around)


origin = st.builds('<origin xyz="{}" rpy="{}"/>'.format, numbers(number, 3), numbers(angle, 3)) | st.just("")
geometry = st.one_of(
    st.builds('<box size="{}"/>'.format, numbers(positive, 3)),
    st.builds('<sphere radius="{}"/>'.format, positive),
    st.builds('<cylinder radius="{}" length="{}"/>'.format, positive, positive),
    st.builds('<capsule radius="{}" length="{}"/>'.format, positive, positive),
)
mesh = st.builds('<mesh filename="{}" scale="{}"/>'.format, st.sampled_from(MESHES), numbers(positive, 3))


def escaped(text):
    """The text as an attribute's value."""
    for old, new in (("&", "&amp;"), ("<", "&lt;"), ('"', "&quot;"), ("\t", "&#9;"), ("\n", "&#10;")):
        text = text.replace(old, new)
    return text


def _attributes(draw, pairs):
    """Attributes in any order, with any white space between them."""
    return "".join(f'{draw(gap)}{k}="{v}"' for k, v in draw(st.permutations(pairs)))


@st.composite
def inertials(draw):
    a, b, c = (draw(st.floats(0.01, 2)) for _ in range(3))  # second moments: any such body exists
    told = [("ixx", b + c), ("ixy", 0), ("ixz", 0), ("iyy", a + c), ("iyz", 0), ("izz", a + b)]
    parts = [draw(origin), f'<mass value="{draw(positive)}"/>', f"<inertia{_attributes(draw, told)}/>"]
    return f"<inertial>{''.join(draw(st.permutations(parts)))}</inertial>"


@st.composite
def shapes(draw, tag, meshes):
    inside = [draw(origin), f"<geometry>{draw(geometry | mesh if meshes else geometry)}</geometry>"]
    if draw(st.booleans()):
        inside.append(f'<material name=""><color rgba="{draw(numbers(unit, 4))}"/></material>')
    return f"<{tag}>{''.join(draw(st.permutations(inside)))}</{tag}>"


@st.composite
def urdfs(draw, meshes=False, kinds=KINDS, loops=True, names=link_name, max_links=7):
    """A random tree; elements shuffled, so that order carries no meaning."""
    names = draw(st.lists(names, min_size=1, max_size=max_links, unique=True))
    parts, leaders, bodies = [], [], [0]
    for k, link in enumerate(names):
        inside = [draw(inertials())]
        for tag in ("visual", "collision"):
            inside += [draw(shapes(tag, meshes)) for _ in range(draw(st.integers(0, 1)))]
        parts.append(f'<link name="{escaped(link)}">{"".join(draw(st.permutations(inside)))}</link>')
        if k == 0:
            continue
        kind, parent = draw(st.sampled_from(kinds)), draw(st.integers(0, k - 1))
        bodies.append(bodies[parent] if kind == "fixed" else k)
        parts.append(draw(_joint(kind, link, names[parent], leaders)))
        if kind in COUPLED:
            leaders.append(link)
    ends = [(a, b) for a in range(len(names)) for b in range(a) if bodies[a] != bodies[b]]
    if loops and ends and draw(st.booleans()):
        first, second = (escaped(names[k]) for k in draw(st.sampled_from(ends)))
        if draw(st.booleans()):
            closed = (
                f'<predecessor link="{first}">{draw(origin)}</predecessor>'
                f'<successor link="{second}">{draw(origin)}</successor>'
            )
        else:
            closed = "".join(
                f'<link{k} link="{name}"{draw(origin).removeprefix("<origin") or "/>"}'
                for k, name in ((1, first), (2, second))
            )
        parts.append(
            f'<loop_joint name="loop of it" type="{draw(st.sampled_from(LOOP_KINDS))}">'
            f'{closed}<axis xyz="{draw(st.sampled_from(AXES))}"/></loop_joint>'
        )
    return '<robot name="r">\n' + "\n".join(draw(st.permutations(parts))) + "\n</robot>"


@st.composite
def _joint(draw, kind, link, parent, leaders):
    lower, upper, effort, velocity = (draw(positive) for _ in range(4))
    inside = [
        draw(origin),
        f'<axis xyz="{draw(st.sampled_from(AXES))}"/>',
        f'<parent link="{escaped(parent)}"/>',
        f'<child link="{escaped(link)}"/>',
    ]
    told = [("effort", effort), ("velocity", velocity)]
    if kind in ("revolute", "prismatic"):
        told += [("lower", f"-{lower}"), ("upper", upper)]
    if kind in COUPLED:
        inside.append(f"<limit{_attributes(draw, told)}/>")
    if kind != "fixed" and draw(st.booleans()):
        damping, friction = [("damping", draw(positive)), ("friction", draw(positive))]
        inside.append(f"<dynamics{_attributes(draw, [damping, friction])}/>")
    if draw(st.booleans()):
        told = [("k_velocity", draw(number))]  # the one that URDF asks for
        safety = ("soft_lower_limit", "soft_upper_limit", "k_position")
        told += [(name, draw(number)) for name in safety if draw(st.booleans())]
        inside.append(f"<safety_controller{_attributes(draw, told)}/>")
    if draw(st.booleans()):
        told = [(name, draw(number)) for name in ("rising", "falling") if draw(st.booleans())]
        inside.append(f"<calibration{_attributes(draw, told)}/>")
    if kind in COUPLED and leaders and draw(st.booleans()):
        leader = escaped(draw(st.sampled_from(leaders)))
        inside.append(f'<mimic joint="{leader}" multiplier="{draw(number)}" offset="{draw(number)}"/>')
    return f'<joint name="{escaped(link)}" type="{kind}">{"".join(draw(st.permutations(inside)))}</joint>'
