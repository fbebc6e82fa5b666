#!/usr/bin/env python3
"""Zoo models on a GPU: Heddle against PyTorch, eager in a CUDA graph and torch.compile with reduce-overhead, and XLA.

usage: gpu_models.py [--heddle PATH] [--output FOLDER] [--precision f16] [--rivals torch xla] [--max-autotune] [--verify] [--backend]
                     [--suite zoo|published] [MODEL[:BATCH[:SEQ]]...]

MODEL is one of the zoo or NAME@PACKAGE (published_models.py), which PyTorch exports. Without any, those of the suite: the
zoo's, or networks of each family that packages have.

Times are medians of the device's work with inputs and outputs in its memory, in ms; runs are queued, none waits for the
host. First all sides prepare every model, --jobs at a time (each rival is a process that keeps its module). Then nothing
else runs, and short bursts of the contestants alternate, so that they see the same clock. One JSON object a model goes to
FOLDER/models_<precision>.jsonl; the table and the geometric mean are printed, losing rows too. XLA has the models of
xla_models.py; its time is that between queued calls. --backend adds torch.compile(backend="heddle") of the module that PyTorch's other modes run; it needs
Heddle's Python package. Columns of a rival that is not there are empty. --profile adds FOLDER/profile_<model>.json, what `explain --measure --json` says. Exit status 1 where a model
failed in Heddle."""

import argparse
import concurrent.futures
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ["resnet18:32", "resnet50:1", "resnet50:32", "vgg16:32", "vgg19:32", "repvgg-a0:32", "repvgg-b0:32", "mobilenet-v2:32",
         "vit-b16:1", "vit-b16:32", "bert-base:1:128", "bert-base:32:128", "bert-base:16:384", "bert-base:200:128",
         "transformer:1:64", "transformer:64:64", "asr:1", "crnn:1", "dien:256", "sd-unet:1", "sd-unet:2"]
TORCH_MODES = ("eager_graph", "reduce_overhead", "max_autotune")
MODES = (*TORCH_MODES, "heddle_backend", "xla")


def published_suite():
    import published_models  # with PyTorch
    return published_models.SUITE


def parse(spec):
    """The zoo's name, batch and sequence length (0: the model's own)."""
    name, *sizes = spec.split(":")
    batch, seq = (list(map(int, sizes)) + [1, 0][len(sizes):])[:2]
    return name, batch, seq


class Rival:
    """In a process of its own: torch_worker.py or xla_worker.py answers each line on its input with a burst of times."""

    def __init__(self, name, spec, options, folder):
        worker = [sys.executable, str(ROOT / f"bench/{name}_worker.py"), spec, options.precision]
        if name == "torch":
            worker += ["--max-autotune"] * options.max_autotune + ["--backend"] * options.backend
        self.log = open(folder / f"{spec.replace(':', '_')}.{name}.log", "w")
        self.child = subprocess.Popen(worker, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.ready = self.answer()

    def answer(self):
        line = self.child.stdout.readline()
        return json.loads(line) if line else {"failure": "the worker died"}

    def burst(self, seconds):
        try:
            self.child.stdin.write(f"{seconds}\n")
            self.child.stdin.flush()
            return self.answer()
        except BrokenPipeError:
            return {}

    def close(self):
        self.child.stdin.close()
        self.child.wait()
        self.log.close()


def heddle_json(options, *arguments):
    done = subprocess.run([options.heddle, *map(str, arguments), "--json"], capture_output=True, text=True, timeout=1800)
    if done.returncode not in (0, 1) or not done.stdout.strip():
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout)


class Case:
    """One model: prepared by any thread, measured by one."""

    def __init__(self, spec, options, folder):
        self.spec, self.options = spec, options
        self.row = {"model": spec, "precision": options.precision}
        self.target = ["--target", "cuda", "--precision", options.precision]
        stem = spec.replace(":", "_")
        self.model, self.plan = folder / f"{stem}.onnx", folder / f"{stem}.plan"
        self.inputs = []
        if "-step" in spec:  # caches of the type that is computed in, in place and full
            self.target += ["--alias", "auto"]
            self.inputs = ["--input", f"positions={folder / stem}.npy"]
        self.bursts, self.rivals = {}, []

    def fails_as_a_row(method):
        def guarded(self):
            if "failure" in self.row:
                return
            try:
                method(self)
            except (RuntimeError, subprocess.SubprocessError, KeyError) as error:
                said = getattr(error, "stderr", None)
                self.row["failure"] = ((said or "").strip() or str(error))[-600:]
        return guarded

    def write_model(self):
        if "@" in self.spec:
            command = [sys.executable, str(ROOT / "bench/published_models.py"), self.spec, str(self.model)]
        else:
            name, batch, seq = parse(self.spec)
            command = [self.options.heddle, "zoo", name, "--batch", str(batch), "-o", str(self.model)]
            command += ["--seq", str(seq)] if seq else []
            if self.inputs:
                command += ["--type", self.options.precision if self.options.precision in ("f16", "bf16") else "f32"]
                np.save(self.inputs[1].partition("=")[2], np.full(batch, (seq or 4096) - 1))
        subprocess.run(command, check=True, capture_output=True, text=True)

    @fails_as_a_row
    def prepare(self):
        self.write_model()
        start = time.time()
        subprocess.run([self.options.heddle, "compile", str(self.model), *self.target, "-o", str(self.plan)], check=True,
                       capture_output=True, text=True)
        self.row["compile_s"] = round(time.time() - start, 2)

    def start_rival(self, name, folder):
        rival = Rival(name, self.spec, self.options, folder)
        self.row[name] = rival.ready
        self.rivals.append(rival)

    @fails_as_a_row
    def verify(self):
        self.row["verified"] = heddle_json(self.options, "verify", self.model, *self.target)["ok"]

    @fails_as_a_row
    def burst(self):
        what = [self.model, *self.target, *self.inputs] if self.inputs else [self.plan, "--target", "cuda"]
        ours = heddle_json(self.options, "bench", *what, "--seconds", self.options.seconds)
        self.bursts.setdefault("heddle", []).append(ours["device_p50_ms"])
        self.row |= {"with_copies_ms": ours["p50_ms"], "floor_ms": ours["floor_ms"], "device_bytes": ours["device_bytes"]}

    def rival_bursts(self):
        for rival in self.rivals:
            times = {} if "failure" in rival.ready else rival.burst(self.options.seconds)
            for mode in MODES:
                if mode in times:
                    self.bursts.setdefault(mode, []).append(times[mode])

    @fails_as_a_row
    def profile(self):
        report = heddle_json(self.options, "explain", self.model, *self.target, "--measure")
        path = pathlib.Path(self.options.output) / f"profile_{self.spec.replace(':', '_')}.json"
        path.write_text(json.dumps(report))

    def finish(self):
        self.row["ms"] = {mode: round(statistics.median(times), 4) for mode, times in self.bursts.items()}
        self.row["spread"] = {mode: round(max(times) / min(times) - 1, 3) for mode, times in self.bursts.items()}
        return self.row


