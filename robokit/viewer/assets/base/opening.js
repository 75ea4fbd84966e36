// A page that is opened plays its motion once and rests at the end: from when it is seen and all of it is drawn (no
// frames are asked for in a window that is hidden), unless its reader wants less motion, or its address names a time.

// The first pictures take long: shaders are compiled.
const FIRST_PICTURES = 3;

// Keys that go with playing.
const PLAY_KEYS = [" ", "l", "L", "[", "]"];

class Opening {
  constructor(page) {
    this.page = page;
    this.pictures = 0;
    this.waits = Boolean(page.timeline) && !page.address.named("t") && !matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.plays = false;
    if (!this.waits) return;
    page.address.opensAt(page.motion.duration);
    // Whoever does something wants to look at what is there.
    document.addEventListener("pointerdown", (event) => this.stop(Boolean(event.target.closest?.("#timeline"))), true);
    document.addEventListener("keydown", (event) => { if (!event.ctrlKey && !event.metaKey && !event.altKey) this.stop(PLAY_KEYS.includes(event.key)); }, true);
    $("view").addEventListener("wheel", () => this.stop(), { capture: true, passive: true });
  }

  // Every time the screen is drawn.
  tick() {
    this.plays &&= this.page.timeline.playing;
    if (!this.waits || !this.page.exports.ready() || this.pictures++ < FIRST_PICTURES) return;
    this.waits = false;
    this.plays = true;
    this.page.timeline.play();
  }

  // own: what is pressed plays, pauses or goes to a time by itself.
  stop(own = false) {
    if (this.plays && !own) this.page.timeline.pause();
    this.waits = this.plays = false;
  }
}
