#!/usr/bin/env python3
"""Training on several GPUs of one host: modules compiled by Heddle beside eager PyTorch and Inductor, in turns, under PyTorch's
DistributedDataParallel, FSDP2 and tensor parallel.

usage: training_ranks.py [--ranks N...] [--ways WAY...] [--modes MODE...] [--output FILE] [--bursts N] [--seconds S] [MODEL...]

Models are those of training_gpu.py that have a batch of their own on each rank, and `small`, which also runs on CPUs. Ranks
communicate by NCCL on GPUs and by gloo on CPUs. A step is the forward pass (bf16 autocast on GPUs), the loss, its gradients and
AdamW. One JSON object for each number of ranks, model and way goes to FILE. Its figures, for each mode:

  ms                the time of a step on the slowest rank, the median of its bursts
  alone_ms          the time of a step on the same batch and device without other ranks (not for tensor parallel)
  gradient_error    the largest difference from the gradients that eager PyTorch computes on one rank from the batches of all ranks,
                    divided by the largest gradient of that parameter. It must be at most four times eager's own error, which
                    comes from batch statistics and rounding.
  peak_mb           the peak of allocated memory on the first rank, with parameters and optimiser states
  hidden            the share of the communication that a step of DistributedDataParallel hides: 1 - (ms - alone_ms) / sum_ms
`sum_ms` is the time of an all-reduce of as many bytes as the gradients have, with nothing beside it. The exit status is 1 if a mode
failed or its gradients are off.
"""

import argparse
import datetime
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

MODES, WAYS = ("eager", "default", "heddle"), ("ddp", "fsdp", "tensor")
MOST_OFF = 4  # times eager's error
COLUMNS, ROWS = ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj", "up"), ("o_proj", "down_proj", "down")  # of tensor parallel


def small():
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            return x + self.down(nn.functional.gelu(self.up(self.norm(x))))
    draw = lambda: (torch.randn(8, 64), torch.randint(10, (8,)))  # noqa: E731
    return (lambda: nn.Sequential(nn.Sequential(Block(64), Block(64)), nn.Linear(64, 10))), draw, (
        lambda module, x, y: nn.functional.cross_entropy(module(x), y)), False


def case_of(name):
    if name == "small":
        return small()
    import training_gpu
    return training_gpu.cases()[name]


