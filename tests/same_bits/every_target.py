"""The frozen fall of a robot on every target there is.

    python tests/same_bits/every_target.py [humanoid|g1|toy] [seconds]

Prints a line a target: its hash, whether it is the frozen one, and the time with compiling. What this machine
lacks (AVX-512, Node, Chromium, qemu-aarch64) is said and left out. Needs the extras test, browser and parity.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(1, str(Path(__file__).resolve().parents[1]))

import falls
import page_program
from node_program import path_of_node

import robokit as rk


def main() -> int:
    name = sys.argv[1] if len(sys.argv) > 1 else "humanoid"
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 10.0
    warnings.simplefilter("ignore")
    wanted = falls.FROZEN.get((name, seconds), "")
    wrong = 0

    def row(what: str, take: Callable[[], str]) -> str:
        nonlocal wanted, wrong
        began = time.perf_counter()
        found = take()
        wanted = wanted or found
        wrong += found != wanted
        word = "same" if found == wanted else "OTHER"
        print(f"{what:34} {found[:16]} {word}  {time.perf_counter() - began:6.1f} s", flush=True)
        return found

    def alone(**more: object) -> str:
        motion = falls.single(falls.robot_of(name), seconds, **more)
        return falls.fingerprint(motion.q, motion.v)

    robot = falls.robot_of(name)
    motion = falls.single(robot, seconds)
    print(f"{robot.name}, {seconds:g} s, {len(motion)} states; robokit {rk.__version__}")
    print(falls.fingerprint(motion.q, motion.v))
    row("this processor, alone", lambda: falls.fingerprint(motion.q, motion.v))
    for rows, place in ((1, 0), (7, 3), (256, 201)):
        for threads in (1, 2):
            row(
                f"batch of {rows}, {threads} thread{'s' * (threads > 1)}",
                lambda r=rows, p=place, t=threads: falls.batch(robot, seconds, r, p, t),
            )
    for target in falls.PROCESSORS:
        if not falls.runs_here(target):
            print(f"{target:34} not this processor")
            continue
        with falls.processor(target):
            row(f"{target}, alone", alone)
            row(f"{target}, batch of 7", lambda: falls.batch(falls.robot_of(name), seconds, 7, 3))
    if path_of_node():
        row("WebAssembly in Node", lambda: falls.fingerprint(*page_program.in_node(motion, falls.EVERY)))
    else:
        print("WebAssembly in Node                no node")
    program = os.environ.get("ROBOKIT_CHROMIUM") or shutil.which("chromium")
    if program:
        from playwright.sync_api import sync_playwright

        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=program, args=["--headless", "--no-sandbox"])
            row(
                "WebAssembly in Chromium",
                lambda: falls.fingerprint(*page_program.in_chromium(motion, falls.EVERY, browser)),
            )
            browser.close()
    else:
        print("WebAssembly in Chromium            no chromium")
    if shutil.which("qemu-aarch64"):
        row("ARM64 under qemu", lambda: falls.on_arm(motion))
    else:
        print("ARM64                              no qemu-aarch64")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
