// The calling-context tree: children, sums and paths.

/** Numbers 0, 1, ... for the values that `keyOf` gives to each of `count` things, in order of appearance. */
export function numberBy(count, keyOf) {
  const numbers = new Map();
  const keys = [];
  const of = new Int32Array(count);
  for (let i = 0; i < count; i++) {
    const key = keyOf(i);
    let number = numbers.get(key);
    if (number === undefined) {
      number = keys.length;
      numbers.set(key, number);
      keys.push(key);
    }
    of[i] = number;
  }
  return { of, keys };
}

export class Tree {
  /** @param {import("./decode.js").Profile} profile */
  constructor(profile) {
    this.profile = profile;
    this.count = profile.count;
    this.parent = profile.parent;
    this.frame = profile.frame;
    this.sums = new Map();
    this.childStart = new Int32Array(this.count + 1);
    this.childList = new Int32Array(Math.max(this.count - 1, 0));
    this.linkChildren();
    this.outermostFrames = this.outermost(this.frame, profile.frames.count);
  }

  linkChildren() {
    const { count, parent, childStart, childList } = this;
    for (let i = 1; i < count; i++) childStart[parent[i] + 1]++;
    for (let i = 0; i < count; i++) childStart[i + 1] += childStart[i];
    const next = childStart.slice();
    for (let i = 1; i < count; i++) childList[next[parent[i]]++] = i;
  }

  children(node) {
    return this.childList.subarray(this.childStart[node], this.childStart[node + 1]);
  }

  /** Own values of all nodes. @param {"now" | "before" | "delta"} side  a profile by itself has "now" only */
  exclusive(metric, side = "now") {
    const { values, before } = this.profile;
    if (side === "now") return values.get(metric);
    if (side === "before") return before.get(metric);
    return this.remember(`own ${metric}`, () => {
      const old = before.get(metric);
      return values.get(metric).map((value, i) => value - old[i]);
    });
  }

  /** Own values plus those of all nodes below. */
  inclusive(metric, side = "now") {
    return this.remember(`${side} ${metric}`, () => {
      const sums = this.exclusive(metric, side).slice();
      for (let i = this.count - 1; i > 0; i--) sums[this.parent[i]] += sums[i];
      return sums;
    });
  }

  total(metric, side = "now") {
    return this.inclusive(metric, side)[0];
  }

  remember(key, make) {
    if (!this.sums.has(key)) this.sums.set(key, make());
    return this.sums.get(key);
  }

  /**
   * For each node whether no ancestor has the same key: only these count where inclusive values of one key are added,
   * or a recursion would count twice.
   * @param {Int32Array} keys  of the nodes, each below `keyCount`
   */
  outermost(keys, keyCount) {
    const open = new Int32Array(keyCount);
    const result = new Uint8Array(this.count);
    const next = this.childStart.slice();
    const stack = [0];
    result[0] = 1;
    open[keys[0]] = 1;
    while (stack.length > 0) {
      const node = stack[stack.length - 1];
      if (next[node] < this.childStart[node + 1]) {
        const child = this.childList[next[node]++];
        result[child] = open[keys[child]]++ === 0 ? 1 : 0;
        stack.push(child);
      } else {
        open[keys[node]]--;
        stack.pop();
      }
    }
    return result;
  }

  /** Nodes from the root to `node`. */
  path(node) {
    const nodes = [];
    for (let at = node; at >= 0; at = this.parent[at]) nodes.push(at);
    return nodes.reverse();
  }

  /** For each node whether it or a node below it is marked. */
  reaches(marks) {
    const result = Uint8Array.from(marks);
    for (let i = this.count - 1; i > 0; i--) if (result[i]) result[this.parent[i]] = 1;
    return result;
  }

  /** A frame in all its contexts: how many, and its values as in the flat table. */
  frameTotals(frame, metric) {
    const inclusive = this.inclusive(metric);
    const exclusive = this.exclusive(metric);
    const totals = { count: 0, inclusive: 0, exclusive: 0 };
    for (let node = 0; node < this.count; node++) {
      if (this.frame[node] !== frame) continue;
      totals.count++;
      totals.exclusive += exclusive[node];
      if (this.outermostFrames[node]) totals.inclusive += inclusive[node];
    }
    return totals;
  }

  /** The nearest node from `node` upwards that is a part of the model: a module or a node of its graph; else -1. */
  partOfModel(node) {
    const { kind } = this.profile.frames;
    for (let at = node; at > 0; at = this.parent[at]) {
      if (kind[this.frame[at]] === "module" || kind[this.frame[at]] === "node") return at;
    }
    return -1;
  }

  /** The first metric of time: what roofline, advice and the timeline speak of. */
  timeMetric() {
    return (this.profile.metrics.find(({ unit, name }) => unit === "ns" && this.total(name) > 0)
            ?? this.profile.metrics.find(({ unit }) => unit === "ns") ?? this.profile.metrics[0]).name;
  }
}
