"""Coupled mimic joints on the page: drawn and listed, moved by the coordinate they follow."""

from __future__ import annotations

import json

import numpy as np

from robokit.model import Mimic, ModelBuilder, couple
from robokit.viewer.page import json_for_html
from robokit.viewer.payload import pose_payload


def test_followers_are_in_the_joint_table():
    b = ModelBuilder("m").link("a").link("b", 1.0, inertia=np.eye(3)).link("c", 1.0, inertia=np.eye(3))
    b.joint("k", "revolute", "a", "b", mimic=Mimic("j", -2.0, 0.3)).joint("j", "prismatic", "a", "c")
    payload = pose_payload(couple(b.build()))
    follower, leader = json.loads(json_for_html(payload.joints))
    assert (follower["name"], follower["q"], follower["follows"]) == ("k", [0, 0], [0, -2.0])
    assert (leader["name"], leader["q"], leader["follows"]) == ("j", [0, 1], None)
    assert payload.robot.dof == 1
