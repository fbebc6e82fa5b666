"""What the result files say in sum: a comparison for each suite and type, their table, and the rows that lose."""

import dataclasses
import statistics

from report_gpu import LAYERS, TYPES_OF_LAYERS, best, rows_of, table, when


@dataclasses.dataclass
class Comparison:
    suite: str  # "Models, f16"
    rival: str
    page: str  # of docs/performance
    result: dict
    cases: list  # (name, the rival's time over Heddle's)
    left_out: str = ""  # what is in the table and not in `cases`, and why
    rows: list = ()  # of the cases, where they come from several runs

    @property
    def mean(self):
        return statistics.geometric_mean([ratio for _, ratio in self.cases])

    @property
    def lost(self):
        return sorted((case for case in self.cases if case[1] < 1), key=lambda case: case[1])

    @property
    def on_cpu(self):
        return isinstance(self.result["device"], dict) and "cpu" in self.result["device"]


def best_of_torch(row):
    times = [row.get("ms", {}).get(mode) for mode in ("eager_graph", "reduce_overhead", "max_autotune")]
    return min((time for time in times if time), default=None)


def of_models(result):
    for precision, rows in result["precisions"].items():
        timed = [row for row in rows if row.get("ms", {}).get("heddle")]
        if any(row["ms"].get("xla") for row in timed):
            rivals = [("XLA", lambda row: row["ms"].get("xla"))]  # measured for XLA's sake
        else:
            rivals = [("PyTorch's best mode", best_of_torch)]
        for rival, time in rivals:
            cases = [(row["model"], time(row) / row["ms"]["heddle"]) for row in timed if time(row)]
            exported = all("@" in case for case, _ in cases)  # published_models.py
            name = cases[0][0].split(":")[0] if len(cases) == 1 else "Exported models" if exported else "Models"
            yield Comparison(f"{name}, {precision}", rival, "models-gpu", result, cases, rows=rows)


def of_products(result):
    for dtype, rows in result["types"].items():
        cases = [
            (f"{row['m']}x{row['n']}x{row['k']}", row["library_us"] / row["us"])
            for row in rows
            if row.get("us") and row.get("library_us")
        ]
        without = len(rows) - len(cases)
        note = f"{without} shapes that cuBLASLt does not take" if without else ""
        yield Comparison(f"Matrix products, {dtype}", "cuBLASLt's best", "products-gpu", result, cases, note)


def of_types(suite, page, result):
    """Suites with a type in each row, beside torch.compile."""
    for dtype in dict.fromkeys(row["type"] for row in result["rows"]):
        rows = [row for row in result["rows"] if row["type"] == dtype and row.get("over_torch")]
        launching = [row for row in rows if row["heddle_cold_us"] > row["heddle_empty_us"]]
        note = f"{len(rows) - len(launching)} cases for which Heddle launches nothing" if len(rows) > len(launching) else ""
        cases = [(row["case"], row["over_torch"]) for row in launching]
        yield Comparison(f"{suite}, {dtype}", "torch.compile", page, result, cases, note)


def of_layers(result):
    for kind in dict.fromkeys(row["kind"] for row in result["rows"]):
        rows = [row for row in result["rows"] if row["kind"] == kind]
        cases = [(row["case"], row["ratio"]) for row in rows]
        yield Comparison(f"{LAYERS[kind]}, {TYPES_OF_LAYERS.get(kind, 'f16')}", "PyTorch's best mode", "layers-gpu", result, cases, rows=rows)


def of_training(result):
    cases = [(row["model"], best(row, "ms", False) / best(row, "ms", True)) for row in result["rows"]]
    yield Comparison("Training steps, bf16", "PyTorch's best mode", "training-gpu", result, cases, rows=result["rows"])


def of_pictures(result):
    cases = [(row["case"], row["ratio"]) for row in result["rows"]]
    yield Comparison("Pictures by Stable Diffusion, f16", "PyTorch's best mode", "pictures-gpu", result, cases, rows=result["rows"])


def of_threads(suite, page, rows, case, ratio, result):
    for threads in dict.fromkeys(row["threads"] for row in rows):
        cases = [(row[case], row[ratio]) for row in rows if row["threads"] == threads]
        yield Comparison(f"{suite}, {threads} thread{'s' * (threads > 1)}", "ONNX Runtime", page, result, cases)


