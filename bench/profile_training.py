#!/usr/bin/env python3
"""What profiling a training step costs, and whether what it says is right, beside PyTorch's own profiler.

Steps of eager PyTorch (forward, backward, optimiser) run plain and profiled, alternating, in a process for each profiler:
heddle.profile() and torch.profiler. CUPTI serves one of them in a process, and torch.profiler keeps it once it has run. A time
is the median over rounds, an overhead that over the plain steps of the same process. Compared besides, of the same number
of steps: the time of all kernels with Kineto's; the shares of a network's parts in the forward pass with CUDA events around
each part; the call that copies most to the device, which has to be model.to(device); and the weights after the steps, which
have to be the same bits.

Of Heddle's own models (--onnx, files of `heddle zoo`) the time of a run, a CUDA graph, plain and recorded.

usage: PYTHONPATH=build/release/python python3 bench/profile_training.py [--models mnist,resnet50,bert] [--onnx FILE...]
                                                                         [-o FILE]
Needs torch, timm (resnet50) and transformers (bert); --device cpu tries the script itself.
"""
import argparse
import json
import statistics
import subprocess
import sys
import time

import torch
from torch import nn

import heddle

ROUNDS = 5
PARTS = {"resnet50": ["layer1", "layer2", "layer3", "layer4"], "bert": ["embeddings", "encoder"], "mnist": ["features", "classifier"]}


class Mnist(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
        self.classifier = nn.Sequential(nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10))

    def forward(self, x):
        return self.classifier(self.features(x))


def make_mnist():
    return Mnist(), (torch.randn(64, 1, 28, 28), torch.randint(0, 10, (64,)))


def make_resnet50():
    import timm

    return timm.create_model("resnet50"), (torch.randn(64, 3, 224, 224), torch.randint(0, 1000, (64,)))


class Bert(nn.Module):
    """A classifier on BERT-base with weights at random."""

    def __init__(self):
        super().__init__()
        from transformers import BertConfig, BertModel

        model = BertModel(BertConfig(), add_pooling_layer=False)
        self.embeddings, self.encoder, self.head = model.embeddings, model.encoder, nn.Linear(768, 2)

    def forward(self, tokens):
        return self.head(self.encoder(self.embeddings(tokens))[0][:, 0])


def make_bert():
    return Bert(), (torch.randint(0, 30000, (16, 128)), torch.randint(0, 2, (16,)))


MAKERS = {"mnist": make_mnist, "resnet50": make_resnet50, "bert": make_bert}


class Training:
    def __init__(self, name, device):
        torch.manual_seed(0)
        self.device = device
        model, batch = MAKERS[name]()
        self.model = model.to(device)
        self.x, self.y = (part.to(device) for part in batch)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)

    def steps(self, count):
        for _ in range(count):
            self.optimizer.zero_grad()
            nn.functional.cross_entropy(self.model(self.x), self.y).backward()
            self.optimizer.step()
        self.wait()

    def wait(self):
        if self.device.startswith("cuda"):
            torch.cuda.synchronize()

    def seconds(self, count):
        self.wait()
        begin = time.perf_counter()
        self.steps(count)
        return (time.perf_counter() - begin) / count


def by_heddle(training, count, operators=False):
    with heddle.profile(training.model.__class__.__name__, operators=operators) as recording:
        seconds = training.seconds(count)
    return seconds, recording.profile.data


def by_torch(training, count, with_stack=False):
    kinds = [torch.profiler.ProfilerActivity.CPU]
    if training.device.startswith("cuda"):
        kinds.append(torch.profiler.ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=kinds, with_stack=with_stack, acc_events=True) as profiler:
        seconds = training.seconds(count)
    return seconds, profiler


def seconds_of_kernels(profiler):
    return 1e-6 * sum(event.device_time for event in profiler.events() if event.device_type == torch.autograd.DeviceType.CUDA
                      and not event.name.startswith(("Memcpy", "Memset")))


