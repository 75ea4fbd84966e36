// Light or dark: as the system has it, until the reader chooses; the choice is remembered for other pages.

const THEME_KEY = "robokit-theme";

class Theme {
  constructor(button) {
    this.listeners = [];
    this.system = matchMedia("(prefers-color-scheme: dark)");
    this.chosen = Theme.remembered();
    this.system.addEventListener("change", () => this.apply());
    button.addEventListener("click", () => {
      this.chosen = this.dark ? "light" : "dark";
      Theme.remember(this.chosen);
      this.apply();
    });
    this.apply();
  }

  get dark() { return (this.chosen || (this.system.matches ? "dark" : "light")) === "dark"; }

  onChange(listener) { this.listeners.push(listener); }

  apply() {
    document.documentElement.dataset.theme = this.dark ? "dark" : "light";
    for (const listener of this.listeners) listener(this.dark);
  }

  // A page without an origin, or a reader who forbids it, has no storage: then nothing is remembered.
  static remembered() {
    try {
      const found = localStorage.getItem(THEME_KEY);
      return found === "dark" || found === "light" ? found : null;
    } catch { return null; }
  }

  static remember(theme) {
    try { localStorage.setItem(THEME_KEY, theme); } catch { /* it holds for this page only */ }
  }
}

// What follows the theme by itself, after it has changed.
function whenThemeChanges(listener) {
  new MutationObserver(listener).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
}
