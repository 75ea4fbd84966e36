"""Commands of meshcat: those that are left out change nothing that a browser shows."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from robokit.viewer.server import SceneCommands

WHOLE = ("set_object", "set_transform", "set_animation", "delete")

paths = st.sampled_from(["a", "a/b", "a/b/c", "ab", "/a//b/", "d"])
commands = st.one_of(
    st.tuples(
        st.sampled_from(["set_object", "set_transform", "set_animation", "delete"]), paths, st.just("")
    ),
    st.tuples(st.just("set_property"), paths, st.sampled_from(["visible", "color"])),
)


def shown(state, commands):
    """What a browser shows after more commands: {(path, kind, property): the command's number}."""
    state = dict(state)
    for kind, path, name, number in commands:
        path = "/".join(part for part in path.split("/") if part)
        if kind == "delete":
            state = {key: n for key, n in state.items() if not (key[0] + "/").startswith(path + "/")}
            continue
        if kind == "set_object":
            state = {key: n for key, n in state.items() if key[:2] != (path, "set_property")}
        state[path, kind, name] = number
    return state


@given(st.lists(st.tuples(commands, st.integers(0, 2))))
def test_a_browser_shows_what_all_commands_make(made):
    """One browser takes some commands between new ones; another comes at the end."""
    everything, scene, pending = [], SceneCommands(), SceneCommands()
    received = []
    for number, ((kind, path, name), reads) in enumerate(made):
        everything.append((kind, path, name, number))
        for each in (scene, pending):
            each.put({"type": kind, "path": path, "property": name}, str(number).encode())
        for _ in range(min(reads, len(pending))):
            received.append(everything[int(pending.take())])
    received += [everything[int(packed)] for packed in pending.packed()]
    expected = shown({}, everything)
    assert shown({}, received) == expected
    assert shown({}, [everything[int(packed)] for packed in scene.packed()]) == expected


@settings(max_examples=15)
@given(st.lists(commands, min_size=200, max_size=300))
def test_no_more_is_kept_than_one_command_for_each_part(made):
    scene = SceneCommands()
    for kind, path, name in made:
        scene.put({"type": kind, "path": path, "property": name}, b"")
    assert len(scene) <= 5 * 6  # paths, and object, transform, animation, deletion and two properties


def test_a_copy_is_taken_apart_alone():
    scene = SceneCommands()
    scene.put({"type": "set_transform", "path": "a"}, b"1")
    other = scene.copy()
    assert other.take() == b"1" and len(other) == 0 and scene.packed() == [b"1"]
