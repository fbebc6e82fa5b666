// The timeline: slices of each track in lanes in which they do not overlap, in order of time.

/** Slices of one track in as few lanes as their overlaps allow. @returns {Int32Array[]} */
function lanesOf(slices, start, duration) {
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
  return lanes.map((lane) => Int32Array.from(lane));
}

/**
 * @param {Object} timeline  of a profile
 * @returns {{from: number, to: number, lanes: {process: string, name: string, lane: number, slices: Int32Array}[]}}
 *     times in ns; `lane` is 0 for the first lane of a track
 */
export function timelineLanes(timeline) {
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
    return lanesOf(slices, start, duration).map((lane, i) => ({ ...tracks[t], lane: i, slices: lane }));
  });
  return { from: count ? from : 0, to: count ? Math.max(to, from + 1) : 1, lanes };
}

/** Index in `slices` of the first slice that ends behind `time`. */
export function firstBehind(timeline, slices, time) {
  let low = 0;
  let high = slices.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (timeline.start[slices[middle]] + timeline.duration[slices[middle]] > time) high = middle;
    else low = middle + 1;
  }
  return low;
}

/**
 * What ran between two times, by frame, the longest first; parts outside do not count.
 * @returns {{frame: number, node: number, count: number, time: number}[]}
 */
export function spanTotals(tree, lanes, from, to) {
  const { timeline } = tree.profile;
  const totals = new Map();
  for (const { slices } of lanes) {
    for (let i = firstBehind(timeline, slices, from); i < slices.length; i++) {
      const slice = slices[i];
      const start = timeline.start[slice];
      if (start >= to) break;
      const node = timeline.node[slice];
      const frame = node < 0 ? -1 : tree.frame[node];
      if (!totals.has(frame)) totals.set(frame, { frame, node, count: 0, time: 0 });
      const total = totals.get(frame);
      total.count++;
      total.time += Math.min(start + timeline.duration[slice], to) - Math.max(start, from);
    }
  }
  return Array.from(totals.values()).sort((a, b) => b.time - a.time);
}