def cell(value):
    return "-" if value is None else f"{value:.3f}"


def ratio_of(row, modes=TORCH_MODES):
    ms = row.get("ms", {})
    rivals = [ms[mode] for mode in modes if mode in ms]
    return min(rivals) / ms["heddle"] if rivals and ms.get("heddle") else None


def print_row(row):
    ms = row.get("ms", {})
    columns = [cell(ms.get(mode)) for mode in ("heddle", *MODES)]
    columns += [cell(ratio_of(row)), cell(ratio_of(row, ["xla"])), cell(row.get("floor_ms")), cell(row.get("compile_s")),
                {True: "yes", False: "NO"}.get(row.get("verified"), "-")]
    why = row.get("failure") or row.get("torch", {}).get("failure", "")
    print(f"{row['model']:18}" + "".join(f"{column:>16}" for column in columns) + "  " + why[:200].replace("\n", " "), flush=True)


def prepare_all(cases, options, folder):
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as ours, concurrent.futures.ThreadPoolExecutor(options.jobs) as theirs:
        work = [ours.submit(case.prepare) for case in cases]
        work += [theirs.submit(case.start_rival, name, folder) for case in cases for name in options.rivals]
        for done in work:
            done.result()


def measure_all(cases, options):
    for case in cases:
        for _ in range(options.bursts):
            case.burst()
            case.rival_bursts()
        if options.profile:
            case.profile()
        if options.verify:
            case.verify()
        print_row(case.finish())
        yield case.row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*")
    parser.add_argument("--suite", default="zoo", choices=["zoo", "published"], help="where no models are named")
    parser.add_argument("--heddle", default=str(ROOT / "build/release/heddle"))
    parser.add_argument("--output", default=str(ROOT / "build/gpu"))
    parser.add_argument("--precision", default="f16", choices=["f32", "tf32", "f16", "bf16"])
    parser.add_argument("--bursts", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.2, help="of a burst")
    parser.add_argument("--jobs", type=int, default=1, help="models prepared at a time; compile times are those of a shared machine then")
    parser.add_argument("--max-autotune", action="store_true")
    parser.add_argument("--backend", action="store_true", help='torch.compile(backend="heddle"), too')
    parser.add_argument("--verify", action="store_true")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--rivals", nargs="*", default=["torch", "xla"], choices=["torch", "xla"])
    options = parser.parse_args()
    if not options.models:
        options.models = TABLE if options.suite == "zoo" else published_suite()
    output = pathlib.Path(options.output)
    output.mkdir(parents=True, exist_ok=True)
    titles = ("heddle ms", "eager graph ms", "reduce-overhead", "max-autotune", "heddle backend", "XLA", "over PyTorch", "over XLA", "floor ms", "compile s", "verified")
    with tempfile.TemporaryDirectory() as folder:
        cases = [Case(spec, options, pathlib.Path(folder)) for spec in options.models]
        try:
            prepare_all(cases, options, pathlib.Path(folder))
            print(f"{'model':18}" + "".join(f"{name:>16}" for name in titles))
            with open(output / f"models_{options.precision}.jsonl", "w") as file:
                for row in measure_all(cases, options):
                    print(json.dumps(row), file=file, flush=True)
        finally:
            for rival in [rival for case in cases for rival in case.rivals]:
                rival.close()
    rows = [case.row for case in cases]
    ratios = [ratio for ratio in map(ratio_of, rows) if ratio]
    if ratios:
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        print(f"over PyTorch: its best mode's time over Heddle's; geometric mean {mean:.3f} of {len(ratios)}, smallest {min(ratios):.3f}")
    sys.exit(any("failure" in row or row.get("verified") is False for row in rows))


if __name__ == "__main__":
    main()
