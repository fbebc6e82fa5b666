"""Text from a language model."""
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple, Union

import numpy as np

from heddle._options import refuse
from heddle.text.compiling import Compiler
from heddle.text.decoder import CHUNKS, SLOTS, Decoder, Session
from heddle.text.folder import Folder
from heddle.text.graphs import Sampling
from heddle.text.tokens import TextStream, Tokenizer

# Names of the models that optimum, transformers.js and the exporters of ONNX Runtime write.
STEMS = ("model", "decoder_model_merged", "decoder_with_past_model")
_MASKS_OF_CONTEXT = ("gpt2", "gptj", "codegen", "gpt_neox")
_CONTEXTS = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length")
_DRAWS = 256  # rows of the table of random numbers are a multiple of it, so that few graphs differ in it


class Piece(NamedTuple):
    """New text of an answer. The last piece has `finish`: "stop" (a stop word or the token that ends a text), "length"
    (max_tokens) or "context" (the model has no further positions)."""

    row: int
    text: str
    finish: str = ""


@dataclass
class Answer:
    """The whole answer to a prompt, its tokens and why it ended (Piece)."""

    text: str = ""
    tokens: List[int] = field(default_factory=list)
    finish: str = ""


@dataclass
class Timing:
    """Seconds until the first token of all answers, and for those after it; counts of tokens over all sequences."""

    prompt_tokens: int = 0
    first_s: float = 0.0
    steps_s: float = 0.0
    step_tokens: int = 0

    @property
    def tokens_per_second(self) -> float:
        """Tokens after the first one, of all sequences together."""
        return self.step_tokens / self.steps_s if self.steps_s > 0 else 0.0


