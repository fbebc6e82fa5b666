#!/usr/bin/env python3
"""Compares greedy generation with ONNX Runtime on the files of a model's folder: whether the tokens are equal, and how long a
prompt and a token take. Both sides run on the CPU with caches in place where the model allows it, one after the other in each
round; figures are medians over rounds, by the clock and by processor time (which other work on the machine disturbs less).

    build/venv/bin/python tests/python/language_models.py /tmp/llama --size 135m
    PYTHONPATH=build/release/python build/venv/bin/python bench/generate_text.py /tmp/llama --tokens 1000 --rounds 1
"""
import argparse
import statistics
import time

import numpy as np
import onnxruntime

from heddle.text import Generator
from heddle.text.folder import VARIANTS, Folder
from heddle.text.generator import STEMS


class Clock:
    """Seconds and processor seconds of a block."""

    def __enter__(self):
        self.begin = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_):
        self.wall, self.cpu = time.perf_counter() - self.begin[0], time.process_time() - self.begin[1]


class Peer:
    """ONNX Runtime on the same file."""

    def __init__(self, path, threads):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # waiting takes no processor time
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.ports = {port.name: port for port in self.session.get_inputs()}
        self.outputs = [port.name for port in self.session.get_outputs()]
        self.pasts = [name for name in self.ports if name.startswith("past_key_values")]
        # GroupQueryAttention takes buffers: a cache with a declared length of its own, and no positions.
        self.shares = "position_ids" not in self.ports

    def begin(self, capacity):
        self.seen, self.caches = 0, {}
        for name in self.pasts:
            port = self.ports[name]
            shape = (1, port.shape[1], capacity if self.shares else 0, port.shape[3])
            dtype = np.float16 if "float16" in port.type else np.float32
            self.caches[name] = onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros(shape, dtype))

    def run(self, tokens):
        """The next token after these."""
        binding = self.session.io_binding()
        self.seen += len(tokens)
        binding.bind_cpu_input("input_ids", np.array([tokens]))
        binding.bind_cpu_input("attention_mask", np.ones((1, self.seen), np.int64))
        if "position_ids" in self.ports:
            binding.bind_cpu_input("position_ids", np.arange(self.seen - len(tokens), self.seen)[None])
        for name, value in self.caches.items():
            binding.bind_ortvalue_input(name, value)
        for name in self.outputs:
            past = name.replace("present", "past_key_values")
            if self.shares and past in self.caches:
                binding.bind_ortvalue_output(name, self.caches[past])
            else:
                binding.bind_output(name)
        self.session.run_with_iobinding(binding)
        results = dict(zip(self.outputs, binding.get_outputs()))
        if not self.shares:
            self.caches = {name: results[name.replace("past_key_values", "present")] for name in self.pasts}
        return int(results["logits"].numpy()[0, -1].argmax())


def peer_run(peer, prompt, count):
    peer.begin(-(-(len(prompt) + count) // 64) * 64)
    with Clock() as first:
        tokens = [peer.run(prompt)]
    with Clock() as steps:
        while len(tokens) < count:
            tokens.append(peer.run(tokens[-1:]))
    return tokens, first, steps


def own_run(generator, prompt, count):
    stream = generator.stream([prompt], max_tokens=count, ignore_end=True)
    with Clock() as first:
        next(stream)
    with Clock() as steps:
        for _ in stream:
            pass
    return generator.answers[0].tokens, first, steps


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--variant", choices=VARIANTS)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--prompt-tokens", type=int, default=256)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    generator = Generator(given.folder, variant=given.variant, threads=given.threads)
    peer = Peer(Folder(given.folder).model(STEMS, given.variant), given.threads)
    prompt = [int(token) for token in np.random.default_rng(0).integers(0, 256, given.prompt_tokens)]
    next(generator.stream([prompt], max_tokens=given.tokens, prepare=True))  # compiles
    rows = []
    for _ in range(given.rounds):
        theirs, their_first, their_steps = peer_run(peer, prompt, given.tokens)
        ours, our_first, our_steps = own_run(generator, prompt, given.tokens)
        equal = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), given.tokens)
        print(f"{equal} of {given.tokens} tokens equal, {len(set(ours))} different ones")
        rows.append([clock for pair in ((their_first, our_first), (their_steps, our_steps)) for field in ("wall", "cpu")
                     for clock in (getattr(pair[0], field), getattr(pair[1], field))])
    middle = [statistics.median(column) for column in zip(*rows)]
    for i, what in enumerate(("prompt, ms", "prompt, processor ms", "token, ms", "token, processor ms")):
        theirs, ours = (seconds / (1 if i < 2 else max(1, given.tokens - 1)) for seconds in middle[2 * i:2 * i + 2])
        print(f"{what:20} ONNX Runtime {theirs * 1e3:8.2f}  Heddle {ours * 1e3:8.2f}  {theirs / ours:5.2f} times")


if __name__ == "__main__":
    main()
