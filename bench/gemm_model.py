#!/usr/bin/env python3
"""How good the model's first choice of a matrix product's configuration is, by measured candidates.

usage: gemm_model.py [--heddle PATH] [--below SHARE] gemm_TYPE.jsonl...

The files are those of gemm_table.py. `heddle kernel gemm --predict` says what the model of that binary expects of each
candidate now; its first choice among those that were measured is compared with the fastest of them. Needs no GPU.
"""
import argparse
import json
import math
import subprocess
import tempfile


def predictions(heddle, rows):
    """For each row, microseconds by configuration."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as problems:
        problems.write("".join(f"{r['dtype']} {r['m']} {r['n']} {r['k']} {r.get('epilogue', '')}\n" for r in rows))
        problems.flush()
        run = subprocess.run([heddle, "kernel", "gemm", "--list", problems.name, "--predict", "--all", "--json", "--chip",
                              rows[0]["device"]], capture_output=True, text=True, check=True)
    predicted = [{} for _ in rows]
    for candidate in json.loads(run.stdout)["candidates"]:
        if not candidate["rejected"]:
            predicted[candidate["problem"]][candidate["config"]] = candidate["predicted_us"]
    return predicted


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--heddle", default="build/release/heddle")
    parser.add_argument("--below", type=float, default=0.9, help="print the shapes whose choice is worse than this")
    options = parser.parse_args()
    for path in options.files:
        with open(path) as file:
            rows = [json.loads(line) for line in file]
        rows = [r for r in rows if any(c["us"] > 0 and not c["failure"] for c in r.get("candidates", []))]
        logs, unmeasured = [], 0
        for row, predicted in zip(rows, predictions(options.heddle, rows)):
            timed = {c["config"]: c["us"] for c in row["candidates"]
                     if c["us"] > 0 and not c["failure"] and c["config"] in predicted}
            if not timed:
                continue
            unmeasured += min(predicted, key=predicted.get) not in timed
            best, choice = min(timed, key=timed.get), min(timed, key=predicted.get)
            share = timed[best] / timed[choice]
            logs.append(math.log(share))
            if share < options.below:
                print(f"{row['dtype']} {row['m']},{row['n']},{row['k']}: {choice} {timed[choice]:.2f} us, predicted "
                      f"{predicted[choice]:.1f}; {best} {timed[best]:.2f} us, predicted {predicted[best]:.1f}")
        print(f"{path}: the first choice reaches {math.exp(sum(logs) / len(logs)):.1%} of the best over {len(logs)} shapes; "
              f"of {unmeasured} the model prefers a candidate that was not measured")


if __name__ == "__main__":
    main()
