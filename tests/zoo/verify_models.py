"""Every model of the zoo through `heddle verify`, in every precision, on one and two threads: verify_models.py HEDDLE [NAME...].

Prints a line per model and combination with the largest error as a share of its bound. Small sizes by default; --full
takes the models at their own (sd-unet: a latent of 16x16 at full width). --quick runs f16 and bf16 on
two threads only, for time. --target cuda: on a GPU, with tf32 as well and without the choice of threads. --jobs takes
several models at a time. --data names the folder of scripts/fetch_test_data.py: its trained models are verified, too,
under the names of their files (NAME: magika/model), those that read text on a piece of a scanned page: on noise their
outputs are probabilities of 1e-7, of which rounding to 16 bits leaves nothing."""
import argparse
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import tempfile

from zoo_models import DEFAULT, SMALL, write_model

PRECISIONS = ("f32", "f16", "bf16")
THREADS = (1, 2)


def verify(heddle, path, target, precision, threads, options):
    """(passed, text of the line)."""
    command = [heddle, "verify", path, *options, "--target", target, "--precision", precision, "--threads", str(threads),
               "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        return False, f"exit code {done.returncode}: {done.stderr.strip()}"
    result = json.loads(done.stdout)
    share = max((o["error"] / (o["bound"] + o["sensitivity"]) for o in result["outputs"] if o["bound"]), default=0.0)
    return result["ok"], f"error {share:5.1%} of its bound" + ("" if result["ok"] else f": {done.stdout}")


TRAINED = ("magika/model", "rapidocr/cls", "rapidocr/det", "rapidocr/rec")
PIECE = (96, 192)  # of the page, in pixels: the reference takes a second


def trained_input(name, data, folder):
    """Options of `heddle verify` for a trained model below --data."""
    if name == "magika/model":
        return "--shape", "bytes=2,2048"
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples/read_text"))
    import numpy as np
    from PIL import Image
    from text_reader import fit_line, to_network

    page = Image.open(data / "pictures/page.png").crop((0, 0, PIECE[1], PIECE[0]))
    image = to_network(page) if name == "rapidocr/det" else fit_line(page.crop((0, 12, PIECE[1], 40)), PIECE[1])
    path = pathlib.Path(folder) / "x.npy"
    np.save(path, image[np.newaxis])
    return "--input", f"x={path}"


def verify_model(name, arguments):
    """Lines of one model, each with whether it passed."""
    gpu = arguments.target != "cpu"
    precisions = arguments.precisions or (("f32", "tf32", "f16", "bf16") if gpu else PRECISIONS)
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        if name in TRAINED:
            path, options = arguments.data / f"{name}.onnx", trained_input(name, arguments.data, folder)
        else:
            sizes = SMALL[name]
            if arguments.full:
                sizes = (0, 16, 0) if name == "sd-unet" else DEFAULT
            path, options = write_model(arguments.heddle, name, sizes, folder), ()
        for precision in precisions:
            for threads in THREADS[1:] if gpu or arguments.quick and precision != "f32" else THREADS:
                passed, text = verify(arguments.heddle, path, arguments.target, precision, threads, options)
                verdict = "ok  " if passed else "FAIL"
                lines.append((passed, f"{name:14} {precision:5} {threads} threads  {verdict}  {text}"))
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("heddle")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--precisions", type=lambda text: text.split(","))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--data", type=pathlib.Path)
    arguments = parser.parse_intermixed_args()
    names = arguments.names or [*SMALL, *(TRAINED if arguments.data else ())]
    if arguments.data is None and any(name in TRAINED for name in names):
        parser.error("trained models need --data")
    failures = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for lines in pool.map(lambda name: verify_model(name, arguments), names):
            for passed, line in lines:
                failures += not passed
                print(line, flush=True)
    print(f"{failures} failed")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
