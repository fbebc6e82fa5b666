"""What lowerings of operators share: the table of them, casts, broadcasts, views."""
import functools
import math
from typing import Any, Callable, Collection, Dict, List, Optional, Sequence, Tuple

import torch

from heddle.torch.custom_ops import torch_dtypes
from heddle._hir import FLOATS, INTEGERS, Shape, Unsupported, Value, Word, Writer

# Casts to float8 saturate in the intermediate representation and not in PyTorch.
_TORCH_DTYPES: Dict[str, torch.dtype] = {name: dtype for name, dtype in torch_dtypes(torch).items() if not name.startswith("f8")}
DTYPES: Dict[torch.dtype, str] = {dtype: name for name, dtype in _TORCH_DTYPES.items()}

# By overload: lowering(context, *arguments, **keywords), with a Value for each tensor and an int for each SymInt. It
# returns a Value, or a list of them (None for one that nobody may use), for the results of the node.
Lowering = Callable[..., Any]
TABLE: Dict[Any, Lowering] = {}


def lowers(*overloads: Any) -> Callable[[Lowering], Lowering]:
    """Puts a lowering into the table. None stands for an overload that this version of torch lacks."""
    def add(lowering: Lowering) -> Lowering:
        for overload in overloads:
            assert overload is None or overload not in TABLE, overload
            if overload is not None:
                TABLE[overload] = lowering
        return lowering
    return add


def overload_of(namespace: Any, name: str, overload: str = "default") -> Any:
    """An overload that some versions of torch lack, or None."""
    return getattr(getattr(namespace, name, None), overload, None)


def dtype_name(dtype: torch.dtype) -> str:
    if dtype not in DTYPES:
        raise Unsupported(f"tensors of {dtype}")
    return DTYPES[dtype]


