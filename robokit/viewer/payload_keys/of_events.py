"""What happened in a run: the events, and the answers and tables made of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class EventKindData:
    """A kind of event; they are listed with the most important one first: what a crowded mark shows.

    Attributes:
        kind: its name.
        family: of kinds that are drawn and filtered alike.
    """

    kind: str
    family: str


@dataclass(frozen=True)
class HappeningData:
    """An event of the run. (In the scripts ``event`` is the browser's.)

    Attributes:
        time: since the start [s].
        kind: see :data:`robokit.contact.measures.KINDS`.
        subject: name of the link, joint or robot.
        body: number of the body that it happened to, or None.
        link: name of the link that is selected with it, or None.
        text: the event in words, without its subject.
        size: with its unit, in words; may be empty.
    """

    time: float
    kind: str
    subject: str
    body: int | None
    link: str | None
    text: str
    size: str


@dataclass(frozen=True)
class AnswerData:
    """A question and its answer; also an assumption or an entry of the ledger.

    Attributes:
        label: the question, in a word or two.
        value: the answer.
        note: what belongs to it; may be empty.
        event: place of its event in the list, or None.
        doubtful: whether the reader should doubt the run because of it.
    """

    label: str
    value: str
    note: str
    event: int | None
    doubtful: bool


@dataclass(frozen=True)
class TouchedData:
    """A link that touched the ground.

    Attributes:
        link: its name.
        first: place of its first contact in the list of events.
        peak: place of its largest force, or None.
        impacts: how many.
        slid: way that it slid, in words.
    """

    link: str
    first: int
    peak: int | None
    impacts: int
    slid: str


@dataclass(frozen=True)
class ReachedData:
    """A limit that a joint reached.

    Attributes:
        joint: its name.
        side: "upper" or "lower".
        first: place in the list of events where it reached it first.
        past: place where it was furthest past it, or None.
        times: how often it reached it.
        force: largest of the stop that is known, in words; may be empty.
    """

    joint: str
    side: str
    first: int
    past: int | None
    times: int
    force: str


@dataclass(frozen=True)
class EventsData:
    """The lane of events and the summary panel.

    Attributes:
        happenings: the events in the order of time; of very many the important ones.
        left_out: how many are not among them.
        sampled: how often the events were looked for, "" where that is every step.
        answers: to the usual questions.
        touched: links that touched the ground, in the order of their first contact.
        reached: limits that joints reached, the one furthest past first.
        assumed: what was assumed.
        books: how far energy and momentum are accounted for.
    """

    happenings: list[HappeningData]
    left_out: int
    sampled: str
    answers: list[AnswerData]
    touched: list[TouchedData]
    reached: list[ReachedData]
    assumed: list[AnswerData]
    books: list[AnswerData]
