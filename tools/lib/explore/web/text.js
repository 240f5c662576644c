import { h } from "./dom.js";

// The words of Python, of TorchScript and of the graph text, in one expression: they do not get in each other's way.
const word = /(#.*$)|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(%[\w.$\/:-]+)|\b(def|return|class|for|while|if|elif|else|in|not|and|or|is|import|from|with|as|pass|raise|assert|lambda|None|True|False|self|graph|block\d+)\b|((?:[a-z_]\w*)::\w+)|\b((?:Float|Double|Half|BFloat16|Long|Int|Short|Char|Byte|Bool|Tensor|int|float|bool|str|List|Optional|Dict|Tuple|NoneType)(?:\([^()]*\)|\[\])?)|((?<![\w.%])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?)/g;
const kinds = ["", "c", "s", "v", "k", "k", "ty", "n"];

// highlight makes the spans of a line. value is a name that is marked wherever it stands.
export function highlight(text, value) {
  const out = [];
  let at = 0;
  for (const m of text.length > 4000 ? [] : text.matchAll(word)) {
    if (m.index > at) out.push(text.slice(at, m.index));
    const kind = m.slice(1).findIndex((g) => g !== undefined) + 1;
    const span = h("span", { class: kinds[kind] }, m[0]);
    if (kind === 3) {
      span.dataset.value = m[0].slice(1);
      if (span.dataset.value === value) span.classList.add("same");
    }
    out.push(span);
    at = m.index + m[0].length;
  }
  out.push(text.slice(at));
  return out;
}

const rowHeight = 18;

// Lines is a list of which only the rows in sight are on the page. render(i) gives a row's element.
export class Lines {
  constructor({ label, render, pick, hover }) {
    this.render = render;
    this.rows = 0;
    this.room = h("div", { class: "room" });
    this.element = h("div", { class: "list mono", tabindex: 0, role: "listbox", "aria-label": label }, this.room);
    this.element.addEventListener("scroll", () => this.draw(), { passive: true });
    const at = (e) => {
      const row = e.target.closest(".row");
      return row ? +row.dataset.i : -1;
    };
    this.room.addEventListener("click", (e) => {
      const i = at(e);
      if (i >= 0) pick(i, e.target.dataset.value);
    });
    if (hover) {
      this.room.addEventListener("mouseover", (e) => hover(at(e)));
      this.room.addEventListener("mouseleave", () => hover(-1));
    }
    this.element.addEventListener("keydown", (e) => {
      const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: 20, PageUp: -20 }[e.key];
      if (step === undefined || e.ctrlKey || e.metaKey || e.altKey || this.rows === 0) return;
      e.preventDefault();
      const i = Math.max(0, Math.min(this.rows - 1, (this.current ?? -1) + step));
      this.current = i;
      this.show(i);
      pick(i);
    });
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  // set says how many rows there are, and how many letters the longest has.
  set(rows, letters) {
    this.rows = rows;
    this.room.style.height = rows * rowHeight + "px";
    this.room.style.width = Math.min(letters, 4000) * 7.3 + 70 + "px";
    this.draw(true);
  }

  draw() {
    const first = Math.max(0, Math.floor(this.element.scrollTop / rowHeight) - 10);
    const last = Math.min(this.rows, Math.ceil((this.element.scrollTop + this.element.clientHeight) / rowHeight) + 10);
    const rows = [];
    for (let i = first; i < last; i++) {
      const row = this.render(i);
      row.dataset.i = i;
      row.style.top = i * rowHeight + "px";
      rows.push(row);
    }
    this.room.replaceChildren(...rows);
  }

  // show scrolls to a row unless it is in sight; top has it be the first one.
  show(i, top) {
    const e = this.element, y = i * rowHeight;
    if (top) e.scrollTop = y;
    else if (y < e.scrollTop + rowHeight || y > e.scrollTop + e.clientHeight - 3 * rowHeight) e.scrollTop = Math.max(0, y - e.clientHeight / 3);
  }
}
