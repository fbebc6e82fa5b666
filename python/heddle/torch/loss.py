"""The cross-entropy of a linear layer, a chunk of rows at a time: the logits of all rows never exist together.

The forward pass computes the gradients beside the loss while it has a chunk's logits, whose gradient takes their place. The
backward pass multiplies by the gradient of the loss, unless that is 1. Losses by row have a gradient for each row, so their backward pass computes
the logits again.
"""
from typing import Any, List, Optional, Sequence, Tuple

import torch
from torch.autograd.function import once_differentiable
from torch.fx import Node

import heddle.ops
import heddle.tile as tile
import heddle.tile.language as tl
from heddle._options import refuse

DEFAULT_BUDGET = 1 << 30
_FEWEST_ROWS = 1024  # of a chunk, where there are as many: products of fewer rows are slow
_ROUND = 128
_BLOCKS = {"cpu": 512, "cuda": 4096}
_SCALED = 8192
_WHERE = "heddle.torch.linear_cross_entropy"


@tile.jit
def _capped(x, cap, CAPS: tl.constexpr):
    return cap * tl.extra.libdevice.tanh(x / cap) if CAPS else x


@tile.jit
def _logits(logits, at, width, other, cap, CAPS: tl.constexpr, WIDE: tl.constexpr):
    return tl.where(at < width, _capped(tl.load(logits + at, at < width, other=0.0).to(WIDE), cap, CAPS), other)


@tile.jit
def _larger(x, y):
    return tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL)


