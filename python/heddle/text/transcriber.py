"""Text of speech, by Whisper."""
import pathlib
import time
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from heddle._hir import Word, Writer
from heddle._model import Model
from heddle._options import did_you_mean, refuse
from heddle._tools import inspect
from heddle.text.audio import read_wav, spectrum
from heddle.text.compiling import Compiler
from heddle.text.folder import Declared, Folder, declared
from heddle.text.tokens import Tokenizer

_LARGEST_BATCH = 8  # windows of one recording


class Transcript(NamedTuple):
    """The text of a recording, its tokens for each window of 30 s, the language ("" for a model of English only), and seconds
    for the spectra and the encoder, and for the decoder."""

    text: str
    tokens: List[List[int]]
    language: str
    encoder_s: float
    decoder_s: float


def _best(dtype: str, batch: int, rows: int, words: int) -> str:
    """(logits [batch, rows, words], bias f32[words]) -> the token i64[batch, 1] with the highest logit after the last row."""
    w = Writer()
    logits, bias = w.parameter(dtype, (batch, rows, words), "logits"), w.parameter("f32", (words,), "bias")
    last = w.emit("slice", [logits], dtype, (batch, 1, words), starts=[0, rows - 1, 0], limits=[batch, rows, words], strides=[1, 1, 1])
    scores = w.emit("reshape", [last], dtype, (batch, words), shape=[batch, words])
    if dtype != "f32":
        scores = w.emit("cast", [scores], "f32", scores.shape, to=Word("f32"))
    scores = w.emit("add", [scores, w.emit("broadcast", [bias], "f32", scores.shape, shape=list(scores.shape), dims=[1])], "f32", scores.shape)
    token = w.emit("arg_reduce", [scores], "i64", (batch,), kind="max", dim=1, last=0)
    return w.text([w.emit("reshape", [token], "i64", (batch, 1), shape=[batch, 1])], ["token"])


class _Part:
    """A model of the decoder, with or without earlier tokens: a file of its own, or a branch of a merged one."""

    def __init__(self, path: pathlib.Path, compiler: Compiler, has_past: bool):
        self.path = path
        told = inspect(str(path), target=compiler.target)
        self.inputs = {port.name: port for port in declared(told["inputs"])}
        self.outputs = {port.name: port for port in declared(told["outputs"])}
        self._compiler, self._has_past = compiler, has_past
        self._model: Optional[Model] = None

    def run(self, arrays: Mapping[str, Any]) -> Dict[str, Any]:
        given = {name: arrays[name] for name in self.inputs if name in arrays}
        if "use_cache_branch" in self.inputs:
            given["use_cache_branch"] = self._compiler.array([self._has_past], "bool")
        if self._model is None:
            self._model = self._compiled({name: tuple(value.shape) for name, value in given.items()})
        return self._model.run(given)

    def caches(self, side: str) -> List[Declared]:
        """Inputs for the keys and values of one side, "decoder" or "encoder"."""
        return [port for port in self.inputs.values() if port.name.startswith("past_key_values.") and f".{side}." in port.name]

    def _compiled(self, shapes: Dict[str, Tuple[int, ...]]) -> Model:
        values = {"use_cache_branch": np.array([self._has_past])} if "use_cache_branch" in self.inputs else None
        dims = {}
        growing = self.caches("decoder")
        if self._has_past and self._compiler.target == "cpu" and growing and isinstance(growing[0].extents[2], str):
            dims[growing[0].extents[2]] = (1, 448)
            for port in growing:
                del shapes[port.name]
        return self._compiler.model(self.path, shapes=shapes, dims=dims or None, values=values, max_plans=512)


