#!/usr/bin/env python3
"""Ray Serve with Heddle and with ONNX Runtime's CPU provider: serving.py [--replicas 1 2] [--batches 1 8 32] [--seconds 10]

Needs the packages ray[serve], onnxruntime, onnx, and heddle on PYTHONPATH. The model is a perceptron of 256, 4096, 4096 and 256
units; a request is one row. For each number of replicas and each largest batch, with both engines in the same server (serve_worker.py):
the throughput at saturation, then latencies with Poisson arrivals at 60% of ONNX Runtime's saturation, and Heddle's at 60% of its own.

--soak: with one replica and batches of up to 32, both engines at 60% of the saturation of Heddle, each for --seconds.
--kill: with two replicas, ends the process of one at 60% of saturation. Says how many requests failed, that none hangs, and after how
many seconds the throughput is as before.
Writes a JSON file with --output.
"""

import argparse
import asyncio
import contextlib
import datetime
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from serve_load import Client, poisson, saturate

ROOT = pathlib.Path(__file__).resolve().parent.parent
ENGINES = ["onnxruntime", "heddle"]
WIDTHS = [256, 4096, 4096, 256]
SHARE = 0.6  # of saturation
UNDER_WAY = 64
RECOVERED = 0.9  # of the answers a second


def write_model(path):
    random = np.random.default_rng(0)
    nodes, constants, name = [], [], "x"
    for i, (k, n) in enumerate(zip(WIDTHS, WIDTHS[1:])):
        constants += [numpy_helper.from_array((random.standard_normal((k, n)) / np.sqrt(k)).astype(np.float32), f"w{i}"),
                      numpy_helper.from_array(np.zeros(n, np.float32), f"b{i}")]
        nodes += [helper.make_node("Gemm", [name, f"w{i}", f"b{i}"], [f"a{i}"]), helper.make_node("Relu", [f"a{i}"], [f"r{i}"])]
        name = f"r{i}"
    port = lambda of, width: helper.make_tensor_value_info(of, TensorProto.FLOAT, ["rows", width])
    graph = helper.make_graph(nodes, "perceptron", [port("x", WIDTHS[0])], [port(name, WIDTHS[-1])], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


class Server:
    """A Ray Serve application in a separate process."""

    def __init__(self, engine, model, replicas, most_rows):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}/"
        self.process = subprocess.Popen([sys.executable, ROOT / "bench/serve_worker.py", engine, model, str(replicas), str(most_rows), str(port)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                        start_new_session=True)

    def __enter__(self):
        for line in self.process.stdout:
            if line.strip() == "ready":
                return self
        raise RuntimeError("the server did not start")

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(60)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)

    def client(self):
        return Client(self.url, WIDTHS[0])

    def replicas(self):
        """Processes of replicas, all of them of this server's session."""
        found = []
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                title = (folder / "cmdline").read_bytes()
                if title.startswith(b"ray::ServeReplica") and self.is_ancestor(int(folder.name)):
                    found.append(int(folder.name))
            except OSError:
                continue  # it ended
        return found

    def is_ancestor(self, process):
        while process > 1:
            if process == self.process.pid:
                return True
            process = int((pathlib.Path("/proc") / str(process) / "stat").read_text().rsplit(")", 1)[1].split()[1])
        return False


def loaded(server, seconds, rate=None):
    client = server.client()
    run = poisson(client, rate, seconds) if rate else saturate(client, UNDER_WAY, seconds)
    tally, took = asyncio.run(run)
    return tally.summary(took)


def warm(server):
    loaded(server, 2)


def table(model, arguments):
    rows = []
    print("| replicas | batches | engine | at saturation, 1/s | load, 1/s | p50, ms | p99, ms | errors |\n|---|---|---|---|---|---|---|---|")
    for replicas in arguments.replicas:
        for most_rows in arguments.batches:
            shared = None
            for engine in ENGINES:
                with Server(engine, model, replicas, most_rows) as server:
                    warm(server)
                    most = loaded(server, arguments.seconds)
                    shared = shared or SHARE * most["per_second"]
                    for rate in sorted({shared, SHARE * most["per_second"]}):
                        result = loaded(server, arguments.seconds, rate)
                        rows.append({"replicas": replicas, "most_rows": most_rows, "engine": engine, "most": most, "rate": rate, **result})
                        print(f"| {replicas} | 1 to {most_rows} | {engine} | {most['per_second']:.0f} | {rate:.0f} | {result['p50_ms']:.1f} | "
                              f"{result['p99_ms']:.1f} | {sum(result['errors'].values()) + sum(most['errors'].values())} |", flush=True)
    return rows


def soak(model, arguments):
    with Server("heddle", model, 1, 32) as server:
        warm(server)
        rate = SHARE * loaded(server, 10)["per_second"]
        ours = loaded(server, arguments.seconds, rate)
    with Server("onnxruntime", model, 1, 32) as server:
        warm(server)
        other = loaded(server, arguments.seconds, rate)
    print(f"{arguments.seconds:.0f} s at {rate:.0f} requests a second: Heddle p50 {ours['p50_ms']:.1f} ms, p99 {ours['p99_ms']:.1f} "
          f"({ours['p99_ms'] / ours['p50_ms']:.1f} times), longest {ours['longest_ms']:.1f}, {sum(ours['errors'].values())} errors; "
          f"ONNX Runtime p50 {other['p50_ms']:.1f}, p99 {other['p99_ms']:.1f}, {sum(other['errors'].values())} errors")
    return [{"rate": rate, "heddle": ours, "onnxruntime": other}]


async def killed(server, rate, seconds):
    """Answers a second by second, the tally, and the second in which a replica was ended."""
    client, victim, at = server.client(), server.replicas()[0], seconds / 3
    asyncio.get_running_loop().call_later(at, os.kill, victim, signal.SIGKILL)
    counts = [0] * int(seconds)
    ask, start = client.ask, time.perf_counter()

    async def counted(number):
        await ask(number)
        second = int(time.perf_counter() - start)
        if second < len(counts):
            counts[second] += 1

    client.ask = counted
    tally, _ = await poisson(client, rate, seconds)
    return counts, tally, int(at)


def kill(model, arguments):
    seconds = max(arguments.seconds, 30)
    with Server("heddle", model, 2, 32) as server:
        warm(server)
        rate = SHARE * loaded(server, 5)["per_second"]
        counts, tally, at = asyncio.run(killed(server, rate, seconds))
        alive = len(server.replicas())
        again = loaded(server, 5)["per_second"]
    before = sum(counts[1:at]) / (at - 1)
    slow = [second for second in range(at, len(counts)) if counts[second] < RECOVERED * before]
    recovered = slow[-1] + 1 - at if slow else 0
    result = {"rate": rate, "before_per_second": before, "recovered_s": recovered, "replicas": alive, "at_saturation_after": again,
              "counts": counts, **tally.summary(seconds)}
    print(f"{rate:.0f} requests a second, one of two replicas killed: {result['answers']} answers, errors {tally.errors}, none hangs: "
          f"{'hangs' not in tally.errors}; as before after {recovered} s; {alive} replicas, {again:.0f} a second at saturation")
    return [result]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicas", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--soak", action="store_true")
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--output", type=pathlib.Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = f"{folder}/perceptron.onnx"
        write_model(model)
        rows = soak(model, arguments) if arguments.soak else kill(model, arguments) if arguments.kill else table(model, arguments)
    if arguments.output:
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        arguments.output.write_text(json.dumps({"date": datetime.date.today().isoformat(), "cpus": os.cpu_count(), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
