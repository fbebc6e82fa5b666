"""`heddle generate` and `heddle transcribe`."""
import argparse
import json
import os
import sys
import time
from typing import Any, Callable, List, Optional, Sequence

from heddle._errors import Error
from heddle.text.folder import VARIANTS
from heddle.text.generator import Generator, Piece
from heddle.text.graphs import Sampling
from heddle.text.transcriber import Transcriber

_EXIT_CODES = {1: 2, 2: 2, 3: 3}  # by family of the error; others are 4


def _add_common(parser: argparse.ArgumentParser) -> None:
    """Options of all commands that run the models of a folder."""
    parser.add_argument("folder", metavar="MODEL_FOLDER", help="config.json, tokenizer.json and ONNX files, here or in a folder onnx")
    parser.add_argument("--variant", choices=list(VARIANTS), help="the weights to take (the first of these that the folder has)")
    parser.add_argument("--target", default="cpu", help="cpu, cuda or cuda:N (cpu)")
    parser.add_argument("--precision", default="f32", choices=["f32", "tf32", "f16", "bf16"], help="the type in which an f32 model is computed (f32)")
    parser.add_argument("--threads", type=int, default=0, help="number of CPU threads; 0: one for each core that the process may use (0)")
    parser.add_argument("--max-tokens", type=int, help="the most tokens of an answer, or of 30 s of speech")
    parser.add_argument("--json", action="store_true", help="print one JSON object at the end")


def _generate_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("heddle generate", description="Continues texts, or answers messages, with a language model.")
    _add_common(parser)
    parser.add_argument("--prompt", action="append", help="a text to continue (standard input); several are one batch")
    parser.add_argument("--chat", action="store_true", help="put each prompt into the model's chat template as a message of the user")
    parser.add_argument("--system", help="with --chat: the message of the system before the prompt")
    parser.add_argument("--temperature", type=float, help="flattens (above 1) or sharpens the probabilities; 0: the most probable token")
    parser.add_argument("--top-k", type=int, help="draw among the K most probable tokens; 0: all")
    parser.add_argument("--top-p", type=float, help="draw among the fewest tokens that have this probability together; 1: all")
    parser.add_argument("--seed", type=int, default=0, help="of the drawn tokens (0)")
    parser.add_argument("--stop", action="append", default=[], help="a text that ends an answer; may be repeated")
    parser.add_argument("--ignore-eos", action="store_true", help="go on at tokens that end a text")
    parser.epilog = "Without --temperature, --top-k and --top-p, generation_config.json decides; without it, the most probable token is taken."
    return parser


def _sampling(given: argparse.Namespace, defaults: Sampling) -> Sampling:
    words = {name: getattr(given, name) for name in Sampling._fields if getattr(given, name) is not None}
    if words and "temperature" not in words and defaults.temperature == 0:
        words["temperature"] = 1.0
    return defaults._replace(**words)


class _Printer:
    """Prints the answers in order: the first as it comes, each later one when those before it have ended."""

    def __init__(self, prompts: Sequence[str]):
        self._held = [""] * len(prompts)
        self._ended = [False] * len(prompts)
        self._prompts, self._shown = prompts, 0
        self._head()

    def add(self, piece: Piece) -> None:
        self._ended[piece.row] = bool(piece.finish)
        self._held[piece.row] += piece.text
        while self._shown < len(self._held):
            sys.stdout.write(self._held[self._shown])
            self._held[self._shown] = ""
            if not self._ended[self._shown]:
                break
            sys.stdout.write("\n")
            self._shown += 1
            self._head()
        sys.stdout.flush()

    def _head(self) -> None:
        if len(self._prompts) > 1 and self._shown < len(self._prompts):
            first = self._prompts[self._shown].split("\n")[0]
            sys.stdout.write(f"==> {self._shown + 1}: {first[:60]}{'...' if len(first) > 60 else ''}\n")


def _generate(given: argparse.Namespace) -> None:
    prompts = given.prompt or [sys.stdin.read()]
    begin = time.perf_counter()
    generator = Generator(given.folder, variant=given.variant, target=given.target, precision=given.precision, threads=given.threads)
    system = [{"role": "system", "content": given.system}] if given.system else []
    asked: List[Any] = [[*system, {"role": "user", "content": prompt}] for prompt in prompts] if given.chat else list(prompts)
    printer: Optional[_Printer] = None
    for piece in generator.stream(asked, max_tokens=given.max_tokens, sampling=_sampling(given, generator.defaults), seed=given.seed,
                                  stop=given.stop, ignore_end=given.ignore_eos, prepare=True):
        if printer is None and not given.json:
            printer = _Printer(prompts)
        if printer:
            printer.add(piece)
    timing = generator.timing
    ready = time.perf_counter() - begin - timing.first_s - timing.steps_s
    if given.json:
        answers = [{"prompt": prompt, "text": answer.text, "tokens": answer.tokens, "finish": answer.finish}
                   for prompt, answer in zip(prompts, generator.answers)]
        print(json.dumps({"answers": answers, "prompt_tokens": timing.prompt_tokens, "ready_s": ready, "first_token_s": timing.first_s,
                          "decode_s": timing.steps_s, "tokens_per_s": timing.tokens_per_second}))
        return
    ends = ", ".join(dict.fromkeys(answer.finish for answer in generator.answers))
    print(f"{timing.prompt_tokens} prompt tokens, first token after {timing.first_s * 1e3:.1f} ms; "
          f"{sum(len(answer.tokens) for answer in generator.answers)} tokens, {timing.tokens_per_second:.1f} tokens/s; "
          f"ready after {ready:.1f} s; ended by {ends}", file=sys.stderr)


def _transcribe_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("heddle transcribe", description="Writes down the speech of a recording with a Whisper model.")
    parser.add_argument("recording", metavar="FILE.wav", help="a WAV file of whole numbers, of any rate")
    _add_common(parser)
    parser.add_argument("--language", help="en, fr, ...; without it, the first 30 s decide")
    parser.add_argument("--task", default="transcribe", help="transcribe, or translate to English (transcribe)")
    return parser


def _transcribe(given: argparse.Namespace) -> None:
    begin = time.perf_counter()
    transcriber = Transcriber(given.folder, variant=given.variant, target=given.target, precision=given.precision, threads=given.threads)
    told = transcriber.transcribe(given.recording, language=given.language, task=given.task, max_tokens=given.max_tokens)
    seconds = time.perf_counter() - begin
    count = sum(map(len, told.tokens))
    if given.json:
        print(json.dumps({"text": told.text, "tokens": told.tokens, "language": told.language, "encoder_s": told.encoder_s,
                          "decoder_s": told.decoder_s}))
        return
    print(told.text)
    print(f"{count} tokens in {seconds:.1f} s: spectra and encoder {told.encoder_s:.2f} s, decoder {told.decoder_s:.2f} s, compiling included"
          + (f"; language {told.language}" if told.language else ""), file=sys.stderr)


def _guarded(work: Callable[[argparse.Namespace], None], given: argparse.Namespace) -> int:
    """Runs a command and prints its error: the exit code."""
    try:
        work(given)
    except Error as error:
        print(f"error: {error}", file=sys.stderr)
        return _EXIT_CODES.get(error.code // 100, 4)
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader has what it wants
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 4
    return 0


def generate(words: Sequence[str]) -> int:
    """The command `heddle generate`: its exit code."""
    return _guarded(_generate, _generate_parser().parse_args(words))


def transcribe(words: Sequence[str]) -> int:
    """The command `heddle transcribe`: its exit code."""
    return _guarded(_transcribe, _transcribe_parser().parse_args(words))
