// The timeline: slices of each track in lanes in which they do not overlap, and what they belong to, in order of time.

/**
 * @typedef {Object} Lane
 * @property {string} process
 * @property {string} name      of the track; "" for all lanes but its first
 * @property {boolean} isContext  whether it has contexts of slices, not slices
 * @property {Float64Array} start  in ns, ascending
 * @property {Float64Array} end
 * @property {Int32Array} node  -1 where it is not known
 */

/** Slices of one track in as few lanes as their overlaps allow. */
function lanesOf(slices, { start, duration, node }) {
  const lanes = [];
  const ends = [];
  for (const slice of slices) {
    let lane = ends.findIndex((end) => end <= start[slice]);
    if (lane < 0) {
      lane = lanes.length;
      lanes.push([]);
    }
    lanes[lane].push(slice);
    ends[lane] = start[slice] + duration[slice];
  }
  return lanes.map((lane) => ({
    isContext: false,
    start: Float64Array.from(lane, (slice) => start[slice]),
    end: Float64Array.from(lane, (slice) => start[slice] + duration[slice]),
    node: Int32Array.from(lane, (slice) => node[slice]),
  }));
}

/** What the timeline may show above slices. */
export const CONTEXTS = {
  none: () => false,
  model: (kind) => kind === "module" || kind === "node",
  all: (kind) => kind !== "root",
};

// An ancestor's span ends where nothing of it runs for this part of the timeline.
const LONGEST_GAP = 0.01;

/** The ancestors of a lane's slices, one lane a level: neighbours under the same ancestor are one span. */
function contextsOf(tree, lane, keeps, longestGap) {
  const { kind } = tree.profile.frames;
  const levels = [];
  let previous = [];
  for (let i = 0; i < lane.node.length; i++) {
    const path = lane.node[i] < 0 ? [] : tree.path(lane.node[i]).slice(0, -1).filter((node) => keeps(kind[tree.frame[node]]));
    let isSame = i > 0 && lane.start[i] - lane.end[i - 1] <= longestGap;
    path.forEach((node, level) => {
      levels[level] ??= { start: [], end: [], node: [] };
      const { start, end, node: nodes } = levels[level];
      isSame &&= previous[level] === node;
      if (isSame) {
        end[end.length - 1] = lane.end[i];
      } else {
        start.push(lane.start[i]);
        end.push(lane.end[i]);
        nodes.push(node);
      }
    });
    previous = path;
  }
  return levels.map(({ start, end, node }) => (
    { isContext: true, start: Float64Array.from(start), end: Float64Array.from(end), node: Int32Array.from(node) }));
}

/**
 * @param {import("./tree.js").Tree} tree
 * @param {"none" | "model" | "all"} context  what is shown above the first lane of each track
 * @returns {{from: number, to: number, lanes: Lane[]}}  times in ns
 */
export function timelineLanes(tree, context = "none") {
  const { timeline } = tree.profile;
  const { tracks, track, start, duration, count } = timeline;
  const byTrack = tracks.map(() => []);
  let from = Infinity;
  let to = -Infinity;
  for (let i = 0; i < count; i++) {
    byTrack[track[i]].push(i);
    from = Math.min(from, start[i]);
    to = Math.max(to, start[i] + duration[i]);
  }
  const lanes = byTrack.flatMap((slices, t) => {
    slices.sort((a, b) => start[a] - start[b] || duration[b] - duration[a]);
    const own = lanesOf(slices, timeline);
    const above = own.length > 0 && context !== "none" ? contextsOf(tree, own[0], CONTEXTS[context], LONGEST_GAP * (to - from)) : [];
    return [...above, ...own].map((lane, i) => ({ ...lane, process: tracks[t].process, name: i === 0 ? tracks[t].name : "" }));
  });
  return { from: count ? from : 0, to: count ? Math.max(to, from + 1) : 1, lanes };
}

/** Index of the first span of a lane that ends behind `time`. */
export function firstBehind(lane, time) {
  let low = 0;
  let high = lane.end.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lane.end[middle] > time) high = middle;
    else low = middle + 1;
  }
  return low;
}

/**
 * What ran between two times, by frame, the longest first; parts outside do not count.
 * @param {Lane[]} lanes
 * @returns {{frame: number, node: number, count: number, time: number}[]}
 */
export function spanTotals(tree, lanes, from, to) {
  const totals = new Map();
  for (const lane of lanes) {
    if (lane.isContext) continue;
    for (let i = firstBehind(lane, from); i < lane.start.length && lane.start[i] < to; i++) {
      const node = lane.node[i];
      const frame = node < 0 ? -1 : tree.frame[node];
      if (!totals.has(frame)) totals.set(frame, { frame, node, count: 0, time: 0 });
      const total = totals.get(frame);
      total.count++;
      total.time += Math.min(lane.end[i], to) - Math.max(lane.start[i], from);
    }
  }
  return Array.from(totals.values()).sort((a, b) => b.time - a.time);
}
