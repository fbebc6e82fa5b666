#!/usr/bin/env python3
"""Stable Diffusion 1.5 on a GPU, from noise to pixels: Heddle's graphs of examples/stable_diffusion beside PyTorch's modules.

usage: pictures_gpu.py [--heddle PATH] [--batches 1 2 4 6] [--steps 50] [--bursts 3] [-o FILE]

512x512 pixels, f16, seeded weights, DDIM with classifier-free guidance, the loop over steps and the decoder the same on both
sides. PyTorch: a step and the decoder by torch.compile with reduce-overhead, channels last. All batches of PyTorch are compiled
first, at the same time, so that its caches have their kernels; then each batch is measured in one process, both sides in turns.
Needs torch, onnx, and Heddle's Python package on PYTHONPATH. FILE gets pictures a second as JSON."""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "examples/stable_diffusion")]
GUIDANCE, SCALING, SIDE, WORDS, WIDTH = 7.5, 0.18215, 64, 77, 768  # latents are SIDE x SIDE, a prompt is WORDS x WIDTH
SETTINGS = {"beta_start": 0.00085, "beta_end": 0.012, "beta_schedule": "scaled_linear", "steps_offset": 1, "set_alpha_to_one": False}


def decoder():
    import torch_models
    from torch import nn
    from torch.nn import functional as F

    class Block(torch_models.ResBlock):
        def __init__(self, i, o):
            super().__init__(i, o, 1)
            del self.t

        def forward(self, x):
            return self.short(x) + self.c2(F.silu(self.n2(self.c1(F.silu(self.n1(x))))))

    class Mix(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.n = nn.GroupNorm(32, c)
            self.q, self.k, self.v, self.o = (nn.Linear(c, c) for _ in range(4))

        def forward(self, x):
            y = self.n(x).flatten(2).transpose(1, 2)
            y = self.o(F.scaled_dot_product_attention(self.q(y), self.k(y), self.v(y)))
            return x + y.transpose(1, 2).unflatten(2, x.shape[2:])

    class Decoder(nn.Module):
        def __init__(self, width=128):
            super().__init__()
            c = 4 * width
            layers = [nn.Conv2d(4, 4, 1), nn.Conv2d(4, c, 3, padding=1), Block(c, c), Mix(c), Block(c, c)]
            for level, multiple in enumerate((4, 4, 2, 1)):
                for _ in range(3):
                    layers.append(Block(c, multiple * width))
                    c = multiple * width
                if level < 3:
                    layers += [nn.Upsample(scale_factor=2.0), nn.Conv2d(c, c, 3, padding=1)]
            self.layers = nn.Sequential(*layers, nn.GroupNorm(32, c), nn.SiLU(), nn.Conv2d(c, 3, 3, padding=1))

        def forward(self, x):
            import torch
            return (self.layers(x / SCALING).float() * 127.5 + 127.5).round().clamp(0, 255).permute(0, 2, 3, 1).to(torch.uint8)

    return Decoder()


def rows(steps):
    import schedule
    return schedule.make("ddim", SETTINGS, steps).rows


def of_heddle(batch, options, folder):
    """A call that makes `batch` pictures."""
    import graphs
    import heddle
    import torch
    models = {}
    for name, count in (("sd-unet", 2 * batch), ("sd-vae-decoder", batch)):
        (folder / name).mkdir()
        models[name] = folder / name / "model.onnx"
        command = [options.heddle, "zoo", name, "--batch", str(count), "--type", "f16", "-o", models[name]]
        subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)
    text = "encoder_hidden_states"
    step = graphs.step_graph(models["sd-unet"], tempfile.mkdtemp(dir=folder), batch, {text: (WORDS, WIDTH)}, (SIDE, SIDE))
    pixels = graphs.picture_graph(models["sd-vae-decoder"], tempfile.mkdtemp(dir=folder), batch, (SIDE, SIDE), SCALING)
    step, pixels = (heddle.compile(path, target="cuda", external_data_links=True) for path in (step, pixels))
    table = torch.zeros(graphs.TRAINED_STEPS, 4)
    table[: options.steps] = torch.tensor(rows(options.steps))
    numbers = [torch.tensor([i], device="cuda") for i in range(options.steps)]
    fixed = {graphs.TABLE: table.cuda(), graphs.GUIDANCE: torch.tensor([GUIDANCE], device="cuda"),
             graphs.PREFIX + text: torch.randn(2 * batch, WORDS, WIDTH, device="cuda")}
    pair = [torch.empty(batch, graphs.CHANNELS, SIDE, SIDE, device="cuda") for _ in range(2)]
    moment = torch.empty(1, device="cuda")

    def run():
        pair[0].normal_()
        for i, number in enumerate(numbers):
            inputs = {graphs.LATENTS: pair[i % 2], graphs.STEP: number, **fixed}
            step.run(inputs, out={graphs.NEXT: pair[1 - i % 2], graphs.TIME: moment})
        return pixels.run({graphs.LATENTS: pair[options.steps % 2]})[graphs.PIXELS].cpu()

    return run


