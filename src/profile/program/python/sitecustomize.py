"""Starts a recording when Python starts: `heddle profile` puts the folder of this file in front of PYTHONPATH."""
import importlib.machinery
import importlib.util
import os
import sys

_folder = os.path.dirname(os.path.abspath(__file__))


def _run_next():
    """The sitecustomize of the environment, which this one hides."""
    path = [entry for entry in sys.path if os.path.abspath(entry or ".") != _folder]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def _begin():
    with open("/proc/self/maps", "rb") as loaded:
        if os.environb[b"HEDDLE_PROFILE_LIBRARY"] in loaded.read():
            return  # another interpreter in this process
    import heddle_profile_record

    heddle_profile_record.begin_from_environment()


try:
    _begin()
except Exception as problem:  # a profiler does not end the program that it watches
    print(f"heddle profile: this process is not profiled: {problem}", file=sys.stderr)
_run_next()
