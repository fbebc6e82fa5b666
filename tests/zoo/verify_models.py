"""Every model of the zoo through `heddle verify`, in every precision, on one and two threads: verify_models.py HEDDLE [NAME...].

Prints a line per model and combination with the largest error as a share of its bound. Small sizes by default; --full
takes the models at their own (sd-unet: a latent of 16x16 at full width). --quick runs f16 and bf16 on
two threads only, for time. --target cuda: on a GPU, with tf32 as well and without the choice of threads."""
import argparse
import json
import subprocess
import sys
import tempfile

from zoo_models import DEFAULT, SMALL, write_model

PRECISIONS = ("f32", "f16", "bf16")
THREADS = (1, 2)


def verify(heddle, path, target, precision, threads):
    """(passed, text of the line)."""
    command = [heddle, "verify", path, "--target", target, "--precision", precision, "--threads", str(threads), "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        return False, f"exit code {done.returncode}: {done.stderr.strip()}"
    result = json.loads(done.stdout)
    share = max((o["error"] / o["bound"] for o in result["outputs"] if o["bound"]), default=0.0)
    return result["ok"], f"error {share:5.1%} of its bound" + ("" if result["ok"] else f": {done.stdout}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("heddle")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--precisions", type=lambda text: text.split(","))
    arguments = parser.parse_intermixed_args()
    failures = 0
    gpu = arguments.target != "cpu"
    precisions = arguments.precisions or (("f32", "tf32", "f16", "bf16") if gpu else PRECISIONS)
    for name in arguments.names or SMALL:
        sizes = SMALL[name]
        if arguments.full:
            sizes = (0, 16, 0) if name == "sd-unet" else DEFAULT
        with tempfile.TemporaryDirectory() as folder:
            path = write_model(arguments.heddle, name, sizes, folder)
            for precision in precisions:
                for threads in THREADS[1:] if gpu or arguments.quick and precision != "f32" else THREADS:
                    passed, text = verify(arguments.heddle, path, arguments.target, precision, threads)
                    failures += not passed
                    print(f"{name:14} {precision:5} {threads} threads  {'ok  ' if passed else 'FAIL'}  {text}", flush=True)
    print(f"{failures} failed")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
