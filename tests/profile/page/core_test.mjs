// The page's core, which needs no browser, against plain definitions of the same. Run by `node --test`.

import assert from "node:assert/strict";
import { test } from "node:test";

import { groupedAdvice } from "../../../src/profile/page/core/advice.js";
import { decode } from "../../../src/profile/page/core/decode.js";
import { difference } from "../../../src/profile/page/core/difference.js";
import { bottomUpFlame, sandwich, topDownFlame } from "../../../src/profile/page/core/flame.js";
import { exact, growth, percent, printable, quantity } from "../../../src/profile/page/core/format.js";
import { rooflineAxes, rooflinePoints } from "../../../src/profile/page/core/roofline.js";
import { BottomUp, Flat, TopDown, openHotPath, openToMatches, visibleRows } from "../../../src/profile/page/core/rows.js";
import { matchedTotal, search } from "../../../src/profile/page/core/search.js";
import { lineTimes, nodeWithSource, pieces } from "../../../src/profile/page/core/source.js";
import { firstBehind, spanTotals, timelineLanes } from "../../../src/profile/page/core/timeline.js";
import { Tree } from "../../../src/profile/page/core/tree.js";
import { Builder, hostile, randomProfile, training } from "./synthetic.mjs";

const TOTAL = { metric: "GKER", side: "now", inclusive: true };
const OWN = { metric: "GKER", side: "now", inclusive: false };
const read = (raw) => decode(JSON.stringify(raw));
const treeOf = (raw) => new Tree(read(raw));

/** main calls f, which calls itself and g. */
function recursive() {
  const b = new Builder("recursion", [{ name: "GKER", unit: "ns", title: "" }]);
  const main = b.node(0, "python", "main", "a.py", 1, { GKER: 1 });
  const outer = b.node(main, "python", "f", "a.py", 2, { GKER: 10 });
  const inner = b.node(outer, "python", "f", "a.py", 2, { GKER: 100 });
  b.node(inner, "kernel", "g", "", 0, { GKER: 1000 });
  b.node(main, "kernel", "g", "", 0, { GKER: 10000 });
  return b;
}

/** Inclusive value of all nodes for which `is` holds: each node's own value once, if it or an ancestor is one. */
function naiveInclusive(tree, is) {
  const own = tree.exclusive("GKER");
  let sum = 0;
  for (let node = 0; node < tree.count; node++) if (tree.path(node).some(is)) sum += own[node];
  return sum;
}

test("a damaged profile is refused, and the error names the field", () => {
  const damage = {
    "not JSON": () => "{",
    format: (raw) => { raw.format = "trace"; },
    version: (raw) => { raw.version = 2; },
    metrics: (raw) => { raw.metrics = []; },
    strings: (raw) => { raw.strings[1] = 7; },
    "frames.name[1]": (raw) => { raw.frames.name[1] = 9999; },
    "frames.line": (raw) => { raw.frames.line.pop(); },
    "nodes.parent[2]": (raw) => { raw.nodes.parent[2] = 2; },
    "nodes.parent[0]": (raw) => { raw.nodes.parent[0] = 0; },
    "nodes.frame[3]": (raw) => { raw.nodes.frame[3] = -1; },
    "nodes.values.GKER[1]": (raw) => { raw.nodes.values.GKER[1] = 1.5; },
    "timeline.node[0]": (raw) => { raw.timeline = { tracks: [{}], track: [0], start: [0], duration: [1], node: [77] }; },
    "sources[0].file": (raw) => { raw.sources = [{ file: -1, text: "" }]; },
    "advice[0].node": (raw) => { raw.advice = [{ node: 1000 }]; },
    "roofline.bytes": (raw) => { raw.roofline = { node: [1], floor_ns: [1], bytes: [], flops: [1], bound: ["memory"] }; },
  };
  for (const [field, change] of Object.entries(damage)) {
    const raw = recursive().finish();
    const text = change(raw);
    assert.throws(() => decode(typeof text === "string" ? text : JSON.stringify(raw)), (error) => error.message.includes(field), field);
  }
});

