"""Heddle in PyTorch: custom operators from compiled models. Importing this module does not import torch."""
from typing import Any, Callable, List

from heddle._errors import make
from heddle._model import Model

__all__ = ["custom_op"]

_libraries: List[Any] = []  # an operator lives as long as its torch.library.Library


def _torch() -> Any:
    try:
        import torch
    except ImportError as reason:
        why = f"PyTorch cannot be imported: {reason}"
        raise make(201, "heddle.torch", why, "pip install torch", f"heddle.torch: {why}") from reason
    return torch


def _dtypes(torch: Any) -> dict:
    names = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "f8e4m3": "float8_e4m3fn",
             "f8e5m2": "float8_e5m2", "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8", "u8": "uint8",
             "bool": "bool"}
    return {ours: getattr(torch, theirs) for ours, theirs in names.items() if hasattr(torch, theirs)}


def custom_op(model: Model, name: str) -> Callable[..., Any]:
    """Makes a model an operator of PyTorch: what stands in eager code, and as one node in torch.compile and torch.export.

    `name` is "namespace::operator". The operator takes a tensor for each input of the model, in order, on the model's
    device, of any strides (what is not dense is copied), and returns a tensor, or a list of them where the model has
    several outputs. It has no gradient: a backward pass through it raises. Under torch.compile its shapes are fixed in
    each graph. Returns the operator, which is torch.ops.namespace.operator, too.

    Raises heddle.InputError for a name that is none or that exists, and where torch is missing.
    """
    torch = _torch()
    namespace, _, operator = name.partition("::")
    if not (namespace.isidentifier() and operator.isidentifier()):
        why = f'"{name}" is no name of an operator'
        raise make(201, "heddle.torch.custom_op", why, 'Write "namespace::operator"', f"heddle.torch.custom_op: {why}")
    if hasattr(getattr(torch.ops, namespace), operator):
        why = f"the operator {name} exists"
        raise make(201, "heddle.torch.custom_op", why, "Give another name", f"heddle.torch.custom_op: {why}")
    dtypes = [_dtypes(torch)[port.dtype] for port in model.outputs]
    alignment = 1 if model.device == "cpu" else 16
    run = model._core.run

    def real(*tensors: Any) -> Any:
        results = run(tuple(_plain(tensor, alignment) for tensor in tensors), {})
        return results[0] if len(results) == 1 else results

    def fake(*tensors: Any) -> Any:
        shapes = model.output_shapes(*[tuple(int(extent) for extent in tensor.shape) for tensor in tensors])
        results = [tensors[0].new_empty(shape, dtype=dtype) for shape, dtype in zip(shapes, dtypes)]
        return results[0] if len(results) == 1 else results

    library = torch.library.Library(namespace, "FRAGMENT")
    arguments = ", ".join(f"Tensor x{i}" for i in range(len(model.inputs)))
    library.define(f"{operator}({arguments}) -> {'Tensor' if len(dtypes) == 1 else 'Tensor[]'}")
    library.impl(operator, real, "CPU" if model.device == "cpu" else "CUDA")
    torch.library.register_fake(name, fake, lib=library)
    _libraries.append(library)
    return getattr(getattr(torch.ops, namespace), operator)


def _plain(tensor: Any, alignment: int) -> Any:
    """The same values in dense memory that begins where kernels may read vectors."""
    dense = tensor.contiguous()
    return dense if dense.data_ptr() % alignment == 0 else dense.clone()
