"""The page of a check: findings, the table of inertias, red boxes; in a browser, one box at a time."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from test_viewer_browser import LIT, Watch, until
from viewer_cases import EVIL, pendulum

from robokit.errors import Diagnostic
from robokit.urdf import CODES
from robokit.viewer import write_check_page
from robokit.viewer.page import ODD, ODD_COLOUR, check_payload
from robokit.viewer.payload import pose_payload


def finding(code, element, message="odd"):
    return Diagnostic(CODES[code].severity, code, element, "r.urdf", 7, message, "look again")


FOUND = [
    finding("inertia-triangle", "link 'lower' inertial"),
    finding("limit-locked", "joint 'upper_joint' limit"),
    finding("tag-unknown", "robot"),
]


def test_the_codes_that_make_a_box_red_exist():
    assert set(ODD) <= set(CODES)


def test_findings_know_the_body_they_are_about():
    findings = check_payload(pendulum(), FOUND).check.findings
    assert [(f.link, f.body) for f in findings] == [("lower", 2), ("upper", 1), (None, None)]
    assert all(f.hint == "look again" for f in findings)


def test_the_table_has_every_link_with_mass():
    rows = check_payload(pendulum(), FOUND).check.inertias
    assert [(row.link, row.odd) for row in rows] == [("upper", False), ("lower", True)]
    moments = np.array([0.001, 0.02, 0.02])
    assert np.allclose(rows[0].moments, moments)
    assert np.allclose(np.sort(rows[0].box), np.sort(np.sqrt(6 * (moments.sum() - 2 * moments))))


def test_the_mass_is_that_of_all_links():
    robot = pendulum().with_inertias({"base": (0.5, None, None)})
    payload = check_payload(robot, FOUND)
    assert (payload.robot.total_mass, payload.robot.mass) == (2.5, 2.0)


def test_implausible_boxes_are_red_and_no_box_hides_the_robot():
    nodes = [n for n in check_payload(pendulum(), FOUND).nodes if n.role == "inertia"]
    assert [n.rgba[:3] == list(ODD_COLOUR[:3]) for n in nodes] == [False, True]
    assert all(0.05 <= n.rgba[3] <= 0.55 for n in nodes)


def test_a_page_without_a_check_has_no_such_panel():
    assert pose_payload(pendulum()).check is None


def test_names_cannot_leave_their_place(tmp_path):
    robot = pendulum(links=(EVIL, "lower"))
    found = [finding("inertia-triangle", f"link {EVIL!r} inertial", f"message {EVIL}")]
    text = write_check_page(robot, found, tmp_path / "page.html").read_text(encoding="utf-8")
    assert EVIL not in text
    data = json.loads(re.search(r'id="robokit-data">(.*?)</script>', text, re.S).group(1))
    assert data["check"]["findings"][0]["link"] == EVIL


BOXES = "() => robokit.stage.roles.inertia.filter((s) => s.visible).map((s) => s.userData.link)"


@pytest.mark.browser
def test_pointing_at_a_finding_leaves_one_box(chromium, tmp_path):
    watch = Watch(chromium)
    robot = pendulum().with_inertias({"base": (0.5, None, None)})
    page = watch.open(write_check_page(robot, FOUND, tmp_path / "check.html"))
    assert page.evaluate("() => !document.getElementById('panel-check').hidden")
    facts = " ".join(page.locator("#facts").inner_text().split())
    assert facts.startswith("2.50 kg in total · 2.00 kg moving · 2 dof")
    assert page.locator(".finding").count() == 3 and page.locator(".inertias tr").count() == 4
    assert page.evaluate(BOXES) == ["base", "upper", "lower"]
    page.locator(".finding").first.hover()
    until(page, f"({BOXES})().join() === 'lower'")
    assert page.evaluate(LIT) == [2]
    page.locator(".finding").nth(2).hover()
    until(page, f"({BOXES})().length === 3")
    watch.judge()
