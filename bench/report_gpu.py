"""The GPU's sections of the pages in docs/performance (report.py), and what they are made of.

usage: report_gpu.py FOLDER NAME [--commit C] [--device D] [--add]: keeps what gpu.sh left in FOLDER as
bench/results/NAME-*.json. With --add rows of models and layers join those of the file; each says when it was measured."""

import argparse
import datetime
import json
import math
import pathlib
import statistics
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent


def table(headings, rows):
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def geometric_mean(values):
    """Not a number where there are none, so that a table without rivals still prints."""
    return statistics.geometric_mean(values) if values else math.nan


def rows_of(result):
    lists = [result["rows"]] if "rows" in result else (result.get("precisions") or result.get("types") or {}).values()
    return [row for rows in lists for row in rows]


def when(result, rows):
    """Date and commit of the run in which rows of a file were measured; of several runs their days, and the number of commits."""
    runs = {(row.get("date", result["date"]), row.get("commit", result["commit"])) for row in rows} or {(result["date"], result["commit"])}
    days, commits = sorted({day for day, _ in runs}), {commit for _, commit in runs}
    days = " to ".join(dict.fromkeys((days[0], days[-1])))
    return f"{days}, {commits.pop() if len(commits) == 1 else f'{len(commits)} commits'}"


def origin(result):
    note = f"\n{result['note']}" if result.get("note") else ""
    return f"{result['device']}; {when(result, rows_of(result))}.{note}\n\n"


def measured(row, result, has_dates):
    """When a row was measured, where rows of one file come from several runs."""
    return [f"{row.get('date', result['date'])}, {row.get('commit', result['commit'])}"] if has_dates else []


def joined(name, facts, rows, key):
    """Rows of a new run with those of the file that it does not have, each with date and commit."""
    path = ROOT / "bench/results" / f"{name}.json"
    earlier = json.loads(path.read_text()) if path.exists() else {"rows": [], **facts}
    before = earlier["rows"] if "rows" in earlier else [row for rows in earlier["precisions"].values() for row in rows]
    new = [row | {"date": facts["date"], "commit": facts["commit"]} for row in rows]
    known = {key(row) for row in new}
    return new + [{"date": earlier["date"], "commit": earlier["commit"]} | row for row in before if key(row) not in known]


def gemm_section(name, result):
    text = f"## Matrix products: {name}\n\n" + origin(result)
    text += "D = A B^T, L2 cold, random data, medians of CUDA graphs; both sides alternate in one process. cuBLASLt: the best of all\n"
    text += "heuristics it returns with 64 MiB of workspace. Ratio: its time over Heddle's; above 1 Heddle is faster. Both times include an\n"
    text += f"empty graph ({result['empty_graph_us']:.2f} us). First choice: the speed of the cost model's pick as a share of the best.\n\n"
    for dtype, rows in result["types"].items():
        timed = [row for row in rows if row.get("us") and row.get("library_us")]
        body = [
            [
                f"{row['m']}, {row['n']}, {row['k']}",
                f"{row['us']:.2f}",
                f"{row['library_us']:.2f}",
                f"{row['library_us'] / row['us']:.2f}",
                f"{row['floor_us']:.1f}",
                f"{min(1, row['best_quick_us'] / row['pick_us']):.0%}",
                row["best"],
            ]
            for row in timed
        ]
        headings = ["M, N, K", "Heddle us", "cuBLASLt us", "ratio", "floor us", "first choice", "configuration"]
        text += f"### {dtype}\n\n" + table(headings, body)
        ratios = [row["library_us"] / row["us"] for row in timed]
        small = [row["library_us"] / row["us"] for row in timed if min(row["m"], row["n"]) <= 128]
        choice = [min(1, row["best_quick_us"] / row["pick_us"]) for row in timed]
        text += f"\nGeometric means: {geometric_mean(ratios):.3f} over {len(ratios)} shapes, "
        text += f"{geometric_mean(small):.3f} over {len(small)} with a side of at most 128; first choice {geometric_mean(choice):.1%}.\n"
        failed = [f"{row['m']}, {row['n']}, {row['k']}" for row in rows if row not in timed]
        text += ("Not measured: " + "; ".join(failed) + ".\n" if failed else "") + "\n"
    return text


