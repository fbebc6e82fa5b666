#!/usr/bin/env python3
"""Lets PyTorch's CUDA wheel be imported without NVIDIA's libraries: torch_stubs.py VENV.

The wheels on PyPI are built for CUDA, and `import torch` loads 3 GB of libraries that a machine without a GPU never calls.
After `pip install --no-deps torch` this script writes stand-ins for those that are missing into nvidia/cu13/lib: each has
every function that torch looks up there. A call of one ends the process. libcudart has to be the real one
(nvidia-cuda-runtime), since torch registers its kernels with it when it is loaded.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

# Libraries whose functions have no version: these prefixes tell whose they are.
PREFIXES = {"libnccl.so": "nccl", "libcusparseLt.so": "cusparseLt", "libcufile.so": "cuFile", "libcuda.so": "cu", "libnvrtc.so": "nvrtc"}
STANDS_IN_FOR = re.compile(r"lib(cu|nccl|nvrtc|nvshmem)")


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def wanted_symbols(files):
    """({library: its version node or ""}, {(symbol, version node)}) of what the files need."""
    libraries, symbols = {}, set()
    for file in files:
        for name in re.findall(r"\(NEEDED\).*\[(.*?)\]", output("readelf", "-dW", file)):
            if STANDS_IN_FOR.match(name):
                libraries.setdefault(name, "")
        library = None
        for line in output("readelf", "-VW", file).splitlines():
            if found := re.search(r"File: (\S+)", line):
                library = found.group(1)
            elif (found := re.search(r"Name: (\S+)", line)) and library in libraries:
                libraries[library] = found.group(1)
        for line in output("nm", "-D", "--undefined-only", file).splitlines():
            symbol, _, version = line.split()[-1].partition("@")
            symbols.add((symbol, version.lstrip("@")))
    return libraries, symbols


def symbols_of(library, node, symbols):
    if node:
        return sorted(symbol for symbol, version in symbols if version == node)
    prefix = next((p for name, p in PREFIXES.items() if library.startswith(name)), None)
    return sorted(symbol for symbol, version in symbols if prefix and not version and symbol.startswith(prefix))


def write_stub(path, names, node):
    with tempfile.TemporaryDirectory() as folder:
        source, script = pathlib.Path(folder, "stub.s"), pathlib.Path(folder, "versions")
        source.write_text(".text\n" + "".join(f".globl {name}\n.type {name}, @function\n{name}:\n" for name in names) + "ud2\n"
                          '.section .note.GNU-stack,"",@progbits\n')
        script.write_text(f"{node} {{ global: *; }};\n" if node else "{ global: *; };\n")
        subprocess.run(["c++", "-shared", "-nostdlib", f"-Wl,-soname,{path.name}", f"-Wl,--version-script={script}", "-o", path, source], check=True)


def main():
    site = next(pathlib.Path(sys.argv[1]).glob("lib/python3*/site-packages"))
    folder = site / "nvidia/cu13/lib"
    libraries, symbols = wanted_symbols([*(site / "torch/lib").glob("*.so*"), *(site / "torch").glob("_C*.so")])
    for library, node in sorted(libraries.items()):
        if not library.startswith("libcudart.") and not (folder / library).exists():
            write_stub(folder / library, symbols_of(library, node, symbols), node)


main()
