"""Heddle in PyTorch: a backend of torch.compile, operators from compiled models and from kernels, and optimisers.

Importing this module does not import torch. Its functions do.
"""
import importlib
from typing import Any

from heddle.torch.custom_ops import custom_op, import_torch, operator

__all__ = ["custom_op", "explain", "export", "heddle_backend", "linear_cross_entropy", "operator", "optim", "prepare", "profile", "verify"]


def __getattr__(name: str) -> Any:
    if name != "optim":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import_torch()
    return importlib.import_module("heddle.torch.optim")


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

    The report lists the compiled parts of each graph, and the operators that PyTorch runs between them, with the lines of
    the module. It prints as text and is a mapping. `options` are those of the backend. If an input or a parameter requires
    a gradient, the backward graph is compiled and reported, too. The module is not changed: a copy of it runs.
    """
    from heddle.torch.report import explain as explained

    return explained(module, inputs, options)


def export(module: Any, inputs: Any, path: Any, *, keywords: Any = None, **options: Any) -> Any:
    """Writes a plan of `module` for `inputs` (a tuple), which C, C++ and Python run without PyTorch. Returns the heddle.Model.

    torch.export traces the module, whose parameters and buffers become constants. The plan takes inputs of these shapes,
    dense, by the names of forward()'s parameters. Its outputs are y0, y1, ..., or the keys of a dictionary.
    `keywords` are given to forward() by name; `options` are those of heddle.compile(). Raises heddle.UnsupportedError for
    operators that PyTorch would have to run, and heddle.InputError for a module that changes buffers (module.eval()).
    """
    from heddle.torch.plan_file import export as exported

    return exported(module, inputs, path, keywords, options)


def prepare(module: Any) -> Any:
    """Puts modules of Heddle in the place of torch.nn.LSTM and torch.nn.GRU within `module`, and returns it, or its replacement.

    torch.compile breaks its graph at those of torch.nn. Parameters stay the same objects under the same names, so checkpoints
    and optimisers keep working. A layer runs as a product for all steps and one kernel, with or without torch.compile.
    Modules with more than 256 hidden units or with `proj_size` stay as they are. Packed sequences are refused.
    """
    from heddle.torch.recurrent.modules import prepare as prepared

    return prepared(module)


def linear_cross_entropy(input: Any, weight: Any, target: Any, bias: Any = None, *, ignore_index: int = -100,
                         reduction: str = "mean", label_smoothing: float = 0.0, soft_cap: float = 0.0,
                         memory_budget: Any = None) -> Any:
    """cross_entropy(linear(input, weight, bias), target), without the logits of all rows in memory at a time.

    `input` is [..., features], `weight` [classes, features], `target` [...]. The logits of a chunk of rows exist at a time, as
    many as `memory_budget` bytes hold (by default 1 GiB), at least 1024 rows. The gradients of `reduction` "mean" and "sum"
    are computed with the loss. With `soft_cap` logits are soft_cap * tanh(logits / soft_cap). The loss is f32 for types of 16
    bits. Under autocast operands are cast as by linear(). Raises heddle.InputError for shapes that do not fit, and on a CPU
    for a target that is no class; on a GPU the loss is NaN then.
    """
    from heddle.torch.loss import linear_cross_entropy as computed

    return computed(input, weight, target, bias, ignore_index, reduction, label_smoothing, soft_cap, memory_budget)


def profile(module: Any, *inputs: Any, seconds: float = 1, **options: Any) -> Any:
    """Compiles `module` with the backend, and tells which of its lines take the time: a heddle.Profile by name of each part.

    The rows of a profile are lines of the module, "model.py:17". Each part of a graph runs for about `seconds` on random
    inputs. If an input or a parameter requires a gradient, the backward graph is profiled, too. `options` are those of the
    backend. The module is not changed: a copy of it runs.
    """
    from heddle.torch.report import profile as profiled

    return profiled(module, inputs, seconds, options)


def verify(module: Any, *inputs: Any, **options: Any) -> Any:
    """Compares the compiled module with eager in float64, outputs and gradients, on `inputs`.

    Gradients are those of a random sum of all outputs. A tensor is wrong if its error is more than four times the error
    of eager in the module's own types. The report then names the first operator that differs from PyTorch's, with its
    line. It prints as text and is true if every tensor is right. The module is not changed: copies of it run. Results of
    random operators differ. `options` are those of the backend.
    """
    from heddle.torch.verification import verify as verified

    return verified(module, inputs, options)
