"""Heddle in PyTorch: a backend of torch.compile, and operators from compiled models and from kernels.

Importing this module does not import torch; what is called does.
"""
from typing import Any

from heddle.torch.custom_ops import custom_op, operator

__all__ = ["custom_op", "explain", "heddle_backend", "operator", "verify"]


def heddle_backend(graph_module: Any, example_inputs: Any, **options: Any) -> Any:
    """The backend "heddle" of torch.compile(module, backend="heddle"). Needs torch 2.10 or later.

    Programs name the backend and do not call this function. torch.compile passes on `mode` and `options`:
    options={"fallback": "error"} refuses graphs with operators that PyTorch would have to run (default: "run").
    Raises heddle.InputError for an unknown option and for an older torch.
    """
    from heddle.torch.backend import compile_graph

    return compile_graph(graph_module, example_inputs, **options)


def explain(module: Any, *inputs: Any, **options: Any) -> Any:
    """Compiles `module` with the backend, runs it on `inputs`, and reports its graphs.

    The report lists for each graph its parts, and the operators that PyTorch runs between them, with the lines of the
    module. It prints as text and is a mapping. `options` are those of the backend. Gradients are computed where an input
    or a parameter requires them, so that the backward graph is reported, too.
    """
    from heddle.torch.report import explain as explained

    return explained(module, inputs, options)


def verify(module: Any, *inputs: Any, **options: Any) -> Any:
    """Compares the compiled module with eager in float64, outputs and gradients, on `inputs`.

    The gradient is that of a random sum of all outputs. A tensor is wrong whose error is more than four times that
    of eager in the module's own types. If one is, the report names the first operator, with its line, that gives another
    result than PyTorch's for the same operands. The report prints as text and is true if all is right. The module is not
    changed; one with random operators differs in them. `options` are those of the backend.
    """
    from heddle.torch.verification import verify as verified

    return verified(module, inputs, options)
