"""heddle.text and `heddle generate`: models of both layouts against ONNX Runtime, sampling against NumPy, errors."""
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

if importlib.util.find_spec("tokenizers") is None:
    print("skipped: there is no package tokenizers")
    sys.exit(0)

import heddle
import numpy as np
import onnx
from heddle.text import Generator, Sampling
from heddle.text.graphs import Step, choice
from heddle.text.tokens import TextStream

from drawing import draw, draws
import language_models as written

TARGET = os.environ.get("HEDDLE_TEST_TARGET", "cpu")
ON_HOST = TARGET == "cpu"
SIZE = written.Size(2, 64, 96, 4, 2, 320, 512)
PROMPTS = ["the", "in the end there was another one", "an" * (40 if ON_HOST else 9)]
LONG = "another thing " * 28  # more than a chunk of tokens


def folder(name, **options):
    made = pathlib.Path(FOLDER.name) / name
    return made if made.exists() else written.write(made, SIZE, **options)


def told_by_onnxruntime(path, prompt, count):
    """Greedy tokens after a prompt, with a cache that grows."""
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    ports = {port.name: port for port in session.get_inputs()}
    caches = {name: np.zeros((1, SIZE.groups, 0, SIZE.depth), np.float32) for name in ports if name.startswith("past")}
    names = [port.name for port in session.get_outputs()]
    tokens, given = [], list(prompt)
    while len(tokens) < count:
        seen = len(prompt) + len(tokens)
        inputs = {"input_ids": np.array([given]), "attention_mask": np.ones((1, seen), np.int64), **caches}
        if "position_ids" in ports:
            inputs["position_ids"] = np.arange(seen - len(given), seen)[None]
        if "cache_position" in ports:
            inputs["cache_position"] = np.arange(seen - len(given), seen)
        results = dict(zip(names, session.run(None, inputs)))
        caches = {name: results[name.replace("past_key_values", "present")] for name in caches}
        given = [int(results["logits"][0, -1].argmax())]
        tokens += given
    return tokens


def setUpModule():
    global FOLDER
    FOLDER = tempfile.TemporaryDirectory()


def tearDownModule():
    FOLDER.cleanup()


@draws(3, "test_long_prompts_are_read_in_chunks", "test_the_branch_with_caches_of_a_merged_decoder_is_taken",
       "test_places_in_the_cache_are_given", "test_keys_stay_within_a_sliding_window",
       "test_streams_of_one_generator_may_take_turns", "test_caches_grow", "test_packed_weights_and_16_bits_generate")
