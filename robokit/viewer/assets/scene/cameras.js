// The view's buttons: what is shown, from where, and whether the camera goes with the robot.

class Cameras {
  constructor(page) {
    this.page = page;
    const { data, motion, stage, overlays } = page;
    for (const [key, label, tint, on] of overlays.list()) {
      const button = toggle(label, on, (now) => overlays.show(key, now), { colour: tint });
      button.dataset.key = key;
      $("switches").append(button);
      overlays.show(key, on);
    }
    const view = (label, title, azimuth, elevation) => element("button", { class: "chip plain", type: "button", title, onclick: () => stage.look(azimuth, elevation) }, label);
    $("cameras").append(
      view("Front", "From the front, along x", 0, 0.03),
      view("Side", "From the right side, along y", -Math.PI / 2, 0.03),
      view("Top", "From above", -Math.PI / 2, Math.PI / 2 - 0.001),
      element("button", { class: "chip plain", type: "button", title: "The whole motion (F)", onclick: () => stage.frameMotion() }, "Fit"),
    );
    this.centre = null;
    if (motion.count > 1 && data.robot.mass > 0) {
      $("cameras").append(toggle("Follow", false, (on) => this.follow(on), { title: "The camera goes with the centre of mass" }));
    }
    page.shortcuts.add("f", "The whole motion in view", () => stage.frameMotion());
  }

  follow(on) {
    this.centre = on ? this.centreAt(this.page.frame()) : null;
  }

  centreAt(frame) { return yUp(this.page.motion.vector(this.page.motion.com, frame)); }

  // The camera goes along, if it follows.
  move(frame) {
    if (this.centre === null) return;
    const { camera, controls } = this.page.stage.viewer;
    const centre = this.centreAt(frame);
    const shift = centre.clone().sub(this.centre);
    camera.position.add(shift);
    controls.target.add(shift);
    this.centre = centre;
  }
}
