#!/usr/bin/env python3
"""Regions of models as kernels of the tile language (region_kernels.py) beside what the compiler's region scheduler makes of the same
graph: softmax, layer norm, a sum over columns, an elementwise chain with broadcasts, two layer norms with a residual and a GELU, a
group norm whose few long rows several blocks share, a transposition.

usage: tile_regions.py [--heddle PATH] [--target cuda|cpu] [--types f16 f32] [--only SUBSTRING...] [--bursts N] [--output FILE]
                       [--texts FOLDER] [--texts-only]

Graphs are those of the stitch and rows suites (stitch/make_cases.py), smaller ones on a CPU; the inputs are random. Of the tile
programs the best of some configurations is taken, which a short burst of each finds. Then bursts of both alternate: on a GPU as CUDA
graphs, the L2 overwritten before each run; on a CPU the processor time of one thread, in f32. A time is the median of all runs.
Results of both are compared with the same computation in float64 by PyTorch. --texts writes the generated texts of both, and the tile
IR; --texts-only needs no GPU. The output is written after each case, so that a run which is cut leaves what it has. Exit status 1
where a result is wrong.

Needs PyTorch, and Heddle's package on PYTHONPATH."""

import argparse
import collections
import concurrent.futures
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

os.environ["HEDDLE_TILE_THREADS"] = "1"

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench/stitch")]

import torch  # noqa: E402
from torch.nn import functional  # noqa: E402

import heddle  # noqa: E402
import make_cases  # noqa: E402
import region_kernels as kernels  # noqa: E402
from heddle.tile.runtime.driver import cuda_target  # noqa: E402
from heddle.tile.runtime.kernel import Options  # noqa: E402

Launch = collections.namedtuple("Launch", "kernel grid arrays constants options")
# `launches(tensors, **configuration)`: of a configuration of those by target; tensors are the graph's inputs, then its output.
Case = collections.namedtuple("Case", "name graphs reference launches configurations")
TYPES = {"f16": torch.float16, "f32": torch.float32}
BOUNDS = {"f16": 1e-3, "f32": 2e-5}  # of the largest error, over the largest result


def gelu_scaled_graph(graph, rows, columns):
    x, g, b = graph.parameter("x", rows, columns), graph.parameter("g", columns), graph.parameter("b", columns)
    r = graph.parameter("r", rows, 1)
    h = x * g + b
    graph.output("y", h * 0.5 * ((h * math.sqrt(0.5)).unary("erf") + 1) * r)


def transposed_graph(graph, images, channels, places):
    x, b = graph.parameter("x", images, channels, places), graph.parameter("b", channels)
    y = graph.binary("max", x + b.reshape(channels, 1), 0)
    graph.output("y", graph.node("transpose", [y], {"perm": [0, 2, 1]}, (images, places, channels)))


def graph_of(written, dtype):
    """Of a case of the suites by its name, or of a function and its extents."""
    if isinstance(written, str):
        return make_cases.build_case(written, dtype)
    graph = make_cases.Graph(dtype)
    written[0](graph, *written[1:])
    return graph


def layer_norm(x, g, b):
    return functional.layer_norm(x, x.shape[-1:], g, b, 1e-5)


def group_norm_silu(x, g, b):
    return functional.silu(functional.group_norm(x, 32, g, b, 1e-5))


def programs(rows, each):
    if rows % each != 0:
        raise ValueError(f"{rows} rows are no multiple of {each}")
    return rows // each


