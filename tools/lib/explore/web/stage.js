// stageGraph makes of the text of a stage what doc.graph is of the converted model: nodes, values, inputs and outputs, without names of the file
// and without cost. Constants are values, as there.
export function stageGraph(doc, stage) {
  const g = { nodes: [], values: [], inputs: [], outputs: [], outputNames: [], operands: {}, opaque: 0, sizes: {} };
  const inputs = new Set(stage.inputs), byName = new Map();
  const value = (name, type) => {
    let v = byName.get(name);
    if (v === undefined) {
      byName.set(name, (v = g.values.length));
      g.values.push({ name, text: name, type: type || "", weight: -1 });
    }
    if (type) g.values[v].type = type;
    return v;
  };
  const stack = []; // bodies that are open: {node, branch}
  let header = true, params = 0, ended = -1; // the node whose body was the last to end
  for (let i = 0; i < stage.lines.length; i++) {
    const text = doc.text[stage.lines[i]].trim(), op = stage.ops[i];
    if (header) {
      for (const [name, type] of typed(text.replace(/^graph\(/, ""))) {
        const v = value(name, type);
        if (inputs.has(params++)) g.inputs.push(v);
        else g.values[v].weight = 0;
      }
      header = !text.endsWith("):");
      continue;
    }
    const top = stack[stack.length - 1];
    if (op < 0) {
      const block = text.match(/^block(\d+)\(/);
      if (block) {
        const node = +block[1] ? ended : g.nodes.length - 1;
        stack.push({ node, branch: +block[1] });
        g.nodes[node].bodies.push({ params: typed(text.slice(block[0].length)).map(([n, t]) => value(n, t)), returns: [] });
      } else if (text.startsWith("->")) {
        const { node, branch } = stack.pop();
        g.nodes[node].bodies[branch].returns = names(text).map((n) => value(n));
        ended = node;
      } else if (text.startsWith("return")) {
        g.outputs = names(text).map((n) => value(n));
        g.outputNames = g.outputs.map((v) => g.values[v].name);
        break; // other functions follow
      }
      continue;
    }
    const { results, kind, attrs, operands } = line(text);
    const out = results.map(([n, t]) => value(n, t));
    if (/::Constant$/.test(kind) && out.length === 1) {
      g.values[out[0]].note = (attrs.match(/^value=(.*)$/s) || [, attrs || "None"])[1].slice(0, 60);
      continue;
    }
    g.nodes.push({
      op, kind: kind.replace(/^onnx::/, ""), name: results.length ? results[0][0] : "", in: operands.map((n) => value(n)), out, module: doc.frames[doc.ops[op].frame].scope || "",
      parent: top ? top.node : -1, branch: top ? top.branch : 0, attrs: attrs ? [{ name: "", text: attrs.length > 200 ? attrs.slice(0, 199) + "…" : attrs }] : [], flops: -1, bytes: -1, bodies: [],
    });
  }
  for (const n of g.nodes) if (!n.bodies.length) delete n.bodies;
  return g;
}

const token = /"(?:[^"\\]|\\.)*"|%(?:"(?:[^"\\]|\\.)*"|(?:[\w.\/$-]|::)+)|[\[\](){}]| = |, |./g;

// bare is a name without % and quotes, in which bytes that are no plain letters are written as \ooo.
function bare(name) {
  if (name[1] !== '"') return name.slice(1);
  const text = name.slice(2, -1).replace(/\\([0-7]{3}|.)/g, (_, c) => (c.length === 3 ? String.fromCharCode(parseInt(c, 8)) : { n: "\n", t: "\t", r: "\r" }[c] || c));
  return new TextDecoder().decode(Uint8Array.from(text, (c) => c.charCodeAt(0)));
}

// names are the values in a text.
function names(text) { return [...text.matchAll(token)].map((m) => m[0]).filter((t) => t[0] === "%").map(bare); }

// typed are the values of a list, each with its type: %x : Float(2, 3), %n : int
function typed(text) {
  const out = [];
  let depth = 0;
  for (const [t] of text.matchAll(token)) {
    if (t[0] === "%") { out.push([bare(t), ""]); depth = 0; continue; }
    if (!out.length) continue;
    if ("([{".includes(t)) depth++;
    else if (")]}".includes(t) && --depth < 0) break; // the end of the list
    out[out.length - 1][1] += t;
  }
  return out.map(([n, t]) => [n, brief(t.replace(/^ : /, "").replace(/, ?$/, ""))]);
}

const elements = { Float: "f32", Double: "f64", Half: "f16", BFloat16: "bf16", Long: "i64", Int: "i32", Short: "i16", Char: "i8", Byte: "u8", Bool: "bool" };

// brief spells the type of a tensor as in the converted model: Float(2, 3) is f32[2,3].
function brief(type) {
  const m = type.match(/^(\w+)\((.*)\)$/s);
  return m && elements[m[1]] ? `${elements[m[1]]}[${m[2].replace(/, /g, ",")}]` : type;
}

// line splits an operator: results = kind[attributes](operands)
function line(text) {
  const parts = [...text.matchAll(token)].map((m) => m[0]);
  let at = parts.indexOf(" = ");
  if (text.startsWith("= ")) at = 0; // no results
  const left = at > 0 ? parts.slice(0, at).join("") : "";
  let i = at === 0 ? 2 : at + 1, kind = "", attrs = "", depth = 0;
  while (i < parts.length && parts[i] !== "[" && parts[i] !== "(") kind += parts[i++];
  if (parts[i] === "[") {
    for (; i < parts.length; i++) {
      if ("[({".includes(parts[i])) { if (depth++ === 0) continue; }
      else if ("])}".includes(parts[i]) && --depth === 0) { i++; break; }
      attrs += parts[i];
    }
  }
  return { results: typed(left), kind: kind.trim(), attrs, operands: parts.slice(i).filter((t) => t[0] === "%").map(bare) };
}

// typesLast is a line of a stage with the types of its results behind the operator: %x = aten::relu(%y) : Float(2, 3)
export function typesLast(text) {
  const lead = text.slice(0, text.length - text.trimStart().length), parts = [...text.trimStart().matchAll(token)].map((m) => m[0]), at = parts.indexOf(" = ");
  if (at < 0) return text;
  const values = [], types = [];
  let depth = 0, type = null;
  for (const t of parts.slice(0, at)) {
    if (t[0] === "%") { values.push(t); type = ""; continue; }
    if ("([{".includes(t)) depth++;
    else if (")]}".includes(t)) depth--;
    if (t === ", " && depth === 0) { types.push(type); type = null; } else if (type !== null) type += t;
  }
  if (type !== null) types.push(type);
  return lead + values.join(", ") + parts.slice(at).join("") + " : " + types.map((t) => t.replace(/^ : /, "")).join(", ");
}
