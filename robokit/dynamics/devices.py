"""Where functions of robots are computed: ``device=`` of the public functions, and arrays on a card."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from robokit.arguments import one_of
from robokit.engine import ENGINES
from robokit.errors import DeviceError, ShapeError

HERE = frozenset(("numpy", "builtins", "robokit"))
"""Modules whose objects are not on a card."""


class Device(NamedTuple):
    """A device that was asked for; it is passed on in the place of ``engine``."""

    card: bool  # whether it is a card
    number: int | None  # of the card; None for that of the arrays, or the first where none are on a card
    engine: str | None  # that is asked for too


def on_device(device: Any, engine: str | None) -> Any:
    """A device that is asked for by name.

    Args:
        device: "cpu", "cuda", "cuda:1", or an object whose str is one of these (a ``torch.device``).
        engine: that is asked for too.

    Returns:
        a :class:`Device`.

    Raises:
        DeviceError: there is no such device, or it does not go with the engine.
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


def on_card(*given: Any) -> bool:
    """Whether one of some arguments is an array on a card."""
    if not any(map(foreign, given)):
        return False
    from robokit.engine.cuda.arrays import library_of

    return any(library_of(x) is not None for x in given)


def card_asked_for(device: Any, given: Sequence[Any]) -> bool:
    """Whether a call goes to a card.

    Args:
        device: of the call, or its engine.
        given: its arguments.

    Raises:
        DeviceError: the processor is asked for, and arrays are on a card.
    """
    there = on_card(*given)
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


def card_number(device: Any, *given: Any) -> int | None:
    """The number of the card that something is to run on; None for the processor.

    Args:
        device: that is asked for by name; None for where the arrays are, "cuda" for the card on which they
            are, or the first where they are on none.
        given: arrays, and what is no array.

    Raises:
        DeviceError: there is no such device.
    """
    there = on_card(*given)
    if device is None and not there:
        return None
    from robokit.engine.cuda.arrays import library_of, number_of

    if device is not None and not (there and str(device) == "cuda"):
        return number_of(device)
    libraries = ((library_of(x), x) for x in given)
    return next(library.number(x) for library, x in libraries if library is not None)


def dtype_there(dtype: Any, *given: Any) -> Any:
    """A dtype that is asked for; else "float32" where all arrays on a card are of it, else None.

    Args:
        dtype: as the public functions take it.
        given: arrays, and what is no array.
    """
    if dtype is not None:
        return dtype
    there = {str(x.dtype).removeprefix("torch.") for x in given if on_card(x)}
    return "float32" if there == {"float32"} else None


def on_host(name: str, x: Any) -> Any:
    """An array on a card as one of NumPy's; anything else as it is.

    Raises:
        ShapeError: a tensor whose gradient would end here.
    """
    if not on_card(x):
        return x
    check_gradient(name, x)
    if hasattr(x, "detach"):
        return x.detach().cpu().numpy()
    return x.get() if hasattr(x, "get") else np.asarray(x)


def check_gradient(name: str, x: Any) -> None:
    """Refuse a tensor that PyTorch follows, for what is not recorded.

    Raises:
        ShapeError: it is one.
    """
    if getattr(x, "requires_grad", False) and sys.modules["torch"].is_grad_enabled():
        raise ShapeError(
            f"{name}: expected an array without a gradient, since rollouts and simulations are not "
            "recorded, got a tensor that requires one; give it .detach(), or call under torch.no_grad()"
        )
