// Keys of the whole page, in one list: "?" shows it. A part adds its own; a control that has the focus comes first.

// Keys that a focused control needs itself.
const OWN_KEYS = [
  ["button, a[href], summary, [role=button]", / |Enter/],
  ["select, textarea, [contenteditable], input:not([type=range])", /./],
  ["input[type=range]:not(#scrub, #live-scrub)", /Arrow|Home|End|Page/],
];

class Shortcuts {
  constructor(dialog, opener) {
    this.known = new Map();
    // Keys that mean something else for a while, by name: functions.
    this.instead = {};
    this.dialog = dialog;
    opener.addEventListener("click", () => this.show());
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
    document.addEventListener("keydown", (event) => this.press(event));
    this.add("?", "These shortcuts", () => this.show());
  }

  // A key as KeyboardEvent.key names it ("n", "[", " ", "ArrowLeft"), with "Shift+" before the name of a key
  // that writes no character; what it does, in a few words; and the function that does it.
  add(key, text, act) {
    if (this.known.has(key)) throw new Error(`the key ${key} is taken`);
    this.known.set(key, { text, act });
  }

  press(event) {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || this.dialog.open) return;
    const { key, target } = event;
    if (OWN_KEYS.some(([control, keys]) => target.closest?.(control) && keys.test(key))) return;
    const named = event.shiftKey && key.length > 1 ? `Shift+${key}` : key;
    const found = this.known.get(named) || this.known.get(key.toLowerCase());
    const act = this.instead[named] || found?.act;
    if (!act) return;
    event.preventDefault();
    act();
  }

  show() {
    const shown = { " ": "Space", ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓" };
    const keys = (key) => key.split(/(?<=.)\+/).map((part) => element("kbd", {}, shown[part] || (/^[a-z]$/.test(part) ? part.toUpperCase() : part)));
    const rows = [...this.known].map(([key, { text }]) => element("div", {}, element("dt", {}, ...keys(key)), element("dd", {}, text)));
    const close = element("button", { type: "button", class: "small", onclick: () => this.dialog.close() }, "Close");
    this.dialog.replaceChildren(element("header", {}, element("h2", { id: "shortcuts-title" }, "Keyboard shortcuts"), close), element("dl", {}, ...rows));
    this.dialog.showModal();
  }
}