test("values beyond 2^53 are refused, not rounded", () => {
  const text = JSON.stringify(recursive().finish()).replace("10000]", "9007199254740993]");
  assert.throws(() => decode(text), /nodes\.values\.GKER\[5\]/);
});

test("frames that are equal become one", () => {
  const raw = recursive().finish();
  raw.frames = Object.fromEntries(Object.entries(raw.frames).map(([key, column]) => [key, [...column, column[3]]]));
  raw.nodes.frame[4] = raw.frames.kind.length - 1;
  const tree = treeOf(raw);
  assert.equal(tree.frame[4], tree.frame[5]);
});

test("inclusive sums, children and paths", () => {
  const tree = treeOf(recursive().finish());
  assert.deepEqual(Array.from(tree.inclusive("GKER")), [11111, 11111, 1110, 1100, 1000, 10000]);
  assert.deepEqual(Array.from(tree.children(1)), [2, 5]);
  assert.deepEqual(tree.path(4), [0, 1, 2, 3, 4]);
});

test("a recursion counts once in the flat view, and its own values all", () => {
  const tree = treeOf(recursive().finish());
  const flat = new Map(new Flat(tree).roots.map((row) => [tree.profile.frames.name[row.frame], row]));
  assert.equal(flat.get("f").value(TOTAL), 1110);
  assert.equal(flat.get("f").value(OWN), 110);
  assert.equal(flat.get("g").value(TOTAL), 11000);
  assert.deepEqual(tree.frameTotals(tree.frame[2], "GKER"), { count: 2, inclusive: 1110, exclusive: 110 });
  const kinds = new Map(new Flat(tree, "kind").roots.map((row) => [row.label, row]));
  assert.equal(kinds.get("python").value(TOTAL), 11111);
  assert.equal(kinds.get("python").value(OWN), 111);
});

test("a recursion in the bottom-up view", () => {
  const tree = treeOf(recursive().finish());
  const f = new BottomUp(tree, "GKER").roots.find((row) => tree.profile.frames.name[row.frame] === "f");
  assert.equal(f.value(TOTAL), 1110);
  const callers = f.children().map((row) => [tree.profile.frames.name[row.frame], row.value(TOTAL), row.value(OWN)]);
  assert.deepEqual(callers.sort(), [["f", 0, 100], ["main", 1110, 10]]);
});

for (const seed of [1, 2, 3]) {
  test(`the views of a random tree agree with plain sums, seed ${seed}`, () => {
    const tree = treeOf(randomProfile(400, 0, seed));
    const total = tree.total("GKER");
    const add = (rows, column) => rows.reduce((sum, row) => sum + row.value(column), 0);
    for (const group of ["frame", "file", "kind"]) assert.equal(add(new Flat(tree, group).roots, OWN), total - tree.exclusive("GKER")[0]);
    assert.equal(add(new BottomUp(tree, "GKER").roots, OWN), total - tree.exclusive("GKER")[0]);
    for (const row of new Flat(tree).roots) {
      assert.equal(row.value(TOTAL), naiveInclusive(tree, (node) => tree.frame[node] === row.frame));
    }
    for (const row of new Flat(tree, "file").roots) {
      assert.equal(row.value(TOTAL), naiveInclusive(tree, (node) => node > 0 && tree.profile.frames.file[tree.frame[node]] === row.label));
    }
    for (const row of new BottomUp(tree, "GKER").roots.slice(0, 50)) {
      const fromRoot = row.origins.reduce((sum, node) => sum + (tree.parent[node] === 0 ? tree.exclusive("GKER")[node] : 0), 0);
      assert.equal(add(row.children(), OWN) + fromRoot, row.value(OWN));
    }
    const walk = (row) => {
      const children = row.children();
      assert.equal(add(children, TOTAL) + row.value(OWN), row.value(TOTAL));
      children.forEach(walk);
    };
    walk(new TopDown(tree).roots[0]);
  });
}

test("the hot path ends where no child holds half", () => {
  const view = new TopDown(treeOf(recursive().finish()));
  const end = openHotPath(view.roots[0], TOTAL);
  assert.equal(end.node, 5);
  assert.equal(openHotPath(view.roots[0], TOTAL, 0.95).node, 1);
});

