#!/usr/bin/env python3
"""Two builds of Heddle side by side, alternating in one run: whether a change of the compiler lost speed.

usage: compare_builds.py --old build/before/heddle --new build/release/heddle [--suite stitch rows ...] [--target cuda]
                         [--threads 1 2] [--only NAME...] [--repeat 5] [--limit-seconds 480] [-o FILE]

First each build compiles every case with an empty cache, --jobs at a time, which gives the compile times. Then nothing else
runs, and bursts of the two alternate case by case, in turn old first and new first. A time is the median over bursts of a
burst's median, the ratio is new / old: above 1 the new build is slower. What is more than 3% slower is measured again with
twice as many bursts; a case counts as slower where both say so.

On a GPU a burst comes from `bench/gpu_worker` beside each heddle (built with -DHEDDLE_BENCH=ON), which keeps the plan: the
device's time with the L2 overwritten before each run, of models without that. Where a worker is missing, and on the CPU, a
burst is a process of `heddle bench`. The result file is written after each case, so that a run which is cut leaves what it
has. Python's standard library suffices. Exit status 1 where something failed to run."""

import argparse
import concurrent.futures
import dataclasses
import datetime
import hashlib
import json
import math
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench/stitch"), str(ROOT / "bench")]

import gemm_table  # noqa: E402
import make_cases  # noqa: E402

SUITES = ["stitch", "stitch-f16", "rows", "gemm", "models"]
MODELS = {
    "cuda": ["resnet50:32", "bert-base:32", "vit-b16:32", "mobilenet-v2:32", "sd-unet"],
    "cpu": ["resnet50", "vgg16", "mobilenet-v2", "bert-base", "crnn", "vit-b16"],
}
# Of rows_gpu.py's points those of each regime: latency, short rows, rows of a warp, of a block, of several blocks.
ROWS = ["30x64", "1000x1000", "1000000x7", "30000x64", "1000000x64", "30000x1000", "30x16384", "1000x16384", "1x250000",
        "30x250000", "1x4000000"]
MOST_ELEMENTS = {"cuda": 1 << 26, "cpu": 1 << 22}  # of a point of the suite rows
MOST_OPERATIONS = {"cuda": math.inf, "cpu": 1 << 32}  # of a product
SLOWER = 1.03
LEAST_PAIRS = 2  # of bursts, however little time there is
COMPILE_LIMIT, BURST_LIMIT = 300, 120  # seconds after which a process counts as hanging
PART_FOR_AGAIN = 0.15  # of the time: for what is measured again


@dataclasses.dataclass
class Case:
    suite: str
    name: str
    write: object  # makes the file if it is not there: write(path, heddle)
    source: pathlib.Path
    threads: int = 0
    precision: str = ""
    compile: dict = dataclasses.field(default_factory=dict)  # side -> seconds
    failure: str = ""

    def __str__(self):
        return f"{self.suite} {self.name}" + (f" {self.threads} thr" if self.threads else "")

    def file_name(self, suffix):
        return f"{self.suite}_{self.name.replace(':', '_')}_{self.threads}{suffix}"


def nothing(_path, _heddle):
    pass


def stitch_cases(_options, _folder, suite):
    part = ROOT / "bench/stitch" / ("f16" if suite == "stitch-f16" else "")
    for path in sorted(part.glob("*.hir")):
        yield Case(suite, path.stem, nothing, path)


def rows_cases(options, folder, suite):
    for dtype in ("f32", "f16"):
        for kind in make_cases.ROWS:
            for extents in ROWS:
                rows, columns = map(int, extents.split("x"))
                is_view = kind == "column_sum" and rows == 1  # launches nothing
                if rows * columns > MOST_ELEMENTS[options.target] or is_view:
                    continue
                text = make_cases.text_of(f"{kind}:{extents}", dtype)
                path = folder / f"{dtype}_{kind}_{extents}.hir"
                yield Case(suite, f"{dtype}:{kind}:{extents}", lambda at, _, text=text: at.write_text(text), path)


def gemm_cases(options, folder, suite):
    dtype = {"cuda": "f16", "cpu": "f32"}[options.target]
    for m, n, k in gemm_table.SHAPES + gemm_table.random_shapes(30):
        if 2 * m * n * k > MOST_OPERATIONS[options.target]:
            continue
        text = f"""graph gemm(%a: {dtype}[{m},{k}], %b: {dtype}[{n},{k}]) {{
  %0 = dot(%a, %b) {{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [1]}}
  return "d" = %0
}}
"""
        path = folder / f"{dtype}_gemm_{m}x{n}x{k}.hir"
        yield Case(suite, f"{dtype}:{m}x{n}x{k}", lambda at, _, text=text: at.write_text(text), path)


