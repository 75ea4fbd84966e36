// A second run of the robot: the same shapes in one translucent tint, in step with the first.

class Ghost {
  constructor(page) {
    const { data, stage } = page;
    const { ghost } = data;
    this.page = page;
    this.motion = new Motion(ghost.frames, data.bodies.name.length - 1);
    this.bodies = stage.bodies.map(() => new THREE.Group());
    const nodes = data.nodes.filter((node) => node.role === "visual" && node.body > 0).map((node) => ({ ...node, rgba: [1, 1, 1, 0.5], picture: null }));
    this.skin = new Skin(nodes, stage.geometries, this.bodies, null);
    this.group = new THREE.Group();
    for (const part of this.skin.parts) {
      // Where both runs agree the first one is seen.
      Object.assign(part.material, { depthWrite: false, polygonOffset: true, polygonOffsetFactor: 2, polygonOffsetUnits: 8 });
      // Its depth comes first, then its colour once: shapes behind others of its own would darken these.
      const depth = new THREE.Mesh(part.geometry, this.skin.posed(part.material.clone()));
      Object.assign(depth.material, { colorWrite: false, depthWrite: true });
      depth.frustumCulled = false;
      depth.renderOrder = 1;
      part.renderOrder = 2;
      this.group.add(depth, part);
    }
    stage.world.add(this.group);
    const { framing } = stage;
    framing.whole.push(...framing.extremes(false, this.motion));
    stage.frameMotion();
    const [first, second] = ghost.labels;
    this.legend = element("div", { id: "runs", "aria-label": "The two runs" }, element("span", { class: "run one" }, first), element("span", { class: "run two" }, `${second} (ghost)`));
    const button = toggle("Ghost", true, (on) => { this.group.visible = on; stage.dirty(); }, { colour: "var(--ghost)", title: second });
    button.dataset.key = "ghost";
    $("switches").append(button, this.legend);
    this.paint();
    page.timeline.onChange((time) => this.move(time));
    this.move(page.timeline.time);
    whenThemeChanges(() => this.paint());
  }

  paint() {
    for (const part of this.skin.parts) part.material.color = ink(colour("ghost"));
    this.page.stage.dirty();
  }

  // Where the second run ended earlier, its ghost stays as it was then.
  move(time) {
    placeBodies(this.bodies, this.motion.at(this.motion.frameAt(Math.min(time, this.motion.duration))));
    this.skin.move();
  }
}