test("rows are sorted, small ones folded, matches kept", () => {
  const b = new Builder("many", [{ name: "GKER", unit: "ns", title: "" }]);
  for (let i = 0; i < 100; i++) b.node(0, "kernel", `k${i}`, "", 0, { GKER: i < 30 ? 1000 + i : 1 });
  const tree = treeOf(b.finish());
  const view = new TopDown(tree);
  const nameOf = (row) => tree.profile.frames.name[row.frame];
  const order = { valueOf: (row) => row.value(TOTAL), weight: TOTAL, descending: true, match: null };
  const entries = visibleRows(view, order);
  assert.equal(entries.length, 1 + 30 + 1);
  assert.equal(entries.at(-1).more.length, 70);
  assert.deepEqual(entries.slice(1, 4).map(({ row }) => nameOf(row)), ["k29", "k28", "k27"]);
  const rising = visibleRows(view, { ...order, descending: false });
  assert.equal(nameOf(rising[1].row), "k0");
  const byName = visibleRows(view, { ...order, valueOf: nameOf, descending: false });
  assert.deepEqual(byName.slice(1, 4).map(({ row }) => nameOf(row)), ["k0", "k1", "k10"]);
  const matches = visibleRows(view, { ...order, match: search(tree, "k99") });
  assert.deepEqual(matches.map(({ row }) => row.node), [0, 100]);
  openToMatches(view, search(tree, "k3"));
  assert.ok(view.roots[0].isOpen);
  view.reveal(77);
  assert.ok(visibleRows(view, order).some(({ row }) => row?.node === 77));
});

test("search by words, expressions and kinds; what matches inside a match counts once", () => {
  const tree = treeOf(recursive().finish());
  const nodes = (query) => Array.from(search(tree, query).nodes.keys()).filter((i) => search(tree, query).nodes[i]);
  assert.deepEqual(nodes("F"), [2, 3]);
  assert.deepEqual(nodes("kind:kern"), [4, 5]);
  assert.deepEqual(nodes("/^[fg]$/"), [2, 3, 4, 5]);
  assert.deepEqual(nodes("a.py main"), [1]);
  assert.equal(search(tree, "  "), null);
  assert.throws(() => search(tree, "/(/"), SyntaxError);
  assert.equal(matchedTotal(tree, search(tree, "f"), "GKER"), 1110);
  assert.equal(matchedTotal(tree, search(tree, "g"), "GKER"), 11000);
});

test("a flame graph spans the run, children lie within their parents", () => {
  const tree = treeOf(randomProfile(2000, 0, 5));
  for (const flame of [topDownFlame(tree, "GKER", "now", true), topDownFlame(tree, "GKER", "now", false), bottomUpFlame(tree, "GKER", "now")]) {
    assert.ok(flame.value[0] >= tree.total("GKER") - tree.exclusive("GKER")[0]);
    for (let i = 1; i < flame.count; i++) {
      const p = flame.parent[i];
      assert.ok(flame.x[i] >= flame.x[p] && flame.x[i] + flame.value[i] <= flame.x[p] + flame.value[p]);
      assert.equal(flame.depth[i], flame.depth[p] + 1);
    }
  }
});

test("a recursion that is deeper than calls may be has all tables and flame graphs", () => {
  for (const levels of [2000, 60000]) {
    const b = new Builder("chain", [{ name: "GKER", unit: "ns", title: "" }]);
    let at = 0;
    for (let i = 0; i < levels; i++) at = b.node(at, "python", i % 2 ? "f" : "g", "a.py", 1, { GKER: 7 });
    const tree = treeOf(b.finish());
    assert.equal(topDownFlame(tree, "GKER", "now", true).levels, levels + 1);
    const callers = bottomUpFlame(tree, "GKER", "now");
    assert.equal(callers.value[0], 7 * levels);
    assert.ok(callers.levels > 100);
    const view = new TopDown(tree);
    view.reveal(at);
    assert.equal(visibleRows(view, { valueOf: (row) => row.value(TOTAL), weight: TOTAL, descending: true }).length, levels + 1);
    assert.equal(new Flat(tree).roots.length, 2);
  }
});

