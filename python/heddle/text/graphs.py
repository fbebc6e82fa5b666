"""The graphs between two steps of a language model: they choose tokens, count positions and store rows of caches.

All run on the model's device, so that only the numbers of the chosen tokens come to the host.
"""
from typing import List, NamedTuple, Sequence, Tuple

from heddle._hir import Shape, Value, Word, Writer


class Sampling(NamedTuple):
    """How a token is chosen; `temperature` 0 takes the most probable one, `top_k` 0 and `top_p` 1 leave out nothing."""

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0


class Cache(NamedTuple):
    """A cache of a layer: its input, the output with the new rows, and the heads and head size."""

    past: str
    present: str
    dtype: str
    heads: int
    depth: int


def _spread(w: Writer, x: Value, shape: Shape, dims: Sequence[int]) -> Value:
    return w.emit("broadcast", [x], x.dtype, shape, shape=list(shape), dims=list(dims))


def _same(w: Writer, op: str, a: Value, b: Value) -> Value:
    compares = op in ("eq", "lt", "le", "ge", "gt")
    return w.emit(op, [a, b], "bool" if compares else a.dtype, a.shape)


def _iota(w: Writer, shape: Shape, dim: int) -> Value:
    return w.emit("iota", [], "i64", shape, dtype=Word("i64"), shape=list(shape), dim=dim)


def _cast(w: Writer, x: Value, dtype: str) -> Value:
    return x if x.dtype == dtype else w.emit("cast", [x], dtype, x.shape, to=Word(dtype))


def _sum(w: Writer, x: Value) -> Value:
    """Along dimension 1 of two."""
    return w.emit("reduce", [x], x.dtype, x.shape[:1], kind="sum", dims=[1])


def _scan(w: Writer, x: Value, *, exclusive: bool) -> Value:
    return w.emit("scan", [x], x.dtype, x.shape, kind="sum", dim=1, exclusive=exclusive, reverse=0)


def _probabilities(w: Writer, scores: Value, temperature: Value) -> Value:
    """Softmax of scores / temperature, not yet divided by its sum."""
    highest = w.emit("reduce", [scores], "f32", scores.shape[:1], kind="max", dims=[1])
    below = _same(w, "sub", scores, _spread(w, highest, scores.shape, [0]))
    return w.emit("exp", [_same(w, "div", below, _spread(w, temperature, scores.shape, []))], "f32", scores.shape)


def _drawn(w: Writer, logits: Value, how: Sampling, draw: Value) -> Value:
    """Token i64[batch] of logits [batch, words]: the first whose cumulated probability is above draw f32[batch]."""
    batch, words = logits.shape
    temperature, top_p = w.parameter("f32", (), "temperature"), w.parameter("f32", (), "top_p")
    scores = _cast(w, logits, "f32")
    sorts = how.top_k > 0 or how.top_p < 1
    order = None
    if sorts:
        most = min(how.top_k or words, words)
        scores, order = w.emit_all("topk", [scores], [("f32", (batch, most)), ("i64", (batch, most))], dim=1, k=most, largest=1, sorted=1)
    weights = _probabilities(w, scores, temperature)
    if how.top_p < 1:
        # A token stays if those before it have less than top_p together.
        bound = _same(w, "mul", _sum(w, weights), _spread(w, top_p, (batch,), []))
        stays = _same(w, "lt", _scan(w, weights, exclusive=True), _spread(w, bound, weights.shape, [0]))
        weights = w.emit("select", [stays, weights, w.constant(0, "f32", weights.shape)], "f32", weights.shape)
    sums = _scan(w, weights, exclusive=False)
    # The last sum, not another one of the same terms, which may be larger by rounding.
    whole = w.emit("slice", [sums], "f32", (batch, 1), starts=[0, weights.shape[1] - 1], limits=[batch, weights.shape[1]], strides=[1, 1])
    target = _same(w, "mul", w.emit("reshape", [whole], "f32", (batch,), shape=[batch]), draw)
    passed = _same(w, "le", sums, _spread(w, target, sums.shape, [0]))
    chosen = _sum(w, _cast(w, passed, "i64"))
    # draw < 1, but its product with the sum may round to the sum.
    chosen = _same(w, "min", chosen, w.constant(weights.shape[1] - 1, "i64", (batch,)))
    if order is None:
        return chosen
    column = w.emit("reshape", [chosen], "i64", (batch, 1), shape=[batch, 1])
    picked = w.emit("gather_elements", [order, column], "i64", (batch, 1), dim=1)
    return w.emit("reshape", [picked], "i64", (batch,), shape=[batch])


