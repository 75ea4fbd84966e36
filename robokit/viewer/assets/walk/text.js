// The source text of an algorithm, with the line at work marked.

const CODE = /("""[\s\S]*?"""|#[^\n]*)|("(?:\\.|[^"\\\n])*")|\b(def|for|in|if|else|elif|while|return|yield|from|import|not|is|None|and|or|True|False)\b|(\b\d[\d.e+-]*\b)/g;

// Lines of a text, each a list of [class, piece]; a docstring runs over several.
function paintedLines(text) {
  const lines = [[]];
  const put = (kind, piece) => piece.split("\n").forEach((part, k) => {
    if (k) lines.push([]);
    if (part) lines[lines.length - 1].push([kind, part]);
  });
  let at = 0;
  for (const match of text.matchAll(CODE)) {
    put("", text.slice(at, match.index));
    put(match[1] ? "remark" : match[2] ? "quoted" : match[3] ? "word" : "digits", match[0]);
    at = match.index + match[0].length;
  }
  put("", text.slice(at));
  if (!lines[lines.length - 1].length) lines.pop();
  return lines;
}

class SourceText {
  constructor(host) {
    this.files = element("div", { class: "files" });
    this.pane = element("div", { class: "source", tabindex: "0", role: "region", "aria-label": "Source text" });
    host.append(this.files, this.pane);
  }

  open(listings) {
    this.pages = listings.map((listing) => {
      const lines = paintedLines(listing.text).map((pieces, k) => {
        const row = element("div", { class: "line" }, element("span", { class: "at" }, String(k + 1)), ...pieces.map(([kind, piece]) => element("span", { class: kind }, piece)));
        row.style.setProperty("--begins", pieces.map(([, piece]) => piece).join("").search(/\S|$/));
        return row;
      });
      return { lines, page: element("div", { class: "listing" }, ...lines), name: element("span", {}, `robokit/algorithms/${listing.file}`) };
    });
    this.files.replaceChildren(...this.pages.map(({ name }) => name));
    this.marked = [];
    this.shown = null;
  }

  mark(form) {
    const { lines, page, name } = this.pages[form.listing];
    if (this.shown !== page) {
      this.shown = page;
      this.pane.replaceChildren(page);
      for (const each of this.pages) each.name.classList.toggle("on", each.name === name);
    }
    for (const line of this.marked) line.classList.remove("now");
    this.marked = lines.slice(form.line - 1, form.last);
    for (const line of this.marked) line.classList.add("now");
    const [top, bottom] = [this.marked[0].offsetTop, this.marked[this.marked.length - 1].offsetTop + this.marked[0].offsetHeight];
    const { scrollTop, clientHeight } = this.pane;
    if (top < scrollTop + 30 || bottom > scrollTop + clientHeight - 30) this.pane.scrollTop = Math.max(0, top - 0.38 * clientHeight);
  }
}
