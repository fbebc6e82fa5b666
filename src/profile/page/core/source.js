// Times beside the lines of a source file.

import { numberBy } from "./tree.js";

/**
 * Times of all lines of a file. A line counts once where it calls itself.
 * @returns {Map<number, {inclusive: number, exclusive: number, node: number}>}  by line; `node` is the heaviest of it
 */
export function lineTimes(tree, file, metric, side = "now") {
  const { frames } = tree.profile;
  const inclusive = tree.inclusive(metric, side);
  const exclusive = tree.exclusive(metric, side);
  const { of, keys } = numberBy(tree.count, (node) => {
    const frame = tree.frame[node];
    return frames.file[frame] === file && frames.line[frame] > 0 ? frames.line[frame] : 0;
  });
  const outermost = tree.outermost(of, keys.length);
  const times = new Map();
  for (let node = 0; node < tree.count; node++) {
    const line = keys[of[node]];
    if (line === 0) continue;
    let entry = times.get(line);
    if (!entry) times.set(line, entry = { inclusive: 0, exclusive: 0, node });
    if (inclusive[node] > inclusive[entry.node]) entry.node = node;
    if (outermost[node]) entry.inclusive += inclusive[node];
    entry.exclusive += exclusive[node];
  }
  return times;
}

/** The nearest node from `node` upwards whose file is among the sources; -1 where there is none. */
export function nodeWithSource(tree, node) {
  const { frames, sources } = tree.profile;
  const files = new Set(sources.map(({ file }) => file));
  for (let at = node; at >= 0; at = tree.parent[at]) {
    if (files.has(frames.file[tree.frame[at]]) && frames.line[tree.frame[at]] > 0) return at;
  }
  return -1;
}

const WORDS = {
  python: /^(?:and|as|assert|async|await|break|class|continue|def|del|elif|else|except|False|finally|for|from|global|if|import|in|is|lambda|None|not|or|pass|raise|return|True|try|while|with|yield)$/,
  c: /^(?:alignas|auto|bool|break|case|char|const|constexpr|continue|default|do|double|else|enum|extern|false|float|for|if|inline|int|int64_t|long|namespace|return|short|signed|sizeof|static|struct|switch|template|true|typedef|typename|uint32_t|unsigned|using|void|while|__global__|__device__|__shared__|__launch_bounds__|__restrict__)$/,
};
const TOKENS = {
  python: /(?<comment>#.*)|(?<text>"""|'''|"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?)|(?<number>\b\d[\w.]*)|(?<word>[A-Za-z_]\w*)/g,
  c: /(?<comment>\/\/.*|\/\*.*?(?:\*\/|$))|(?<text>"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?)|(?<number>\b\d[\w.]*)|(?<word>[A-Za-z_]\w*)/g,
};

/** Pieces of a line of source and what each is: "comment", "text", "number", "keyword" or "". */
export function pieces(line, file) {
  const language = file.endsWith(".py") ? "python" : "c";
  const result = [];
  let end = 0;
  for (const match of line.matchAll(TOKENS[language])) {
    const { comment, text, number, word } = match.groups;
    const kind = comment ? "comment" : text ? "text" : number ? "number" : WORDS[language].test(word) ? "keyword" : "";
    if (kind === "") continue;
    if (match.index > end) result.push(["", line.slice(end, match.index)]);
    result.push([kind, match[0]]);
    end = match.index + match[0].length;
  }
  if (end < line.length) result.push(["", line.slice(end)]);
  return result;
}