class Step(NamedTuple):
    """The inputs of a step that reads one token: their dtypes, and the columns of its mask. The first columns are slots of the
    cache; the last `fresh` ones are the step's own keys where these are not in their slots yet."""

    token: str
    position: str
    mask: str
    columns: int
    fresh: int


def choice(logits: Tuple[str, Shape], how: Sampling, draws: int, step: Step) -> str:
    """(logits [batch, 1, words], lengths i64[batch]) -> the token [batch, 1] of each sequence, the lengths with it, and for the
    step that reads it: its position [batch, 1], the slot i64[batch, 1] of its keys and the mask of the keys that it may see.

    A sampled choice also takes draws f32[draws, batch], temperature f32[], top_p f32[] and the turn i64[1], and returns the next
    turn."""
    dtype, (batch, rows, words) = logits
    w = Writer()
    given = w.parameter(dtype, (batch, rows, words), "logits")
    lengths = w.parameter("i64", (batch,), "lengths")
    plane = w.emit("reshape", [given], dtype, (batch, words), shape=[batch, words])
    turn = None
    if how.temperature > 0:
        table, turn = w.parameter("f32", (draws, batch), "draws"), w.parameter("i64", (1,), "turn")
        row = w.emit("gather", [table, turn], "f32", (1, batch), dim=0)
        token = _drawn(w, plane, how, w.emit("reshape", [row], "f32", (batch,), shape=[batch]))
    else:
        token = w.emit("arg_reduce", [plane], "i64", (batch,), kind="max", dim=1, last=0)
    longer = _same(w, "add", lengths, w.constant(1, "i64", (batch,)))
    column = _iota(w, (batch, step.columns), 1)
    seen = _same(w, "lt", column, _spread(w, lengths if step.fresh else longer, column.shape, [0]))
    if step.fresh:
        own = _same(w, "ge", column, w.constant(step.columns - step.fresh, "i64", column.shape))
        seen = w.emit("or", [seen, own], "bool", seen.shape)
    slot = w.emit("reshape", [lengths], "i64", (batch, 1), shape=[batch, 1])
    token = w.emit("reshape", [token], "i64", (batch, 1), shape=[batch, 1])
    results = [_cast(w, token, step.token), longer, _cast(w, slot, step.position), slot, _cast(w, seen, step.mask)]
    names = ["token", "lengths", "position", "slot", "mask"]
    if turn is not None:
        results.append(_same(w, "add", turn, w.constant(1, "i64", (1,))))
        names.append("turn")
    return w.text(results, names)


def latest(logits: Tuple[str, Shape], rows: int) -> str:
    """(logits [batch, 1, words] of one row, row i64[batch], earlier [batch, 1, words]) -> the logits of the sequences whose row is
    one of the `rows` of this run, the earlier ones of the others."""
    dtype, shape = logits
    w = Writer()
    given = w.parameter(dtype, shape, "logits")
    row = w.parameter("i64", shape[:1], "row")
    earlier = w.parameter(dtype, shape, "earlier")
    inside = _same(w, "and", _same(w, "ge", row, w.constant(0, "i64", row.shape)), _same(w, "lt", row, w.constant(rows, "i64", row.shape)))
    return w.text([w.emit("select", [_spread(w, inside, shape, [0]), given, earlier], dtype, shape)], ["latest"])


def stored(caches: Sequence[Cache], batch: int, columns: int, fresh: int) -> str:
    """(each present [batch, heads, fresh, depth], each cache [batch, heads, columns, depth], at i64[batch, 1]) -> `slots.N`: cache N
    with the fresh rows from slot `at` on; rows that lie outside are dropped."""
    w = Writer()
    rows: List[Value] = [w.parameter(c.dtype, (batch, c.heads, fresh, c.depth), f'"{c.present}"') for c in caches]
    kept: List[Value] = [w.parameter(c.dtype, (batch, c.heads, columns, c.depth), f'"{c.past}"') for c in caches]
    at = w.parameter("i64", (batch, 1), "at")
    index = (batch, 1, fresh, 1)
    slot = _same(w, "add", _spread(w, at, index, [0, 1]), _iota(w, index, 2))
    results = [w.emit("scatter_elements", [old, slot, new], new.dtype, old.shape, dim=2, reduction="none", drop=1)
               for new, old in zip(rows, kept)]
    return w.text(results, [f"slots.{i}" for i in range(len(caches))])