class Ranks:
    """What the modes of a model have in common."""

    def __init__(self, name, way):
        import torch
        from torch.distributed.device_mesh import init_device_mesh

        self.rank, self.count = torch.distributed.get_rank(), torch.distributed.get_world_size()
        self.device = torch.device("cuda", self.rank) if torch.cuda.is_available() else torch.device("cpu")
        self.mesh = init_device_mesh(self.device.type, (self.count,))
        self.way, (self.make, self.draw, self.loss, self.is_nhwc) = way, case_of(name)
        torch.manual_seed(0)
        self.batches = [self.placed(self.draw()) for _ in range(1 if way == "tensor" else self.count)]
        self.batch = self.batches[self.rank % len(self.batches)]

    def placed(self, batch):
        import torch
        first, *rest = (one.to(self.device) for one in batch)
        return (first.contiguous(memory_format=torch.channels_last) if self.is_nhwc else first, *rest)

    def module(self):
        import torch
        torch.manual_seed(0)
        module = self.make().to(self.device).train()
        for one in module.modules():  # ranks would draw other masks of dropout than one rank draws
            if isinstance(one, torch.nn.Dropout):
                one.p = 0.0
            for name, value in vars(one).items():
                if "dropout" in name and isinstance(value, float):  # of an attention in transformers
                    setattr(one, name, 0.0)
        return module.to(memory_format=torch.channels_last) if self.is_nhwc else module

    def wrapped(self, module):
        import torch
        from torch.distributed.fsdp import fully_shard
        from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
        if self.way == "ddp":
            return torch.nn.parallel.DistributedDataParallel(module, device_ids=[self.rank] if self.device.type == "cuda" else None)
        if self.way == "tensor":
            styles = {**{name: ColwiseParallel() for name in COLUMNS}, **{name: RowwiseParallel() for name in ROWS}}
            plan = {name: styles[name.rpartition(".")[2]] for name, _ in module.named_modules() if name.rpartition(".")[2] in styles}
            if not plan:
                raise ValueError("has no layer that is divided by columns or rows")
            return parallelize_module(module, self.mesh, plan)
        lists = [one for one in module.modules() if isinstance(one, (torch.nn.ModuleList, torch.nn.Sequential)) and len(one) > 1]
        for layer in max(lists, key=len, default=[]):
            fully_shard(layer, mesh=self.mesh)
        return fully_shard(module, mesh=self.mesh)

    def step(self, module, mode, batch):
        """A function that makes a step. It calls its argument between the gradients and the optimiser."""
        import heddle.torch
        import torch
        backend = {"eager": None, "default": "inductor", "heddle": heddle.torch.heddle_backend}[mode]
        run = torch.compile(module, backend=backend) if backend else module
        optimiser = torch.optim.AdamW(module.parameters(), lr=1e-4, fused=self.device.type == "cuda")

        def step(look=lambda: None):
            with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
                value = self.loss(run, *batch)
            value.backward()
            look()
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
        return step

    def expected(self):
        """The gradients of all batches together, by one rank."""
        module = self.module()
        for batch in self.batches:
            (self.loss(module, *batch) / len(self.batches)).backward()
        return [one.grad for one in module.parameters()]

    def wait(self):
        import torch
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def milliseconds(self, call, seconds):
        """The time of a call on the slowest rank."""
        import torch

        def run(count):
            self.wait()
            torch.distributed.barrier()
            start = time.perf_counter()
            for _ in range(count):
                call()
            self.wait()
            return time.perf_counter() - start
        run(2)
        took = torch.tensor([run(1)], device=self.device)
        torch.distributed.all_reduce(took, torch.distributed.ReduceOp.MAX)
        count = max(3, min(100, int(seconds / took.item())))
        took = torch.tensor([run(count) / count], device=self.device)
        torch.distributed.all_reduce(took, torch.distributed.ReduceOp.MAX)
        return 1e3 * took.item()


def error_of(module, expected):
    worst = 0.0
    for parameter, wanted in zip(module.parameters(), expected):
        got = parameter.grad.full_tensor() if hasattr(parameter.grad, "full_tensor") else parameter.grad
        worst = max(worst, ((got - wanted).abs().max() / wanted.abs().max().clamp(min=1e-30)).item())
    return worst


def measure(name, way, options):
    import torch

    ranks = Ranks(name, way)
    row = {"model": name, "way": way, "ranks": ranks.count, "date": datetime.date.today().isoformat(),
           "device": torch.cuda.get_device_name() if ranks.device.type == "cuda" else "CPU",
           "failures": {}, "ms": {}, "alone_ms": {}, "gradient_error": {}, "peak_mb": {}, "hidden": {}}
    expected, steps, alone = ranks.expected(), {}, {}
    torch._dynamo.reset()
    for mode in options.modes:
        if ranks.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
        try:
            wrapped = ranks.wrapped(ranks.module())
            step, errors = ranks.step(wrapped, mode, ranks.batch), []
            step(lambda: errors.append(error_of(wrapped, expected)))
            step()
            row["gradient_error"][mode] = errors[0]
            if ranks.device.type == "cuda":
                row["peak_mb"][mode] = torch.cuda.max_memory_allocated() - before >> 20
            steps[mode] = step
            if way != "tensor":
                alone[mode] = ranks.step(ranks.module(), mode, ranks.batch)
        except Exception as error:  # noqa: BLE001: a row of its own
            row["failures"][mode] = repr(error)[:300]
    buffer = torch.zeros(sum(one.numel() for one in expected), device=ranks.device)
    sums, bursts, single = [], {mode: [] for mode in steps}, {mode: [] for mode in alone}
    for _ in range(options.bursts):
        sums.append(ranks.milliseconds(lambda: torch.distributed.all_reduce(buffer), options.seconds))
        for mode, step in steps.items():
            bursts[mode].append(ranks.milliseconds(step, options.seconds))
        for mode, step in alone.items():
            single[mode].append(ranks.milliseconds(step, options.seconds))
    row["sum_ms"] = statistics.median(sums)
    for mode, times in bursts.items():
        row["ms"][mode] = statistics.median(times)
    for mode, times in single.items():
        row["alone_ms"][mode] = statistics.median(times)
        if way == "ddp":
            row["hidden"][mode] = 1 - (row["ms"][mode] - row["alone_ms"][mode]) / row["sum_ms"]
    return row


