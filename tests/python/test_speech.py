"""Transcription: spectra against float64, Whisper models of both layouts against ONNX Runtime, recordings, errors."""
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import wave

if importlib.util.find_spec("tokenizers") is None:
    print("skipped: there is no package tokenizers")
    sys.exit(0)

import heddle
import numpy as np
from heddle.text import Transcriber
from heddle.text.audio import mel_filters, read_wav, spectrum

import speech_models as written

SIZE = written.SIZES["tiny"]
RATE = 16000


def setUpModule():
    global FOLDER
    FOLDER = pathlib.Path(tempfile.mkdtemp())
    for name, split in (("merged", False), ("split", True)):
        written.write(FOLDER / name, SIZE, split)


def speech(seconds, seed=0):
    """Tones that change, and noise."""
    random = np.random.default_rng(seed)
    t = np.arange(int(seconds * RATE)) / RATE
    tones = np.sin(2 * np.pi * (200 + 300 * np.sin(2 * np.pi * t / 3)) * t)
    return (0.3 * tones + 0.01 * random.standard_normal(len(t))).astype(np.float32)


def features(samples):
    """Log-mel features of windows [n, 480000] in float64, as Whisper's are defined."""
    padded = np.pad(samples.astype(np.float64), ((0, 0), (200, 200)), mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(padded, 400, axis=1)[:, ::160][:, :3000]
    power = np.abs(np.fft.rfft(frames * np.hanning(401)[:400])) ** 2
    mel = np.log10(np.maximum(np.einsum("bf,ntf->nbt", mel_filters(80, 400, RATE), power), 1e-10))
    return (np.maximum(mel, mel.max((1, 2), keepdims=True) - 8) + 4) / 4


def expected_tokens(path, samples, count):
    """Greedy tokens of one window by ONNX Runtime, from the models of the split layout."""
    import onnxruntime

    session = lambda name: onnxruntime.InferenceSession(path / f"onnx/{name}.onnx", providers=["CPUExecutionProvider"])
    told = json.loads((path / "generation_config.json").read_text())
    window = np.zeros((1, 30 * RATE), np.float32)
    window[0, :len(samples)] = samples
    encoder = session("encoder_model")
    given = np.float16 if "float16" in encoder.get_inputs()[0].type else np.float32
    states = encoder.run(None, {"input_features": features(window).astype(given)})[0].astype(np.float32)
    first, later = session("decoder_model"), session("decoder_with_past_model")
    prompt = [told["decoder_start_token_id"], told["lang_to_id"]["<|en|>"], told["task_to_id"]["transcribe"], told["no_timestamps_token_id"]]
    run = lambda part, inputs: dict(zip([port.name for port in part.get_outputs()], part.run(None, inputs)))
    results = run(first, {"input_ids": np.array([prompt]), "encoder_hidden_states": states})
    caches, tokens = {}, []
    while len(tokens) < count:
        logits = results["logits"][0, -1].copy()
        logits[told["suppress_tokens"] + (told["begin_suppress_tokens"] if not tokens else [])] = -np.inf
        token = int(logits.argmax())
        if token == told["eos_token_id"]:
            break
        tokens.append(token)
        caches.update((name.replace("present", "past_key_values"), value) for name, value in results.items() if name != "logits")
        results = run(later, {"input_ids": np.array([[token]]), **caches})
    return tokens


class Spectra(unittest.TestCase):
    def test_features_are_those_of_float64(self):
        samples = np.stack([np.resize(speech(7), 30 * RATE), np.zeros(30 * RATE, np.float32)])
        samples[0, 7 * RATE:] = 0
        text, constants = spectrum(2, 30 * RATE, 80, 400, 160, RATE)
        got = heddle.compile(text.encode(), constants=constants)(samples)
        self.assertEqual(got.shape, (2, 80, 3000))
        np.testing.assert_allclose(got, features(samples), atol=2e-3)

    def test_filters_are_triangles_of_equal_area(self):
        filters = mel_filters(80, 400, RATE)
        self.assertEqual(filters.shape, (80, 201))
        # Of OpenAI's mel_filters.npz.
        np.testing.assert_allclose([filters[0, 1], filters[1, 1], filters[1, 2]], [0.02486259, 0.00199082, 0.02287177], atol=1e-7)
        np.testing.assert_allclose(filters.sum(1)[40:] * RATE / 400, 1, rtol=0.1)


class Transcripts(unittest.TestCase):
    def test_both_layouts_say_what_onnxruntime_says(self):
        samples = speech(40)  # two windows
        wanted = [expected_tokens(FOLDER / "split", part, 12) for part in (samples[:30 * RATE], samples[30 * RATE:])]
        self.assertGreater(len(set(wanted[0])), 4)
        for layout in ("split", "merged"):
            transcript = Transcriber(FOLDER / layout).transcribe(samples, language="en", max_tokens=12)
            self.assertEqual(transcript.tokens, wanted, layout)
            self.assertEqual(transcript.language, "en")

    def test_an_encoder_of_16_bits_feeds_a_decoder_of_32(self):
        import onnx

        path = written.write(FOLDER / "half", SIZE, True)
        model = onnx.load(path / "onnx/encoder_model.onnx")
        graph, half = model.graph, onnx.TensorProto.FLOAT16
        for node in graph.node:
            node.input[:] = ["wide." + name if name == graph.input[0].name else name for name in node.input]
            node.output[:] = ["wide." + name if name == graph.output[0].name else name for name in node.output]
        ends = graph.input[0], graph.output[0]
        for port in ends:
            port.type.tensor_type.elem_type = half
        widen, narrow = (onnx.helper.make_node("Cast", [a], [b], to=to) for a, b, to in (
            (ends[0].name, "wide." + ends[0].name, onnx.TensorProto.FLOAT), ("wide." + ends[1].name, ends[1].name, half)))
        nodes = [widen, *graph.node, narrow]
        del graph.node[:]
        graph.node.extend(nodes)
        onnx.save(model, path / "onnx/encoder_model.onnx")
        samples = speech(5)
        tokens = Transcriber(path).transcribe(samples, language="en", max_tokens=6).tokens
        self.assertEqual(tokens, [expected_tokens(path, samples, 6)])

    def test_entries_of_configurations_may_be_null_or_lists(self):
        path = written.write(FOLDER / "entries", SIZE, True)
        samples = speech(5)
        wanted = Transcriber(path).transcribe(samples, language="en", max_tokens=8).tokens
        told = json.loads((path / "generation_config.json").read_text())
        told.update(eos_token_id=[told["eos_token_id"], wanted[0][3]], max_length=None, decoder_start_token_id=[told["decoder_start_token_id"]])
        told["suppress_tokens"] += [-1, 99999]
        (path / "generation_config.json").write_text(json.dumps(told))
        features_of = json.loads((path / "preprocessor_config.json").read_text())
        (path / "preprocessor_config.json").write_text(json.dumps({**features_of, "n_fft": None}))
        tokens = Transcriber(path).transcribe(samples, language="en", max_tokens=8).tokens
        self.assertEqual(tokens, [wanted[0][:wanted[0].index(wanted[0][3])]])
        (path / "generation_config.json").write_text(json.dumps({**told, "eos_token_id": "end"}))
        with self.assertRaisesRegex(heddle.InputError, "eos_token_id: 'end' is no number"):
            Transcriber(path).transcribe(samples, language="en")

    def test_the_language_is_found_out(self):
        self.assertIn(Transcriber(FOLDER / "split").transcribe(speech(2), max_tokens=2).language, ("en", "fr"))

    def test_wrong_folders_and_options_are_named(self):
        transcriber = Transcriber(FOLDER / "split")
        for options, part in (({"language": "xx"}, "there is no language xx"), ({"task": "translat"}, "Did you mean translate?")):
            with self.assertRaises(heddle.InputError) as caught:
                transcriber.transcribe(speech(1), **options)
            self.assertIn(part, str(caught.exception))
        import language_models

        language_models.write(FOLDER / "llama", language_models.SIZES["tiny"])
        with self.assertRaisesRegex(heddle.InputError, "family llama, not whisper"):
            Transcriber(FOLDER / "llama")
        with self.assertRaisesRegex(heddle.MissingFileError, "encoder_model_q4.onnx"):
            Transcriber(FOLDER / "split", variant="q4")


class Recordings(unittest.TestCase):
    def written(self, samples, width, rate, channels=1):
        path = FOLDER / f"{width}-{rate}-{channels}.wav"
        whole = np.round(np.asarray(samples, np.float64) * (2 ** (8 * width - 1) - 1)).astype(np.int64) + (128 if width == 1 else 0)
        with wave.open(str(path), "wb") as file:
            file.setnchannels(channels), file.setsampwidth(width), file.setframerate(rate)
            file.writeframes(np.repeat(whole, channels).astype("<i8").view(np.uint8).reshape(-1, 8)[:, :width].tobytes())
        return path

    def test_all_widths_and_rates_give_the_same_samples(self):
        t = np.arange(RATE) / RATE
        for width, bound in ((1, 0.02), (2, 1e-4), (3, 1e-6), (4, 1e-6)):
            np.testing.assert_allclose(read_wav(self.written(0.5 * np.sin(440 * t), width, RATE, 2), RATE), 0.5 * np.sin(440 * t), atol=bound)
        for rate in (8000, 44100, 48000):
            tone = 0.5 * np.sin(2 * np.pi * 440 * np.arange(rate) / rate)
            np.testing.assert_allclose(read_wav(self.written(tone, 2, rate), RATE), 0.5 * np.sin(2 * np.pi * 440 * t), atol=1e-3)

    def test_the_command_prints_the_text(self):
        path = self.written(speech(3), 2, RATE)
        command = [sys.executable, "-m", "heddle", "transcribe", path, FOLDER / "split", "--language", "en", "--max-tokens", "8"]
        done = subprocess.run(command + ["--json"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        told = json.loads(done.stdout)
        self.assertEqual((told["language"], len(told["tokens"])), ("en", 1))
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.stdout, told["text"] + "\n")
        path.write_bytes(b"no recording")
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("cannot be read as WAV", done.stderr)


if __name__ == "__main__":
    unittest.main()
