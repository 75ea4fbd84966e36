"""Mutated URDFs: each loads or raises UrdfError within a second, never anything else.

    python -m tests.fuzz.mutations --count 100000 --seed 0

Not part of the test suite: 100,000 inputs take some ten minutes. Valid files (ours, generated ones, and those
of example-robot-data where it is installed) lose, repeat, rename and corrupt elements and attributes, are cut
and spliced. Input k of a seed is always the same; ``--only k`` runs it alone. Ctrl-C
ends early, with a report.
"""

from __future__ import annotations

import argparse
import random
import re
import resource
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import ladder

import robokit as rk
from robokit.robot_names import example_robots
from robokit.urdf import dump

LARGEST = 12_000  # characters of a file to start from: larger ones only take longer
ALLOWED = 1.0  # seconds for one input
HUNG = 20  # seconds after which an input is given up
URDF_KINDS = ("revolute", "continuous", "prismatic", "planar", "floating", "fixed")
TOKEN = re.compile(r'"[^"]*"|<[^>]*>|[\w.+-]+')
VALUES = (
    *(
        "",
        " ",
        "0",
        "-1",
        "1",
        "nan",
        "inf",
        "1e308",
        "-1e308",
        "1e-320",
        "1e999",
        "0x10",
        "1,5",
        "1_000",
        "٣",
    ),
    *(
        "0 0 0",
        "1 2",
        "1e200 1e200 1e200",
        "0 0 0 0",
        "9" * 500,
        "\0",
        "\ud800",
        "${x}",
        "&amp;",
        "&x;",
        "<",
        "../..",
    ),
    *(
        "fixed",
        "floating",
        "planar",
        "continuous",
        "revolute",
        "helical",
        "floating_base",
        "world",
        "mesh",
        "robot",
    ),
)
MARKUP = (
    "<",
    ">",
    "&",
    "]]>",
    "<![CDATA[",
    "<!--",
    "-->",
    "<?x?>",
    "<!DOCTYPE r>",
    "</robot>",
    "<robot>",
    "\0",
    "\x1b",
)


def seeds() -> list[str]:
    """The valid texts that everything starts from."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(ladder.ROBOTS.glob("*.urdf"))]
    for k in range(20):
        texts.append(dump(ladder.random_tree(k, kinds=URDF_KINDS, n=3 + k % 8)))
    for path in sorted(set(example_robots().values())):
        texts.append(path.read_text(encoding="utf-8", errors="replace"))
    return [text for text in texts if len(text) <= LARGEST]


def mutated(rng: random.Random, texts: list[str]) -> str | bytes:
    """A valid text after one to four changes."""
    text = rng.choice(texts)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        text = rng.choice(CHANGES)(text, rng, texts)
    if rng.random() < 0.1:
        data = bytearray(text.encode(rng.choice(("utf-8", "utf-16", "latin-1")), "replace"))
        for _ in range(rng.randint(0, 3)):
            if data:
                data[rng.randrange(len(data))] = rng.randrange(256)
        return bytes(data)
    return text


def _span(text: str, rng: random.Random, pattern: re.Pattern[str] = TOKEN) -> tuple[int, int]:
    """A token near a random place; nothing where there is none."""
    found = pattern.search(text, rng.randrange(len(text) + 1)) or pattern.search(text)
    return found.span() if found else (0, 0)


ELEMENT = re.compile(r"<(\w+)[^<>]*?(?:/>|>.*?</\1>)", re.DOTALL)
VALUE = re.compile(r'(?<=")[^"<>]*(?=")')
NAME = re.compile(r"(?<=[<\s/])[A-Za-z_]\w*(?=[\s=/>])")


def drop(text: str, rng: random.Random, _: list[str]) -> str:
    a, b = _span(text, rng, rng.choice((ELEMENT, TOKEN)))
    return text[:a] + text[b:]


def duplicate(text: str, rng: random.Random, _: list[str]) -> str:
    a, b = _span(text, rng, ELEMENT)
    at = rng.choice((b, _span(text, rng, ELEMENT)[0]))
    return text[:at] + text[a:b] + text[at:]


def rename(text: str, rng: random.Random, _: list[str]) -> str:
    (a, b), (c, d) = _span(text, rng, NAME), _span(text, rng, NAME)
    return text[:a] + rng.choice((text[c:d], text[a:b].upper(), "x")) + text[b:]


def corrupt(text: str, rng: random.Random, _: list[str]) -> str:
    (a, b), (c, d) = _span(text, rng, VALUE), _span(text, rng, VALUE)
    return text[:a] + rng.choice((rng.choice(VALUES), text[c:d])) + text[b:]


def truncate(text: str, rng: random.Random, _: list[str]) -> str:
    return text[: rng.randrange(len(text) + 1)]


def insert(text: str, rng: random.Random, _: list[str]) -> str:
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice((rng.choice(MARKUP), rng.choice(VALUES), " ", "\n" * 1000)) + text[at:]


def splice(text: str, rng: random.Random, texts: list[str]) -> str:
    other = rng.choice(texts)
    (a, b), (c, d) = _span(text, rng, ELEMENT), _span(other, rng, ELEMENT)
    return text[: rng.choice((a, b))] + other[c:d] + text[b:]


def nest(text: str, rng: random.Random, _: list[str]) -> str:
    a, b = _span(text, rng, ELEMENT)
    tag = rng.choice(("link", "joint", "visual", "x"))
    depth = rng.choice((1, 3, 300, 3000))
    return text[:a] + f"<{tag}>" * depth + text[a:b] + f"</{tag}>" * depth + text[b:]


CHANGES = (drop, drop, duplicate, rename, corrupt, corrupt, corrupt, truncate, insert, splice, nest)


class Hung(BaseException):
    """Raised by the alarm; no handler of the importer's catches it."""


