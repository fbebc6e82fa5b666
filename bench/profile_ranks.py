#!/usr/bin/env python3
"""Whether advice on several ranks is worth what it says, as bench/profile_advice.py asks of one process: two ranks on two GPUs train with
a fault and with the fault repaired. The gain that `heddle profile` estimates from the merged profile of the faulty run is set beside the gain
of the repair: the time of a step without a profiler, runs alternating, medians.

usage: PYTHONPATH=build/release/python python3 bench/profile_ranks.py [-o FILE]
Needs torch and two GPUs. Exit status 1 where an advice did not come, came for the repaired program no less, or is off by more than a factor of 1.5.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from advice_rows import MOST_OFF, is_right, row_of

RANKS, ROUNDS, WARM, STEPS = 2, 3, 5, 40


def uneven_work(repaired):
    """One rank does ten times the work of the other; both the same."""
    import torch
    from torch import nn

    rank = int(os.environ["LOCAL_RANK"])
    net = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(2048, 2048), nn.Linear(2048, 2048)).cuda())
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
    data = torch.randn(2048, 2048, device="cuda")
    times = 11 if repaired else (2, 20)[rank]

    def step():
        x = data
        for _ in range(times):
            x = nn.functional.normalize(x @ data)
        optimizer.zero_grad()
        net(x).sum().backward()
        optimizer.step()

    return step


def gradients_summed_at_the_end(repaired):
    """Gradients are summed over the ranks behind the backward pass; while it runs."""
    import torch
    import torch.distributed
    from torch import nn

    net = nn.Sequential(*[nn.Linear(4096, 4096) for _ in range(12)]).cuda().half()
    data = torch.randn(8192, 4096, device="cuda").half()
    model = nn.parallel.DistributedDataParallel(net) if repaired else net

    def step():
        model(data).sum().backward()
        if not repaired:
            for parameter in net.parameters():
                torch.distributed.all_reduce(parameter.grad)
        for parameter in net.parameters():
            parameter.grad = None

    return step


CASES = {"load_imbalance": uneven_work, "exposed_collectives": gradients_summed_at_the_end}


def work(rule, repaired):
    import torch
    import torch.distributed

    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    torch.distributed.init_process_group("nccl")
    step = CASES[rule](repaired)
    for _ in range(WARM):
        step()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(STEPS):
        step()
    torch.cuda.synchronize()
    if torch.distributed.get_rank() == 0:
        print(json.dumps({"seconds": (time.perf_counter() - begin) / STEPS}), flush=True)
    torch.distributed.destroy_process_group()


def command(rule, which):
    return [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(RANKS), __file__, "--worker", rule, which]


def seconds(rule, which):
    done = subprocess.run(command(rule, which), check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(next(line for line in done.stdout.splitlines() if line.startswith('{"seconds"')))["seconds"]


def advised(rule, which, folder):
    """Seconds of a step that the rule's advice estimates, and the evidence."""
    output = pathlib.Path(folder) / "profile.json"
    subprocess.run([sys.executable, "-m", "heddle", "profile", "-o", output, "--", *command(rule, which)], check=True, stdout=subprocess.PIPE)
    advice = [a for a in json.loads(output.read_text()).get("advice", []) if a["rule"] == rule]
    return sum(a["gain_ns"] for a in advice) * 1e-9 / (WARM + STEPS), advice[0]["evidence"] if advice else None


def measure(rule, folder):
    times = {"faulty": [], "repaired": []}
    for _ in range(ROUNDS):
        for which, list_of in times.items():
            list_of.append(seconds(rule, which))
    before, after = (statistics.median(each) for each in times.values())
    estimated, evidence = advised(rule, "faulty", folder)
    left, _ = advised(rule, "repaired", folder)
    return row_of(rule, before, after, estimated, left, evidence)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        work(arguments.worker[0], arguments.worker[1] == "repaired")
        return 0
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for rule in CASES:
            rows.append(measure(rule, folder))
            print(json.dumps(rows[-1]), flush=True)
    if arguments.output:
        pathlib.Path(arguments.output).write_text(json.dumps({"ranks": RANKS, "rows": rows}, indent=1))
    right = sum(map(is_right, rows))
    print(f"{right} of {len(rows)} estimates are within a factor of {MOST_OFF} of the gain, and less for the repaired program")
    return 0 if right == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
