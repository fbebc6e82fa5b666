"""Functions that the language itself could say."""
from heddle.tile.language import arithmetic as a
from heddle.tile.language import math
from heddle.tile.language.promotion import to_tensor
from heddle.tile.language.reductions import max, sum
from heddle.tile.language.shaping import builtin, zeros_like  # noqa: F401: kernels import it from here, too
from heddle.tile.language.values import tensor, tuple


@builtin
def cdiv(x, div):
    """x / div, rounded up."""
    if not isinstance(x, tensor) and not isinstance(div, tensor):
        return (x + div - 1) // div
    return a.floordiv(a.add(x, a.sub(div, 1) if isinstance(div, tensor) else div - 1), div)


@builtin
def sigmoid(x):
    """1 / (1 + exp(-x)) of each element."""
    return a.truediv(1, a.add(1, math.exp(a.neg(to_tensor(x)))))


@builtin
def softmax(x, dim=None, keep_dims=False, ieee_rounding=False):
    """exp of each element over the sum of these along a dimension (the first one)."""
    dim = 0 if dim is None else dim
    keep_dims = keep_dims or len(x.type.shape) > 1  # so that the largest element of each row meets its row
    z = a.sub(x, max(x, dim, keep_dims=keep_dims))
    powers = math.exp(z)
    return a.fdiv(powers, sum(powers, dim, keep_dims=keep_dims), ieee_rounding)


@builtin
def swizzle2d(i, j, size_i, size_j, size_g):
    """Where the tile (i, j) in row-major order lies when groups of size_g rows are gone through column by column."""
    index = a.add(a.mul(i, size_j), j)
    in_group = a.mul(size_g, size_j) if isinstance(size_j, tensor) or isinstance(size_g, tensor) else size_g * size_j
    first = a.mul(a.floordiv(index, in_group), size_g)
    rows = a.minimum(a.sub(size_i, first), size_g)
    index = a.mod(index, in_group)
    return tuple([a.add(first, a.mod(index, rows)), a.floordiv(index, rows)])


@builtin
def expect_zero(x, mask):
    """x; says that it is zero where the mask is false."""
    return x


@builtin
def _log2(i):
    """The logarithm of a power of two that is known; kernels that sort take it from Triton under this name."""
    return int(i).bit_length() - 1
