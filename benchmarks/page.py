"""Pages of falls: their size, how soon they show, and how the page's own physics compares with Python's.

    python benchmarks/page.py [ROBOT ...]

A row a robot: size of the page of a fall of 4 s; WebAssembly in it, unpacked; seconds from opening it to the
first picture, and from there until a live run can begin; steps a second and simulated over real time of the
live run; largest difference from Python after 1 s of free flight, over the largest number of the state.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from measure import machine, prepare_to_measure

import robokit as rk
from robokit.viewer import write_page
from robokit.viewer.film import opened_page

ROBOTS = ("humanoid", "example-robot-data:g1", "example-robot-data:talos", "quadruped", "chain")

ASK = """async ({ steps, every, fast }) => {
  const engine = robokit.startEngine(), heard = (kind) => new Promise((done) => engine.on(kind, done));
  const began = performance.now();
  await heard("ready");
  const loading = (performance.now() - began) / 1000;
  engine.send("start", { t: 0, q: null, v: null, run: 1 });
  let answer;
  if (fast) {
    engine.send("run", { speed: Infinity });
    await new Promise((done) => setTimeout(done, 4000));
    answer = { steps: engine.frame.stepsPerSecond, rate: engine.frame.rate };
  } else {
    engine.send("trace", { steps, every });
    const { q, v } = await heard("trace");
    answer = { q: Array.from(q), v: Array.from(v) };
  }
  engine.close();
  return { loading, ...answer };
}"""


def row(name: str, folder: Path) -> dict[str, Any]:
    """Measure one robot."""
    robot = rk.load_urdf(rk.find_robot(name), base="floating")
    falls = rk.simulate(robot, rk.standing_configuration(robot, tilt=0.1), duration=4.0, ground=rk.Ground())
    path = write_page(falls, folder / "fall.html", live=True)
    flies = flight(robot)
    other = write_page(flies, folder / "flight.html", live=True)
    found: dict[str, Any] = {"robot": robot.name, "dof": robot.nv, "page": path.stat().st_size / 1e6}
    began = time.perf_counter()
    with opened_page(path, (1280, 800)) as page:
        found["shown"] = time.perf_counter() - began
        live = page.evaluate("[robokit.data.live.step.bytes, robokit.data.live.look.bytes]")
        found["wasm"] = [size / 1e3 for size in live]
        found |= page.evaluate(ASK, {"fast": True, "steps": 0, "every": 0})
    with opened_page(other, (1280, 800)) as page:
        steps = flies.summary["steps"]
        said = page.evaluate(ASK, {"fast": False, "steps": steps, "every": steps})
    state = np.concatenate([flies.q[-1], flies.v[-1]])
    page_state = np.concatenate([said["q"][-robot.nq :], said["v"][-robot.nv :]])
    found["difference"] = float(np.abs(page_state - state).max() / np.abs(state).max())
    return found


def flight(robot: rk.Robot) -> rk.Trajectory:
    """A second of free flight with every joint moving."""
    q, v = robot.neutral(), 0.5 * np.random.default_rng(0).standard_normal(robot.nv)
    return rk.simulate(robot, q, v, duration=1.0)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("robots", nargs="*", default=ROBOTS)
    names = parser.parse_args().robots
    print(machine())
    print(
        f"{'robot':<20} dof  page MB  wasm kB (step, look)  shown s  ready s   steps/s   x real  difference"
    )
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            r = row(name, Path(folder))
        step, look = r["wasm"]
        print(
            f"{r['robot']:<20}{r['dof']:>4}{r['page']:>9.2f}{step:>13.0f}{look:>8.0f}{r['shown']:>11.1f}"
            f"{r['loading']:>9.2f}{r['steps']:>10,.0f}{r['rate']:>9.1f}{r['difference']:>12.1e}",
            flush=True,
        )


if __name__ == "__main__":
    prepare_to_measure()
    main()
