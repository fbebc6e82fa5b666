"""NVIDIA's run-time compiler where pip has installed it: the loader does not look there by itself."""
import glob
import os
import sys
from typing import List


def find() -> List[str]:
    """The files libnvrtc.so of such packages, the newest version first."""
    found = [path for folder in filter(None, sys.path)
             for path in glob.glob(os.path.join(glob.escape(folder), "nvidia", "*", "lib", "libnvrtc.so.1[23]"))]
    return sorted(found, key=os.path.basename, reverse=True)


def name_for_libraries() -> None:
    """Names the newest of them to libraries that this process loads, unless the environment names one."""
    found = find()
    if found:
        os.environ.setdefault("HEDDLE_NVRTC", found[0])
