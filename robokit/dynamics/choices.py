"""What a call says beside the state: the device, the links and joints it is about, the contacts that hold."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from robokit.arguments import one_of, real_array
from robokit.dataclass_tools import frozen
from robokit.engine import ENGINES
from robokit.errors import DeviceError, ShapeError, UnknownName, WrongType
from robokit.model.constraints import (
    Contact,
    as_contact,
    constraint_models,
    constraints_key,
    contact_models,
    example_contact,
    example_link,
    loop_models,
)
from robokit.model.robot import Robot
from robokit.spatial import Matrix3, Transform, Vector3

# ==== devices =====================================================================================
# Where functions of robots are computed: ``device=`` of the public functions, and arrays on a card.


HERE = frozenset(("numpy", "builtins", "robokit"))  # modules whose objects are not on a card


class Device(NamedTuple):
    """A device that was asked for; it is passed on in the place of ``engine``."""

    card: bool  # whether it is a card
    number: int | None  # of the card; None for that of the arrays, or the first where none are on a card
    engine: str | None  # that is asked for too


def on_device(device: Any, engine: str | None) -> Any:
    """The :class:`Device` that is asked for by name: "cpu", "cuda", "cuda:1", or a ``torch.device``.

    Raises DeviceError if there is no such device, or it does not go with the engine that is asked for too.
    """
    from robokit.engine.cuda.arrays import number_of  # `import robokit` stays light

    number = number_of(device)
    engine = None if engine is None else one_of("engine", engine, ENGINES)
    if engine == "python" and number is not None:
        raise DeviceError(f'device={str(device)!r}: engine="python" runs on the processor; leave one out')
    return Device(number is not None, None if str(device) == "cuda" else number, engine)


def foreign(x: Any) -> bool:
    """Whether something may be an array on a card: whether it is no object of Python, NumPy or robokit."""
    return type(x).__module__.partition(".")[0] not in HERE


def on_card(*arguments: Any) -> bool:
    """Whether one of some arguments is an array on a card."""
    if not any(map(foreign, arguments)):
        return False
    from robokit.engine.cuda.arrays import library_of

    return any(library_of(x) is not None for x in arguments)


def card_asked_for(device: Any, arguments: Sequence[Any]) -> bool:
    """Whether a call with this device or engine goes to a card.

    Raises DeviceError if the processor is asked for, and arrays are on a card.
    """
    there = on_card(*arguments)
    if device.__class__ is not Device:
        if there and device is not None and one_of("engine", device, ENGINES) == "python":
            raise DeviceError(
                'engine="python" runs on the processor, and arrays are on a card; copy them to the host first'
            )
        return there
    if there and not device.card:
        raise DeviceError('device="cpu": arrays on a card are computed there; copy them to the host first')
    return bool(device.card)


def beside(x: Any, constant: Any) -> Any:
    """A NumPy array in the library, dtype and memory of another array."""
    if not on_card(x):
        return constant
    from robokit.engine.cuda.arrays import common

    found = common(["x"], [x], None, None)
    assert found is not None
    return found.library.constant(np.asarray(constant, found.dtype), found.number)


def card_number(device: Any, *arguments: Any) -> int | None:
    """The number of the card that something is to run on; None for the processor.

    ``device`` None is where the arrays among ``arguments`` are, "cuda" the card on which they are, or
    the first where they are on none. Raises DeviceError if there is no such device.
    """
    there = on_card(*arguments)
    if device is None and not there:
        return None
    from robokit.engine.cuda.arrays import library_of, number_of

    if device is not None and not (there and str(device) == "cuda"):
        return number_of(device)
    libraries = ((library_of(x), x) for x in arguments)
    return next(library.number(x) for library, x in libraries if library is not None)


def dtype_there(dtype: Any, *arguments: Any) -> Any:
    """A dtype that is asked for; else "float32" where all arrays on a card are of it, else None."""
    if dtype is not None:
        return dtype
    there = {str(x.dtype).removeprefix("torch.") for x in arguments if on_card(x)}
    return "float32" if there == {"float32"} else None


def on_host(name: str, x: Any) -> Any:
    """An array on a card as one of NumPy's; anything else as it is; errors of :func:`check_gradient`."""
    if not on_card(x):
        return x
    check_gradient(name, x)
    if hasattr(x, "detach"):
        return x.detach().cpu().numpy()
    return x.get() if hasattr(x, "get") else np.asarray(x)


