// The hand on a plot: a click seeks, a drag chooses what is shown, the wheel zooms, Shift and a drag pans, a
// double click shows all; the pointer reads values, and jumps to a peak that is near.

// How near the pointer is to a peak that it jumps to, along and across [px].
const NEAR = { x: 12, y: 26 };

// From how many pixels a press is a drag.
const DRAG = 4;

class PlotHand {
  constructor(plot, act) {
    this.plot = plot;
    this.act = act;
    this.chart = plot.chartObject;
    this.over = this.chart.over;
    this.mode = null;
    this.snapped = null;
    this.playhead = element("div", { class: "playhead" });
    this.line = element("div", { class: "pointed" });
    this.dot = element("div", { class: "peak-dot" });
    this.tip = element("div", { class: "peak-tip" });
    this.marquee = element("div", { class: "marquee" });
    for (const part of [this.line, this.dot, this.tip, this.marquee]) part.hidden = true;
    this.over.append(this.marquee, this.line, this.playhead, this.dot, this.tip);
    const listen = (kind, act, options) => this.over.addEventListener(kind, act, options);
    listen("pointerdown", (event) => this.press(event));
    listen("pointermove", (event) => this.move(event));
    listen("pointerup", (event) => this.release(event));
    listen("pointercancel", () => this.leave());
    listen("pointerleave", () => { if (!this.mode) this.leave(); });
    listen("dblclick", () => this.act.window.reset());
    listen("wheel", (event) => this.wheel(event), { passive: false });
  }

  at(event) { return event.clientX - this.over.getBoundingClientRect().left; }

  timeAt(x) {
    const { from, to } = this.act.window;
    return Math.min(Math.max(from + (x / Math.max(this.over.clientWidth, 1)) * (to - from), 0), this.act.window.duration);
  }

  placeOf(time) { return this.chart.valToPos(time, "x"); }

  press(event) {
    if (event.button !== 0) return;
    this.over.setPointerCapture(event.pointerId);
    this.start = this.last = this.at(event);
    const scrubs = event.pointerType === "touch" || Math.abs(this.start - this.placeOf(this.plot.time)) < 5;
    this.mode = event.shiftKey ? "pan" : scrubs ? "scrub" : "press";
  }

  move(event) {
    const x = this.at(event);
    this.over.style.cursor = this.mode === "pan" ? "grabbing" : !this.mode && Math.abs(x - this.placeOf(this.plot.time)) < 5 ? "ew-resize" : "";
    if (this.mode === "press" && Math.abs(x - this.start) >= DRAG) this.mode = "marquee";
    if (this.mode === "scrub" && Math.abs(x - this.start) >= 1) this.act.seek(this.timeAt(x));
    if (this.mode === "pan") {
      this.act.window.pan(this.timeAt(0) - this.timeAt(x - this.last));
      this.last = x;
    }
    if (this.mode === "marquee") {
      const [left, right] = this.chosen(x);
      this.marquee.hidden = false;
      Object.assign(this.marquee.style, { left: `${left}px`, width: `${right - left}px` });
    }
    this.snapped = this.mode && this.mode !== "press" ? null : this.nearest(x, event.clientY - this.over.getBoundingClientRect().top);
    this.act.point(this.snapped ? this.snapped.time : this.timeAt(x), this.plot);
  }

  chosen(x) {
    const end = Math.min(Math.max(x, 0), this.over.clientWidth);
    return [Math.min(this.start, end), Math.max(this.start, end)];
  }

  release(event) {
    const x = this.at(event);
    const { mode } = this;
    this.mode = null;
    this.marquee.hidden = true;
    if (mode === "marquee") this.act.window.set(...this.chosen(x).map((end) => this.timeAt(end)));
    else if (mode === "press") this.act.seek(this.snapped ? this.snapped.time : this.timeAt(x));
    else if (mode === "scrub" && Math.abs(x - this.start) < 1) this.act.seek(this.timeAt(x));
  }

  leave() {
    this.mode = null;
    this.snapped = null;
    this.marquee.hidden = true;
    this.act.point(null, this.plot);
  }

  wheel(event) {
    event.preventDefault();
    const scale = event.deltaMode === 1 ? 20 : 1;
    const across = event.shiftKey ? event.deltaY || event.deltaX : Math.abs(event.deltaX) > Math.abs(event.deltaY) ? event.deltaX : 0;
    const { window } = this.act;
    if (across) window.pan((scale * across * (window.to - window.from)) / Math.max(this.over.clientWidth, 1));
    else window.zoom(this.timeAt(this.at(event)), Math.exp(0.0015 * scale * event.deltaY));
    this.move(event);
  }

  // The extreme of a line that is nearest to a place: {line, time, value}, or null.
  nearest(x, y) {
    const from = this.timeAt(x - NEAR.x), to = this.timeAt(x + NEAR.x);
    let best = null;
    for (const line of this.plot.shown()) {
      const [first, last] = within(line.x, from, to);
      for (const sign of [1, -1]) {
        let k = -1;
        for (let i = first; i <= last; i++) {
          if (line.x[i] >= from && line.x[i] <= to && Number.isFinite(line.y[i]) && (k < 0 || sign * line.y[i] > sign * line.y[k])) k = i;
        }
        // Higher than the line is where it enters and leaves this part: a peak, no slope and no level.
        const most = sign * line.y[k], beside = [valueAt(line, from), valueAt(line, to)];
        if (k < 0 || !beside.every((value) => most > sign * value + 1e-6 * this.plot.largest)) continue;
        const away = Math.hypot((this.placeOf(line.x[k]) - x) / NEAR.x, (this.chart.valToPos(line.y[k], "y") - y) / NEAR.y);
        // Of lines that lie over one another the first is meant.
        if (away <= 1.5 && (!best || away < best.away - 0.1)) best = { line, time: timeOf(line, k), value: line.y[k], away };
      }
    }
    return best;
  }

  showTime(time) {
    const { from, to } = this.act.window;
    this.playhead.hidden = time < from - 1e-9 || time > to + 1e-9;
    this.playhead.style.left = `${this.placeOf(time)}px`;
  }

  showPointed(time) {
    const own = this.act.over() === this.plot;
    this.line.hidden = time === null;
    this.tip.hidden = time === null || !own;
    this.dot.hidden = !this.snapped || !own;
    if (time === null) return;
    const x = this.placeOf(time), width = this.over.clientWidth;
    this.line.style.left = `${x}px`;
    if (!own) return;
    const clock = `${time.toFixed(this.act.window.to - this.act.window.from < 1 ? 4 : 3)} s`;
    this.tip.textContent = clock;
    if (this.snapped) {
      const { line, value } = this.snapped;
      const y = Math.min(Math.max(this.chart.valToPos(value, "y"), 0), this.over.clientHeight);
      Object.assign(this.dot.style, { left: `${x}px`, top: `${y}px`, borderColor: line.tint });
      this.tip.replaceChildren(`${line.name} `, element("b", {}, this.plot.text(value)), ` at ${clock}`);
    }
    this.tip.style.left = x > 0.5 * width ? "" : `${x + 8}px`;
    this.tip.style.right = x > 0.5 * width ? `${width - x + 8}px` : "";
  }
}
