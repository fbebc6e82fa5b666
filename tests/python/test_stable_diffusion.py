"""examples/stable_diffusion ($HEDDLE_EXAMPLES) and its C++ program ($HEDDLE_CPP_EXAMPLE) on small seeded models, beside the same networks in ONNX Runtime with the
schedulers' published formulas.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import heddle
import numpy as np
import onnx
import onnxruntime
from PIL import Image

import diffusion_models as small

EXAMPLE = pathlib.Path(os.environ["HEDDLE_EXAMPLES"]) / "stable_diffusion"
TARGET = os.environ.get("HEDDLE_TEST_TARGET", "cpu")
CPP = os.environ.get("HEDDLE_CPP_EXAMPLE")
sys.path.insert(0, str(EXAMPLE))

import folder as folders  # noqa: E402
import graphs  # noqa: E402
import schedule  # noqa: E402
from pipeline import Pipeline, Request  # noqa: E402
from tokens import Tokenizer  # noqa: E402

PROMPT = "a lighthouse, in use"


def session(path):
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def beside(got, expected):
    """The root of the mean squared difference over that of the values."""
    return np.sqrt(np.mean((np.float64(got) - expected) ** 2) / np.mean(np.float64(expected) ** 2))


def signal_of(times):
    betas = np.linspace(0.00085**0.5, 0.012**0.5, 1000) ** 2
    return np.cumprod(1 - betas)[times]


class Reference:
    """Networks by ONNX Runtime, steps in f64 as papers write them (Song et al. 2020; Karras et al. 2022)."""

    def __init__(self, folder, texts):
        self.unet, self.decoder = (session(folder / part / "model.onnx") for part in ("unet", "vae_decoder"))
        self.texts = {name.removeprefix(graphs.PREFIX): array for name, array in texts.items()}

    def noise_of(self, latents, time, guidance):
        both = np.concatenate([latents, latents]).astype(np.float32)
        times = np.full(len(both), int(time), np.int64)
        predicted = np.float64(self.unet.run(None, {"sample": both, "timestep": times, **self.texts})[0])
        without, with_prompt = np.split(predicted, 2)
        return without + guidance * (with_prompt - without)

    def ddim(self, latents, steps, guidance):
        ratio = 1000 // steps
        for time in (np.arange(steps) * ratio)[::-1] + 1:
            noise = self.noise_of(latents, time, guidance)
            now, after = signal_of(time), signal_of(max(time - ratio, 0))
            clean = (latents - np.sqrt(1 - now) * noise) / np.sqrt(now)
            latents = np.sqrt(after) * clean + np.sqrt(1 - after) * noise
        return latents

    def euler(self, latents, steps, guidance):
        times = np.linspace(0, 999, steps)[::-1]
        every = np.sqrt((1 - signal_of(np.arange(1000))) / signal_of(np.arange(1000)))
        sigmas = np.append(np.interp(times, np.arange(1000), every), 0)
        latents = latents * sigmas[0]
        for time, sigma, after in zip(times, sigmas, sigmas[1:]):
            latents = latents + (after - sigma) * self.noise_of(latents / np.sqrt(sigma**2 + 1), time, guidance)
        return latents

    def pixels(self, latents):
        picture = self.decoder.run(None, {"latent_sample": (latents / 0.18215).astype(np.float32)})[0]
        return np.clip(127.5 * picture + 127.5, 0, 255).transpose(0, 2, 3, 1)


@unittest.skipIf(TARGET != "cpu", "takes long on the emulator")
class StableDiffusion(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.scratch = pathlib.Path(scratch.name)
        cls.folder = cls.scratch / "sd"
        small.write(cls.folder, pictures=2)
        cls.pipeline = Pipeline(cls.folder, pictures=2, target=TARGET, precision="f32", progress=lambda text: None)

    def copy(self, name):
        """Of the folder, with files that may be replaced."""
        copy = self.scratch / name
        shutil.copytree(self.folder, copy, copy_function=os.link)
        return copy

    def test_latents_and_pixels_beside_onnx_runtime(self):
        steps, guidance = 6, 5.0
        texts = self.pipeline.encode(PROMPT, "dark").by_name
        encoder = session(self.folder / "text_encoder/model.onnx")
        tokenizer = Tokenizer(self.folder / "tokenizer")
        expected = encoder.run(["last_hidden_state"], {"input_ids": np.array([tokenizer("dark")[0], tokenizer(PROMPT)[0]])})[0]
        self.assertLess(beside(texts["pipeline.encoder_hidden_states"], np.repeat(expected, 2, axis=0)), 1e-5)
        reference = Reference(self.folder, texts)
        for name in schedule.NAMES:
            latents = getattr(reference, name)(np.float64(self.pipeline.noise(3)), steps, guidance)
            result = self.pipeline.run(Request(PROMPT, "dark", 3, steps, guidance, name))
            self.assertEqual(result.pixels.shape, (2, 64, 64, 3))
            self.assertLess(np.abs(result.pixels - reference.pixels(latents)).max(), 0.51, name)

    def test_seeds_and_progress(self):
        told = []
        first = self.pipeline.run(Request(PROMPT, seed=5, steps=2), told.append).pixels
        self.assertEqual(told, [1, 2])
        np.testing.assert_array_equal(first, self.pipeline.run(Request(PROMPT, seed=5, steps=2)).pixels)
        self.assertGreater(np.abs(first[0].astype(int) - first[1]).max(), 10)
        self.assertGreater(np.abs(first.astype(int) - self.pipeline.run(Request("dark", seed=5, steps=2)).pixels).max(), 0)
        later = self.pipeline.run(Request(PROMPT, seed=6, steps=2)).pixels
        self.assertLess(np.abs(first[1].astype(int) - later[0]).max(), 2)  # picture 1 of seed 5 is picture 0 of seed 6

    def test_command(self):
        output = self.scratch / "picture.png"
        done = subprocess.run([sys.executable, EXAMPLE / "generate.py", self.folder, PROMPT, "--pictures", "2", "--steps", "2", "--target",
                               TARGET, "--precision", "f32", "-o", output], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        for part in ("text_encoder", "unet", "vae_decoder", "GB in all", "picture-2.png"):
            self.assertIn(part, done.stdout)
        self.assertIn("pictures a second", done.stderr)
        pixels = np.asarray(Image.open(self.scratch / "picture-1.png"))
        np.testing.assert_array_equal(pixels, self.pipeline.run(Request(PROMPT, steps=2)).pixels[0])

    @unittest.skipUnless(CPP, "there is no libpng")
    def test_cpp_program(self):
        saved, output = self.scratch / "saved", self.scratch / "cpp.png"
        request = Request(PROMPT, "dark", 8, 3, 4.0, "euler")
        self.pipeline.save(saved, request)
        done = subprocess.run([CPP, saved, output], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("step 3 of 3", done.stderr)
        expected = self.pipeline.run(request).pixels.reshape(128, 64, 3)
        self.assertLessEqual(np.abs(np.asarray(Image.open(output)).astype(int) - expected).max(), 1)
        (saved / "noise.txt").write_text("\n".join((saved / "noise.txt").read_text().split()[:-1]))
        done = subprocess.run([CPP, saved, output], capture_output=True, text=True)
        self.assertEqual(done.returncode, 4)
        self.assertIn("pipeline.latents", done.stderr)
        (saved / "noise.txt").write_text("no number")
        done = subprocess.run([CPP, saved, output], capture_output=True, text=True)
        self.assertEqual(done.returncode, 4)
        self.assertIn("noise.txt", done.stderr)

    def test_a_guidance_below_one_is_refused(self):
        with self.assertRaisesRegex(ValueError, "guidance of 0.5"):
            self.pipeline.run(Request(PROMPT, guidance=0.5))

    def test_a_model_that_names_itself_for_its_weights_is_refused(self):
        folder = self.copy("itself")
        unet = onnx.load(folder / "unet" / "model.onnx")
        (folder / "unet" / "model.onnx").unlink()
        onnx.save(unet, folder / "unet" / "model.onnx", save_as_external_data=True, location="weights")
        unet = onnx.load(folder / "unet" / "model.onnx", load_external_data=False)
        for tensor in unet.graph.initializer:
            for entry in tensor.external_data:
                if entry.key == "location":
                    entry.value = "./model.onnx"
        (folder / "unet" / "model.onnx").write_bytes(unet.SerializeToString())
        before = (folder / "unet" / "model.onnx").read_bytes()
        with self.assertRaisesRegex(graphs.WrongModel, "names itself"):
            Pipeline(folder, pictures=2, target=TARGET, precision="f32", progress=lambda text: None)
        self.assertEqual((folder / "unet" / "model.onnx").read_bytes(), before)

    def test_weights_beside_the_model(self):
        folder = self.copy("external")
        for part in ("text_encoder", "unet", "vae_decoder"):
            model = onnx.load(folder / part / "model.onnx")
            (folder / part / "model.onnx").unlink()
            onnx.save(model, folder / part / "model.onnx", save_as_external_data=True, location="model.onnx_data")
        pipeline = Pipeline(folder, pictures=2, target=TARGET, precision="f32", progress=lambda text: None)
        np.testing.assert_array_equal(pipeline.run(Request(PROMPT, steps=1)).pixels, self.pipeline.run(Request(PROMPT, steps=1)).pixels)

    @unittest.skipUnless(os.environ.get("HEDDLE_ALL_INSTANCES"), "takes half a minute")
    def test_f16_files(self):
        folder = self.scratch / "half"
        small.write(folder, pictures=1, type="f16")
        half = Pipeline(folder, target=TARGET, progress=lambda text: None).run(Request(PROMPT, steps=4)).pixels
        whole = self.pipeline.run(Request(PROMPT, steps=4)).pixels
        difference = np.abs(half[0].astype(int) - whole[0])
        self.assertLess(difference.mean(), 2)
        self.assertLess(difference.max(), 40)

    def test_files_that_lack(self):
        folder = self.copy("missing")
        (folder / "vae_decoder/model.onnx").unlink()
        (folder / "tokenizer/merges.txt").unlink()
        with self.assertRaisesRegex(folders.WrongFolder, r"lacks vae_decoder/model.onnx, tokenizer/tokenizer.json .*optimum-cli"):
            Pipeline(folder)
        with self.assertRaisesRegex(folders.WrongFolder, "is no folder"):
            Pipeline(self.scratch / "none")
        done = subprocess.run([sys.executable, EXAMPLE / "generate.py", folder, PROMPT], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertNotIn("Traceback", done.stderr)

    def test_wrong_models(self):
        folder = self.copy("wrong")
        (folder / "unet/model.onnx").unlink()
        shutil.copy(folder / "vae_decoder/model.onnx", folder / "unet/model.onnx")
        with self.assertRaisesRegex(graphs.WrongModel, "has no input sample: it has latent_sample"):
            Pipeline(folder, pictures=2, target=TARGET, progress=lambda text: None)
        model = onnx.load(self.folder / "unet/model.onnx")
        onnx.save(model, folder / "unet/model.onnx", save_as_external_data=True, location="weights")
        (folder / "unet/weights").unlink()
        with self.assertRaisesRegex(graphs.WrongModel, "unet/model.onnx: its weights are in weights, which is not beside it"):
            Pipeline(folder, pictures=2, target=TARGET, progress=lambda text: None)
        (folder / "text_encoder/model.onnx").unlink()
        (folder / "text_encoder/model.onnx").write_text("version https://git-lfs.github.com/spec/v1")
        with self.assertRaisesRegex(graphs.WrongModel, "text_encoder/model.onnx is no ONNX model"):
            Pipeline(folder, pictures=2, target=TARGET, progress=lambda text: None)
        (folder / "tokenizer/vocab.json").unlink()
        (folder / "tokenizer/vocab.json").write_text("{")
        with self.assertRaisesRegex(ValueError, "tokenizer: the tokenizer cannot be read"):
            Pipeline(folder, pictures=2, target=TARGET, progress=lambda text: None)
        with self.assertRaisesRegex(graphs.WrongModel, r"sample has the shape \[4, 4, 8, 8\], \[2, 4, 8, 8\] is needed"):
            Pipeline(self.folder, pictures=1, target=TARGET, progress=lambda text: None)

    @unittest.skipUnless(os.environ.get("HEDDLE_ALL_INSTANCES"), "takes half a minute")
    def test_xl(self):
        folder = self.scratch / "xl"
        small.write_xl(folder)
        pipeline = Pipeline(folder, target=TARGET, precision="f32", progress=lambda text: None)
        texts = pipeline.encode(PROMPT, "").by_name
        self.assertEqual(np.abs(texts["pipeline.encoder_hidden_states"][0]).max(), 0)
        self.assertEqual(texts["pipeline.time_ids"].tolist(), [[64, 64, 0, 0, 64, 64]] * 2)
        first, second = (session(folder / part / "model.onnx") for part in ("text_encoder", "text_encoder_2"))
        ids = {"input_ids": np.array([Tokenizer(folder / "tokenizer")(text)[0] for text in ("", PROMPT)])}
        hidden = [first.run(["hidden_states.11"], ids)[0], *second.run(["hidden_states.31", "text_embeds"], ids)]
        self.assertLess(beside(texts["pipeline.encoder_hidden_states"][1], np.concatenate(hidden[:2], axis=-1)[1]), 1e-4)
        self.assertLess(beside(texts["pipeline.text_embeds"][1], hidden[2][1]), 1e-4)
        latents = Reference(folder, texts).ddim(np.float64(pipeline.noise(0)), 3, 4.0)
        result = pipeline.run(Request(PROMPT, steps=3, guidance=4.0))
        expected = Reference(folder, texts).pixels(latents * 0.18215 / 0.13025)
        self.assertLess(np.abs(result.pixels - expected).max(), 0.6)


class Pictures(unittest.TestCase):
    def test_several_at_once_of_one_folder(self):
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            small.write_tiny(folder)
            first = None
            for pictures in (1, 2, 4, 6):
                pipeline = Pipeline(folder, pictures=pictures, height=64, width=128, target=TARGET, precision="f32", progress=lambda text: None)
                told = []
                pixels = pipeline.run(Request(PROMPT, "dark", seed=2, steps=3, guidance=2.0, scheduler="euler"), told.append).pixels
                self.assertEqual((pixels.shape, told), ((pictures, 64, 128, 3), [1, 2, 3]))
                expected = self.expected(pipeline, folder)
                self.assertLess(np.abs(pixels - np.clip(expected, 0, 255)).max(), 0.51)
                first = pixels[0] if first is None else first
                self.assertLess(np.abs(first.astype(int) - pixels[0]).max(), 2)

    def expected(self, pipeline, folder):
        """What small.write_tiny() computes, in f64."""
        tokenizer, made = Tokenizer(folder / "tokenizer"), schedule.make("euler", small.SCHEDULER, 3)
        means = [small.tiny_text(np.array(tokenizer(text)[0])).mean() for text in ("dark", PROMPT)]
        latents = made.first_scale * np.float64(pipeline.noise(2))
        for time, scale, keep, move in np.float64(made.rows):
            without, guided = (0.5 * scale * latents + mean + int(time) / 1000 for mean in means)
            latents = keep * latents + move * (without + 2 * (guided - without))
        picture = np.einsum("nchw,kc->nhwk", latents / 0.18215, small.TINY_COLOURS).repeat(8, axis=1).repeat(8, axis=2)
        return 127.5 * picture + 127.5


class Graphs(unittest.TestCase):
    def test_types_and_forms_of_exports(self):
        random = np.random.default_rng(0)
        latents, text = random.standard_normal((3, 4, 2, 5), np.float32), random.standard_normal((6, 7, 8), np.float32)
        rows = schedule.make("euler", small.SCHEDULER, 9).rows
        table = np.zeros((schedule.TRAINED_STEPS, 4), np.float32)
        table[:9] = rows
        f16, f32, i64 = onnx.TensorProto.FLOAT16, onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
        for real, time, time_shape in ((f16, i64, []), (f16, f16, ["steps"]), (f32, i64, [1]), (f32, f32, [6])):
            with self.subTest(real=real, time=time, shape=time_shape), tempfile.TemporaryDirectory() as scratch:
                path = pathlib.Path(scratch) / "model/unet/model.onnx"
                small.tiny_unet(path, real, time, time_shape)
                made = graphs.step_graph(path, scratch, 3, {"encoder_hidden_states": (7, 8)}, (2, 5))
                step = heddle.compile(made, target=TARGET, threads=1)
                got = step.run({graphs.LATENTS: latents, graphs.STEP: np.array([4]), graphs.TABLE: table,
                                graphs.GUIDANCE: np.array([3.0], np.float32), "pipeline.encoder_hidden_states": text})
                moment, scale, keep, move = rows[4].astype(float)
                number = int(moment) if time == i64 else moment
                means = np.float64(text).mean(axis=(1, 2)).reshape(2, 3, 1, 1, 1)
                predicted = [0.5 * scale * latents + mean + number / 1000 for mean in means]
                expected = keep * latents + move * (predicted[0] + 3 * (predicted[1] - predicted[0]))
                self.assertLess(beside(got[graphs.NEXT], expected), 3e-3 if real == f16 else 1e-5)
                self.assertEqual(got[graphs.TIME], rows[4, 0])


class Schedules(unittest.TestCase):
    def test_settings_that_are_not_linear_are_refused(self):
        with tempfile.TemporaryDirectory() as scratch:
            path = pathlib.Path(scratch) / "scheduler_config.json"
            for change, said in (({"clip_sample": True}, "clip_sample"), ({"prediction_type": "sample"}, "prediction_type"),
                                 ({"num_train_timesteps": 500}, "num_train_timesteps"), ({"trained_betas": [0.1]}, "trained_betas")):
                path.write_text(json.dumps({**small.SCHEDULER, **change}))
                with self.assertRaisesRegex(schedule.WrongSchedule, said):
                    schedule.read(path)
        for change in ({"use_karras_sigmas": True}, {"interpolation_type": "log_linear"}):
            with self.assertRaisesRegex(schedule.WrongSchedule, next(iter(change))):
                schedule.make("euler", {**small.SCHEDULER, **change}, 10)
        for steps in (0, 1001):
            with self.assertRaisesRegex(schedule.WrongSchedule, "steps"):
                schedule.make("ddim", small.SCHEDULER, steps)

    def test_velocity_and_noise_are_the_same_step(self):
        """A network that knows the clean picture, in both forms of its prediction: x = signal * clean + noise * e."""
        random = np.random.default_rng(0)
        clean, noise = random.standard_normal((2, 5))
        for name in schedule.NAMES:
            for spacing in ("leading", "linspace", "trailing"):
                tables = [schedule.make(name, {**small.SCHEDULER, "timestep_spacing": spacing, "prediction_type": kind}, 7).rows
                          for kind in ("epsilon", "v_prediction")]
                for by_noise, by_velocity in zip(*tables):
                    now = signal_of(int(by_noise[0])) if name == "ddim" else None
                    if name == "ddim":
                        x = np.sqrt(now) * clean + np.sqrt(1 - now) * noise
                        velocity = np.sqrt(now) * noise - np.sqrt(1 - now) * clean
                    else:
                        sigma = np.sqrt(1 / by_noise[1] ** 2 - 1)
                        x = clean + sigma * noise
                        velocity = (noise - sigma * clean) / np.sqrt(sigma**2 + 1)
                    next_by_noise, next_by_velocity = (row[2] * x + row[3] * p for row, p in ((by_noise, noise), (by_velocity, velocity)))
                    np.testing.assert_allclose(next_by_noise, next_by_velocity, rtol=1e-4, atol=1e-4)

    def test_the_last_step_leaves_no_noise(self):
        for name in schedule.NAMES:
            settings = {**small.SCHEDULER, "set_alpha_to_one": True, "timestep_spacing": "trailing"}
            made = schedule.make(name, settings, 50)
            clean, noise, x = 2.0, 3.0, None
            _, scale, keep, move = made.rows[-1].astype(float)
            now = signal_of(int(made.rows[-1][0]))
            sigma = np.sqrt((1 - now) / now)
            x = np.sqrt(now) * clean + np.sqrt(1 - now) * noise if name == "ddim" else clean + sigma * noise
            self.assertAlmostEqual(keep * x + move * noise, clean, places=4)


class Tokens(unittest.TestCase):
    def test_words_merges_and_padding(self):
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            small.write_tokenizer(folder)
            vocabulary = json.loads((folder / "vocab.json").read_text())
            tokenizer = Tokenizer(folder)
            numbers, cut = tokenizer("  A  LIGHT\nhouse's")
            words = {number: word for word, number in vocabulary.items()}
            self.assertEqual([words[number] for number in numbers[:10]],
                             ["<|startoftext|>", "a</w>", "ligh", "t</w>", "ho", "use</w>", "'", "s</w>", "<|endoftext|>", "<|endoftext|>"])
            self.assertEqual((len(numbers), cut), (77, 0))
            numbers, cut = tokenizer("a " * 80)
            self.assertEqual((len(numbers), numbers[-1], cut), (77, vocabulary["<|endoftext|>"], 5))
            tokenizer.words.save(str(folder / "tokenizer.json"))
            self.assertEqual(Tokenizer(folder)("a lighthouse")[0], tokenizer("a lighthouse")[0])


if __name__ == "__main__":
    unittest.main()
