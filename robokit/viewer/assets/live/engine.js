// The page's side of the physics in the page: starts the Worker (worker.js says what it understands) and hands on
// what it sends.
//
//   const engine = new LiveEngine(data.live);
//   engine.on("frame", (frame) => ...);        also "ready", "stopped", "trace", "problem"
//   engine.send("start", { t: 0, q: null, v: null });
//   engine.send("run", { speed: 1 });
//   engine.frame                                the last frame, or null

class LiveEngine {
  constructor(live) {
    this.live = live;
    this.frame = null;
    this.heard = new Map();
    const url = URL.createObjectURL(new Blob([live.worker], { type: "text/javascript" }));
    this.worker = new Worker(url);
    this.worker.onmessage = ({ data: message }) => {
      if (message.kind === "frame") this.frame = message;
      for (const hear of this.heard.get(message.kind) || []) hear(message);
    };
    this.worker.onerror = (event) => {
      for (const hear of this.heard.get("problem") || []) hear({ kind: "problem", message: event.message });
    };
    this.send("load", { live });
  }

  on(kind, hear) { this.heard.set(kind, [...(this.heard.get(kind) || []), hear]); }

  send(kind, values = {}) { this.worker.postMessage({ kind, ...values }); }

  close() { this.worker.terminate(); }
}
