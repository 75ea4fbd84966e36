// How long force arrows are: as the square root of the force, so that a step of 30 kN and a weight of 400 N both show.
// Two round forces stand beside the view, as long as arrows in its middle are.

class ForceScale {
  constructor(stage, size, weight, largest) {
    this.stage = stage;
    this.largest = Math.max(largest, weight, 1e-9);
    this.factor = Math.min((1.8 * size) / Math.sqrt(this.largest), (0.6 * size) / Math.sqrt(Math.max(weight, 1e-9)));
    const most = roundBelow(this.largest);
    this.bars = [most, roundBelow(most / 8)].map((force) => {
      const line = element("i");
      return { force, line, row: element("div", {}, line, forceText(force)) };
    });
    $("force-scale").replaceChildren(...this.bars.map((bar) => bar.row));
    $("force-scale").title = "Force arrows: their length grows with the square root of the force";
    stage.viewer.controls.addEventListener("change", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(stage.host);
  }

  arrow(force) { return force.clone().multiplyScalar(this.factor / Math.sqrt(Math.max(force.length(), 1e-12))); }

  show(on) {
    $("force-scale").hidden = !on;
    if (on) this.draw();
  }

  draw() {
    const { camera, controls } = this.stage.viewer;
    const away = camera.position.distanceTo(controls.target);
    const perMetre = this.stage.host.clientHeight / (2 * away * Math.tan((camera.fov * Math.PI) / 360));
    for (const { force, line } of this.bars) line.style.width = `${Math.min(this.factor * Math.sqrt(force) * perMetre, 240).toFixed(1)}px`;
  }
}

// The largest of 1, 2 and 5 times a power of ten that is not above a value.
function roundBelow(value) {
  const power = 10 ** Math.floor(Math.log10(value) + 1e-9);
  return [5, 2, 1].find((digit) => digit * power <= value * (1 + 1e-9)) * power;
}

const forceText = (newton) => (newton >= 1000 ? `${+(newton / 1000).toPrecision(3)} kN` : `${+newton.toPrecision(3)} N`);
