// The difference of two profiles: one tree with the values of both.

/** What has to agree for two frames to be the same line of the program; lines move, so they are compared last. */
function nameOf(frames, i) {
  return `${frames.kind[i]}\0${frames.name[i]}\0${frames.file[i].slice(frames.file[i].lastIndexOf("/") + 1)}`;
}

/** A tree that grows by children with given names. */
class Growing {
  constructor() {
    this.parent = [];
    this.frame = [];
    this.children = [];
  }

  add(parent, frame, line) {
    this.parent.push(parent);
    this.frame.push(frame);
    this.children.push(new Map());
    return { node: this.parent.length - 1, line };
  }

  /** The children of `parent` of this name, with their lines. */
  named(parent, name) {
    const map = this.children[parent];
    if (!map.has(name)) map.set(name, []);
    return map.get(name);
  }
}

/** The entry of `candidates` with the nearest line that is not `taken`. */
function nearest(candidates, line, taken) {
  let best = null;
  for (const candidate of candidates) {
    if (taken.has(candidate.node)) continue;
    if (best === null || Math.abs(candidate.line - line) < Math.abs(best.line - line)) best = candidate;
  }
  return best;
}

/** The frames of both, and for each frame of `before` its number there. */
function joinFrames(now, before) {
  const numbers = new Map();
  const keyOf = (frames, i) => `${nameOf(frames, i)}\0${frames.line[i]}`;
  for (let i = 0; i < now.count; i++) numbers.set(keyOf(now, i), i);
  const frames = { ...now, kind: now.kind.slice(), name: now.name.slice(), file: now.file.slice(), line: Array.from(now.line) };
  const renamed = Int32Array.from({ length: before.count }, (_, i) => {
    const known = numbers.get(keyOf(before, i));
    if (known !== undefined) return known;
    for (const part of ["kind", "name", "file", "line"]) frames[part].push(before[part][i]);
    return frames.kind.length - 1;
  });
  frames.count = frames.kind.length;
  frames.line = Int32Array.from(frames.line);
  return { frames, renamed };
}

/** Node of the joined tree for each node of `before`; nodes that `now` lacks are appended. */
function align(now, before, frames, renamed) {
  const grown = new Growing();
  for (let i = 0; i < now.count; i++) {
    const frame = now.frame[i];
    const entry = grown.add(now.parent[i], frame, frames.line[frame]);
    if (i > 0) grown.named(now.parent[i], nameOf(frames, frame)).push(entry);
  }
  const target = new Int32Array(before.count);
  const taken = new Set();
  const place = (i, isExact) => {
    const frame = renamed[before.frame[i]];
    const parent = target[before.parent[i]];
    const candidates = grown.named(parent, nameOf(frames, frame));
    const line = frames.line[frame];
    const found = isExact ? candidates.find((entry) => entry.line === line && !taken.has(entry.node))
                          : nearest(candidates, line, taken);
    if (found) taken.add(found.node);
    return found ?? null;
  };
  // Children of one parent together: those on equal lines first, then the nearest lines of what is left.
  const children = Array.from({ length: before.count }, () => []);
  for (let i = 1; i < before.count; i++) children[before.parent[i]].push(i);
  for (let i = 0; i < before.count; i++) {
    const left = children[i].filter((child) => {
      const found = place(child, true);
      if (found) target[child] = found.node;
      return !found;
    });
    for (const child of left) {
      const frame = renamed[before.frame[child]];
      const found = place(child, false) ?? grown.add(target[i], frame, frames.line[frame]);
      target[child] = found.node;
    }
  }
  return { grown, target };
}

/**
 * @param {import("./decode.js").Profile} now
 * @param {import("./decode.js").Profile} before
 * @returns {import("./decode.js").Profile}  with the metrics of `now`
 */
export function difference(now, before) {
  const { frames, renamed } = joinFrames(now.frames, before.frames);
  const { grown, target } = align(now, before, frames, renamed);
  const count = grown.parent.length;
  const values = new Map();
  const old = new Map();
  for (const { name } of now.metrics) {
    const column = new Float64Array(count);
    column.set(now.values.get(name));
    values.set(name, column);
    const sums = new Float64Array(count);
    before.values.get(name)?.forEach((value, i) => { sums[target[i]] += value; });
    old.set(name, sums);
  }
  return {
    ...now,
    isDifference: true,
    title: `${now.title} against ${before.title}`,
    frames,
    count,
    parent: Int32Array.from(grown.parent),
    frame: Int32Array.from(grown.frame),
    values,
    before: old,
  };
}
