// The hand in a live run: a link is pulled where it was grasped, or pushed along the view.

// The spring holds the robot's weight when it is stretched by this share of the robot's size, with this part of
// critical damping for the whole robot.
const LIFTING_STRETCH = 0.2;
const HAND_DAMPING = 0.3;
// A push gives the whole robot this speed [m/s].
const PUSH_SPEED = 0.5;
// Pointers that move less than this [px] click.
const CLICK_REACH = 4;

class Hand {
  constructor(page, act) {
    this.page = page;
    this.act = act;
    this.spring = new Spring(page.stage, page.data.robot.size);
    this.held = null;
    const { mass, size } = page.data.robot;
    this.stiffness = (mass * 9.81) / (LIFTING_STRETCH * size);
    this.damping = 2 * HAND_DAMPING * Math.sqrt(this.stiffness * mass);
    const canvas = $("canvas");
    canvas.addEventListener("pointerdown", (event) => this.down(event), true);
    // A pull goes on over the buttons of the view and beyond it.
    document.addEventListener("pointermove", (event) => this.move(event), true);
    for (const kind of ["pointerup", "pointercancel"]) document.addEventListener(kind, (event) => this.up(event), true);
  }

  down(event) {
    if (event.button !== 0 || !this.act.running() || this.held) return;
    const hit = this.grasp(event.clientX, event.clientY);
    if (!hit) return;
    // The camera's controls listen on the canvas itself, after this.
    this.page.stage.viewer.controls.enabled = false;
    event.target.setPointerCapture(event.pointerId);
    const camera = this.page.stage.viewer.camera;
    const depth = hit.point.clone().sub(camera.position).dot(camera.getWorldDirection(new THREE.Vector3()));
    this.held = { ...hit, depth, x: event.clientX, y: event.clientY, start: [event.clientX, event.clientY], pointer: event.pointerId, pulls: false };
    if (event.shiftKey) this.push();
  }

  // The point of a moving body under the pointer: in the page's axes (y up), and in the body's.
  grasp(x, y) {
    const { stage } = this.page;
    const node = stage.nodeAt(x, y);
    if (!node || node.body === 0) return null;
    const body = stage.bodies[node.body], shapes = [];
    body.traverse((part) => { if (part.isMesh && part.visible && part.material.depthTest) shapes.push(part); });
    body.updateWorldMatrix(true, true);
    const hit = stage.ray(x, y).intersectObjects(shapes, false)[0];
    return hit ? { body: node.body, link: node.link, point: hit.point, local: body.worldToLocal(hit.point.clone()) } : null;
  }

  move(event) {
    if (!this.held || event.pointerId !== this.held.pointer) return;
    Object.assign(this.held, { x: event.clientX, y: event.clientY });
    if (!this.held.pushed && Math.hypot(this.held.x - this.held.start[0], this.held.y - this.held.start[1]) > CLICK_REACH) this.held.pulls = true;
    this.pull();
  }

  up(event) {
    if (this.held && event.pointerId === this.held.pointer) this.release();
  }

  release() {
    if (!this.held) return;
    const { pulls } = this.held;
    this.held = null;
    this.spring.hide();
    this.page.stage.viewer.controls.enabled = true;
    if (pulls) this.act.letGo();
  }

  // Where the pointer is in the plane through the grasped point that faces the camera; world axes, z up.
  target() {
    const { stage } = this.page, { ray } = stage.ray(this.held.x, this.held.y);
    const along = ray.direction.dot(stage.viewer.camera.getWorldDirection(new THREE.Vector3()));
    return stage.world.worldToLocal(ray.at(this.held.depth / along, new THREE.Vector3()));
  }

  // Where the grasped point of the link is now, in the world.
  place() {
    const body = this.page.stage.bodies[this.held.body];
    return this.held.local.clone().applyQuaternion(body.quaternion).add(body.position);
  }

  // Tells the run where the pointer is; also called when the camera may have moved.
  pull() {
    if (!this.held?.pulls) return;
    const target = this.target();
    if (this.held.told?.distanceTo(target) < 1e-6) return;
    this.held.told = target;
    this.act.pull({ body: this.held.body, point: this.held.local.toArray(), target: target.toArray(), stiffness: this.stiffness, damping: this.damping });
  }

  push() {
    const { stage, data } = this.page;
    this.held.pushed = true;
    const away = stage.viewer.camera.getWorldDirection(new THREE.Vector3());
    const origin = stage.world.worldToLocal(new THREE.Vector3());
    const impulse = stage.world.worldToLocal(away).sub(origin).normalize().multiplyScalar(PUSH_SPEED * data.robot.mass);
    const at = this.place();
    this.act.push({ body: this.held.body, point: this.held.local.toArray(), impulse: impulse.toArray() });
    this.spring.push(at, impulse);
  }

  // The spring between the link as drawn and the pointer; `force` [N] is the run's.
  draw(force) {
    if (this.held?.pulls) this.spring.show(this.place(), this.target(), force);
  }
}
