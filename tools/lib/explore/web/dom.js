// What is on the page is made by these functions alone: text that comes from a model becomes text nodes, never markup.

export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

export function svg(tag, props, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), props, children);
}

function fill(e, props, children) {
  for (const [k, v] of Object.entries(props || {})) {
    if (v === undefined || v === null || v === false) continue;
    if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
    else if (k === "value") e.value = v;
    else if (k === "checked") e.checked = v;
    else e.setAttribute(k, v === true ? "" : v);
  }
  e.append(...children.flat(3).filter((c) => c !== null && c !== undefined && c !== false));
  return e;
}

// bytes, count and millis spell numbers for people.
export function bytes(n) {
  if (n < 0) return "?";
  for (const unit of ["B", "kB", "MB", "GB", "TB"]) {
    if (n < 1000) return (unit === "B" ? n : n.toPrecision(3)) + " " + unit;
    n /= 1000;
  }
  return n.toPrecision(3) + " PB";
}

export function count(n) {
  if (n < 0) return "?";
  for (const unit of ["", "k", "M", "G", "T"]) {
    if (n < 1000) return (unit === "" ? n : n.toPrecision(3)) + unit;
    n /= 1000;
  }
  return n.toPrecision(3) + "P";
}

export function real(x) {
  return x === 0 ? "0" : Math.abs(x) >= 1e5 || Math.abs(x) < 1e-3 ? x.toExponential(3) : x.toPrecision(5);
}

// download hands a file to the person.
export function download(name, blob) {
  const url = URL.createObjectURL(blob);
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

// histogram draws the counts of equal parts.
export function histogram(s) {
  if (!s || !s.histogram) return null;
  const top = Math.max(...s.histogram), n = s.histogram.length;
  return h("div", {},
    svg("svg", { class: "histogram", viewBox: `0 0 ${n * 10} 90`, preserveAspectRatio: "none", role: "img", "aria-label": "histogram" },
      s.histogram.map((c, i) => svg("rect", { x: i * 10 + 1, width: 8, y: 90 - 90 * c / top, height: 90 * c / top }, svg("title", {}, `${c}`)))),
    h("div", { class: "dim mono" }, `${real(s.min)} … ${real(s.max)}`));
}
