"""Who could have written a file: what this process runs must be this user's or root's alone.

Whoever may write to a folder may replace what is in it, so every folder on the way to a file counts. In a
folder with the sticky bit, like /tmp, all may add files but only owners replace theirs: it may lie on the
way. Links on the way are followed where this user or root made them.

Systems without user ids (Windows) are not judged: their folders for caches belong to the user.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

MOST_LINKS = 40
"""On one way, as the system itself has it."""

_OTHERS = stat.S_IWGRP | stat.S_IWOTH
# Windows would write line ends otherwise, and knows the others not at all.
_FLAGS = os.O_RDONLY | sum(
    getattr(os, f"O_{name}", 0) for name in ("BINARY", "NOFOLLOW", "NONBLOCK", "CLOEXEC", "NOCTTY")
)


class NotTrusted(Exception):
    """Somebody else may write there; the text says where, and what to do."""


def check_folder(folder: Path) -> None:
    """Raise where somebody else may write to a folder, or to one on the way to it.

    Raises:
        NotTrusted: so it is.
        OSError: there is no such folder.
    """
    if not hasattr(os, "geteuid"):
        return
    # Step by step as the system goes: ".." after a link is not what the text looks like.
    rest = list(reversed(Path(os.path.join(os.getcwd(), folder)).parts))
    place, links = rest.pop(), 0
    while True:
        state = os.lstat(place)
        if state.st_uid not in (os.geteuid(), 0):
            raise NotTrusted(f"{place} belongs to {_user(state.st_uid)}")
        if stat.S_ISLNK(state.st_mode):
            links += 1
            if links > MOST_LINKS:
                raise NotTrusted(f"{place} is one of more than {MOST_LINKS} links")
            target = os.readlink(place)
            rest += reversed(Path(target).parts)
            place = rest.pop() if os.path.isabs(target) else os.path.dirname(place)
            continue
        if not stat.S_ISDIR(state.st_mode):
            raise NotADirectoryError(place)
        passing = bool(state.st_mode & stat.S_ISVTX and rest)
        if state.st_mode & _OTHERS and not passing and not _only_by_its_owner(state):
            raise NotTrusted(
                f"{place} can be written to by other users (mode {stat.S_IMODE(state.st_mode):o}); "
                f"if it should be yours alone: chmod go-w {place}"
            )
        if not rest:
            return
        part = rest.pop()
        place = os.path.dirname(place) if part == ".." else os.path.join(place, part)


def make_folder(folder: Path) -> None:
    """Make a folder and those on the way to it, for this user alone whatever the umask."""
    if not folder.exists():
        make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def read(path: Path, most: int, head: int = -1) -> bytes:
    """Content of a file that nobody else may write to.

    Neither a link nor a pipe nor a device, which could be endless.

    Args:
        path: of the file, in a folder that was checked.
        most: bytes that it may have.
        head: of which so many are read; all if negative.

    Raises:
        NotTrusted: it is another user's, or others may write to it, or it is no file, or too large.
        OSError: it cannot be read, or is a link.
    """
    with open(os.open(path, _FLAGS), "rb") as file:
        state = os.fstat(file.fileno())
        if not stat.S_ISREG(state.st_mode):
            raise NotTrusted(f"{path} is no regular file")
        if state.st_size > most:
            raise NotTrusted(f"{path} has {state.st_size:,} bytes")
        if hasattr(os, "geteuid"):
            if state.st_uid not in (os.geteuid(), 0):
                raise NotTrusted(f"{path} belongs to {_user(state.st_uid)}")
            if state.st_mode & _OTHERS:
                raise NotTrusted(f"{path} can be written to by other users")
        return file.read(state.st_size if head < 0 else head)


def _only_by_its_owner(state: os.stat_result) -> bool:
    """Whether the group that may write is the owner's own, as some systems give one to every user."""
    import grp
    import pwd

    if state.st_mode & stat.S_IWOTH:
        return False
    try:
        owner, group = pwd.getpwuid(state.st_uid).pw_name, grp.getgrgid(state.st_gid)
    except KeyError:
        return False
    return group.gr_name == owner and not set(group.gr_mem) - {owner}


def _user(uid: int) -> str:
    import pwd

    try:
        return f"user {pwd.getpwuid(uid).pw_name!r}"
    except KeyError:
        return f"user {uid}"