class Generator:
    """Generates text with the model in a folder, laid out as optimum and onnx-community do.

    `variant` picks among the files of different weights: "fp32", "fp16", "q4", "q4f16", "q8", "int8", "uint8", "bnb4"; None takes the
    first that the folder has. `target`, `precision`, `threads` and `progress` are those of heddle.compile(). The answers so
    far of the last call are in `answers`, and its times in `timing`. Several calls may be under way at once. Raises heddle.MissingFileError for files that the folder lacks,
    heddle.InputError and heddle.UnsupportedError for models that are no decoder with caches.
    """

    def __init__(self, folder: Any, *, variant: Optional[str] = None, target: str = "cpu", precision: str = "f32", threads: int = 0,
                 progress: Optional[Callable[[str, float], None]] = None):
        self._folder = Folder(folder)
        _require_decoder(self._folder)
        path = self._folder.model(STEMS, variant)
        self.tokenizer = Tokenizer(self._folder)
        self._decoder = Decoder(path, Compiler(target, precision, threads, progress))
        self.tokenizer.require_fit(self._decoder.words, str(path))
        self.answers: List[Answer] = []
        self.timing = Timing()

    @property
    def context(self) -> Optional[int]:
        """The most tokens of a prompt and its answer together; None where config.json does not say."""
        config = self._folder.config
        limits = [config[name] for name in _CONTEXTS if isinstance(config.get(name), int)]
        window = config.get("sliding_window")
        if isinstance(window, int) and config.get("use_sliding_window", True) and not self._decoder.shares:
            # The distance of keys in the cache is that of their tokens only while all of them are inside the window.
            limits.append(_slots_within(window))
        if self._folder.family in _MASKS_OF_CONTEXT and not self._decoder.shares:
            # Their masks are cut out of a constant of all positions, of which a chunk takes some beyond the cache.
            limits = [_slots_within(limit) for limit in limits]
        return min(limits, default=None)

    @property
    def defaults(self) -> Sampling:
        """Sampling as generation_config.json asks for it: the most probable token, if it does not."""
        given = self._folder.generation
        if not given.get("do_sample"):
            return Sampling()
        # null leaves out nothing; transformers has 50 for a missing top_k.
        values = {"temperature": 1.0, "top_k": 50, "top_p": 1.0} | {name: given[name] for name in Sampling._fields if name in given}
        neutral = {"temperature": 1.0, "top_k": 0, "top_p": 1.0}
        return Sampling(**{name: neutral[name] if value is None else value for name, value in values.items()})

    def encode(self, prompt: Union[str, Sequence[int], Sequence[Mapping[str, str]]]) -> List[int]:
        """Tokens of a text, or of a conversation: messages with `role` and `content`, in the model's chat template."""
        if isinstance(prompt, str):
            return self.tokenizer.encode(prompt)
        if prompt and isinstance(prompt[0], Mapping):
            return self.tokenizer.conversation(prompt)
        return [int(token) for token in prompt]

    def generate(self, prompts: Sequence[Any], **options: Any) -> List[Answer]:
        """The answers to the prompts, with the options of stream()."""
        answers: List[Answer] = []
        for _ in self._pieces(answers, prompts, **options):
            pass
        return answers

    def stream(self, prompts: Sequence[Any], *, max_tokens: Optional[int] = None, sampling: Optional[Sampling] = None, seed: int = 0,
               stop: Sequence[str] = (), ignore_end: bool = False, prepare: bool = False) -> Iterator[Piece]:
        """Answers the prompts together, step by step, and gives each piece of text when it is known.

        A prompt is a text, a list of tokens or a conversation (encode()). Each answer has at most `max_tokens` tokens (256, or
        what the context leaves), and ends before the first of the texts `stop` and at the tokens that end a text, unless
        `ignore_end`. Equal `seed`s give equal answers. The numbers that a place in the batch draws do not
        depend on the other prompts. `prepare` runs the
        graphs once before the time is taken. Raises heddle.InputError for a prompt that is empty or too long.
        """
        answers: List[Answer] = []
        return self._pieces(answers, prompts, max_tokens=max_tokens, sampling=sampling, seed=seed, stop=stop, ignore_end=ignore_end,
                            prepare=prepare)

    def _pieces(self, answers: List[Answer], prompts: Sequence[Any], *, max_tokens: Optional[int] = None,
                sampling: Optional[Sampling] = None, seed: int = 0, stop: Sequence[str] = (), ignore_end: bool = False,
                prepare: bool = False) -> Iterator[Piece]:
        """stream(), which adds the answers to a list."""
        if isinstance(prompts, str):
            refuse("prompts", "it is a text, not a list of prompts", "Give [prompt]")
        stop = [stop] if isinstance(stop, str) else list(stop)
        if "" in stop:
            refuse("stop", "a stop word is empty", "Give at least a character")
        if seed < 0:
            refuse("seed", f"{seed} is negative", "Give 0 or more")
        rows = [self.encode(prompt) for prompt in prompts]
        room, cut = self._room(rows, max_tokens)
        how = self.defaults if sampling is None else sampling
        _require_sampling(how)
        table = -(-room // _DRAWS) * _DRAWS
        draws = np.stack([np.random.default_rng([seed, i]).random(table, np.float32) for i in range(len(rows))], 1)
        session = Session(self._decoder, rows, room, how, draws)
        if prepare:
            session.prefill()
            session.step()
        answers.extend(Answer() for _ in rows)
        timing = Timing(prompt_tokens=sum(map(len, rows)))
        self.answers, self.timing = answers, timing
        ends = set() if ignore_end else self._ends()
        texts = [TextStream(self.tokenizer, stop) for _ in rows]
        begin = time.perf_counter()
        tokens = session.prefill()
        timing.first_s = time.perf_counter() - begin
        for turn in range(room):
            if turn > 0:
                begin = time.perf_counter()
                tokens = session.step()
                timing.steps_s += time.perf_counter() - begin
                timing.step_tokens += sum(not answer.finish for answer in answers)
            for row, answer in enumerate(answers):
                if not answer.finish:
                    piece, finish = _taken(answer, int(tokens[row]), texts[row], ends, cut if turn + 1 == room else "")
                    yield Piece(row, piece, finish)
            if all(answer.finish for answer in answers):
                return

    def _room(self, rows: Sequence[Sequence[int]], max_tokens: Optional[int]) -> Any:
        """Tokens of an answer, and how an answer of that many ends."""
        if not rows:
            refuse("prompts", "there is no prompt", "Give at least one")
        if max_tokens is not None and max_tokens < 1:
            refuse("max_tokens", f"{max_tokens} is less than 1", "Give the most tokens of an answer")
        for i, tokens in enumerate(rows):
            if not tokens:
                refuse(f"prompt {i + 1}", "it has no tokens", "Give a text that is not empty")
            bad = [token for token in tokens if not 0 <= token < self._decoder.words]
            if bad:
                refuse(f"prompt {i + 1}", f"it has the token {bad[0]}, and the model has {self._decoder.words}", "Give tokens of the model")
        longest, context = max(map(len, rows)), self.context
        if context is None:
            return max_tokens or 256, "length"
        left = context - longest
        if left < 1:
            at = 1 + max(range(len(rows)), key=lambda i: len(rows[i]))
            refuse(f"prompt {at}", f"it has {longest} tokens, and the model has {context} positions for a prompt and its answer", "Shorten it")
        if max_tokens is not None and max_tokens > left:
            refuse("max_tokens", f"{max_tokens} tokens do not fit: the cache of the model holds {context}, of which the longest prompt takes {longest}",
                   f"Give at most {left}")
        room = max_tokens or min(256, left)
        return room, "context" if max_tokens is None and room == left else "length"

    def _ends(self) -> Set[int]:
        ends: Set[int] = set()
        for given in (self._folder.generation.get("eos_token_id", self._folder.config.get("eos_token_id")), self.tokenizer.end()):
            ends.update(given if isinstance(given, list) else [] if given is None else [given])
        return ends


def _taken(answer: Answer, token: int, text: TextStream, ends: Set[int], at_end: str) -> Tuple[str, str]:
    """Adds a token to an answer: the text that is known with it, and why the answer ends, if it does."""
    if token in ends:
        piece, finish = text.end(), "stop"
    else:
        answer.tokens.append(token)
        piece, stopped = text.add(token)
        finish = "stop" if stopped else at_end
        if finish and not stopped:
            piece += text.end()
    answer.text += piece
    answer.finish = finish
    return piece, finish


def _slots_within(columns: int) -> int:
    """Slots of a cache whose keys and those of a chunk lie within this many columns."""
    return max(0, (columns - CHUNKS[-1]) // SLOTS * SLOTS)


def _require_decoder(folder: Folder) -> None:
    if folder.config.get("is_encoder_decoder"):
        remedy = "Use `heddle transcribe` for it" if folder.family == "whisper" else "Use a decoder, such as Llama, Qwen or GPT-2"
        refuse(str(folder.path), f"a model of the family {folder.family} has an encoder beside its decoder, and does not continue a text", remedy)
    if folder.family == "gpt_neo":
        refuse(str(folder.path), "the local attention of gpt_neo counts places of the cache, not tokens", "Use another model")


def _require_sampling(how: Sampling) -> None:
    if how.temperature < 0:
        refuse("temperature", f"{how.temperature} is negative", "Give 0 for the most probable token, or a positive number")
    if how.top_k < 0:
        refuse("top_k", f"{how.top_k} is negative", "Give 0 to consider all tokens")
    if not 0 < how.top_p <= 1:
        refuse("top_p", f"{how.top_p} is not in (0, 1]", "Give 1 to consider all tokens")
