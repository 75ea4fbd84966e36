"""The cache holds code that will be run: nothing is taken from where somebody else may write."""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from pathlib import Path

import pytest

from robokit import disk_cache
from robokit import disk_cache as cache

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no user ids")

NAME = "a" * 64
STRANGER = 54321


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A trusted folder two below tmp_path, with one file."""
    place = tmp_path / "home" / "cache"
    monkeypatch.setenv("ROBOKIT_CACHE_DIR", str(place))
    monkeypatch.setattr(cache, "_warned", {})
    cache.store(NAME, {"kernel": "own"}, b"code")
    assert cache.load(NAME) == ({"kernel": "own"}, b"code")
    return place


@pytest.fixture
def give(monkeypatch):
    """Gives a path to a stranger: really where root runs the tests, else in what the system says of it."""
    given: set[tuple[int, int]] = set()

    def changed(call):
        def told(*arguments, **options):
            state = call(*arguments, **options)
            if (state.st_dev, state.st_ino) not in given:
                return state
            return os.stat_result((*state[:4], STRANGER, *state[5:]))

        return told

    def away(path: Path) -> None:
        if os.geteuid() == 0:
            os.chown(path, STRANGER, -1, follow_symlinks=False)
            return
        state = os.lstat(path)
        given.add((state.st_dev, state.st_ino))
        monkeypatch.setattr(os, "lstat", changed(os.lstat))
        monkeypatch.setattr(os, "fstat", changed(os.fstat))

    return away


def refused(words: str, name: str = NAME) -> None:
    """Neither read nor written, with one warning that says why and what to do."""
    with pytest.warns(UserWarning, match=words) as told:
        assert cache.load(name) is None
        cache.store("b" * 64, {}, b"more")
        assert cache.load("b" * 64) is None
    assert len(told) == 1
    text = str(told[0].message)
    assert str(cache.folder()) in text and "set ROBOKIT_CACHE_DIR" in text
    assert not any(path.name.startswith("b") for path in cache.folder().glob("*"))


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o757])
def test_a_folder_that_others_may_write_to_is_not_used(folder, mode):
    folder.chmod(mode)
    refused(rf"{folder} can be written to by other users \(mode {mode:o}\).* chmod go-w {folder}")
    folder.chmod(0o755)
    assert cache.load(NAME) is not None


def test_a_folder_above_it_that_others_may_write_to(folder):
    folder.parent.chmod(0o777)
    refused(f"{folder.parent} can be written to by other users")


def test_a_folder_above_it_where_all_may_add_and_none_replace(folder):
    folder.parent.chmod(0o1777)  # as /tmp is
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cache.load(NAME) is not None


def test_a_strangers_folder_in_a_shared_one(folder, give):
    folder.parent.chmod(0o1777)
    give(folder)
    refused(f"{folder} belongs to user {STRANGER}")


def test_a_strangers_folder_above_it(folder, give):
    give(folder.parent)
    refused(f"{folder.parent} belongs to user {STRANGER}")


def test_a_group_of_its_own_may_write(folder, monkeypatch):
    # Systems that give every user a group of that name often let it write, too.
    import grp
    import pwd
    from types import SimpleNamespace

    folder.chmod(0o775)
    owner = "somebody"
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: SimpleNamespace(pw_name=owner))

    def group(name, members=()):
        return grp.struct_group((name, "x", os.getegid(), list(members)))

    with monkeypatch.context() as patch:
        patch.setattr(grp, "getgrgid", lambda gid: group(owner, [owner]))
        assert cache.load(NAME) is not None
        patch.setattr(grp, "getgrgid", lambda gid: group(owner, [owner, "friend"]))
        refused("can be written to by other users")
        cache._warned.clear()
        patch.setattr(grp, "getgrgid", lambda gid: group("staff"))
        refused("can be written to by other users")


def test_a_link_of_ones_own_is_followed_and_what_it_leads_to_is_looked_at(folder, tmp_path, monkeypatch):
    link = tmp_path / "link"
    link.symlink_to("home/../home/cache")
    monkeypatch.setenv("ROBOKIT_CACHE_DIR", str(link))
    assert cache.load(NAME) is not None
    folder.chmod(0o777)
    refused(f"{folder} can be written to")


def test_a_strangers_link(folder, tmp_path, give, monkeypatch):
    link = tmp_path / "link"
    link.symlink_to(folder)
    give(link)
    monkeypatch.setenv("ROBOKIT_CACHE_DIR", str(link))
    refused(f"{link} belongs to")


def test_a_link_to_itself_costs_only_time(folder, tmp_path, monkeypatch):
    link = tmp_path / "link"
    link.symlink_to(link)
    monkeypatch.setenv("ROBOKIT_CACHE_DIR", str(link))
    refused("one of more than 40 links")


def test_no_umask_lets_others_write_to_folders_made_on_the_way(tmp_path, monkeypatch):
    monkeypatch.setenv("ROBOKIT_CACHE_DIR", str(tmp_path / "a" / "b" / "c"))
    before = os.umask(0)
    try:
        cache.store(NAME, {}, b"code")
    finally:
        os.umask(before)
    assert [p.stat().st_mode & 0o777 for p in (tmp_path / "a", tmp_path / "a/b/c")] == [0o700, 0o700]
    assert cache.load(NAME) == ({}, b"code")


def made_again(path: Path) -> None:
    """A file that is not taken is replaced by a good one; to find that out takes no time."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        start = time.process_time()
        assert cache.load(NAME) is None
        assert [e.kernel for e in cache.entries()] == [""]
        assert time.process_time() - start < 5.0
        cache.store(NAME, {"kernel": "own"}, b"again")
    assert cache.load(NAME) == ({"kernel": "own"}, b"again")
    assert path.is_file() and not path.is_symlink() and path.stat().st_mode & 0o022 == 0