def worker(options):
    import torch

    is_gpu = torch.cuda.is_available()
    if is_gpu:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        torch.backends.cudnn.benchmark = True
        torch.set_float32_matmul_precision("high")
    torch.distributed.init_process_group("nccl" if is_gpu else "gloo")
    for name in options.models:
        for way in options.ways:
            row = measure(name, way, options)
            if torch.distributed.get_rank() == 0:
                with open(options.worker, "a", encoding="utf-8") as rows:
                    rows.write(json.dumps(row) + "\n")
    torch.distributed.destroy_process_group()


def off(row):
    errors = row["gradient_error"]
    return [mode for mode, error in errors.items() if not error <= MOST_OFF * max(errors.get("eager", 0), 1e-5)]


def over_rivals(row):
    rivals = [row["ms"][mode] for mode in ("eager", "default") if mode in row["ms"]]
    return min(rivals) / row["ms"]["heddle"] if rivals and "heddle" in row["ms"] else None


def print_row(row, modes):
    cells = [f"{row['ms'][mode]:.2f} ms, error {row['gradient_error'][mode]:.1e}, hidden "
             f"{row['hidden'].get(mode, math.nan):.2f}, {row['peak_mb'].get(mode, 0)} MB" if mode in row["ms"] else "failed" for mode in modes]
    notes = [f"{mode}: {text}" for mode, text in row["failures"].items()] + [f"{mode}: gradients are off" for mode in off(row)]
    print(f"{row['model']} | {row['way']} | {row['ranks']} | " + " | ".join(cells) + f" | {over_rivals(row) or math.nan:.3f} | {'; '.join(notes)}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=["resnet50:64", "bert-base:32:128", "gpt2:8:1024", "llama-8l:2:2048"])
    parser.add_argument("--ranks", type=int, nargs="+", default=[2])
    parser.add_argument("--ways", nargs="+", default=["ddp", "fsdp"], choices=WAYS)
    parser.add_argument("--modes", nargs="+", default=MODES, choices=MODES)
    parser.add_argument("--output")
    parser.add_argument("--bursts", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return worker(options)
    rows, failed = [], False
    print("model | way | ranks | " + " | ".join(options.modes) + " | over PyTorch | notes")
    with tempfile.TemporaryDirectory() as folder:
        for count in options.ranks:
            found = pathlib.Path(folder) / str(count)
            arguments = [*options.models, "--ways", *options.ways, "--modes", *options.modes, "--bursts", str(options.bursts),
                         "--seconds", str(options.seconds), "--worker", str(found)]
            run = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count), __file__, *arguments])
            failed |= run.returncode != 0
            for line in found.read_text().splitlines() if found.exists() else []:
                rows.append(row := json.loads(line))
                print_row(row, options.modes)
                failed |= bool(row["failures"] or off(row))
    if options.output:
        pathlib.Path(options.output).write_text("".join(json.dumps(row) + "\n" for row in rows))
    known = [value for value in map(over_rivals, rows) if value]
    if known:
        print(f"over PyTorch: the better of its modes over Heddle; geometric mean {math.exp(statistics.mean(map(math.log, known))):.3f}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
