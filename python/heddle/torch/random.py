"""Random numbers as a function of their position and of seeds, which a graph draws from PyTorch's generator in each call.

A graph draws once, for all its random operators. So manual_seed() decides its numbers, a graph of CUDA draws anew in each
replay, and a backward graph that computes a mask again gets the mask of the forward graph. The numbers are a hash of 32-bit
words (Wellons' triple32, twice, with half of the seed before each). On a CPU it is cheaper than dropout in eager; the Philox
generator of the `random` primitive would cost more.
"""
import math
from typing import Any, Callable, Dict, List

import torch
from torch.fx import Graph, Node

from heddle.torch.rewriting import emit, first_tensor, replace

aten = torch.ops.aten
# Multipliers and shifts of the hash.
ROUNDS = ((17, 0xED5AD4BB), (11, 0xAC4C1B51), (15, 0x31848BAB))
LAST_SHIFT = 14
NEXT_WORD = 0x9E3779B9  # added to the second half of a seed for each further word of an element
# Bits of a number on [0, 1), such that 1 never appears.
BITS = {torch.float64: 53, torch.float32: 24, torch.float16: 11, torch.bfloat16: 8}

_library = torch.library.Library("heddle", "DEF")
_library.define("seeds(int count, Device device) -> Tensor", tags=(torch.Tag.nondeterministic_seeded,))
for _kind in ("uniform", "normal"):  # on [0, 1); of mean 0 and variance 1
    _library.define(f"{_kind}(Tensor seeds, int at, SymInt[] size, ScalarType dtype) -> Tensor")
SEEDS, UNIFORM, NORMAL = (getattr(torch.ops.heddle, name).default for name in ("seeds", "uniform", "normal"))


def _seeds(count: int, device: torch.device) -> torch.Tensor:
    return torch.randint(1 << 31, (count, 2), device=device)


def _uniform(seeds: torch.Tensor, at: int, size: List[int], dtype: torch.dtype) -> torch.Tensor:
    return _fractions(seeds, at, size, BITS[dtype], 0).to(dtype)


def _normal(seeds: torch.Tensor, at: int, size: List[int], dtype: torch.dtype) -> torch.Tensor:
    bits = 53 if dtype == torch.float64 else 24
    u, v = (_fractions(seeds, at, size, bits, word) for word in (0, 2))
    return ((-2 * (u + 2.0 ** -bits).log()).sqrt() * (2 * math.pi * v).cos()).to(dtype)


def _fractions(seeds: torch.Tensor, at: int, size: List[int], bits: int, word: int) -> torch.Tensor:
    """What lowering/random.py makes of `bits` bits of words from number `word` on, in PyTorch's arithmetic."""
    first = _words(seeds, at, size, word)
    if bits <= 32:
        return (first >> 32 - bits).to(torch.float32) * 2.0 ** -bits
    low = _words(seeds, at, size, word + 1)
    return ((first >> 5) * (1 << 26) + (low >> 6)).double() * 2.0 ** -bits


def _words(seeds: torch.Tensor, at: int, size: List[int], word: int) -> torch.Tensor:
    mask = 0xFFFFFFFF

    def mixed(x: torch.Tensor) -> torch.Tensor:
        for shift, factor in ROUNDS:
            x = (x ^ x >> shift) * factor & mask
        return x ^ x >> LAST_SHIFT
    place = torch.arange(math.prod(size), device=seeds.device).reshape(size)
    return mixed(mixed(place ^ seeds[at, 0]) + seeds[at, 1] + word * NEXT_WORD & mask)


for _kind, _function in (("seeds", _seeds), ("uniform", _uniform), ("normal", _normal)):
    _library.impl(_kind, _function, "CompositeExplicitAutograd")
    if _kind != "seeds":
        torch.library.register_fake(f"heddle::{_kind}", lambda seeds, at, size, dtype: seeds.new_empty(size, dtype=dtype), lib=_library)


class _Emitter:
    """Puts nodes where a random node stands, on its row of the seeds."""

    def __init__(self, node: Node, seeds: Node, at: int):
        self._node, self._seeds, self._at = node, seeds, at

    def __call__(self, target: Any, *arguments: Any, **words: Any) -> Node:
        return emit(self._node, target, arguments, words)

    def uniform(self, size: Any, dtype: torch.dtype) -> Node:
        return self(UNIFORM, self._seeds, self._at, size, dtype)

    def normal(self, size: Any, dtype: torch.dtype) -> Node:
        return self(NORMAL, self._seeds, self._at, size, dtype)


def _size(c: _Emitter, x: Node) -> List[Any]:
    return [extent if isinstance(extent, int) else c(aten.sym_size.int, x, d) for d, extent in enumerate(x.meta["val"].shape)]