@pytest.mark.parametrize("mode", [0o666, 0o664, 0o602])
def test_a_file_that_others_may_write_to(folder, mode):
    path = folder / f"{NAME}.bin"
    path.chmod(mode)
    made_again(path)


def test_a_strangers_file(folder, give):
    path = folder / f"{NAME}.bin"
    give(path)
    made_again(path)


def test_a_pipe_is_not_waited_for(folder):
    path = folder / f"{NAME}.bin"
    path.unlink()
    os.mkfifo(path)
    made_again(path)


def test_a_pipe_that_somebody_writes_to(folder):
    path = folder / f"{NAME}.bin"
    content = path.read_bytes()
    path.unlink()
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(path, os.O_WRONLY)
    os.write(writer, content)
    try:
        made_again(path)
    finally:
        os.close(reader)
        os.close(writer)


@pytest.mark.parametrize("target", ["/dev/zero", "file", "nothing"])
def test_a_link_below_the_folder_is_not_followed(folder, tmp_path, target):
    path = folder / f"{NAME}.bin"
    path.rename(tmp_path / "file")
    path.symlink_to(target if target.startswith("/") else tmp_path / target)
    made_again(path)


def test_a_file_too_large_is_not_read(folder):
    path = folder / f"{NAME}.bin"
    with open(path, "r+b") as file:
        file.truncate(1 << 40)  # holes: it takes no room
    made_again(path)


def test_a_folder_in_a_files_place(folder):
    path = folder / f"{NAME}.bin"
    path.unlink()
    path.mkdir()
    assert cache.load(NAME) is None
    cache.store(NAME, {}, b"code")
    assert cache.load(NAME) is None


def test_all_threads_together_get_one_warning(folder):
    folder.chmod(0o777)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        threads = [threading.Thread(target=cache.load, args=(NAME,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(told) == 1


def test_a_way_that_ends_in_a_file_is_no_folder(folder):
    with pytest.raises(NotADirectoryError):
        disk_cache.check_folder(folder / f"{NAME}.bin" / "cache")


def test_a_look_at_the_folder_takes_no_time(folder):
    start = time.process_time()
    for _ in range(1000):
        disk_cache.check_folder(folder)
    assert time.process_time() - start < 5.0, "5 ms of the 20 ms that a first call takes"
