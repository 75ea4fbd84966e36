"""meshcat's commands, with only those kept that a browser still needs to show the scene."""

from __future__ import annotations

from typing import Any

Key = tuple[str, str, str]


class SceneCommands:
    """Packed commands in the order in which a browser has to receive them.

    A command takes the place of earlier ones that it makes useless: a transform that of the same path, an
    object the old object with its properties, a deletion everything below its path. So the list grows with
    the scene and not with time: the server keeps the whole scene in one, and in another what a browser has
    not received yet.
    """

    def __init__(self) -> None:
        self._packed: dict[Key, bytes] = {}

    def __len__(self) -> int:
        return len(self._packed)

    def put(self, message: dict[str, Any], packed: bytes) -> None:
        """Take a command.

        Args:
            message: of meshcat: "type", "path" and, for a property, its name.
            packed: the same as the browser receives it.
        """
        kind, path = message["type"], _path(message["path"])
        if kind == "delete":
            useless = [key for key in self._packed if _below(key[0], path)]
        elif kind == "set_object":
            useless = [key for key in self._packed if key[:2] == (path, "set_property")]
        else:
            useless = []
        key = (path, kind, message.get("property", ""))
        for old in (*useless, key):
            self._packed.pop(old, None)
        self._packed[key] = packed

    def take(self) -> bytes:
        """Remove the first command and return it."""
        return self._packed.pop(next(iter(self._packed)))

    def copy(self) -> SceneCommands:
        """The same commands, to be taken apart from these."""
        other = SceneCommands()
        other._packed = dict(self._packed)
        return other

    def packed(self) -> list[bytes]:
        """All commands, first to last."""
        return list(self._packed.values())


def _path(text: str) -> str:
    """A path without empty parts: "/meshcat//robot/" is "meshcat/robot"."""
    return "/".join(part for part in text.split("/") if part)


def _below(path: str, top: str) -> bool:
    """Whether a path is another one or leads through it."""
    return not top or path == top or path.startswith(top + "/")
