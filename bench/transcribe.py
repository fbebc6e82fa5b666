#!/usr/bin/env python3
"""Compares Whisper with ONNX Runtime on the files of a folder of the split layout: a window of 30 s, its encoder and `--tokens`
tokens of the decoder, greedy. Only Heddle's times contain the spectra. Figures are medians over rounds in which the sides take
turns, by the clock and by processor time.

    build/venv/bin/python tests/python/speech_models.py /tmp/whisper --size base --split --endless
    PYTHONPATH=build/release/python build/venv/bin/python bench/transcribe.py /tmp/whisper
"""
import argparse
import json
import pathlib
import statistics

import numpy as np
import onnxruntime

import heddle
from generate_text import Clock
from heddle.text import Transcriber
from heddle.text.audio import spectrum

RATE = 16000


class Peer:
    """ONNX Runtime on the same files; caches stay its own tensors."""

    def __init__(self, folder, threads):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        session = lambda name: onnxruntime.InferenceSession(folder / f"onnx/{name}.onnx", options, providers=["CPUExecutionProvider"])
        self.encoder, self.first, self.later = (session(name) for name in ("encoder_model", "decoder_model", "decoder_with_past_model"))

    def run(self, session, inputs):
        binding = session.io_binding()
        for name, value in inputs.items():
            binding.bind_ortvalue_input(name, value)
        names = [port.name for port in session.get_outputs()]
        for name in names:
            binding.bind_output(name)
        session.run_with_iobinding(binding)
        return dict(zip(names, binding.get_outputs()))

    def tokens(self, features, prompt, count, bias):
        value = onnxruntime.OrtValue.ortvalue_from_numpy
        with Clock() as encoder:
            states = self.run(self.encoder, {"input_features": value(features)})["last_hidden_state"]
        with Clock() as decoder:
            results = self.run(self.first, {"input_ids": value(np.array([prompt])), "encoder_hidden_states": states})
            caches, tokens = {}, []
            while True:
                tokens.append(int((results["logits"].numpy()[0, -1] + bias[min(len(tokens), 1)]).argmax()))
                if len(tokens) == count:
                    break
                caches.update((name.replace("present", "past_key_values"), cache) for name, cache in results.items() if name != "logits")
                results = self.run(self.later, {"input_ids": value(np.array([tokens[-1:]])), **caches})
        return tokens, encoder, decoder


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--tokens", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    own, peer = Transcriber(given.folder, threads=given.threads), Peer(given.folder, given.threads)
    samples = np.random.default_rng(0).standard_normal(30 * RATE).astype(np.float32)
    text, constants = spectrum(1, 30 * RATE, 80, 400, 160, RATE)
    features = heddle.compile(text.encode(), constants=constants)(samples[None])
    told = json.loads((given.folder / "generation_config.json").read_text())
    prompt = [told["decoder_start_token_id"], told["lang_to_id"]["<|en|>"], told["task_to_id"]["transcribe"], told["no_timestamps_token_id"]]
    words = peer.first.get_outputs()[0].shape[-1]
    bias = np.zeros((2, words), np.float32)
    bias[:, told["suppress_tokens"]] = bias[0, told["begin_suppress_tokens"]] = -np.inf
    rows = []
    for i in range(given.rounds + 1):
        theirs, *their_clocks = peer.tokens(features, prompt, given.tokens, bias)
        with Clock() as clock:
            ours = own.transcribe(samples, language="en", max_tokens=given.tokens)
        if i == 0:
            equal = next((j for j, (a, b) in enumerate(zip(ours.tokens[0], theirs)) if a != b), len(ours.tokens[0]))
            print(f"{equal} of {given.tokens} tokens equal, {len(set(theirs))} different ones; first transcription {clock.wall:.1f} s")
            continue
        rows.append((their_clocks[0].wall, ours.encoder_s, their_clocks[1].wall, ours.decoder_s, sum(c.wall for c in their_clocks), clock.wall,
                     sum(c.cpu for c in their_clocks), clock.cpu))
    middle = [statistics.median(column) for column in zip(*rows)]
    for i, what in enumerate(("encoder, s", "decoder, s", "all, s", "all, processor s")):
        theirs, ours = middle[2 * i:2 * i + 2]
        print(f"{what:16} ONNX Runtime {theirs:7.3f}  Heddle {ours:7.3f}  {theirs / ours:5.2f} times")


if __name__ == "__main__":
    main()