test("the sandwich of a frame has the flat row's value in both halves", () => {
  const tree = treeOf(recursive().finish());
  const { callers, callees } = sandwich(tree, tree.frame[2], "GKER", "now");
  assert.equal(callers.value[0], 1110);
  assert.equal(callees.value[0], 1110);
  assert.deepEqual(Array.from(callees.frame, (frame) => tree.profile.frames.name[frame]), ["f", "f", "g"]);
  assert.deepEqual(Array.from(callers.frame, (frame) => tree.profile.frames.name[frame]), ["f", "main"]);
});

test("a profile less itself is nothing", () => {
  const profile = read(training());
  const tree = new Tree(difference(profile, read(training())));
  assert.equal(tree.count, profile.count);
  for (const { name } of profile.metrics) assert.ok(tree.exclusive(name, "delta").every((value) => value === 0));
});

test("a difference aligns by names, then by the nearest line, and keeps both sums", () => {
  const make = (rows) => {
    const b = new Builder("d", [{ name: "GKER", unit: "ns", title: "" }]);
    for (const [name, line, value] of rows) b.node(b.node(0, "python", "main", "a.py", 1), "python", name, "/x/a.py", line, { GKER: value });
    return read(b.finish());
  };
  const now = make([["f", 10, 5], ["f", 20, 7], ["new", 3, 11]]);
  const before = make([["f", 12, 50], ["f", 20, 70], ["gone", 4, 13]]);
  const tree = new Tree(difference(now, before));
  const rows = new Map();
  for (let i = 2; i < tree.count; i++) {
    const { name, line } = tree.profile.frames;
    rows.set(`${name[tree.frame[i]]}:${line[tree.frame[i]]}`, [tree.exclusive("GKER")[i], tree.exclusive("GKER", "before")[i]]);
  }
  assert.deepEqual(Object.fromEntries(rows), { "f:10": [5, 50], "f:20": [7, 70], "new:3": [11, 0], "gone:4": [0, 13] });
  assert.equal(tree.total("GKER", "delta"), 23 - 133);
});

test("the hot path of a difference follows the fall", () => {
  const raw = { ...recursive().finish(), format: "heddle-profile-difference" };
  raw.nodes.before = { GKER: raw.nodes.values.GKER.map((value) => 3 * value) };
  assert.equal(openHotPath(new TopDown(treeOf(raw)).roots[0], { ...TOTAL, side: "delta" }).node, 5);
});

test("a difference as a file", () => {
  const raw = { ...recursive().finish(), format: "heddle-profile-difference" };
  raw.nodes.before = { GKER: raw.nodes.values.GKER.map((value) => value + 1) };
  assert.equal(treeOf(raw).total("GKER", "delta"), -6);
});

test("lanes of the timeline do not overlap and hold every slice", () => {
  const tree = treeOf(randomProfile(50, 3000, 7));
  const { lanes, from, to } = timelineLanes(tree);
  assert.equal(lanes.reduce((sum, { node }) => sum + node.length, 0), 3000);
  for (const lane of lanes) {
    for (let i = 1; i < lane.start.length; i++) assert.ok(lane.end[i - 1] <= lane.start[i]);
    const middle = (from + to) / 2;
    const first = lane.end.findIndex((end) => end > middle);
    assert.equal(firstBehind(lane, middle), first < 0 ? lane.end.length : first);
  }
  const whole = spanTotals(tree, lanes, from, to).reduce((sum, { time }) => sum + time, 0);
  assert.equal(whole, tree.profile.timeline.duration.reduce((a, b) => a + b));
});

test("contexts above slices: neighbours of one module are one span", () => {
  const b = new Builder("contexts", [{ name: "GKER", unit: "ns", title: "" }]);
  const [one, two] = ["one", "two"].map((name) => b.node(0, "module", name));
  const kernels = [b.node(one, "kernel", "a"), b.node(one, "kernel", "b"), b.node(b.node(two, "operator", "op"), "kernel", "c")];
  const timeline = { tracks: [{ process: "p", name: "gpu" }], track: [0, 0, 0, 0], start: [0, 5, 10, 900], duration: [4, 4, 5, 100], node: [kernels[0], kernels[1], kernels[2], kernels[0]] };
  const tree = treeOf(b.finish({ timeline }));
  const shape = (context) => timelineLanes(tree, context).lanes.map((lane) => [lane.name, Array.from(lane.start), Array.from(lane.end)]);
  const own = [[0, 5, 10, 900], [4, 9, 15, 1000]];
  assert.deepEqual(shape("none"), [["gpu", ...own]]);
  assert.deepEqual(shape("model"), [["gpu", [0, 10, 900], [9, 15, 1000]], ["", ...own]]);
  assert.deepEqual(shape("all"), [["gpu", [0, 10, 900], [9, 15, 1000]], ["", [10], [15]], ["", ...own]]);
});

