"""Stable Diffusion 1.x and XL on Heddle: text encoders, the steps of a scheduler and the decoder, each one graph."""
import pathlib
import tempfile
from typing import NamedTuple

import heddle
import numpy as np

import graphs
import schedule
from folder import Folder
from tokens import Tokenizer


class Request(NamedTuple):
    prompt: str
    negative: str = ""
    seed: int = 0
    steps: int = 50
    guidance: float = 7.5
    scheduler: str = "ddim"


class Texts(NamedTuple):
    by_name: dict  # inputs of the step: without the prompt, then with it, for each picture
    cut_tokens: int  # of the prompt, which did not fit


class Result(NamedTuple):
    pixels: np.ndarray  # [pictures, height, width, 3] of bytes
    cut_tokens: int


class Pipeline:
    """Compiled for a number of pictures of one size. progress: called with a line while it compiles."""

    def __init__(self, path, *, pictures=1, height=None, width=None, target="cpu", precision="f16", threads=0, progress=print):
        self.folder, self.pictures = Folder(path), pictures
        self.size = height or self.folder.default_size, width or self.folder.default_size
        if pictures < 1:
            raise ValueError(f"{pictures} pictures: at least one has to be made")
        if any(extent < 64 or extent % 64 for extent in self.size):
            raise ValueError(f"a picture of {self.size[1]}x{self.size[0]} pixels: both have to be multiples of 64")
        self.settings = schedule.read(self.folder.scheduler)
        self.tokenizers = [Tokenizer(folder) for folder in self.folder.tokenizers]
        self.options = {"target": target, "threads": threads, "external_data_links": True,
                        "precision": precision if target != "cpu" else "f32"}
        self._compile(progress)
        self.device = self.step.device

    def _compile(self, progress):
        folder, latent = self.folder, tuple(extent // 8 for extent in self.size)
        self.latents_shape = self.pictures, graphs.CHANNELS, *latent
        if folder.is_xl:
            first, second = (graphs.hidden_state_of(path) for path in folder.text_encoders)
            text_outputs = [[first], [second, "text_embeds"]]
        else:
            text_outputs = [["last_hidden_state"]]
        with tempfile.TemporaryDirectory() as scratch:
            self.encoders = []
            for path, tokenizer, outputs in zip(folder.text_encoders, self.tokenizers, text_outputs):
                progress(f"compiling {path.parent.name}")
                self.encoders.append(heddle.compile(graphs.text_graph(path, scratch, self.pictures, tokenizer.length, outputs), **self.options))
            progress("compiling unet with the scheduler")
            texts = {name: shape[1:] for name, shape in self._text_shapes().items()}
            self.step = heddle.compile(graphs.step_graph(folder.unet, scratch, self.pictures, texts, latent), **self.options)
            progress("compiling vae_decoder")
            self.decoder = heddle.compile(graphs.picture_graph(folder.decoder, scratch, self.pictures, latent, folder.latent_scale), **self.options)

    def _text_shapes(self):
        """Of the UNet's inputs beside latents and time."""
        shapes = [[port.shape for port in encoder.outputs] for encoder in self.encoders]
        if not self.folder.is_xl:
            return {"encoder_hidden_states": shapes[0][0]}
        hidden = *shapes[0][0][:-1], shapes[0][0][-1] + shapes[1][0][-1]
        return {"encoder_hidden_states": hidden, "text_embeds": shapes[1][1], "time_ids": (2 * self.pictures, 6)}

    def memory(self):
        """(part, bytes of weights, bytes of intermediate values) of each part."""
        parts = {**{path.parent.name: model for path, model in zip(self.folder.text_encoders, self.encoders)},
                 "unet": self.step, "vae_decoder": self.decoder}
        return [(name, model.memory.constants, model.memory.values) for name, model in parts.items()]

    def encode(self, prompt, negative):
        encoded, cut = [], 0
        for tokenizer, model in zip(self.tokenizers, self.encoders):
            rows, left = zip(*(tokenizer(text) for text in (negative, prompt)))
            (port,) = model.inputs
            outputs = model.run({port.name: np.array(rows, np.int32 if port.dtype == "i32" else np.int64)})
            encoded.append(list(outputs.values()))
            cut = max(cut, left[1])
        if not self.folder.is_xl:
            return Texts({graphs.PREFIX + "encoder_hidden_states": encoded[0][0]}, cut)
        texts = {"encoder_hidden_states": np.concatenate([encoded[0][0], encoded[1][0]], axis=-1), "text_embeds": encoded[1][1]}
        if not negative and self.folder.zeros_for_empty:
            for array in texts.values():
                array[: self.pictures] = 0
        # The size of the original, where it was cut, and the size that is wanted.
        texts["time_ids"] = np.array([[*self.size, 0, 0, *self.size]] * (2 * self.pictures), np.float32)
        return Texts({graphs.PREFIX + name: array for name, array in texts.items()}, cut)

    def noise(self, seed):
        """Picture i of a seed is picture 0 of seed + i."""
        shape = self.latents_shape[1:]
        return np.stack([np.random.default_rng(seed + i).standard_normal(shape, np.float32) for i in range(self.pictures)])

    def plan_of(self, request):
        if request.guidance < 1:
            raise ValueError(f"a guidance of {request.guidance}: 1 follows the prompt without guidance, more follows it more closely")
        return schedule.make(request.scheduler, self.settings, request.steps)

    def save(self, path, request):
        """A request as files that examples/cpp/stable_diffusion.cc runs without this folder, Python and a compiler."""
        if self.folder.is_xl:
            raise ValueError("the C++ program has no second text encoder: it runs Stable Diffusion 1.x")
        path = pathlib.Path(path)
        path.mkdir(parents=True, exist_ok=True)
        for name, model in (("text_encoder", self.encoders[0]), ("step", self.step), ("decoder", self.decoder)):
            model.save(path / f"{name}.plan")
        plan = self.plan_of(request)
        np.savetxt(path / "tokens.txt", [self.tokenizers[0](text)[0] for text in (request.negative, request.prompt)], "%d")
        np.savetxt(path / "schedule.txt", [request.guidance, *plan.rows.ravel()])
        np.savetxt(path / "noise.txt", (plan.first_scale * self.noise(request.seed)).ravel())

    def run(self, request, told=None):
        """told(step): called after each step, which waits for the device."""
        plan = self.plan_of(request)
        table = np.zeros((schedule.TRAINED_STEPS, 4), np.float32)
        table[: request.steps] = plan.rows
        texts = self.encode(request.prompt, request.negative)
        fixed = {graphs.TABLE: table, graphs.GUIDANCE: np.array([request.guidance], np.float32), **texts.by_name}
        fixed = {name: self._on_device(array) for name, array in fixed.items()}
        latents = self._on_device(plan.first_scale * self.noise(request.seed))
        for number in range(request.steps):
            done = self.step.run({graphs.LATENTS: latents, graphs.STEP: self._on_device(np.array([number])), **fixed})
            latents = done[graphs.NEXT]
            if told is not None:
                self._on_host(done[graphs.TIME])
                told(number + 1)
        return Result(self._on_host(self.decoder.run({graphs.LATENTS: latents})[graphs.PIXELS]), texts.cut_tokens)

    def _on_device(self, array):
        return array if self.device == "cpu" else heddle.tensor(np.ascontiguousarray(array), device=self.device)

    def _on_host(self, array):
        return array if isinstance(array, np.ndarray) else array.numpy()
