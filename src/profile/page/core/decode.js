// Reads the JSON form of a profile and checks it, so that everything behind may trust indices and lengths.

/**
 * @typedef {Object} Profile
 * @property {boolean} isDifference  whether `before` holds the values of the older profile
 * @property {string} title
 * @property {[string, string][]} facts
 * @property {{name: string, unit: string, title: string}[]} metrics
 * @property {{count: number, kind: string[], name: string[], file: string[], line: Int32Array}} frames
 * @property {number} count  of nodes; node 0 is the root, parents come before their children
 * @property {Int32Array} parent
 * @property {Int32Array} frame  of each node
 * @property {Map<string, Float64Array>} values  exclusive, by metric; exact integers
 * @property {?Map<string, Float64Array>} before
 * @property {?Object} roofline
 * @property {?Object} device
 * @property {?Object} timeline
 * @property {{file: string, firstLine: number, lines: string[]}[]} sources
 * @property {Object[]} advice
 */

const FORMATS = { "heddle-profile": false, "heddle-profile-difference": true };

function wrong(where, what) {
  return new Error(`This is no profile that can be shown: ${where} ${what}.`);
}

/** The array `value` as integers in [low, high]; `count` is its length where that is known. */
function integers(value, where, { count, low = 0, high = Number.MAX_SAFE_INTEGER, wide = false }) {
  if (!Array.isArray(value)) throw wrong(where, "is not an array");
  if (count !== undefined && value.length !== count) {
    throw wrong(where, `has ${value.length} entries where ${count} are expected`);
  }
  const result = wide ? new Float64Array(value.length) : new Int32Array(value.length);
  for (let i = 0; i < value.length; i++) {
    const entry = value[i];
    if (!Number.isSafeInteger(entry) || entry < low || entry > high) {
      throw wrong(`${where}[${i}]`, `is ${JSON.stringify(entry)}, not an integer between ${low} and ${high}`);
    }
    result[i] = entry;
  }
  return result;
}

function texts(value, where) {
  if (!Array.isArray(value) || !value.every((entry) => typeof entry === "string")) {
    throw wrong(where, "is not an array of strings");
  }
  return value;
}

/** Frames without duplicates, and for each frame of the file its number among them. */
function decodeFrames(raw, strings) {
  if (!raw || typeof raw !== "object") throw wrong("frames", "is missing");
  const kinds = texts(raw.kind, "frames.kind");
  const count = kinds.length;
  const high = strings.length - 1;
  const names = integers(raw.name, "frames.name", { count, high });
  const files = integers(raw.file, "frames.file", { count, high });
  const lines = integers(raw.line, "frames.line", { count, high: 0x7fffffff });
  const numbers = new Map();
  const renamed = new Int32Array(count);
  const kept = [];
  for (let i = 0; i < count; i++) {
    const key = `${kinds[i]}\0${strings[names[i]]}\0${strings[files[i]]}\0${lines[i]}`;
    let number = numbers.get(key);
    if (number === undefined) {
      number = kept.length;
      numbers.set(key, number);
      kept.push(i);
    }
    renamed[i] = number;
  }
  const frames = {
    count: kept.length,
    kind: kept.map((i) => kinds[i]),
    name: kept.map((i) => strings[names[i]]),
    file: kept.map((i) => strings[files[i]]),
    line: Int32Array.from(kept, (i) => lines[i]),
  };
  return { frames, renamed };
}

function decodeValues(raw, where, metrics, count) {
  const values = new Map();
  for (const { name } of metrics) {
    const column = raw && Object.hasOwn(raw, name) ? raw[name] : undefined;
    values.set(name, column === undefined ? new Float64Array(count)
                                          : integers(column, `${where}.${name}`, { count, wide: true }));
  }
  return values;
}

function decodeRoofline(raw, nodes) {
  if (!raw) return null;
  const node = integers(raw.node, "roofline.node", { high: nodes - 1 });
  const count = node.length;
  return {
    count,
    node,
    floor: integers(raw.floor_ns, "roofline.floor_ns", { count, wide: true }),
    bytes: integers(raw.bytes, "roofline.bytes", { count, wide: true }),
    flops: integers(raw.flops, "roofline.flops", { count, wide: true }),
    bound: texts(raw.bound, "roofline.bound"),
  };
}

