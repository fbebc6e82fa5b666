"""Operators of PyTorch (ATen and its primitives) in the intermediate representation: TABLE, by overload."""
from heddle.torch.lowering import contractions, elementwise, indexing, random, reductions, views, whole, windows  # noqa: F401
from heddle.torch.lowering.context import TABLE, Context, Unsupported, dtype_name

__all__ = ["TABLE", "Context", "Unsupported", "dtype_name"]