def comparisons(result):
    kind = result["kind"]
    if kind == "gpu_models":
        return of_models(result)
    if kind == "gpu_gemm":
        return of_products(result)
    if kind == "gpu_layers":
        return of_layers(result)
    if kind == "gpu_training":
        return of_training(result)
    if kind == "gpu_pictures":
        return of_pictures(result)
    if kind == "stitch_gpu" and "xla" not in result["rivals"]:  # XLA's times hold its dispatch: no comparison of kernels
        return of_types("Stitch suite", "stitch-gpu", result)
    if kind == "rows_gpu":
        return of_types("Rows of all lengths", "rows-gpu", result)
    if kind == "cpu_models" and result["speed"]:
        return of_threads("Models, f32", "models-cpu", result["speed"], "model", "ratio", result)
    if kind == "stitch_cpu":
        return of_threads("Stitch suite, f32", "stitch-cpu", result["rows"], "case", "over_ort", result)
    return ()


ORDER = ["models-gpu", "pictures-gpu", "training-gpu", "products-gpu", "layers-gpu", "stitch-gpu", "rows-gpu", "models-cpu", "stitch-cpu"]
TYPES = ["f16", "bf16", "f32", "tf32", "int8", "e4m3"]


def rank(one):
    kind = one.suite.rsplit(", ", 1)[1]
    return ORDER.index(one.page), one.rival == "XLA", len(one.cases) == 1, TYPES.index(kind) if kind in TYPES else 0


def ordered(results):
    return sorted((one for _, result in results for one in comparisons(result) if one.cases), key=rank)


def summary_table(found, folder):
    rows = [
        [
            f"[{one.suite}]({folder}{one.page}.md)",
            one.rival,
            str(len(one.cases)),
            f"**{one.mean:.2f}**",
            f"{min(ratio for _, ratio in one.cases):.2f}",
            str(len(one.lost)),
            when(one.result, one.rows),
        ]
        for one in found
    ]
    return table(["suite", "beside", "cases", "geometric mean", "lowest", "lost", "measured, commit"], rows)


def lost_list(found):
    lines = []
    for one in found:
        names = ", ".join(f"{case} {ratio:.3f}" for case, ratio in one.lost)
        lines += [f"- {one.suite}, beside {one.rival}: {names}."] if names else []
    return "\n".join(lines) + "\n"


def remarks(found):
    """What a reader of the means has to know, once for each result file."""
    lines = []
    for result in {id(one.result): one.result for one in found}.values():
        group = [one for one in found if one.result is result]
        names = ", ".join(one.suite for one in group) if len(group) < 3 else group[0].suite.split(", ")[0]
        lines += [f"- {names} ({when(result, rows_of(result))}): {result['note']}"] if result.get("note") else []
        lines += [f"- {one.suite}: the mean leaves out {one.left_out}." for one in group if one.left_out]
    return "\n".join(lines) + "\n"


def headline(found):
    """The README's table: a row for each suite and rival, its types side by side."""
    rows = []
    for page, rival in dict.fromkeys((one.page, one.rival) for one in found):
        group = [one for one in found if (one.page, one.rival) == (page, rival)]
        lost = sum(len(one.lost) for one in group)
        count = sum(len(one.cases) for one in group)
        same = [one for one in group if one.suite.split(", ")[0] == group[0].suite.split(", ")[0]]
        means = ", ".join(f"**{one.mean:.2f}x** {one.suite.rsplit(', ', 1)[1]}" for one in same)
        means += "".join(f"; {one.mean:.2f}x {one.suite}" for one in group if one not in same)
        lowest = min(ratio for one in group for _, ratio in one.cases)
        rows.append(
            [
                f"[{group[0].suite.split(', ')[0]}](docs/performance/{page}.md)",
                "CPU" if group[0].on_cpu else "GPU",
                rival,
                means,
                f"{lowest:.2f}x",
                f"[{lost} of {count}](docs/performance.md#rows-that-lose)" if lost else f"0 of {count}",
            ]
        )
    return table(["suite", "on", "beside", "how many times as fast, geometric mean", "lowest", "lost"], rows)
