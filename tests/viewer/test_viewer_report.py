"""The report of a sweep: falls of rows are those of Python, bit for bit; filters, tables, keys, access."""

from __future__ import annotations

import numpy as np
import pytest
from test_viewer_browser import Watch, until
from test_viewer_worker import toy

from robokit import PD
from robokit.sweeps.distributions import Choice, Uniform
from robokit.sweeps.recipe import make_recipe, state_hash
from robokit.sweeps.report import write_report

pytestmark = pytest.mark.browser

ROWS = 120


class InMemory:
    """A sweep without a folder."""

    folder = None

    def __init__(self, recipe):
        self.recipe = recipe
        self.table = recipe.compute_rows(0, recipe.count)

    def rows(self):
        return self.table


@pytest.fixture(scope="module")
def sweep():
    """Falls of a driven toy with other starts, masses, frictions and gains; one is said to have failed."""
    recipe = make_recipe(
        toy(),
        starts={"tilt": Uniform(0.0, 1.0), "joint_noise": 0.2, "spin": Uniform(-3.0, 3.0)},
        parameters={
            "mass": Uniform(0.7, 1.3),
            "mass:bar": Choice([0.5, 1.0, 2.0]),
            "friction": Uniform(0.1, 1.0),
            "push": Uniform(0.0, 3.0),
            "push_time": Uniform(0.0, 0.2),
            "push_link": Choice(["box", "bar"]),
            "kp": Uniform(0.5, 2.0),
            "target_noise": 0.3,
        },
        actuators=PD(kp=4.0, kd=0.1, effort=1.0, max_velocity=5.0),
        duration=0.3,
        count=ROWS,
        seed=5,
        dt=1e-3,
        measures=["peak_load", "first_contact"],
    )  # fmt: skip
    found = InMemory(recipe)
    found.table["failure"][7] = "</script> not finite"
    return found


@pytest.fixture(scope="module")
def path(sweep, tmp_path_factory):
    return write_report(sweep, tmp_path_factory.mktemp("report") / "falls.html")


@pytest.fixture(scope="module")
def watch(chromium, path):
    watch = Watch(chromium)
    watch.page.goto(path.as_uri())
    until(watch.page, "Boolean(window.report?.scatter)")
    yield watch
    watch.judge()


RUN = """async (row) => {
  await report.fall.show(report.rows.numbers.indexOf(row));
  const { run, hash, known } = report.fall.result;
  const text = report.fall.state.textContent;
  return { q: [...run.q], v: [...run.v], hash: String(hash), known: String(known), text };
}"""


def test_ten_rows_at_random_are_those_of_python_and_of_the_sweep(sweep, watch):
    recorded = sweep.table["final_hash"]
    rows = np.random.default_rng(11).choice(np.setdiff1d(np.arange(ROWS), [7]), 10, replace=False)
    for row in rows.tolist():
        here = watch.page.evaluate(RUN, row)
        there = sweep.recipe.trajectory(row)
        assert np.array(here["q"]).tobytes() == there.q[-1].tobytes()
        assert np.array(here["v"]).tobytes() == there.v[-1].tobytes()
        assert int(here["hash"]) == int(here["known"]) == int(recorded[row])
        assert int(recorded[row]) == int(state_hash(there.q[-1], there.v[-1]))
        assert here["text"].startswith("Same bits as the sweep recorded")


def test_the_fall_is_shown_as_it_was(sweep, watch):
    page, row = watch.page, 3
    page.evaluate(RUN, row)
    inside = page.frames[1]
    until(inside, "Boolean(window.robokit?.timeline)")
    motion = sweep.recipe.trajectory(row)
    robot = inside.evaluate("({ ...robokit.data.robot })")
    assert robot["mass"] == pytest.approx(motion.robot.total_mass, rel=1e-12)
    lines = "robokit.data.curves.map((curve) => curve.key)"
    assert {"energy", "force", "linear", "angular"} <= set(inside.evaluate(lines))
    final = inside.evaluate("robokit.motion.coordinates(robokit.motion.count - 1)")
    np.testing.assert_allclose(final, motion.q[-1], atol=1e-6)
    total = inside.evaluate(
        "robokit.curves.graphs.stored.get('energy').lines.find((l) => l.name === 'total').y"
    )
    assert list(total.values() if isinstance(total, dict) else total)[-1] == pytest.approx(
        motion.energy.total[-1], abs=1e-3
    )
    touched = {name for name, force in motion.contact_forces.items() if np.any(force)}
    assert {one["link"] for one in inside.evaluate("robokit.data.events.touched")} == touched


def test_filters_tables_and_keys(sweep, watch):
    page = watch.page
    box = page.locator(".histogram canvas").first.bounding_box()
    page.mouse.move(box["x"] + 0.25 * box["width"], box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 20, steps=3)
    page.mouse.up()
    tilt = np.degrees(sweep.table["tilt"])
    low, high = page.evaluate(
        "(({ low, high }) => [low, high])(report.rows.filters.get(report.rows.column('tilt')))"
    )
    inside = (tilt >= low) & (tilt <= high)
    assert 0 < inside.sum() < ROWS and page.evaluate("report.rows.left") == inside.sum()
    page.get_by_role("tab", name="Rows").click()
    load = sweep.table["peak_load"]
    order = sorted(np.flatnonzero(inside), key=lambda k: -load[k])
    assert page.evaluate("[...report.table.places]") == [int(k) for k in order]
    shown = page.locator(".rows tbody th button").all_inner_texts()
    assert [int(x.replace(" ", "")) for x in shown] == [int(k) for k in order[: len(shown)]]
    page.get_by_role("button", name="Remove the filter").click()
    assert page.evaluate("report.rows.left") == ROWS
    page.get_by_role("tab", name="Scatter").click()
    page.locator(".scatter canvas").focus()
    page.keyboard.press("ArrowRight")
    first = page.evaluate("report.rows.numbers[report.scatter.pointed]")
    assert first == int(np.argmin(tilt)) and str(first) in page.locator("#said").inner_text()
    page.keyboard.press("Enter")
    until(page, f"report.fall.result?.run && report.fall.place === {first}")
    page.get_by_role("tab", name="Failures").click()
    assert "</script> not finite" in page.locator("#panel-failures").inner_text()


def test_axe_finds_nothing_serious(watch):
    from axe_playwright_python.sync_playwright import Axe

    page = watch.page
    page.evaluate(Axe().axe_script)
    options = "{ resultTypes: ['violations'], iframes: false }"
    for theme, key in [
        *[("light", key) for key in ("rows", "failures", "recipe", "scatter", "fall")],
        ("dark", "distributions"),
        ("dark", "fall"),
    ]:
        page.emulate_media(color_scheme=theme)
        page.locator(f"#tab-{key}").click()
        found = page.evaluate(f"axe.run(document, {options})")["violations"]
        bad = [
            (problem["id"], node["target"])
            for problem in found
            if problem["impact"] in ("serious", "critical")
            for node in problem["nodes"]
        ]
        assert bad == [], (theme, key)


@pytest.mark.parametrize("size", [(390, 844), (1280, 800)], ids=lambda s: f"{s[0]}x{s[1]}")
def test_nothing_is_wider_than_the_window(chromium, path, size):
    watch = Watch(chromium, size)
    watch.page.goto(path.as_uri())
    until(watch.page, "Boolean(window.report?.scatter)")
    assert watch.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    watch.judge()
