#!/usr/bin/env python3
"""Runs trained models of packages on PyPI by `heddle run MODEL` alone: trained_models.py HEDDLE --into build/trained

Nothing says the extents of their inputs; each model runs, or fails with one line that says which --shape to give. The
packages are downloaded once (about 150 MB) and nothing of them is installed. Prints one line a model; the exit code is
the number of models that neither run nor say what to give.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import time
import zipfile

PACKAGES = [
    "basic-pitch==0.4.0",
    "ddddocr==1.6.1",
    "magika==1.0.3",
    "rapidocr==3.10.0",
    "rapidocr-onnxruntime==1.4.4",
    "silero-vad==6.2.3",
    "speechmos==0.0.1.1",
]
LIMIT_S = 600  # of one run, compiling included


def fetch(package, folder):
    """The ONNX files of a package's wheel, in a folder of its name."""
    into = folder / package.split("==")[0]
    if not into.is_dir():
        wheels = folder / "wheels"
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d", str(wheels)]
        subprocess.run([*command, package], check=True)
        stem = package.split("==")[0].replace("-", "_")
        with zipfile.ZipFile(next(wheels.glob(f"{stem}-*.whl"))) as wheel:
            members = [name for name in wheel.namelist() if name.endswith(".onnx")]
            into.mkdir()
            for name in members:
                (into / pathlib.PurePath(name).name).write_bytes(wheel.read(name))
    return sorted(into.glob("*.onnx"))


def run(heddle, model):
    """(what became of it, seconds, the line that tells)"""
    start = time.monotonic()
    done = subprocess.run([heddle, "run", str(model)], capture_output=True, text=True, timeout=LIMIT_S, errors="replace")
    seconds = time.monotonic() - start
    lines = [line for line in done.stderr.splitlines() if line.startswith("heddle: ")]
    line = lines[-1] if lines else ""
    if done.returncode == 0:
        return "runs", seconds, line
    return ("says what to give" if re.search(r"--shape \S+=|--input", line) else "fails"), seconds, line


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("heddle", type=pathlib.Path)
    parser.add_argument("--into", type=pathlib.Path, required=True, help="folder of the downloads")
    arguments = parser.parse_args()
    arguments.into.mkdir(parents=True, exist_ok=True)
    count = failures = 0
    for package in PACKAGES:
        for model in fetch(package, arguments.into):
            result, seconds, line = run(arguments.heddle.resolve(), model)
            count += 1
            failures += result == "fails"
            print(f"{result:18} {seconds:6.1f} s  {package.split('==')[0]}/{model.name}  {line}", flush=True)
    print(f"{count - failures} of {count} run or say what to give")
    return failures


if __name__ == "__main__":
    sys.exit(main())
