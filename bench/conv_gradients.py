#!/usr/bin/env python3
"""Gradients of convolutions on a GPU beside cuDNN's: those of the filters and those of the image, each alone. One line per
gradient, geometric means and the worst at the end.

usage: conv_gradients.py [--heddle PATH] [--output FILE] [--only SUBSTRING...] [--bursts N] [--jobs N] [--list] [--write FOLDER]

Convolutions of ResNet-50, ConvNeXt, UNet and MobileNetV3. All tensors are bf16 with their channels last, as in a training step
under autocast; the graphs are those that torch.compile(backend="heddle") makes of aten.convolution_backward. PyTorch runs that
operator with cudnn.benchmark. Results are first compared with the float64 reference, --jobs at a time. Then bursts of both
alternate, as CUDA graphs with a cold L2; a time is the median of all runs. The output is written after each gradient, so that a
run which is cut leaves what it has. `--list` names the gradients, `--write` writes their graphs; neither needs a GPU. Exit status
1 where a result is wrong or a kernel fails."""

import argparse
import collections
import concurrent.futures
import datetime
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

from report_gpu import geometric_mean

Conv = collections.namedtuple("Conv", "model batch channels side filters kernel stride pad groups", defaults=[1, 0, 1])
TYPE = "bf16"


def convolutions():
    resnet = [(3, 224, 64, 7, 2, 3), (64, 56, 64, 3, 1, 1), (256, 56, 64, 1), (64, 56, 256, 1), (256, 56, 512, 1, 2), (128, 56, 128, 3, 2, 1),
              (128, 28, 128, 3, 1, 1), (256, 14, 256, 3, 1, 1), (1024, 14, 256, 1), (512, 7, 512, 3, 1, 1)]
    convnext = [(3, 224, 96, 4, 4), (96, 56, 192, 2, 2), (96, 56, 96, 7, 1, 3, 96), (384, 14, 384, 7, 1, 3, 384)]
    unet = [(64, 256, 64, 3, 1, 1), (512, 32, 512, 3, 1, 1), (320, 64, 320, 3, 1, 1)]
    mobilenet = [(64, 112, 64, 3, 2, 1, 64), (120, 28, 120, 5, 1, 2, 120), (672, 14, 672, 5, 2, 2, 672)]
    return ([Conv("resnet50", 64, *one) for one in resnet] + [Conv("convnext", 64, *one) for one in convnext] +
            [Conv("unet", 4, *one) for one in unet] + [Conv("mobilenetv3", 64, *one) for one in mobilenet])


def gradients():
    """Of the filters of each convolution, and of its image unless that is the model's input."""
    return [(of, conv) for conv in convolutions() for of in ("filters", "image") if of == "filters" or conv.channels > 3]


def text_of(of, conv):
    text = f"{conv.model} {of} {conv.batch}x{conv.side}x{conv.side}x{conv.channels} to {conv.filters} k{conv.kernel}"
    return text + (f" s{conv.stride}" if conv.stride > 1 else "") + (f" g{conv.groups}" if conv.groups > 1 else "")


def results(conv):
    """The side of the convolution's results."""
    return (conv.side + 2 * conv.pad - conv.kernel) // conv.stride + 1


class Graph:
    """Lines of textual IR."""

    def __init__(self, **inputs):
        self.heads = ", ".join(f"%{name}: {self.typed(shape)}" for name, shape in inputs.items())
        self.lines = []

    @staticmethod
    def typed(shape):
        return f"{TYPE}[{','.join(map(str, shape))}]"

    def add(self, name, call, extents, **attributes):
        values = ", ".join(f'{key} = "{value}"' if isinstance(value, str) else f"{key} = {value}" for key, value in attributes.items())
        self.lines.append(f"  %{name} = {call} {{{values}}} : {self.typed(extents)}")

    def text(self, name, result):
        return "\n".join([f"graph g({self.heads}) {{", *self.lines, f'  return "{name}" = %{result}', "}", ""])