class Answers(unittest.TestCase):
    def check(self, layout, prompts, count):
        path = folder(layout, layout=layout)
        generator = Generator(path, target=TARGET)
        answers = generator.generate(prompts, max_tokens=count, ignore_end=True)
        for prompt, answer in zip(prompts, answers):
            expected = told_by_onnxruntime(path / "onnx/model.onnx", generator.encode(prompt), count)
            self.assertEqual(answer.tokens, expected, prompt)
            self.assertEqual((answer.finish, answer.text), ("length", generator.tokenizer.decode(expected)))

    def test_grouped_queries_answer_as_onnxruntime_does(self):
        self.check("grouped", PROMPTS, 40 if ON_HOST else 4)

    def test_plain_operators_answer_as_onnxruntime_does(self):
        self.check("plain", PROMPTS, 40 if ON_HOST else 4)

    @unittest.skipUnless(ON_HOST, "the host checks the chunks")
    def test_long_prompts_are_read_in_chunks(self):
        for layout in draw(("grouped", "plain")):
            self.check(layout, [LONG, "short"], 6)

    @unittest.skipUnless(ON_HOST, "the host checks merged decoders")
    def test_the_branch_with_caches_of_a_merged_decoder_is_taken(self):
        path = written.write(pathlib.Path(FOLDER.name) / "merged", SIZE, layout="plain")
        plain = path / "onnx/model.onnx"
        onnx.save(written.merged(onnx.load(plain)), path / "onnx/decoder_model_merged.onnx")
        plain.rename(path / "plain.onnx")
        generator = Generator(path)
        answer = generator.generate(["in the"], max_tokens=6, ignore_end=True)[0]
        self.assertEqual(answer.tokens, told_by_onnxruntime(path / "plain.onnx", generator.encode("in the"), 6))

    @unittest.skipUnless(ON_HOST, "the host checks inputs")
    def test_places_in_the_cache_are_given(self):
        path = written.write(pathlib.Path(FOLDER.name) / "places", SIZE, layout="plain")
        model = onnx.load(path / "onnx/model.onnx")
        rows = next(node.output[0] for node in model.graph.node if node.op_type == "Range")  # from the first new row on
        for node in model.graph.node:
            node.input[:] = ["cache_position" if name == rows else name for name in node.input]
        model.graph.input.append(onnx.helper.make_tensor_value_info("cache_position", onnx.TensorProto.INT64, ["tokens"]))
        onnx.save(model, path / "onnx/model.onnx")
        generator = Generator(path)
        answer = generator.generate([LONG], max_tokens=6, ignore_end=True)[0]
        self.assertEqual(answer.tokens, told_by_onnxruntime(path / "onnx/model.onnx", generator.encode(LONG), 6))

    @unittest.skipUnless(ON_HOST, "the host checks windows")
    def test_keys_stay_within_a_sliding_window(self):
        path = written.write(pathlib.Path(FOLDER.name) / "window", SIZE, layout="plain")
        told = json.loads((path / "config.json").read_text())
        (path / "config.json").write_text(json.dumps({**told, "sliding_window": 390}))
        generator = Generator(path)
        self.assertEqual(generator.context, 128)
        columns = []
        run = generator._decoder.run
        generator._decoder.run = lambda arrays, out: columns.append(arrays["attention_mask"].shape[1]) or run(arrays, out)
        answer = generator.generate(["in" * 120], ignore_end=True)[0]
        self.assertEqual((len(answer.tokens), answer.finish), (8, "context"))
        self.assertEqual(answer.tokens, told_by_onnxruntime(path / "onnx/model.onnx", generator.encode("in" * 120), 8))
        self.assertLessEqual(max(columns), 390)

    @unittest.skipUnless(ON_HOST, "streams are the host's")
    def test_streams_of_one_generator_may_take_turns(self):
        generator = Generator(folder("plain", layout="plain"))
        alone = [generator.generate([prompt], max_tokens=6, ignore_end=True)[0].text for prompt in PROMPTS[:2]]
        streams = [generator.stream([prompt], max_tokens=6, ignore_end=True) for prompt in PROMPTS[:2]]
        texts = ["", ""]
        for pieces in zip(*streams):
            texts = [text + piece.text for text, piece in zip(texts, pieces)]
        self.assertEqual(texts, alone)

    @unittest.skipUnless(ON_HOST, "caches grow on the host only")
    def test_caches_grow(self):
        for layout in draw(("grouped", "plain")):
            with mock.patch("heddle.text.decoder.GROWTH", 32):
                self.check(layout, PROMPTS[:2], 70)

    @unittest.skipUnless(ON_HOST, "the host checks packed weights")
    def test_packed_weights_and_16_bits_generate(self):
        for dtype, variant in (("q4", "q4"), ("f16", "fp16")):
            generator = Generator(folder(dtype, dtype=dtype), variant=variant)
            self.assertEqual(len(generator.generate(["the end"], max_tokens=5, ignore_end=True)[0].tokens), 5)


