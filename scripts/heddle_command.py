"""The command line of Heddle from Python, with the time and memory that it took."""

import json
import os
import pathlib
import subprocess
import tempfile
import time
from dataclasses import dataclass

import numpy as np


@dataclass
class Finished:
    output: str
    seconds: float
    peak_bytes: int  # of the largest process: Heddle itself or a compiler that it started


class Heddle:
    def __init__(self, command, cache=None):
        """`cache`: folder of the compile cache; the user's own if left out."""
        self.command = str(command)
        self.environment = dict(os.environ) | ({"HEDDLE_CACHE_DIR": str(cache)} if cache else {})

    def __call__(self, *arguments):
        """Runs the command to its end; a failure raises RuntimeError with what it printed."""
        with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
            start = time.perf_counter()
            child = subprocess.Popen(
                [self.command, *map(str, arguments)], env=self.environment, stdout=output, stderr=errors
            )
            _, status, usage = os.wait4(child.pid, 0)
            seconds = time.perf_counter() - start
            child.returncode = os.waitstatus_to_exitcode(status)
            output.seek(0)
            errors.seek(0)
            if child.returncode != 0:
                raise RuntimeError(f"{' '.join(map(str, child.args))}: exit {child.returncode}\n{errors.read()}")
            return Finished(output.read(), seconds, usage.ru_maxrss * 1024)

    def run(self, model, inputs):
        """`inputs`: name -> array. Returns name -> array, with `/` in a name as `_`. New input shapes are compiled for,
        later runs take them from the cache."""
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            arguments = []
            for number, (name, value) in enumerate(inputs.items()):
                path = folder / f"input{number}.npy"
                np.save(path, value)
                arguments += ["--input", f"{name}={path}"]
            outputs = folder / "outputs"
            self("run", model, *arguments, "--output-dir", outputs, "--target", "cpu")
            return {path.stem: np.load(path) for path in sorted(outputs.glob("*.npy"))}

    def compile(self, model, plan, threads):
        """Writes a plan for that many threads, which later commands take in place of the model without compiling it."""
        self("compile", model, "--target", "cpu", "--threads", threads, "-o", plan)

    def bench(self, model, threads, seconds):
        """The object that `heddle bench --json` prints; a model that is no plan is compiled with an empty cache."""
        return json.loads(
            self("bench", model, "--target", "cpu", "--threads", threads, "--seconds", seconds, "--json",
                 "--no-cache").output
        )

    def zoo_model(self, name, folder, options=()):
        """A model of the zoo as a file in `folder`; made if it is not there."""
        path = pathlib.Path(folder) / f"{'-'.join([name, *(o.strip('-') for o in options)])}.onnx"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            self("zoo", name, *options, "-o", path)
        return path
