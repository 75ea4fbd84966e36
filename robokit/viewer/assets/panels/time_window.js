// The part of the run that all plots show, between two times [s].

class TimeWindow {
  constructor(duration, least) {
    this.duration = duration;
    this.least = Math.min(least, duration);
    this.from = 0;
    this.to = duration;
    this.listeners = [];
  }

  get whole() { return this.to - this.from > (1 - 1e-9) * this.duration; }

  onChange(listener) { this.listeners.push(listener); }

  set(from, to) {
    const width = Math.min(Math.max(to - from, this.least), this.duration);
    const start = Math.min(Math.max(0.5 * (from + to - width), 0), this.duration - width);
    if (start === this.from && start + width === this.to) return;
    this.from = start;
    this.to = start + width;
    for (const listener of this.listeners) listener(this);
  }

  // Narrower or wider, while the time `at` stays where it is.
  zoom(at, factor) {
    const width = Math.min(Math.max(factor * (this.to - this.from), this.least), this.duration);
    const from = at - ((at - this.from) * width) / (this.to - this.from);
    this.set(from, from + width);
  }

  pan(by) {
    const shift = Math.min(Math.max(by, -this.from), this.duration - this.to);
    this.set(this.from + shift, this.to + shift);
  }

  reset() { this.set(0, this.duration); }

  // Brings a time into view, near the left edge, so that playing on from there is seen.
  follow(time) {
    const slack = 1e-6 * this.duration;
    if (time >= this.from - slack && time <= this.to + slack) return;
    this.pan(time - 0.05 * (this.to - this.from) - this.from);
  }
}