def _like(kind: str) -> Callable[..., Any]:
    def expand(c: _Emitter, x: Node, **_: Any) -> Node:
        return getattr(c, kind)(_size(c, x), c._node.meta["val"].dtype)
    return expand


def _of_size(kind: str) -> Callable[..., Any]:
    def expand(c: _Emitter, size: Any, **_: Any) -> Node:
        return getattr(c, kind)(size, c._node.meta["val"].dtype)
    return expand


def _native_dropout(c: _Emitter, x: Node, p: float, train: Any) -> Any:
    if not train or p == 1:
        return None
    mask = c(aten.ge.Scalar, c.uniform(_size(c, x), torch.float32), p)
    kept = c(aten.mul.Tensor, x, c(aten._to_copy.default, mask, dtype=x.meta["val"].dtype))
    return c(aten.mul.Tensor, kept, 1 / (1 - p)), mask


def _bernoulli(c: _Emitter, x: Node, p: Any = None, **_: Any) -> Node:
    drawn = c.uniform(_size(c, x), torch.float32)
    hit = c(aten.lt.Tensor, drawn, x) if p is None else c(aten.lt.Scalar, drawn, p)
    return c(aten._to_copy.default, hit, dtype=c._node.meta["val"].dtype)


def _scaled(c: _Emitter, x: Node, factor: Any, offset: Any) -> Node:
    return c(aten.add.Tensor, c(aten.mul.Tensor, x, factor), offset)


def _uniform_between(c: _Emitter, x: Node, low: float = 0.0, high: float = 1.0, **_: Any) -> Node:
    return _scaled(c, c.uniform(_size(c, x), x.meta["val"].dtype), high - low, low)


def _normal_functional(c: _Emitter, x: Node, mean: float = 0.0, deviation: float = 1.0, **_: Any) -> Node:
    return _scaled(c, c.normal(_size(c, x), x.meta["val"].dtype), deviation, mean)


def _exponential(c: _Emitter, x: Node, rate: float = 1.0, **_: Any) -> Node:
    drawn = c.uniform(_size(c, x), x.meta["val"].dtype)
    return c(aten.div.Tensor, c(aten.log1p.default, c(aten.neg.default, drawn)), -rate)


def _integers(c: _Emitter, low: int, high: int, size: Any) -> Any:
    if not isinstance(low, int) or not isinstance(high, int) or high - low > 1 << 53:
        return None
    wide = c(aten.mul.Tensor, c.uniform(size, torch.float64), float(high - low))
    return c(aten.add.Tensor, c(aten._to_copy.default, c(aten.floor.default, wide), dtype=c._node.meta["val"].dtype), low)


# By overload: nodes in place of a random one, or None where PyTorch is to keep it.
_EXPANSIONS: Dict[Any, Callable[..., Any]] = {
    aten.rand.default: _of_size("uniform"), aten.randn.default: _of_size("normal"),
    aten.rand_like.default: _like("uniform"), aten.randn_like.default: _like("normal"),
    aten.native_dropout.default: _native_dropout,
    aten.bernoulli.default: _bernoulli, aten.bernoulli.p: _bernoulli,
    aten.uniform.default: _uniform_between, aten.normal_functional.default: _normal_functional,
    aten.exponential.default: _exponential,
    aten.randint.default: lambda c, high, size, **_: _integers(c, 0, high, size),
    aten.randint.low: lambda c, low, high, size, **_: _integers(c, low, high, size),
    aten.randint_like.default: lambda c, x, high, **_: _integers(c, 0, high, _size(c, x)),
    aten.randint_like.low_dtype: lambda c, x, low, high, **_: _integers(c, low, high, _size(c, x)),
}


def seed_random_operators(graph: Graph) -> None:
    """Replaces random operators by functions of seeds. Those with a generator of their own stay."""
    random = [node for node in graph.nodes if node.op == "call_function" and node.target in _EXPANSIONS
              and node.kwargs.get("generator") is None and first_tensor(node).dtype in (*BITS, torch.int64, torch.int32)]
    for device in dict.fromkeys(first_tensor(node).device for node in random):
        here = [node for node in random if first_tensor(node).device == device]
        seeds = emit(here[0], SEEDS, (len(here), device), {})
        seeds.meta.pop("recompute", None)  # drawn once, even if a checkpoint computes the rest again
        next(node for node in graph.nodes if node.op not in ("placeholder", "get_attr")).prepend(seeds)
        for at, node in enumerate(here):
            made = _EXPANSIONS[node.target](_Emitter(node, seeds, at), *node.args, **node.kwargs)
            if made is not None:
                replace(node, made)
        if not seeds.users:
            graph.erase_node(seeds)
