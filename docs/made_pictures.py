"""Makes the pictures and films of the manual's gallery and of its path: python docs/made_pictures.py

Each is made by the code that its page shows: an example, or the Python of a page. What is kept in
docs/_static/made has a stamp of that code, docstrings apart; a build of the manual makes again what has
changed since, where Chromium is there, and shows what is kept where it is not (docs/_ext/made.py). Needs the
extra ``film``.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "docs" / "_static" / "made"
STAMPS = KEPT / "stamps.json"
BLOCK = re.compile(r"^\.\. code-block:: python\n\n((?:   .*\n|\n)+)", re.M)
WIDEST = 960
"""Widest picture [px]; larger ones are made smaller."""


@dataclass(frozen=True)
class Recipe:
    """How a picture is made from what code writes.

    Attributes:
        source: an example, or a page of docs/path, from the root of the repository.
        writes: the file that its code writes.
        speed: of a film: seconds of motion a second.
        fps: of a film.
        at: of a picture of a page: the time that it shows [s]; None for the middle.
        panels: whether a picture shows the whole page, or the scene alone.
        options: of the example, on its command line.
    """

    source: str
    writes: str
    speed: float = 1.0
    fps: float = 15.0
    at: float | None = None
    panels: bool = False
    options: tuple[str, ...] = ()


def example(name: str, writes: str, **how: object) -> Recipe:
    """The recipe of an example."""
    return Recipe(f"examples/{name}.py", writes, **how)  # type: ignore[arg-type]


def page(name: str, writes: str, **how: object) -> Recipe:
    """The recipe of a page of the path."""
    return Recipe(f"docs/path/{name}.rst", writes, **how)  # type: ignore[arg-type]


RECIPES = {
    "gallery/00_fall_in_the_browser.mp4": example("00_fall_in_the_browser", "fall.html"),
    "gallery/01_double_pendulum_energy.png": example("01_double_pendulum_energy", "double_pendulum.png"),
    "gallery/02_inverse_dynamics.png": example("02_inverse_dynamics", "inverse_dynamics.png"),
    "gallery/03_mass_matrix_pattern.png": example("03_mass_matrix_pattern", "mass_matrix.png"),
    "gallery/04_centroidal_momentum.mp4": example("04_centroidal_momentum", "tumble.html"),
    "gallery/05_robot_in_code.mp4": example("05_robot_in_code", "screw.html"),
    "gallery/06_pushed_humanoids.png": example("06_pushed_humanoids", "pushed.png"),
    "gallery/07_robots_not_quite_alike.png": example("07_robots_not_quite_alike", "not_alike.png"),
    "gallery/08_stand_and_push.mp4": example("08_stand_and_push", "stand.html", options=("--stand", "1")),
    "gallery/09_closed_loop.mp4": example("09_closed_loop", "four_bar.html"),
    "gallery/10_reach.png": example("10_reach", "reach.html"),
    "gallery/11_identification.png": example("11_identification", "identification.png"),
    "gallery/12_operational_space.mp4": example("12_operational_space", "operational_space.html"),
    "gallery/13_own_function.png": example("13_own_function", "effort.png"),
    "gallery/14_swing_up_with_casadi.png": example("14_swing_up_with_casadi", "swing_up.png"),
    "gallery/15_gradients_in_jax.png": example("15_gradients_in_jax", "arrivals.png"),
    "gallery/16_balance_by_derivatives.png": example("16_balance_by_derivatives", "balance.png"),
    "gallery/17_step_by_step.mp4": example("17_step_by_step", "squat.html"),
    "gallery/23_log_of_a_real_robot.png": example("23_log_of_a_real_robot", "log.html", at=1.0, panels=True),
    "gallery/24_push_felt_by_motors.png": example("24_push_felt_by_motors", "push.png"),
    "gallery/18_velocity_ik_with_limits.mp4": example("18_velocity_ik_with_limits", "circle.html"),
    "gallery/19_stand_by_lqr.mp4": example("19_stand_by_lqr", "lqr.html", speed=0.5),
    "gallery/20_swing_up_by_ilqr.mp4": example("20_swing_up_by_ilqr", "swing_up.html"),
    "gallery/21_catch_a_push.mp4": example("21_catch_a_push", "catch.html", speed=0.5),
    "gallery/22_model_predictive_control.mp4": example("22_model_predictive_control", "mpc.html"),
    "gallery/25_ten_thousand_falls.mp4": example("25_ten_thousand_falls", "farthest.html", speed=0.5),
    "path/first_fall.mp4": page("first_fall", "fall.html", speed=0.5),
    "path/your_robot.png": page("your_robot", "arm.html", panels=True),
    "path/the_page.png": page("the_page", "drop.html", at=0.3, panels=True),
    "path/batches.png": page("batches", "pendulums.png"),
    "path/sweep.png": page("sweep", "sweep.png"),
    "path/controller.mp4": page("controller", "stand.html", speed=0.75, fps=12.0),
}


def code(path: Path) -> str:
    """The Python of a page, or of a program."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return text
    return "\n".join(re.sub(r"^   ", "", block, flags=re.M) for block in BLOCK.findall(text))