def check_gradient(name: str, x: Any) -> None:
    """Refuse, by ShapeError, a tensor that PyTorch follows, for what is not recorded."""
    if getattr(x, "requires_grad", False) and sys.modules["torch"].is_grad_enabled():
        raise ShapeError(
            f"{name}: expected an array without a gradient, since rollouts and simulations are not "
            "recorded, got a tensor that requires one; give it .detach(), or call under torch.no_grad()"
        )


# ==== what an algorithm is about beside the robot: the link of a Jacobian, the contacts that hold =
# Each value of a choice has machine code of its own. What a user gives is read once, the same for the public
# functions, for functions as objects and for code in other languages; from there on it is part of a key.


# ---- several links at once: what a function gives for each, one after the other ---------------------------
# What links have in common, as the joints between the reference and the place where their branches part, is
# computed once.

Scalars = Sequence[Any]

ORIGIN = (0.0, 0.0, 0.0)  # the point of a link if none is given: its origin


def link_names(robot: Robot, link: Any) -> str | tuple[str, ...]:
    """The name of a link, or of several; ShapeError for an empty list, UnknownName for no such link."""
    if not isinstance(link, (list, tuple)):
        return robot.link(link).name
    if not link:
        raise ShapeError("link: expected at least one name, got an empty list")
    return tuple(robot.link(each).name for each in link)


def count(about: str, key: Any) -> int | None:
    """How many links a kernel of this key is about; None where its choices are not about a list of them."""
    several = about.startswith("link") and isinstance(key, tuple) and type(key[1]) is tuple
    return len(key[1]) if several else None


def points(at: Any, several: int) -> np.ndarray:
    """The points of several links as kernels take them, (3 k,) or (B, 3 k); ShapeError for others.

    One point for all of them (3,), one for each (k, 3), or those of a batch (B, k, 3) [m].
    """
    if at is ORIGIN:
        return _origins(several)
    if on_card(at):
        return at.reshape(*at.shape[:-2], 3 * several) if at.ndim > 1 else at.tile((several,))
    accepted = f"(3,), ({several}, 3) or (B, {several}, 3), a point for each of the {several} links"
    array = real_array("at", at, accepted)
    if array.shape == (3,):
        tiled = np.tile(array, several)
        tiled.flags.writeable = False
        return tiled
    if array.ndim not in (2, 3) or array.shape[-2:] != (several, 3):
        raise ShapeError(f"at: expected {accepted}, got shape {array.shape}")
    return np.ascontiguousarray(array).reshape(*array.shape[:-2], 3 * several)


@cache
def _origins(several: int) -> np.ndarray:
    made = np.zeros(3 * several)
    made.flags.writeable = False
    return made


def link_by_link(function: Callable[[Any, Any], Scalars], at: Scalars, frames: Sequence[Any]) -> list[Any]:
    """The results of a function of a point and a frame for each link; they and the points are flat lists."""
    each = (function(at[3 * k : 3 * k + 3], frame) for k, frame in enumerate(frames))
    return list(chain.from_iterable(each))


AXES = ("world", "body")  # axes that vectors of a link are given in: the world's, or the link's own


def _shown(_: Robot, value: Any) -> str:
    return repr(value)


@frozen
class Choice:
    """What an algorithm is about; each value has a kernel of its own.

    Attributes:
        read: robot, what a user gives -> the value, checked; it can be part of a key.
        value_of: robot, value -> what the function takes.
        example: robot -> a value, for tables of costs and for tests.
        default: of the functions; None where it must be given.
        several: whether it is a list.
        key: robot, value -> everything about it that machine code depends on, as text.
    """

    read: Callable[[Robot, Any], Any]
    value_of: Callable[[Robot, Any], Any]
    example: Callable[[Robot], Any]
    default: Any = None
    several: bool = False
    key: Callable[[Robot, Any], str] = _shown


def link_frame(robot: Robot, link: str) -> tuple[int, Transform]:
    """The link's body i and the transform from its coordinates to those of the link's frame."""
    body, placement = robot.frame(link)
    R = Matrix3(placement.rotation.tolist())
    return body, Transform(R.T, Vector3(*placement.position.tolist()))


