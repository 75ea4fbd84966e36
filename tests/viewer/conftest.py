"""What the viewer's tests share: the humanoid, its made-up fall, a browser."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from viewer_cases import made_up_motion

import robokit as rk
from robokit.model import Box, Capsule, Cylinder, Shape, Sphere

ROBOTS = Path(__file__).parents[2] / "robots"

# No network at start-up, no sandbox (containers), WebGL in software.
CHROMIUM_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
]


@pytest.fixture(scope="session")
def humanoid():
    return rk.load_urdf(ROBOTS / "humanoid.urdf", base="floating")


@pytest.fixture(scope="session")
def fall(humanoid):
    return made_up_motion(humanoid)


@pytest.fixture(scope="session")
def shapes():
    return (
        Shape(Box((0.1, 0.2, 0.3))),
        Shape(Sphere(0.1)),
        Shape(Cylinder(0.05, 0.4)),
        Shape(Capsule(0.05, 0.3)),
    )


@pytest.fixture(scope="session")
def chromium():
    """A headless Chromium, shared by the browser tests."""
    from playwright.sync_api import sync_playwright

    path = os.environ.get("ROBOKIT_CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
    assert Path(path).exists(), f"no browser at {path}; set ROBOKIT_CHROMIUM"
    with sync_playwright() as pw:
        browser = pw.chromium.launch(executable_path=path, args=CHROMIUM_FLAGS)
        yield browser
        browser.close()