class Context:
    """Emits the nodes of one operator.

    `results`: (dtype, shape) of the node's results, None for what is no tensor; `used`: the positions of those that
    somebody reads.
    """

    def __init__(self, writer: Writer, results: Sequence[Optional[Tuple[str, Shape]]], used: Collection[int] = (0,)):
        self.writer = writer
        self.results = list(results)
        self.used = set(used)

    @property
    def dtype(self) -> str:
        assert self.results[0] is not None
        return self.results[0][0]

    @property
    def shape(self) -> Shape:
        assert self.results[0] is not None
        return self.results[0][1]

    def emit(self, op: str, inputs: Sequence[Value], dtype: str, shape: Sequence[int], /, **attributes: Any) -> Value:
        return self.writer.emit(op, inputs, dtype, shape, **attributes)

    def unary(self, op: str, x: Value) -> Value:
        return self.emit(op, [x], x.dtype, x.shape)

    def binary(self, op: str, x: Value, y: Any) -> Value:
        """Of two tensors, or a tensor and a number, which gets the type and shape of the tensor."""
        if not isinstance(y, Value):
            y = self.writer.constant(y, x.dtype, x.shape)
        shape = tuple(torch.broadcast_shapes(x.shape, y.shape))
        return self.emit(op, [self.broadcast(x, shape), self.broadcast(y, shape)], x.dtype, shape)

    def compare(self, op: str, x: Value, y: Any) -> Value:
        if not isinstance(y, Value):
            y = self.writer.constant(y, x.dtype, x.shape)
        shape = tuple(torch.broadcast_shapes(x.shape, y.shape))
        return self.emit(op, [self.broadcast(x, shape), self.broadcast(y, shape)], "bool", shape)

    def select(self, mask: Value, x: Value, y: Value) -> Value:
        shape = tuple(torch.broadcast_shapes(mask.shape, x.shape, y.shape))
        return self.emit("select", [self.broadcast(one, shape) for one in (mask, x, y)], x.dtype, shape)

    def cast(self, x: Value, dtype: str, excess_precision: bool = False) -> Value:
        """With `excess_precision` a kernel need not round a value that it reads itself."""
        more = {"excess_precision": 1} if excess_precision else {}
        return x if x.dtype == dtype else self.emit("cast", [x], dtype, x.shape, to=Word(dtype), **more)

    def tensor(self, x: Any, dtype: str) -> Value:
        """A tensor or number as a tensor of that type."""
        return self.cast(x, dtype) if isinstance(x, Value) else self.writer.constant(x, dtype)

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        shape = tuple(shape)
        return x if x.shape == shape else self.emit("reshape", [x], x.dtype, shape, shape=shape)

    def transpose(self, x: Value, perm: Sequence[int]) -> Value:
        if list(perm) == sorted(perm):
            return x
        return self.emit("transpose", [x], x.dtype, [x.shape[d] for d in perm], perm=perm)

    def broadcast(self, x: Value, shape: Sequence[int], dims: Optional[Sequence[int]] = None) -> Value:
        """As NumPy does, or with dimension i of x at dims[i]."""
        shape = tuple(shape)
        if x.shape == shape:
            return x
        if dims is None:
            dims = range(len(shape) - len(x.shape), len(shape))
        return self.emit("broadcast", [x], x.dtype, shape, shape=shape, dims=list(dims))

    def slice(self, x: Value, dim: int, start: int, limit: int, stride: int = 1) -> Value:
        if start == 0 and limit == x.shape[dim] and stride == 1:
            return x
        starts, limits, strides = [0] * len(x.shape), list(x.shape), [1] * len(x.shape)
        starts[dim], limits[dim], strides[dim] = start, limit, stride
        shape = list(x.shape)
        shape[dim] = max(0, -(-(limit - start) // stride))
        return self.emit("slice", [x], x.dtype, shape, starts=starts, limits=limits, strides=strides)

    def concat(self, parts: Sequence[Value], dim: int) -> Value:
        parts = [part for part in parts if part.shape[dim] > 0] or list(parts[:1])
        if len(parts) == 1:
            return parts[0]
        shape = list(parts[0].shape)
        shape[dim] = sum(part.shape[dim] for part in parts)
        return self.emit("concat", parts, parts[0].dtype, shape, dim=dim)

    def reduce(self, kind: str, x: Value, dims: Sequence[int], keepdim: bool = False) -> Value:
        dims = sorted(dims)
        kept = [extent for d, extent in enumerate(x.shape) if d not in dims]
        y = self.emit("reduce", [x], x.dtype, kept, kind=kind, dims=dims) if dims else x
        return self.reshape(y, [1 if d in dims else extent for d, extent in enumerate(x.shape)]) if keepdim else y

    def dot(self, x: Value, y: Value, batch: int = 0, out: Optional[str] = None) -> Value:
        """[batch..., m, k] x [batch..., k, n]."""
        axes = list(range(batch))
        shape = (*x.shape[:-1], y.shape[-1])
        more = {"out": Word(out)} if out and out != x.dtype else {}
        return self.emit("dot", [x, y], out or x.dtype, shape, lhs_batch=axes, rhs_batch=axes, lhs_contract=[batch + 1],
                         rhs_contract=[batch], **more)

    def iota(self, dtype: str, shape: Sequence[int], dim: int) -> Value:
        return self.emit("iota", [], dtype, shape, dtype=Word(dtype), shape=list(shape), dim=dim)


def dims_of(dims: Any, rank: int) -> List[int]:
    """Dimensions as PyTorch takes them (None and an empty list: all), sorted."""
    if dims is None or (isinstance(dims, (list, tuple)) and not dims):
        return list(range(rank))
    listed = dims if isinstance(dims, (list, tuple)) else [dims]
    return sorted({dim_of(d, rank) for d in listed}) if rank else []


def dim_of(dim: int, rank: int) -> int:
    return dim + rank if dim < 0 else dim


def promoted(*arguments: Any, to_float: bool = False) -> str:
    """The dtype that PyTorch computes an elementwise operator in."""
    kinds = tuple([(a.dtype, len(a.shape) > 0) if isinstance(a, Value) else type(a) for a in arguments if a is not None])
    dtype = _result_type(kinds, torch.get_default_dtype())
    if to_float and not dtype.is_floating_point:
        dtype = torch.get_default_dtype()
    return dtype_name(dtype)


@functools.cache
def _result_type(kinds: Sequence[Any], _default: torch.dtype) -> torch.dtype:
    """`kinds`: the dtype of a tensor with whether it has dimensions, or the type of a number. Tensors of rank 0 give way to
    others, and numbers to both."""
    from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes

    typical = [torch.empty([1] * kind[1], dtype=_TORCH_DTYPES[kind[0]], device="meta") if isinstance(kind, tuple) else kind(1) for kind in kinds]
    return elementwise_dtypes(*typical, type_promotion_kind=ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT)[1]


def count(shape: Sequence[int]) -> int:
    return math.prod(shape)


def wide(dtype: str) -> str:
    """The type to sum or count in: f32 for types of 16 bits, which a sum overflows sooner than its mean."""
    return "f32" if dtype in ("f16", "bf16") else dtype


def any_order() -> Dict[str, int]:
    """The attribute of a scatter that says that sums may be added in any order, as in eager: atomic operations then add them."""
    return {} if torch.are_deterministic_algorithms_enabled() else {"unordered": 1}


def rounded_once(lowering: Lowering) -> Lowering:
    """For a lowering of several operations: on types of 16 bits they compute in f32, as in eager, and the result is rounded where
    it is stored."""
    @functools.wraps(lowering)
    def lower(c: Context, *arguments: Any, **words: Any) -> Value:
        if wide(c.dtype) == c.dtype:
            return lowering(c, *arguments, **words)
        widened = [c.cast(one, wide(one.dtype)) if isinstance(one, Value) else one for one in arguments]
        inner = Context(c.writer, [(wide(c.dtype), c.shape)], c.used)
        return c.cast(lowering(inner, *widened, **words), c.dtype, excess_precision=True)
    return lower


def exact_numbers(lowering: Lowering) -> Lowering:
    """For a lowering of one operation on two arguments: a number that 16 bits do not hold stays an f32, as in eager on a GPU."""
    in_f32 = rounded_once(lowering)

    @functools.wraps(lowering)
    def lower(c: Context, x: Any, y: Any, **words: Any) -> Value:
        number = next((one for one in (x, y) if not isinstance(one, Value)), 0)
        if not isinstance(number, float) or wide(c.dtype) == c.dtype:
            return lowering(c, x, y, **words)
        exact = not math.isfinite(number) or torch.tensor(number, dtype=_TORCH_DTYPES[c.dtype]).item() == number
        return (lowering if exact else in_f32)(c, x, y, **words)
    return lower


def is_float(x: Value) -> bool:
    return x.dtype in FLOATS


def is_integer(x: Value) -> bool:
    return x.dtype in INTEGERS
