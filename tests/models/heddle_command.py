"""Runs models through the command `heddle run`."""

import pathlib
import subprocess
import tempfile

import numpy as np


class HeddleCommand:
    """heddle: the command; models: name -> ONNX file. The first run of a model with new input shapes compiles it, later
    ones take it from Heddle's cache."""

    def __init__(self, heddle, models, threads=0):
        self.heddle = str(heddle)
        self.models = {name: str(path) for name, path in models.items()}
        self.options = ["--target", "cpu"] + (["--threads", str(threads)] if threads else [])

    def run(self, model, inputs):
        """`inputs`: name -> array. Returns name -> array."""
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            arguments = []
            for number, (name, value) in enumerate(inputs.items()):
                path = folder / f"input{number}.npy"
                np.save(path, value)
                arguments += ["--input", f"{name}={path}"]
            outputs = folder / "outputs"
            done = subprocess.run(
                [self.heddle, "run", self.models[model], *arguments, "--output-dir", str(outputs), *self.options],
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode != 0:
                raise RuntimeError(f"heddle run {self.models[model]}: exit {done.returncode}\n{done.stderr}")
            return {path.stem: np.load(path) for path in sorted(outputs.glob("*.npy"))}
