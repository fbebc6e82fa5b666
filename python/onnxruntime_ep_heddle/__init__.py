"""Heddle's execution provider for ONNX Runtime 1.24 and later.

    import onnxruntime, onnxruntime_ep_heddle

    onnxruntime.register_execution_provider_library("heddle", onnxruntime_ep_heddle.get_library_path())
    options.add_provider_for_devices([d for d in onnxruntime.get_ep_devices() if d.ep_name == onnxruntime_ep_heddle.get_ep_name()], {})
"""
import os
from typing import List

from ._nvrtc import name_for_libraries


def get_library_path() -> str:
    """The path of the library that ONNX Runtime registers."""
    name_for_libraries()
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "libheddle_ort.so")


def get_ep_name() -> str:
    """The name of the execution provider."""
    return "HeddleExecutionProvider"


def get_ep_names() -> List[str]:
    """The names of all execution providers of the library."""
    return [get_ep_name()]
