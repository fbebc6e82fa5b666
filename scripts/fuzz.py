#!/usr/bin/env python3
"""The long run of the fuzzers for hostile files (tests/README.md): goes on where it stopped, and writes docs/reliability.md.

    cmake --preset debug && cmake --build build/debug --target heddle_fuzz_attacks
    scripts/fuzz.py                                       # all of it; stopped and begun again as often as wanted
    scripts/fuzz.py --models 1000 --seconds 600           # so many models, and no attack for longer than ten minutes
    scripts/fuzz.py --program build/release/tests/fuzz/heddle_fuzz_sanitized     # sanitizers in what reads files only
    scripts/fuzz.py --retry                               # only the cases that failed: the page says which pass now
    scripts/fuzz.py --report docs/reliability.md          # nothing is run: the page from what the runs have written

Cases that fail are kept below --state, made small, with a line that says how to repeat each.
Scratch files go to $TMPDIR; `external` writes files of some GB there and needs a disk that holds them.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# How many cases the whole run has, and what an attack is.
ATTACKS = {
    "models": (100000, "ONNX models with operators, attributes, edges, shapes, types, weights, subgraphs and functions"
                       " changed, and protobuf damaged below that; import, passes, schedule, text of the kernels for a"
                       " CPU and a GPU; one of 500 compiled and run"),
    "external": (10000, "weights in files beside the model: sizes, offsets, names, links, pipes"),
    "texts": (50000, "textual IR; passes, schedule, text of the kernels for a CPU and a GPU; one of 500 compiled and run"),
    "plans": (15000, "plan files: bytes with checksums that are wrong or mended, indices, sizes, types, bodies"),
    "entries": (5000, "entries of the cache"),
    "databases": (2000, "the tuning database"),
    "arrays": (20000, ".npy files"),
    "profiles": (20000, "profiles of `heddle profile`: fields, types, numbers, trees and timelines changed, and bytes; all"
                        " views, differences, merges and forms of other viewers"),
}
PAGE = """# Reliability

Attacks on the compiler with hostile files. It is built with the address and undefined-behaviour sanitizers, in builds
named "readers sanitized" only in the code that reads files. A case passes if it ends with a result
or with a `heddle::Error` that is not internal. A crash, a sanitizer report, 20 s of processor time,
an internal error, another exception, output on stdout or 2 GB of additional memory is a failure.
`scripts/fuzz.py` wrote this page from the files of its runs; tests/README.md says how to repeat them.

| attack | what | cases | of the whole run | failures | hours of processor time |
|---|---|---:|---:|---:|---:|
{rows}

Outcomes. `HDLxxx` is the error's page in docs/errors; "ran": compiled by the C++ compiler and run.

| attack | outcomes |
|---|---|
{outcomes}

{failures}
| build | cases | days |
|---|---:|---|
{builds}
"""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, (count, _) in ATTACKS.items():
        parser.add_argument(f"--{name}", type=int, default=count, metavar="N", help=f"cases (default: {count})")
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/debug/tests/fuzz/heddle_fuzz_attacks")
    parser.add_argument("--state", type=pathlib.Path, default=ROOT / "build/fuzz", help="folder for progress and failures")
    parser.add_argument("--label", help="name of the build in the report (default: the commit, and what is sanitized)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no cases of an attack after this time")
    parser.add_argument("--retry", action="store_true", help="run the failed cases again")
    parser.add_argument("--report", type=pathlib.Path, help="write this page and run nothing")
    parser.add_argument("--only", choices=ATTACKS, nargs="+", default=list(ATTACKS))
    return parser.parse_args()


def build_label(program):
    commit = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty", "--abbrev=10"], capture_output=True,
                            text=True, check=True).stdout.strip()
    return commit + (", readers sanitized" if program.name == "heddle_fuzz_sanitized" else ", sanitized")


def environment_of(options):
    environment = dict(os.environ, HEDDLE_CACHE_DIR=str(options.state / "cache"))
    emulator = ROOT / "build/release/libheddle_cuda_emulator.so"
    if "HEDDLE_CUDA_DRIVER" not in environment and emulator.exists():
        environment["HEDDLE_CUDA_DRIVER"] = str(emulator)
    return environment


def command_of(options, name):
    nodes = list(ROOT.glob("build/venv/lib/python3*/site-packages/onnx/backend/test/data/node"))
    command = [options.program, name, "--run-every", 500]
    for folder in nodes:
        command += ["--dir", folder]
    return command


def call(command, options):
    return subprocess.run([str(word) for word in command], env=environment_of(options), check=False).returncode


def run(options):
    if not options.program.exists():
        sys.exit(f"fuzz: there is no {options.program}; build it, or name another with --program")
    failures = options.state / "failures"
    failures.mkdir(parents=True, exist_ok=True)
    label = options.label or build_label(options.program)
    failed = 0
    for name in options.only:
        command = command_of(options, name) + ["--count", getattr(options, name), "--jobs", options.jobs,
                                               "--build", label, "--state", options.state / f"{name}.json",
                                               "--save", failures, "--seconds", options.seconds, "--max-failures", 100]
        failed |= call(command, options)
    return failed


def retry(options):
    """Cases that pass now are marked with the build."""
    label = options.label or build_label(options.program)
    failed = 0
    for name in options.only:
        path = options.state / f"{name}.json"
        state = json.loads(path.read_text()) if path.exists() else {"failures": []}
        for failure in state["failures"]:
            result = call(command_of(options, name) + ["--count", 1, "--seed", failure["seed"]], options)
            failed |= result
            if result == 0:
                failure["passes_in"] = label
        if state["failures"]:
            path.write_text(json.dumps(state, indent=1) + "\n")
    return failed


def write_page(options):
    states = {name: json.loads(path.read_text()) for name in ATTACKS if (path := options.state / f"{name}.json").exists()}
    rows, outcomes, failures, builds = [], [], [], {}
    for name, state in states.items():
        count, what = ATTACKS[name]
        rows.append(f"| {name} | {what} | {state['cases']:,} | {state['cases'] / count:.0%} | {len(state['failures'])} | "
                    f"{state['cpu_seconds'] / 3600:.2f} |")
        listed = sorted(state["outcomes"].items(), key=lambda item: -item[1])
        outcomes.append(f"| {name} | " + ", ".join(f"{cases:,} {outcome}" for outcome, cases in listed) + " |")
        failures += [f"- {name}, seed {failure['seed']}: {failure['what'][:300]}"
                     + (f"; passes in {failure['passes_in']}" if "passes_in" in failure else "")
                     for failure in state["failures"]]
        for build, cases in state["builds"].items():
            total, first, last = builds.get(build, (0, state["first_day"], state["last_day"]))
            builds[build] = (total + cases, min(first, state["first_day"]), max(last, state["last_day"]))
    page = PAGE.format(
        rows="\n".join(rows), outcomes="\n".join(outcomes),
        failures="\n".join(["Failures:", "", *failures, ""]) if failures else "No case failed.\n",
        builds="\n".join(f"| {build} | {cases:,} | {first if first == last else f'{first} to {last}'} |"
                         for build, (cases, first, last) in builds.items()))
    options.report.write_text(page)


def main():
    options = arguments()
    if options.report:
        write_page(options)
        return 0
    return retry(options) if options.retry else run(options)


if __name__ == "__main__":
    sys.exit(main())