function decodeTimeline(raw, nodes) {
  if (!raw) return null;
  if (!Array.isArray(raw.tracks)) throw wrong("timeline.tracks", "is not an array");
  const tracks = raw.tracks.map((track) => ({ process: String(track.process ?? ""), name: String(track.name ?? "") }));
  const track = integers(raw.track, "timeline.track", { high: tracks.length - 1 });
  const count = track.length;
  return {
    count,
    tracks,
    track,
    start: integers(raw.start, "timeline.start", { count, wide: true }),
    duration: integers(raw.duration, "timeline.duration", { count, wide: true }),
    node: integers(raw.node, "timeline.node", { count, low: -1, high: nodes - 1 }),
  };
}

function decodeSources(raw, strings) {
  return (raw ?? []).map((source, i) => {
    const [file] = integers([source.file], `sources[${i}].file`, { high: strings.length - 1 });
    if (typeof source.text !== "string") throw wrong(`sources[${i}].text`, "is not a string");
    return { file: strings[file], firstLine: source.first_line ?? 1, lines: source.text.split(/\r\n|\r|\n/) };
  });
}

function decodeAdvice(raw, nodes) {
  return (raw ?? []).map((advice, i) => ({
    rule: String(advice.rule ?? ""),
    node: integers([advice.node ?? 0], `advice[${i}].node`, { high: nodes - 1 })[0],
    evidence: String(advice.evidence ?? ""),
    gain: Number(advice.gain_ns ?? 0),
    share: Number(advice.share ?? 0),
    confidence: String(advice.confidence ?? ""),
    remedy: String(advice.remedy ?? ""),
  }));
}

/**
 * @param {string} text  JSON
 * @returns {Profile}
 * @throws {Error} that names the field that is wrong
 */
export function decode(text) {
  let raw;
  try {
    raw = JSON.parse(text);
  } catch (error) {
    throw wrong("the text", `is not JSON (${error.message})`);
  }
  if (!raw || !Object.hasOwn(FORMATS, raw.format)) throw wrong("format", 'is neither "heddle-profile" nor a difference');
  if (raw.version !== 1) throw wrong("version", `is ${JSON.stringify(raw.version)}; this page reads version 1`);
  if (!Array.isArray(raw.metrics) || raw.metrics.length === 0) throw wrong("metrics", "is empty");
  const metrics = raw.metrics.map(({ name, unit, title }) => (
    { name: String(name), unit: String(unit ?? ""), title: String(title ?? name) }));
  const strings = texts(raw.strings, "strings");
  const { frames, renamed } = decodeFrames(raw.frames, strings);
  const parent = integers(raw.nodes?.parent, "nodes.parent", { low: -1 });
  const count = parent.length;
  if (count === 0) throw wrong("nodes", "is empty");
  for (let i = 0; i < count; i++) {
    if (i === 0 ? parent[i] !== -1 : parent[i] < 0 || parent[i] >= i) {
      throw wrong(`nodes.parent[${i}]`, `is ${parent[i]}; node 0 has -1, others an earlier node`);
    }
  }
  const frame = integers(raw.nodes.frame, "nodes.frame", { count, high: renamed.length - 1 }).map((i) => renamed[i]);
  const isDifference = FORMATS[raw.format];
  return {
    isDifference,
    title: String(raw.title ?? ""),
    facts: (raw.facts ?? []).map(([name, value]) => [String(name), String(value)]),
    metrics,
    frames,
    count,
    parent,
    frame,
    values: decodeValues(raw.nodes.values, "nodes.values", metrics, count),
    before: isDifference ? decodeValues(raw.nodes.before, "nodes.before", metrics, count) : null,
    roofline: decodeRoofline(raw.roofline, count),
    device: raw.device ?? null,
    timeline: decodeTimeline(raw.timeline, count),
    sources: decodeSources(raw.sources, strings),
    advice: decodeAdvice(raw.advice, count),
  };
}
