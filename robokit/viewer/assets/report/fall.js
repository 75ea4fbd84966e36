// A row runs again: a Worker takes its steps, and the page of a fall shows it in a frame.

const MARK = "{{ data }}";

class Fall {
  constructor(host, rows, open) {
    this.rows = rows;
    this.open = open;
    this.place = -1;
    this.listeners = [];
    this.runners = new Map();
    this.waiting = new Map();
    this.asked = 0;
    this.title = element("h2", {}, "No row yet");
    this.facts = element("p", { class: "row-facts" }, "Select a row in the table or a point of the scatter plot to run its fall again here.");
    this.state = element("p", { class: "row-state", role: "status" });
    const button = (text, title, act) => element("button", { type: "button", class: "small", title, "aria-label": title, onclick: act }, text);
    this.tools = element("div", { class: "row-tools" }, button("◀", "Previous row in the table (P)", () => this.step(-1)), button("▶", "Next row in the table (N)", () => this.step(1)),
      button("New window", "Open this fall in a new window", () => this.window()), button("Save page", "Save the page of this fall as a file", () => this.save()));
    this.command = element("code", { class: "row-command", title: "Command that writes the full page of this row", tabindex: "0" });
    this.tools.hidden = this.command.hidden = true;
    this.frame = element("iframe", { title: "The fall of the row" });
    this.frame.hidden = true;
    this.frame.addEventListener("load", () => this.loaded());
    host.append(element("header", { class: "row-head" }, this.title, this.tools, this.facts, this.state, this.command), this.frame);
  }

  onRow(listener) { this.listeners.push(listener); }

  step(by) {
    const next = this.table.next(this.place, by);
    if (next >= 0) this.show(next);
  }

  // ---- from the click to the picture -----------------------------------------------------------------

  async show(place) {
    const { rows } = this, { report } = rows, number = rows.numbers[place], asked = ++this.asked;
    this.place = place;
    this.result = null;
    for (const listener of this.listeners) listener();
    this.open();
    this.title.textContent = `Row ${grouped(number)}`;
    const told = rows.columns.filter((column) => column.role === "parameter" && !(column.labels && column.labels.length < 2));
    this.facts.textContent = told.map((column) => `${column.title} ${column.text(column.values[place], true)}`).join("  ·  ");
    this.command.textContent = report.command.replace("ROW", String(number));
    this.command.hidden = false;
    this.tell("Running …");
    try {
      const runner = await this.runnerOf(place);
      const inputs = runner.inputs.of(runner.inputs.find(place));
      const failed = rows.column("failure"), reason = failed ? failed.labels[failed.values[place]] : undefined;
      if (![...inputs.q, ...(inputs.parameters ?? [])].every(Number.isFinite)) {
        this.frame.hidden = this.tools.hidden = true;
        throw new Error(`This row could not start: ${reason ?? "its numbers are not finite"}`);
      }
      const heard = new Promise((resolve, reject) => this.waiting.set(asked, { resolve, reject }));
      runner.engine.send("rerun", { number: asked, inputs, steps: runner.steps });
      const { run, seconds } = await heard;
      if (asked !== this.asked) return;
      this.result = { run, inputs, hash: stateHash(run.q, run.v), known: runner.inputs.hashes?.[runner.inputs.find(place)] || null };
      this.tell(this.verdict(seconds));
      // A row that breaks down at once has no motion to show.
      if (run.done) await this.draw(runner, number, place);
      else this.frame.hidden = this.tools.hidden = true;
    } catch (error) {
      if (asked === this.asked) this.tell(error.message, "bad");
    }
  }

  verdict(seconds) {
    const { run, hash, known } = this.result, took = `${run.done} steps in ${figure(1000 * seconds)} ms`;
    if (!run.finite) return [`Stopped at ${figure(run.done * run.dt)} s: not finite`, "bad", took];
    const failed = this.rows.column("failure"), reason = failed ? failed.labels[failed.values[this.place]] : undefined;
    if (known === null) return [reason ? `Failed in the sweep: ${reason}` : "No hash was recorded to compare with", reason ? "bad" : "", took];
    if (hash === known) return ["Same bits as the sweep recorded", "good", took];
    return ["Different bits from those recorded by the sweep", "bad", took];
  }

