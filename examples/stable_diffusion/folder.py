"""A Stable Diffusion model as optimum and diffusers export it to ONNX: which files there are, and what they say."""
import json
import pathlib

EXPORT = "Export the model: optimum-cli export onnx --model NAME FOLDER"


class WrongFolder(ValueError):
    """A folder that is no exported model, or not a whole one."""


class Folder:
    """The files of a model; those that lack are named all at once."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        if not self.path.is_dir():
            raise WrongFolder(f"{self.path} is no folder. {EXPORT}")
        self.is_xl = (self.path / "text_encoder_2").is_dir() or "XL" in self._json("model_index.json").get("_class_name", "")
        self.text_encoders = [self._model("text_encoder"), *([self._model("text_encoder_2")] if self.is_xl else [])]
        self.tokenizers = [self.path / "tokenizer", *([self.path / "tokenizer_2"] if self.is_xl else [])]
        self.unet, self.decoder = self._model("unet"), self._model("vae_decoder")
        self.scheduler = self.path / "scheduler/scheduler_config.json"
        missing = [str(file.relative_to(self.path)) for file in (*self.text_encoders, self.unet, self.decoder, self.scheduler) if not file.is_file()]
        missing += [f"{folder.name}/tokenizer.json (or vocab.json and merges.txt)" for folder in self.tokenizers if not self._has_tokenizer(folder)]
        if missing:
            raise WrongFolder(f"{self.path} lacks {', '.join(missing)}. {EXPORT}")
        # Of the latents: 0.18215 for Stable Diffusion 1.x, 0.13025 for XL.
        self.latent_scale = self._json("vae_decoder/config.json").get("scaling_factor", 0.13025 if self.is_xl else 0.18215)
        self.default_size = 8 * self._json("unet/config.json").get("sample_size", 128 if self.is_xl else 64)
        # Whether no negative prompt means zeros in place of an encoded empty text.
        self.zeros_for_empty = self._json("model_index.json").get("force_zeros_for_empty_prompt", self.is_xl)

    def _model(self, part):
        return self.path / part / "model.onnx"

    def _json(self, name):
        file = self.path / name
        if not file.is_file():
            return {}
        try:
            return json.loads(file.read_text())
        except ValueError as error:
            raise WrongFolder(f"{file} is no JSON: {error}") from None

    @staticmethod
    def _has_tokenizer(folder):
        return (folder / "tokenizer.json").is_file() or all((folder / name).is_file() for name in ("vocab.json", "merges.txt"))