def stamp(name: str) -> str:
    """Of what a picture depends on: its recipe and its code, without the docstring of the program."""
    recipe = RECIPES[name]
    return hashlib.sha256(repr((bare(code(ROOT / recipe.source)), astuple(recipe))).encode()).hexdigest()[:16]


def bare(program: str) -> str:
    """A program without its docstring, which is edited more often than what it does."""
    first, lines = ast.parse(program).body[0], program.splitlines()
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        del lines[first.lineno - 1 : first.end_lineno]
    return "\n".join(lines)


def stale() -> list[str]:
    """Names whose kept picture is missing, or of older code."""
    kept = json.loads(STAMPS.read_text(encoding="utf-8")) if STAMPS.exists() else {}
    return [name for name in RECIPES if kept.get(name) != stamp(name) or not (KEPT / name).exists()]


def make(name: str, folder: Path) -> Path:
    """Run the code and make the picture or film, in a folder like KEPT.

    Raises:
        RuntimeError: the code failed.
        robokit.MissingDependency: no browser.
    """
    recipe, target = RECIPES[name], folder / name
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        run(recipe, Path(place))
        written = Path(place) / recipe.writes
        if written.suffix == ".png":
            smaller(written, target)
        elif target.suffix == ".mp4":
            from robokit.viewer import write_film

            write_film(written, target, size=(480, 320), fps=recipe.fps, speed=recipe.speed)
        else:
            from robokit.viewer import write_picture

            shot = Path(place) / "picture.png"
            write_picture(written, shot, at=recipe.at, size=(1280, 800), panels=recipe.panels)
            smaller(shot, target)
    return target


def run(recipe: Recipe, place: Path) -> None:
    """The code of a recipe, in a folder of its own."""
    program = place / "program.py"
    program.write_text(code(ROOT / recipe.source), encoding="utf-8")
    options = ("--headless", *recipe.options) if recipe.source.startswith("examples/") else ()
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, str(program), *options],
        cwd=place,
        env={**os.environ, "PYTHONPATH": paths, "MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{recipe.source} ended with {done.returncode}:\n{done.stderr[-2000:]}")


def smaller(picture: Path, target: Path) -> None:
    """A picture at most WIDEST wide, with a palette where that costs nothing to look at."""
    from PIL import Image

    image = Image.open(picture).convert("RGB")
    if image.width > WIDEST:
        image = image.resize((WIDEST, round(image.height * WIDEST / image.width)), Image.Resampling.LANCZOS)
    image.quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(target, optimize=True)


def main(names: Iterable[str]) -> None:
    """Make what is named, or what is stale, and keep it with its stamp."""
    for name in list(names) or stale():
        made = make(name, KEPT)
        kept = json.loads(STAMPS.read_text(encoding="utf-8")) if STAMPS.exists() else {}
        kept[name] = stamp(name)
        STAMPS.write_text(json.dumps(dict(sorted(kept.items())), indent=1) + "\n", encoding="utf-8")
        print(f"{name}: {made.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
