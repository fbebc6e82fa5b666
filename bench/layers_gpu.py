#!/usr/bin/env python3
"""Single layers on a GPU beside PyTorch's: convolutions (cuDNN), depthwise ones, softmax with argmax, layers so small that only
their latency counts. One line per layer, geometric means by kind at the end.

usage: layers_gpu.py [--heddle PATH] [--output FILE] [--only SUBSTRING...] [--bursts N] [--no-compile]

Tensors are f16; images have their channels last, as within a network, sequences first where the text does not say otherwise.
Convolutions have no bias, which cuDNN would add in a kernel of its own. Bursts of both alternate, as CUDA graphs with a cold L2; a
time is the median of all runs. PyTorch has the better of eager and its compiler. The output is written after each layer, so that a
run which is cut leaves what it has. Exit status 1 where a result is wrong."""

import argparse
import collections
import datetime
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import warnings

import torch
from torch import nn

from report_gpu import geometric_mean
from torch_worker import captured

Layer = collections.namedtuple("Layer", "kind text module inputs")


class Call(nn.Module):
    """A function of tensors as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


class ChannelsLast(nn.Module):
    """A layer between tensors whose channels are the last dimension."""

    def __init__(self, layer):
        super().__init__()
        formats = {4: torch.channels_last, 5: torch.channels_last_3d}
        self.layer = layer.to(memory_format=formats[layer.weight.dim()]) if layer.weight.dim() in formats else layer

    def forward(self, x):
        rank = x.dim()
        return self.layer(x.permute(0, rank - 1, *range(1, rank - 1))).permute(0, *range(2, rank), 1)


def conv(kind, batch, channels, extents, filters, kernel, stride=1, groups=1, pad=None, dilation=1, last=None):
    last = len(extents) > 1 if last is None else last
    kernels = kernel if isinstance(kernel, tuple) else (kernel,) * len(extents)
    pads = tuple(dilation * (k - 1) // 2 for k in kernels) if pad is None else pad
    text = f"{batch}x{channels}x{'x'.join(map(str, extents))} to {filters} k{'x'.join(map(str, kernels))}"
    text += (f" s{stride}" if stride > 1 else "") + (f" g{groups}" if groups > 1 else "") + (f" d{dilation}" if dilation > 1 else "")
    layer = lambda: getattr(nn, f"Conv{len(extents)}d")(channels, filters, kernels, stride, pads, dilation, groups, bias=False)
    if not last:
        return Layer(kind, text, layer, [(batch, channels, *extents)])
    return Layer(kind, text + " last" * (len(extents) == 1), lambda: ChannelsLast(layer()), [(batch, *extents, channels)])


def function(kind, text, call, *shapes):
    return Layer(kind, text, lambda: Call(call), list(shapes))


def convolutions():
    """ResNet-50's at a batch of 32, some that are dilated or have few channels."""
    sizes = [(3, 224, 64, 7, 2), (64, 56, 64, 1, 1), (64, 56, 64, 3, 1), (64, 56, 256, 1, 1), (256, 56, 64, 1, 1), (128, 56, 128, 3, 2),
             (128, 28, 128, 3, 1), (128, 28, 512, 1, 1), (256, 28, 256, 3, 2), (256, 14, 256, 3, 1), (256, 14, 1024, 1, 1),
             (1024, 14, 256, 1, 1), (512, 14, 512, 3, 2), (512, 7, 512, 3, 1), (512, 7, 2048, 1, 1), (48, 56, 48, 3, 1), (46, 20, 32, 5, 1)]
    table = [conv("conv", 32, c, (side, side), o, k, s) for c, side, o, k, s in sizes]
    return table + [conv("conv", 4, 256, (65, 65), 256, 3, dilation=6), conv("conv", 1, 320, (64, 64), 320, 3),
                    conv("conv", 1, 1280, (8, 8), 1280, 3), conv("conv", 32, 256, (28, 28), 256, 3, groups=32)]


def depthwise():
    lengths = [(8, 512, 4096, 31, None), (16, 256, 1000, 15, None), (4, 1536, 2048, 4, 3), (1, 80, 3000, 7, None), (2, 768, 1024, 127, None)]
    table = [conv("depthwise", b, c, (n,), c, k, groups=c, pad=pad, last=last) for b, c, n, k, pad in lengths for last in (False, True)]
    table.append(conv("depthwise", 4, 256, (56, 56), 256, 31, groups=256))
    return table + [conv("depthwise", 32, c, (side, side), c, k, s, groups=c) for c, side, k, s in
                    ((144, 56, 3, 1), (32, 112, 3, 1), (384, 14, 3, 1), (240, 28, 5, 2), (96, 56, 7, 1), (768, 7, 7, 1))]


def rows():
    both = lambda x: (torch.softmax(x, -1), torch.argmax(x, -1))
    table = [function("rows", f"softmax, argmax {m}x{n}", both, (m, n)) for m, n in ((1024, 50257), (8, 128256), (1, 32000), (4096, 1000))]
    return table + [function("rows", f"argmax {m}x{n}", lambda x: torch.argmax(x, -1), (m, n)) for m, n in ((1024, 50257), (1, 128256))]


