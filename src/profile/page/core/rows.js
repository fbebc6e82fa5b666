// Rows of the three tables. A row knows its values, its children and whether it is open; children are made when asked for.

import { numberBy } from "./tree.js";

/**
 * @typedef {Object} Column
 * @property {string} metric
 * @property {"now" | "before" | "delta"} side
 * @property {boolean} inclusive
 */

function columnKey({ metric, side, inclusive }) {
  return `${inclusive ? "inclusive" : "exclusive"} ${side} ${metric}`;
}

/** A row of instances: the same frame, or the same chain of callers, in many contexts. */
class Row {
  /**
   * @param {Object} view  that makes the children
   * @param {?Row} parent
   * @param {{frame: number, label?: string, node: number}} what  `node` stands for the row where one node is needed
   */
  constructor(view, parent, what) {
    this.view = view;
    this.parent = parent;
    this.frame = what.frame;
    this.label = what.label;
    this.node = what.node;
    this.depth = parent ? parent.depth + 1 : 0;
    this.isOpen = false;
    this.isUnfolded = false;
    this.kids = null;
    this.values = new Map();
  }

  value(column) {
    const key = columnKey(column);
    if (!this.values.has(key)) this.values.set(key, this.view.sum(this, column));
    return this.values.get(key);
  }

  children() {
    this.kids ??= this.view.childrenOf(this);
    return this.kids;
  }
}

/** Callers above callees, as they called. */
export class TopDown {
  constructor(tree) {
    this.tree = tree;
    this.roots = [this.row(null, 0)];
    this.roots[0].isOpen = true;
  }

  row(parent, node) {
    return new Row(this, parent, { frame: this.tree.frame[node], node });
  }

  sum(row, { metric, side, inclusive }) {
    return (inclusive ? this.tree.inclusive(metric, side) : this.tree.exclusive(metric, side))[row.node];
  }

  hasChildren(row) {
    return this.tree.childStart[row.node] < this.tree.childStart[row.node + 1];
  }

  childrenOf(row) {
    return Array.from(this.tree.children(row.node), (child) => this.row(row, child));
  }

  /** The row of `node`, with all rows above it opened. */
  reveal(node) {
    let row = this.roots[0];
    for (const next of this.tree.path(node).slice(1)) {
      row.isOpen = true;
      row = row.children().find((child) => child.node === next);
      if (row.parent) row.mustShow = true;
    }
    return row;
  }

  keeps(row, match) {
    return match.reached[row.node] === 1;
  }
}

/** What rows of several instances share: sums over `origins`, inclusive ones over the outermost only. */
class Instances {
  constructor(tree) {
    this.tree = tree;
    this.times = tree.inclusive(tree.timeMetric());
  }

  sum(row, { metric, side, inclusive }) {
    const values = inclusive ? this.tree.inclusive(metric, side) : this.tree.exclusive(metric, side);
    let sum = 0;
    for (const node of row.origins) if (!inclusive || row.outermost[node]) sum += values[node];
    return sum;
  }

  /** The instance with the largest inclusive time. */
  heaviest(nodes) {
    return nodes.reduce((best, node) => (this.times[node] > this.times[best] ? node : best), nodes[0]);
  }

  make(parent, what, origins, outermost) {
    const row = new Row(this, parent, { node: this.heaviest(what.at ?? origins), ...what });
    row.origins = origins;
    row.outermost = outermost;
    return row;
  }

  reveal(node) {
    return this.roots.find((row) => row.frame === this.tree.frame[node]) ?? null;
  }

  hasChildren(row) {
    return row.children().length > 0;
  }
}

/** Nodes by the frame of each; nodes below the root only. */
function instancesByFrame(tree, keeps) {
  const lists = new Map();
  for (let node = 1; node < tree.count; node++) {
    if (!keeps(node)) continue;
    const list = lists.get(tree.frame[node]);
    if (list) list.push(node);
    else lists.set(tree.frame[node], [node]);
  }
  return lists;
}

/** Frames with a cost of their own in a metric, their callers below them. */
export class BottomUp extends Instances {
  constructor(tree, metric) {
    super(tree);
    const now = tree.exclusive(metric);
    const before = tree.profile.isDifference ? tree.exclusive(metric, "before") : now;
    const lists = instancesByFrame(tree, (node) => now[node] !== 0 || before[node] !== 0);
    const all = instancesByFrame(tree, (node) => lists.has(tree.frame[node]));
    this.roots = Array.from(all, ([frame, origins]) => this.withAt(null, frame, origins, origins));
  }

  /** `at[i]` is the caller that the chain from `origins[i]` has come to. */
  withAt(parent, frame, origins, at) {
    const row = this.make(parent, { frame, at }, origins, this.tree.outermostFrames);
    row.at = at;
    return row;
  }

  childrenOf(row) {
    const { parent, frame } = this.tree;
    const groups = new Map();
    row.at.forEach((node, i) => {
      const caller = parent[node];
      if (caller <= 0) return;
      let group = groups.get(frame[caller]);
      if (!group) groups.set(frame[caller], group = { origins: [], at: [] });
      group.origins.push(row.origins[i]);
      group.at.push(caller);
    });
    return Array.from(groups, ([of, { origins, at }]) => this.withAt(row, of, origins, at));
  }

