// The view's buttons: what is shown, from where, and whether the camera goes with the robot.

class Cameras {
  constructor(page) {
    this.page = page;
    const { stage, overlays } = page;
    for (const [key, label, tint, on, , title] of overlays.list()) {
      const button = toggle(label, on, (now) => overlays.show(key, now), { colour: tint, title });
      button.dataset.key = key;
      $("switches").append(button);
      overlays.show(key, on);
    }
    this.addOpacity();
    // The card of a link stands below them, on however many rows they are.
    new ResizeObserver(() => {
      const { offsetTop, offsetHeight } = $("switches");
      $("view").style.setProperty("--under-switches", `${offsetTop + Math.max(offsetHeight, 27) + 13}px`);
    }).observe($("switches"));
    this.addSheet();
    const fit = () => stage.frameMotion();
    const view = (label, title, azimuth, elevation) => element("button", { class: "chip plain", type: "button", title, onclick: () => stage.look(azimuth, elevation) }, label);
    $("cameras").append(
      view("Front", "From the front, along x", 0, 0.03),
      view("Side", "From the right side, along y", -Math.PI / 2, 0.03),
      view("Top", "From above", -Math.PI / 2, Math.PI / 2 - 0.001),
      element("button", { class: "chip plain", type: "button", title: "The whole motion (F)", onclick: fit }, "Fit"),
    );
    this.centre = null;
    const { framing } = stage;
    if (framing.canFollow) this.addFollowing();
    page.shortcuts.add("f", "Fit the whole motion", fit);
    stage.now = () => {
      const now = [page.frame(), page.motion];
      if (this.centre !== null) this.centre = framing.centre(...now);
      return now;
    };
    fit();
  }

  // How opaque the robot is: frames, inertias and contacts show through it.
  addOpacity() {
    const { stage } = this.page;
    const slider = element("input", { id: "opacity", type: "range", min: 0.05, max: 1, step: 0.05, value: 1, "aria-label": "Opacity of the robot" });
    this.opacity = (share) => {
      slider.value = String(share);
      slider.style.setProperty("--done", `${(100 * (slider.value - slider.min)) / (slider.max - slider.min)}%`);
      stage.opaque(Number(slider.value));
    };
    slider.addEventListener("input", () => this.opacity(slider.value));
    $("switches").append(element("label", { class: "chip plain", title: "Opacity of the robot" }, "Opacity", slider));
    this.opacity(1);
  }

  // In small views the switches are a sheet that a button opens.
  addSheet() {
    const open = (on) => {
      $("view").classList.toggle("sheet", on);
      $("layers").setAttribute("aria-expanded", String(on));
    };
    $("layers").addEventListener("click", () => open($("layers").getAttribute("aria-expanded") !== "true"));
    $("canvas").addEventListener("pointerdown", () => open(false), true);
    $("view").addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || $("layers").getAttribute("aria-expanded") !== "true") return;
      event.preventDefault();
      open(false);
      $("layers").focus();
    });
  }

  // Whether the camera follows, and what: while it does, a list has the centre of mass and the links.
  addFollowing() {
    const { data, stage } = this.page, { framing } = stage, { follow } = data;
    this.button = toggle("Follow", false, (on) => {
      this.chosen = true;
      // A link that is selected is what its reader looks at.
      const { link } = this.page.selection;
      this.follow(on, on && link !== null ? link : framing.link?.name ?? null);
    }, { title: "The camera follows the centre of mass, or a link" });
    // A link may have any name: the centre of mass has the number of no link.
    this.targets = [...(framing.massive ? [null] : []), ...data.links.map((link) => link.name)];
    this.target = element("select", { class: "chip", id: "followed", "aria-label": "What the camera follows" }, ...this.targets.map((name, k) => element("option", { value: k }, name ?? "centre of mass")));
    this.target.addEventListener("change", () => this.follow(true, this.targets[this.target.value]));
    $("cameras").append(this.button, this.target);
    this.follow(follow === null ? framing.following : follow !== false, typeof follow === "string" ? follow : null);
  }

  // name: of a link, or null for the centre of mass.
  follow(on, name = null) {
    const { framing } = this.page.stage;
    framing.followLink(name);
    framing.following = on;
    this.centre = on ? framing.centre(this.page.frame(), this.page.motion) : null;
    this.button.setAttribute("aria-pressed", String(on));
    this.target.hidden = !on;
    this.target.value = String(this.targets.indexOf(framing.link?.name ?? null));
    // What goes out of the picture otherwise is looked at anew.
    if (on && !framing.touched) framing.look(...framing.last, this.page.frame(), this.page.motion);
  }

  // Nobody knows where a live motion goes: the camera follows it, unless the reader or the page has said where it is.
  goAlong() {
    const { framing } = this.page.stage;
    this.along = framing.canFollow && !framing.following && !framing.touched && !this.chosen && this.page.data.follow === null;
    if (this.along) this.follow(true, framing.link?.name ?? null);
  }

  // To the recording, whose picture is as it was before.
  comeBack() {
    const { stage } = this.page;
    if (this.along && !this.chosen && stage.framing.following && !stage.framing.touched) {
      this.follow(false, stage.framing.link?.name ?? null);
      stage.framing.look(...stage.framing.last);
    }
  }

  // The camera, if it follows, moves along; light and floor too, where the robot travels far.
  move(frame) {
    const { stage } = this.page;
    if (stage.framing.local) stage.aim(stage.framing.centre(frame, this.page.motion));
    if (this.centre === null) return;
    const { camera, controls } = stage.viewer;
    const centre = stage.framing.centre(frame, this.page.motion);
    // While the hand holds a link the camera stays: else the pointer would run ahead of the robot that it pulls.
    if (this.page.run?.hand.held) {
      this.centre = centre;
      return;
    }
    const shift = centre.clone().sub(this.centre);
    camera.position.add(shift);
    controls.target.add(shift);
    this.centre = centre;
  }
}
