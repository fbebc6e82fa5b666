"""A decoder with caches of a fixed capacity: prompts in chunks, then one token after the other."""
import pathlib
import re
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from heddle import _errors
from heddle._model import Model
from heddle._options import refuse
from heddle._tools import inspect
from heddle.text.compiling import Compiler
from heddle.text.folder import Declared, declared
from heddle.text.graphs import Cache, Sampling, Step, choice, latest, stored

# Rows of a run over prompts: few numbers, so that prompts of all lengths share plans, and logits stay small.
CHUNKS = (16, 64, 256)
SLOTS = 64  # the slots of a cache are a multiple of it
# Slots that a cache gets at once on a CPU, where a step takes the longer the more slots there are, used or not. On a GPU that
# takes less time than kernels for another capacity.
GROWTH = 256
# The input of the compiled model that names the row of the logits: a model with a head computes no other row of them.
_ROW = "logits_row"
_PAST = re.compile(r"past_key_values\.(\d+)\.(key|value)")


class Decoder:
    """A language model with inputs input_ids, attention_mask, position_ids and past_key_values.N.key and .value, as far as it
    has them, and outputs logits and present.N.key and .value."""

    def __init__(self, path: pathlib.Path, compiler: Compiler):
        self.path, self.compiler = path, compiler
        told = inspect(str(path), target=compiler.target)
        self.inputs = {port.name: port for port in declared(told["inputs"])}
        outputs = {port.name: port for port in declared(told["outputs"])}
        self.caches = self._find_caches(outputs)
        self._require_known_inputs()
        # GroupQueryAttention writes into buffers that are longer than what they hold; other models append.
        self.shares = "com.microsoft.GroupQueryAttention" in told["operators"]
        if "attention_mask" not in self.inputs:
            self._unsupported("it has no input attention_mask, so that a cache cannot hold more rows than tokens")
        if self.shares and "cache_position" in self.inputs:
            self._unsupported("it has an input cache_position beside GroupQueryAttention, which counts keys by attention_mask")
        if not self.shares and "position_ids" not in self.inputs:
            self._unsupported("it has no input position_ids and counts positions by the length of its cache")
        logits = outputs.get("logits")
        if logits is None or len(logits.extents) != 3 or not isinstance(logits.extents[2], int):
            refuse(str(path), "it has no output logits [batch, tokens, words]", "Export the model for text generation")
        if isinstance(logits.extents[1], int):
            self._unsupported(f"its logits have {logits.extents[1]} rows for any number of tokens, and prompts are read in padded chunks")
        self.logits, self.words = logits.dtype, logits.extents[2]
        # Inputs that decide shapes.
        self._values: Dict[str, Any] = {}
        if "use_cache_branch" in self.inputs:
            self._values["use_cache_branch"] = np.array([True])
        if "num_logits_to_keep" in self.inputs:  # 0: all
            self._values["num_logits_to_keep"] = np.zeros(self._extents("num_logits_to_keep"), np.int64)
        self._on_device = {name: compiler.array(value, self.inputs[name].dtype) for name, value in self._values.items()}
        self._model: Optional[Model] = None

    def prepare(self, batch: int, capacity: int) -> None:
        """Compiles the model for steps, if this is its first use: other shapes take the kernels of the first one where they can."""
        if self._model is None:
            self._model = self._compiled(batch, capacity)

    def run(self, arrays: Mapping[str, Any], out: Mapping[str, Any]) -> dict:
        """The outputs by name, after prepare()."""
        return self._model.run({**arrays, **self._on_device}, out=out)

    def dtype(self, name: str) -> str:
        """Of an input, i64 if the model does not have it."""
        return self.inputs[name].dtype if name in self.inputs else "i64"

    def _compiled(self, batch: int, capacity: int) -> Model:
        shapes: Dict[str, Tuple[int, ...]] = {c.past: (batch, c.heads, capacity, c.depth) for c in self.caches}
        shapes.update(input_ids=(batch, 1), attention_mask=(batch, capacity if self.shares else capacity + 1))
        if "position_ids" in self.inputs:
            shapes["position_ids"] = (batch, 1)
        if "cache_position" in self.inputs:
            shapes["cache_position"] = (1,)
        pairs = {c.present: c.past for c in self.caches}
        kind = "alias" if self.shares else "appended"
        return self.compiler.model(self.path, shapes=shapes, values=self._values or None, **{kind: pairs}, rows={"logits": _ROW})

    def _find_caches(self, outputs: Mapping[str, Declared]) -> List[Cache]:
        caches = []
        for name, port in self.inputs.items():
            found = _PAST.fullmatch(name)
            if not found:
                continue
            present = f"present.{found[1]}.{found[2]}"
            heads_and_depth = port.extents[1::2] if len(port.extents) == 4 else ()
            if present not in outputs or not all(isinstance(extent, int) for extent in heads_and_depth) or not heads_and_depth:
                self._unsupported(f"its cache {name} {list(port.extents)} is not [batch, heads, tokens, head size] beside an output {present}")
            caches.append(Cache(name, present, port.dtype, *heads_and_depth))
        if not caches:
            refuse(str(self.path), "the model has no inputs past_key_values.N.key and past_key_values.N.value, so it is no decoder with caches",
                   "Export it with them: `optimum-cli export onnx --task text-generation-with-past`")
        return caches

    def _require_known_inputs(self) -> None:
        known = {"input_ids", "attention_mask", "position_ids", "cache_position", "use_cache_branch", "num_logits_to_keep", *(c.past for c in self.caches)}
        unknown = [name for name in self.inputs if name not in known]
        if unknown or "input_ids" not in self.inputs:
            self._unsupported(f"it has the inputs {', '.join(unknown)}" if unknown else "it has no input input_ids")

    def _extents(self, name: str) -> Tuple[int, ...]:
        return tuple(extent if isinstance(extent, int) else 1 for extent in self.inputs[name].extents)

    def _unsupported(self, why: str) -> None:
        why = f"the model cannot generate text here: {why}"
        raise _errors.make(301, str(self.path), why, "", f"{self.path}: {why}")


