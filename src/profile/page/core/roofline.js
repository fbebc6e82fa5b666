// Points and roofs of the roofline plot.

/**
 * @typedef {Object} Point
 * @property {number} node
 * @property {number} time       inclusive, ns
 * @property {number} floor      what the device would need at least, ns
 * @property {number} reached    floor / time
 * @property {number} bytes
 * @property {number} flops
 * @property {number} intensity  FLOP per byte
 * @property {number} rate       FLOP per second
 * @property {string} bound      memory, compute or latency
 */

/** @returns {Point[]}  of rows that took time, the longest first */
export function rooflinePoints(tree, metric) {
  const { roofline } = tree.profile;
  if (!roofline) return [];
  const times = tree.inclusive(metric);
  const points = [];
  for (let i = 0; i < roofline.count; i++) {
    const node = roofline.node[i];
    const time = times[node];
    if (time <= 0) continue;
    const bytes = roofline.bytes[i];
    const flops = roofline.flops[i];
    points.push({
      node, time, bytes, flops,
      floor: roofline.floor[i],
      reached: roofline.floor[i] / time,
      intensity: bytes > 0 ? flops / bytes : 0,
      rate: flops / (time * 1e-9),
      bound: roofline.bound[i],
    });
  }
  return points.sort((a, b) => b.time - a.time);
}

/** The point of `node`, or null. */
export function pointOf(tree, metric, node) {
  return rooflinePoints(tree, metric).find((point) => point.node === node) ?? null;
}

/** Decades that hold all values above 0: powers of ten around them. */
function decades(values, fallback) {
  const positive = values.filter((value) => value > 0 && Number.isFinite(value));
  if (positive.length === 0) return fallback;
  const low = Math.min(...positive);
  const high = Math.max(...positive);
  return [10 ** Math.floor(Math.log10(low)), 10 ** Math.ceil(Math.log10(high) + 1e-9)];
}

/** Axes of a plot that shows all points and the bends of all roofs. */
export function rooflineAxes(points, device) {
  const peaks = Object.values(device?.flops ?? {}).filter((peak) => peak > 0);
  const drawn = points.filter(({ flops, bytes }) => flops > 0 && bytes > 0);
  const bends = device?.bandwidth > 0 ? peaks.map((peak) => peak / device.bandwidth) : [];
  const x = decades([...drawn.map(({ intensity }) => intensity), ...bends], [0.1, 1000]);
  const y = decades([...drawn.map(({ rate }) => rate), ...peaks], [1e9, 1e14]);
  return { x: [x[0], Math.max(x[1], x[0] * 100)], y: [Math.max(y[0], y[1] * 1e-8), y[1]] };
}
