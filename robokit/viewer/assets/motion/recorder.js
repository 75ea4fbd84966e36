// The motion as a film: the browser's own encoder takes picture after picture of the view.

const FILM_TYPES = ["video/webm;codecs=vp9", "video/webm;codecs=vp8", "video/webm", "video/mp4"];

const FILM_FRAME = 1000 / 30;

class Recorder {
  constructor(page, report) {
    this.page = page;
    this.report = report;
    this.active = null;
  }

  static type() {
    return typeof MediaRecorder === "undefined" ? undefined : FILM_TYPES.find((type) => MediaRecorder.isTypeSupported(type));
  }

  // Returns a promise of the film as a Blob, or of null where it was cancelled. `picture` draws on a canvas.
  async record(picture) {
    const { timeline } = this.page;
    const { time, playing, speed } = timeline;
    const active = { cancelled: false };
    this.active = active;
    timeline.pause();
    timeline.seek(0);
    const canvas = picture(element("canvas"));
    const stream = canvas.captureStream(0);
    const [track] = stream.getVideoTracks();
    const recorder = new MediaRecorder(stream, { mimeType: Recorder.type(), videoBitsPerSecond: 8e6 });
    const pieces = [];
    recorder.addEventListener("dataavailable", ({ data: piece }) => { if (piece.size) pieces.push(piece); });
    const ended = new Promise((resolve, reject) => {
      recorder.addEventListener("stop", resolve);
      recorder.addEventListener("error", (event) => reject(event.error || new Error("the browser's encoder failed")));
    });
    try {
      // The encoder's clock stands still while a picture is drawn: a slow machine makes the same film, later.
      recorder.start();
      let shown = 0, last = false;
      while (!active.cancelled && recorder.state !== "inactive") {
        const began = performance.now();
        recorder.resume();
        track.requestFrame();
        await new Promise((resolve) => setTimeout(resolve, FILM_FRAME));
        recorder.pause();
        if (last) break;
        shown += ((performance.now() - began) / 1000) * speed;
        last = shown >= this.page.motion.duration;
        timeline.seek(shown);
        picture(canvas);
        this.report(timeline.time, this.page.motion.duration);
      }
      if (recorder.state !== "inactive") recorder.stop();
      await ended;
    } finally {
      track.stop();
      this.active = null;
      timeline.seek(time);
      if (playing) timeline.play();
    }
    return active.cancelled ? null : new Blob(pieces, { type: recorder.mimeType.split(";")[0] });
  }

  cancel() { if (this.active) this.active.cancelled = true; }
}
