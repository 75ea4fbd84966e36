"""Work in a child with bounded time and memory: every end is one error, nothing that it sends runs here."""

from __future__ import annotations

import os
import sys

import pytest
import waiting

from robokit.child_process import Child, OutOfBounds

ANSWERS = """
import os, signal, sys, time

class Evil:
    def __reduce__(self):
        return os.mkdir, (MADE,)

def answer(question):
    if question == "for ever":
        while True: pass
    if question == "asleep":
        time.sleep(1000)
    if question == "memory":
        return len(bytearray(8 << 30))
    if question == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if question == "exit":
        os._exit(3)
    if question == "evil":
        return Evil()
    if question == "wrong":
        return {}[1]
    if question == "loud":
        print("said"); os.write(1, b"said")
        return input() if False else "quiet"
    if question == "random":
        import random
        return random.__file__
    if question == "where":
        return [os.getcwd(), os.environ.get("ROS_PACKAGE_PATH")]
    return [question, os.getpid()]
"""


@pytest.fixture
def child(tmp_path):
    file = tmp_path / "answers.py"
    file.write_text(ANSWERS.replace("MADE", repr(str(tmp_path / "made"))))
    with Child(str(file), seconds=waiting.PATIENCE, memory=1 << 30) as child:
        yield child


LIMITED = sys.platform.startswith("linux")


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("for ever", "stopped after 1 s"),
        ("asleep", "stopped after 1 s"),
        pytest.param(
            "memory", "more than 1 GiB", marks=pytest.mark.skipif(not LIMITED, reason="no such bound")
        ),
        ("crash", "signal 11 .SIGSEGV"),
        ("exit", "status 3"),
        ("evil", "holds no"),
        ("wrong", "KeyError: 1"),
    ],
)
def test_every_end_is_an_error_and_the_next_question_is_answered(child, question, words, tmp_path):
    child.seconds = 1.0 if "after 1 s" in words else waiting.PATIENCE
    with pytest.raises(OutOfBounds, match=words):
        child.ask(question)
    child.seconds = waiting.PATIENCE
    assert child.ask(5)[0] == 5
    assert not (tmp_path / "made").exists()


def test_one_process_answers_all(child):
    assert child.ask("loud") == "quiet"
    assert child.ask(1)[1] == child.ask(2)[1] != os.getpid()


def test_no_file_beside_the_caller_hides_the_standard_library(child, tmp_path, monkeypatch):
    (tmp_path / "random.py").write_text("raise SystemExit")
    monkeypatch.syspath_prepend(tmp_path)
    assert os.path.dirname(child.ask("random")) == os.path.dirname(os.__file__)


def test_the_folder_and_the_variables_are_those_of_the_caller(child, tmp_path, monkeypatch):
    child.ask("where")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.setenv("ROS_PACKAGE_PATH", "later")
    assert child.ask("where") == [str(tmp_path / "elsewhere"), "later"]
