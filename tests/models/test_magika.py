"""magika's classifier of file types: Heddle finds the same types as ONNX Runtime in real files."""

import gzip
import json
import pathlib
import tempfile
import unittest
import zipfile

import numpy as np

import side_by_side
from side_by_side import ROOT, SideBySide

HEDDLE = DATA = None  # set by side_by_side.main

# Files of this repository with the type that the classifier should name.
SOURCES = {
    "src/base/thread/thread_pool.cc": "cpp",
    "scripts/fetch_test_data.py": "python",
    "scripts/setup.sh": "shell",
    "Makefile": "makefile",
    "docs/design/overview.md": "markdown",
    "CMakePresets.json": "json",
}
BINARIES = {
    "pictures/chelsea.png": "png",
    "pictures/retina.jpg": "jpeg",
    "pictures/tiny.gif": "gif",
    "pictures/multipage.tif": "tiff",
    "rapidocr/det.onnx": "onnx",
}


class Classifier:
    """Turns files into the model's input and its output into type names (the rules of the package's config)."""

    def __init__(self, config):
        self.head, self.tail = config["beg_size"], config["end_size"]
        self.block, self.padding = config["block_size"], config["padding_token"]
        self.labels = config["target_labels_space"]

    def features(self, contents):
        """Bytes at the beginning and at the end, white space stripped: i32 [head + tail]."""
        head = contents[: self.block].lstrip()[: self.head]
        tail = contents[-self.block :].rstrip()[-self.tail :]
        row = np.full(self.head + self.tail, self.padding, np.int32)
        row[: len(head)] = np.frombuffer(head, np.uint8)
        row[len(row) - len(tail) :] = np.frombuffer(tail, np.uint8)
        return row

    def names(self, scores):
        return [self.labels[i] for i in scores.argmax(-1)]


class MagikaTest(unittest.TestCase):
    def setUp(self):
        self.classifier = Classifier(json.loads((DATA / "magika/config.json").read_text()))
        self.pair = SideBySide(self, HEDDLE, {"magika": DATA / "magika/model.onnx"})

    def check(self, files):
        """`files`: list of (contents, expected type or None)."""
        rows = np.stack([self.classifier.features(contents) for contents, _ in files])
        actual, expected = self.pair.run("magika", {"bytes": rows})
        names = self.classifier.names(actual[0])
        self.assertEqual(names, self.classifier.names(expected[0]))
        for name, (_, label) in zip(names, files):
            if label is not None:
                self.assertEqual(name, label)

    def test_files_of_many_kinds_in_one_batch(self):
        files = [((ROOT / path).read_bytes(), label) for path, label in SOURCES.items()]
        files += [((DATA / path).read_bytes(), label) for path, label in BINARIES.items()]
        files.append((gzip.compress(files[0][0]), "gzip"))
        files.append((HEDDLE.read_bytes()[: 1 << 20], "elf"))
        with tempfile.TemporaryDirectory() as folder:
            archive, array = pathlib.Path(folder) / "a.zip", pathlib.Path(folder) / "a.npy"
            with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as writer:
                writer.writestr("notes.txt", files[1][0])
            np.save(array, np.arange(1000.0))
            files += [(archive.read_bytes(), "zip"), (array.read_bytes(), "npy")]
        # In the same batch, since each other size of one is compiled: short and random bytes.
        generator = np.random.default_rng(2)
        files += [(b"#!/bin/sh\necho 1\n", "shell"), (b"12345678", None), (generator.bytes(5000), None)]
        self.check(files)

    def test_one_file(self):
        self.check([((ROOT / "Makefile").read_bytes(), "makefile")])


if __name__ == "__main__":
    side_by_side.main()
