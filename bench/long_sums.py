#!/usr/bin/env python3
"""Compares the errors of long sums with those of a pairwise f32 sum, and their times with ONNX Runtime's.

The cases are products and reductions over 10^5 to 10^7 elements. For each it prints the root mean square error against
float64 over random normal inputs, for Heddle and for a pairwise f32 sum of the same terms, and exits with 1 if Heddle's
is more than --most times as large. --seconds also measures times, in alternating bursts: Heddle's, those of another
build (--old) and, on a CPU, ONNX Runtime's. --constant-rows checks that layer normalisation of equal values gives 0."""

import argparse
import pathlib
import statistics
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "bench")]

from cpu_models import OrtWorker  # noqa: E402
from heddle_command import Heddle  # noqa: E402


def pairwise(terms, axis):
    """The sum along an axis in the type of the terms, adding halves to halves."""
    terms = np.moveaxis(terms, axis, 0)
    while len(terms) > 1:
        half = len(terms) // 2
        rest = terms[2 * half :]
        terms = np.concatenate([terms[:half] + terms[half : 2 * half], rest])
    return terms[0]


class Case:
    """One operator: `terms(inputs)` are summed along the last axis, and `finish` turns the sums into its result."""

    def __init__(self, name, shapes, node, terms, finish=lambda sums, count: sums, initializers=(), **attributes):
        self.name, self.shapes, self.terms, self.finish = name, shapes, terms, finish
        self.node, self.initializers, self.attributes = node, initializers, attributes

    def model(self):
        names = [f"x{i}" for i in range(len(self.shapes))]
        node = helper.make_node(self.node, [*names, *(t.name for t in self.initializers)], ["y"], **self.attributes)
        ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in zip(names, self.shapes)]
        result = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
        graph = helper.make_graph([node], "long_sum", ports, [result], list(self.initializers))
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    def draw(self, generator):
        return [generator.standard_normal(s, dtype=np.float32) for s in self.shapes]

    def expected(self, inputs, dtype):
        terms = self.terms([x.astype(dtype) for x in inputs])
        sums = terms.sum(-1) if dtype == np.float64 else pairwise(terms, -1)
        return self.finish(sums, dtype(terms.shape[-1]))


def product(m, k, n, trans_a=0, trans_b=0, batch=()):
    def terms(inputs):
        a, b = inputs
        a = np.swapaxes(a, -1, -2) if trans_a else a
        b = b if trans_b else np.swapaxes(b, -1, -2)
        return a[..., :, None, :] * b[..., None, :, :]

    shapes = [(*batch, *((k, m) if trans_a else (m, k))), (*batch, *((n, k) if trans_b else (k, n)))]
    name = f"product {'x'.join(map(str, [*batch, m, k, n]))} {'nt'[trans_a]}{'nt'[trans_b]}"
    if batch:
        return Case(name, shapes, "MatMul", terms)
    return Case(name, shapes, "Gemm", terms, transA=trans_a, transB=trans_b)


def reduction(op, shape, axes, prepare=lambda x: x, finish=lambda sums, count: sums):
    def terms(inputs):
        x = np.moveaxis(prepare(inputs[0]), axes, range(-len(axes), 0))
        return x.reshape(*x.shape[: x.ndim - len(axes)], -1)

    name = f"{op} {'x'.join(map(str, shape))} over {axes}"
    if op != "ReduceSum":
        return Case(name, [shape], op, terms, finish, axes=list(axes), keepdims=0)
    along = helper.make_tensor("axes", TensorProto.INT64, [len(axes)], axes)
    return Case(name, [shape], op, terms, finish, [along], keepdims=0)


def convolution(channels, size, filters):
    def terms(inputs):
        x, w = inputs
        windows = np.lib.stride_tricks.sliding_window_view(x[0], w.shape[2:], (1, 2)).transpose(1, 2, 0, 3, 4)
        flat = windows.reshape(1, *windows.shape[:2], -1)
        return flat * w.reshape(len(w), 1, 1, -1)

    shapes = [(1, channels, size, size), (filters, channels, size - 1, size - 1)]
    return Case(f"conv {channels}x{size}x{size}, filters {filters}", shapes, "Conv", terms, lambda s, n: s[None])


def pool(shape, kernel):
    def terms(inputs):
        windows = np.lib.stride_tricks.sliding_window_view(inputs[0], kernel, (2, 3))
        return windows.reshape(*windows.shape[:4], -1)

    return Case(
        f"AveragePool {shape} by {kernel}", [shape], "AveragePool", terms, lambda s, n: s / n, kernel_shape=kernel
    )


def mean(sums, count):
    return sums / count


def cases(quick):
    if quick:
        yield product(1, 100003, 1, batch=(16,))
        yield product(3, 100000, 5)
        yield reduction("ReduceMean", (16, 100000), (1,), finish=mean)
        return
    for transposed in ((0, 0), (0, 1), (1, 0), (1, 1)):
        yield product(3, 300000, 5, *transposed)
        yield product(40, 100000, 40, *transposed)
        yield product(1, 1000000, 1, *transposed)
    yield product(1, 1000000, 8)
    yield product(8, 1000000, 1)
    yield product(7, 1000003, 1, 1)
    yield product(1, 9999991, 1)
    yield product(2, 100000, 3, batch=(4,))
    yield product(1, 200000, 1, batch=(5,))
    yield convolution(4, 180, 3)
    yield convolution(64, 60, 8)
    yield convolution(1, 400, 1)
    for op, prepare, finish in (
        ("ReduceSum", lambda x: x, lambda s, n: s),
        ("ReduceMean", lambda x: x, mean),
        ("ReduceSumSquare", np.square, lambda s, n: s),
        ("ReduceL2", np.square, lambda s, n: np.sqrt(s)),
        ("ReduceLogSumExp", np.exp, lambda s, n: np.log(s)),
    ):
        for shape, axes in (
            ((1000000,), (0,)),
            ((10000000,), (0,)),
            ((7, 200000), (1,)),
            ((200000, 7), (0,)),
            ((100000, 24), (0,)),
            ((3, 100000, 5), (1,)),
            ((500, 3, 400), (0, 2)),
            ((100003,), (0,)),
        ):
            yield reduction(op, shape, axes, prepare, finish)
    yield pool((1, 5, 400, 400), (399, 399))
    yield Case(
        "GlobalAveragePool", [(1, 6, 500, 500)], "GlobalAveragePool", lambda i: i[0].reshape(1, 6, 1, 1, -1), mean
    )