def of_torch(batch, options):
    """A call that makes `batch` pictures."""
    import torch
    import torch_models
    unet, decode = (module.cuda().half().to(memory_format=torch.channels_last).eval() for module in (torch_models.UNet(), decoder()))
    coefficients = torch.tensor(rows(options.steps)).cuda()
    times = coefficients[:, 0].long()
    text = torch.randn(2 * batch, WORDS, WIDTH, device="cuda").half()

    def step(x, row, t):
        pair = unet(torch.cat([x * row[1]] * 2).half(), t.expand(2 * batch), text).float()
        without, with_text = pair.chunk(2)
        return row[2] * x + row[3] * (without + GUIDANCE * (with_text - without))

    step = torch.compile(step, mode="reduce-overhead", dynamic=False)
    last = torch.compile(lambda x: decode(x.half()), mode="reduce-overhead", dynamic=False)

    def run():
        x = torch.randn(batch, 4, SIDE, SIDE, device="cuda")
        for row, t in zip(coefficients, times):
            torch.compiler.cudagraph_mark_step_begin()
            x = step(x, row, t).clone()
        return last(x).cpu()

    return run


def measure(batch, options):
    """Prints pictures a second of both sides; medians of runs in turns."""
    import torch
    with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
        row, runs = {"batch": batch}, {}
        for name, make in (("heddle", lambda: of_heddle(batch, options, pathlib.Path(folder))), ("torch", lambda: of_torch(batch, options))):
            start = time.time()
            runs[name] = make()
            for _ in range(2):
                runs[name]()
            row[f"{name}_ready_s"] = round(time.time() - start, 1)
        times = {name: [] for name in runs}
        for _ in range(options.bursts):
            for name, run in runs.items():
                torch.cuda.synchronize()
                start = time.perf_counter()
                run()
                times[name].append(time.perf_counter() - start)
        row |= {f"{name}_per_s": batch / statistics.median(of) for name, of in times.items()}
    row["ratio"] = row["heddle_per_s"] / row["torch_per_s"]
    return row


def compile_of_torch(batch, options):
    import torch
    with torch.no_grad():
        of_torch(batch, options)()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--heddle", default=ROOT / "build/release/heddle", type=pathlib.Path)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 2, 4, 6])
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--bursts", type=int, default=3)
    parser.add_argument("-o", "--output", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--worker", nargs=2, metavar=("JOB", "BATCH"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        job, batch = options.worker[0], int(options.worker[1])
        print(json.dumps({"compile": compile_of_torch, "measure": measure}[job](batch, options)))
        return 0
    command = [sys.executable, __file__, "--heddle", str(options.heddle), "--steps", str(options.steps), "--bursts", str(options.bursts), "--worker"]
    first = [subprocess.Popen([*command, "compile", str(batch)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for batch in options.batches]
    for child in first:  # one that fails, fails again below, where its reason is printed
        child.wait()
    result = {"kind": "gpu_pictures", "steps": options.steps, "rows": []}
    for batch in options.batches:
        done = subprocess.run([*command, "measure", str(batch)], stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            return 1
        row = json.loads(done.stdout.splitlines()[-1])
        print(f"batch {batch}: {row['heddle_per_s']:.3f} pictures a second, PyTorch {row['torch_per_s']:.3f}, {row['ratio']:.2f} times", flush=True)
        result["rows"].append(row)
        if options.output:
            options.output.write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