class Transcriber:
    """Transcribes recordings with the Whisper model in a folder, laid out as optimum and onnx-community do.

    Options as for Generator. Raises heddle.MissingFileError, heddle.InputError.
    """

    def __init__(self, folder: Any, *, variant: Optional[str] = None, target: str = "cpu", precision: str = "f32", threads: int = 0,
                 progress: Optional[Callable[[str, float], None]] = None):
        self._folder = Folder(folder)
        if self._folder.family != "whisper":
            refuse(str(self._folder.path), f"the model is of the family {self._folder.family}, not whisper", "Give the folder of a Whisper model")
        self._folder.json("generation_config.json", needed=True)  # has the languages and the tokens that are no text
        compiler = Compiler(target, precision, threads, progress)
        self._compiler, self._graph, self._array = compiler, compiler.graph, compiler.array
        self._encoder_path = self._folder.model(["encoder_model"], variant)
        merged = self._folder.find(["decoder_model_merged"], variant)
        first = merged or self._folder.model(["decoder_model"], variant)
        later = merged or self._folder.model(["decoder_with_past_model"], variant)
        self._first, self._later = _Part(first, compiler, False), _Part(later, compiler, True)
        logits = self._first.outputs.get("logits")
        if logits is None or not logits.extents or not isinstance(logits.extents[-1], int) or not self._later.caches("encoder"):
            refuse(str(later), "it is no decoder with logits and caches past_key_values.N.decoder and .encoder",
                   "Export it: `optimum-cli export onnx --task automatic-speech-recognition-with-past`")
        self._logits, self._words = logits.dtype, logits.extents[-1]
        self.tokenizer = Tokenizer(self._folder)
        self.tokenizer.require_fit(self._words, str(first))
        features = self._folder.json("preprocessor_config.json", needed=True)
        number = lambda name, otherwise: _numbers(name, features, otherwise=[otherwise])[0]
        self._rate, self._window, self._hop = number("sampling_rate", 16000), number("n_fft", 400), number("hop_length", 160)
        self._bands, self._samples = number("feature_size", 80), number("chunk_length", 30) * self._rate
        self._encoder: Optional[Model] = None

    def transcribe(self, recording: Any, *, language: Optional[str] = None, task: str = "transcribe", max_tokens: Optional[int] = None) -> Transcript:
        """The text of a WAV file or of samples f32[n] at the model's rate, in windows of 30 s.

        `language`: "en", "fr", ...; None finds it out in the first window. `task`: "transcribe" or "translate" (to English).
        `max_tokens` is for each window.
        """
        samples = np.asarray(recording, np.float32) if isinstance(recording, np.ndarray) else read_wav(pathlib.Path(recording), self._rate)
        if samples.ndim != 1 or len(samples) == 0:
            refuse("recording", f"it has the shape {samples.shape}", "Give a WAV file, or samples [n] of one channel, n > 0")
        if max_tokens is not None and max_tokens < 1:
            refuse("max_tokens", f"{max_tokens} is less than 1", "Give the most tokens of a window")
        count = -(-len(samples) // self._samples)
        batch = min(count, _LARGEST_BATCH)
        windows = np.zeros((-(-count // batch) * batch, self._samples), np.float32)
        windows.reshape(-1)[:len(samples)] = samples
        tokens: List[List[int]] = []
        times = [0.0, 0.0]
        prompt: List[int] = []
        for at in range(0, count, batch):
            begin = time.perf_counter()
            states = self._encode(windows[at:at + batch])
            times[0] += time.perf_counter() - begin
            begin = time.perf_counter()
            if not prompt:
                prompt, language = self._prompt(states, language, task)
            tokens += self._decode(states, prompt, max_tokens)
            times[1] += time.perf_counter() - begin
        tokens = tokens[:count]
        return Transcript("".join(self.tokenizer.decode(part) for part in tokens).strip(), tokens, language or "", *times)

    def _encode(self, windows: np.ndarray) -> Any:
        text, constants = spectrum(len(windows), self._samples, self._bands, self._window, self._hop, self._rate)
        features = self._graph(text, constants=constants).run({"samples": self._array(windows, "f32")})["features"]
        if self._encoder is None:
            self._encoder = self._compiler.model(self._encoder_path, shapes={"input_features": features.shape})
        wanted = next(port.dtype for port in self._encoder.inputs if port.name == "input_features")
        states = next(iter(self._encoder.run({"input_features": self._as(features, "f32", wanted)}).values()))
        of_decoder = self._first.inputs.get("encoder_hidden_states")
        made = self._encoder.outputs[0].dtype
        return self._as(states, made, of_decoder.dtype if of_decoder else made)

    def _as(self, value: Any, dtype: str, wanted: str) -> Any:
        """A tensor of `dtype` on the device as one of the wanted type: exports may have an encoder of f16 and a decoder of f32."""
        if dtype == wanted:
            return value
        w = Writer()
        given = w.parameter(dtype, tuple(value.shape), "given")
        text = w.text([w.emit("cast", [given], wanted, given.shape, to=Word(wanted))], ["cast"])
        return self._graph(text).run({"given": value})["cast"]

    def _prompt(self, states: Any, language: Optional[str], task: str) -> Tuple[List[int], str]:
        """The tokens before the text, and the language."""
        given, config = self._folder.generation, self._folder.config
        start = _numbers("decoder_start_token_id", given, config, otherwise=[50258])[0]
        plain = self.tokenizer.number("<|notimestamps|>")
        rest = _numbers("no_timestamps_token_id", given, otherwise=[] if plain is None else [plain])[:1]
        languages: Mapping[str, int] = given.get("lang_to_id") or {}
        if not languages:  # of English only
            if language not in (None, "en") or task != "transcribe":
                refuse("language", "the model is for English only", "Leave out language and task, or use a multilingual model")
            return [start, *rest], ""
        tasks: Mapping[str, int] = given.get("task_to_id") or {}
        if task not in tasks:
            refuse("task", f"there is no task {task}", f"{did_you_mean(task, tasks)}The tasks are {', '.join(tasks)}")
        if language is None:
            logits = self._first.run(self._first_inputs(states, [start]))["logits"]
            bias = np.full(self._words, -np.inf, np.float32)
            bias[list(languages.values())] = 0
            found = int(self._pick(logits, self._array(bias, "f32")).numpy()[0, 0])
            language = next(name for name, number in languages.items() if number == found).strip("<|>")
        token = languages.get(f"<|{language}|>")
        if token is None:
            names = sorted(name.strip("<|>") for name in languages)
            refuse("language", f"there is no language {language}", f"{did_you_mean(language, names)}The languages are {', '.join(names)}")
        return [start, token, tasks[task], *rest], language

    def _first_inputs(self, states: Any, prompt: Sequence[int]) -> Dict[str, Any]:
        batch = states.shape[0]
        inputs = {"input_ids": self._array(np.tile(prompt, (batch, 1)), "i64"), "encoder_hidden_states": states}
        for port in (*self._first.caches("decoder"), *self._first.caches("encoder")):  # a merged model takes them and does not read them
            inputs[port.name] = self._array(np.zeros((batch, port.extents[1], 1, port.extents[3])), port.dtype)
        return inputs

    def _words_in(self, name: str) -> List[int]:
        """Tokens of a list in generation_config.json that the model has; -1 stands for none."""
        return [token for token in _numbers(name, self._folder.generation, otherwise=[]) if 0 <= token < self._words]

    def _pick(self, logits: Any, bias: Any) -> Any:
        return self._graph(_best(self._logits, *logits.shape)).run({"logits": logits, "bias": bias})["token"]

    def _decode(self, states: Any, prompt: Sequence[int], max_tokens: Optional[int]) -> List[List[int]]:
        batch, given, config = states.shape[0], self._folder.generation, self._folder.config
        ends = _numbers("eos_token_id", given, config, otherwise=[50257])
        positions = _numbers("max_target_positions", config, otherwise=[448])
        most = _numbers("max_length", given, otherwise=positions)[0] - len(prompt)
        most = most if max_tokens is None else min(most, max_tokens)
        bias = np.zeros(self._words, np.float32)
        bias[self._words_in("suppress_tokens")] = -np.inf
        begin = bias.copy()
        begin[self._words_in("begin_suppress_tokens")] = -np.inf
        results = self._first.run(self._first_inputs(states, prompt))
        token = self._pick(results["logits"], self._array(begin, "f32"))
        inputs: Dict[str, Any] = {"encoder_hidden_states": states}
        inputs.update((port.name, results[_present(port.name)]) for port in self._later.caches("encoder"))
        later = self._array(bias, "f32")
        texts: List[List[int]] = [[] for _ in range(batch)]
        ended = [False] * batch
        for turn in range(most):
            for row, number in enumerate(token.numpy()[:, 0]):
                ended[row] = ended[row] or int(number) in ends
                if not ended[row]:
                    texts[row].append(int(number))
            if all(ended) or turn + 1 == most:
                break
            inputs.update((port.name, results[_present(port.name)]) for port in self._later.caches("decoder"))
            results = self._later.run({**inputs, "input_ids": token})
            token = self._pick(results["logits"], later)
        return texts


def _numbers(name: str, *configs: Mapping[str, Any], otherwise: List[int]) -> List[int]:
    """The numbers that the first configuration with an entry of this name has there, one or a list; null stands for none."""
    for config in configs:
        found = config.get(name)
        if found is None or found == []:
            continue
        numbers = found if isinstance(found, list) else [found]
        if not all(isinstance(number, int) for number in numbers):
            refuse(name, f"{found!r} is no number and no list of numbers", "Correct the entry in the model's configuration")
        return numbers
    return otherwise


def _present(past: str) -> str:
    return past.replace("past_key_values", "present")
