// The lane of events under the scrub bar: a mark for each, or for several that are close.

// Marks closer than this become one [px].
const MARK_WIDTH = 12;
const TIP_LINES = 6;

class Lane {
  constructor(happenings, timeline) {
    this.happenings = happenings;
    this.timeline = timeline;
    this.host = $("lane");
    this.tip = $("lane-tip");
    this.host.hidden = false;
    this.host.closest(".track").classList.add("with-lane");
    const buttons = { "event-back": ["eventBack", -1], "event-on": ["eventOn", 1] };
    for (const [id, [picture, by]] of Object.entries(buttons)) {
      $(id).append(icon(picture));
      $(id).hidden = false;
      $(id).addEventListener("click", () => happenings.step(by));
    }
    happenings.onShown(() => this.draw());
    happenings.onCurrent(() => this.markCurrent());
    this.width = 0;
    new ResizeObserver(() => { if (this.host.clientWidth !== this.width) this.draw(); }).observe(this.host);
  }

  addKeys(shortcuts) {
    shortcuts.add("n", "Next event", () => this.happenings.step(1));
    shortcuts.add("p", "Previous event", () => this.happenings.step(-1));
  }

  // Groups of neighbours, each [{x, entry}...] in the order of time.
  clusters() {
    const scale = this.width / Math.max(this.timeline.motion.duration, 1e-9);
    const found = [];
    for (const entry of this.happenings.entries) {
      if (!this.happenings.shows(entry)) continue;
      const x = Math.min(entry.time * scale, this.width), last = found[found.length - 1];
      if (last && x - last[0].x < MARK_WIDTH) last.push({ x, entry });
      else found.push([{ x, entry }]);
    }
    return found;
  }

  draw() {
    this.width = this.host.clientWidth;
    const groups = this.clusters();
    this.marks = groups.map((group, k) => this.mark(group, groups[k + 1]));
    this.host.replaceChildren(...this.marks.map(({ button }) => button));
    this.tip.hidden = true;
    this.markCurrent();
  }

  mark(group, next) {
    const entries = group.map(({ entry }) => entry).sort((a, b) => a.rank - b.rank || a.number - b.number);
    const [first] = entries;
    const more = entries.length > 1 ? ` and ${entries.length - 1} more` : "";
    const button = element("button", { type: "button", class: "mark", tabindex: "-1", "aria-label": `${first.time.toFixed(4)} s, ${first.kind}: ${first.subject}${more}` }, familyIcon(first.family));
    // In the middle of its own, so that the mark lies over what it stands for, and clear of the next one.
    const middle = (group[0].x + group[group.length - 1].x) / 2;
    button.style.left = `${Math.min(middle, next ? next[0].x - MARK_WIDTH : Infinity)}px`;
    const families = [...new Set(entries.map((entry) => entry.family))];
    if (entries.length > 1) {
      const tints = families.map((name) => element("i", { style: `background: var(--${FAMILIES[name].colour})` }));
      button.append(element("span", { class: "several" }, ...tints));
    }
    // A second click on the same mark goes to its next event.
    button.addEventListener("click", () => {
      const here = entries.indexOf(this.happenings.current);
      this.happenings.go(entries[(here + 1) % entries.length].number);
    });
    button.addEventListener("pointerenter", () => this.show(button, entries));
    button.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    return { button, entries };
  }

  show(button, entries) {
    const lines = entries.slice(0, TIP_LINES).map((entry) => element("div", {}, familyIcon(entry.family), element("b", {}, `${entry.time.toFixed(4)} s`), element("span", {}, `${entry.subject} ${entry.text}`)));
    if (entries.length > TIP_LINES) lines.push(element("div", { class: "more" }, `and ${entries.length - TIP_LINES} more`));
    this.tip.replaceChildren(...lines);
    this.tip.hidden = false;
    const edge = $("timeline").getBoundingClientRect(), at = button.getBoundingClientRect();
    const left = at.left + at.width / 2 - this.tip.offsetWidth / 2 - edge.left;
    this.tip.style.left = `${Math.max(8, Math.min(left, edge.width - this.tip.offsetWidth - 8))}px`;
    this.tip.style.bottom = `${edge.bottom - at.top + 6}px`;
  }

  markCurrent() {
    const { current } = this.happenings;
    for (const { button, entries } of this.marks || []) button.classList.toggle("current", entries.includes(current));
  }
}