def epilogues_section(name, result):
    text = f"## Epilogues: {name}\n\n" + origin(result)
    beside = any("plain_us" in row for rows in result["types"].values() for row in rows)
    text += "D = epilogue(A B^T), timed as in the suite of matrix products; over plain: the time over that of the same product without an epilogue"
    text += ",\ntimed right before and after it.\n" if beside else ".\n"
    for dtype, rows in result["types"].items():
        body, plain = [], {}
        for row in rows:
            shape = f"{row['m']}, {row['n']}, {row['k']}"
            if not row["epilogue"]:
                plain[shape] = row.get("us")
            without = row.get("plain_us") or plain.get(shape)
            timed = row.get("us") and without
            cells = [f"{row['us']:.2f}", f"{row['us'] / without - 1:+.1%}", row["best"]] if timed else ["-", "-", "failed"]
            body.append([shape, row["epilogue"] or "none", *cells])
        text += f"\n### {dtype}\n\n" + table(["M, N, K", "epilogue", "us", "over plain", "configuration"], body)
    return text


def models_section(name, result):
    text = f"## Models: {name}\n\n" + origin(result)
    text += "Milliseconds of one run on the device, medians of alternating bursts, CUDA graphs on both sides. Over PyTorch: its best mode's\n"
    text += "time over Heddle's. XLA: the time between queued calls, of the models that are written in JAX (bench/xla_models.py).\n"
    text += "The column torch.compile has torch.compile(module, backend=\"heddle\"); the column Heddle has the exported model.\n\n"
    modes = ["eager_graph", "reduce_overhead", "max_autotune"]
    for precision, rows in result["precisions"].items():
        body, ratios = [], []
        has_dates = any("commit" in row for row in rows)
        for row in rows:
            ms = row.get("ms", {})
            rivals = [ms[mode] for mode in modes if ms.get(mode)]
            ratio = min(rivals) / ms["heddle"] if rivals and ms.get("heddle") else None
            ratios += [ratio] if ratio else []
            cells = [f"{ms[mode]:.3f}" if ms.get(mode) else "-" for mode in ("heddle", "heddle_backend", *modes, "xla")]
            over_xla = f"{ms['xla'] / ms['heddle']:.2f}" if ms.get("xla") and ms.get("heddle") else "-"
            floor = f"{row['floor_ms']:.3f}" if row.get("floor_ms") else "-"
            ratios_of_row = [f"{ratio:.2f}" if ratio else "-", over_xla]
            body.append([row["model"], *cells, *ratios_of_row, floor, f"{row.get('compile_s', 0):.1f}", *measured(row, result, has_dates)])
        headings = ["model:batch:length", "Heddle", "torch.compile", "eager, graph", "reduce-overhead", "max-autotune", "XLA", "over PyTorch", "over XLA",
                    "floor", "compile s", *(["measured, commit"] if has_dates else [])]
        text += f"### {precision}\n\n" + table(headings, body)
        text += f"\nGeometric mean of {len(ratios)}: {geometric_mean(ratios):.3f}.\n\n" if ratios else "\n"
    return text