@dataclass
class Findings:
    """What a run saw."""

    outcomes: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    crashes: list[str] = field(default_factory=list)
    slow: list[tuple[int, float]] = field(default_factory=list)
    worst: float = 0.0

    def report(self, start_kib: int, seconds: float) -> str:
        """The lines that a run ends with."""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        tried = sum(self.outcomes.values())
        lines = [
            f"inputs tried      {tried:,} in {seconds:.0f} s",
            f"loaded            {self.outcomes['loaded']:,}",
            f"refused           {self.outcomes['refused']:,}, by {len(self.codes)} codes",
            f"crashes           {self.outcomes['crashed']}",
            f"over {ALLOWED:g} s          {len(self.slow)}",
            f"hangs             {self.outcomes['hung']}",
            f"worst time        {self.worst:.3f} s",
            f"peak memory       {peak / 1024:.0f} MiB, {(peak - start_kib) / 1024:.0f} MiB above the start",
        ]
        return "\n".join(
            [*lines, *self.crashes[:20], *(f"slow: input {k}, {s:.2f} s" for k, s in self.slow[:20])]
        )


def attempt(k: int, text: str | bytes, found: Findings) -> None:
    """Loads one input and records what happens."""
    start = time.perf_counter()
    try:
        signal.alarm(HUNG)
        rk.loads_urdf(text, base=("fixed", "floating")[k % 2])
        outcome = "loaded"
    except rk.UrdfError as error:
        outcome = "refused"
        found.codes.update({d.code for d in getattr(error, "diagnostics", ()) if d.severity == "error"})
        str(error)
    except Hung:
        outcome = "hung"
    except Exception as error:  # other RobokitErrors too: the checks should have told the file's problem
        outcome = "crashed"
        where = traceback.extract_tb(error.__traceback__)[-1]
        found.crashes.append(f"crash: input {k}: {error!r} at {Path(where.filename).name}:{where.lineno}")
    finally:
        signal.alarm(0)
    seconds = time.perf_counter() - start
    found.outcomes[outcome] += 1
    found.worst = max(found.worst, seconds)
    if seconds > ALLOWED:
        found.slow.append((k, seconds))


def _give_up(*_: object) -> None:
    raise Hung


def main() -> int:
    """Runs the inputs and prints the report; 1 where something crashed, hung or took too long."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=100_000, help="how many inputs")
    parser.add_argument("--seed", type=int, default=0, help="which inputs")
    parser.add_argument(
        "--only", type=int, help="the number of one input, which is printed before it is tried"
    )
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after this time")
    options = parser.parse_args()
    signal.signal(signal.SIGALRM, _give_up)
    warnings.simplefilter("error")  # a warning of NumPy's is not silence
    texts, found = seeds(), Findings()
    print(f"{len(texts)} files to start from")
    inputs = range(options.count) if options.only is None else [options.only]
    start_kib, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
    try:
        for k in tqdm(inputs, mininterval=2.0):
            text = mutated(random.Random(f"{options.seed}:{k}"), texts)
            if options.only is not None:
                print(text if isinstance(text, str) else repr(text))
            attempt(k, text, found)
            if time.perf_counter() - start > options.seconds:
                break
    except KeyboardInterrupt:
        print("stopped")
    print(found.report(start_kib, time.perf_counter() - start))
    return int(bool(found.crashes or found.slow or found.outcomes["hung"]))


if __name__ == "__main__":
    sys.exit(main())