def tiny():
    table = [conv("tiny", 1, 16, (1, 200), 2, (1, 5)), conv("tiny", 1, 10, (24, 24), 20, 5), conv("tiny", 1, 51, (40, 40), 51, 5, 5),
             conv("tiny", 1, 8, (32, 32), 16, 3), conv("tiny", 1, 3, (64, 64), 16, 3, 2), conv("tiny", 1, 64, (7, 7), 64, 1)]
    pool = lambda x: nn.functional.max_pool2d(x, 13, 1, 6)
    table.append(function("tiny", "max pool 1x16x6x6 k13", pool, (1, 16, 6, 6)))
    table.append(function("tiny", "relu 1x10", torch.relu, (1, 10)))
    table += [Layer("tiny", f"product {m}x{n}x{k}", lambda k=k, n=n: nn.Linear(k, n), [(m, k)]) for m, n, k in ((17, 73, 512), (1, 10, 128), (33, 65, 97))]
    attention = nn.functional.scaled_dot_product_attention
    table += [function("tiny", f"attention {b}x{h}x{m}x{d}", attention, *[(b, h, m, d)] * 3) for b, h, m, d in ((1, 1, 24, 256), (1, 4, 17, 32))]
    return table


def layers():
    return convolutions() + depthwise() + rows() + tiny()


class PyTorch:
    """A CUDA graph for each way in which PyTorch runs the layer."""

    def __init__(self, layer, module, inputs, compiles):
        self.flush = torch.empty(1 << 28, dtype=torch.uint8, device="cuda")
        self.graphs = {"eager": captured(lambda: module(*inputs))}
        if compiles:
            torch._dynamo.reset()
            compiled = torch.compile(module, dynamic=False)
            self.graphs["compiled"] = captured(lambda: compiled(*inputs))

    def burst(self):
        times = {name: [] for name in self.graphs}
        for _ in range(12):
            for name, replay in self.graphs.items():
                start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                self.flush.zero_()
                start.record()
                replay()
                end.record()
                end.synchronize()
                times[name].append(start.elapsed_time(end))
        return {name: values[1:] for name, values in times.items()}


def heddle_json(options, command, *arguments):
    run = subprocess.run([options.heddle, command, *map(str, arguments), "--target", "cuda", "--json"], capture_output=True, text=True,
                         timeout=300)
    if run.returncode not in (0, 1) or not run.stdout.strip():
        raise RuntimeError((run.stderr or run.stdout).strip()[:300])
    return json.loads(run.stdout)


def measure(options, layer, model):
    torch.manual_seed(0)
    module = layer.module().eval().half().cuda()
    inputs = tuple(torch.randn(shape, device="cuda").half() for shape in layer.inputs)
    with warnings.catch_warnings(action="ignore"):
        torch.onnx.export(module, inputs, str(model), dynamo=False, opset_version=17)
    row = {"kind": layer.kind, "case": layer.text}
    ours, theirs = [], collections.defaultdict(list)
    try:
        row["verified"] = heddle_json(options, "verify", model)["ok"]
        rival = PyTorch(layer, module, inputs, options.compile)
        for _ in range(options.bursts):
            for name, times in rival.burst().items():
                theirs[name] += times
            result = heddle_json(options, "bench", model, "--seconds", 0.2)
            ours.append(result.get("device_cold_p50_ms", result["p50_ms"]))
            row |= {"floor_ms": result["floor_ms"], "launches": result.get("launches")}
    except RuntimeError as error:
        row["failure"] = str(error)
    row["rivals"] = {name: statistics.median(times) for name, times in theirs.items()}
    if ours:
        row |= {"heddle_ms": statistics.median(ours), "ratio": min(row["rivals"].values()) / statistics.median(ours)}
    return row


def print_row(row):
    theirs = ", ".join(f"{name} {ms * 1e3:.1f}" for name, ms in row["rivals"].items())
    if "heddle_ms" in row:
        print(f"{row['kind']} | {row['case']} | {row['heddle_ms'] * 1e3:.1f} | {row['floor_ms'] * 1e3:.1f} | {theirs} | {row['ratio']:.3f}"
              f"{'' if row.get('verified') else ' WRONG'}", flush=True)
    else:
        print(f"{row['kind']} | {row['case']} | {theirs} | FAILED {row.get('failure')}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heddle", default="build/release/heddle")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("build/bench/layers_gpu.json"))
    parser.add_argument("--only", nargs="+", default=[""], help="layers whose kind and text have one of these")
    parser.add_argument("--bursts", type=int, default=3)
    parser.add_argument("--no-compile", dest="compile", action="store_false", help="without PyTorch's compiler")
    options = parser.parse_args()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    torch.backends.cudnn.benchmark = True
    rows_done = []
    print("kind | layer | Heddle us | floor us | PyTorch us | PyTorch's best / Heddle")
    with tempfile.TemporaryDirectory() as folder, torch.inference_mode():
        for layer in layers():
            if not any(word in f"{layer.kind} {layer.text}" for word in options.only):
                continue
            rows_done.append(row := measure(options, layer, pathlib.Path(folder) / "model.onnx"))
            print_row(row)
            document = {"date": datetime.date.today().isoformat(), "device": torch.cuda.get_device_name(), "rows": rows_done}
            options.output.write_text(json.dumps(document, indent=1))
    for kind in dict.fromkeys(row["kind"] for row in rows_done):
        ratios = [row["ratio"] for row in rows_done if row["kind"] == kind and "ratio" in row]
        if ratios:
            print(f"{kind}: geometric mean {geometric_mean(ratios):.3f} over {len(ratios)}, least {min(ratios):.3f}")
    sys.exit(any("failure" in row or not row.get("verified") for row in rows_done))


if __name__ == "__main__":
    main()