class Tree:
    """Sums over the rows of a profile."""

    def __init__(self, data):
        nodes, strings, frames = data["nodes"], data["strings"], data["frames"]
        self.parents, self.values = nodes["parent"], nodes["values"]
        self.names = [strings[frames["name"][frame]] for frame in nodes["frame"]]
        self.kinds = [frames["kind"][frame] for frame in nodes["frame"]]
        self.lines = [frames["line"][frame] for frame in nodes["frame"]]

    def total(self, metric):
        return sum(self.values.get(metric, [])) * 1e-9

    def path(self, node):
        while node > 0:
            yield node
            node = self.parents[node]

    def below(self, metric, *frames):
        """What rows cost that are below frames of each of these kinds and names."""
        found = 0
        for node, value in enumerate(self.values.get(metric, [])):
            if value:
                path = {(self.kinds[at], self.names[at]) for at in self.path(node)}
                found += value if path.issuperset(frames) else 0
        return found * 1e-9

    def below_lines(self, metric):
        """What rows cost that are below a line of Python."""
        values = enumerate(self.values.get(metric, []))
        return sum(value for node, value in values if value and any(self.kinds[at] == "python" for at in self.path(node))) * 1e-9

    def heaviest(self, metric):
        """The path to the row with the most of its own, the outermost first."""
        values = self.values.get(metric, [0])
        node = max(range(len(values)), key=values.__getitem__)
        return [f"{self.names[at]}:{self.lines[at]}" for at in reversed(list(self.path(node)))]


def shares_by_events(training, parts, count):
    """Shares of the parts in their sum, in the forward pass, by CUDA events around each."""
    times, open_events, handles = dict.fromkeys(parts, 0.0), {}, []

    def before(name):
        def hook(*_):
            open_events.setdefault(name, []).append([torch.cuda.Event(enable_timing=True) for _ in range(2)])
            open_events[name][-1][0].record()
        return hook

    def after(name):
        return lambda *_: open_events[name][-1][1].record()

    for name in parts:
        module = training.model.get_submodule(name)
        handles += [module.register_forward_pre_hook(before(name)), module.register_forward_hook(after(name))]
    training.steps(count)
    for handle in handles:
        handle.remove()
    for name in parts:
        times[name] = sum(begin.elapsed_time(end) for begin, end in open_events[name])
    return {name: value / sum(times.values()) for name, value in times.items()}


def same_bits(name, device, count):
    """Whether training under the profiler leaves the weights that it leaves otherwise."""
    results = []
    torch.use_deterministic_algorithms(True, warn_only=True)
    for profiled in (False, True):
        training = Training(name, device)
        if profiled:
            by_heddle(training, count)
        else:
            training.steps(count)
        results.append([parameter.detach().cpu() for parameter in training.model.parameters()])
    torch.use_deterministic_algorithms(False)
    return all(torch.equal(a, b) for a, b in zip(*results))


def medians(times):
    """Milliseconds of a step by mode, and what each mode takes beyond the plain steps."""
    median = {mode: statistics.median(values) for mode, values in times.items() if values}
    return {"ms of a step": {mode: round(value * 1e3, 3) for mode, value in median.items()},
            "overhead": {mode: round(value / median["plain"] - 1, 4) for mode, value in median.items() if mode != "plain"}}


def measure_heddle(name, device, count):
    training = Training(name, device)
    training.steps(3)
    times, kernels = {"plain": [], "heddle": [], "heddle, operators": []}, []
    for _ in range(ROUNDS):
        times["plain"].append(training.seconds(count))
        seconds, data = by_heddle(training, count)
        times["heddle"].append(seconds)
        kernels.append(Tree(data).total("GKER"))
        if device.startswith("cuda"):
            times["heddle, operators"].append(by_heddle(training, count, operators=True)[0])
    row = medians(times) | {"same bits": same_bits(name, device, 3), "facts": dict(data["facts"])}
    if device.startswith("cuda"):
        tree, parts = Tree(data), PARTS[name]
        ours = {part: tree.below("GBUSY", ("phase", "forward"), ("module", part)) for part in parts}
        row["seconds of kernels"] = statistics.median(kernels)
        row["forward shares"] = {part: round(value / max(sum(ours.values()), 1e-12), 4) for part, value in ours.items()}
        row["forward shares by events"] = {part: round(value, 4) for part, value in shares_by_events(training, parts, count).items()}
        row["kernels below lines of Python"] = round(tree.below_lines("GKER") / max(tree.total("GKER"), 1e-12), 4)
        row["heaviest kernel"] = tree.heaviest("GKER")
        with heddle.profile() as recording:
            Training(name, device)
        row["heaviest copy"] = Tree(recording.profile.data).heaviest("GXCOPY:H2D")
    return row


