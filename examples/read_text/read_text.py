#!/usr/bin/env python3
"""Reads the text in a picture: read_text.py PICTURE --models build/test-data/rapidocr"""
import argparse
import pathlib

import onnx
from PIL import Image

from heddle_command import HeddleCommand
from text_reader import TextReader

ROOT = pathlib.Path(__file__).resolve().parents[2]


def characters_of(model_path):
    """The characters of the reading model's classes, which stand in its metadata, one per line."""
    model = onnx.load(model_path, load_external_data=False)
    return next(entry.value for entry in model.metadata_props if entry.key == "character").splitlines()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("picture", type=pathlib.Path)
    parser.add_argument("--models", type=pathlib.Path, default=ROOT / "build/test-data/rapidocr",
                        help="folder of det.onnx, cls.onnx and rec.onnx")
    parser.add_argument("--heddle", type=pathlib.Path, default=ROOT / "build/release/heddle")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--boxes", action="store_true", help="print where each line is")
    arguments = parser.parse_args()

    models = {name: arguments.models / f"{name}.onnx" for name in ("det", "cls", "rec")}
    command = HeddleCommand(arguments.heddle, models, arguments.threads)
    reader = TextReader(lambda model, inputs: list(command.run(model, inputs).values()), characters_of(models["rec"]))
    for text, probability, box in reader.read(Image.open(arguments.picture)):
        place = f"  at {box.round().astype(int).tolist()}" if arguments.boxes else ""
        print(f"{probability:4.0%}  {text}{place}")


if __name__ == "__main__":
    main()
