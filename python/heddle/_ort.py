"""The plug-in for ONNX Runtime."""
import os

from heddle import _nvrtc


def ort_library() -> str:
    """The path of the library with HeddleExecutionProvider, for ONNX Runtime 1.24 and later:

    onnxruntime.register_execution_provider_library("heddle", heddle.ort_library())
    options.add_provider_for_devices([d for d in onnxruntime.get_ep_devices() if d.ep_name == "HeddleExecutionProvider"], {})
    """
    _nvrtc.name_for_libraries()
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "libheddle_ort.so")