def measure_torch(name, device, count):
    training = Training(name, device)
    training.steps(3)
    times, kernels = {"plain": [], "torch": [], "torch, with stacks": []}, []
    for _ in range(ROUNDS):
        times["plain"].append(training.seconds(count))
        seconds, profiler = by_torch(training, count)
        times["torch"].append(seconds)
        kernels.append(seconds_of_kernels(profiler))
        times["torch, with stacks"].append(by_torch(training, count, with_stack=True)[0])
    row = medians(times)
    if device.startswith("cuda"):
        row["seconds of kernels"] = statistics.median(kernels)
    return row


def measure_compiled(path, device, count):
    """A model of Heddle's in f16: runs plain and recorded; the first runs of a recording, which capture the graph, do not count."""
    on_gpu = device.startswith("cuda")
    model = heddle.compile(path, target=device, precision="f16" if on_gpu else "f32")
    types = {"f32": torch.float32, "f16": torch.float16, "i64": torch.int64, "i32": torch.int32}
    inputs = [torch.ones(port.shape, dtype=types[port.dtype], device=device) for port in model.inputs]
    wait = torch.cuda.synchronize if on_gpu else lambda: None

    def seconds():
        for _ in range(3):
            model(*inputs)
        wait()
        begin = time.perf_counter()
        for _ in range(count):
            model(*inputs)
        wait()
        return (time.perf_counter() - begin) / count

    seconds()
    times = {"plain": [], "heddle": []}
    for _ in range(ROUNDS):
        times["plain"].append(seconds())
        with heddle.profile() as recording:
            times["heddle"].append(seconds())
    return medians(times) | {"facts": dict(recording.profile.data["facts"])}


WORKERS = {"heddle": measure_heddle, "torch": measure_torch}
RUNS_OF_COMPILED = 200


def measure(name, device, count, workers):
    row = {"model": name, "steps": count}
    for worker in workers:
        command = [sys.executable, __file__, "--worker", worker, "--models", name, "--device", device, "--steps", str(count)]
        row[worker] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    if device.startswith("cuda") and set(workers) == set(WORKERS):
        kernels = {worker: row[worker]["seconds of kernels"] for worker in WORKERS}
        row["kernels, over Kineto's"] = round(kernels["heddle"] / kernels["torch"], 4)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="mnist,resnet50,bert")
    parser.add_argument("--onnx", nargs="*", default=[], metavar="FILE", help="models that Heddle compiles; --models '' for these alone")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--workers", default=",".join(WORKERS), help="which profilers")
    parser.add_argument("-o", "--output")
    parser.add_argument("--worker", choices=WORKERS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        print(json.dumps(WORKERS[arguments.worker](arguments.models, arguments.device, arguments.steps)))
        return 0
    rows = []
    for path in arguments.onnx:
        rows.append({"model": path, "heddle": measure_compiled(path, arguments.device, RUNS_OF_COMPILED)})
        print(json.dumps(rows[-1], indent=1), flush=True)
    for name in filter(None, arguments.models.split(",")):
        rows.append(measure(name, arguments.device, arguments.steps, arguments.workers.split(",")))
        print(json.dumps(rows[-1], indent=1), flush=True)
    if arguments.output:
        device = torch.cuda.get_device_name() if arguments.device.startswith("cuda") else "cpu"
        with open(arguments.output, "w", encoding="utf-8") as file:
            json.dump({"device": device, "torch": torch.__version__, "rows": rows}, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