def row_launch(kernel):
    def launches(tensors, R, C=0, L=1, constants={}, **options):
        rows, columns = tensors[0].shape
        part = C or columns
        return [Launch(kernel, (programs(rows, R * L),), tensors, {"N": columns, "R": R, "A": -(-columns // part), "C": part, "L": L, **constants}, options)]
    return launches


def gelu_launches(tensors, R, L=1, C=0, **options):
    rows, columns = tensors[0].shape
    part = C or columns
    return [Launch(kernels.gelu_scaled, (programs(rows, R * L), columns // part), tensors, {"N": columns, "R": R, "C": part, "L": L}, options)]


def column_launches(tensors, S, R, B, options, join):
    """Sums of S rows each, which a second kernel joins where there are several."""
    x, y = tensors
    rows, columns = x.shape
    parts = -(-rows // S)
    blocks = -(-columns // B)
    if parts == 1:
        return [Launch(kernels.column_sum, (blocks, 1), (x, y), {"M": rows, "N": columns, "S": S, "R": R, "B": B}, options)]
    sums = torch.empty((parts, columns), device=x.device)
    return [Launch(kernels.column_sum, (blocks, parts), (x, sums), {"M": rows, "N": columns, "S": S, "R": R, "B": B}, options),
            Launch(kernels.column_sum, (-(-columns // join), 1), (sums, y), {"M": parts, "N": columns, "S": parts, "R": parts, "B": join}, {})]


def group_norm_launches(tensors, way, **options):
    x, g, b, y = tensors
    images, channels, height, width = x.shape
    extents = {"GROUPS": 32, "C": channels // 32, "S": height * width}
    if way != "split":
        kernel = kernels.group_norm_silu if way == "tile" else kernels.group_norm_silu_loops
        return [Launch(kernel, (images * 32,), tensors, extents, options)]
    moments = torch.empty((images * channels, 2), device=x.device)
    return [Launch(kernels.channel_moments, (images * channels,), (x, moments), {"S": height * width}, options),
            Launch(kernels.channel_silu, (images * channels,), (x, moments, g, b, y), extents, options)]


def transposed_launches(tensors, BC, BS, **options):
    x, b, y = tensors
    images, channels, places = x.shape
    return [Launch(kernels.transposed_bias_relu, (places // BS, channels // BC, images), tensors,
                   {"C": channels, "S": places, "BC": BC, "BS": BS}, options)]


def row_configurations(columns):
    """Rows of a program, columns of a part (0: the whole row) and warps: all warps share a row, or each has rows of its own."""
    padded = 1 << (columns - 1).bit_length()
    shared = [dict(R=r, C=c, num_warps=w) for c in {0, padded} for r in (1, 2, 4) for w in (1, 2, 4, 8) if 4 <= r * columns / (32 * w) <= 64]
    return shared + [dict(R=w * r, C=c, num_warps=w) for c in (128, 256) for w in (2, 4, 8) for r in (1, 2) if r * columns / 32 <= 96]


CPU_ROWS = [dict(R=r, L=n) for r in (1, 2, 4) for n in (1, 8, 50, 64)]
COLUMNS = [dict(S=s, R=r, B=b, options={"num_warps": w}, join=20) for s, r, b, w in
           ((128, 64, 64, 8), (128, 128, 64, 8), (128, 128, 32, 4), (256, 64, 64, 8), (256, 128, 64, 8), (256, 256, 32, 8), (256, 64, 64, 4),
            (256, 128, 40, 8), (256, 64, 128, 8), (128, 128, 64, 16), (200, 200, 64, 8), (200, 200, 64, 16), (256, 256, 64, 16), (512, 64, 64, 8), (512, 128, 64, 16), (512, 128, 32, 8), (200, 200, 40, 16), (1024, 64, 64, 8))]
CPU_COLUMNS = [dict(S=1000, R=r, B=b, options={}, join=0) for r, b in ((1, 1000), (2, 256), (4, 128), (8, 64), (1, 128), (4, 200), (10, 200))]
PIECES = [dict(R=r, C=c, num_warps=w) for c, r, w in ((256, 1, 1), (512, 1, 2), (1024, 1, 2), (1024, 1, 4), (3072, 1, 2), (3072, 1, 4), (512, 2, 2),
                                                      (512, 2, 4), (1024, 2, 4), (1024, 2, 8), (256, 4, 4), (1024, 4, 8))]
GROUPS = [dict(way="tile", num_warps=w) for w in (16, 32)] + [dict(way="loops", num_warps=w) for w in (8, 16)]
GROUPS += [dict(way="split", num_warps=w) for w in (4, 8, 16)]
TRANSPOSED = [dict(BC=c, BS=s, num_warps=w) for c, s, w in ((64, 64, 4), (64, 64, 8), (32, 64, 4), (64, 32, 4), (128, 64, 8), (128, 32, 8), (32, 32, 4))]

CASES = [
    Case("softmax", {"cuda": "softmax:30000x1000", "cpu": "softmax:1000x1000"}, lambda x: torch.softmax(x, -1), row_launch(kernels.softmax),
         {"cuda": row_configurations(1000), "cpu": CPU_ROWS}),
    Case("softmax, few rows", {"cuda": "softmax:1000x1000"}, lambda x: torch.softmax(x, -1), row_launch(kernels.softmax),
         {"cuda": row_configurations(1000)}),
    Case("layer norm", {"cuda": "layer_norm:30000x1000", "cpu": "layer_norm:1000x1000"}, layer_norm, row_launch(kernels.layer_norm),
         {"cuda": row_configurations(1000), "cpu": CPU_ROWS}),
    Case("column sum", {"cuda": "column_sum:30000x1000", "cpu": "column_sum:1000x1000"}, lambda x: x.sum(0), lambda t, **c: column_launches(t, **c),
         {"cuda": COLUMNS, "cpu": CPU_COLUMNS}),
    Case("GELU, broadcasts", {"cuda": (gelu_scaled_graph, 8192, 3072), "cpu": (gelu_scaled_graph, 512, 3072)},
         lambda x, g, b, r: functional.gelu(x * g + b) * r, gelu_launches,
         {"cuda": PIECES, "cpu": CPU_ROWS}),
    Case("two layer norms", {"cuda": "lnx2_4096x768", "cpu": "lnx2_4096x768"},
         lambda x, r, g, b: layer_norm(functional.gelu(layer_norm(x + r, g, b)) + x, g, b), row_launch(kernels.two_layer_norms),
         {"cuda": row_configurations(768), "cpu": CPU_ROWS + [{**c, "constants": {"AGAIN": True}} for c in CPU_ROWS]}),
    Case("group norm", {"cuda": "groupnorm_silu_2x320x64x64", "cpu": "groupnorm_silu_2x320x64x64"}, group_norm_silu, group_norm_launches,
         {"cuda": GROUPS, "cpu": [dict(way=way) for way in ("tile", "loops", "split")]}),
    Case("transposition", {"cuda": (transposed_graph, 32, 256, 3136), "cpu": (transposed_graph, 4, 256, 784)},
         lambda x, b: functional.relu(x + b[:, None]).transpose(1, 2), transposed_launches,
         {"cuda": TRANSPOSED, "cpu": [dict(BC=c, BS=s) for c, s in ((16, 16), (32, 16), (16, 56), (16, 112), (16, 784), (32, 112), (64, 16), (256, 16), (256, 112))]}),
]


class Prepared:
    """A case of one type: its plan and its kernels compiled, which several threads may do for several cases."""

    def __init__(self, case, dtype, options, folder):
        self.case, self.dtype, self.options = case, dtype, options
        self.name = f"{case.name} {dtype}".replace(", ", "_").replace(" ", "_")
        graph = graph_of(case.graphs[options.target], dtype)
        self.inputs = [[int(n) for n in text[text.index("[") + 1 : -1].split(",")] for text in graph.parameters]
        self.output = graph.output_shapes[0]
        self.source, self.plan, self.texts = folder / f"{self.name}.hir", folder / f"{self.name}.plan", folder / self.name
        self.source.write_text(graph.text(self.name))

    def shape(self):
        return "x".join(map(str, self.inputs[0]))

    def compile_region(self):
        threads = ["--threads", "1"] if self.options.target == "cpu" else []
        subprocess.run([self.options.heddle, "compile", self.source, "--target", self.options.target, *threads, "-o", self.plan, "--emit", self.texts],
                       check=True, capture_output=True, text=True)

    def tensors(self, device):
        shapes = [*self.inputs, self.output]
        make = torch.empty if device == "meta" else torch.randn
        return tuple(make(shape, device=device, dtype=TYPES[self.dtype]) for shape in shapes)

    def compiled(self, configuration):
        """The kernels of a configuration, or why there are none."""
        try:
            return [compiled(launch, self.options.target) for launch in self.case.launches(self.tensors("meta"), **configuration)]
        except (heddle.Error, ValueError) as error:
            return str(error)


def compiled(launch, target):
    """A kernel for the types of its arrays, whose addresses are multiples of 16."""
    facts = launch.kernel.prepare(*(array.dtype for array in launch.arrays), **launch.constants).kernel.facts
    if target == "cuda":
        target = cuda_target(0) if torch.cuda.is_available() else "cuda-sm_90a"
    return launch.kernel.instance(facts, Options(**launch.options), target).load()


def launcher(launches):
    def run():
        for kernel, grid, arrays, constants, options in launches:
            kernel[grid](*arrays, **constants, **options)
    return run


def graphed(run):
    """`run` as a CUDA graph, so that the host's part is not measured."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        run(), run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()

    def replay(kept=run):  # `run` has the memory between its kernels
        graph.replay()

    return replay


class Gpu:
    def __init__(self):
        self.device, self.name = "cuda", torch.cuda.get_device_name()
        self.flush = torch.empty(1 << 28, dtype=torch.uint8, device="cuda")

    runner = staticmethod(graphed)

    def burst(self, runs, count):
        """Microseconds of `count` runs of each, in turn."""
        events = [[] for _ in runs]
        for _ in range(count):
            for run, found in zip(runs, events):
                begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                self.flush.zero_()
                begin.record()
                run()
                end.record()
                found.append((begin, end))
        torch.cuda.synchronize()
        return [[begin.elapsed_time(end) * 1e3 for begin, end in found] for found in events]


class Cpu:
    device = "cpu"

    def __init__(self):
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        self.name = next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "CPU")
        self.name += f", {os.environ.get('HEDDLE_CPU_ISA', 'all of its instructions')}"

    @staticmethod
    def runner(run):
        return run

    @staticmethod
    def burst(runs, count):
        """Microseconds of the processor of `count` times 20 ms of each, in turn."""
        times = [[] for _ in runs]
        for _ in range(count):
            for run, found in zip(runs, times):
                run()
                end = time.process_time() + 0.02
                while (begin := time.process_time()) < end:
                    run()
                    found.append((time.process_time() - begin) * 1e6)
        return times


def best_configuration(case, machine, tensors, ready, options):
    """(its index, what runs it) of the fastest; those that do not compile or launch are passed over."""
    runs = {}
    for index, configuration in enumerate(case.configurations[options.target]):
        if not isinstance(ready[index], str):
            try:
                runs[index] = machine.runner(launcher(case.launches(tensors, **configuration)))
            except heddle.Error as error:
                ready[index] = str(error)
    times = dict(zip(runs, machine.burst(list(runs.values()), 7)))
    fastest = min(times, key=lambda index: statistics.median(times[index]))
    return fastest, runs[fastest]


def error_of(result, wanted):
    return float((result.double() - wanted).abs().max() / wanted.abs().max())


def lines_of(texts):
    """Lines of code: no comments, includes or empty lines."""
    return sum(1 for text in texts for line in map(str.strip, text.splitlines()) if line and not line.startswith(("//", "#include")))


def measure(prepared, machine, ready, options):
    case = prepared.case
    tensors = prepared.tensors(machine.device)
    inputs, y = tensors[:-1], tensors[-1]
    wanted = case.reference(*(tensor.double() for tensor in inputs))
    model = heddle.compile(str(prepared.plan))
    run_model = lambda: model(*inputs, out=y)
    run_model()
    row = {"case": case.name, "type": prepared.dtype, "shape": prepared.shape(), "region_error": error_of(y, wanted)}
    y.zero_()
    index, tile = best_configuration(case, machine, tensors, ready, options)
    y.zero_()
    tile()
    row["tile_error"] = error_of(y, wanted)
    row["ok"] = max(row["region_error"], row["tile_error"]) <= BOUNDS[prepared.dtype]
    region = machine.runner(run_model)
    times = [[], []]
    for _ in range(options.bursts):
        for found, more in zip(times, machine.burst([region, tile], 10)):
            found += more
    row["region_us"], row["tile_us"] = map(statistics.median, times)
    row["spread"] = [statistics.quantiles(found, n=10)[-1] / statistics.quantiles(found, n=10)[0] for found in times]
    row["ratio"] = row["region_us"] / row["tile_us"]
    row |= tile_facts(prepared, index, ready)
    return row


def tile_facts(prepared, index, ready):
    """The configuration, its kernels' sizes, and why others do not run."""
    made = ready[index]
    failures = [f"{c}: {r}"[:300] for c, r in zip(prepared.case.configurations[prepared.options.target], ready) if isinstance(r, str)]
    region = [path.read_text() for path in sorted(prepared.texts.iterdir())]
    return {"configuration": prepared.case.configurations[prepared.options.target][index], "tile_kernels": len(made), "region_kernels": len(region),
            "tile_lines": lines_of(kernel.text for kernel in made), "region_lines": lines_of(region), "registers": [kernel.n_regs for kernel in made],
            "spills": [kernel.n_spills for kernel in made], "not_run": failures}


def write_texts(prepared, made, folder):
    folder.mkdir(parents=True, exist_ok=True)
    ending = "cu" if prepared.options.target == "cuda" else "cc"
    region = [path.read_text() for path in sorted(prepared.texts.iterdir())]
    (folder / f"{prepared.name}.region.{ending}").write_text("\n".join(region))
    (folder / f"{prepared.name}.tile.{ending}").write_text("\n".join(kernel.text for kernel in made))
    (folder / f"{prepared.name}.tile.ir").write_text("\n".join(kernel.ir for kernel in made))


def measured(prepared, machine, ready, options):
    """A row of results; of what fails, why."""
    try:
        return measure(prepared, machine, ready, options)
    except (heddle.Error, RuntimeError, ValueError) as error:
        return {"case": prepared.case.name, "type": prepared.dtype, "shape": prepared.shape(), "failure": str(error)[:600], "ok": False}


def print_row(row):
    if "failure" in row:
        print(f"{row['case']} | {row['type']} | {row['shape']} | FAILED {row['failure']}", flush=True)
        return
    print(f"{row['case']} | {row['type']} | {row['shape']} | {row['region_us']:.2f} | {row['tile_us']:.2f} | {row['ratio']:.3f} | "
          f"{row['region_lines']} | {row['tile_lines']} | {row['configuration']}{'' if row['ok'] else ' WRONG'}", flush=True)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heddle", default=str(ROOT / "build/release/heddle"))
    parser.add_argument("--target", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--types", nargs="+", choices=list(TYPES), help="f16 and f32; on a CPU f32")
    parser.add_argument("--only", nargs="+", default=[""], help="cases whose name has one of these")
    parser.add_argument("--bursts", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 1) - 2), help="compilations at the same time")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "build/bench/tile_regions.json")
    parser.add_argument("--texts", type=pathlib.Path, help="a folder for the generated texts of both")
    parser.add_argument("--texts-only", action="store_true", help="of the first configuration that compiles; times nothing")
    options = parser.parse_args()
    options.types = options.types or (["f16", "f32"] if options.target == "cuda" else ["f32"])
    return options


def compile_all(options, folder):
    """[(a case, its kernels for each configuration)]"""
    cases = [Prepared(case, dtype, options, folder) for dtype in options.types for case in CASES
             if options.target in case.graphs and any(word in case.name for word in options.only)]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        regions = [pool.submit(case.compile_region) for case in cases]
        tiles = [[pool.submit(case.compiled, c) for c in case.case.configurations[options.target]] for case in cases]
        for region in regions:
            region.result()
        return [(case, [job.result() for job in jobs]) for case, jobs in zip(cases, tiles)]


def main():
    options = parse_arguments()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    rows = []
    with tempfile.TemporaryDirectory() as folder, torch.inference_mode():
        begin = time.time()
        cases = compile_all(options, pathlib.Path(folder))
        print(f"compiled in {time.time() - begin:.1f} s", flush=True)
        if options.texts_only:
            for case, ready in cases:
                write_texts(case, next(made for made in ready if not isinstance(made, str)), options.texts)
            return
        machine = Gpu() if options.target == "cuda" else Cpu()
        document = {"date": datetime.date.today().isoformat(), "device": machine.name, "rows": rows}
        print("case | type | shape | regions us | tile us | regions / tile | lines of regions | lines of tile | configuration")
        for case, ready in cases:
            rows.append(row := measured(case, machine, ready, options))
            print_row(row)
            options.output.write_text(json.dumps(document, indent=1))
            if options.texts and "failure" not in row:
                write_texts(case, ready[case.case.configurations[options.target].index(row["configuration"])], options.texts)
    for dtype in options.types:
        ratios = [row["ratio"] for row in rows if row["type"] == dtype and "ratio" in row]
        if ratios:
            print(f"{dtype}: geometric mean {statistics.geometric_mean(ratios):.3f} over {len(ratios)}, lowest {min(ratios):.3f}")
    sys.exit(not all(row["ok"] for row in rows))


if __name__ == "__main__":
    main()
