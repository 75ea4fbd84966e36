"""Events on the page: what one asks after a fall is there, at most two clicks away, with Python's numbers."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import numpy as np
import pytest
from test_viewer_browser import LAYOUT, Watch, drawn, time_of
from test_viewer_layout import REACH, SIZES, WELL
from viewer_cases import EVIL, pendulum

import robokit as rk
from robokit.contact.measures import KINDS, Event, newtons
from robokit.model import ModelBuilder, Placement, Shape, Sphere
from robokit.viewer import motion_data, write_page
from robokit.viewer.page import ASSETS
from robokit.viewer.payload import assumed, books, events, important, side_of


@pytest.fixture(scope="module")
def run():
    """A dropped hopper, small enough to be compiled in no time."""
    b = ModelBuilder("hopper").link("hip", 2.0, inertia=np.eye(3) * 0.02, collisions=(Shape(Sphere(0.1)),))
    above, foot = "hip", Placement(position=np.array([0.0, 0.0, -0.3]))
    for k, link in enumerate(("thigh", "shank")):
        ball = Shape(Sphere(0.04), foot)
        b.link(link, 0.7, (0.0, 0.0, -0.15), np.eye(3) * 0.01, visuals=(ball,), collisions=(ball,))
        place = foot if k else Placement()
        b.joint(f"{link}_joint", "revolute", above, link, place, axis=(0, 1, 0), lower=-0.6, upper=0.5)
        above = link
    robot = b.build("floating")
    q0 = rk.standing_configuration(robot, height=0.3, tilt=0.1)
    return rk.simulate(robot, q0, duration=DURATION, dt=2e-3, ground=rk.Ground())


DURATION = 1.2


def of_kind(run, kind):
    return [event for event in run.events if event.kind == kind]


def largest(run, kind):
    return max(of_kind(run, kind), key=lambda event: event.size)


# ---- the data ----------------------------------------------------------------------------------------


def test_each_family_of_kinds_is_drawn():
    script = (ASSETS / "motion" / "happenings.js").read_text(encoding="utf-8")
    drawn = set(re.findall(r"(?m)^  (\w+): \{ colour:", script))
    assert {kind.family for kind in KINDS.values()} == drawn


def test_the_page_has_the_events_of_python(run):
    found = events(run)
    assert [(x.time, x.kind, x.subject) for x in found.happenings] == [
        (x.time, x.kind, x.subject) for x in run.events
    ]
    assert found.left_out == 0
    for x in found.happenings:
        if x.kind in ("limit", "past limit"):
            assert x.body == run.robot.joint(x.subject).body
        elif x.kind in ("impact", "peak force"):
            assert x.body == run.robot.link(x.subject).body and x.link == x.subject


def test_the_tables_are_those_of_the_events(run):
    found = events(run)
    touched = {row.link: row for row in found.touched}
    assert list(touched) == [event.subject for event in of_kind(run, "first contact")]
    for link, row in touched.items():
        assert row.impacts == sum(event.subject == link for event in of_kind(run, "impact"))
        assert found.happenings[row.peak].kind == "peak force" and found.happenings[row.peak].link == link
    reached = {(row.joint, row.side): row for row in found.reached}
    assert set(reached) == {(event.subject, side_of(event)) for event in of_kind(run, "limit")}
    past = [found.happenings[row.past].size for row in found.reached if row.past is not None]
    assert past[0] == f"{largest(run, 'past limit').size:.3g} rad"


def test_what_makes_a_run_doubtful_is_marked(run):
    assert not any(row.doubtful for row in assumed(run))
    about = {"dt": 0.02, "interrupted": True, "steps_not_settled": 3}
    worse = replace(run, summary=run.summary | about)
    rows = [row for row in [*assumed(worse), *books(worse)] if row.doubtful]
    assert [row.label for row in rows] == ["time step", "ended", "unconverged"]
    assert rows[0].note == "long for contact: take 4 ms or less" and rows[2].value == "3"


def test_of_very_many_events_the_important_ones_are_kept():
    made = [Event(0.01 * k, "slip", "foot", float(k % 100), "m/s", "slides") for k in range(3000)]
    made += [Event(0.5 + k, "impact", "hand", 1.0 + k, "N s", "hits") for k in range(5)]
    made += [Event(20.0, "limit", "knee", 1e-6, "rad/s", "reaches its upper limit at 1e-6 rad/s")]
    made += [Event(2.0, "peak force", "hand", 900.0, "N", "feels")]
    made.sort(key=lambda event: event.time)
    kept = important(made, [made[17]], 100)
    assert len(kept) == 100 and kept == sorted(kept, key=lambda event: event.time)
    assert made[17] in kept and {"limit", "peak force"} <= {event.kind for event in kept}
    assert sum(event.kind == "impact" for event in kept) == 5
    assert max(event.size for event in kept if event.kind == "slip") == 99.0


def test_very_long_runs_are_sampled_and_keep_the_largest_force(run, monkeypatch):
    most, known = largest(run, "peak load"), events(run)
    monkeypatch.setattr(motion_data, "MOST_WORK", 0)
    assert known.sampled == "" and events(run) == known  # they were found before
    found = events(replace(run, notes=None))
    assert found.sampled.startswith("every ")
    (load,) = (x for x in found.happenings if x.kind == "peak load")
    assert load.time == pytest.approx(most.time) and load.size == newtons(most.size)


def test_a_file_without_events_has_none_on_its_page(fall):
    assert events(fall) is None


# ---- the page ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def open_page(chromium, run, tmp_path_factory):
    watch = Watch(chromium)
    yield watch.open(write_page(run, tmp_path_factory.mktemp("events") / "run.html"))
    watch.judge()


@pytest.fixture
def page(open_page):
    open_page.evaluate("robokit.openTab('summary'); robokit.timeline.seek(0); robokit.selection.select(null)")
    open_page.get_by_role("button", name="Events", exact=True).click()
    return open_page


def answer(page, label):
    return page.locator(".answer").filter(has=page.locator(".label", has_text=label)).first


def selected(page):
    return page.evaluate("[robokit.selection.body, robokit.selection.link]")


@pytest.mark.browser
def test_every_answer_is_on_the_first_view_and_goes_there_at_a_click(page, run):
    first, force, far = (
        of_kind(run, "first contact")[0],
        largest(run, "peak force"),
        largest(run, "past limit"),
    )
    expected = [
        ("first contact", first, [f"{first.time:.4f} s", first.subject]),
        ("largest force", force, [newtons(force.size), force.subject, f"{force.time:.4f} s"]),
        ("joint limits", far, [far.subject, f"{far.size:.3g} rad", side_of(far), f"{far.time:.4f} s"]),
    ]
    for label, event, texts in expected:
        row = answer(page, label)
        shown = row.inner_text()
        assert all(text in shown for text in texts), shown
        row.click()
        assert time_of(page) == pytest.approx(event.time, abs=1e-9)
        joint = event.kind == "past limit"
        body = run.robot.joint(event.subject).body if joint else run.robot.link(event.subject).body
        assert selected(page)[0] == body
    assert len(of_kind(run, "impact")) == int(answer(page, "impacts").locator("b").inner_text())
    assert answer(page, "rest").locator("b").inner_text() == "not reached"


@pytest.mark.browser
def test_forces_and_limits_of_all_links_and_joints_are_one_click_away(page, run):
    page.get_by_role("button", name="Links", exact=True).click()
    rows = page.locator(".happened tbody tr").all_inner_texts()
    assert len(rows) == len(of_kind(run, "first contact"))
    for event in of_kind(run, "peak force"):
        assert any(event.subject in row and newtons(event.size) in row for row in rows)
    page.get_by_role("button", name="Limits", exact=True).click()
    rows = page.locator(".happened tbody tr").all_inner_texts()
    for event in of_kind(run, "past limit"):
        wanted = (event.subject, side_of(event), f"{event.size:.3g} rad")
        assert any(all(text in row for text in wanted) for row in rows)
    page.locator(".happened tbody tr").first.get_by_role("button").nth(1).click()
    far = largest(run, "past limit")
    assert time_of(page) == pytest.approx(far.time, abs=1e-9)


@pytest.mark.browser
def test_keys_and_buttons_go_from_event_to_event(page, run):
    times = []
    for _ in range(4):
        page.keyboard.press("n")
        times.append(time_of(page))
    page.get_by_role("button", name="Next event").click()
    times.append(time_of(page))
    np.testing.assert_allclose(times, [event.time for event in run.events[:5]], atol=1e-9)
    page.get_by_role("button", name="Previous event").click()
    page.keyboard.press("p")
    assert time_of(page) == pytest.approx(run.events[2].time, abs=1e-9)
    current = page.locator(".happening.current")
    assert current.count() == 1 and run.events[2].text in current.inner_text()
    assert selected(page)[1] == run.events[2].subject


@pytest.mark.browser
def test_the_list_follows_the_time_and_can_be_filtered(page, run):
    middle = run.events[len(run.events) // 2]
    page.evaluate(f"robokit.timeline.seek({middle.time + 1e-6})")
    last = [event for event in run.events if event.time <= middle.time][-1]
    current = page.locator(".happening[aria-current]")
    assert last.text in current.inner_text()
    box, around = current.bounding_box(), page.locator(".details").bounding_box()
    assert around["y"] - 1 <= box["y"] and box["y"] + box["height"] <= around["y"] + around["height"] + 1
    assert page.locator(".happening").count() == len(run.events)
    page.locator(".kind", has_text="Limits").click()
    limits = [event for event in run.events if "limit" in event.kind]
    assert page.locator(".happening:visible").count() == len(run.events) - len(limits)
    page.keyboard.press("Home")
    page.locator(".kind", has_text="Limits").click()


@pytest.mark.browser
def test_the_lane_has_every_event_and_goes_there(page, run):
    marks = page.evaluate("robokit.lane.marks.map(({ entries }) => entries.map((entry) => entry.number))")
    assert sorted(k for mark in marks for k in mark) == list(range(len(run.events)))
    boxes = [mark.bounding_box() for mark in page.locator(".mark").all()]
    assert all(a["x"] + 6 <= b["x"] for a, b in itertools.pairwise(boxes))
    track = page.locator("#scrub").bounding_box()
    for box, mark in zip(boxes, marks, strict=True):
        # The middle of the thumb is 7 px from the ends of the track.
        at = (box["x"] + box["width"] / 2 - track["x"] - 7) / (track["width"] - 14) * DURATION
        assert run.events[min(mark)].time - 0.01 < at < run.events[max(mark)].time + 0.01
    force = largest(run, "peak load")
    (crowded,) = (k for k, mark in enumerate(marks) if run.events.index(force) in mark)
    page.locator(".mark").nth(crowded).hover()
    tip = page.locator("#lane-tip").inner_text()
    assert newtons(force.size) in tip and f"{force.time:.4f} s" in tip
    page.locator(".mark").nth(crowded).click()
    assert time_of(page) == pytest.approx(force.time, abs=1e-9)
    page.locator(".mark").nth(crowded).click()
    assert page.evaluate("robokit.happenings.current.number") in marks[crowded]
    page.mouse.move(300, 300)
    assert page.locator("#lane-tip").is_hidden()


@pytest.mark.browser
def test_marks_of_close_events_lie_beside_one_another(page):
    centres = page.evaluate("""() => {
      const own = robokit.lane, lane = Object.create(Object.getPrototypeOf(own));
      const places = Array.from({ length: 30 }, (_, k) => 26 * Math.floor(k / 3) + [0, 11, 13][k % 3]);
      const entries = places.map((x, k) => ({ ...own.happenings.entries[0], number: k,
        time: (x / own.width) * robokit.motion.duration }));
      Object.assign(lane, own, { happenings: { entries, shows: () => true, current: null } });
      lane.draw();
      own.draw();
      return lane.marks.map(({ button }) => parseFloat(button.style.left));
    }""")
    assert len(centres) == 20 and np.diff(centres).min() >= 12.0 - 1e-3


@pytest.mark.browser
def test_what_was_assumed_and_how_the_books_close_is_said(page, run):
    page.get_by_role("button", name="Assumed", exact=True).click()
    said = page.locator(".details").inner_text()
    assert "2 ms" in said and "1 pair of bodies" in said
    page.get_by_role("button", name="Balance", exact=True).click()
    said = page.locator(".details").inner_text()
    assert f"{run.summary['energy_balance']:.3g} J" in said
    assert f"{run.summary['momentum_balance_linear']:.3g} N s" in said


@pytest.mark.browser
def test_the_summary_and_the_lane_fit_at_every_size(page):
    for size in SIZES:
        page.set_viewport_size({"width": size[0], "height": size[1]})
        for key in ("events", "links", "limits", "assumed", "books"):
            page.evaluate(f"robokit.summary.select('{key}')")
            drawn(page)
            assert page.evaluate(REACH) == WELL, (size, key)
            assert page.evaluate(LAYOUT)["cut"] == [] or size[0] < 1280
        lane, whole = (page.locator(name).bounding_box() for name in ("#lane", "#timeline"))
        assert whole["y"] < lane["y"] and lane["y"] + lane["height"] <= whole["y"] + whole["height"]
    page.set_viewport_size({"width": 1280, "height": 800})


@pytest.mark.browser
def test_names_in_events_are_never_markup(chromium, tmp_path):
    robot = pendulum(links=(EVIL, "lower"))
    found = rk.simulate(robot, v0=[20.0, 0.0], duration=0.6, dt=2e-3, joint_damping=0.0)
    assert any(event.kind == "limit" and EVIL in event.subject for event in found.events)
    watch = Watch(chromium)
    page = watch.open(write_page(found, tmp_path / "evil.html"))
    assert EVIL in page.locator(".happening").first.inner_text()
    page.locator(".mark").first.hover()
    assert page.evaluate("window.pwned === undefined")
    assert page.locator(".answer .label").all_inner_texts()[:2] == ["joint limits", "rest"]
    watch.judge()
