"""Single operators: on arrays of any library that lie on a GPU, and, with gradients, on tensors of PyTorch."""
import importlib
from typing import TYPE_CHECKING, Any, List, Mapping, Optional

from heddle import _core

if TYPE_CHECKING:
    from heddle.torch import linear_cross_entropy as linear_cross_entropy
    from heddle.torch.functional import convolution as convolution
    from heddle.torch.functional import layer_norm as layer_norm
    from heddle.torch.functional import rms_norm as rms_norm
    from heddle.torch.functional import scaled_dot_product_attention as scaled_dot_product_attention
    from heddle.torch.functional import swiglu as swiglu

__all__ = ["attention", "gemm"]  # what needs no PyTorch
_OF_TORCH = ["convolution", "layer_norm", "linear_cross_entropy", "rms_norm", "scaled_dot_product_attention", "swiglu"]


def __getattr__(name: str) -> Any:
    """Imports torch for the operators that need it."""
    if name not in _OF_TORCH:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    package = importlib.import_module("heddle.torch")
    package.import_torch()
    owner = package if hasattr(package, name) else importlib.import_module("heddle.torch.functional")
    globals()[name] = getattr(owner, name)
    return globals()[name]


def __dir__() -> List[str]:
    return [*globals(), *_OF_TORCH]


def attention(q: Any, k: Any, v: Any, *, causal: bool = False, window: int = 0, scale: Optional[float] = None,
              soft_cap: float = 0, bias: Any = None, sinks: Any = None, lengths: Any = None, page_table: Any = None,
              out: Any = None, stream: Any = None) -> Any:
    """softmax(scores(q @ k.T)) @ v for each head, in one kernel.

    `q` is [batch, heads, queries, depth], `k` [batch, kv_heads, keys, depth], `v` [batch, kv_heads, keys, width], or all
    of them without the batch, on one GPU, f16 or bf16, of any strides: views such as `x.transpose(1, 2)` are taken as
    they are. Heads of `q` share those of `k` and `v` where there are fewer. Scores are products times `scale` (by default
    1 / sqrt(depth)), then soft_cap * tanh(scores / soft_cap), then `bias` is added, which broadcasts to [batch, heads,
    queries, keys]; one of bool says which keys a query sees. `lengths`, i32 [batch], says how many keys a sequence has.
    With `causal` queries see keys up to their own, which for the last query is the last key of the sequence; with
    `window` those that are less than so far from it. `sinks`, [heads], is a score of each row that is no key's. A query
    that sees no key gives 0.

    With `page_table`, i32 [batch, pages of a sequence], keys and values lie in pages of a pool: `k` is [pages, kv_heads,
    keys of a page, depth], `v` [pages, kv_heads, keys of a page, width], of any strides, and the table says which pages
    have a sequence's keys. `cache.transpose(1, 2)` is what a cache [pages, keys of a page, kv_heads, depth] is passed as,
    which is what vLLM and FlashAttention have. Pages have a multiple of 16 keys. Entries that name no page (-1) are not
    followed; what lies behind a sequence's last key counts for nothing but has to be finite.

    Returns `out`, or a new array of q's library, [batch, heads, queries, width]. It is put onto `stream` as by gemm().
    Raises heddle.InputError, heddle.UnsupportedError, heddle.MachineError.
    """
    options = {"causal": causal, "window": window, "scale": scale, "soft_cap": soft_cap, "bias": bias, "sinks": sinks,
               "lengths": lengths, "page_table": page_table, "stream": stream}
    return _core.attention(q, k, v, out, options)


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
    options = {"out_dtype": out_dtype, "tf32": tf32, "stream": stream, "tune_seconds": tune_seconds}
    return _core.gemm(a, b, epilogue, dict(operands or {}), out, options)