class Draws(unittest.TestCase):
    def expected(self, logits, how, draw):
        """Tokens by float64: the row of sums and where the draw falls, None near a border."""
        tokens = []
        for row, u in zip(logits.astype(np.float64), draw.astype(np.float64)):
            order = np.argsort(-row, kind="stable")[:how.top_k or None] if how.top_k or how.top_p < 1 else np.arange(len(row))
            p = np.exp((row[order] - row.max()) / how.temperature)
            p /= p.sum()
            if how.top_p < 1:
                p[np.cumsum(p) - p >= how.top_p] = 0
            sums = np.cumsum(p) / p.sum()
            at = int(np.searchsorted(sums, u, side="right"))
            tokens.append(int(order[at]) if abs(sums - u).min() > 1e-5 else None)
        return tokens

    def test_draws_follow_the_probabilities(self):
        random = np.random.default_rng(5)
        batch, words, draws = 3, 61, 256
        logits = (random.standard_normal((batch, 1, words)) * 3).astype(np.float32)
        table = random.random((draws, batch), np.float32)
        for how in (Sampling(1.0), Sampling(0.7, 7), Sampling(1.3, 0, 0.8), Sampling(1.0, 20, 0.5)):
            graph = heddle.compile(choice(("f32", logits.shape), how, draws, Step("i64", "i64", "i64", 8, 0)).encode(), target=TARGET)
            at = {"logits": logits, "lengths": np.array([3, 1, 5]), "turn": np.array([0]), "draws": table,
                  "temperature": np.float32(how.temperature), "top_p": np.float32(how.top_p)}
            names = [port.name for port in graph.inputs]
            for turn in range(32 if ON_HOST else 2):
                results = graph.run({name: np.asarray(at[name]) for name in names})
                for got, wanted in zip(results["token"][:, 0], self.expected(logits[:, 0], how, table[turn])):
                    if wanted is not None:
                        self.assertEqual(int(got), wanted, how)
                self.assertEqual(results["position"][:, 0].tolist(), at["lengths"].tolist())
                self.assertEqual(results["mask"].sum(1).tolist(), [min(n + 1, 8) for n in at["lengths"]])
                at.update(lengths=results["lengths"], turn=results["turn"])

    @unittest.skipUnless(ON_HOST, "seeds are the host's")
    def test_a_seed_decides_in_any_batch(self):
        generator = Generator(folder("plain", layout="plain"))
        how = Sampling(1.0, 50, 0.95)
        tokens = lambda prompts, seed: [a.tokens for a in generator.generate(prompts, max_tokens=12, sampling=how, seed=seed, ignore_end=True)]
        first = tokens(PROMPTS[:2], 3)
        self.assertEqual(tokens(PROMPTS[:2], 3), first)
        self.assertEqual(tokens(PROMPTS[:1], 3), first[:1])
        self.assertNotEqual(tokens(PROMPTS[:2], 4), first)
        greedy = [a.tokens for a in generator.generate(PROMPTS[:1], max_tokens=12, ignore_end=True)]
        self.assertEqual([a.tokens for a in generator.generate(PROMPTS[:1], max_tokens=12, sampling=Sampling(1.0, 1), ignore_end=True)], greedy)


@unittest.skipUnless(ON_HOST, "text is the host's")
class Texts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.generator = Generator(folder("plain", layout="plain"))

    def test_stop_words_and_characters_of_several_tokens(self):
        tokenizer = self.generator.tokenizer
        for text, stops, wanted in (("the naïve ☕ one", (), "the naïve ☕ one"), ("a b STOP c", ("STOP",), "a b "), ("a STO", ("STOP",), "a STO"),
                                    ("x yy yyz", ("yyz", "yq"), "x yy ")):
            stream = TextStream(tokenizer, stops)
            pieces = []
            for token in tokenizer.encode(text):
                piece, ended = stream.add(token)
                pieces.append(piece)
                if ended:
                    break
            else:
                pieces.append(stream.end())
            self.assertEqual("".join(pieces), wanted)
            self.assertFalse(any("\ufffd" in piece for piece in pieces))

    def test_conversations_take_the_template(self):
        tokens = self.generator.encode([{"role": "user", "content": "the end"}])
        number = self.generator.tokenizer.number
        self.assertEqual((tokens[0], tokens[-1]), (number("<|user|>"), number("<|assistant|>")))
        self.assertEqual(tokens[1:-1], self.generator.encode("the end"))

    def test_answers_end_at_the_context_and_at_ending_tokens(self):
        text = "in" * 508  # of 512 positions
        answer = self.generator.generate([text], ignore_end=True)[0]
        self.assertEqual((len(answer.tokens), answer.finish), (4, "context"))
        self.generator._folder.generation["eos_token_id"] = answer.tokens[2]
        ended = self.generator.generate([text])[0]
        self.assertEqual((ended.tokens, ended.finish), (answer.tokens[:answer.tokens.index(answer.tokens[2])], "stop"))

    def refused(self, part, prompts=("the",), error=heddle.InputError, **options):
        with self.assertRaises(error) as caught:
            self.generator.generate(list(prompts), **options)
        self.assertIn(part, str(caught.exception))

    def test_wrong_prompts_and_options_are_named(self):
        self.refused("prompt 2: it has 600 tokens, and the model has 512 positions", ["in", "in" * 600])
        self.refused("600 tokens do not fit: the cache of the model holds 512", max_tokens=600)
        self.refused("prompt 1: it has no tokens", [""])
        self.refused("it has the token 320, and the model has 320", [[1, 320]])
        self.refused("top_p: 0 is not in (0, 1]", sampling=Sampling(1.0, 0, 0))
        self.refused("there is no prompt", [])

    def test_wrong_folders_are_named(self):
        def broken(**changes):
            path = pathlib.Path(tempfile.mkdtemp(dir=FOLDER.name))
            (path / "onnx").mkdir()
            (path / "onnx/model.onnx").symlink_to(folder("plain", layout="plain") / "onnx/model.onnx")
            for name in ("config.json", "tokenizer.json"):
                content = changes.get(name, (folder("plain", layout="plain") / name).read_text())
                if content is not None:
                    (path / name).write_text(content)
            return path

        for path, error, part, variant in (
                (pathlib.Path("/nowhere"), heddle.MissingFileError, "/nowhere: there is no such file", None),
                (broken(**{"config.json": None}), heddle.MissingFileError, "config.json", None),
                (broken(**{"config.json": "{"}), heddle.InputError, "cannot be read as JSON", None),
                (broken(**{"tokenizer.json": None}), heddle.MissingFileError, "tokenizer.json", None),
                (broken(**{"tokenizer.json": "{}"}), heddle.InputError, "the tokenizer cannot be read", None),
                (broken(**{"config.json": '{"model_type": "whisper", "is_encoder_decoder": true}'}), heddle.InputError, "heddle transcribe", None),
                (broken(), heddle.MissingFileError, "model_q4.onnx or decoder_model_merged_q4.onnx", "q4"),
                (broken(), heddle.InputError, "Did you mean q4", "q44")):
            with self.subTest(part), self.assertRaises(error) as caught:
                Generator(path, variant=variant)
            self.assertIn(part, str(caught.exception))
        words = written.tokenizer()
        words.add_tokens([f"word{i}" for i in range(100)])
        with self.assertRaisesRegex(heddle.InputError, "tokens up to number .*logits for 320"):
            Generator(broken(**{"tokenizer.json": words.to_str()}))
        import models
        path = broken()
        (path / "onnx/model.onnx").unlink()
        models.save(models.add(), path / "onnx")
        with self.assertRaisesRegex(heddle.InputError, "no decoder with caches"):
            Generator(path)


