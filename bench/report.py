#!/usr/bin/env python3
"""Result files -> docs/performance.md, a page for each suite in docs/performance, their charts, and the table in README.md.

usage: report.py [--check]: with --check nothing is written; exit status 1 where a page differs from what the results say."""

import argparse
import json
import pathlib
import sys

import report_charts
import report_gpu
import report_summary
from report_gpu import table

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEAD = """# Performance

Each figure is the rival's time over Heddle's, measured in one process or in alternating bursts on one machine: above 1 Heddle is faster. GPU: {gpu}. CPU: {cpu}.
This page, the pages behind its links and the charts are written by `bench/report.py` from [bench/results](../bench/results); [bench](../bench/README.md) says how it is measured.

![Geometric mean and every case of each suite](performance/summary.svg)

"""
# Page -> title, kinds of results, chart.
PAGES = {
    "models-gpu": ("Models on a GPU", ["gpu_models"]),
    "products-gpu": ("Matrix products on a GPU", ["gpu_gemm"]),
    "layers-gpu": ("Single layers on a GPU", ["gpu_layers"]),
    "pictures-gpu": ("Stable Diffusion on a GPU", ["gpu_pictures"]),
    "training-gpu": ("Training steps on a GPU", ["gpu_training"]),
    "epilogues-gpu": ("Epilogues on a GPU", ["gpu_epilogues"]),
    "stitch-gpu": ("Stitch suite on a GPU", ["stitch_gpu"]),
    "rows-gpu": ("Rows of all lengths on a GPU", ["rows_gpu"]),
    "models-cpu": ("Models on a CPU", ["cpu_models"]),
    "stitch-cpu": ("Stitch suite on a CPU", ["stitch_cpu"]),
    "energy-gpu": ("Joules of a run on a GPU", ["gpu_energy"]),
    "codesign": ("What a change of a network's design costs", ["codesign"]),
    "ablation": ("What stitching brings", ["ablation"]),
}
README_MARKS = "<!-- bench/report.py writes what follows -->\n", "<!-- end -->\n"


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
    text += "\nRatio: ONNX Runtime's time over Heddle's; above 1 Heddle is faster. Ratio of the best: the same for the "
    text += "fastest tenth of each side's fastest burst. Floor: the time of direct arithmetic at\nthe hardware's peak; Winograd convolutions need less arithmetic and may go below.\n"
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
        + "\nPeaks are of whole processes (ONNX Runtime's includes Python). Ratio: peak over ONNX Runtime's.\n"
    )


