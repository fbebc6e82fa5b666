#!/usr/bin/env python3
"""Training steps on a GPU: torch.compile(backend="heddle") beside PyTorch's eager, default, reduce-overhead and max-autotune modes.

usage: training_gpu.py [--output FILE] [--modes MODE...] [--bursts N] [--seconds S] [--jobs N] [--prepare S] [--profile]
                       [MODEL...]

A step is the forward pass under bf16 autocast, the loss, its gradients and AdamW. PyTorch's modes use its fused AdamW;
`heddle` uses it, too; `heddle_optim` also uses heddle.torch.optim and, for recurrent networks, heddle.torch.prepare.

Models are prepared --jobs at a time, each in a process of its own: the device holds the parameters and graphs of all modes of as
many models. Then nothing else runs, and bursts of the modes alternate, model by model, before the next are prepared. A time is
the median of its bursts, in ms, from the start of the first step of a burst to the end of the last one on the device. `peak_mb` is the peak of allocated memory of the first steps, with parameters and optimiser states. `losses` are
those of the first four steps. One JSON object a model goes to FILE; a table and geometric means are printed, with losing rows.
--prepare gives up models that are not prepared after so many seconds. --profile adds the kernels that take most of a step. Exit status 1 where Heddle failed.
"""

import argparse
import concurrent.futures
import datetime
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

MODES = ("eager", "default", "reduce_overhead", "max_autotune", "heddle", "heddle_optim")
RIVALS, OURS = MODES[:4], MODES[4:]
USUAL = tuple(mode for mode in MODES if mode != "max_autotune")  # which takes minutes to compile a model