def stitch_section(name, result):
    text = f"## Stitch suite: {name}\n\n" + origin(result)
    text += "Microseconds of CUDA graphs with nothing in the L2, medians of alternating bursts. Over torch.compile: its time over Heddle's.\n"
    text += f"Of the floor: the time to move inputs and outputs once at {result['tbps']} TB/s, over Heddle's time less an empty graph's.\n"
    text += "Copy: a kernel that reads as many bytes as the inputs have, writes as many as the outputs, and does nothing else.\n\n"
    keys = ["floor_us", "copy_cold_us", "heddle_cold_us", "torch_cold_us", "xla_dispatch_us", "over_torch", "of_floor"]
    rows = [
        [row["case"], row["type"], *(f"{row[key]:.2f}" if row.get(key) else "-" for key in keys)] for row in result["rows"]
    ]
    headings = ["case", "type", "floor us", "copy", "Heddle", "torch.compile", "XLA, with dispatch", "over torch.compile", "of the floor"]
    text += table(headings, rows)
    for dtype in dict.fromkeys(row["type"] for row in result["rows"]):
        ratios = [row["over_torch"] for row in result["rows"] if row["type"] == dtype and row.get("over_torch")]
        if ratios:
            text += f"\n{dtype}: geometric mean over torch.compile {geometric_mean(ratios):.3f}, lowest {min(ratios):.3f}"
            copies = [row["copy_over_torch"] for row in result["rows"] if row["type"] == dtype and row.get("copy_over_torch")]
            text += f"; that of the copies would be {geometric_mean(copies):.3f}.\n" if copies else ".\n"
    return text


def rows_section(name, result):
    text = f"## Rows of all lengths: {name}\n\n" + origin(result)
    text += "Timed as the stitch suite. The best other mapping is one that the cost model did not pick. Of the copy bandwidth, above 64 MB: "
    text += f"the time to move the necessary bytes at {result['tbps']} TB/s, over Heddle's time less an empty graph's, with the L2 full of "
    text += "memory that was read; in brackets, full of memory that was written.\n\n"

    def number(row, key):
        return f"{row[key]:.2f}" if row.get(key) else "-"

    body = [
        [row["case"], row["type"], f"{row['bytes'] * 1e-6:.2f}"]
        + [number(row, key) for key in ("heddle_cold_us", "torch_cold_us", "over_torch")]
        + [f"{row['other']} {row['over_other']:.2f}" if "other" in row else "-"]
        + [number(row, "of_copy") + (f" ({row['of_copy_overwritten']:.2f})" if "of_copy_overwritten" in row else "")]
        for row in result["rows"]
    ]
    headings = ["rows x columns", "type", "MB", "Heddle us", "torch.compile us", "over torch.compile", "best other mapping, over it",
                "of the copy bandwidth"]
    return text + table(headings, body)


LAYERS = {"conv": "Convolutions", "depthwise": "Depthwise convolutions", "transposed": "Transposed convolutions",
          "attention": "Attention", "rows": "Softmax and arg max", "tiny": "Tiny layers", "filters": "Gradients of filters",
          "image": "Gradients of images", "scatters": "Scatters that add"}
TYPES_OF_LAYERS = {"filters": "bf16", "image": "bf16", "scatters": "f32"}  # of others f16
TRAINING_MODES = {"eager": "eager", "default": "default", "reduce_overhead": "reduce-overhead", "max_autotune": "max-autotune", "heddle": "Heddle",
                  "heddle_optim": "Heddle, its optimiser"}


def layers_section(name, result):
    text = f"## Layers: {name}\n\n" + origin(result)
    text += "Microseconds of CUDA graphs with nothing in the L2, medians of alternating bursts. PyTorch: its fastest mode of those in the table.\n"
    text += "Floor: the time of the necessary reads, writes and multiplications at the device's peak.\n"
    for kind in dict.fromkeys(row["kind"] for row in result["rows"]):
        rows = [row for row in result["rows"] if row["kind"] == kind]
        body = []
        has_dates = any("commit" in row for row in rows)
        for row in rows:
            best = min(row["rivals"], key=row["rivals"].get)
            times = [row["floor_ms"], row["heddle_ms"], row["rivals"][best]]
            body.append([row["case"], *(f"{ms * 1e3:.1f}" for ms in times), best, f"{row['ratio']:.2f}", *measured(row, result, has_dates)])
        headings = ["layer", "floor us", "Heddle us", "PyTorch us", "by", "over PyTorch", *(["measured, commit"] if has_dates else [])]
        if any("tuned_ms" in row for row in rows):
            headings.insert(3, "Heddle tuned us")
            for cells, row in zip(body, rows):
                cells.insert(3, f"{row['tuned_ms'] * 1e3:.1f}")
        text += f"\n### {LAYERS[kind]}\n\n" + table(headings, body)
        text += f"\nGeometric mean of {len(rows)}: {geometric_mean([row['ratio'] for row in rows]):.3f}.\n"
    return text