def stitch_section(name, result):
    device, bandwidth = result["device"], result["copy_gbps"]
    text = (
        f"## Stitch suite: {name}\n\n{device['cpu']}, {device['cores']} cores; ONNX Runtime {result['onnxruntime']}; "
        f"{result['date']}, commit {result['commit']}; {result['time']} time; copy bandwidth "
        + ", ".join(f"{gbps:.1f} GB/s on {threads} thread(s)" for threads, gbps in bandwidth.items())
        + ".\nIn brackets: the number of kernels. Floor: the time to move inputs and outputs once at copy bandwidth; data in the caches can be faster.\n\n"
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


def paired(group):
    """Comparisons of the same cases (types, numbers of threads) as rows of bars."""
    names = list(dict.fromkeys(case for one in group for case, _ in one.cases))
    return [(name, [dict(one.cases).get(name) for one in group]) for name in names]


def ablation_rows(result):
    """Speed over no fusion, by model, and the names of the steps."""
    rows = {}
    for row in result["times"]:
        rows.setdefault(row["model"], {})[row["step"]] = row["ms"]
    steps = list(next(iter(rows.values())))[1:] if rows else []
    return steps, [(model, [times["none"] / times[step] for step in steps]) for model, times in rows.items()]


def make_charts(results, found):
    """Name -> SVG."""
    charts = {}
    device = {one.page: one.result["device"] if not one.on_cpu else one.result["device"]["cpu"] for one in found}
    note = "The rival's time over Heddle's; above 1 Heddle is faster. "
    all_rows = [(f"{'CPU' if one.on_cpu else 'GPU'}  {one.suite} / {one.rival}", one.cases) for one in found]
    dots = note + "A dot is a case, the stroke the geometric mean."
    charts["summary"] = report_charts.strips("Every case of every suite", dots, all_rows)
    for page, (title, _) in PAGES.items():
        group = [one for one in found if one.page == page]
        if not group:
            continue
        rival = group[0].rival
        main = [one for one in group if one.rival == rival and len(one.cases) > 1]
        text = f"{note}{device[page]}."
        if page in ("products-gpu", "layers-gpu", "rows-gpu"):
            rows = [(one.suite, one.cases) for one in main]
            charts[page] = report_charts.strips(f"{title}, beside {rival}", text, rows)
        else:
            names = [one.suite.rsplit(", ", 1)[1] for one in main]
            charts[page] = report_charts.bars(f"{title}, beside {rival}", text, names, paired(main))
    for name, result in results:
        if result["kind"] == "ablation" and result["times"]:
            steps, rows = ablation_rows(result)
            title = f"Time without fusion over the time with it: {name}"
            charts[name] = report_charts.bars(title, "", steps, rows)
    return charts


def make_pages(results, charts):
    """Name -> text, of each suite."""
    pages = {}
    for page, (title, kinds) in PAGES.items():
        chosen = [(name, result) for name, result in results if result["kind"] in kinds]
        if not chosen:
            continue
        parts = [f"# {title}\n\nWritten by `bench/report.py`; [summary of all suites](../performance.md).\n"]
        parts += [f"![{title}]({name}.svg)\n" for name in charts if name == page]
        for name, result in chosen:
            parts.append(section(name, result))
            parts += [f"![{name}]({name}.svg)\n"] if name in charts else []
        pages[page] = "\n".join(parts).rstrip("\n") + "\n"
    return pages


def devices(found, on_cpu):
    names = [one.result["device"] for one in found if one.on_cpu == on_cpu]
    if on_cpu:
        names = [f"{device['cpu']}, {device['cores']} cores" for device in names]
    return "; ".join(dict.fromkeys(name.split(",")[0] if not on_cpu else name for name in names)) or "none"


def summary_page(results, found, charts):
    parts = [HEAD.format(gpu=devices(found, False), cpu=devices(found, True))]
    parts.append(report_summary.summary_table(found, "performance/") + "\n" + report_summary.remarks(found))
    for name, result in results:
        if result["kind"] == "ablation":
            where = result["device"].get("gpu") or result["device"]["cpu"]
            parts.append(
                f"- [What stitching brings](performance/ablation.md), {where.split(', ')[0]}: {result['fewer_memory']:.0%} fewer memory-bound "
                f"kernels in five models than by ordinary fusion ({result['date']}, {result['commit']}).\n"
            )
        if result["kind"] == "gpu_epilogues":
            parts.append(f"- [Epilogues](performance/epilogues-gpu.md): what they cost over the plain product ({result['date']}, {result['commit']}).\n")
        if result["kind"] == "gpu_energy":
            mean = report_gpu.geometric_mean([row["over_torch"] for row in result["rows"]])
            parts.append(f"- [Joules of a run](performance/energy-gpu.md): PyTorch's reduce-overhead takes {mean:.2f} times Heddle's in {len(result['rows'])} models "
                         f"({result['date']}, {result['commit']}).\n")
        if result["kind"] == "codesign":
            parts.append(f"- [What a change of a network's design costs](performance/codesign.md), {result['device']} ({result['date']}, {result['commit']}).\n")
    lost, count = sum(len(one.lost) for one in found), sum(len(one.cases) for one in found)
    parts.append(f"\n## Rows that lose\n\n{lost} of {count} cases, the slowest of each suite first.\n\n" + report_summary.lost_list(found))
    parts.append("\n## Models\n\n")
    parts += [f"![{PAGES[page][0]}](performance/{page}.svg)\n\n" for page in ("models-gpu", "models-cpu") if page in charts]
    return "".join(parts).rstrip("\n") + "\n"


def readme(text, found):
    begin, end = README_MARKS
    before, rest = text.split(begin, 1)
    return before + begin + report_summary.headline(found) + end + rest.split(end, 1)[1]


def make_files():
    """Path -> text, of everything that the results decide."""
    kinds = {kind for _, of_page in PAGES.values() for kind in of_page}
    results = [(path.stem, json.loads(path.read_text())) for path in sorted((ROOT / "bench/results").glob("*.json"))]
    results = [(name, result) for name, result in results if result["kind"] in kinds]
    found = report_summary.ordered(results)
    charts = make_charts(results, found)
    folder = ROOT / "docs/performance"
    files = {folder / f"{name}.svg": chart for name, chart in charts.items()}
    files |= {folder / f"{name}.md": text for name, text in make_pages(results, charts).items()}
    files[ROOT / "docs/performance.md"] = summary_page(results, found, charts)
    files[ROOT / "README.md"] = readme((ROOT / "README.md").read_text(), found)
    return files


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="writes nothing; exit status 1 where a file is not what the results say")
    check = parser.parse_args().check
    files = make_files()
    old = [path for path in (ROOT / "docs/performance").glob("*") if path not in files]
    differ = [path for path, text in files.items() if not path.exists() or path.read_text() != text] + old
    for path in sorted(differ):
        if check:
            print(f"{path.relative_to(ROOT)}: not what bench/results say; run bench/report.py")
        elif path in files:
            path.parent.mkdir(exist_ok=True)
            path.write_text(files[path])
        else:
            path.unlink()
    return 1 if check and differ else 0


if __name__ == "__main__":
    sys.exit(main())