def model_cases(options, folder, suite):
    for spec in options.models or MODELS[options.target]:
        name, *sizes = spec.split(":")
        extents = [word for pair in zip(("--batch", "--seq"), sizes) for word in pair]
        path = folder / f"{spec.replace(':', '_')}.onnx"

        def write(at, heddle, arguments=("zoo", name, *extents)):
            finish([heddle, *arguments, "-o", at], {}, COMPILE_LIMIT)

        yield Case(suite, spec, write, path, precision=options.precision)


CASES_OF = {"stitch": stitch_cases, "stitch-f16": stitch_cases, "rows": rows_cases, "gemm": gemm_cases, "models": model_cases}


def all_cases(options, folder):
    cases = [case for suite in options.suite for case in CASES_OF[suite](options, folder, suite)]
    if options.only:
        cases = [case for case in cases if any(part in case.name for part in options.only)]
    if options.target == "cpu":
        cases = [dataclasses.replace(case, threads=count, compile={}) for case in cases for count in options.threads]
    return cases


def finish(command, environment, limit):
    """What the command printed, and its seconds: of the processors with its children's, and on the clock. A failure and
    a hang raise RuntimeError."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        start = time.perf_counter()
        child = subprocess.Popen([*map(str, command)], env=os.environ | environment, stdout=output, stderr=errors,
                                 start_new_session=True)
        watch = threading.Timer(limit, os.killpg, (child.pid, signal.SIGKILL))
        watch.start()
        _, status, usage = os.wait4(child.pid, 0)
        watch.cancel()
        wall = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        if child.returncode != 0:
            hung = f", after {limit} s" if wall >= limit else ""
            last = " ".join(errors.read().split())[-300:]
            raise RuntimeError(f"heddle {command[1]}: exit {child.returncode}{hung}: {last}")
        return output.read(), {"user_s": round(usage.ru_utime, 3), "system_s": round(usage.ru_stime, 3), "wall_s": round(wall, 3)}


class Worker:
    """A gpu_worker, which answers each line with one JSON object; started again after it died or was killed."""

    def __init__(self, path):
        self.path, self.child = path, None

    def ask(self, line):
        if self.child is None:
            self.errors = tempfile.TemporaryFile("w+")
            self.child = subprocess.Popen([self.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True)
        watch = threading.Timer(BURST_LIMIT, self.child.kill)
        watch.start()
        try:
            self.child.stdin.write(f"{line}\n")
            self.child.stdin.flush()
            answer = self.child.stdout.readline()
        except BrokenPipeError:
            answer = ""
        watch.cancel()
        if not answer:
            self.child.kill()
            self.child.wait()
            self.child = None
            self.errors.seek(0)
            raise RuntimeError(f"gpu_worker died: {' '.join(self.errors.read().split())[-300:]}")
        answer = json.loads(answer)
        if "failure" in answer:
            raise RuntimeError(answer["failure"])
        return answer

    def close(self):
        if self.child:
            self.child.stdin.close()
            self.child.wait()


class Side:
    """One of the two builds."""

    def __init__(self, name, heddle, options, folder):
        self.name, self.heddle, self.options = name, heddle.resolve(), options
        self.folder = folder / name
        self.environment = {"HEDDLE_DEVICES": str(self.folder / "devices")}  # no calibration of this machine
        (self.folder / "devices").mkdir(parents=True)
        self.worker = None

    def use_worker(self):
        self.worker = Worker(self.worker_path())

    def worker_path(self):
        return self.heddle.parent / "bench/gpu_worker"

    def describe(self):
        version, _ = finish([self.heddle, "--version"], {}, BURST_LIMIT)
        digest = hashlib.sha256(self.heddle.read_bytes()).hexdigest()[:16]
        return {"path": str(self.heddle), "version": version.strip(), "sha256": digest}

    def plan(self, case):
        return self.folder / case.file_name(".plan")

    def threads(self, case):
        return ["--threads", case.threads] if case.threads else []

    def compile(self, case):
        """Its seconds, with an empty cache; the plan stays."""
        cache = self.folder / case.file_name(".cache")
        precision = ["--precision", case.precision] if case.precision else []
        try:
            command = [self.heddle, "compile", case.source, "--target", self.options.target, *self.threads(case), *precision]
            environment = self.environment | {"HEDDLE_CACHE_DIR": str(cache)}
            return finish([*command, "-o", self.plan(case)], environment, COMPILE_LIMIT)[1]
        finally:
            shutil.rmtree(cache, ignore_errors=True)

    def burst(self, case):
        """Microseconds of a run: the median of a burst."""
        cold = case.suite != "models"
        if self.worker:
            return self.worker.ask(f"{self.options.runs} {self.plan(case)}")["cold_us" if cold else "warm_us"]
        environment = self.environment | {"HEDDLE_CACHE_DIR": str(self.folder / "cache")}
        command = [self.heddle, "bench", self.plan(case), "--target", self.options.target, *self.threads(case)]
        output, _ = finish([*command, "--seconds", self.options.seconds, "--json"], environment, BURST_LIMIT)
        on_cpu = "cpu_ms" if self.options.processor_time else "p50_ms"
        on_gpu = "device_cold_p50_ms" if cold else "device_p50_ms"
        return json.loads(output)[on_cpu if self.options.target == "cpu" else on_gpu] * 1e3


class Budget:
    def __init__(self, seconds):
        self.start, self.seconds = time.monotonic(), seconds

    def used(self):
        return time.monotonic() - self.start

    def left(self, part=1.0):
        return self.seconds * part - self.used()


def measure(case, sides, pairs, seconds):
    """Bursts in turn: as many pairs, or fewer where `seconds` are over."""
    times = {side.name: [] for side in sides}
    begin = time.monotonic()
    for pair in range(pairs):
        for side in sides if pair % 2 == 0 else sides[::-1]:
            times[side.name].append(side.burst(case))
        if pair + 1 >= LEAST_PAIRS and time.monotonic() - begin > seconds:
            break
    old, new = (statistics.median(times[side.name]) for side in sides)
    spread = max((max(values) - min(values)) / statistics.median(values) for values in times.values())
    return {"old_us": round(old, 3), "new_us": round(new, 3), "ratio": round(new / old, 4), "spread": round(spread, 4),
            "bursts": {name: [round(us, 3) for us in values] for name, values in times.items()}}


def row_text(case, row, note=""):
    return (f"{case.suite:10} {case.name:34} {case.threads or '':>3} {row['old_us']:12.2f} {row['new_us']:12.2f} "
            f"{row['ratio']:7.3f} {row['spread']:7.1%}{note}")


TITLES = f"{'suite':10} {'case':34} {'thr':>3} {'old us':>12} {'new us':>12} {'ratio':>7} {'spread':>7}"


class Comparison:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.budget = Budget(options.limit_seconds)
        self.sides = [Side("old", options.old, options, folder), Side("new", options.new, options, folder)]
        if options.target == "cuda" and all(side.worker_path().exists() for side in self.sides):
            for side in self.sides:
                side.use_worker()
        self.cases, self.rows, self.failures = [], {}, []
        self.result = {
            "kind": "compare_builds",
            "date": datetime.date.today().isoformat(),
            "device": device(options.target),
            "target": options.target,
            "time": "processor" if options.processor_time else "device" if options.target == "cuda" else "wall",
            "load_before": os.getloadavg()[0],
            "jobs": options.jobs,
        } | {side.name: side.describe() | {"commit": commit} for side, commit in zip(self.sides, options.commits)}

    def fail(self, case, error):
        case.failure = case.failure or str(error)
        self.failures.append({"case": str(case), "error": str(error)})
        print(f"{case}: FAILED: {error}", flush=True)

    def attempt(self, case, function, *arguments):
        """Its result; of a failure, which is noted, None: one case does not lose the others."""
        try:
            return function(*arguments)
        except (RuntimeError, OSError, KeyError, ValueError, ZeroDivisionError) as error:
            self.fail(case, error)
            return None

    def prepare(self):
        """Files of the cases, written once, by the old build where Heddle writes them; then plans of both."""
        sources = self.folder / "sources"
        sources.mkdir()
        self.cases = all_cases(self.options, sources)
        guess = 0.8 if self.sides[0].worker else 2 * self.options.repeat * (self.options.seconds + 0.5)
        print(f"{len(self.cases)} cases: a guess of {len(self.cases) * (2.0 / self.options.jobs + guess):.0f} s"
              + (f", at most {self.options.limit_seconds:.0f}" if math.isfinite(self.options.limit_seconds) else ""), flush=True)
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            first = {case.source: case for case in self.cases}  # the same file for any number of threads
            list(pool.map(lambda c: self.attempt(c, c.write, c.source, self.sides[0].heddle), first.values()))
            for case in self.cases:
                case.failure = first[case.source].failure
            # The longest compilations first; which side begins changes from case to case.
            order = sorted(self.cases, key=lambda case: case.suite != "models")
            jobs = [(case, side) for i, case in enumerate(order) for side in self.sides[:: 1 if i % 2 else -1]]
            list(pool.map(lambda job: self.compile(*job), jobs))
        print(f"compiled after {self.budget.used():.0f} s, {self.options.jobs} at a time", flush=True)

    def compile(self, case, side):
        if case.failure:
            return
        if self.budget.left() <= 0:
            self.fail(case, "not compiled: no time is left")
            return
        seconds = self.attempt(case, side.compile, case)
        if seconds:
            case.compile[side.name] = seconds

    def measure_all(self):
        print(TITLES)
        ready = [case for case in self.cases if not case.failure]
        begin = time.monotonic()
        for index, case in enumerate(ready):
            left = self.budget.left(1 - PART_FOR_AGAIN)
            if left <= 0:
                self.fail(case, "not timed: no time is left")
                continue
            # A case may take more than its share, as most take less.
            row = self.attempt(case, measure, case, self.sides, self.options.repeat, 2 * left / (len(ready) - index))
            if row:
                self.rows[str(case)] = row
                print(row_text(case, row, "  <-- slower" if row["ratio"] > SLOWER else ""), flush=True)
                self.write()
            if index + 1 == min(10, len(ready)):
                rest = (time.monotonic() - begin) / (index + 1) * (len(ready) - index - 1)
                print(f"# {self.budget.used():.0f} s; the rest takes {rest:.0f} s if it is like these", flush=True)

    def measure_again(self):
        slow = [case for case in self.cases if self.rows.get(str(case), {}).get("ratio", 0) > SLOWER]
        if slow:
            print(f"again, {2 * self.options.repeat} bursts of each:")
        for index, case in enumerate(slow):
            left = self.budget.left()
            if left <= 0:
                print(f"{case}: not measured again, no time is left")
                continue
            again = self.attempt(case, measure, case, self.sides, 2 * self.options.repeat, left / (len(slow) - index))
            if again:
                row = self.rows[str(case)]
                row["again"] = again
                row["slower"] = again["ratio"] > SLOWER
                print(row_text(case, again, "  <-- SLOWER, repeatedly" if row["slower"] else "  does not repeat"), flush=True)
                self.write()

    def summary(self):
        """For each suite and number of threads, and of the compilations."""
        suites = {}
        groups = {}
        for case in self.cases:
            groups.setdefault(case.suite + (f" {case.threads} thr" if case.threads else ""), []).append(case)
        for name, cases in groups.items():
            rows = [self.rows[str(case)] for case in cases if str(case) in self.rows]
            if not rows:
                continue
            ratios = [row["ratio"] for row in rows]
            suites[name] = {"cases": len(rows), "geometric_mean": round(statistics.geometric_mean(ratios), 4), "lowest": min(ratios),
                            "highest": max(ratios), "slower": sum(row.get("slower", row["ratio"] > SLOWER) for row in rows)}
        compiled = [case.compile for case in self.cases if len(case.compile) == 2]
        seconds = {}
        for kind in ("user_s", "system_s", "wall_s") if compiled else ():
            old, new = (sum(each[side.name][kind] for each in compiled) for side in self.sides)
            mean = statistics.geometric_mean([max(each["new"][kind], 1e-3) / max(each["old"][kind], 1e-3) for each in compiled])
            seconds[kind] = {"old": round(old, 2), "new": round(new, 2), "ratio_of_sums": round(new / old, 4),
                             "geometric_mean": round(mean, 4)}
        return {"suites": suites, "compile": {"cases": len(compiled)} | seconds}

    def write(self):
        if not self.options.output:
            return
        rows = [{"suite": case.suite, "case": case.name, "threads": case.threads, "precision": case.precision, "compile": case.compile}
                | self.rows.get(str(case), {}) for case in self.cases]
        document = self.result | self.summary() | {"failures": self.failures, "rows": rows}
        self.options.output.parent.mkdir(parents=True, exist_ok=True)
        self.options.output.write_text(json.dumps(document, indent=1) + "\n")

    def print_summary(self):
        found = self.summary()
        for name, suite in found["suites"].items():
            print(f"{name:20} geometric mean {suite['geometric_mean']:.4f} of {suite['cases']:3} cases, {suite['lowest']:.3f} to "
                  f"{suite['highest']:.3f}; {suite['slower']} slower by more than {SLOWER - 1:.0%}")
        for kind, seconds in found["compile"].items():
            if kind != "cases":
                print(f"compile {kind:12} {seconds['old']:.2f} -> {seconds['new']:.2f}: {seconds['ratio_of_sums']:.4f} of the sums, "
                      f"geometric mean {seconds['geometric_mean']:.4f} of {found['compile']['cases']} cases")
        print(f"{len(self.rows)} of {len(self.cases)} cases timed, {len(self.failures)} failures, {self.budget.used():.0f} s"
              + (f"; written: {self.options.output}" if self.options.output else ""))

    def run(self):
        print(f"{self.result['device']}; old {self.result['old']}, new {self.result['new']}")
        if self.options.target == "cuda" and not self.sides[0].worker:
            print("no bench/gpu_worker beside both: each burst is a process of its own, which takes seconds")
        try:
            self.prepare()
            if not self.options.compile_only:
                self.measure_all()
                self.measure_again()
        finally:
            for side in self.sides:
                if side.worker:
                    side.worker.close()
        self.write()
        self.print_summary()
        return 1 if self.failures else 0


def device(target):
    if target == "cuda":
        try:
            query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
            return subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip()
        except (OSError, subprocess.CalledProcessError):
            return f"no GPU; driver {os.environ.get('HEDDLE_CUDA_DRIVER', 'of the system')}"
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    name = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "unknown")
    return f"{name}, {len(os.sched_getaffinity(0))} cores"


def parse_arguments():
    cores = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", type=pathlib.Path, required=True, help="heddle before the change")
    parser.add_argument("--new", type=pathlib.Path, default=ROOT / "build/release/heddle", help="heddle with it")
    parser.add_argument("--commits", nargs=2, default=["", ""], metavar=("OLD", "NEW"), help="for the result file")
    parser.add_argument("--suite", nargs="+", default=SUITES, choices=SUITES)
    parser.add_argument("--only", nargs="+", help="cases alone whose names contain one of these")
    parser.add_argument("--models", nargs="+", metavar="NAME[:BATCH[:SEQ]]", help="of the suite models")
    parser.add_argument("--target", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2], help="on the CPU")
    parser.add_argument("--precision", choices=["f32", "tf32", "f16", "bf16"], help="of models; default: f16 on a GPU, f32 on the CPU")
    parser.add_argument("--repeat", type=int, default=5, help="pairs of bursts")
    parser.add_argument("--runs", type=int, default=20, help="of a burst of gpu_worker")
    parser.add_argument("--seconds", type=float, default=0.3, help="of a burst of heddle bench")
    parser.add_argument("--processor-time", action="store_true", help="on a CPU that does other work: with --threads 1 alone")
    parser.add_argument("--compile-only", action="store_true", help="compile times alone; needs no GPU")
    parser.add_argument("--jobs", type=int, default=max(1, cores // 2), help="compilations at a time; 1: their wall times count, too")
    parser.add_argument("--limit-seconds", type=float, default=math.inf, help="of the whole: fewer bursts, then fewer cases")
    parser.add_argument("-o", "--output", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args()
    options.precision = options.precision or {"cuda": "f16", "cpu": "f32"}[options.target]
    for heddle in (options.old, options.new):
        if not os.access(heddle, os.X_OK):
            parser.error(f"{heddle} is no program")
    if options.processor_time and (options.target != "cpu" or options.threads != [1]):
        parser.error("--processor-time: threads that wait spin, so it needs --target cpu --threads 1")
    return options


def main():
    options = parse_arguments()
    with tempfile.TemporaryDirectory(prefix="compare_builds-") as folder:
        sys.exit(Comparison(options, pathlib.Path(folder)).run())


if __name__ == "__main__":
    main()
