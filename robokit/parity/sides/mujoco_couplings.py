"""What couples joints and closes loops in a model of MuJoCo: equality constraints and fixed tendons."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from robokit.model.geometry import Placement
from robokit.parity.sides.side import Law, Relation, SideLoop, along


def laws_of(model: Any, j: int) -> tuple[Law, ...]:
    """Mimic laws: equality constraints between two joints, about their reference positions."""
    import mujoco

    laws = []
    for k in _active(model, mujoco.mjtEq.mjEQ_JOINT):
        if int(model.eq_obj1id[k]) != j:
            continue
        other, data = int(model.eq_obj2id[k]), model.eq_data[k]
        own = float(model.qpos0[model.jnt_qposadr[j]])
        if other < 0:
            laws.append(Law("", 0.0, own + float(data[0])))
            continue
        theirs = float(model.qpos0[model.jnt_qposadr[other]])
        laws.append(_law(str(model.joint(other).name) or f"joint {other}", data[:5], theirs, own))
    return tuple(laws)


def _law(leader: str, factors: np.ndarray, reference: float, own: float) -> Law:
    """The law own + sum of factors[k] (x - reference)^k in powers of x."""
    about, total = np.polynomial.Polynomial([-reference, 1.0]), np.polynomial.Polynomial([own])
    for k, factor in enumerate(factors):
        if factor:
            total = total + float(factor) * about**k
    offset, multiplier, *curve = (float(x) for x in [*total.coef, 0.0, 0.0][: max(2, len(total.coef))])
    return Law(leader, multiplier, offset, tuple(curve))


def relations_of(model: Any) -> tuple[list[Relation], str]:
    """Equality constraints of fixed tendons, and the names of the tendons that are something else."""
    import mujoco

    found, used = [], set()
    for k in _active(model, mujoco.mjtEq.mjEQ_TENDON):
        first, second, data = int(model.eq_obj1id[k]), int(model.eq_obj2id[k]), model.eq_data[k]
        ours, theirs = _sum(model, first), {} if second < 0 else _sum(model, second)
        if ours is None or theirs is None or (second >= 0 and data[2:5].any()):
            continue
        # length - length0 = data[0] + data[1] (length of the other - length0 of the other)
        constant, factor = float(model.tendon_length0[first] + data[0]), float(data[1])
        factors = dict(ours)
        if second >= 0:
            constant -= factor * float(model.tendon_length0[second])
            for name, x in theirs.items():
                factors[name] = factors.get(name, 0.0) - factor * x
        found.append(Relation(str(model.tendon(first).name), factors, constant))
        used |= {first, second}
    apart = [str(model.tendon(t).name) or f"tendon {t}" for t in range(model.ntendon) if t not in used]
    return found, ", ".join(apart[:3]) + (f" and {len(apart) - 3} more" if len(apart) > 3 else "")


def _sum(model: Any, t: int) -> dict[str, float] | None:
    """The factors of the joints of a fixed tendon; None for one that runs through space."""
    import mujoco

    wraps = range(int(model.tendon_adr[t]), int(model.tendon_adr[t] + model.tendon_num[t]))
    if any(int(model.wrap_type[w]) != mujoco.mjtWrap.mjWRAP_JOINT for w in wraps):
        return None
    names = [(int(model.wrap_objid[w]), float(model.wrap_prm[w])) for w in wraps]
    return {str(model.joint(j).name) or f"joint {j}": factor for j, factor in names}


def _active(model: Any, kind: int) -> Iterator[int]:
    return (k for k in range(model.neq) if int(model.eq_type[k]) == kind and model.eq_active0[k])


def loops_of(model: Any) -> list[SideLoop]:
    """Welds and connected points; two points that connect the same bodies are a hinge, more are a weld."""
    import mujoco

    found = []
    for k in _active(model, mujoco.mjtEq.mjEQ_WELD):
        first, second = _frames(
            model, k, model.eq_data[k, 3:6], model.eq_data[k, 6:10], model.eq_data[k, 0:3]
        )
        found.append(SideLoop(_named(model, k), "fixed", first[0], second[0], first[1], second[1]))
    points: dict[tuple[str, str], list[tuple[str, np.ndarray, np.ndarray]]] = {}
    for k in _active(model, mujoco.mjtEq.mjEQ_CONNECT):
        (a, at), (b, there) = _frames(model, k, model.eq_data[k, 0:3], None, model.eq_data[k, 3:6])
        if (b, a) in points:
            a, at, b, there = b, there, a, at
        points.setdefault((a, b), []).append((_named(model, k), at.position, there.position))
    for (a, b), those in points.items():
        kind, at, there = _held(those)
        found.append(SideLoop(those[0][0], kind, a, b, at, there))
    return found


def _named(model: Any, k: int) -> str:
    import mujoco

    own = str(model.equality(k).name)
    if own or int(model.eq_objtype[k]) != mujoco.mjtObj.mjOBJ_SITE:
        return own
    return str(model.site(int(model.eq_obj1id[k])).name).removesuffix("_predecessor")


def _frames(
    model: Any, k: int, point: np.ndarray, turn: np.ndarray | None, other: np.ndarray
) -> tuple[tuple[str, Placement], tuple[str, Placement]]:
    """The bodies of a constraint, each with the frame in it that is held."""
    import mujoco

    ids = int(model.eq_obj1id[k]), int(model.eq_obj2id[k])
    if int(model.eq_objtype[k]) == mujoco.mjtObj.mjOBJ_SITE:
        bodies = [int(model.site_bodyid[s]) for s in ids]
        frames = [_pose(model.site_quat[s], model.site_pos[s]) for s in ids]
    else:
        bodies = list(ids)
        frames = [_pose((1.0, 0, 0, 0) if turn is None else turn, point), _pose((1.0, 0, 0, 0), other)]
    names = [str(model.body(b).name) or f"body {b}" for b in bodies]
    return (names[0], frames[0]), (names[1], frames[1])


def _held(points: list[tuple[str, np.ndarray, np.ndarray]]) -> tuple[str, Placement, Placement]:
    """Kind and frames of what holds points (of one body, of the other) together."""
    _, at, there = points[0]
    rest = [(p - at, q - there) for _, p, q in points[1:] if np.linalg.norm(p - at) > 1e-9]
    if not rest:
        return "spherical", Placement(position=at), Placement(position=there)
    (x, y), *more = rest
    aside = next(((p, q) for p, q in more if np.linalg.norm(np.cross(x, p)) > 1e-9), None)
    if aside is None:
        return "revolute", along(at, x), along(there, y)
    return "fixed", _three(at, x, aside[0]), _three(there, y, aside[1])


def _three(origin: np.ndarray, x: np.ndarray, y: np.ndarray) -> Placement:
    """The frame with x along one vector and y in the plane of both."""
    first = x / np.linalg.norm(x)
    third = np.cross(x, y) / np.linalg.norm(np.cross(x, y))
    return Placement(np.column_stack([first, np.cross(third, first), third]), origin)


def _pose(quat_wxyz: Any, position: Any) -> Placement:
    import mujoco

    R = np.zeros(9)
    mujoco.mju_quat2Mat(R, np.array(quat_wxyz, dtype=float))
    return Placement(R.reshape(3, 3), np.array(position, dtype=float))