  tell(text, kind = "", more = "") {
    if (Array.isArray(text)) return this.tell(...text);
    this.state.className = `row-state ${kind}`;
    this.state.replaceChildren(element("b", {}, text), more ? element("span", {}, more) : "");
  }

  // The robot of a row with its Worker, started when it is first asked for.
  async runnerOf(place) {
    const { report } = this.rows, label = this.rows.column("robot");
    const name = label ? label.labels[label.values[place]] : null;
    const rerunData = report.reruns.find((rerunData) => name === null || rerunData.robot === name);
    if (!rerunData) throw new Error("This page does not contain the robot of this row; the command below writes the page of the row.");
    if (rerunData.problem) throw new Error(rerunData.problem);
    if (!this.runners.has(rerunData)) this.runners.set(rerunData, this.start(rerunData));
    const runner = await this.runners.get(rerunData);
    if (runner.inputs.find(place) < 0) throw new Error("This page does not contain the start of this row; the command below writes the page of the row.");
    return runner;
  }

  async start(rerunData) {
    const text = new TextDecoder().decode(await inflated(rerunData.payload)), base = JSON.parse(text);
    const engine = new LiveEngine(base.live);
    engine.on("rerun", (message) => {
      this.waiting.get(message.number)?.resolve(message);
      this.waiting.delete(message.number);
    });
    engine.on("problem", ({ message }) => {
      for (const { reject } of this.waiting.values()) reject(new Error(message));
      this.waiting.clear();
    });
    return { base, engine, inertial: rerunData.inertial, steps: rerunData.steps, inputs: await RowInputs.load(rerunData) };
  }

  // The page of the row, as a file would hold it.
  async draw(runner, number, place) {
    const { rows, result } = this, { report } = rows;
    this.page ??= new TextDecoder().decode(await inflated(report.page)).split(MARK);
    const told = rows.columns.filter((column) => !column.byPart).map((column) => ({ role: column.role, title: column.title, text: column.text(column.values[place], true), about: "" }));
    const bodies = runner.base.bodies.name.length - 1, { inputs } = result;
    // Where inertias are inputs of the step, they are an array of their own, or the last of its parameters.
    const last = inputs.parameters ?? inputs["inertia"];
    const inertial = runner.inertial ? Array.from({ length: bodies }, (_, k) => [...last.subarray(last.length - 10 * (bodies - k), last.length - 10 * (bodies - k) + 10)]) : null;
    const made = rowData(runner.base, result.run, result.inputs, inertial, `${runner.base.robot.name} ${number}`, told);
    const text = JSON.stringify(made, (_, value) => (typeof value === "number" && !Number.isFinite(value) ? null : value)).replace(/[&<>]/g, (c) => `\\u00${c.charCodeAt(0).toString(16)}`);
    this.text = this.page.join(text);
    this.name = `row_${number}.html`;
    this.tools.hidden = false;
    this.frame.hidden = false;
    this.frame.title = `The fall of row ${number}`;
    const there = new Promise((resolve) => this.frame.addEventListener("load", resolve, { once: true }));
    this.frame.srcdoc = this.text;
    await there;
  }

  // The page in the frame, once it is there.
  get inside() {
    try { return this.frame.contentWindow?.robokit ?? null; } catch { return null; }
  }

  loaded() {
    const page = this.inside;
    if (!page?.timeline) return;
    this.paint();
  }

  // The frame has the theme of the report.
  paint() {
    const page = this.inside;
    if (!page) return;
    page.theme.chosen = this.theme.dark ? "dark" : "light";
    page.theme.apply();
  }

  window() { open(URL.createObjectURL(new Blob([this.text], { type: "text/html" })), "_blank"); }

  save() {
    const url = URL.createObjectURL(new Blob([this.text], { type: "text/html" }));
    element("a", { href: url, download: this.name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  }
}
