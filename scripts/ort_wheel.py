#!/usr/bin/env python3
"""Makes the wheel onnxruntime-ep-heddle from a built libheddle_ort.so: ort_wheel.py LIBRARY [--into dist] [--tag TAG]

The package holds the library and the functions that ONNX Runtime asks of such packages, and depends on nothing: it serves any Python
and any release of ONNX Runtime from 1.24 on. Equal files give equal wheels. TAG is the platform's, linux_x86_64 by default;
scripts/wheel.sh has auditwheel write the one of the oldest glibc.
"""

import argparse
import base64
import hashlib
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODULE = "onnxruntime_ep_heddle"
DATE = (2020, 1, 1, 0, 0, 0)  # of each file


def metadata(version):
    readme = (ROOT / "docs/howto/use-in-onnx-runtime.md").read_text()
    return f"""Metadata-Version: 2.1
Name: onnxruntime-ep-heddle
Version: {version}
Summary: Heddle's execution provider for ONNX Runtime: an optimising compiler for x86 CPUs and NVIDIA GPUs
License: Apache-2.0
Requires-Python: >=3.9
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Provides-Extra: nvrtc
Requires-Dist: nvidia-cuda-nvrtc; extra == "nvrtc"
Description-Content-Type: text/markdown

{readme}"""


def stripped(library):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "library"
        subprocess.run(["strip", "--strip-unneeded", "-o", path, library], check=True)
        return path.read_bytes()


def contents(library, tag):
    """The files of the wheel but RECORD, by name."""
    version = re.search(r"project\(heddle VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
    info = f"{MODULE}-{version}.dist-info"
    files = {f"{MODULE}/{path.name}": path.read_bytes() for path in (ROOT / "python" / MODULE).glob("*.py")}
    files[f"{MODULE}/_nvrtc.py"] = (ROOT / "python/heddle/_nvrtc.py").read_bytes()
    files[f"{MODULE}/py.typed"] = b""
    files[f"{MODULE}/libheddle_ort.so"] = stripped(library)
    files[f"{info}/METADATA"] = metadata(version).encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: heddle\nRoot-Is-Purelib: false\nTag: py3-none-{tag}\n".encode()
    for name in ("LICENSE", "NOTICE"):
        files[f"{info}/licenses/{name}"] = (ROOT / name).read_bytes()
    return info, version, files


def record_of(files, info):
    lines = []
    for name, data in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(data)}\n")
    return "".join(lines) + f"{info}/RECORD,,\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", type=pathlib.Path)
    parser.add_argument("--into", type=pathlib.Path, default=ROOT / "dist")
    parser.add_argument("--tag", default="linux_x86_64")
    arguments = parser.parse_args()
    info, version, files = contents(arguments.library, arguments.tag)
    files[f"{info}/RECORD"] = record_of(files, info).encode()
    arguments.into.mkdir(parents=True, exist_ok=True)
    path = arguments.into / f"{MODULE}-{version}-py3-none-{arguments.tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for name, data in sorted(files.items(), key=lambda item: (item[0].startswith(info), item[0])):
            entry = zipfile.ZipInfo(name, DATE)
            entry.external_attr = (0o755 if name.endswith(".so") else 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
    print(path)


if __name__ == "__main__":
    sys.exit(main())
