#!/usr/bin/env python3
"""Checks what a compiler does not: the direction of includes, the length of files, that each folder has a README.

Exit status 1 with one line per finding. Limits that are exceeded are findings, not warnings.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAX_LINES = 600

# What each folder may include besides itself, include/heddle and base. docs/design/overview.md says why.
ALLOWED = {
    "base": set(),
    "target": set(),
    "ir": set(),
    "frontend": {"ir"},
    "passes": {"ir", "target"},
    "schedule": {"ir", "target", "tile/core"},
    "codegen": {"ir", "target", "schedule"},
    "jit": {"target"},
    "tune": {"codegen", "jit", "target", "schedule"},
    "runtime": {"jit", "target"},
    "profile": {"runtime", "target"},
    "zoo": set(),
    "driver": {"ir", "target", "frontend", "passes", "schedule", "codegen", "jit", "tune", "runtime", "profile", "tile/core"},
    "cli": {"ir", "target", "frontend", "passes", "schedule", "codegen", "jit", "tune", "runtime", "profile", "driver", "zoo"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^">]+)[">]')
# Headers that a freestanding tile header may use.
TILE_SYSTEM = {"stdint.h", "stddef.h"}


def tracked_sources():
    for folder in ("include", "src", "tile", "tests", "bench", "examples"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in {".h", ".cc", ".cuh", ".cu", ".def", ".py"} and "build" not in path.parts:
                yield path


def includes(path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if match := INCLUDE.match(line):
            yield number, match.group(1), match.group(2)


def check_direction(path, findings):
    relative = path.relative_to(ROOT)
    where = relative.parts[0]
    for number, quote, name in includes(path):
        first = name.split("/")[0]
        if where == "tile":
            if quote == '"' and first != "tile":
                findings.append(f"{relative}:{number}: tile may include tile only, not {name}")
            if quote == "<" and name not in TILE_SYSTEM:
                findings.append(f"{relative}:{number}: tile is freestanding, {name} is not allowed")
        elif where == "src" and quote == '"' and first != "heddle":
            folder = relative.parts[1]
            allowed = ALLOWED[folder] | {folder, "base"}
            if first not in allowed and "/".join(name.split("/")[:2]) not in allowed:
                findings.append(f"{relative}:{number}: {folder} may not include {name}")


def main():
    findings = []
    for path in tracked_sources():
        lines = path.read_text().count("\n")
        if lines > MAX_LINES:
            findings.append(f"{path.relative_to(ROOT)}: {lines} lines, at most {MAX_LINES}")
        if path.suffix in {".h", ".cc", ".def"}:
            check_direction(path, findings)
    for folder in [*(ROOT / "src").iterdir(), ROOT / "tile"]:  # the first README below it counts (frontend/onnx)
        if folder.is_dir() and any(folder.rglob("*.[ch]*")) and not any(folder.rglob("README.md")):
            findings.append(f"{folder.relative_to(ROOT)}: no README.md")
    print("\n".join(findings) or "tree: includes, file lengths and folder READMEs are in order")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