def link_frames(robot: Robot, link: str | tuple[str, ...]) -> Any:
    """As :func:`link_frame`; a list of them where there are several links."""
    return link_frame(robot, link) if isinstance(link, str) else [link_frame(robot, each) for each in link]


def axes_name(_: Robot, axes: Any) -> str:
    """One of :data:`AXES`; raises UnknownName for anything else."""
    return one_of("axes", axes, AXES)


def flag(_: Robot, classical: Any) -> bool:
    """Whether the classical acceleration is meant; raises WrongType for what is neither True nor False."""
    if not isinstance(classical, bool):
        raise WrongType("classical", classical, "True or False")
    return classical


def joint_names(robot: Robot, prescribed: Any) -> tuple[str, ...]:
    """Names of joints whose accelerations are given, in the robot's order.

    Raises WrongType for no list, UnknownName if there is no such joint, or it has no coordinates.
    """
    if isinstance(prescribed, str) or not isinstance(prescribed, Sequence):
        raise WrongType("prescribed", prescribed, "a list of joint names")
    for name in prescribed:
        if name not in robot.joint_names:
            raise UnknownName("joint with coordinates", name, robot.joint_names, f"in robot {robot.name!r}")
    return tuple(name for name in robot.joint_names if name in prescribed)


def frames(robot: Robot, value: Any) -> tuple[Contact, ...]:
    """Links, or points of them, that are felt from outside: of names, contacts or (link, at, kind).

    Raises WrongType for anything else, ShapeError for an empty list, UnknownName for no such link or kind.
    """
    return _once(robot, "frames", value, _frames)


def constraints(robot: Robot, value: Any) -> tuple[Contact | str, ...]:
    """The contacts and loop joints that are held; None for all loop joints; errors as of :func:`frames`."""
    if value is None:
        value = tuple(model.name for model in loop_models(robot))
    return _once(robot, "constraints", value, _constraints)


def _once(robot: Robot, name: str, value: Any, read: Callable[[Robot, Any], Any]) -> tuple[Any, ...]:
    """The list that was given, read; equal lists are read once."""
    if value.__class__ is list:
        value = tuple(value)
    try:
        found: tuple[Any, ...] = robot.derived.get((name, value), lambda: read(robot, value))
    except TypeError as problem:  # arrays in it, or lists
        if isinstance(problem, WrongType):
            raise
        found = read(robot, value)
    return found


def _frames(robot: Robot, value: Any) -> tuple[Contact, ...]:
    found = tuple(as_contact(f"frames[{k}]", x) for k, x in enumerate(_several("frames", value)))
    for frame in found:
        robot.link(frame.link)
    return found


def _constraints(robot: Robot, value: Any) -> tuple[Contact | str, ...]:
    loops = [model.name for model in loop_models(robot)]
    found: list[Contact | str] = []
    for k, x in enumerate(_several("constraints", value)):
        if isinstance(x, str):
            if x not in loops:
                hint = "(a link is held by a Contact)" if x in robot.link_names else ""
                raise UnknownName("loop joint", x, loops, hint)
            found.append(x)
        else:
            contact = as_contact(f"constraints[{k}]", x)
            robot.link(contact.link)
            found.append(contact)
    return tuple(found)


def _several(name: str, value: Any) -> Sequence[Any]:
    if isinstance(value, str | Contact) or not isinstance(value, Sequence):
        raise WrongType(name, value, f"a list of {name}")
    if not value:
        raise ShapeError(f"{name}: expected at least one, got none")
    return value


def _as_it_is(_: Robot, value: Any) -> Any:
    return value


def _numbers(robot: Robot, joints: Sequence[str]) -> tuple[int, ...]:
    return tuple(sorted(robot.joint(name).body for name in joints))


CHOICES: dict[str, Choice] = {
    "link": Choice(link_names, link_frames, example_link),
    "axes": Choice(axes_name, _as_it_is, lambda _: AXES[0], default=AXES[0]),
    "classical": Choice(flag, _as_it_is, lambda _: True, default=False),
    "prescribed": Choice(joint_names, _numbers, lambda robot: robot.joint_names[::2], several=True),
    "frames": Choice(frames, contact_models, example_contact, several=True),
    "constraints": Choice(constraints, constraint_models, example_contact, several=True, key=constraints_key),
}
"""What algorithms can be about, by name."""
