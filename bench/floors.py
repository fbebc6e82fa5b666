"""Whether floors are lower bounds: floors.py HEDDLE [MODEL...] [--threads N] [--target cuda].

Runs `heddle bench` on every model (files, or names of `heddle zoo`; without any the stitch suite) and lists those whose run takes
less than the floor. On a CPU with one thread the processor's time counts where it is less: a machine that does other work makes runs
longer, which would hide a floor that is too high."""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile


def bench(command, model, options):
    done = subprocess.run([command, "bench", model, "--json", "--seconds", "0.5", *options], capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else done.stderr.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("heddle")
    parser.add_argument("models", nargs="*", help="a file, with its shapes behind colons: det.onnx:x=1,3,320,320")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--precision", default="f32")
    arguments = parser.parse_args()
    suite = sorted(pathlib.Path(__file__).parent.glob("stitch/*.hir"))
    below = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.models or map(str, suite):
            path, *shapes = name.split(":")
            if not pathlib.Path(path).exists():
                path = f"{folder}/{name}.onnx"
                subprocess.run([arguments.heddle, "zoo", name, "-o", path], check=True)
            options = ["--threads", str(arguments.threads), "--target", arguments.target, "--precision", arguments.precision]
            options += [word for shape in shapes for word in ("--shape", shape)]
            result = bench(arguments.heddle, path, options)
            if isinstance(result, str):
                print(f"{name:40} {result[:80]}", flush=True)
                continue
            times = [result[key] for key in ("device_p50_ms", "p50_ms") if key in result][:1]
            if arguments.target == "cpu" and arguments.threads == 1 and result.get("cpu_ms", 0) > 0:
                times.append(result["cpu_ms"])
            times_floor = min(times) / max(result["floor_ms"], 1e-9)
            below += times_floor < 1
            print(f"{name:40} {min(times):9.4f} ms {times_floor:7.2f} times its floor{' BELOW' if times_floor < 1 else ''}", flush=True)
    sys.exit(bool(below))


if __name__ == "__main__":
    main()
