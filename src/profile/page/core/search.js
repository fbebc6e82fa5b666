// Search: words, `/regular expressions/` and `kind:kernel`, all of which a frame has to match.

function termOf(word) {
  const kind = /^kind:(.*)$/i.exec(word);
  if (kind) return (frames, i) => frames.kind[i].toLowerCase().startsWith(kind[1].toLowerCase());
  const pattern = /^\/(.+)\/$/.exec(word);
  if (pattern) {
    const expression = new RegExp(pattern[1], "i");
    return (frames, i) => expression.test(frames.name[i]) || expression.test(frames.file[i]);
  }
  const lower = word.toLowerCase();
  return (frames, i) => frames.name[i].toLowerCase().includes(lower) || frames.file[i].toLowerCase().includes(lower);
}

/** Words of a query; `/.../` with spaces inside is one. */
function wordsOf(query) {
  return query.match(/\/(?:\\.|[^/\\])+\/(?=\s|$)|\S+/g) ?? [];
}

/**
 * @returns {?{frames: Uint8Array, nodes: Uint8Array, reached: Uint8Array, outermost: number[], count: number}}  null for
 *     an empty query; `outermost` are the nodes that match below no other match
 * @throws {SyntaxError} for a regular expression that is none
 */
export function search(tree, query) {
  const terms = wordsOf(query).map(termOf);
  if (terms.length === 0) return null;
  const { frames } = tree.profile;
  const matched = Uint8Array.from({ length: frames.count }, (_, i) => (terms.every((term) => term(frames, i)) ? 1 : 0));
  const nodes = new Uint8Array(tree.count);
  const below = new Uint8Array(tree.count);
  const outermost = [];
  let count = 0;
  for (let i = 0; i < tree.count; i++) {
    const inside = i > 0 && (below[tree.parent[i]] || nodes[tree.parent[i]]);
    nodes[i] = matched[tree.frame[i]];
    below[i] = inside ? 1 : 0;
    count += nodes[i];
    if (nodes[i] && !inside) outermost.push(i);
  }
  return { frames: matched, nodes, reached: tree.reaches(nodes), outermost, count };
}

/** What all matches cost, each instant counted once. */
export function matchedTotal(tree, match, metric, side = "now") {
  const values = tree.inclusive(metric, side);
  return match.outermost.reduce((sum, node) => sum + values[node], 0);
}
