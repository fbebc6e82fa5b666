#!/usr/bin/env python3
"""Reads the text in a picture: read_text.py PICTURE --models build/test-data/rapidocr"""

import argparse
import pathlib

import onnx
from PIL import Image

from heddle_library import HeddleLibrary
from text_reader import TextReader

ROOT = pathlib.Path(__file__).resolve().parents[2]


def characters_of(model_path):
    """The characters of the reading model's classes, which stand in its metadata, one per line."""
    model = onnx.load(model_path, load_external_data=False)
    return next(entry.value for entry in model.metadata_props if entry.key == "character").splitlines()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("picture", type=pathlib.Path)
    parser.add_argument(
        "--models",
        type=pathlib.Path,
        default=ROOT / "build/test-data/rapidocr",
        help="folder of det.onnx, cls.onnx and rec.onnx",
    )
    parser.add_argument("--library", type=pathlib.Path, default=ROOT / "build/release/libheddle.so")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--boxes", action="store_true", help="print where each line is")
    arguments = parser.parse_args()

    models = {name: arguments.models / f"{name}.onnx" for name in ("det", "cls", "rec")}
    heddle = HeddleLibrary(arguments.library, models, arguments.threads)
    reader = TextReader(heddle.run, characters_of(models["rec"]))
    for text, probability, box in reader.read(Image.open(arguments.picture)):
        place = f"  at {box.round().astype(int).tolist()}" if arguments.boxes else ""
        print(f"{probability:4.0%}  {text}{place}")
    heddle.close()


if __name__ == "__main__":
    main()