def conv_attributes(groups, stride, low, high, dilation, spread):
    return {"groups": groups, "layout": "nchw", "strides": [stride] * 2, "low": [low] * 2, "high": [high] * 2,
            "dilations": [dilation] * 2, "lhs_dilations": [spread] * 2}


def filter_gradient(conv):
    n, side, c, o, k, g, out = conv.batch, conv.side, conv.channels, conv.filters, conv.kernel, conv.groups, results(conv)
    graph = Graph(x=(n, side, side, c), dy=(n, out, out, o))
    graph.add("image", "transpose(%x)", (n, c, side, side), perm=[0, 3, 1, 2])
    graph.add("of_results", "transpose(%dy)", (n, o, out, out), perm=[0, 3, 1, 2])
    graph.add("groups", "reshape(%image)", (n, g, c // g, side, side), shape=[n, g, c // g, side, side])
    graph.add("channels_first", "transpose(%groups)", (c // g, g, n, side, side), perm=[2, 1, 0, 3, 4])
    graph.add("channels", "reshape(%channels_first)", (c // g, g * n, side, side), shape=[c // g, g * n, side, side])
    graph.add("windows", "transpose(%of_results)", (o, n, out, out), perm=[1, 0, 2, 3])
    high = (out - 1) * conv.stride + k - side - conv.pad
    graph.add("y", "conv(%channels, %windows)", (c // g, o, k, k), **conv_attributes(g, 1, conv.pad, high, conv.stride, 1))
    graph.add("last", "transpose(%y)", (o, k, k, c // g), perm=[1, 2, 3, 0])
    return graph.text("dw", "last")


def image_gradient(conv):
    n, side, c, o, k, g, out = conv.batch, conv.side, conv.channels, conv.filters, conv.kernel, conv.groups, results(conv)
    graph = Graph(dy=(n, out, out, o), w=(o, k, k, c // g))
    graph.add("of_results", "transpose(%dy)", (n, o, out, out), perm=[0, 3, 1, 2])
    graph.add("filters", "transpose(%w)", (o, c // g, k, k), perm=[0, 3, 1, 2])
    graph.add("groups", "reshape(%filters)", (g, o // g, c // g, k, k), shape=[g, o // g, c // g, k, k])
    graph.add("turned", "transpose(%groups)", (g, c // g, o // g, k, k), perm=[0, 2, 1, 3, 4])
    graph.add("of_channels", "reshape(%turned)", (c, o // g, k, k), shape=[c, o // g, k, k])
    graph.add("mirrored", "reverse(%of_channels)", (c, o // g, k, k), dims=[2, 3])
    low = k - 1 - conv.pad
    high = side + k - 1 - ((out - 1) * conv.stride + 1) - low
    graph.add("y", "conv(%of_results, %mirrored)", (n, c, side, side), **conv_attributes(g, 1, low, high, 1, conv.stride))
    graph.add("last", "transpose(%y)", (n, side, side, c), perm=[0, 2, 3, 1])
    return graph.text("dx", "last")


def graph_text(of, conv):
    return filter_gradient(conv) if of == "filters" else image_gradient(conv)


class PyTorch:
    """A CUDA graph of aten.convolution_backward."""

    def __init__(self, of, conv):
        import torch
        from torch_worker import captured
        self.torch, out, last = torch, results(conv), torch.channels_last
        draw = lambda *shape: torch.randn(shape, device="cuda").bfloat16().to(memory_format=last)
        gradient, x = draw(conv.batch, conv.filters, out, out), draw(conv.batch, conv.channels, conv.side, conv.side)
        w = draw(conv.filters, conv.channels // conv.groups, conv.kernel, conv.kernel)
        wanted = [of == "image", of == "filters", False]
        self.flush = torch.empty(1 << 28, dtype=torch.uint8, device="cuda")
        torch.backends.cudnn.benchmark = True
        self.replay = captured(lambda: torch.ops.aten.convolution_backward(
            gradient, x, w, None, [conv.stride] * 2, [conv.pad] * 2, [1, 1], False, [0, 0], conv.groups, wanted))

    def burst(self):
        times = []
        for _ in range(12):
            start, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
            self.flush.zero_()
            start.record()
            self.replay()
            end.record()
            end.synchronize()
            times.append(start.elapsed_time(end))
        return times[1:]


def verified(options, of, conv, model):
    from layers_gpu import heddle_json
    model.write_text(graph_text(of, conv))
    row = {"kind": of, "case": text_of(of, conv)}
    try:
        row["verified"] = heddle_json(options, "verify", model)["ok"]
    except RuntimeError as error:
        row["failure"] = str(error)
    return row


def measure(options, of, conv, model, row):
    from layers_gpu import heddle_json
    ours, theirs = [], []
    try:
        rival = PyTorch(of, conv)
        for _ in range(options.bursts):
            theirs += rival.burst()
            result = heddle_json(options, "bench", model, "--seconds", 0.2)
            ours.append(result.get("device_cold_p50_ms", result["p50_ms"]))
            row |= {"floor_ms": result["floor_ms"], "launches": result.get("launches")}
        heddle, cudnn = statistics.median(ours), statistics.median(theirs)
        row |= {"heddle_ms": heddle, "cudnn_ms": cudnn, "ratio": cudnn / heddle}
    except RuntimeError as error:
        row["failure"] = str(error)


def print_row(row):
    if "failure" in row:
        print(f"{row['case']} | FAILED {row['failure']}", flush=True)
    else:
        us = " | ".join(f"{row[name] * 1e3:.1f}" for name in ("heddle_ms", "floor_ms", "cudnn_ms"))
        print(f"{row['case']} | {us} | {row['ratio']:.3f}{'' if row['verified'] else ' WRONG'}", flush=True)


def facts():
    import torch
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=pathlib.Path(__file__).parent)
    return {"date": datetime.date.today().isoformat(), "device": torch.cuda.get_device_name(), "commit": commit.stdout.strip(),
            "torch": torch.__version__, "cudnn": torch.backends.cudnn.version()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heddle", default="build/release/heddle")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("build/bench/conv_gradients.json"))
    parser.add_argument("--only", nargs="+", default=[""], help="gradients whose text has one of these")
    parser.add_argument("--bursts", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=4, help="comparisons with the reference at a time")
    parser.add_argument("--list", action="store_true", help="only name the gradients")
    parser.add_argument("--write", type=pathlib.Path, help="only write the graphs into this folder")
    options = parser.parse_args()
    chosen = [one for one in gradients() if any(word in text_of(*one) for word in options.only)]
    if options.list or options.write:
        for one in chosen:
            print(text_of(*one))
            if options.write:
                options.write.mkdir(parents=True, exist_ok=True)
                (options.write / f"{text_of(*one).replace(' ', '_')}.hir").write_text(graph_text(*one))
        return
    options.output.parent.mkdir(parents=True, exist_ok=True)
    about = facts()
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        models = [pathlib.Path(folder) / f"{index}.hir" for index in range(len(chosen))]
        rows = list(pool.map(lambda one, model: verified(options, *one, model), chosen, models))
        print("gradient | Heddle us | floor us | cuDNN us | cuDNN / Heddle")
        for index, (one, model, row) in enumerate(zip(chosen, models, rows)):
            if "failure" not in row:
                measure(options, *one, model, row)
            print_row(row)
            options.output.write_text(json.dumps(about | {"rows": rows[:index + 1]}, indent=1))
    for of in ("filters", "image"):
        ratios = [row["ratio"] for row in rows if row["kind"] == of and "ratio" in row]
        if ratios:
            print(f"gradients of the {of}: geometric mean {geometric_mean(ratios):.3f} over {len(ratios)}, least {min(ratios):.3f}")
    sys.exit(any("failure" in row or not row["verified"] for row in rows))


if __name__ == "__main__":
    main()
