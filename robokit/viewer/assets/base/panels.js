// The side's tabs: each part of the page adds its own panel.

class Panels {
  constructor(tabs, side) {
    this.tabs = tabs;
    this.side = side;
    this.known = new Map();
    this.current = null;
  }

  // Returns the panel's element; `open` is called whenever it comes into view.
  add(key, label, open = () => {}) {
    const host = element("div", { id: `panel-${key}`, class: "panel", role: "tabpanel", "aria-labelledby": `tab-${key}` });
    host.hidden = true;
    const tab = element("button", { id: `tab-${key}`, type: "button", role: "tab", "data-key": key, "aria-controls": host.id, "aria-selected": "false", onclick: () => this.open(key) }, label);
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
    }
    this.known.get(key).open();
  }

  shows(key) { return this.current === key; }
}