test("times beside lines", () => {
  const tree = treeOf(recursive().finish({ sources: [{ file: 2, first_line: 1, text: "x" }] }));
  const times = lineTimes(tree, "a.py", "GKER");
  assert.deepEqual(times.get(2), { inclusive: 1110, exclusive: 110, node: 2 });
  assert.equal(times.get(1).inclusive, 11111);
  assert.equal(nodeWithSource(tree, 4), 3);
  assert.equal(nodeWithSource(tree, 0), -1);
});

test("pieces of a line are the line", () => {
  for (const line of ["x = f(\"a # b\", 1.5)  # comment", "for (int i = 0; i < 3; i++) y[i] += 2.0f; /* c */ z", "", "'''"]) {
    for (const file of ["a.py", "a.cu"]) assert.equal(pieces(line, file).map(([, text]) => text).join(""), line);
  }
});

test("points of the roofline", () => {
  const tree = treeOf(training());
  const points = rooflinePoints(tree, "GKER");
  assert.ok(points.length > 50);
  for (const { reached, rate, bound } of points) assert.ok(reached > 0 && reached <= 1 && rate > 0 && ["memory", "compute", "latency"].includes(bound));
  const { x, y } = rooflineAxes(points, tree.profile.device);
  for (const { intensity, rate } of points) assert.ok(intensity >= x[0] && intensity <= x[1] && rate >= y[0] && rate <= y[1]);
  assert.deepEqual(rooflineAxes([], null), { x: [0.1, 1000], y: [1e9, 1e14] });
});

test("numbers as text", () => {
  assert.equal(quantity(0, "ns"), "0 ns");
  assert.equal(quantity(999, "ns"), "999 ns");
  assert.equal(quantity(1234, "ns"), "1.23 µs");
  assert.equal(quantity(999999, "ns"), "1.00 ms");
  assert.equal(quantity(-45678901, "ns"), "-45.7 ms");
  assert.equal(quantity(102400000, "bytes"), "102 MB");
  assert.equal(exact(1234567, "ns"), "1\u202f234\u202f567 ns");
  assert.equal(percent(1, 0), "-");
  assert.equal(percent(1, 3000), "0.03%");
  assert.equal(growth(15, 10), "+50.0%");
  assert.equal(growth(0, 10), "gone");
  assert.equal(growth(3, 0), "new");
});

test("names that attack are shown as text", () => {
  const profile = read(hostile());
  for (const name of profile.frames.name) assert.match(printable(name), /^[^\u0000-\u001f\u007f-\u009f\u202e\u2028]*$/);
  assert.equal(printable("a\nb\u202e\ud800"), "a\\u{a}b\\u{202e}\\u{d800}");
});

test("advice of one rule is one group with its places, the largest gain first", () => {
  const one = (rule, node, gain) => ({ rule, node, gain, share: gain / 100, evidence: `at ${node}`, confidence: "bound", remedy: `mend ${rule}` });
  const groups = groupedAdvice([one("b", 1, 30), one("a", 2, 5), one("a", 3, 7), ...[4, 5, 6, 7].map((node) => one("a", node, 6))]);
  assert.deepEqual(groups.map(({ rule, gain, places }) => [rule, gain, places.map(({ node }) => node)]), [["a", 36, [3, 4, 5, 6, 7, 2]], ["b", 30, [1]]]);
  assert.ok(Math.abs(groups[0].share - 0.36) < 1e-9);
  assert.equal(groupedAdvice([one("a", 1, 1), { ...one("a", 2, 1), remedy: "another" }]).length, 2);
});