def best(row, key, heddle):
    """The lowest value of `key` among Heddle's modes, or among the rivals'. None if no mode has one."""
    return min((value for mode, value in row[key].items() if mode.startswith("heddle") == heddle), default=None)


def training_section(name, result):
    text = f"## Training steps: {name}\n\n" + origin(result)
    text += "Milliseconds of a step: forward under bf16 autocast, loss, gradients and AdamW; medians of alternating bursts. PyTorch's modes and Heddle have\n"
    text += "PyTorch's fused AdamW; the last has `heddle.torch.optim` and, for recurrent networks, `heddle.torch.prepare`. Memory: the peak of the first steps.\n\n"
    body = []
    for row in result["rows"]:
        cells = [f"{row['ms'][mode]:.2f}" if mode in row["ms"] else "-" for mode in TRAINING_MODES]
        peak, default = best(row, "peak_mb", True), row["peak_mb"].get("default")
        memory = [f"{peak}" if peak else "-", f"{default}" if default else "-", f"{peak / default:.2f}" if peak and default else "-"]
        body.append([row["model"], *cells, f"{best(row, 'ms', False) / best(row, 'ms', True):.2f}", *memory, *measured(row, result, True)])
    headings = ["model:batch:length", *TRAINING_MODES.values(), "over PyTorch's best", "MiB", "default's MiB", "of it", "measured, commit"]
    return text + table(headings, body)


def energy_section(name, result):
    text = f"## Joules of a run: {name}\n\n" + origin(result)
    text += f"{result['precision']}; the device's energy by NVML's counter over {result['seconds']:.0f} s of runs in a row, {result['turns']} turns a side, alternating; the mean of the turns.\n"
    text += "PyTorch: torch.compile with reduce-overhead. Spread: the largest difference between two turns of a side, over its mean.\n\n"
    body = []
    for row in result["rows"]:
        cells = [f"{row[side][key] * scale:{form}}" for key, scale, form in (("joules", 1e3, ".1f"), ("watts", 1, ".0f")) for side in ("heddle", "torch")]
        body.append([row["model"], *cells, f"{row['over_torch']:.2f}", f"{row['spread']:.1%}"])
    text += table(["model:batch:length", "Heddle mJ", "PyTorch mJ", "Heddle W", "PyTorch W", "PyTorch's joules over Heddle's", "spread"], body)
    text += f"\nGeometric mean of {len(body)}: {geometric_mean([row['over_torch'] for row in result['rows']]):.3f}.\n"
    for model in result["tuned"]:
        text += f"\n### `heddle tune --objective energy`: {model['model']}\n\n"
        text += f"{model['seconds']:.0f} s of tuning. All uses of these products: {model['pick_uj'] * 1e-3:.2f} -> {model['winner_uj'] * 1e-3:.2f} mJ, {model['pick_us']:.0f} -> {model['winner_us']:.0f} us.\n\n"
        rows = [[one["label"], str(one["uses"]), str(one["candidates"]), f"{one['pick_us']:.1f}", f"{one['winner_us']:.1f}", f"{one['pick_uj'] * 1e-3:.2f}",
                 f"{one['winner_uj'] * 1e-3:.2f}", f"{one['winner_uj'] / one['pick_uj'] - 1:+.1%}"] for one in model["problems"]]
        text += table(["product", "uses", "candidates", "us before", "after", "mJ before", "after", "energy"], rows)
    return text


