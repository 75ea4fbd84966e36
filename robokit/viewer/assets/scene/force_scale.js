// How long force arrows are: as the square root of the force, so that a step of 30 kN and a weight of 400 N both show.
// Two round forces stand beside the view, as long as arrows in its middle are.

const LONGEST_BAR = 160; // [px]

class ForceScale {
  constructor(stage, size, weight, largest) {
    this.stage = stage;
    this.largest = Math.max(largest, weight, 1e-9);
    this.factor = Math.min((1.8 * size) / Math.sqrt(this.largest), (0.6 * size) / Math.sqrt(Math.max(weight, 1e-9)));
    this.bars = [0, 1].map(() => ({ line: element("i"), label: element("span") }));
    $("force-scale").replaceChildren(...this.bars.map(({ line, label }) => element("div", {}, line, label)));
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
    const most = roundBelow(Math.min(this.largest, (LONGEST_BAR / (this.factor * perMetre)) ** 2));
    [most, roundBelow(most / 8)].forEach((force, k) => {
      this.bars[k].line.style.width = `${(this.factor * Math.sqrt(force) * perMetre).toFixed(1)}px`;
      this.bars[k].label.textContent = forceText(force);
    });
  }
}

// The largest of 1, 2 and 5 times a power of ten that is not above a value.
function roundBelow(value) {
  const power = 10 ** Math.floor(Math.log10(value) + 1e-9);
  return [5, 2, 1].find((digit) => digit * power <= value * (1 + 1e-9)) * power;
}

const forceText = (newton) => (newton >= 1000 ? `${+(newton / 1000).toPrecision(3)} kN` : `${+newton.toPrecision(3)} N`);