@tile.jit
def rows_kernel(logits, target, scales, losses, width, stride, ignore_index, smoothing, cap, CAPS: tl.constexpr,
                SMOOTHS: tl.constexpr, DERIVES: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    """The loss of a row of logits. With DERIVES the gradient of the logits, times the row's scale, takes their place."""
    row = tl.program_id(0)
    logits += row.to(tl.int64) * stride
    wanted = tl.load(target + row)
    counts = wanted != ignore_index
    lowest = -float("inf")
    # Each lane has a maximum, and a sum relative to it. Four elements share one rescaling of the sum.
    top = tl.full((BLOCK,), lowest, WIDE)
    powers = tl.zeros((BLOCK,), WIDE)
    total = tl.zeros((BLOCK,), WIDE)
    for start in range(0, width, 4 * BLOCK):
        at = start + tl.arange(0, BLOCK)
        a, b = _logits(logits, at, width, lowest, cap, CAPS, WIDE), _logits(logits, at + BLOCK, width, lowest, cap, CAPS, WIDE)
        c, d = _logits(logits, at + 2 * BLOCK, width, lowest, cap, CAPS, WIDE), _logits(logits, at + 3 * BLOCK, width, lowest, cap, CAPS, WIDE)
        larger = _larger(top, _larger(_larger(a, b), _larger(c, d)))
        base = tl.where(larger == lowest, 0.0, larger)
        powers = powers * tl.exp(top - base) + ((tl.exp(a - base) + tl.exp(b - base)) + (tl.exp(c - base) + tl.exp(d - base)))
        top = larger
        if SMOOTHS:
            total += tl.where(at < width, a, 0.0) + tl.where(at + BLOCK < width, b, 0.0)
            total += tl.where(at + 2 * BLOCK < width, c, 0.0) + tl.where(at + 3 * BLOCK < width, d, 0.0)
    most = tl.max(top, axis=0)
    most = tl.where(most == lowest, 0.0, most)
    log_sum = most + tl.log(tl.sum(powers * tl.exp(top - most), axis=0))
    is_class = (wanted >= 0) & (wanted < width)
    own = tl.load(logits + wanted, counts & is_class, other=float("nan")).to(WIDE)
    loss = log_sum - (1 - smoothing) * _capped(own, cap, CAPS)
    if SMOOTHS:
        loss -= smoothing / width * tl.sum(total, axis=0)
    tl.store(losses + row, tl.where(counts, loss, 0.0))
    if DERIVES:
        scale = tl.load(scales + row).to(WIDE) if scales is not None else 1.0
        for start in range(0, width, BLOCK):
            at = start + tl.arange(0, BLOCK)
            x = _logits(logits, at, width, 0.0, cap, CAPS, WIDE)
            slope = tl.exp(x - log_sum) - tl.where(at == wanted, 1 - smoothing, 0.0) - smoothing / width
            if CAPS:
                slope *= 1 - x / cap * (x / cap)
            tl.store(logits + at, tl.where(counts, slope * scale, 0.0).to(logits.dtype.element_ty), at < width)


@tile.jit
def scale_kernel(x, factor, count, BLOCK: tl.constexpr):
    """Multiplies in place. Nothing is read for a factor of 1, which the host does not know."""
    times = tl.load(factor)
    if times != 1.0:
        at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        tl.store(x + at, (tl.load(x + at, at < count).to(times.dtype) * times).to(x.dtype.element_ty), at < count)


_library = torch.library.Library("heddle", "FRAGMENT")
_OPERANDS = "Tensor input, Tensor weight, Tensor target, Tensor? bias"
_NUMBERS = "int ignore_index, float label_smoothing, float soft_cap, int budget"
_library.define(f"linear_cross_entropy_sum({_OPERANDS}, {_NUMBERS}, bool averages, bool[] wanted) -> (Tensor, Tensor, Tensor, Tensor)")
_library.define(f"linear_cross_entropy({_OPERANDS}, {_NUMBERS}) -> Tensor")
_library.define(f"linear_cross_entropy_backward(Tensor gradient, {_OPERANDS}, {_NUMBERS}, bool[] wanted) -> (Tensor, Tensor, Tensor)")
SUM, BY_ROW, BACKWARD = (getattr(torch.ops.heddle, f"linear_cross_entropy{name}").default for name in ("_sum", "", "_backward"))
_NAMES = {torch.bfloat16: "bf16", torch.float32: "f32"}


def _wide(dtype: torch.dtype) -> torch.dtype:
    return dtype if dtype == torch.float64 else torch.float32


def _kept(dtype: torch.dtype) -> torch.dtype:
    """Of gradients before they are multiplied by that of the loss: sums over rows may leave the range of f16."""
    return torch.float32 if dtype == torch.float16 else dtype


class _Products:
    """On a GPU by Heddle's kernels, on a CPU by PyTorch's."""

    def __init__(self, like: torch.Tensor):
        self._is_ours = like.device.type == "cuda" and like.dtype in (torch.bfloat16, torch.float16)

    def logits(self, x: torch.Tensor, weight: torch.Tensor, bias: Optional[torch.Tensor], out: torch.Tensor) -> None:
        if self._is_ours:
            operands = {} if bias is None else {"bias": bias}
            heddle.ops.gemm(x, weight.t(), epilogue="x + bias" if operands else "", operands=operands, out=out)
        elif bias is None:
            torch.mm(x, weight.t(), out=out)
        else:
            torch.addmm(bias, x, weight.t(), out=out)

    def put(self, a: torch.Tensor, b: torch.Tensor, out: torch.Tensor, adds: bool = False) -> None:
        """out = a @ b, or out += a @ b."""
        if self._is_ours:
            words = {"epilogue": "x + before", "operands": {"before": out}} if adds else {}
            heddle.ops.gemm(a, b, out=out, out_dtype=_NAMES[out.dtype], **words)
            return
        product = a.to(_kept(a.dtype)) @ b.to(_kept(b.dtype))
        out.add_(product) if adds else out.copy_(product)


class Chunks:
    """How a budget of bytes divides `count` rows. It is for logits and for sums wider than the gradient that they become.

    At least 1024 rows are a chunk, where there are as many.
    """

    def __init__(self, count: int, weight: torch.Tensor, dtype: torch.dtype, budget: int):
        (width, depth), row = weight.shape, max(1, _padded(weight.shape[0]) * dtype.itemsize)
        is_single = count * row <= max(budget, _FEWEST_ROWS * row)
        sums = 0 if _wide(dtype) == _kept(dtype) else width * depth * _wide(dtype).itemsize
        self.are_sums_wide = not is_single and sums + _FEWEST_ROWS * row <= budget
        left = budget - sums if self.are_sums_wide else budget
        number = max(1, -(-count // max(left // row, _FEWEST_ROWS)))
        self.rows = max(1, min(count, _padded(-(-count // number))))
        self.starts = range(0, count, self.rows)
        self.bytes = self.rows * row + (sums if self.are_sums_wide else 0)


def scratch_of(node: Node) -> int:
    """Bytes that one of the operators allocates beside its results."""
    x, weight = (one.meta["val"] for one in node.args[node.target is BACKWARD:][:2])  # type: ignore[union-attr]
    return Chunks(len(x), weight, x.dtype, node.args[7 + (node.target is BACKWARD)]).bytes  # type: ignore[arg-type]


def _padded(extent: int) -> int:
    return -(-extent // _ROUND) * _ROUND


def _computed(x: torch.Tensor, weight: torch.Tensor, target: torch.Tensor, bias: Optional[torch.Tensor], scales: Optional[torch.Tensor],
              numbers: Sequence[Any], wanted: Sequence[bool]) -> List[torch.Tensor]:
    """Losses by row, and the wanted ones of the gradients of x, weight and bias; empty tensors for others."""
    ignore_index, smoothing, cap, budget = numbers
    count, width, dtype = len(x), len(weight), _wide(x.dtype)
    if x.device.type == "cpu":
        _check_classes(target, ignore_index, width)
    x, weight, target = x.contiguous(), weight.contiguous(), target.contiguous()
    chunks, products = Chunks(count, weight, x.dtype, budget), _Products(x)
    losses = x.new_empty(count, dtype=dtype)
    made = _empty_gradients(x, weight, bias, wanted)
    sums = made[1].to(dtype) if chunks.are_sums_wide else made[1]
    of_bias = made[2].to(dtype).zero_()
    logits = x.new_empty(chunks.rows, _padded(width))
    for start in chunks.starts:
        part = x[start:start + chunks.rows]
        chunk, rows = logits[:len(part), :width], slice(start, start + len(part))
        products.logits(part, weight, bias, chunk)
        rows_kernel[(len(part),)](
            chunk, target[rows], None if scales is None else scales[rows], losses[rows], width, logits.stride(0), ignore_index,
            smoothing, cap or 1.0, CAPS=cap != 0, SMOOTHS=smoothing != 0, DERIVES=any(wanted),
            WIDE=tl.float64 if dtype == torch.float64 else tl.float32, BLOCK=_BLOCKS[x.device.type], num_warps=16)
        if wanted[0]:
            products.put(chunk, weight, made[0][rows])
        if wanted[1]:
            products.put(chunk.t(), part, sums, adds=start > 0)
        if wanted[2]:
            of_bias += chunk.sum(0, dtype=dtype)
    if count == 0:
        sums.zero_()
    return [losses, made[0], sums.to(made[1].dtype), of_bias.to(made[2].dtype)]


def _empty_gradients(x: torch.Tensor, weight: torch.Tensor, bias: Optional[torch.Tensor], wanted: Sequence[bool]) -> List[torch.Tensor]:
    return [x.new_empty(one.shape if one is not None and is_wanted else 0, dtype=_kept(x.dtype))
            for one, is_wanted in zip((x, weight, bias), wanted)]


def _check_classes(target: torch.Tensor, ignore_index: int, width: int) -> None:
    outside = (target != ignore_index) & ((target < 0) | (target >= width))
    if bool(outside.any()):
        refuse(_WHERE, f"target {int(target[outside][0])} is no class of {width}", f"Targets are less than {width}, or {ignore_index}")


def _sum(x: Any, weight: Any, target: Any, bias: Any, *rest: Any) -> Tuple[torch.Tensor, ...]:
    *numbers, averages, wanted = rest
    if not averages:
        losses, *made = _computed(x, weight, target, bias, None, numbers, wanted)
        return (losses.sum(), *made)
    count = (target != numbers[0]).sum()
    share = 1 / count.clamp(min=1).to(_wide(x.dtype))
    losses, *made = _computed(x, weight, target, bias, share.repeat(len(x)), numbers, wanted)
    return (torch.where(count > 0, losses.sum() * share, torch.nan), *made)  # without rows NaN, its gradient 0, as in PyTorch


def _by_row(x: Any, weight: Any, target: Any, bias: Any, *numbers: Any) -> torch.Tensor:
    return _computed(x, weight, target, bias, None, numbers, [False] * 3)[0]


def _backward(gradient: Any, x: Any, weight: Any, target: Any, bias: Any, *rest: Any) -> Tuple[torch.Tensor, ...]:
    return tuple(_computed(x, weight, target, bias, gradient.contiguous(), rest[:-1], rest[-1])[1:])


_FAKES = {
    "_sum": lambda x, weight, _target, bias, *rest: (
        x.new_empty((), dtype=_wide(x.dtype)), *_empty_gradients(x, weight, bias, rest[-1])),
    "": lambda x, *_: x.new_empty(len(x), dtype=_wide(x.dtype)),
    "_backward": lambda _gradient, x, weight, _target, bias, *rest: tuple(_empty_gradients(x, weight, bias, rest[-1])),
}
for _name, _function in (("_sum", _sum), ("", _by_row), ("_backward", _backward)):
    _library.impl(f"linear_cross_entropy{_name}", _function, "CompositeExplicitAutograd")
    torch.library.register_fake(f"heddle::linear_cross_entropy{_name}", _FAKES[_name], lib=_library)


def _keep_sums(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs[:4])
    ctx.set_materialize_grads(False)  # autograd would make zeros as large as the gradients
    ctx.mark_non_differentiable(*output[1:])
    ctx.made, ctx.rest = output[1:], inputs[4:]


def _scaled(one: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
    """Multiplies in place, except while a graph is traced, since its compiler plans the memory."""
    if type(one) is not torch.Tensor:
        return one * gradient
    if one.device.type == "cpu":
        return one if gradient == 1 else one.mul_(gradient)
    if one.numel() > 0:
        scale_kernel[(-(-one.numel() // _SCALED),)](one, gradient, one.numel(), BLOCK=_SCALED, num_warps=8)
    return one


@once_differentiable
def _of_sum(ctx: Any, gradient: Optional[torch.Tensor], *_: Any) -> Tuple[Any, ...]:
    """The first backward pass takes the gradients of the forward pass and multiplies them in place. Another one
    (retain_graph) computes them again."""
    operands = ctx.saved_tensors
    if gradient is None:
        return (None,) * 10
    made, ctx.made = ctx.made, None
    if made is None:
        made = SUM(*operands, *ctx.rest)[1:]
    x, weight, bias = (_scaled(one, gradient).to(like.dtype) if is_wanted and like is not None else None
                       for one, like, is_wanted in zip(made, (operands[0], operands[1], operands[3]), ctx.rest[-1]))
    return x, weight, None, bias, None, None, None, None, None, None


def _keep_operands(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs[:4])
    ctx.numbers = inputs[4:]


@once_differentiable
def _of_rows(ctx: Any, gradient: torch.Tensor) -> Tuple[Any, ...]:
    x, weight, target, bias = ctx.saved_tensors
    wanted = [ctx.needs_input_grad[i] for i in (0, 1, 3)]
    made = BACKWARD(gradient, x, weight, target, bias, *ctx.numbers, wanted)
    made = [one.to(x.dtype) if is_wanted else None for one, is_wanted in zip(made, wanted)]
    return made[0], made[1], None, made[2], None, None, None, None


torch.library.register_autograd("heddle::linear_cross_entropy_sum", _of_sum, setup_context=_keep_sums, lib=_library)
torch.library.register_autograd("heddle::linear_cross_entropy", _of_rows, setup_context=_keep_operands, lib=_library)


def linear_cross_entropy(x: torch.Tensor, weight: torch.Tensor, target: torch.Tensor, bias: Optional[torch.Tensor],
                         ignore_index: int, reduction: str, label_smoothing: float, soft_cap: float,
                         memory_budget: Optional[int]) -> torch.Tensor:
    _check(x, weight, target, bias, reduction)
    device = x.device.type
    if torch.is_autocast_enabled(device):
        x, weight, bias = (None if one is None else one.to(torch.get_autocast_dtype(device)) for one in (x, weight, bias))
    rows, classes = x.reshape(-1, x.shape[-1]), target.reshape(-1)
    numbers = (ignore_index, label_smoothing, soft_cap, DEFAULT_BUDGET if memory_budget is None else memory_budget)
    if reduction == "none":
        return BY_ROW(rows, weight, classes, bias, *numbers).reshape(target.shape)
    learns = torch.is_grad_enabled()
    wanted = [learns and one is not None and one.requires_grad for one in (x, weight, bias)]
    averages = reduction == "mean" and x.dtype != torch.float16  # in which gradients of the mean's logits would round to 0
    total = SUM(rows, weight, classes, bias, *numbers, averages, wanted)[0]
    if reduction == "sum" or averages:
        return total
    count = (classes != ignore_index).sum()
    return torch.where(count > 0, total / count.clamp(min=1), torch.nan)


def _check(x: torch.Tensor, weight: torch.Tensor, target: torch.Tensor, bias: Optional[torch.Tensor], reduction: str) -> None:
    if reduction not in ("mean", "sum", "none"):
        refuse(f"{_WHERE}: reduction", f"{reduction!r} is no value of it", "It is 'mean', 'sum' or 'none'")
    if weight.dim() != 2 or x.dim() == 0 or x.shape[-1] != weight.shape[1]:
        refuse(_WHERE, f"input is {list(x.shape)} and weight {list(weight.shape)}", "weight is [classes, features], input [..., features]")
    if x.shape[:-1] != target.shape or target.is_floating_point():
        refuse(f"{_WHERE}: target", f"it is {target.dtype} {list(target.shape)}", f"Give classes of the shape {list(x.shape[:-1])}")
    if bias is not None and bias.shape != weight.shape[:1]:
        refuse(f"{_WHERE}: bias", f"its shape is {list(bias.shape)}", f"It has an element for each of the {weight.shape[0]} classes")
