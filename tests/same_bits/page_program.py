"""The fall in the page's own Worker: WebAssembly in Node and in Chromium."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from node_program import run_in_node

import robokit as rk
from robokit.viewer.live_data import live_data
from robokit.viewer.page import WORKER, joined, json_for_html

NODE = """
globalThis.onmessage = null;
globalThis.postMessage = (message) => {
  if (message.kind === "trace") process.stdout.write(
    JSON.stringify({ q: Array.from(message.q), v: Array.from(message.v) }), () => process.exit(0));
  if (message.kind === "problem") { console.error(message.message); process.exit(1); }
};
const { live, messages } = JSON.parse(require("fs").readFileSync(0));
(0, eval)(live.worker);
(async () => {
  await onmessage({ data: { kind: "load", live } });
  for (const message of messages) await onmessage({ data: message });
})();
"""

PAGE = """({ live, messages }) => new Promise((done, fail) => {
  const worker = new Worker(URL.createObjectURL(new Blob([live.worker], { type: "text/javascript" })));
  worker.onerror = (event) => fail(event.message);
  worker.onmessage = ({ data }) => {
    if (data.kind === "trace") done({ q: Array.from(data.q), v: Array.from(data.v) });
    if (data.kind === "problem") fail(data.message);
  };
  for (const data of [{ kind: "load", live }, ...messages]) worker.postMessage(data);
})"""


def asked(motion: rk.Trajectory, every: int) -> dict[str, Any]:
    """What the page is given: the step of a run, its start, and how many steps to take."""
    live = json.loads(json_for_html(live_data(motion, joined(WORKER))))
    steps = int(motion.summary["steps"])
    start = {"kind": "start", "t": 0, "q": None, "v": None, "run": 1}
    return {"live": live, "messages": [start, {"kind": "trace", "steps": steps, "every": every}]}


def _states(motion: rk.Trajectory, found: dict[str, Any]) -> list[np.ndarray]:
    return [np.reshape(found["q"], motion.q.shape), np.reshape(found["v"], motion.v.shape)]


def in_node(motion: rk.Trajectory, every: int) -> list[np.ndarray]:
    """q and v of the recorded states, by Node."""
    return _states(motion, run_in_node(NODE, asked(motion, every)))


def in_chromium(motion: rk.Trajectory, every: int, browser: Any) -> list[np.ndarray]:
    """The same by a browser of Playwright."""
    with tempfile.TemporaryDirectory() as folder:
        page = browser.new_page()
        (Path(folder) / "empty.html").write_text("<!doctype html><title>-</title>")
        page.goto((Path(folder) / "empty.html").as_uri())
        found = page.evaluate(PAGE, asked(motion, every))
        page.close()
    return _states(motion, found)
