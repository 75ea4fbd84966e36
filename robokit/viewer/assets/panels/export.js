// The export menu: tables, pictures, a film. All are made in the page; nothing leaves it but the files.

class ExportMenu {
  constructor(page) {
    this.page = page;
    this.recorder = page.timeline ? new Recorder(page, (time, end) => this.progress(time, end)) : null;
    this.entries = [["View, as shown", "PNG", () => this.savePicture(this.view(2), "view")]];
    if (page.timeline) {
      if (Recorder.type()) this.entries.push(["Film of the motion", Recorder.type().includes("webm") ? "WebM" : "MP4", () => this.saveFilm()]);
      this.entries.push(
        ["Plots", "PNG", () => this.savePicture(plotPicture(this.page.curves.plots, window.devicePixelRatio || 1), "plots")],
        ["Curves", "CSV", () => this.saveText(curveTable(page.data), "curves.csv")],
        ["States: q, v, momentum …", "CSV", () => this.saveText(stateTable(page.data, page.motion), "states.csv")],
      );
    }
    this.button = element("button", { id: "export", class: "quiet", type: "button", title: "Export", "aria-label": "Export", "aria-haspopup": "menu", "aria-expanded": "false", "aria-controls": "export-menu" });
    this.button.append(exportIcon());
    this.menu = element("div", { id: "export-menu", role: "menu", "aria-label": "Export" });
    this.menu.hidden = true;
    this.items = this.entries.map(([label, kind, act]) => element("button", { type: "button", role: "menuitem", tabindex: "-1", onclick: () => { this.close(); act(); } }, label, element("span", {}, kind)));
    this.menu.append(...this.items);
    $("theme").before(this.button);
    document.body.append(this.menu);
    this.button.addEventListener("click", () => (this.menu.hidden ? this.open() : this.close()));
    this.button.addEventListener("keydown", (event) => { if (event.key === "ArrowDown") { event.preventDefault(); event.stopPropagation(); this.open(); } });
    this.menu.addEventListener("keydown", (event) => this.key(event));
    document.addEventListener("pointerdown", (event) => { if (!this.menu.hidden && !this.menu.contains(event.target) && !this.button.contains(event.target)) this.close(false); });
    window.addEventListener("resize", () => this.close(false));
  }

  open() {
    this.menu.hidden = false;
    this.button.setAttribute("aria-expanded", "true");
    const edge = this.button.getBoundingClientRect();
    this.menu.style.top = `${edge.bottom + 6}px`;
    this.menu.style.left = `${Math.max(8, Math.min(edge.right - this.menu.offsetWidth, window.innerWidth - this.menu.offsetWidth - 8))}px`;
    this.items[0].focus();
  }

  close(focus = true) {
    if (this.menu.hidden) return;
    this.menu.hidden = true;
    this.button.setAttribute("aria-expanded", "false");
    if (focus) this.button.focus();
  }

  // The menu's keys are its own: the timeline must not step meanwhile.
  key(event) {
    const count = this.items.length, here = this.items.indexOf(document.activeElement);
    const to = { ArrowDown: (here + 1) % count, ArrowUp: (here + count - 1) % count, Home: 0, End: count - 1 }[event.key];
    event.stopPropagation();
    if (to !== undefined) { event.preventDefault(); this.items[to].focus(); }
    if (event.key === "Escape" || event.key === "Tab") this.close();
  }

  // ---- what is exported ------------------------------------------------------------------------------

  caption(time) {
    const { data } = this.page;
    const runs = (data.ghost?.labels || []).map((label, k) => [label, colour(RUN_COLOURS[k])]);
    return [...runs, [time === undefined ? data.robot.name : `${data.robot.name}   ${time.toFixed(2)} s`, null]];
  }

  view(ratio, canvas = element("canvas"), caption = this.caption(this.page.timeline?.time)) {
    return snapshot(this.page.stage, canvas, ratio, caption);
  }

  savePicture(canvas, what) { canvas.toBlob((blob) => this.save(blob, `${what}.png`)); }

  saveText(text, name) { this.save(new Blob([text], { type: "text/csv" }), name); }

  async saveFilm() {
    if (this.recorder.active) return;
    this.status = element("div", { id: "recording", role: "status" });
    this.status.bar = element("progress", { max: "1", value: "0", "aria-label": "Recording" });
    this.status.text = element("span", {}, "Recording");
    this.status.append(this.status.text, this.status.bar, element("button", { class: "small", type: "button", onclick: () => this.recorder.cancel() }, "Cancel"));
    $("view").append(this.status);
    try {
      const film = await this.recorder.record((canvas) => this.view(Math.min(window.devicePixelRatio || 1, 2), canvas));
      if (film) this.save(film, film.type.includes("webm") ? "film.webm" : "film.mp4");
      this.status.remove();
    } catch (problem) {
      this.status.replaceChildren(`No film: ${problem.message}`, element("button", { class: "small", type: "button", onclick: () => this.status.remove() }, "Close"));
    }
  }

  progress(time, end) {
    this.status.bar.value = time / Math.max(end, 1e-9);
    this.status.text.textContent = `Recording ${time.toFixed(1)} of ${end.toFixed(1)} s`;
  }

  save(blob, name) {
    const stem = this.page.data.robot.name.replace(/[^\p{L}\p{N}_.-]+/gu, "_").slice(0, 60) || "robot";
    const address = URL.createObjectURL(blob);
    element("a", { href: address, download: `${stem}_${name}` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60000);
  }

  // ---- frames for a program that makes a film of this page ------------------------------------------------

  // Only the view remains, and the page shows the first frame.
  onlyView() {
    this.page.opening.stop();
    document.documentElement.dataset.film = "";
    this.page.stage.viewer.set_3d_pane_size();
    this.page.stage.frameMotion();
  }

  // From where the camera looks: azimuth, elevation [rad].
  look(azimuth, elevation) {
    const { stage } = this.page;
    stage.framing.look(azimuth, elevation, ...stage.now());
  }

  // Whether all that the view draws is there.
  ready() { return (this.page.stage.pictures || []).every(({ image }) => image?.complete); }

  // The view at a time as a data URI.
  frameAt(time) {
    this.page.timeline?.seek(time);
    return this.view(1).toDataURL("image/png");
  }
}

function exportIcon() {
  const svg = icon("play");
  svg.firstChild.setAttribute("d", "M8.1 1.5h1.8v7.3l2.4-2.4 1.3 1.3L9 12.3 4.4 7.7l1.3-1.3 2.4 2.4zM3 11h1.8v3.7h8.4V11H15v5.5H3z");
  svg.style.fill = "currentColor";
  return svg;
}
