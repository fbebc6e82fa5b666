"""Every model of the zoo through `heddle verify`, in every precision, on one and two threads: verify_models.py HEDDLE [NAME...].

Prints a line per model and combination with the largest error as a share of its bound. Small sizes by default; --full
takes the models at their own (networks of Stable Diffusion: a latent of 16x16 at full width). --quick takes the models that
zoo_models.draw() chooses and runs one precision and number of threads in turn, for time, unless HEDDLE_ALL_INSTANCES is
set: of f16 and bf16, since check_models.py compares f32 with ONNX Runtime, or of --precisions. --target cuda: on a GPU, with tf32 as well and without the choice of threads. --jobs takes several checks at a time. --data names the folder of scripts/fetch_test_data.py: its trained models are verified, too,
under the names of their files (NAME: magika/model), those that read text on a piece of a scanned page: on noise their
outputs are probabilities of 1e-7, of which rounding to 16 bits leaves nothing."""
import argparse
import concurrent.futures
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading

from zoo_models import DEFAULT, SMALL, draw, takes_all, write_model

PRECISIONS = ("f32", "f16", "bf16")
THREADS = (1, 2)
LATENT = ("sd-unet", "sdxl-unet", "sd-vae-decoder")


def verify(heddle, path, target, precision, threads, options):
    """(passed, text of the line)."""
    command = [heddle, "verify", path, *options, "--target", target, "--precision", precision, "--threads", str(threads),
               "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        return False, f"exit code {done.returncode}: {done.stderr.strip()}"
    result = json.loads(done.stdout)
    share = max((o["error"] / (o["bound"] + o["sensitivity"]) for o in result["outputs"] if o["bound"]), default=0.0)
    text = f"error {share:5.1%} of its bound"
    if result["ok"]:
        return True, text + (", within what rounding does to that element" if share > 1 else "")
    return False, f"{text}: {done.stdout}"


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


class Model:
    """A model's file and options, made when the first check asks and removed after the last of `checks`."""

    def __init__(self, name, arguments, checks, folder):
        self.name, self.arguments, self.left = name, arguments, checks
        self.folder = pathlib.Path(folder) / name.replace("/", "-")
        self.lock, self.made = threading.Lock(), None

    def path_and_options(self):
        with self.lock:
            if self.made is None:
                self.folder.mkdir()
                self.made = self.make()
            return self.made

    def make(self):
        if self.name in TRAINED:
            return self.arguments.data / f"{self.name}.onnx", trained_input(self.name, self.arguments.data, self.folder)
        sizes = SMALL[self.name]
        if self.arguments.full:
            sizes = (0, 16, 0) if self.name in LATENT else DEFAULT
        return write_model(self.arguments.heddle, self.name, sizes, self.folder), ()

    def check(self, precision, threads):
        """(passed, line)."""
        path, options = self.path_and_options()
        passed, text = verify(self.arguments.heddle, path, self.arguments.target, precision, threads, options)
        with self.lock:
            self.left -= 1
            if self.left == 0:
                shutil.rmtree(self.folder)
        return passed, f"{self.name:14} {precision:5} {threads} threads  {'ok  ' if passed else 'FAIL'}  {text}"


def checks_of(arguments, number):
    """(precision, threads) of every check of the model of that number."""
    if arguments.quick and not takes_all():
        precisions = arguments.precisions or PRECISIONS[1:]
        return [(precisions[number % len(precisions)], THREADS[number // 2 % 2])]
    gpu = arguments.target != "cpu"
    precisions = arguments.precisions or (("f32", "tf32", "f16", "bf16") if gpu else PRECISIONS)
    return [(precision, threads) for precision in precisions
            for threads in (THREADS[1:] if gpu else THREADS)]


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
    names = arguments.names or [*(draw(member=1) if arguments.quick else SMALL), *(TRAINED if arguments.data else ())]
    if arguments.data is None and any(name in TRAINED for name in names):
        parser.error("trained models need --data")
    names.sort(key=lambda name: not name.endswith("-unet"))  # take longest: begun last, they would end alone
    failures = 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        checks = [checks_of(arguments, number) for number in range(len(names))]
        models = [Model(name, arguments, len(own), folder) for name, own in zip(names, checks)]
        done = [pool.submit(model.check, *check) for model, own in zip(models, checks) for check in own]
        for passed, line in (one.result() for one in concurrent.futures.as_completed(done)):
            failures += not passed
            print(line, flush=True)
    print(f"{len(done)} checks, {failures} failed")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
