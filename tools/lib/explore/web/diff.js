// align puts two lists of numbers side by side: pairs [left, right] of positions, with -1 for what the other side does not have.
// It is the patience method: what is on each side once and in the same order on both is common, and so is what stands next to that.
// Between common lines, made(j) gives the positions on the left that line j was made of: the first that is free stands beside it.
export function align(a, b, made) {
  const once = (list) => {
    const seen = new Map();
    list.forEach((x, i) => seen.set(x, seen.has(x) ? -1 : i));
    return seen;
  };
  const left = once(a), right = once(b);
  const pairs = [];
  a.forEach((x, i) => {
    if (left.get(x) === i && right.get(x) >= 0) pairs.push([i, right.get(x)]);
  });
  const common = rising(pairs);
  const out = [];
  let i = 0, j = 0;
  const until = (p, q) => {
    let m = p, n = q; // what is common above the next pair
    const tail = [];
    while (i < p && j < q && a[i] === b[j]) out.push([i++, j++]);
    while (m > i && n > j && a[m - 1] === b[n - 1]) tail.push([--m, --n]);
    while (i < m || j < n) {
      const k = j < n ? made(j).find((k) => k >= i && k < m) : undefined;
      if (j < n && (k !== undefined || i === m)) {
        while (k !== undefined && i < k) out.push([i++, -1]);
        out.push([k !== undefined ? i++ : -1, j++]);
      } else if (j < n) out.push([-1, j++]);
      else out.push([i++, -1]);
    }
    for (const t of tail.reverse()) out.push(t);
    i = p;
    j = q;
  };
  for (const [p, q] of common) {
    if (p < i || q < j) continue;
    until(p, q);
    out.push([i++, j++]);
  }
  until(a.length, b.length);
  return out;
}

// rising is the longest part of pairs, sorted by their first numbers, whose second numbers rise.
function rising(pairs) {
  const tops = [], before = new Array(pairs.length).fill(-1);
  pairs.forEach(([, q], k) => {
    let lo = 0, hi = tops.length;
    while (lo < hi) {
      const mid = (lo + hi) >> 1;
      if (pairs[tops[mid]][1] < q) lo = mid + 1;
      else hi = mid;
    }
    if (lo > 0) before[k] = tops[lo - 1];
    tops[lo] = k;
  });
  const out = [];
  for (let k = tops.length ? tops[tops.length - 1] : -1; k >= 0; k = before[k]) out.push(pairs[k]);
  return out.reverse();
}
