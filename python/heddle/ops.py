"""Single operators on arrays that lie on a GPU."""
from typing import Any, Mapping, Optional

from heddle import _core, _nvrtc

__all__ = ["gemm"]


def gemm(a: Any, b: Any, *, epilogue: str = "", operands: Optional[Mapping[str, Any]] = None, out: Any = None,
         out_dtype: Optional[str] = None, tf32: bool = False, stream: Any = None, tune_seconds: float = 0) -> Any:
    """epilogue(a @ b), in one kernel.

    `a` is [m, k], `b` is [k, n], or batches of them, [batch, m, k] and [batch, k, n], on one GPU; f16, bf16, f32, f64,
    f8e4m3, f8e5m2, i8 or u8. Rows or columns are dense: views such as `b.T` are taken as they are. `epilogue` is an
    expression of x, the product, and the names in `operands`, computed in f32: "gelu(x + bias) * 0.5 + residual".
    An operand has the shape [n] (one element a column), [m, 1] (one a row), [m, n] or one element.

    Returns `out`, or a new array of a's library: [m, n] of `out_dtype` (by default a's, "bf16" of fp8, "i32" of int8).
    The product is put onto `stream`, by default the current one of a's library, and not waited for. The first call of a
    problem compiles its kernel; with `tune_seconds` candidates are measured then. Raises heddle.InputError,
    heddle.UnsupportedError, heddle.MachineError.
    """
    _nvrtc.load()
    options = {"out_dtype": out_dtype, "tf32": tf32, "stream": stream, "tune_seconds": tune_seconds}
    return _core.gemm(a, b, epilogue, dict(operands or {}), out, options)
