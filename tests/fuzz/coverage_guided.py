"""Coverage-guided fuzzing of the importer with atheris: bytes through load, check, listing and JSON.

    pip install "robokit[fuzz]"
    python -m tests.fuzz.coverage_guided --seconds 600

Not part of the test suite. libFuzzer keeps the inputs that reach new branches of robokit and changes them
further: bytes, with a dictionary of URDF's words, and as often elements and values as mutations.py does.
It starts from our robots, generated ones and the texts of tests/urdf/urdf_cases.py. Each input must load or
raise RobokitError, and be judged and printed, within a second and without any other exception. What breaks
this is kept in a folder, one file a place in the code.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
LONGEST = 8192  # bytes of an input
ALLOWED = 1.0  # seconds for one input
HUNG = 20  # seconds after which libFuzzer gives up
OUTCOMES = ("loaded", "refused", "crashed")
BOOKED = 100  # inputs between two notes of what happened
WORDS = (
    *("<robot", "</robot>", "<link", "</link>", "<joint", "</joint>", "<loop_joint", "<inertial>", "<mass"),
    *("<inertia", "<origin", "<parent", "<child", "<axis", "<limit", "<dynamics", "<mimic", "<visual>"),
    *(
        "<collision>",
        "<geometry>",
        "<box",
        "<sphere",
        "<cylinder",
        "<capsule",
        "<mesh",
        "<material",
        "<color",
    ),
    *(
        "<texture",
        "<safety_controller",
        "<calibration",
        "<transmission",
        "<gazebo",
        "<predecessor",
        "<successor",
    ),
    *(
        "xyz=",
        "rpy=",
        "quat_xyzw=",
        "name=",
        "type=",
        "link=",
        "joint=",
        "value=",
        "ixx=",
        "ixy=",
        "iyy=",
        "izz=",
    ),
    *("lower=", "upper=", "effort=", "velocity=", "damping=", "friction=", "multiplier=", "offset=", "size="),
    *("radius=", "length=", "filename=", "scale=", "rgba=", "revolute", "continuous", "prismatic", "fixed"),
    *("floating", "planar", "spherical", "cylindrical", "helical", "package://", "floating_base", "world"),
    *("0 0 0", "1e308", "-1e308", "1e-320", "1e999", "nan", "inf", "1_0", "1,5", "0x1", "${x}", "$(arg x)"),
    *(
        "<!--",
        "-->",
        "<![CDATA[",
        "]]>",
        "<!DOCTYPE",
        "<?xml",
        "encoding=",
        "utf-16",
        "latin-1",
        "xacro:",
        "&#0;",
    ),
    *("&amp;", "&lt;", "xmlns=", "xmlns:xacro=", "\\xff\\xfe", "\\xef\\xbb\\xbf", "\\x00", "/>"),
)


def fuzz(folder: Path, seconds: int, seed: int) -> None:
    """Runs libFuzzer in this process, which ends with it; what happens is booked in files of the folder."""
    import atheris

    sys.path.insert(0, str(TESTS))
    with atheris.instrument_imports(include=["robokit"]):
        import robokit as rk
        from robokit.urdf import check_urdf
        from robokit.urdf.lint import CheckedFile, Paint, as_json, listing
    from tests.fuzz.mutations import CHANGES, seeds

    texts = seeds()
    warnings.simplefilter("error")  # a warning of NumPy's is not silence
    outcomes: Counter[str] = Counter()
    worst = {"seconds": 0.0}

    def judge(data: bytes) -> str:
        try:
            rk.loads_urdf(data, base=("fixed", "floating")[len(data) % 2])
            outcome = "loaded"
        except rk.RobokitError as error:
            outcome = "refused"
            str(error)
        description, found = check_urdf(data, base="either", plausible=True)
        checked = [CheckedFile("<string>", description, found)]
        "\n".join(listing(checked, Paint(True), inertias=True))
        json.dumps(as_json(checked, inertias=True), allow_nan=False)
        return outcome

    def one(data: bytes) -> None:
        start = time.perf_counter()
        try:
            outcome = judge(data)
        except Exception as error:
            outcome = "crashed"
            place = traceback.extract_tb(error.__traceback__)[-1]
            name = f"crash_{type(error).__name__}_{Path(place.filename).stem}_{place.lineno}"
            if not (folder / name).exists():
                (folder / name).write_bytes(data)
        spent = time.perf_counter() - start
        if spent > worst["seconds"]:
            worst["seconds"] = spent
            (folder / "slowest").write_bytes(data)
        outcomes[outcome] += 1
        if sum(outcomes.values()) % BOOKED == 0:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            booked = {**outcomes, "worst": worst["seconds"], "peak_kib": peak}
            (folder / "booked.json").write_text(json.dumps(booked))

    def changed(data: bytes, longest: int, seed: int) -> bytes:
        rng = random.Random(seed)
        if rng.random() < 0.5:
            return atheris.Mutate(data, longest)
        text = rng.choice(CHANGES)(data.decode("utf-8", "replace"), rng, texts)
        return text.encode("utf-8", "replace")[:longest]

    options = [
        str(folder / "corpus"),
        f"-dict={folder / 'words'}",
        f"-max_len={LONGEST}",
        f"-max_total_time={seconds}",
        f"-timeout={HUNG}",
        f"-seed={seed}",
        f"-artifact_prefix={folder}/",
        "-print_final_stats=1",
        "-rss_limit_mb=0",
    ]
    atheris.Setup([sys.argv[0], *options], one, custom_mutator=changed)
    atheris.Fuzz()


def prepare(folder: Path) -> int:
    """Writes the corpus and the dictionary; returns how many files the corpus has."""
    sys.path.insert(0, str(TESTS / "urdf"))
    import urdf_cases

    from tests.fuzz.mutations import seeds

    texts: list[str | bytes] = list(seeds())
    for case in (*urdf_cases.CASES.values(), *urdf_cases.MORE.values()):
        texts += [part for part in case[:2] if isinstance(part, (str, bytes))]
    (folder / "corpus").mkdir(exist_ok=True)
    kept = 0
    for k, text in enumerate(texts):
        data = text.encode() if isinstance(text, str) else text
        if len(data) <= LONGEST:
            (folder / "corpus" / f"start_{k}").write_bytes(data)
            kept += 1
    (folder / "words").write_text("".join(f'"{word}"\n' for word in WORDS))
    return kept


def retimed(path: Path) -> float:
    """Seconds that an input takes in this process, which is not instrumented."""
    import robokit as rk
    from robokit.urdf import check_urdf

    data = path.read_bytes()
    start = time.perf_counter()
    with contextlib.suppress(rk.RobokitError):
        rk.loads_urdf(data)
    check_urdf(data, base="either", plausible=True)
    return time.perf_counter() - start


def report(folder: Path, said: str) -> bool:
    """Prints what a run saw; whether it is as it must be."""
    booked = json.loads((folder / "booked.json").read_text())
    crashes = sorted(path.name for path in folder.glob("crash*"))
    hangs = sorted(path.name for path in folder.glob("timeout*"))
    runs = re.search(r"stat::number_of_executed_units:\s*(\d+)", said)
    covered = re.findall(r"cov: (\d+)", said)
    worst = retimed(folder / "slowest")
    print(f"inputs tried      {int(runs[1]) if runs else sum(booked.get(k, 0) for k in OUTCOMES):,}")
    print(f"loaded            {booked.get('loaded', 0):,}")
    print(f"refused           {booked.get('refused', 0):,}")
    if covered:
        print(f"branches reached  {covered[-1]}, {covered[0]} by the files to start from")
    print(f"corpus            {len(list((folder / 'corpus').iterdir())):,} files")
    print(f"crashes           {booked.get('crashed', 0)}, at {len(crashes)} places")
    print(f"hangs             {len(hangs)}")
    print(f"worst time        {booked['worst']:.3f} s instrumented, {worst:.3f} s as it is")
    print(f"peak memory       {booked['peak_kib'] / 1024:.0f} MiB, libFuzzer's included")
    for name in (*crashes, *hangs):
        print(f"kept: {folder / name}")
    return not crashes and not hangs and worst <= ALLOWED


def main() -> int:
    """Runs libFuzzer in a process of its own and reports; 1 where something crashed, hung or took long."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=int, default=600, help="how long")
    parser.add_argument("--seed", type=int, default=1, help="libFuzzer's seed")
    parser.add_argument("--folder", type=Path, help="for the corpus and what is found; a new one by default")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        fuzz(arguments.folder, arguments.seconds, arguments.seed)
        return 0
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="robokit_fuzz_"))
    folder.mkdir(parents=True, exist_ok=True)
    print(f"{prepare(folder)} files to start from; what is found is kept in {folder}")
    command = [sys.executable, "-m", "tests.fuzz.coverage_guided", "--inside", "--folder", str(folder)]
    command += ["--seconds", str(arguments.seconds), "--seed", str(arguments.seed)]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, errors="replace", check=False)
    (folder / "libfuzzer.log").write_text(done.stderr)
    if not (folder / "booked.json").exists():
        print(done.stderr[-2000:])
        return 1
    return int(not report(folder, done.stderr) or done.returncode != 0)


if __name__ == "__main__":
    sys.exit(main())