def crnn():
    from torch import nn

    class Crnn(nn.Module):
        def __init__(self):
            super().__init__()
            blocks = []
            for before, width, pool in ((1, 64, 2), (64, 128, 2), (128, 256, (2, 1)), (256, 256, (2, 1)), (256, 512, (2, 1))):
                blocks += [nn.Conv2d(before, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(pool)]
            self.features, self.recurrent = nn.Sequential(*blocks), nn.LSTM(512, 256, 2, bidirectional=True, batch_first=True)
            self.out = nn.Linear(512, 40)

        def forward(self, x):
            return self.out(self.recurrent(self.features(x).squeeze(2).transpose(1, 2))[0])
    return Crnn()


def dien():
    import torch
    from torch import nn

    class Dien(nn.Module):
        def __init__(self):
            super().__init__()
            self.items, self.interest = nn.Embedding(100000, 64), nn.GRU(64, 64, batch_first=True)
            self.attention = nn.Sequential(nn.Linear(256, 80), nn.Sigmoid(), nn.Linear(80, 40), nn.Sigmoid(), nn.Linear(40, 1))
            self.out = nn.Sequential(nn.Linear(192, 200), nn.PReLU(), nn.Linear(200, 80), nn.PReLU(), nn.Linear(80, 2))

        def forward(self, history, target):
            seen, wanted = self.items(history), self.items(target)
            states = self.interest(seen)[0]
            query = wanted[:, None].expand_as(states)
            weights = self.attention(torch.cat([query, states, query - states, query * states], -1)).softmax(1)
            return self.out(torch.cat([(weights * states).sum(1), wanted, seen.mean(1)], -1))
    return Dien()


def cases():
    """By name: a function that makes the module, one that makes a batch, the loss, and whether images are NHWC."""
    import torch
    import torchvision.models
    import transformers
    from torch.nn.functional import cross_entropy, mse_loss

    def classifier(name, batch):
        return (lambda: getattr(torchvision.models, name)(weights=None),
                lambda: (torch.randn(batch, 3, 224, 224), torch.randint(1000, (batch,))), lambda m, x, y: cross_entropy(m(x), y), True)

    def language_model(make, batch, length, vocabulary):
        return make, lambda: (torch.randint(vocabulary, (batch, length)),), lambda m, x: m(input_ids=x, labels=x).loss, False

    def llama():
        return transformers.LlamaForCausalLM(transformers.LlamaConfig(
            num_hidden_layers=8, hidden_size=2048, intermediate_size=8192, num_attention_heads=32, num_key_value_heads=8, vocab_size=32000))

    def checkpointed_llama():
        model = llama()
        model.gradient_checkpointing_enable({"use_reentrant": False})
        return model

    def mamba():
        return transformers.MambaForCausalLM(transformers.MambaConfig(num_hidden_layers=4))

    def denoiser(batch):
        import torch_models

        return (lambda: torch_models.make("sd-unet", batch)[0], lambda: (*torch_models.inputs_of("sd-unet", batch, 0), torch.randn(batch, 4, 64, 64)),
                lambda m, x, step, context, noise: mse_loss(m(x, step, context).float(), noise), True)
    return {
        "resnet50:64": classifier("resnet50", 64), "vit_b16:64": classifier("vit_b_16", 64), "swin_t:64": classifier("swin_t", 64),
        "convnext_tiny:64": classifier("convnext_tiny", 64), "mobilenet_v3:64": classifier("mobilenet_v3_large", 64),
        "bert-base:32:128": language_model(lambda: transformers.BertForMaskedLM(transformers.BertConfig()), 32, 128, 30000),
        "gpt2:8:1024": language_model(lambda: transformers.GPT2LMHeadModel(transformers.GPT2Config()), 8, 1024, 50257),
        "llama-8l:2:2048": language_model(llama, 2, 2048, 32000),
        "llama-8l-checkpointed:2:2048": language_model(checkpointed_llama, 2, 2048, 32000),
        "mamba-4l:8:64": language_model(mamba, 8, 64, 32000), "sd-unet:4": denoiser(4),
        "t5-small:16:256": language_model(lambda: transformers.T5ForConditionalGeneration(transformers.T5Config(decoder_start_token_id=0)), 16, 256, 32000),
        "crnn:64": (crnn, lambda: (torch.randn(64, 1, 32, 256), torch.randint(40, (64, 64))),
                    lambda m, x, y: cross_entropy(m(x).flatten(0, 1), y.flatten()), False),
        "dien:1024": (dien, lambda: (torch.randint(100000, (1024, 100)), torch.randint(100000, (1024,)), torch.randint(2, (1024,))),
                      lambda m, history, target, y: cross_entropy(m(history, target), y), False)}


def step_of(case, mode):
    """A function that trains for one step and returns the loss."""
    import torch

    make, data, loss, is_nhwc = case
    torch._dynamo.reset()
    torch.manual_seed(0)
    module, batch = make().cuda().train(), tuple(one.cuda() for one in data())
    if is_nhwc:
        module = module.to(memory_format=torch.channels_last)
        batch = (batch[0].contiguous(memory_format=torch.channels_last), *batch[1:])
    if mode == "heddle_optim":
        import heddle.torch

        module = heddle.torch.prepare(module)
        optimiser = heddle.torch.optim.AdamW(module.parameters(), lr=1e-4)
    else:
        optimiser = torch.optim.AdamW(module.parameters(), lr=1e-4, fused=True)

    def forward():
        with torch.autocast("cuda", torch.bfloat16):
            return loss(module, *batch)
    words = {"default": {}, "reduce_overhead": {"mode": "reduce-overhead"}, "max_autotune": {"mode": "max-autotune"}}.get(mode, {"backend": "heddle"})
    run = forward if mode == "eager" else torch.compile(forward, **words)

    def step():
        if mode in ("reduce_overhead", "max_autotune"):
            torch.compiler.cudagraph_mark_step_begin()
        value = run()
        value.backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        return value
    return step


def worker(name, modes, profiles):
    """Prepares the modes and prints one JSON line about them. Then measures for each number of seconds that it reads from its input."""
    import warnings

    import torch

    say, sys.stdout = sys.stdout, sys.stderr
    warnings.filterwarnings("ignore")
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    row, steps = {"failures": {}, "ready_s": {}, "peak_mb": {}, "losses": {}}, {}
    for mode in modes:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before, start = torch.cuda.memory_allocated(), time.time()
        try:
            step = step_of(cases()[name], mode)
            row["losses"][mode] = [round(step().item(), 4) for _ in range(4)]
            torch.cuda.synchronize()
            row["ready_s"][mode] = round(time.time() - start, 1)
            row["peak_mb"][mode] = torch.cuda.max_memory_allocated() - before >> 20
            steps[mode] = step
        except Exception as error:  # noqa: BLE001: a row of its own
            row["failures"][mode] = repr(error)[:300]
    torch.cuda.empty_cache()
    print(json.dumps(row), file=say, flush=True)
    for line in sys.stdin:
        times = {}
        for mode, step in steps.items():
            times[mode] = milliseconds(step, float(line))
        if profiles:
            profiles, times["kernels"] = False, {mode: kernels(steps[mode]) for mode in OURS if mode in steps}
        print(json.dumps(times), file=say, flush=True)


def milliseconds(step, seconds):
    import torch

    def run(count):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(count):
            step()
        torch.cuda.synchronize()
        return time.perf_counter() - start
    run(2)
    count = max(3, min(100, int(seconds / run(1))))
    return 1e3 * run(count) / count


def kernels(step, most=60):
    """Names, calls and microseconds of the kernels of a step. Those of Heddle may begin before the kernel that they wait for ends."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as taken:
        step()
        torch.cuda.synchronize()
    rows = sorted(taken.key_averages(), key=lambda one: -one.self_device_time_total)
    return [(one.key[:80], one.count, round(one.self_device_time_total)) for one in rows[:most]]


class Model:
    def __init__(self, name, options, folder):
        self.row, self.bursts, self.path = {"model": name}, {}, os.path.join(folder, name.replace(":", "_") + ".log")
        command = [sys.executable, __file__, "--worker", name, "--modes", *options.modes, *["--profile"] * options.profile]
        self.log = open(self.path, "w")
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True,
                                      env={**os.environ, "OMP_NUM_THREADS": "2", "TORCHINDUCTOR_COMPILE_THREADS": "2"})
        late = threading.Timer(options.prepare, self.child.kill) if options.prepare else None
        if late:
            late.start()
        self.row.update(self.answer())
        if late:
            late.cancel()

    def answer(self):
        line = self.child.stdout.readline()
        if line:
            return json.loads(line)
        with open(self.path, encoding="utf-8") as log:
            return {"failures": {"worker": f"exit status {self.child.wait()}: {log.read()[-300:]}"}}

    def burst(self, seconds):
        try:
            self.child.stdin.write(f"{seconds}\n")
            self.child.stdin.flush()
        except BrokenPipeError:  # what the log says stands in the row
            return
        times = self.answer()
        self.row.setdefault("kernels", {}).update(times.pop("kernels", {}))
        self.row["failures"].update(times.pop("failures", {}))
        for mode, one in times.items():
            self.bursts.setdefault(mode, []).append(one)

    def finish(self):
        self.child.kill()
        self.log.close()
        self.row["ms"] = {mode: round(statistics.median(times), 3) for mode, times in self.bursts.items()}


def ratio(row, key="ms", rivals=RIVALS):
    """The best rival's figure over Heddle's."""
    values = row.get(key, {})
    theirs, ours = [values[one] for one in rivals if one in values], [values[one] for one in OURS if one in values]
    return min(theirs) / min(ours) if theirs and ours else None


def mean(ratios):
    known = [one for one in ratios if one]
    return math.exp(statistics.mean(map(math.log, known))) if known else float("nan")


def measured(model, options):
    """The row of a model after its bursts, printed and added to the output."""
    for _ in range(options.bursts):
        model.burst(options.seconds)
    model.finish()
    row = model.row
    row["date"] = datetime.date.today().isoformat()
    cells = [f"{row['ms'][mode]:.2f}" if mode in row["ms"] else "-" for mode in options.modes]
    print(f"{row['model']:18}" + "".join(f"{cell:>17}" for cell in cells) + f"{ratio(row) or math.nan:15.3f}"
          f"{1 / (ratio(row, 'peak_mb', ['default']) or math.nan):9.3f}  {json.dumps(row['failures'])[:200] if row['failures'] else ''}", flush=True)
    if options.output:
        with open(options.output, "a", encoding="utf-8") as out:
            out.write(json.dumps(row) + "\n")
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--output")
    parser.add_argument("--modes", nargs="*", default=USUAL, choices=MODES)
    parser.add_argument("--bursts", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--prepare", type=float)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return worker(options.worker, options.modes, options.profile)
    names, rows = options.models or list(cases()), []
    print(f"{'model':18}" + "".join(f"{mode:>17}" for mode in options.modes) + f"{'over PyTorch':>15}{'memory':>9}")
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for first in range(0, len(names), options.jobs):
            for model in list(pool.map(lambda name: Model(name, options, folder), names[first:first + options.jobs])):
                rows.append(measured(model, options))
    print(f"over PyTorch: the best of its modes over the best of Heddle's; geometric mean {mean(map(ratio, rows)):.3f}. "
          f"memory: Heddle's peak over that of the default mode; geometric mean {1 / mean(ratio(row, 'peak_mb', ['default']) for row in rows):.3f}")
    return 1 if any(mode in row["failures"] for row in rows for mode in (*OURS, "worker")) else 0


if __name__ == "__main__":
    sys.exit(main())
