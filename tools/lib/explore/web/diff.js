// align puts two lists of numbers side by side: pairs [left, right] of positions, with -1 for what the other side does not have.
// What is on each side once is common, as in the patience method, and line j on the right belongs to the lines made(j) on the left that it was
// made of. The longest list of such pairs that keeps both orders stands side by side, with equal lines next to them; what is left between two
// of them stands beside each other too.
export function align(a, b, made) {
  const once = (list) => {
    const seen = new Map();
    list.forEach((x, i) => seen.set(x, seen.has(x) ? -1 : i));
    return seen;
  };
  const left = once(a), right = once(b), pairs = [];
  a.forEach((x, i) => {
    if (left.get(x) === i && right.get(x) >= 0) pairs.push([i, right.get(x)]);
  });
  const common = new Set(pairs.map(([, j]) => j));
  b.forEach((_, j) => {
    if (!common.has(j)) for (const i of made(j)) pairs.push([i, j]);
  });
  pairs.sort((x, y) => x[0] - y[0] || y[1] - x[1]);
  const out = [];
  let i = 0, j = 0;
  const until = (p, q) => {
    while (i < p && j < q && a[i] === b[j]) out.push([i++, j++]);
    let m = p, n = q; // what is equal above the next pair
    while (m > i && n > j && a[m - 1] === b[n - 1]) { m--; n--; }
    while (i < m || j < n) out.push([i < m ? i++ : -1, j < n ? j++ : -1]);
    while (i < p) out.push([i++, j++]);
  };
  for (const [p, q] of rising(pairs)) {
    until(p, q);
    out.push([i++, j++]);
  }
  until(a.length, b.length);
  return out;
}

// rising is the longest part of pairs, sorted by their first numbers, whose first and second numbers rise. Of equal first numbers the second
// ones fall.
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
