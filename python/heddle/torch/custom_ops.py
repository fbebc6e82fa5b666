"""Heddle in PyTorch: custom operators from compiled models and from kernels. Importing this module does not import torch."""
import inspect
import typing
from typing import Any, Callable, List, Optional, Sequence, Tuple

from heddle._errors import make
from heddle._model import Model

__all__ = ["custom_op", "operator"]

_libraries: List[Any] = []  # an operator lives as long as its torch.library.Library


def import_torch() -> Any:
    try:
        import torch
    except ImportError as reason:
        why = f"PyTorch cannot be imported: {reason}"
        raise make(201, "heddle.torch", why, "pip install torch", f"heddle.torch: {why}") from reason
    return torch


def torch_dtypes(torch: Any) -> dict:
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
    torch = import_torch()
    _check_name(torch, name, "heddle.torch.custom_op")
    dtypes = [torch_dtypes(torch)[port.dtype] for port in model.outputs]
    alignment = 1 if model.device == "cpu" else 16
    run = model._core.run

    def real(*tensors: Any) -> Any:
        results = run(tuple(_plain(tensor, alignment) for tensor in tensors), {})
        return results[0] if len(results) == 1 else results

    def fake(*tensors: Any) -> Any:
        shapes = model.output_shapes(*[tuple(int(extent) for extent in tensor.shape) for tensor in tensors])
        results = [tensors[0].new_empty(shape, dtype=dtype) for shape, dtype in zip(shapes, dtypes)]
        return results[0] if len(results) == 1 else results

    arguments = ", ".join(f"Tensor x{i}" for i in range(len(model.inputs)))
    schema = f"({arguments}) -> {'Tensor' if len(dtypes) == 1 else 'Tensor[]'}"
    return _define(torch, name, schema, real, "CPU" if model.device == "cpu" else "CUDA", fake)


def _check_name(torch: Any, name: str, where: str) -> None:
    namespace, _, operator = name.partition("::")
    if not (namespace.isidentifier() and operator.isidentifier()):
        why = f'"{name}" is no name of an operator'
        raise make(201, where, why, 'Write "namespace::operator"', f"{where}: {why}")
    if hasattr(getattr(torch.ops, namespace), operator):
        why = f"the operator {name} exists"
        raise make(201, where, why, "Give another name", f"{where}: {why}")


def _define(torch: Any, name: str, schema: str, real: Callable, key: str, fake: Callable) -> Callable[..., Any]:
    namespace, _, operator = name.partition("::")
    library = torch.library.Library(namespace, "FRAGMENT")
    library.define(operator + schema)
    library.impl(operator, real, key)
    torch.library.register_fake(name, fake, lib=library)
    _libraries.append(library)
    return getattr(getattr(torch.ops, namespace), operator)


def operator(fn: Any, name: str, *, mutates: Sequence[str] = (), schema: Optional[str] = None) -> Callable[..., Any]:
    """Makes a function that launches kernels an operator of PyTorch: one node in torch.compile and torch.export.

    `fn` is a heddle.tile.operator, or a function that makes tensors as it likes (torch.empty_like) and launches kernels.
    It is called with fake tensors as well, where launches do nothing: shapes of results follow from that. `name` is
    "namespace::operator"; `mutates` names tensors that the kernels write to. `schema` is what PyTorch wants to know of the
    arguments and results, "(Tensor x, float slope=0.5) -> Tensor"; by default it is that of the annotations: a parameter
    without one is a tensor, or of the type of its default, and so is the result.

    Returns the operator, which is torch.ops.namespace.operator, too. torch.library.register_autograd(name, ...) gives it a
    gradient. Raises heddle.InputError for a name that is none or that exists, for parameters that PyTorch does not pass,
    and where torch is missing.
    """
    from heddle.tile.runtime.recording import Recorder, recording

    torch = import_torch()
    _check_name(torch, name, "heddle.torch.operator")
    schema = schema or _schema_of(torch, fn, set(mutates))

    def fake(*arguments: Any, **words: Any) -> Any:
        with recording(Recorder()):
            return fn(*arguments, **words)

    return _define(torch, name, schema, lambda *arguments, **words: fn(*arguments, **words), "CompositeExplicitAutograd", fake)


_OF_SCHEMA = {bool: "bool", int: "SymInt", float: "float", str: "str"}


def _schema_of(torch: Any, fn: Any, mutated: set) -> str:
    function = getattr(fn, "fn", fn)
    hints = typing.get_type_hints(function)
    written = []
    for i, (name, parameter) in enumerate(inspect.signature(function).parameters.items()):
        kind, default = hints.get(name), parameter.default
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            _refuse_parameter(name, "it stands for any number of arguments")
        if kind is None:
            kind = torch.Tensor if default in (parameter.empty, None) else type(default)
        spelt = _spelt(torch, kind) or _refuse_parameter(name, f"operators have no arguments of type {kind}")
        if spelt == "Tensor" and default is None:
            spelt = "Tensor?"
        if name in mutated:
            mutated.remove(name)
            spelt = spelt.replace("Tensor", f"Tensor(a{i}!)")
        written.append(f"{spelt} {name}" + ("" if default is parameter.empty else f"={_literal(default)}"))
    if mutated:
        _refuse_parameter(sorted(mutated)[0], "`mutates` names it, and the function has no such parameter")
    result = hints.get("return", torch.Tensor)
    kinds: Tuple[Any, ...] = typing.get_args(result) if typing.get_origin(result) is tuple else (result,)
    results = [_spelt(torch, kind) for kind in kinds if kind is not type(None)]
    if None in results:
        _refuse_parameter("return", f"operators return tensors, not {result}")
    return f"({', '.join(written)}) -> " + (results[0] if len(results) == 1 else f"({', '.join(results)})")


def _spelt(torch: Any, kind: Any) -> Optional[str]:
    if kind is torch.Tensor:
        return "Tensor"
    if kind in _OF_SCHEMA:
        return _OF_SCHEMA[kind]
    inner = typing.get_args(kind)
    if typing.get_origin(kind) in (list, Sequence, typing.get_origin(Sequence[int])) and len(inner) == 1:
        element = _spelt(torch, inner[0])
        return element and element + "[]"
    if typing.get_origin(kind) is typing.Union and len(inner) == 2 and type(None) in inner:
        element = _spelt(torch, next(one for one in inner if one is not type(None)))
        return element and element.rstrip("?") + "?"
    return None


def _literal(default: Any) -> str:
    return f'"{default}"' if isinstance(default, str) else str(default)


def _refuse_parameter(name: str, why: str) -> Any:
    where = f"heddle.torch.operator: parameter {name}"
    raise make(201, where, why, "Annotate it, or give `schema`", f"{where}: {why}. Annotate it, or give `schema`")


def _plain(tensor: Any, alignment: int) -> Any:
    """The same values in dense memory that begins where kernels may read vectors."""
    dense = tensor.contiguous()
    return dense if dense.data_ptr() % alignment == 0 else dense.clone()
