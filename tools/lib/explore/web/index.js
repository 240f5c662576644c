// Index answers what belongs together in a document.
export class Index {
  constructor(doc) {
    this.doc = doc;
    const place = (f) => (f.file ? f.file + ":" + f.line : "");
    // the places of a frame: its own, and those that it was called from
    this.places = doc.frames.map((f) => {
      const out = [];
      for (let i = 0; f && i < 64; i++, f = f.caller ? doc.frames[f.caller] : null) if (place(f)) out.push(place(f));
      return out;
    });
    this.opsAt = new Map(); // place: operators
    this.into = doc.ops.map(() => []); // what an operator was made into
    doc.ops.forEach((op, i) => {
      for (const p of this.places[op.frame]) {
        if (!this.opsAt.has(p)) this.opsAt.set(p, []);
        this.opsAt.get(p).push(i);
      }
      for (const f of op.from || []) this.into[f].push(i);
    });
    this.lineOf = new Map(); // place: [source, line]
    this.savedFrom = new Map(); // place of the user: places of TorchScript made from it
    doc.sources.forEach((s, i) => s.lines.forEach((l, j) => {
      const p = s.file + ":" + l.n;
      this.lineOf.set(p, [i, j]);
      for (const f of l.from || []) {
        if (!this.savedFrom.has(f)) this.savedFrom.set(f, []);
        this.savedFrom.get(f).push(p);
      }
    }));
    const g = doc.graph || { nodes: [], values: [], inputs: [], outputs: [] };
    this.nodeOf = new Map(g.nodes.map((n, i) => [n.op, i]));
    this.valueOf = new Map(g.values.map((v, i) => [v.text, i]));
    this.makerOf = new Map();
    this.usersOf = new Map();
    g.nodes.forEach((n, i) => {
      for (const v of n.out) this.makerOf.set(v, i);
      for (const v of n.in) {
        if (!this.usersOf.has(v)) this.usersOf.set(v, []);
        this.usersOf.get(v).push(i);
      }
    });
  }

  placeOf(op) { return this.places[this.doc.ops[op].frame][0] || ""; }

  // family is an operator with all that it was made of, and all that was made of it.
  family(op) {
    const out = new Set([op]);
    const walk = (start, next) => {
      const todo = [start];
      while (todo.length) for (const o of next(todo.pop())) if (!out.has(o)) { out.add(o); todo.push(o); }
    };
    walk(op, (o) => this.doc.ops[o].from || []);
    walk(op, (o) => this.into[o]);
    return out;
  }

  // around is the set of places that belong to a place: TorchScript and the user's lines that it was made from.
  around(place) {
    const out = new Set([place, ...(this.savedFrom.get(place) || [])]);
    const at = this.lineOf.get(place);
    if (at) for (const f of this.doc.sources[at[0]].lines[at[1]].from || []) out.add(f);
    return out;
  }

  // related says which operators and places belong to a selection: strong ones to the operator itself, weak ones to its line.
  related(sel) {
    const strong = sel.op !== null ? this.family(sel.op) : new Set();
    const places = sel.place ? this.around(sel.place) : new Set();
    const weak = new Set();
    for (const p of places) for (const o of this.opsAt.get(p) || []) weak.add(o);
    if (sel.op !== null) { // of a line that many modules share, those of the same module
      const scope = this.doc.frames[this.doc.ops[sel.op].frame].scope;
      for (const o of weak) if (this.doc.frames[this.doc.ops[o].frame].scope !== scope) weak.delete(o);
      for (const o of strong) for (const p of this.places[this.doc.ops[o].frame]) places.add(p);
    }
    return { strong, weak, places };
  }
}
