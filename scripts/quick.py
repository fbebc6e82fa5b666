#!/usr/bin/env python3
"""Builds and runs the test folders that a change touches: quick.py [--build build/release] [--seconds 60] [--jobs N].

The change is what `git status` shows, else what the last commits have that the upstream branch lacks, else the last commit. A file of src/X belongs to
tests/X; where no folder of tests belongs to the change, the unit tests of src/base, ir and passes run. Of the tests found, the cheapest run first until
they fill --seconds; the last line says how many were left for `make test`. Exit status 1 if a build or a test fails. --costs
prints the seconds of each folder's tests instead, as CTest recorded them in earlier runs."""
import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Changes of these show in the texts of kernels.
SHOWN_IN_TEXTS = {"ir", "passes", "schedule", "codegen", "target"}
FALLBACK = ["tests/base", "tests/ir", "tests/passes"]
UNKNOWN_COST = 0.5  # seconds of a test that never ran


def git(*arguments):
    result = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True, check=False)
    return result.stdout.splitlines() if result.returncode == 0 else []


def changed_files():
    changed = git("diff", "--name-only", "HEAD") + git("ls-files", "--others", "--exclude-standard")
    return changed or git("diff", "--name-only", "@{upstream}...HEAD") or git("diff", "--name-only", "HEAD~1", "HEAD")


def folders_of(path):
    """Folders of tests that a changed file belongs to, as candidates: some may not exist."""
    parts = pathlib.PurePosixPath(path).parts
    if parts[0] == "tests" and len(parts) > 2:
        folder = pathlib.PurePosixPath(*parts[:-1])
        while len(folder.parts) > 2 and not (ROOT / folder / "CMakeLists.txt").exists():
            folder = folder.parent
        return [str(folder)]
    if parts[0] == "src" and len(parts) > 2:
        return [f"tests/{parts[1]}"] + (["tests/codegen/golden"] if parts[1] in SHOWN_IN_TEXTS else [])
    if parts[0] == "tile":
        return ["tests/tile_core"] if parts[1] == "core" else ["tests/tile"]
    if parts[0] == "include":
        return ["tests/driver"]
    return [f"tests/{parts[0]}"] if parts[0] in ("python", "examples") else []


def folders_of_change():
    found = {f for path in changed_files() for f in folders_of(path) if (ROOT / f / "CMakeLists.txt").exists()}
    # A folder's target has those below it.
    found = {f for f in found if not any(f.startswith(other + "/") for other in found)}
    return sorted(found) or FALLBACK


def costs(build):
    """Seconds that each test took on average, as CTest remembers them."""
    known = {}
    path = build / "Testing/Temporary/CTestCostData.txt"
    for line in path.read_text().splitlines() if path.exists() else []:
        if line.startswith("---"):
            break
        name, _, cost = line.rsplit(" ", 2)
        known[name] = float(cost)
    return known


def list_tests(build):
    """(number, name, folder) of each test that needs no GPU; CTest counts from 1."""
    listed = subprocess.run(["ctest", "--test-dir", build, "-N", "--show-only=json-v1"], capture_output=True, text=True, check=True)
    for number, test in enumerate(json.loads(listed.stdout)["tests"], 1):
        properties = {p["name"]: p["value"] for p in test["properties"]}
        if "gpu" not in properties.get("LABELS", []):
            yield number, test["name"], pathlib.Path(properties.get("WORKING_DIRECTORY", build))


def choose(build, folders, budget):
    """(numbers of the tests to run, how many there are)."""
    known, tests, chosen = costs(build), [], []
    for number, name, where in list_tests(build):
        if any(where.is_relative_to(build / folder) for folder in folders):
            tests.append((known.get(name) or UNKNOWN_COST, number))
    for cost, number in sorted(tests):
        budget -= cost
        if budget < 0:
            break
        chosen.append(number)
    return chosen, len(tests)


def print_costs(build):
    known, sums = costs(build), collections.defaultdict(list)
    for _, name, where in list_tests(build):
        if name in known:
            sums[where.relative_to(build)].append(known[name])
    print("| folder | tests | seconds |\n|---|---:|---:|")
    for folder, seconds in sorted(sums.items(), key=lambda item: -sum(item[1])):
        print(f"| `{folder}` | {len(seconds)} | {sum(seconds):.0f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--costs", action="store_true")
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    if arguments.costs:
        print_costs(build)
        return 0
    folders = folders_of_change()
    print("quick:", " ".join(folders), flush=True)
    targets = [f"{folder}/all" for folder in folders]
    if subprocess.run(["cmake", "--build", build, "-j", str(arguments.jobs), "--target", *targets], check=False).returncode != 0:
        return 1
    chosen, count = choose(build, folders, arguments.seconds * arguments.jobs)
    status = 0
    if chosen:
        numbers = ",".join(map(str, [1, 0, 1, *chosen]))  # no range of tests, then their numbers
        status = subprocess.run(["ctest", "--test-dir", build, "-j", str(arguments.jobs), "--output-on-failure", "--progress", "-I", numbers],
                                check=False).returncode
    print(f"quick: {len(chosen)} of the {count} tests of {' '.join(folders)}; `make test` runs all")
    return 1 if status else 0


if __name__ == "__main__":
    sys.exit(main())
