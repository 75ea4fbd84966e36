"""Picking: what is chosen in one part of the page is shown by all others, with Python's numbers."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from test_viewer_browser import LAYOUT, LIT, Watch, drawn, until
from viewer_cases import made_up_motion, zoo

import robokit as rk
from robokit.model import Mimic, ModelBuilder, couple
from robokit.sim.trajectory import Contacts
from robokit.viewer import write_page

pytestmark = pytest.mark.browser

FREE = """(name) => {
  const { stage } = robokit;
  stage.viewer.scene.updateMatrixWorld(true);
  stage.viewer.camera.updateMatrixWorld(true);
  const edge = stage.host.getBoundingClientRect();
  let centre = [edge.left + 40, edge.top + 0.4 * edge.height];
  if (name !== null) {
    const solid = stage.roles.visual.find((one) => one.userData.link === name);
    solid.geometry.computeBoundingSphere();
    const at = solid.localToWorld(solid.geometry.boundingSphere.center.clone()).project(stage.viewer.camera);
    centre = [edge.left + 0.5 * (1 + at.x) * edge.width, edge.top + 0.5 * (1 - at.y) * edge.height];
  }
  const isIt = (x, y) => {
    const node = stage.nodeAt(x, y);
    return (node ? node.link : null) === name;
  };
  for (let r = 0; r < 80; r += 6) {
    for (let turn = 0; turn < 6.2; turn += 0.5) {
      const [x, y] = [centre[0] + r * Math.cos(turn), centre[1] + r * Math.sin(turn)];
      if (isIt(x, y) && isIt(x + 3, y + 3) && isIt(x - 3, y - 3)) return [x, y];
    }
  }
  return null;
}"""
"""A point of the window where this link, or nothing for null, lies under the pointer."""


@pytest.fixture(scope="module")
def standing(humanoid):
    """The made-up fall, on its feet."""
    motion = made_up_motion(humanoid)
    contacts = motion.contacts
    vars(motion)["contacts"] = Contacts(contacts.points, contacts.forces, ("left_foot", "right_foot", "head"))
    return motion


@pytest.fixture(scope="module")
def page(chromium, standing, tmp_path_factory):
    watch = Watch(chromium)
    page = watch.open(write_page(standing, tmp_path_factory.mktemp("select") / "fall.html"))
    page.get_by_role("tab", name="Structure").click()
    yield page
    watch.judge()


@pytest.fixture(autouse=True)
def nothing_selected(page):
    page.evaluate("robokit.selection.select(null)")
    page.mouse.move(640, 20)


def click(page, name):
    at = page.evaluate(FREE, name)
    assert at is not None, name
    page.mouse.click(*at)


def body_of(robot, name):
    return robot.link(name).body


def test_a_click_in_the_scene_selects_the_link_everywhere(page, humanoid):
    click(page, "left_thigh_lower")
    body = body_of(humanoid, "left_thigh_lower")
    link, tree = humanoid.link("left_thigh_lower"), humanoid.tree
    row = page.locator(".row.chosen")
    assert row.count() == 1 and row.get_attribute("aria-selected") == "true"
    assert row.locator(".body").inner_text() == "left_thigh_lower"
    inside, around = row.bounding_box(), page.locator("#tree-rows").bounding_box()
    assert around["y"] - 1 <= inside["y"] <= around["y"] + around["height"] - inside["height"] + 1
    sets = page.locator("#sets").inner_text()
    assert f"λ = {tree.parent[body]}" in sets and f"μ = {{{tree.children[body][0]}}}" in sets
    assert f"ν = {{{body}–{tree.subtree[body][-1]}}}" in sets
    assert f"κ = {{1, {tree.support[body][1]}–{body}}}" in sets
    card = page.locator("#selected")
    assert card.get_by_role("heading").inner_text() == "left_thigh_lower"
    moments = np.linalg.eigvalsh(link.inertia)
    assert f"{link.mass:.2f} kg" in card.inner_text() and f"{moments[-1]:.4f} kg" in card.inner_text()
    assert page.evaluate("[...robokit.structure.matrix.chosen]") == [body]
    assert page.evaluate("[...robokit.curves.picker.chosen]") == [body]
    assert page.evaluate(
        "robokit.stage.shells.map((s) => s.parent === robokit.stage.bodies[robokit.selection.body])"
    ) == [True] * len(link.visuals)
    page.locator("#switches").get_by_role("button", name="Robot").click()
    assert page.evaluate("robokit.stage.shells.some((s) => s.visible)") is False
    page.locator("#switches").get_by_role("button", name="Robot").click()
    assert page.evaluate("robokit.stage.shells.every((s) => s.visible)")
    page.get_by_role("tab", name="Joints").click()
    assert page.locator(".joint.chosen .label").inner_text().startswith(humanoid.body_joints[body - 1].name)
    page.get_by_role("tab", name="Structure").click()


def test_the_card_has_the_force_of_the_ground_at_the_time_shown(page, standing):
    for time in (0.5, 1.2):
        page.evaluate(f"robokit.timeline.seek({time})")
        page.evaluate(f"robokit.selection.select({body_of(standing.robot, 'left_foot')}, 'left_foot')")
        force = standing.contact_forces["left_foot"][np.argmin(np.abs(standing.t - time))]
        shown = page.locator("#selected dl div", has_text="ground").locator("dd").inner_text()
        assert float(shown.removesuffix(" N").replace(" ", "")) == pytest.approx(
            np.linalg.norm(force), rel=5e-3
        )
    page.evaluate(f"robokit.selection.select({body_of(standing.robot, 'neck')}, 'neck')")
    assert "no contact" in page.locator("#selected").inner_text()


@pytest.mark.parametrize("how", ["empty click", "Escape", "button"])
def test_nothing_is_selected_any_more(page, how):
    click(page, "chest")
    assert page.locator("#selected").is_visible()
    if how == "empty click":
        click(page, None)
    elif how == "Escape":
        page.keyboard.press("Escape")
    else:
        page.get_by_role("button", name="Unselect").click()
    assert page.locator(".row.chosen").count() == 0 and not page.locator("#selected").is_visible()
    assert page.evaluate("robokit.stage.shells.length") == 0


def test_a_drag_turns_the_camera_and_selects_nothing(page):
    x, y = page.evaluate(FREE, "chest")
    before = page.evaluate("robokit.stage.viewer.camera.position.toArray()")
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 60, y + 5, steps=3)
    page.mouse.up()
    assert page.evaluate("robokit.selection.body") is None
    assert page.evaluate("robokit.stage.viewer.camera.position.toArray()") != before
    page.get_by_role("button", name="Fit").click()


def test_pointing_lights_scene_tree_joints_and_matrix(page, humanoid):
    body = body_of(humanoid, "left_hip")
    at = page.evaluate(FREE, "left_thigh_upper")
    page.mouse.move(*at)
    until(page, "robokit.selection.pointed !== null")
    pointed = page.evaluate("robokit.selection.pointed")
    assert pointed == body_of(humanoid, "left_thigh_upper")
    under = list(humanoid.tree.subtree[pointed])
    assert set(page.evaluate(LIT)) <= set(under) and page.locator(".row.lit, .row.under").count() == len(
        under
    )
    assert page.evaluate("[...robokit.structure.matrix.lit]") == under
    page.locator(".row").nth(body).scroll_into_view_if_needed()
    page.locator(".row").nth(body).hover()
    assert page.evaluate("robokit.selection.pointed") == body
    assert set(page.evaluate(LIT)) <= set(humanoid.tree.subtree[body])


def test_arrow_keys_walk_the_tree(page, humanoid):
    tree, time = humanoid.tree, page.evaluate("robokit.timeline.time")
    page.locator(".row[tabindex='0']").focus()
    page.keyboard.press("Home")
    for key, body in (
        ("ArrowRight", 1),
        ("ArrowDown", 2),
        ("ArrowLeft", 2),
        ("ArrowLeft", 1),
        ("End", tree.n),
    ):
        page.keyboard.press(key)
        shown = page.evaluate("robokit.selection.body")
        # Body 2 folds at the first ArrowLeft; the last row then is still the last body, of another branch.
        assert shown == body, key
    assert page.locator(".row[tabindex='0']").count() == 1
    folded = page.locator(".row").nth(2)
    assert folded.get_attribute("aria-expanded") == "false" and not page.locator(".row").nth(3).is_visible()
    # What is selected elsewhere is unfolded.
    page.evaluate("robokit.selection.select(4)")
    assert folded.get_attribute("aria-expanded") == "true" and page.locator(".row").nth(4).is_visible()
    assert page.evaluate("robokit.timeline.time") == time


def test_arrow_keys_walk_the_matrix_and_its_zeros_say_why(page, humanoid):
    left, right = (humanoid.joint(f"{side}_knee").v_slice.start for side in ("left", "right"))
    page.evaluate(f"robokit.structure.matrix.move([{left - 2}, {right - 1}])")
    page.locator("#matrix").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    cell = page.locator("#cell")
    text = cell.inner_text()
    assert cell.get_attribute("aria-live") == "polite"
    bodies = [humanoid.joint(f"{side}_knee").body for side in ("left", "right")]
    assert f"H({bodies[0]}, {bodies[1]})" in text and "left_knee × right_knee" in text
    assert "left_shank and right_shank part at pelvis" in text
    page.keyboard.press("Enter")
    assert page.evaluate("robokit.selection.body") == bodies[0]
    page.mouse.move(10, 400)
    assert "part at pelvis" in cell.inner_text()


def test_the_cell_shows_the_number_of_its_time(page, humanoid, standing):
    i, j = humanoid.joint("left_hip_pitch").v_slice.start, humanoid.joint("left_knee").v_slice.start
    shown = set()
    for time in (0.0, 1.0):
        page.evaluate(f"robokit.timeline.seek({time})")
        page.evaluate(f"robokit.structure.matrix.move([{i}, {j}])")
        text = page.locator("#cell .entry").inner_text()
        q = standing.q[np.argmin(np.abs(standing.t - time))]
        assert float(text.split()[0].replace("−", "-")) == pytest.approx(rk.crba(humanoid, q)[i, j], rel=2e-3)
        assert text.split(maxsplit=1)[1].strip() == "kg m²"
        shown.add(text)
    assert len(shown) == 2


def test_operation_counts_are_those_of_cost(page, humanoid):
    page.get_by_role("button", name="Counts").click()
    cost = rk.cost(humanoid)
    for name in ("rnea", "crba", "ltdl", "aba"):
        cells = page.locator(".operations tr", has_text=name.upper()).locator("td").all_inner_texts()
        numbers = [int(text.replace(" ", "")) for text in cells[:4]]
        assert numbers == [cost[name].mul, cost[name].add, cost[name].div, cost[name].sincos]
        assert cells[4].replace("²", "^2") == cost[name].growth
    page.locator(".matrix-card").get_by_role("button", name="H", exact=True).click()


def test_the_structure_tab_in_small_and_large_windows(page):
    for size in ((1024, 600), (1920, 1080)):
        page.set_viewport_size({"width": size[0], "height": size[1]})
        click(page, "chest")
        drawn(page)
        found = page.evaluate(LAYOUT)
        assert found["cut"] == [] and not found["scrolls"]
    page.set_viewport_size({"width": 1280, "height": 800})


def gripper():
    """Fingers of which two follow the third, on a floating hand; every joint has a rotor."""
    b = ModelBuilder("gripper").link("hand", 1.0, (0.1, 0, 0.02), np.diag([0.02, 0.03, 0.01]))
    follows = {"one": Mimic("j_three", -2.0, 0.3), "two": Mimic("j_one", 0.5), "three": None}
    for name, mimic in follows.items():
        b.link(name, 0.3, (0, 0.05, 0.1), np.diag([0.002, 0.003, 0.001]))
        b.joint(f"j_{name}", "revolute", "hand", name, axis=(0, 1, 0), mimic=mimic)
    robot = couple(b.build("floating"))
    rotors = ((), *((0.01 * k,) * (6 if k == 1 else 1) for k in range(1, robot.nbodies + 1)))
    return dataclasses.replace(robot, tree=dataclasses.replace(robot.tree, armature=rotors))


@pytest.mark.parametrize("make", [zoo, gripper], ids=["all kinds", "coupled"])
def test_the_pages_mass_matrix_is_robokits(chromium, tmp_path, make):
    robot = make()
    watch = Watch(chromium)
    page = watch.open(write_page(robot, tmp_path / "robot.html"))
    for seed in range(3):
        q = robot.random_configuration(seed)
        found = np.reshape(
            page.evaluate(f"Array.from(robokit.massMatrix({q.tolist()}))"), (robot.nv, robot.nv)
        )
        H = rk.crba(robot, q)
        scale = np.sqrt(np.diag(H))
        assert (np.abs(found - H) <= 1e-6 * np.outer(scale, scale)).all()
    watch.judge()
