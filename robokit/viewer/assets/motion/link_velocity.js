// Velocity of a link's frame in the world at every frame, from the joints between it and the ground.

// Rates of a joint's own dofs in a row of v; a coupled mimic joint has those of the joint that it follows.
function jointRates(data, joint, v) {
  if (!joint.follows) return v.slice(...joint.v);
  const leading = joint.follows[0];
  const rates = data.joints.filter((joint) => joint.q[0] === leading && joint.q[1] > leading).map((joint) => v[joint.v[0]]);
  return [joint.follows[1] * (rates[0] || 0)];
}

// {angular, linear}: x, y, z over the frames, (T,) each [rad/s; m/s]; the linear one of the frame's origin.
function linkVelocity(data, motion, name) {
  const link = data.links.find((link) => link.name === name);
  const width = motion.v.length / motion.count;
  const path = [];
  for (let body = link.body; body > 0; body = data.bodies.parent[body]) {
    const joint = data.joints.find((joint) => joint.body === body);
    path.push([joint, jointColumns(joint).map((column) => column.map((part) => new THREE.Vector3(...part)))]);
  }
  const lines = { angular: [[], [], []], linear: [[], [], []] };
  const place = (body, frame) => {
    const at = 7 * ((body - 1) + frame * motion.bodies);
    return [new THREE.Vector3().fromArray(motion.poses, at), new THREE.Quaternion().fromArray(motion.poses, at + 3)];
  };
  const [own, offset] = [link.body, new THREE.Vector3().fromArray(link.pose)];
  for (let frame = 0; frame < motion.count; frame++) {
    const angular = new THREE.Vector3(), linear = new THREE.Vector3();
    const v = motion.v.subarray(frame * width, (frame + 1) * width);
    if (path.length) {
      const [p, r] = place(own, frame);
      const point = offset.clone().applyQuaternion(r).add(p);
      for (const [joint, columns] of path) {
        const [origin, turn] = place(joint.body, frame);
        const rates = jointRates(data, joint, v);
        columns.forEach(([spin, slide], k) => {
          const w = spin.clone().applyQuaternion(turn).multiplyScalar(rates[k]);
          angular.add(w);
          linear.addScaledVector(slide.clone().applyQuaternion(turn), rates[k]).add(w.cross(point.clone().sub(origin)));
        });
      }
    }
    angular.toArray().forEach((x, k) => lines.angular[k].push(x));
    linear.toArray().forEach((x, k) => lines.linear[k].push(x));
  }
  return lines;
}
