// The view's buttons: what is shown, from where, and whether the camera goes with the robot.

class Cameras {
  constructor(page) {
    this.page = page;
    const { stage, overlays } = page;
    for (const [key, label, tint, on] of overlays.list()) {
      const button = toggle(label, on, (now) => overlays.show(key, now), { colour: tint });
      button.dataset.key = key;
      $("switches").append(button);
      overlays.show(key, on);
    }
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
    if (framing.canFollow) {
      this.button = toggle("Follow", framing.following, (on) => this.follow(on), { title: "The camera goes with the centre of mass" });
      $("cameras").append(this.button);
      this.follow(framing.following);
    }
    page.shortcuts.add("f", "The whole motion in view", fit);
    stage.now = () => {
      const now = [page.frame(), page.motion];
      if (this.centre !== null) this.centre = framing.centre(...now);
      return now;
    };
    fit();
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

  follow(on) {
    const { framing } = this.page.stage;
    framing.following = on;
    this.centre = on ? framing.centre(this.page.frame(), this.page.motion) : null;
    this.button.setAttribute("aria-pressed", String(on));
  }

  // The camera goes along, if it follows; light and floor too, where the robot travels far.
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