@unittest.skipUnless(ON_HOST, "the command is the host's")
class Command(unittest.TestCase):
    def run_command(self, *words, given="", code=0):
        done = subprocess.run([sys.executable, "-m", "heddle", "generate", *map(str, words)], input=given, capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def test_text_goes_to_stdout_and_figures_to_stderr(self):
        path = folder("plain", layout="plain")
        told = json.loads(self.run_command(path, "--prompt", "the", "--prompt", "in", "--max-tokens", 5, "--ignore-eos", "--json").stdout)
        texts = [answer["text"] for answer in told["answers"]]
        both = self.run_command(path, "--prompt", "the", "--prompt", "in", "--max-tokens", 5, "--ignore-eos")
        self.assertEqual(both.stdout, f"==> 1: the\n{texts[0]}\n==> 2: in\n{texts[1]}\n")
        self.assertRegex(both.stderr, r"first token after [0-9.]+ ms; 10 tokens, [0-9.]+ tokens/s")
        self.assertEqual(self.run_command(path, "--max-tokens", 5, "--ignore-eos", given="the").stdout, texts[0] + "\n")

    def test_errors_have_the_exit_codes_of_the_command(self):
        self.assertIn("/nowhere", self.run_command("/nowhere", "--prompt", "x", code=4).stderr)
        self.assertIn("2000", self.run_command(folder("plain", layout="plain"), "--prompt", "x", "--max-tokens", 2000, code=2).stderr)


@unittest.skipUnless(os.environ.get("HEDDLE_GENERATE"), "the examples are not built")
class Examples(unittest.TestCase):
    def test_tokens_in_cpp(self):
        model, prompt = folder("grouped") / "onnx/model.onnx", [5, 9, 17]
        done = subprocess.run([os.environ["HEDDLE_GENERATE"], model, "8", *map(str, prompt)], capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        self.assertEqual([int(line) for line in done.stdout.split()], told_by_onnxruntime(model, prompt, 8))

    def test_text_in_python(self):
        program = pathlib.Path(os.environ["HEDDLE_EXAMPLES"]) / "generate.py"
        done = subprocess.run([sys.executable, program, folder("grouped"), "the", "in"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"(?s)\n'in': .*\n[0-9.]+ tokens/s\n$")


if __name__ == "__main__":
    unittest.main()
