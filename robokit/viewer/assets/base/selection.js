// What is selected and what is pointed at, the same for all parts of the page: a body, a link of it, a dof.
// A part that lets the user choose calls `select` or `hover`; every part that shows it listens.

class Selection {
  constructor(data) {
    this.data = data;
    this.body = null;
    this.link = null;
    this.dof = null;
    this.pointed = null;
    this.listeners = { select: [], hover: [] };
  }

  onSelect(listener) { this.listeners.select.push(listener); }

  onHover(listener) { this.listeners.hover.push(listener); }

  // A body by its number, with one of its links and one of its degrees of freedom; null selects nothing.
  select(body, name = null, dof = null) {
    this.body = body;
    this.link = body === null ? null : name ?? this.data.bodies.name[body];
    this.dof = dof;
    for (const listener of this.listeners.select) listener(this);
  }

  hover(body) {
    if (body === this.pointed) return;
    this.pointed = body;
    for (const listener of this.listeners.hover) listener(body);
  }
}
