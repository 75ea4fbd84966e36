// What follows the theme by itself, after it has changed.
function whenThemeChanges(listener) {
  new MutationObserver(listener).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
}

// A second run of the robot: the same shapes in one translucent tint, in step with the first.

class Ghost {
  constructor(page) {
    const { data, stage } = page;
    const { ghost } = data;
    this.page = page;
    this.motion = new Motion(ghost.frames, data.bodies.name.length - 1);
    this.material = new THREE.MeshStandardMaterial({ roughness: 0.7, transparent: true, opacity: 0.5 });
    // Where both runs agree, the first one is seen.
    Object.assign(this.material, { polygonOffset: true, polygonOffsetFactor: 2, polygonOffsetUnits: 8 });
    this.bodies = stage.bodies.map((body, i) => {
      const group = new THREE.Group();
      for (const solid of i ? body.children.filter((child) => child.isMesh && stage.roles.visual.includes(child)) : []) {
        const copy = new THREE.Mesh(solid.geometry, this.material);
        copy.position.copy(solid.position);
        copy.quaternion.copy(solid.quaternion);
        copy.scale.copy(solid.scale);
        copy.renderOrder = 1;
        group.add(copy);
      }
      return group;
    });
    this.group = new THREE.Group();
    this.group.add(...this.bodies);
    stage.world.add(this.group);
    const [first, second] = ghost.labels;
    this.legend = element("div", { id: "runs", "aria-label": "The two runs" }, element("span", { class: "run one" }, first), element("span", { class: "run two" }, `${second} (ghost)`));
    $("view").append(this.legend);
    const button = toggle("Ghost", true, (on) => { this.group.visible = on; stage.dirty(); }, { colour: "var(--ghost)", title: second });
    button.dataset.key = "ghost";
    $("switches").append(button);
    this.paint();
    page.timeline.onChange((time) => this.move(time));
    whenThemeChanges(() => this.paint());
  }

  paint() {
    this.material.color = ink(colour("ghost"));
    this.page.stage.dirty();
  }

  // Where the second run ended earlier, its ghost stays as it was then.
  move(time) {
    const numbers = this.motion.at(this.motion.frameAt(Math.min(time, this.motion.duration)));
    for (let i = 1, at = 0; i < this.bodies.length; i++, at += 7) {
      this.bodies[i].position.fromArray(numbers, at);
      this.bodies[i].quaternion.fromArray(numbers, at + 3);
    }
  }
}
