#!/usr/bin/env python3
"""Runs Triton's own tests on Heddle's tile language, and says of each file how many passed, were refused, gave wrong numbers or
crashed.

    python tests/conformance/run_triton.py TRITON [FILE...] [--device cpu|cuda] [--all] [-k WORDS] [--jobs N] [--json OUT]

TRITON is a checkout of triton-lang/triton; nothing of it is stored here. The files are those of python/test/unit, by default the
ones below. Of a test with many cases as few run as show each value of each of its parameters once; --all runs all. It needs pytest
and torch, and `heddle` on the path.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import threading

import pytest

HERE = pathlib.Path(__file__).resolve().parent
FILES = [
    "language/test_core.py", "language/test_standard.py", "language/test_random.py", "language/test_block_pointer.py",
    "language/test_tensor_descriptor.py", "language/test_tuple.py", "language/test_conversions.py", "language/test_libdevice.py",
    "language/test_compile_errors.py", "language/test_annotations.py", "language/test_decorator.py",
    "language/test_pipeliner.py", "runtime/test_autotuner.py", "runtime/test_launch.py", "test_debug.py",
]
TEXTS = ("ttir", "ttgir", "llir", "ptx", "amdgcn", "source")  # that kernels have in Triton alone
OUTCOMES = ("passed", "refused", "wrong", "crashed", "failed", "skipped")


class Sample:
    """The plugin of pytest: picks cases, writes what became of each, and ends the process where one takes too long."""

    def __init__(self, report: str, everything: bool, seconds: float, part: int, parts: int):
        self.report, self.everything, self.seconds, self.timer = report, everything, seconds, None
        self.part, self.parts = part, parts

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items):
        seen, kept = set(), []
        for item in items:
            call = getattr(item, "callspec", None)
            values = {(item.function, name, repr(value)) for name, value in call.params.items()} if call else {(item.function,)}
            if self.everything or not values <= seen:
                kept.append(item)
                seen |= values
        done = {(row[0], row[1]) for row in rows_of(self.report)}
        items[:] = [item for item in kept[self.part::self.parts] if (item.location[0], item.name) not in done]

    def pytest_runtest_setup(self, item):
        self.timer = threading.Timer(self.seconds, os._exit, [99])
        self.timer.daemon = True
        self.timer.start()

    def pytest_runtest_teardown(self, item):
        self.timer.cancel()

    def pytest_runtest_makereport(self, item, call):
        if call.when == "call" or call.excinfo is not None and call.when == "setup":
            outcome, message = outcome_of(call.excinfo)
            with open(self.report, "a") as file:
                file.write(json.dumps([item.location[0], item.name, outcome, message, round(call.duration, 2)]) + "\n")

    def pytest_runtest_logstart(self, nodeid, location):
        with open(self.report + ".now", "w") as file:
            file.write(json.dumps([location[0], location[2].rpartition(".")[2] if "[" not in location[2] else location[2]]))


def rows_of(report):
    """[file, test, outcome, message, seconds] of each case so far."""
    return [json.loads(line) for line in pathlib.Path(report).read_text().splitlines()] if os.path.exists(report) else []


def outcome_of(excinfo):
    if excinfo is None:
        return "passed", ""
    error = excinfo.value
    if isinstance(error, (pytest.skip.Exception, pytest.xfail.Exception)):
        return "skipped", str(error)
    import heddle

    words = str(error)
    if isinstance(error, heddle.Error):
        inner = getattr(error, "inner", None)
        while inner is not None:
            error, inner = inner, getattr(inner, "inner", None)
        return "refused", (getattr(error, "error_message", None) or words).strip()[-400:]
    if isinstance(error, KeyError) and words.strip("'") in TEXTS:
        return "skipped", f"asks for Triton's own {words}"
    if isinstance(error, AssertionError):
        return "wrong", words.strip()[:300]
    return "failed", f"{type(error).__name__}: {words.strip()[:300]}"


def child(arguments):
    """Runs pytest in this process: run_triton.py --child REPORT ALL SECONDS PART PARTS pytest's arguments."""
    sys.path.insert(0, str(HERE))
    report, everything, seconds, part, parts, *rest = arguments
    return pytest.main([*rest, "-q", "--tb=no", "--no-header", "-p", "no:cacheprovider"],
                       plugins=[Sample(report, everything == "1", float(seconds), int(part), int(parts))])


def run_part(unit, name, arguments, part):
    """A part of the tests of one file, again from behind each one that ended the process. Its report."""
    report = f"{os.path.abspath(arguments.json)}.{name.replace('/', '_')}.{part}"
    now = pathlib.Path(report + ".now")
    while True:
        now.unlink(missing_ok=True)
        command = [sys.executable, __file__, "--child", report, "1" if arguments.all else "0", str(arguments.seconds),
                   str(part), str(arguments.jobs), str(unit / name), "--device", arguments.device]
        if arguments.k:
            command += ["-k", arguments.k]
        done = subprocess.run(command, cwd=unit, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env={**os.environ, "HEDDLE_TRITON": str(arguments.triton.resolve()),
                                   "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])})
        if done.returncode in (0, 1, 5):
            return report
        if not now.exists():
            print(f"{name}: {done.stdout[-2000:]}")
            return report
        path, test = json.loads(now.read_text())
        why = f"more than {arguments.seconds:g} s" if done.returncode == 99 else done.stdout.strip()[-300:]
        with open(report, "a") as file:
            file.write(json.dumps([path, test, "crashed", why, 0]) + "\n")


def summary(report):
    counts, rows = collections.defaultdict(collections.Counter), []
    for row in rows_of(report):
        counts[os.path.basename(row[0])][row[2]] += 1
        rows.append(row)
    print(f"{'file':32}" + "".join(f"{name:>9}" for name in OUTCOMES))
    for name, found in [*counts.items(), ("all", sum(counts.values(), collections.Counter()))]:
        print(f"{name:32}" + "".join(f"{found[outcome]:>9}" for outcome in OUTCOMES))
    reasons = collections.Counter((outcome, message.strip().splitlines()[-1][:150] if message.strip() else "")
                                  for _, _, outcome, message, _ in rows if outcome not in ("passed", "skipped"))
    for (outcome, message), count in reasons.most_common(40):
        print(f"{count:5} {outcome}: {message}")


def main():
    if sys.argv[1:2] == ["--child"]:
        return child(sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("triton", type=pathlib.Path)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time, each with a part of a file")
    parser.add_argument("--all", action="store_true", help="all cases, not a sample")
    parser.add_argument("-k", default="", help="only tests whose names have these words, as pytest takes them")
    parser.add_argument("--json", default="triton_report.jsonl", help="where a line for each case goes")
    parser.add_argument("--seconds", type=float, default=60, help="for a case")
    arguments = parser.parse_args()
    unit = (arguments.triton / "python/test/unit").resolve()
    if not unit.is_dir():
        sys.exit(f"{arguments.triton} is no checkout of Triton: there is no {unit}")
    report = os.path.abspath(arguments.json)
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool, open(report, "w") as file:
        parts = [(name, part) for name in arguments.files or FILES for part in range(arguments.jobs)]
        for path in pool.map(lambda part: run_part(unit, part[0], arguments, part[1]), parts):
            file.writelines(open(path) if os.path.exists(path) else [])
            for left in (path, path + ".now"):
                pathlib.Path(left).unlink(missing_ok=True)
    summary(report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
