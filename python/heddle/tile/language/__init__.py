"""The language of kernels: what a @jit function may call. docs/python/tile-language.md lists it with examples."""
from heddle.tile.language import math, random
from heddle.tile.language import methods as _methods
from heddle.tile.language.aggregates import aggregate_replace
from heddle.tile.language.arithmetic import add, clamp, maximum, minimum, mul, sub, where
from heddle.tile.language.contraction import dot, dot_scaled
from heddle.tile.language.math import (
    abs, ceil, cos, div_rn, erf, exp, exp2, fdiv, floor, fma, log, log2, rsqrt, sin, sqrt, sqrt_rn, umulhi)
from heddle.tile.language.memory import (
    advance, atomic_add, atomic_and, atomic_cas, atomic_max, atomic_min, atomic_or, atomic_xchg, atomic_xor, load,
    load_tensor_descriptor, make_block_ptr, make_tensor_descriptor, store, store_tensor_descriptor)
from heddle.tile.language.program import (
    assume, cast, debug_barrier, device_assert, device_print, inline_asm_elementwise, max_constancy, max_contiguous,
    multiple_of, num_programs, program_id, static_assert, static_print)
from heddle.tile.language.promotion import to_tensor
from heddle.tile.language.random import (
    pair_uniform_to_normal, philox, philox_impl, rand, rand4x, randint, randint4x, randn, randn4x, uint_to_uniform_float)
from heddle.tile.language.reductions import (
    argmax, argmin, associative_scan, bitonic_merge, cumprod, cumsum, histogram, map_elementwise, max, min, reduce, reduce_or,
    sort, sum, topk, xor_sum)
from heddle.tile.language.shaping import (
    arange, broadcast, broadcast_to, cat, expand_dims, flip, full, gather, interleave, join, permute, ravel, reshape, split,
    squeeze, trans, unsqueeze, view, zeros, zeros_like)
from heddle.tile.language.standard import cdiv, expect_zero, sigmoid, softmax, swizzle2d
from heddle.tile.language.types import (
    PropagateNan, bfloat16, block_type, const, constexpr, constexpr_type, dtype, float8e4b8, float8e4b15, float8e4nv, float8e5,
    float8e5b16, float16, float32, float64, int1, int8, int16, int32, int64, pi32_t, pointer_type, tuple_type, uint8, uint16,
    uint32, uint64, void)
from heddle.tile.language.values import condition, range, slice, static_range, tensor, tuple
from heddle.tile.language.windows import descriptor as tensor_descriptor
from heddle.tile.language.windows import window_type as tensor_descriptor_type
from heddle.tile.language import core, extra

__all__ = [name for name in dir() if not name.startswith("_")]
