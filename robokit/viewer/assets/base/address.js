// The page's address holds what is shown: time, camera, overlays, tab and selected link. Whoever opens it again,
// or is sent it, sees the same. What is as it was at first is left out.

const WRITE_EVERY = 400; // milliseconds; browsers refuse much more than a hundred changes in half a minute

class Address {
  constructor(page) {
    this.page = page;
    this.first = this.state();
    this.written = "";
    this.restore();
    addEventListener("hashchange", () => {
      if (location.hash === this.known) return;
      this.page.opening.stop();
      this.restore();
    });
    this.writing = setInterval(() => this.write(), WRITE_EVERY);
  }

  // Whether the address that the page was opened with says this.
  named(key) { return this.given.has(key); }

  // The time at which the page comes to rest where its address names none.
  opensAt(time) { this.first.t = this.time(time); }

  time(seconds) { return String(Number(seconds.toFixed(4))); }

  state() {
    const { timeline, stage, panels, selection } = this.page;
    const { framing, viewer } = stage;
    const round = (v) => v.toArray().map((x) => Number(x.toPrecision(5)));
    const moved = framing.touched || framing.last.join() !== framing.angles.join();
    const shown = [...$("switches").querySelectorAll("button[data-key]")].filter((button) => button.getAttribute("aria-pressed") === "true");
    return {
      t: timeline ? this.time(timeline.time) : "0",
      show: shown.map((button) => button.dataset.key).join(),
      tab: panels.current || "",
      link: selection.link || "",
      opacity: String(stage.share),
      follow: framing.following ? "1" : "0",
      goes: framing.following ? framing.link?.name ?? "" : "",
      camera: moved ? [...round(zUp(viewer.camera.position)), ...round(zUp(viewer.controls.target))].join() : "",
    };
  }

  // While a motion plays its time would change at every look: it is written when it stops.
  write() {
    if (this.page.opening?.waits || this.page.timeline?.playing || this.page.run?.running) return;
    if (location.hash !== this.known) return; // a new address, whose event is on its way
    const now = this.state();
    const parts = Object.keys(now).filter((key) => now[key] !== this.first[key]).map((key) => `${key}=${encodeURIComponent(now[key]).replace(/%2C/g, ",")}`);
    const text = parts.join("&");
    if (text === this.written) return;
    this.written = text;
    try {
      history.replaceState(history.state, "", text ? `#${text}` : location.href.split("#")[0]);
      this.known = location.hash;
    } catch {
      clearInterval(this.writing); // a page inside another one has no address of its own
    }
  }

  restore() {
    this.known = location.hash; // as it was last read or written
    const given = new URLSearchParams(location.hash.slice(1).replace(/\+/g, "%2B"));
    this.given = given;
    if (![...given.keys()].length) return;
    const { timeline, stage, panels, selection, data, cameras } = this.page;
    const read = (key) => given.get(key) ?? this.first[key];
    const time = Number(read("t"));
    if (timeline && Number.isFinite(time)) { timeline.pause(); timeline.seek(time); }
    const shown = read("show").split(",");
    for (const button of $("switches").querySelectorAll("button[data-key]")) {
      if ((button.getAttribute("aria-pressed") === "true") !== shown.includes(button.dataset.key)) button.click();
    }
    if (panels.known.has(read("tab")) && !panels.shows(read("tab"))) panels.open(read("tab"));
    const link = data.links.find(({ name }) => name === read("link"));
    if (link) selection.select(link.body, link.name);
    else if (selection.body !== null) selection.select(null);
    const share = Number(read("opacity"));
    if (share > 0) cameras.opacity(Math.min(share, 1));
    if (stage.framing.canFollow) cameras.follow(read("follow") === "1", read("goes") || null);
    const numbers = read("camera").split(",").map(Number);
    if (numbers.length === 6 && numbers.every(Number.isFinite)) stage.framing.place(numbers);
  }
}
