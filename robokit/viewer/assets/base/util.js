// Small helpers. Text of the robot reaches the document through text nodes only.

const $ = (id) => document.getElementById(id);

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "class") made.className = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

function bytes(text) {
  const raw = atob(text);
  const out = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
  return out;
}

// The content of a deflated text, as an array of the kind given.
async function inflated(text, kind = Uint8Array) {
  const stream = new Blob([bytes(text)]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new kind(await new Response(stream).arrayBuffer());
}

const floats = (text) => new Float32Array(bytes(text).buffer);

function bits(text, count) {
  const packed = bytes(text);
  const out = new Uint8Array(count);
  for (let i = 0; i < count; i++) out[i] = (packed[i >> 3] >> (7 - (i & 7))) & 1;
  return out;
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

// Three or four significant digits, thousands grouped, powers of ten where nothing else is readable.
function figure(value, digits = 3) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size < 1e-3 || size >= 1e7) return powerOfTen(value);
  const places = Math.max(0, Math.min(4, digits - 1 - Math.floor(Math.log10(size))));
  return value.toLocaleString("en-US", { minimumFractionDigits: places, maximumFractionDigits: places }).replace(/,/g, " ")
    .replace("-", "−");
}

function powerOfTen(value, digits = 1) {
  const [mantissa, power] = value.toExponential(digits).split("e");
  return `${mantissa}·10${superscript(Number(power))}`.replace(/^-/, "−");
}

function superscript(number) {
  return String(number).replace(/./g, (c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(c)]));
}

// A number in a column that must not jump about: a fixed count of decimals.
function steady(value, places = 2) {
  if (!Number.isFinite(value)) return "–";
  if (Math.abs(value) >= 1e7) return powerOfTen(value);
  const text = value.toFixed(Math.abs(value) >= 1e5 ? 0 : places);
  return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", "−");
}

function toggle(label, pressed, change, options = {}) {
  const button = element("button", { class: options.class || "chip", "aria-pressed": String(pressed), type: "button" }, label);
  if (options.title) button.title = options.title;
  if (options.colour) button.style.setProperty("--chip", options.colour);
  button.addEventListener("click", () => {
    const on = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(on));
    change(on);
  });
  return button;
}

// One of several; returns the group and a way to choose from code.
function choice(options, chosen, change) {
  const buttons = new Map();
  const select = (key) => {
    for (const [other, button] of buttons) button.setAttribute("aria-pressed", String(other === key));
    change(key);
  };
  for (const [key, label] of options) {
    buttons.set(key, element("button", { type: "button", "aria-pressed": String(key === chosen), onclick: () => select(key) }, label));
  }
  return { group: element("div", { class: "segments", role: "group" }, ...buttons.values()), select };
}

// Poses at `at`, seven numbers each, so that no quaternion has another sign than that of the frame before.
function alignTurns(poses, at, width) {
  for (let i = at + 3; i < at + width; i += 7) {
    const before = i - width;
    const same = poses[i] * poses[before] + poses[i + 1] * poses[before + 1] + poses[i + 2] * poses[before + 2] + poses[i + 3] * poses[before + 3];
    if (same < 0) for (let k = 0; k < 4; k++) poses[i + k] *= -1;
  }
}
