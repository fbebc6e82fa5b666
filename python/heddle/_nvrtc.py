"""NVIDIA's run-time compiler where pip has installed it: the loader does not look there by itself."""
import ctypes
import functools
import glob
import importlib.util
import os


@functools.lru_cache(maxsize=None)
def load() -> None:
    """Loads libnvrtc.so of the newest such package, once; nothing where $HEDDLE_NVRTC names one or there is none."""
    if os.environ.get("HEDDLE_NVRTC"):
        return
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        found = glob.glob(os.path.join(folder, "*", "lib", "libnvrtc.so.1[23]"))
        for path in sorted(found, key=os.path.basename, reverse=True):
            try:
                ctypes.CDLL(path)  # later dlopen() calls find it by its name
                return
            except OSError:
                continue