def pictures_section(name, result):
    text = f"## Pictures from noise: {name}\n\n" + origin(result)
    text += f"Stable Diffusion 1.5, 512x512, f16, {result['steps']} steps of DDIM with guidance and the decoder (bench/pictures_gpu.py); pictures a second, medians of runs in turns.\n"
    text += "PyTorch: torch.compile with reduce-overhead, the same loop.\n\n"
    body = [[row["case"], f"{row['heddle_per_s']:.3f}", f"{row['torch_per_s']:.3f}", f"{row['ratio']:.2f}", *measured(row, result, True)] for row in result["rows"]]
    text += table(["batch", "Heddle", "PyTorch", "over PyTorch", "measured, commit"], body)
    return text + f"\nGeometric mean of {len(body)}: {geometric_mean([row['ratio'] for row in result['rows']]):.3f}.\n"


def codesign_section(name, result):
    text = f"## What a change of a design costs: {name}\n\n" + origin(result)
    text += f"{result['precision']}; networks of batch {result['batch']}; convolutions: images x height x width, channels -> channels, kernel. Times without copies of inputs and outputs.\n\n"
    by_name = {row["name"]: row["p50_ms"] for row in result["rows"]}

    def relative(row):
        plain = row["name"].split(", of ")[0].removesuffix(" deepened by 1x1")
        plain = plain if row["part"] != "activations" else f"{plain.split()[0]} Relu"
        return f"{row['p50_ms'] / by_name[plain] - 1:+.0%}" if plain != row["name"] else ""

    parts = {"activations": "Other activations", "depth": "A 1x1 convolution behind each activation but the last", "padding": "Channels padded to a multiple of eight"}
    for part, title in parts.items():
        rows = [[row["name"], f"{row['p50_ms'] * 1e3:.1f}", f"{row['images_per_s']:.0f}", relative(row)] for row in result["rows"] if row["part"] == part]
        text += (f"### {title}\n\n" + table(["network or layer", "us", "images/s", "time"], rows) + "\n") if rows else ""
    return text


SECTIONS = {
    "gpu_energy": energy_section,
    "codesign": codesign_section,
    "gpu_pictures": pictures_section,
    "gpu_gemm": gemm_section,
    "gpu_layers": layers_section,
    "gpu_training": training_section,
    "gpu_epilogues": epilogues_section,
    "gpu_models": models_section,
    "stitch_gpu": stitch_section,
    "rows_gpu": rows_section,
}


def read_lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def read_types(folder, stem):
    """Rows by what follows `stem` in the names of files."""
    return {path.stem.split("_")[1]: read_lines(path) for path in sorted(folder.rglob(f"{stem}_*.jsonl"))}


def attention_layer(row):
    """A row of attention_gpu.py as one of layers: Heddle's time is that of the candidate it takes without timing."""
    rivals = {name: us * 1e-3 for name, us in row["pytorch"].items()}
    case = f"{row['kind']}: {row['shape']}" + f" {row['dtype']}" * (row["dtype"] != "f16")
    return {"kind": "attention", "case": case, "floor_ms": row["floor_us"] * 1e-3, "heddle_ms": row["pick_us"] * 1e-3,
            "tuned_ms": row["us"] * 1e-3, "rivals": rivals, "ratio": min(rivals.values()) / (row["pick_us"] * 1e-3)}


def gradient_layer(row):
    """A row of conv_gradients.py as one of layers."""
    return {"kind": row["kind"], "case": row["case"], "floor_ms": row["floor_ms"], "heddle_ms": row["heddle_ms"],
            "rivals": {"cuDNN": row["cudnn_ms"]}, "ratio": row["ratio"]}


def scatter_layer(row):
    """A row of scatters_gpu.py as one of layers."""
    rivals = {name: row[f"{name}_us"] * 1e-3 for name in ("eager", "inductor")}
    return {"kind": "scatters", "case": row["case"], "floor_ms": row["floor_us"] * 1e-3, "heddle_ms": row["heddle_us"] * 1e-3,
            "rivals": rivals, "ratio": min(rivals.values()) / (row["heddle_us"] * 1e-3)}


def layer(row):
    """A row of a benchmark of single layers."""
    return attention_layer(row) if "pick_us" in row else gradient_layer(row) if "cudnn_ms" in row else scatter_layer(row) if "eager_us" in row else row


