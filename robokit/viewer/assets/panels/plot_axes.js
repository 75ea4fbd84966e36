// Ranges and labels of the plots' axes.

// Above this size, or in a run that stopped, values are taken for those of a motion that blew up.
const BLOWN_UP = 1e9;

// The look of an axis, for uPlot.
const axisLook = () => ({ stroke: colour("soft"), grid: { stroke: colour("grid"), width: 1 }, ticks: { stroke: colour("grid"), width: 1, size: 4 }, font: "11px system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif" });

// Indices [first, last] of the samples between two times, and one beside them on either side.
function within(x, from, to) {
  let low = 0, high = x.length;
  while (low < high) { const middle = (low + high) >> 1; if (x[middle] < from) low = middle + 1; else high = middle; }
  const first = Math.max(low - 1, 0);
  high = x.length;
  while (low < high) { const middle = (low + high) >> 1; if (x[middle] <= to) low = middle + 1; else high = middle; }
  return [first, Math.min(low, x.length - 1)];
}

// Value of a line at a time, between its samples; the mean over a time step holds through the step before.
function valueAt(line, time) {
  const [before] = within(line.x, time - 1e-7, time);
  const next = Math.min(before + 1, line.x.length - 1);
  const end = line.x[next] - 0.999 * (line.hold || 0);
  if (time >= end) return line.y[next];
  const part = Math.max((time - line.x[before]) / Math.max(end - line.x[before], 1e-12), 0);
  return line.y[before] + part * (line.y[next] - line.y[before]);
}

// The time of a sample: the middle of the step over which it is the mean.
const timeOf = (line, k) => Math.max(line.x[k] - 0.5 * (line.hold || 0), 0);

// Up to which size values are drawn to scale: what a motion did before it blew up, or everything.
function sane(lines, stopped) {
  const sizes = lines.flatMap((line) => Array.from(line.y, Math.abs)).filter((size) => size > 0);
  const finite = sizes.filter(Number.isFinite).sort((a, b) => a - b);
  if (!finite.length) return Infinity;
  const largest = finite[finite.length - 1];
  if (!stopped && finite.length === sizes.length && largest < BLOWN_UP) return Infinity;
  const usual = finite[Math.floor(0.9 * (finite.length - 1))];
  return largest > 1e3 * usual ? 3 * usual : Infinity;
}

// Range of the y axis over a part of the time: all that is drawn there, some air, never narrower than rounding.
// What is smaller than `least` is zero.
function span(lines, from, to, limit, least = 0) {
  let low = Infinity, high = -Infinity;
  const take = (value) => {
    if (!Number.isFinite(value)) return;
    low = Math.min(low, value);
    high = Math.max(high, value);
  };
  for (const line of lines) {
    const [first, last] = within(line.x, from, to);
    for (let k = first; k <= last; k++) if (line.x[k] >= from && line.x[k] <= to) take(line.y[k]);
    take(valueAt(line, from));
    take(valueAt(line, to));
  }
  if (low > high) return [0, 1];
  if (Math.max(Math.abs(low), Math.abs(high)) < least) return [-1, 1];
  if (low < limit && high > -limit) { low = Math.max(low, -limit); high = Math.min(high, limit); }
  // A limit that is near belongs into the picture.
  const reach = 0.6 * (high - low);
  for (const { low: lower, high: upper } of lines) {
    if (upper !== undefined && upper > high && upper < high + reach) high = upper;
    if (lower !== undefined && lower < low && lower > low - reach) low = lower;
  }
  const size = Math.max(Math.abs(low), Math.abs(high), 1e-300);
  const air = Math.max(0.06 * (high - low), 1e-6 * size);
  return [low - air, high + air];
}

// Labels of times: in milliseconds where only these tell them apart.
function timeLabels(ticks, step) {
  if (step < 5e-3) return ticks.map((s) => `${(1e3 * s).toFixed(decimals(1e3 * step))} ms`);
  return ticks.map((s) => `${s.toFixed(decimals(step))} s`);
}

// Labels of ticks: as many decimals as tell them apart, powers of ten where nothing else is short.
function tickLabels(ticks, step) {
  const largest = Math.max(...ticks.map(Math.abs));
  if (!(largest > 0)) return ticks.map(() => "0");
  const power = Math.floor(Math.log10(largest) + 1e-9);
  const scaled = power >= 6 || power < -3;
  const unit = scaled ? 10 ** power : largest >= 1e4 && step >= 10 ? 1000 : 1;
  const places = decimals(step / unit);
  return ticks.map((tick) => {
    if (tick === 0 || Math.abs(tick) < 1e-6 * step) return "0";
    const text = (tick / unit).toFixed(places).replace("-", "−");
    return scaled ? `${text}·10${superscript(power)}` : unit === 1 ? text : `${text}k`;
  });
}

// Decimals that a step needs: 2 for 0.25, 0 for 50.
function decimals(step) {
  for (let places = 0; places < 9; places++) {
    const shifted = step * 10 ** places;
    if (Math.abs(shifted - Math.round(shifted)) < 1e-3 * shifted && shifted > 0.5) return places;
  }
  return 9;
}

// Width of the y axis [px], for its labels.
const room = (_, labels) => Math.max(50, 16 + 6 * Math.max(0, ...(labels || []).map((label) => label.length)));
