#!/usr/bin/env python3
"""Result files -> docs/performance.md: report.py [FILE...] (default: bench/results/*.json)."""

import argparse
import json
import pathlib

import report_gpu
from report_gpu import table

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEAD = """# Performance

Made by `bench/report.py` from `bench/results/`; change the results, not this page. How the numbers come about:
`bench/README.md`.
"""


def mebibytes(count):
    return f"{count / 2**20:.0f}"


def speed_section(result):
    rows = []
    for row in result["speed"]:
        floor = "" if row.get("floor_ms") is None else f"{row['floor_ms']:.2f}"
        rows.append(
            [
                row["model"],
                str(row["threads"]),
                f"{row['heddle_ms']:.2f}",
                f"{row['ort_ms']:.2f}",
                f"{row['ratio']:.2f}",
                f"{row['best_ratio']:.2f}",
                floor,
                f"{row['heddle_spread']:.0%} / {row['ort_spread']:.0%}",
            ]
        )
    text = "### Time of one run, f32, batch 1\n\n" + table(
        [
            "model",
            "threads",
            "Heddle ms",
            "ONNX Runtime ms",
            "ratio",
            "ratio of the best",
            "floor ms",
            "spread of bursts",
        ],
        rows,
    )
    text += "\nRatio: ONNX Runtime's time over Heddle's, above 1 Heddle is faster; of the best: the "
    text += "fastest tenth of the fastest burst of each. Floor: what the hardware's peak\nwould allow direct arithmetic; Winograd convolutions need less of it and may go below.\n"
    if result.get("geometric_mean"):
        text += f"Geometric mean of the ratios: {result['geometric_mean']:.3f}.\n"
    return text


def compile_section(result):
    rows = [
        [
            row["model"],
            f"{row['cold_s']:.2f}",
            f"{row['cached_s']:.3f}",
            f"{row['ort_load_s']:.2f}",
            mebibytes(row["peak_bytes"]),
            mebibytes(row["peak_cold_bytes"]),
            mebibytes(row["ort_peak_bytes"]),
            f"{row['memory_ratio']:.2f}",
        ]
        for row in result["compile"]
    ]
    text = "### Compile time and peak memory\n\n" + table(
        [
            "model",
            "compile, cold s",
            "compile, cached s",
            "ONNX Runtime load s",
            "peak MiB",
            "peak while compiling MiB",
            "ONNX Runtime peak MiB",
            "ratio",
        ],
        rows,
    )
    return (
        text
        + "\nPeaks are those of whole processes (ONNX Runtime's holds Python). Ratio: peak over ONNX Runtime's.\n"
    )


def stitch_section(name, result):
    device, bandwidth = result["device"], result["copy_gbps"]
    text = (
        f"## Stitch suite: {name}\n\n{device['cpu']}, {device['cores']} cores; ONNX Runtime {result['onnxruntime']}; "
        f"{result['date']}, commit {result['commit']}; {result['time']} time; copy bandwidth "
        + ", ".join(f"{gbps:.1f} GB/s on {threads} thread(s)" for threads, gbps in bandwidth.items())
        + ".\nKernels in brackets. The floor is inputs and outputs once at copy bandwidth; what the caches hold can be below it.\n\n"
    )
    rows = [
        [
            row["case"],
            str(row["threads"]),
            f"{row['floor_ms']:.3f}",
            f"{row['stitch_ms']:.3f} ({row['kernels']['stitch']})",
            f"{row['basic_ms']:.3f} ({row['kernels']['basic']})",
            f"{row['none_ms']:.3f} ({row['kernels']['none']})",
            f"{row['ort_ms']:.3f}",
            f"{row['over_ort']:.2f}",
            f"{row['over_basic']:.2f}",
        ]
        for row in result["rows"]
    ]
    headings = ["case", "threads", "floor ms", "stitch", "basic", "none", "ONNX Runtime", "over ORT", "over basic"]
    text += table(headings, rows) + "\nGeometric means: "
    means = {key: value for key, value in result.items() if key.startswith("geometric_mean_over_")}
    return text + "; ".join(f"{key[20:].replace('_', ', threads ')}: {value:.2f}" for key, value in means.items()) + ".\n"


def ablation_section(name, result):
    device = result["device"].get("gpu") or result["device"]["cpu"]
    text = f"## What stitching brings: {name}\n\n{device}; {result.get('precision', 'f32')}; "
    text += f"{result['date']}, commit {result['commit']}.\n\n"
    rows = [
        [row["model"], row["policy"], *(str(row[key]) for key in ("memory", "memory_run", "copies", "copies_run"))]
        for row in result["kernels"]
    ]
    text += table(["model", "policy", "memory-bound kernels", "in a run", "copies", "in a run"], rows)
    text += f"\nStitch has {result['fewer_memory']:.0%} fewer memory-bound kernels than basic on average, "
    text += f"{result['fewer_memory_run']:.0%} fewer in a run (bodies of loops counted as often as they run).\n"
    rows = [[row["model"], row["step"], f"{row['ms']:.3f}", f"{row['spread']:.0%}"] for row in result["times"]]
    return text + ("\n" + table(["model", "step", "ms", "spread"], rows) if rows else "")


SECTIONS = {"stitch_cpu": stitch_section, "ablation": ablation_section, **report_gpu.SECTIONS}


def section(name, result):
    if result["kind"] in SECTIONS:
        return SECTIONS[result["kind"]](name, result)
    device = result["device"]
    parts = [
        f"## {name}\n\n{device['cpu']}, {device['cores']} cores, {device['system']}; "
        f"ONNX Runtime {result['onnxruntime']}; "
        f"{result['date']}, commit {result['commit']}; load when it started {result['load_before']:.1f}.\n"
    ]
    if result["speed"]:
        parts.append(speed_section(result))
    if result["compile"]:
        parts.append(compile_section(result))
    if result["problems"]:
        parts.append(
            "Failed: " + "; ".join(f"{p['model']}: {p['error'].splitlines()[0]}" for p in result["problems"]) + "\n"
        )
    return "\n".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "docs/performance.md")
    arguments = parser.parse_args()
    files = arguments.files or sorted((ROOT / "bench/results").glob("*.json"))
    results = [(path.stem, json.loads(path.read_text())) for path in files]
    parts = [HEAD, *(section(name, result) for name, result in results if result["kind"] in ("cpu_models", *SECTIONS))]
    arguments.output.write_text("\n".join(parts))


if __name__ == "__main__":
    main()