def without_candidates(types):
    return {dtype: [{k: v for k, v in row.items() if k != "candidates"} for row in rows] for dtype, rows in types.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("name")
    parser.add_argument("--commit", help="of what was measured; default: this checkout's")
    parser.add_argument("--device", default="NVIDIA H200", help="where no file of the folder says it")
    parser.add_argument("--note", help="what a reader of the figures has to know")
    parser.add_argument("--add", action="store_true", help="keep rows of the file that FOLDER does not have")
    options = parser.parse_args()
    head = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, cwd=ROOT)
    facts = {"date": datetime.date.today().isoformat(), "commit": options.commit or head.stdout.strip()}
    if options.note:
        facts["note"] = options.note
    types = read_types(options.folder, "gemm")
    if types:
        rows = [row for rows in types.values() for row in rows]
        facts["device"] = next(row["device"] for row in rows if "device" in row)
        empty = next(row["empty_graph_us"] for row in rows if "empty_graph_us" in row)
        kept = without_candidates(types)
        write(options.name + "-gemm", {"kind": "gpu_gemm", **facts, "empty_graph_us": empty, "types": kept})
    facts.setdefault("device", options.device)
    epilogues = read_types(options.folder, "epilogues")
    if epilogues:
        write(options.name + "-epilogues", {"kind": "gpu_epilogues", **facts, "types": without_candidates(epilogues)})
    precisions = read_types(options.folder, "models")
    if precisions and options.add:
        precisions = {p: joined(options.name + "-models", facts, rows, lambda row: row["model"]) for p, rows in precisions.items()}
    if precisions:
        write(options.name + "-models", {"kind": "gpu_models", **facts, "precisions": precisions})
    stems = ("layers", "transposed", "attention", "gradients", "scatters")
    layers = [row for stem in stems for path in sorted(options.folder.rglob(f"{stem}*.json")) for row in json.loads(path.read_text())["rows"]]
    layers = [layer(row) for row in layers]
    if layers and options.add:
        layers = joined(options.name + "-layers", facts, layers, lambda row: (row["kind"], row["case"]))
    if layers:
        write(options.name + "-layers", {"kind": "gpu_layers", **facts, "rows": layers})
    steps = [row for path in sorted(options.folder.rglob("training*.jsonl")) for row in read_lines(path) if best(row, "ms", True) and best(row, "ms", False)]
    steps = [{key: row[key] for key in ("model", "ms", "peak_mb", "ready_s", "date")} for row in steps]
    if steps and options.add:
        steps = joined(options.name + "-training", facts, steps, lambda row: row["model"])
    if steps:
        write(options.name + "-training", {"kind": "gpu_training", **facts, "rows": steps})
    pictures = [json.loads(path.read_text()) for path in sorted(options.folder.rglob("pictures*.json"))]
    if pictures:
        rows = [{"case": f"batch {row['batch']}"} | row for run in pictures for row in run["rows"]]
        rows = joined(options.name + "-pictures", facts, rows, lambda row: row["batch"]) if options.add else rows
        write(options.name + "-pictures", {"kind": "gpu_pictures", **facts, "steps": pictures[0]["steps"], "rows": rows})
    for path in sorted(p for stem in ("energy", "codesign") for p in options.folder.rglob(f"{stem}.json")):
        write(f"{options.name}-{path.stem}", facts | json.loads(path.read_text()))
    for path in sorted(p for stem in ("stitch", "rows", "ablation_*") for p in options.folder.rglob(f"{stem}.json")):
        note = {"note": options.note} if options.note else {}
        write(f"{options.name}-{path.stem.replace('_', '-')}", json.loads(path.read_text()) | note)


def write(name, result):
    """A note stays where a result has none, so that rows can be added without saying it again."""
    path = ROOT / "bench/results" / f"{name}.json"
    note = json.loads(path.read_text()).get("note") if path.exists() else None
    path.write_text(json.dumps(({"note": note} if note else {}) | result, indent=1) + "\n")


if __name__ == "__main__":
    main()
