// What happened in the run: which event is the current one, which are shown, and the way to each.

// How families of kinds are drawn: a shape each, because colour alone does not tell them apart.
const FAMILIES = {
  Failure: { colour: "x", shape: "M2.2 1 6 4.8 9.8 1 11 2.2 7.2 6 11 9.8 9.8 11 6 7.2 2.2 11 1 9.8 4.8 6 1 2.2z" },
  Forces: { colour: "x", shape: "M6 0 12 6 6 12 0 6z" },
  Contacts: { colour: "z", shape: "M0 1h12L6 11.5z" },
  Limits: { colour: "fill", shape: "M1 1h10v10H1z" },
  Collisions: { colour: "two", shape: "M6 0l1.7 3.9L12 4.3 8.8 7.2l.9 4.3L6 9.3l-3.7 2.2.9-4.3L0 4.3l4.3-.4z" },
  Rest: { colour: "y", shape: "M1.5 1h3.4v10H1.5zM7.1 1h3.4v10H7.1z" },
  Actuators: { colour: "one", shape: "M4.2 0h3.6v4.2H12v3.6H7.8V12H4.2V7.8H0V4.2h4.2z" },
  Slips: { colour: "dissipated", shape: "M6 .5a5.5 5.5 0 1 1 0 11a5.5 5.5 0 0 1 0-11z" },
};

function familyIcon(family, size = 11) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  for (const [key, value] of Object.entries({ viewBox: "0 0 12 12", width: size, height: size, "aria-hidden": "true" })) svg.setAttribute(key, value);
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", FAMILIES[family].shape);
  svg.style.fill = `var(--${FAMILIES[family].colour})`;
  svg.append(path);
  return svg;
}

// Times closer than this are the same [s].
const INSTANT = 1e-9;

class Happenings {
  constructor({ data, timeline, selection }) {
    this.timeline = timeline;
    this.selection = selection;
    const kinds = data.event_kinds.map(({ kind }) => kind);
    this.entries = data.events.happenings.map((happening, k) => ({
      number: k,
      time: happening.time,
      subject: happening.subject,
      body: happening.body,
      link: happening.link,
      text: happening.text,
      size: happening.size,
      kind: happening.kind,
      rank: kinds.indexOf(happening.kind),
      family: data.event_kinds[kinds.indexOf(happening.kind)]?.family || "Contacts",
    }));
    this.families = Object.keys(FAMILIES).filter((name) => this.entries.some((entry) => entry.family === name));
    this.hidden = new Set();
    this.current = null;
    this.listeners = { current: [], shown: [] };
    timeline.onChange((time) => this.follow(time));
  }

  // The current event has changed; the events that are shown have changed.
  onCurrent(listener) { this.listeners.current.push(listener); }

  onShown(listener) { this.listeners.shown.push(listener); }

  shows(entry) { return !this.hidden.has(entry.family); }

  filter(family, on) {
    if (on) this.hidden.delete(family);
    else this.hidden.add(family);
    for (const listener of this.listeners.shown) listener();
    this.follow(this.timeline.time);
  }

  // Pause at an event and select what it is about.
  go(number) {
    const entry = this.entries[number];
    this.timeline.pause();
    this.mark(entry);
    this.timeline.seek(entry.time);
    if (entry.body !== null) this.selection.select(entry.body, entry.link);
  }

  // The next event (1) or the one before (-1) of those that are shown; several at one time come one by one.
  step(by) {
    const { time } = this.timeline;
    const shown = this.entries.filter((entry) => this.shows(entry));
    const here = this.current && this.at(this.current, time) ? shown.indexOf(this.current) : -1;
    const next = here >= 0 ? shown[here + by] : by > 0 ? shown.find((entry) => entry.time > time) : shown.findLast((entry) => entry.time < time);
    if (next) this.go(next.number);
  }

  at(entry, time) { return Math.abs(Math.min(entry.time, this.timeline.motion.duration) - time) < INSTANT; }

  // The last event until now, unless another one of the same instant was gone to.
  follow(time) {
    if (this.current && this.shows(this.current) && this.at(this.current, time)) return;
    this.mark(this.entries.findLast((entry) => this.shows(entry) && entry.time <= time + INSTANT) || null);
  }

  mark(entry) {
    if (entry === this.current) return;
    this.current = entry;
    for (const listener of this.listeners.current) listener(entry);
  }
}
