// The side's tabs: each part of the page adds its own panel.

class Panels {
  constructor(tabs, side) {
    this.tabs = tabs;
    this.side = side;
    this.known = new Map();
    this.current = null;
    tabs.addEventListener("keydown", (event) => this.walk(event));
  }

  // Arrow keys go from tab to tab and round; only the open one is a stop of the Tab key.
  walk(event) {
    const keys = [...this.known.keys()], at = keys.indexOf(this.current), last = keys.length - 1;
    const next = { ArrowRight: at === last ? 0 : at + 1, ArrowLeft: at ? at - 1 : last, Home: 0, End: last }[event.key];
    if (next === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.open(keys[next]);
    this.known.get(keys[next]).tab.focus();
  }

  // Returns the panel's element; `open` is called whenever it comes into view.
  add(key, label, open = () => {}) {
    const host = element("div", { id: `panel-${key}`, class: "panel", role: "tabpanel", "aria-labelledby": `tab-${key}` });
    host.hidden = true;
    const tab = element("button", { id: `tab-${key}`, type: "button", role: "tab", "data-key": key, "aria-controls": host.id, "aria-selected": "false", tabindex: "-1", onclick: () => this.open(key) }, label);
    this.tabs.append(tab);
    this.side.append(host);
    this.known.set(key, { host, tab, open });
    return host;
  }

  open(key) {
    this.current = key;
    for (const [other, { host, tab }] of this.known) {
      host.hidden = other !== key;
      tab.setAttribute("aria-selected", String(other === key));
      tab.tabIndex = other === key ? 0 : -1;
    }
    this.known.get(key).open();
  }

  shows(key) { return this.current === key; }
}