def constant_rows(heddle, options, folder):
    """True if layer normalisation of rows of equal values gives 0 only; prints the largest result."""
    worst = 0.0
    for rows, width in ((4, 768), (4, 1000), (3, 4099), (2, 30000), (5, 7)):
        node = helper.make_node("LayerNormalization", ["x", "s"], ["y"], axis=-1)
        scale = helper.make_tensor("s", TensorProto.FLOAT, [width], np.ones(width, np.float32))
        ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [rows, width]) for n in "xy"]
        graph = helper.make_graph([node], "rows", ports[:1], ports[1:], [scale])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        path = folder / f"norm{width}.onnx"
        onnx.save(model, path)
        for value in (1234.567, 0.1, -3e-5, 7.7e8):
            y = run(heddle, path, [np.full((rows, width), value, np.float32)], options, folder, ["x"])
            worst = max(worst, float(np.abs(y).max()))
    print(f"layer norm of constant rows: largest result {worst}")
    return worst == 0


def run(heddle, model, inputs, options, folder, names):
    arguments = []
    for name, value in zip(names, inputs):
        np.save(folder / f"{name}.npy", value)
        arguments += ["--input", f"{name}={folder / name}.npy"]
    heddle("run", model, *arguments, "--output-dir", folder / "out", *options)
    return np.load(next((folder / "out").glob("y*.npy")))


def errors(case, heddle, model, options, draws, folder, seed):
    generator, ours, theirs = np.random.default_rng(seed), 0.0, 0.0
    for _ in range(draws):
        inputs = case.draw(generator)
        exact = case.expected(inputs, np.float64)
        y = run(heddle, model, inputs, options, folder, [f"x{i}" for i in range(len(inputs))])
        ours += np.mean(np.square(y.reshape(exact.shape) - exact))
        theirs += np.mean(np.square(case.expected(inputs, np.float32) - exact))
    return np.sqrt(ours / draws), np.sqrt(theirs / draws)


def times(arguments, model, threads, folder):
    """Milliseconds of the contestants, alternating."""
    figures = {}
    plan = folder / "model.plan"
    heddles = {"heddle": Heddle(arguments.heddle), **({"old": Heddle(arguments.old)} if arguments.old else {})}
    for name, heddle in heddles.items():
        heddle("compile", model, "--target", arguments.target, "--threads", threads, "-o", f"{plan}.{name}")
        figures[name] = []
    worker = OrtWorker(model, threads) if arguments.target == "cpu" else None
    for _ in range(arguments.bursts):
        for name, heddle in heddles.items():
            figures[name].append(bench(heddle, f"{plan}.{name}", threads, arguments))
        if worker:
            figures.setdefault("ort", []).append(statistics.median(worker.burst(arguments.seconds)["times_ms"]))
    return {name: statistics.median(values) for name, values in figures.items()}


def bench(heddle, plan, threads, arguments):
    import json

    options = ("--target", arguments.target, "--threads", threads, "--seconds", arguments.seconds, "--json")
    return json.loads(heddle("bench", plan, *options).output)["p50_ms"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heddle", default=ROOT / "build/release/heddle")
    parser.add_argument("--old", help="another build, for times")
    parser.add_argument("--target", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--most", type=float, default=4, help="times the pairwise sum's error")
    parser.add_argument("--seconds", type=float, default=0, help="of a burst; 0: no times")
    parser.add_argument("--bursts", type=int, default=5)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--only", default="", help="a part of the names of cases")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="a few small cases")
    parser.add_argument("--constant-rows", action="store_true")
    arguments = parser.parse_args()
    heddle, failed = Heddle(arguments.heddle), []
    options = ("--target", arguments.target)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if arguments.constant_rows and not constant_rows(heddle, options, folder):
            failed.append("constant rows")
        print(f"seed {arguments.seed}, {arguments.draws} draws")
        for case in cases(arguments.quick):
            if arguments.only not in case.name:
                continue
            model = folder / "model.onnx"
            onnx.save(case.model(), model)
            ours, theirs = errors(case, heddle, model, options, arguments.draws, folder, arguments.seed)
            line = f"{case.name:45} rms {ours:9.3g}  pairwise {theirs:9.3g}  ratio {ours / theirs:6.2f}"
            if ours > arguments.most * theirs:
                failed.append(case.name)
            for threads in arguments.threads if arguments.seconds > 0 else ():
                measured = times(arguments, model, threads, folder)
                line += f"  | {threads} threads: " + ", ".join(f"{n} {ms:.3f} ms" for n, ms in measured.items())
            print(line, flush=True)
    if failed:
        sys.exit(f"more than {arguments.most} times a pairwise sum's error: {', '.join(failed)}")


if __name__ == "__main__":
    main()
