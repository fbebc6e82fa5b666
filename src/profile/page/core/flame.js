// Trees laid out for a flame graph: each node spans [x, x + value) of its depth, in the metric's unit.

/**
 * @typedef {Object} FlameTree
 * @property {number} count
 * @property {Int32Array} parent
 * @property {Int32Array} frame
 * @property {Int32Array} node   of the calling-context tree that stands for this one
 * @property {Int32Array} depth
 * @property {Float64Array} value
 * @property {?Float64Array} delta  how much of `value` is new, in a difference
 * @property {Float64Array} x
 * @property {Int32Array} childStart
 * @property {Int32Array} childList  of each node, from left to right
 * @property {number} levels
 */

/** Positions of all nodes; parents come before their children. */
function layOut(flame) {
  const { count, parent, value, childStart, childList } = flame;
  flame.x = new Float64Array(count);
  flame.depth = new Int32Array(count);
  flame.levels = 1;
  for (let node = 0; node < count; node++) {
    if (node > 0) flame.depth[node] = flame.depth[parent[node]] + 1;
    if (value[node] > 0) flame.levels = Math.max(flame.levels, flame.depth[node] + 1);
    let x = flame.x[node];
    for (let i = childStart[node]; i < childStart[node + 1]; i++) {
      flame.x[childList[i]] = x;
      x += value[childList[i]];
    }
  }
  return flame;
}

function sortChildren(flame, compare) {
  for (let node = 0; node < flame.count; node++) {
    flame.childList.subarray(flame.childStart[node], flame.childStart[node + 1]).sort(compare);
  }
}

/**
 * Callers to callees.
 * @param {"now" | "before"} side  whose values are the widths
 * @param {boolean} leftHeavy  the heaviest child first; else in the order of the tree
 * @returns {FlameTree}
 */
export function topDownFlame(tree, metric, side, leftHeavy) {
  const value = tree.inclusive(metric, side);
  const flame = {
    count: tree.count,
    parent: tree.parent,
    frame: tree.frame,
    node: Int32Array.from({ length: tree.count }, (_, i) => i),
    value,
    delta: tree.profile.isDifference ? tree.inclusive(metric, "delta") : null,
    childStart: tree.childStart,
    childList: tree.childList.slice(),
  };
  if (leftHeavy) sortChildren(flame, (a, b) => value[b] - value[a] || a - b);
  return layOut(flame);
}

// Parts below this share of a merged tree are narrower than a pixel.
const LEAST_PART = 1 / 5000;
// A recursion of n levels in which each has a cost takes n * n / 2 steps: what lies farther from the root is left out.
const MOST_STEPS = 8e6;

/** The item with the largest weight. */
function heaviestItem({ at, weight }) {
  let best = 0;
  for (let i = 1; i < weight.length; i++) if (weight[i] > weight[best]) best = i;
  return at[best];
}

/**
 * A tree of merged contexts: each item walks from one node to the next, items on equal paths of frames form one node.
 * @param {{at: number[], weight: number[], delta: ?number[]}} start  the items of the root
 * @param {number} frame  of the root
 * @param {function(number, function(number, number, number), boolean): void} step  gets a node of the root (true) or of
 *     another group (false) and calls back with the next nodes, which have the same weight unless one is given
 */
function mergedFlame(tree, start, frame, step) {
  const sum = (values) => values.reduce((a, b) => a + b, 0);
  const groups = [{ ...start, frame, parent: -1, total: sum(start.weight) }];
  const least = groups[0].total * LEAST_PART;
  let steps = 0;
  for (let g = 0; g < groups.length; g++) {
    const { at, weight, delta } = groups[g];
    const below = new Map();
    if (steps < MOST_STEPS) steps += at.length;
    const items = steps < MOST_STEPS ? at : [];
    items.forEach((node, i) => step(node, (next, itsWeight = weight[i], itsDelta = delta?.[i]) => {
      const key = tree.frame[next];
      let part = below.get(key);
      if (!part) below.set(key, part = { frame: key, parent: g, total: 0, at: [], weight: [], delta: delta && [] });
      part.at.push(next);
      part.weight.push(itsWeight);
      part.delta?.push(itsDelta);
      part.total += itsWeight;
    }, g === 0));
    groups[g] = {
      frame: groups[g].frame, parent: groups[g].parent, total: groups[g].total,
      node: at.length > 0 ? heaviestItem(groups[g]) : 0, change: delta ? sum(delta) : 0,
    };
    for (const part of Array.from(below.values()).sort((a, b) => b.total - a.total)) {
      if (part.total > least) groups.push(part);
    }
  }
  return layOut(fromGroups(groups, start.delta !== null));
}

function fromGroups(groups, hasDelta) {
  const count = groups.length;
  const flame = {
    count,
    parent: Int32Array.from(groups, ({ parent }) => parent),
    frame: Int32Array.from(groups, ({ frame }) => frame),
    node: Int32Array.from(groups, ({ node }) => node),
    value: Float64Array.from(groups, ({ total }) => total),
    delta: hasDelta ? Float64Array.from(groups, ({ change }) => change) : null,
    childStart: new Int32Array(count + 1),
    childList: new Int32Array(count - 1),
  };
  for (let i = 1; i < count; i++) flame.childStart[groups[i].parent + 1]++;
  for (let i = 0; i < count; i++) flame.childStart[i + 1] += flame.childStart[i];
  for (let i = 1; i < count; i++) flame.childList[i - 1] = i;  // breadth first: already grouped by parent
  return flame;
}

/** The weights of nodes of the tree, and items of a root that have them. */
function weightsOf(tree, metric, side, inclusive) {
  const of = (which) => (inclusive ? tree.inclusive(metric, which) : tree.exclusive(metric, which));
  const weights = of(side);
  const deltas = tree.profile.isDifference ? of("delta") : null;
  const items = (nodes) => ({
    at: nodes,
    weight: nodes.map((node) => weights[node]),
    delta: deltas && nodes.map((node) => deltas[node]),
  });
  return { weights, deltas, items };
}

/** Callees to callers, over all frames with a cost of their own. */
export function bottomUpFlame(tree, metric, side) {
  const { weights, items } = weightsOf(tree, metric, side, false);
  const nodes = [];
  for (let i = 1; i < tree.count; i++) if (weights[i] > 0) nodes.push(i);
  const flame = mergedFlame(tree, items(nodes), tree.frame[0], (node, to, isRoot) => {
    if (isRoot) to(node);
    else if (tree.parent[node] > 0) to(tree.parent[node]);
  });
  flame.node[0] = 0;
  return flame;
}

/** The outermost instances of a frame. */
function instancesOf(tree, frame) {
  const nodes = [];
  for (let i = 0; i < tree.count; i++) if (tree.frame[i] === frame && tree.outermostFrames[i]) nodes.push(i);
  return nodes;
}

/** All that calls a frame, and all that it calls, whatever the context: the two halves of a sandwich. */
export function sandwich(tree, frame, metric, side) {
  const { weights, deltas, items } = weightsOf(tree, metric, side, true);
  const nodes = instancesOf(tree, frame);
  return {
    callers: mergedFlame(tree, items(nodes), frame, (node, to) => {
      if (tree.parent[node] > 0) to(tree.parent[node]);
    }),
    callees: mergedFlame(tree, items(nodes), frame, (node, to) => {
      for (const child of tree.children(node)) if (weights[child] > 0) to(child, weights[child], deltas?.[child]);
    }),
  };
}
