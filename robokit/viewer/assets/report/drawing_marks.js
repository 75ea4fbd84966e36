// Marks of an axis, colours of points, and drags over a drawing.

// Round numbers along an axis, about so many pixels apart, with their texts; the places of labels.
function marks(column, axis, apart) {
  if (column.labels) return [...column.labels.keys()].map((k) => [k, column.labels[k]]);
  const count = Math.max(1, Math.abs(axis.to - axis.from) / apart), rough = (axis.high - axis.low) / count;
  const ten = 10 ** Math.floor(Math.log10(rough)), step = ten * [1, 2, 5, 10].find((one) => one * ten >= rough * 0.999);
  const found = [], places = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const text = (x) => (Math.abs(x) >= 1e7 || places > 4 ? figure(x) : x.toLocaleString("en-US", { minimumFractionDigits: places, maximumFractionDigits: places }).replace(/,/g, " ").replace("-", "−"));
  for (let k = Math.ceil(axis.low / step); k * step <= axis.high; k++) found.push([k * step, text(k * step || 0)]);
  return found;
}

function line(pen, x0, y0, x1, y1) {
  pen.beginPath();
  pen.moveTo(x0, y0);
  pen.lineTo(x1, y1);
  pen.stroke();
}

const parsed = (text) => [1, 3, 5].map((k) => parseInt(text.slice(k, k + 2), 16));

// A colour "#rrggbb" as a pixel.
function packedColour(text) {
  const [r, g, b] = text.startsWith("#") ? parsed(text) : text.match(/\d+/g).map(Number);
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

// Colours from low to high: light to dark by day, dark to light by night.
function shades(count) {
  const ends = ["low", "middle", "high"].map((key) => parsed(colour(`h-${key}`)));
  return Array.from({ length: count }, (_, k) => {
    const at = (2 * k) / Math.max(1, count - 1), one = Math.min(1, Math.floor(at)), rest = at - one;
    return `rgb(${[0, 1, 2].map((j) => Math.round(ends[one][j] + rest * (ends[one + 1][j] - ends[one][j]))).join(", ")})`;
  });
}

function swatch(tint) {
  const made = element("i", { "aria-hidden": "true" });
  made.style.background = tint;
  return made;
}

// A pressed pointer is heard until it is released: as it moves, and then.
function hearDrag(canvas, event, move, up) {
  const released = new AbortController(), { signal } = released;
  canvas.setPointerCapture(event.pointerId);
  canvas.addEventListener("pointermove", move, { signal });
  for (const kind of ["pointerup", "pointercancel"]) canvas.addEventListener(kind, (now) => { released.abort(); up(now); }, { signal });
}
