import { h } from "./dom.js";
import { Lines, highlight } from "./text.js";
import { align } from "./diff.js";

const context = 3; // unchanged lines that stay around a change when the others are folded

// Code shows the sources, and two stages side by side with their difference.
export class Code {
  constructor(app) {
    this.app = app;
    const { doc } = app;
    this.element = h("div", { class: "columns" });
    this.sources = this.sourcePane();
    this.left = this.stagePane("left");
    this.right = this.stagePane("right");
    this.element.append(this.sources.element, this.left.element, this.right.element);
    let other = null; // the list that follows, while one is scrolled
    for (const [a, b] of [[this.left, this.right], [this.right, this.left]]) {
      a.list.element.addEventListener("scroll", () => {
        if (other === a) { other = null; return; }
        if (b.list.element.scrollTop !== a.list.element.scrollTop) {
          other = b;
          b.list.element.scrollTop = a.list.element.scrollTop;
        }
      }, { passive: true });
    }
    this.shown = "";
    // the user's own file before those of libraries, and these before TorchScript
    const rank = (s) => (s.saved ? 4 : s.file.startsWith("<") ? 3 : /(^|\/)torch\//.test(s.file) ? 2 : /(site|dist)-packages\//.test(s.file) ? 1 : 0);
    const linked = doc.sources.map((s) => s.lines.filter((l) => app.index.opsAt.has(s.file + ":" + l.n)).length);
    const order = (i, j) => rank(doc.sources[i]) - rank(doc.sources[j]) || linked[j] - linked[i] || i - j;
    this.file = doc.sources.length ? doc.sources.map((_, i) => i).sort(order)[0] : -1;
  }

  sourcePane() {
    const { app } = this, { doc, index } = app;
    const pane = {};
    const select = h("select", { "aria-label": "source file", onchange: () => { this.file = +select.value; this.drawSource(); } },
      doc.sources.map((s, i) => h("option", { value: i }, (s.saved ? "TorchScript · " : "Python · ") + s.file.replace(/^code\/__torch__\//, "").split("/").slice(-3).join("/"))));
    const line = (i) => doc.sources[this.file].lines[i];
    pane.list = new Lines({
      label: "source", pick: (i) => app.select({ op: null, place: doc.sources[this.file].file + ":" + line(i).n, value: null }),
      hover: (i) => app.hover(i < 0 || this.file < 0 ? null : doc.sources[this.file].file + ":" + line(i).n),
      render: (i) => {
        const l = line(i), place = doc.sources[this.file].file + ":" + l.n;
        const linked = index.opsAt.has(place) || [...index.around(place)].some((p) => index.opsAt.has(p));
        const row = h("div", { class: "row" + (linked ? "" : " none"), role: "option" }, h("span", { class: "no" }, l.n), highlight(l.t));
        if (app.related.places.has(place)) row.classList.add(app.state.place === place ? "hit" : "soft");
        if (app.hovered.places.has(place)) row.classList.add("hover");
        if (i > 0 && line(i - 1).n + 1 !== l.n) row.classList.add("jump");
        return row;
      },
    });
    pane.select = select;
    const none = doc.sources.length === 0;
    pane.element = h("section", { "aria-label": "sources" }, h("div", { class: "bar" }, h("b", {}, "Source"), none ? null : select),
      none ? h("p", { class: "busy" }, "The file has no source text. Lines of the program are named in the inspector.") : pane.list.element);
    return pane;
  }

  stagePane(side) {
    const { app } = this, { doc } = app;
    const select = h("select", { "aria-label": side + " stage", onchange: () => app.set({ [side]: +select.value }) },
      doc.stages.map((s, i) => h("option", { value: i }, `${i} · ${s.name}`)));
    const pane = { select, side };
    pane.list = new Lines({
      label: side + " stage",
      pick: (i, value) => {
        const row = this.rows[i];
        if (row.fold) { this.fold.delete(row.fold); this.drawStages(); return; }
        const at = row[side];
        if (at < 0) return;
        const op = app.stage(side).ops[at];
        app.select({ op: op >= 0 ? op : null, place: op >= 0 ? app.index.placeOf(op) : null, value: value ?? null });
      },
      hover: (i) => {
        const row = i < 0 ? null : this.rows[i];
        const op = row && !row.fold && row[side] >= 0 ? app.stage(side).ops[row[side]] : -1;
        app.hover(op >= 0 ? app.index.placeOf(op) : null, op);
      },
      render: (i) => this.row(side, this.rows[i]),
    });
    const step = (d) => app.set({ [side]: Math.max(0, Math.min(doc.stages.length - 1, app.state[side] + d)) });
    pane.element = h("section", { "aria-label": side + " stage" },
      h("div", { class: "bar" }, h("b", {}, "IR"), select,
        h("button", { title: "the stage before", "aria-label": side + ": the stage before", onclick: () => step(-1) }, "‹"),
        h("button", { title: "the next stage", "aria-label": side + ": the next stage", onclick: () => step(1) }, "›"),
        side === "right" ? h("label", {}, this.folding = h("input", { type: "checkbox", onchange: () => { this.shown = ""; this.draw(); } }), " changes only") : null, pane.info = h("span", { class: "dim" })), pane.list.element);
    return pane;
  }

  row(side, row) {
    if (row.fold) return h("div", { class: "row fold", role: "option" }, `${row.fold[1] - row.fold[0]} equal lines`);
    const at = row[side];
    if (at < 0) return h("div", { class: "row gap", role: "option" }, " ");
    const { app } = this, s = app.stage(side), op = s.ops[at];
    const e = h("div", { class: "row", role: "option" }, h("span", { class: "no" }, at + 1), highlight(app.doc.text[s.lines[at]], app.state.value));
    if (row[side === "left" ? "right" : "left"] < 0) e.classList.add(side === "left" ? "del" : "add");
    else if (!this.same([row.left, row.right])) e.classList.add("mod");
    if (op >= 0) {
      if (op === app.state.op || app.related.strong.has(op)) e.classList.add("hit");
      else if (app.related.weak.has(op)) e.classList.add("soft");
      if (app.hovered.strong.has(op) || app.hovered.weak.has(op)) e.classList.add("hover");
    }
    return e;
  }

  // draw shows the state. What is selected comes into sight.
  draw() {
    const { app } = this, key = `${app.state.left} ${app.state.right} ${this.folding.checked}`;
    if (this.shown !== key) {
      this.shown = key;
      this.left.select.value = app.state.left;
      this.right.select.value = app.state.right;
      this.pairs = align(app.stage("left").lines, app.stage("right").lines, this.made());
      this.fold = new Set();
      if (this.folding.checked) {
        let from = 0;
        const differs = (p) => !this.same(p);
        const end = (to) => {
          const a = from === 0 ? 0 : from + context, b = to === this.pairs.length ? to : to - context;
          if (b - a > 3) this.fold.add([a, b]);
        };
        this.pairs.forEach((p, i) => {
          if (!differs(p)) return;
          end(i);
          from = i + 1;
        });
        end(this.pairs.length);
      }
      this.drawStages();
    }
    this.drawSource();
    this.left.list.draw();
    this.right.list.draw();
    if (!this.begun) { // past the weights
      this.begun = true;
      const first = (side) => this.rows.findIndex((r) => !r.fold && r[side] >= 0 && app.stage(side).ops[r[side]] >= 0);
      this.right.list.show(Math.max(0, Math.max(first("left"), first("right")) - 2), true);
    }
  }

  // made tells which lines on the left a line on the right was made of.
  made() {
    const { app } = this, left = app.stage("left").ops, right = app.stage("right").ops, at = new Map();
    left.forEach((o, i) => o >= 0 && at.set(o, i));
    return (j) => {
      const out = [], seen = new Set(), todo = right[j] >= 0 ? [right[j]] : [];
      while (todo.length && seen.size < 64) {
        const o = todo.pop();
        if (seen.has(o)) continue;
        seen.add(o);
        if (at.has(o)) out.push(at.get(o));
        else todo.push(...(app.doc.ops[o].from || []));
      }
      return out.sort((x, y) => x - y);
    };
  }

  same(p) { return p[0] >= 0 && p[1] >= 0 && this.app.stage("left").lines[p[0]] === this.app.stage("right").lines[p[1]]; }

  drawStages() {
    this.rows = [];
    const folds = [...this.fold].sort((a, b) => a[0] - b[0]);
    for (let i = 0, k = 0; i < this.pairs.length; i++) {
      if (k < folds.length && i === folds[k][0]) {
        this.rows.push({ fold: folds[k] });
        i = folds[k++][1] - 1;
        continue;
      }
      this.rows.push({ left: this.pairs[i][0], right: this.pairs[i][1] });
    }
    for (const pane of [this.left, this.right]) {
      const s = this.app.stage(pane.side);
      const longest = s.lines.reduce((n, t) => Math.max(n, this.app.doc.text[t].length), 0);
      pane.list.set(this.rows.length, longest);
      const changed = this.pairs.filter((p) => p[pane.side === "left" ? 0 : 1] >= 0 && !this.same(p)).length;
      pane.info.textContent = changed ? `${changed} differ` : `${s.lines.length} lines`;
    }
  }

  drawSource() {
    if (this.file < 0) return;
    const s = this.app.doc.sources[this.file];
    this.sources.select.value = this.file;
    this.sources.list.set(s.lines.length, s.lines.reduce((n, l) => Math.max(n, l.t.length), 0));
  }

  // reveal scrolls all three panes to the selection.
  reveal() {
    const { app } = this, { doc, index, state } = app;
    let at = state.place && index.lineOf.get(state.place);
    if (!at) for (const p of app.related.places) if ((at = index.lineOf.get(p))) break;
    if (at) {
      this.file = at[0];
      this.drawSource();
      this.sources.list.show(at[1]);
    }
    for (const pane of [this.right, this.left]) {
      const s = app.stage(pane.side);
      const find = (test) => this.rows.findIndex((r) => !r.fold && r[pane.side] >= 0 && s.ops[r[pane.side]] >= 0 && test(s.ops[r[pane.side]]));
      let i = find((o) => o === state.op);
      if (i < 0) i = find((o) => app.related.strong.has(o));
      if (i < 0) i = find((o) => app.related.weak.has(o));
      if (i >= 0) pane.list.show(i);
    }
  }
}
