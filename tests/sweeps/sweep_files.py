"""Folders of sweeps in tests: their content, and damages to their files."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal

import waiting

from robokit.sweeps.folder import SweepFile


def contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@contextlib.contextmanager
def not_for_ever():
    """What hangs ends in an error, where the system has alarms."""
    if not hasattr(signal, "SIGALRM"):
        yield
        return

    def late(*_):
        raise AssertionError(f"not within {waiting.PATIENCE:g} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(int(waiting.PATIENCE))
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def flip(path, bit):
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


def at(share):
    def damage(path):
        flip(path, round(share * (8 * path.stat().st_size - 1)))

    damage.__name__ = f"bit at {share}"
    return damage


def truncated(path):
    path.write_bytes(path.read_bytes()[:-1])


def empty(path):
    path.write_bytes(b"")


def exchanged(path):
    other = sorted(path.parent.iterdir())[0]
    shutil.copy(other, path)


def changed(folder, whole=None, seal=False, **recipe):
    """sweep.json with other values; ``seal``: as if they had been there from the beginning."""
    found = json.loads((folder / "sweep.json").read_text())
    found.update(whole or {})
    found["recipe"].update(recipe)
    if seal:
        text = json.dumps(found["recipe"], separators=(",", ":"))
        SweepFile(text, found["chunk"], found["count"], found["format"]).write(folder)
    else:
        (folder / "sweep.json").write_text(json.dumps(found))