  hasChildren(row) {
    return row.at.some((node) => this.tree.parent[node] > 0);
  }

  keeps(row, match) {
    return row.parent !== null || match.frames[row.frame] === 1;
  }
}

/** What the flat table may gather frames by. */
export const FLAT_GROUPS = ["frame", "file", "kind"];

/** Every frame once, whatever called it; gathered by file or kind where asked for. */
export class Flat extends Instances {
  constructor(tree, group = "frame") {
    super(tree);
    const lists = instancesByFrame(tree, () => true);
    const frames = Array.from(lists.keys());
    const rowOf = (parent, frame) => this.make(parent, { frame }, lists.get(frame), tree.outermostFrames);
    if (group === "frame") {
      this.roots = frames.map((frame) => rowOf(null, frame));
      return;
    }
    const labels = tree.profile.frames[group];
    const { of, keys } = numberBy(tree.count, (node) => (node === 0 ? null : labels[tree.frame[node]]));
    const outermost = tree.outermost(of, keys.length);
    const byLabel = new Map();
    for (const frame of frames) {
      if (!byLabel.has(labels[frame])) byLabel.set(labels[frame], []);
      byLabel.get(labels[frame]).push(frame);
    }
    this.roots = Array.from(byLabel, ([label, members]) => {
      const row = this.make(null, { frame: -1, label }, members.flatMap((frame) => lists.get(frame)), outermost);
      row.kids = members.map((frame) => rowOf(row, frame));
      return row;
    });
  }

  childrenOf() {
    return [];
  }

  keeps(row, match) {
    if (row.frame >= 0) return match.frames[row.frame] === 1;
    return row.kids.some((kid) => match.frames[kid.frame] === 1);
  }
}

const LEAST_SHARE = 0.005;
const LEAST_ROWS = 20;

/** `rows` by a number or a text of each, which is asked for once. */
function sortedBy(rows, valueOf, descending) {
  const values = new Map(rows.map((row) => [row, valueOf(row)]));
  const sign = descending ? -1 : 1;
  return rows.slice().sort((a, b) => {
    const [x, y] = [values.get(a), values.get(b)];
    return x < y ? -sign : x > y ? sign : a.node - b.node;
  });
}

/** Of siblings, those that are shown: of at least a share of the whole or among the first, and what is left of them. */
function foldSmall(rows, weight, least) {
  if (rows.length <= LEAST_ROWS) return { shown: rows, folded: [] };
  const shown = [];
  const small = [];
  for (const row of rows) (row.mustShow || Math.abs(row.value(weight)) >= least ? shown : small).push(row);
  const room = LEAST_ROWS - shown.length;
  if (room <= 0) return { shown, folded: small };
  const sorted = sortedBy(small, (row) => Math.abs(row.value(weight)), true);
  return { shown: [...shown, ...sorted.slice(0, room)], folded: sorted.slice(room) };
}

/**
 * The rows that a table shows, from top to bottom; what is small is folded into one entry `{more, ...}` per parent.
 * @param {Object} view
 * @param {{valueOf: function(Row): (number | string), weight: Column, descending: boolean, match: ?Object}} order
 *     `valueOf` sorts, `weight` says what is small; rows that do not lead to a match are left out
 */
export function visibleRows(view, order) {
  const { valueOf, weight, descending, match } = order;
  const least = Math.abs(view.tree.total(weight.metric, weight.side)) * LEAST_SHARE;
  /** The entries of siblings, in reverse: what is pushed last is shown first. */
  const push = (stack, rows, parent, depth) => {
    const kept = match ? rows.filter((row) => view.keeps(row, match)) : rows;
    const { shown, folded } = parent.isUnfolded ? { shown: kept, folded: [] } : foldSmall(kept, weight, least);
    if (folded.length > 0) stack.push({ more: folded, parent, depth });
    for (const row of sortedBy(shown, valueOf, descending).reverse()) stack.push({ row, depth });
  };
  const entries = [];
  const stack = [];  // deep recursions have more levels than calls may
  push(stack, view.roots, view, 0);
  while (stack.length > 0) {
    const entry = stack.pop();
    entries.push(entry);
    if (entry.row?.isOpen) push(stack, entry.row.children(), entry.row, entry.depth + 1);
  }
  return entries;
}

/** Opens rows of a top-down view on the way to matches, until some `most` rows show. */
export function openToMatches(view, match, most = 400) {
  const rows = view.roots.slice();
  for (let i = 0; i < rows.length && rows.length < most; i++) {
    const children = rows[i].children().filter((row) => view.keeps(row, match));
    rows[i].isOpen = children.length > 0;
    rows.push(...children.filter((row) => !match.nodes[row.node]));
  }
}

/**
 * Opens rows below `row` for as long as one child holds at least `share` of its parent, or of its fall where that is
 * negative; returns the last.
 */
export function openHotPath(row, column, share = 0.5) {
  const sign = Math.sign(row.value(column));
  let at = row;
  while (sign * at.value(column) > 0 && at.view.hasChildren(at)) {
    const best = at.children().reduce((a, b) => (sign * b.value(column) > sign * a.value(column) ? b : a));
    if (sign * best.value(column) < share * sign * at.value(column)) break;
    at.isOpen = true;
    at = best;
  }
  return at;
}