class Session:
    """Sequences that are generated together, with their caches.

    A prompt is read in chunks of equal length. What stands behind a shorter prompt in a chunk is stored, too, in slots that
    the mask hides until tokens of the answer overwrite them.
    """

    def __init__(self, decoder: Decoder, prompts: Sequence[Sequence[int]], room: int, how: Sampling, draws: np.ndarray):
        self._decoder, self._prompts, self._how = decoder, prompts, how
        self.batch = len(prompts)
        longest = max(len(prompt) for prompt in prompts)
        self._chunk = next((chunk for chunk in CHUNKS if longest <= chunk), CHUNKS[-1])
        # Rows of padding behind the last slot are dropped where caches are stored by a graph.
        padded = -(-longest // self._chunk) * self._chunk if decoder.shares else longest
        self._longest, self._room, self._chosen = longest, room, 0
        ahead = min(room, GROWTH) if decoder.compiler.target == "cpu" else room
        self.capacity = -(-max(padded, longest + ahead) // SLOTS) * SLOTS
        self._most = max(self.capacity, -(-(longest + room) // SLOTS) * SLOTS)
        self._places: Dict[Tuple[int, int], Any] = {}
        decoder.prepare(self.batch, self.capacity)
        self._array = decoder.compiler.array
        self._graph = decoder.compiler.graph
        self._draws = draws
        self._caches = {c.past: self._array(np.zeros((self.batch, c.heads, self.capacity, c.depth)), c.dtype) for c in decoder.caches}
        self._empty = {} if decoder.shares else {c.past: self._array(np.zeros((self.batch, c.heads, 0, c.depth)), c.dtype) for c in decoder.caches}
        self._only_row = self._array(np.zeros(self.batch), "i64")
        self._state: Dict[str, Any] = {}

    def prefill(self) -> np.ndarray:
        """Reads the prompts and returns the first token of each answer."""
        last = self._array(np.zeros((self.batch, 1, self._decoder.words)), self._decoder.logits)
        for start in range(0, self._longest, self._chunk):
            last = self._read_chunk(start, last)
        self._chosen = 0
        self._state = {"lengths": self._array([len(prompt) for prompt in self._prompts], "i64")}
        if self._how.temperature > 0:
            self._state.update(draws=self._array(self._draws, "f32"), turn=self._array([0], "i64"),
                               temperature=self._array(self._how.temperature, "f32"), top_p=self._array(self._how.top_p, "f32"))
        return self._choose(last)

    def step(self) -> np.ndarray:
        """Reads the tokens that were chosen last and returns the next ones."""
        at = self._state
        return self._choose(self._run(1, at["token"], at["mask"], at["position"], at["slot"], self._only_row))

    @property
    def _fresh(self) -> int:
        return 0 if self._decoder.shares else 1

    def _read_chunk(self, start: int, last: Any) -> Any:
        batch, rows = self.batch, self._chunk
        tokens = np.zeros((batch, rows), np.int64)
        for i, prompt in enumerate(self._prompts):
            part = prompt[start:start + rows]
            tokens[i, :len(part)] = part
        # The first chunk sees itself only: its mask has as many columns, and caches that grow are empty.
        columns = rows if start == 0 else self.capacity + rows * self._fresh
        column = np.arange(columns)
        seen = (column < start) | (column >= columns - rows) if self._fresh else column < start + rows
        row = self._array([len(prompt) - 1 - start for prompt in self._prompts], "i64")
        logits = self._run(rows, self._array(tokens, self._decoder.dtype("input_ids")),
                           self._array(np.tile(seen, (batch, 1)), self._decoder.dtype("attention_mask")),
                           self._array(np.tile(np.arange(start, start + rows), (batch, 1)), self._decoder.dtype("position_ids")),
                           self._array(np.full((batch, 1), start), "i64"), row)
        pick = self._graph(latest((self._decoder.logits, (batch, 1, self._decoder.words)), rows))
        return pick.run({"logits": logits, "row": row, "earlier": last})["latest"]

    def _run(self, rows: int, tokens: Any, mask: Any, positions: Any, slot: Any, row: Any) -> Any:
        decoder = self._decoder
        past = self.capacity if decoder.shares else mask.shape[1] - rows
        pasts = self._caches if past else self._empty
        arrays = {"input_ids": tokens, "attention_mask": mask, _ROW: row, **pasts}
        if "position_ids" in decoder.inputs:
            arrays["position_ids"] = positions
        if "cache_position" in decoder.inputs:
            arrays["cache_position"] = self._columns(past, rows)
        out = {c.present: self._caches[c.past] for c in decoder.caches} if decoder.shares else {}
        results = decoder.run(arrays, out)
        if not decoder.shares:
            store = self._graph(stored(decoder.caches, self.batch, self.capacity, rows),
                                  alias={f"slots.{i}": c.past for i, c in enumerate(decoder.caches)})
            store.run({**{c.present: results[c.present] for c in decoder.caches}, **self._caches, "at": slot},
                      out={f"slots.{i}": self._caches[c.past] for i, c in enumerate(decoder.caches)})
        return results["logits"]

    def _columns(self, past: int, rows: int) -> Any:
        """The columns of a step's own keys among all keys."""
        if (past, rows) not in self._places:
            self._places[past, rows] = self._array(np.arange(past, past + rows), self._decoder.dtype("cache_position"))
        return self._places[past, rows]

    def _grow(self) -> None:
        more = min(GROWTH, self._most - self.capacity)
        self.capacity += more
        for cache in self._decoder.caches:
            rows = np.pad(self._caches[cache.past].numpy(), ((0, 0), (0, 0), (0, more), (0, 0)))
            self._caches[cache.past] = self._array(rows, cache.dtype)

    def _choose(self, logits: Any) -> np.ndarray:
        decoder = self._decoder
        if self._longest + self._chosen == self.capacity and self._chosen + 1 < self._room:
            self._grow()  # for the step that reads the token
        self._chosen += 1
        step = Step(decoder.dtype("input_ids"), decoder.dtype("position_ids"), decoder.dtype("attention_mask"),
                    self.capacity + self._fresh, self._fresh)
        choose = self._graph(choice((decoder.logits, (self.batch, 1, decoder.words)), self._how, len(self._draws), step))
        names = [port.name for port in choose.inputs if port.name != "logits"]
        self._state.update(choose.run({"logits": logits, **{name: self._state[name] for name in names}}))
        return self._state["token"].numpy()[:, 0]
