"""The steps of an LSTM and of a GRU as operators of PyTorch with gradients: one node each in a graph.

Sequences are [batch, time, directions, units] or [time, batch, ...], states [directions, batch, units], weights [directions, gates * units,
units]. Gradients of weights are products outside the recurrence, which a graph compiles with what is around them.
"""
from typing import Any, Optional, Tuple

import torch

from heddle import tile
from heddle.tile import language as tl
from heddle.torch.custom_ops import operator
from heddle.torch.recurrent.kernels import gru_backward_kernel, gru_kernel, lstm_backward_kernel, lstm_kernel

Tensor = torch.Tensor
_ROWS = 16  # sequences of a program: the least that tensor cores multiply; with 32, the registers of 256 units spill
_MOST_RESIDENT = 64  # units whose matrix of four gates the registers of a program hold


def _launch(kernel: Any, sequence: Tensor, weights: Tensor, batch_first: bool, arguments: Tuple[Any, ...]) -> None:
    first, second, directions = sequence.shape[:3]
    units = weights.shape[-1]
    rows, steps, by_time, by_row = (first, second, 1, second) if batch_first else (second, first, second, 1)
    on_gpu, is_double = weights.device.type == "cuda", weights.dtype == torch.float64
    tf32 = on_gpu and not is_double and torch.backends.cudnn.allow_tf32
    kernel[(tile.cdiv(rows, _ROWS), directions)](
        *arguments, steps, rows, by_time, by_row, DIRECTIONS=directions, UNITS=units, ROWS=_ROWS,
        PART=32 if weights.dtype.itemsize == 2 else 16,  # two parts of four gates of 256 units fit into shared memory
        PRECISION="tf32" if tf32 else "ieee", RESIDENT=on_gpu and units <= _MOST_RESIDENT, WIDE=tl.float64 if is_double else tl.float32,
        num_warps=8)


def _lstm(x: Tensor, weights: Tensor, h0: Tensor, c0: Tensor, batch_first: bool,
          keeps: bool) -> Tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Outputs, final states, and, empty unless it `keeps` them, what the gradients need."""
    shape = (*x.shape[:3], weights.shape[-1])
    y, hidden = x.new_empty(shape), x.new_empty(shape)
    cells = x.new_empty(shape if keeps else (0,), dtype=torch.promote_types(x.dtype, torch.float32))
    gates = x.new_empty(x.shape if keeps else (0,))
    h, c = x.new_empty(h0.shape), x.new_empty(c0.shape)
    _launch(lstm_kernel, x, weights, batch_first, (x.contiguous(), weights.contiguous(), h0.contiguous(), c0.contiguous(), y, hidden,
                                                   cells if keeps else None, gates if keeps else None, h, c))
    return y, h, c, hidden, cells, gates


def _lstm_backward(dy: Tensor, dh: Tensor, dc: Tensor, weights: Tensor, cells: Tensor, gates: Tensor,
                   batch_first: bool) -> Tuple[Tensor, Tensor, Tensor]:
    dx = torch.empty_like(gates)
    dh0, dc0 = gates.new_empty(dh.shape), gates.new_empty(dc.shape)
    _launch(lstm_backward_kernel, gates, weights, batch_first,
            (dy.contiguous(), dh.contiguous(), dc.contiguous(), weights.contiguous(), cells, gates, dx, dh0, dc0))
    return dx, dh0, dc0


def _gru(x: Tensor, weights: Tensor, bias: Optional[Tensor], h0: Tensor, batch_first: bool,
         keeps: bool) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    shape = (*x.shape[:3], weights.shape[-1])
    y, hidden, h = x.new_empty(shape), x.new_empty(shape), x.new_empty(h0.shape)
    gates = x.new_empty((*shape[:3], 4 * shape[3]) if keeps else (0,))
    _launch(gru_kernel, x, weights, batch_first, (x.contiguous(), weights.contiguous(), None if bias is None else bias.contiguous(),
                                                  h0.contiguous(), y, hidden, gates if keeps else None, h))
    return y, h, hidden, gates


def _gru_backward(dy: Tensor, dh: Tensor, weights: Tensor, hidden: Tensor, gates: Tensor, batch_first: bool) -> Tuple[Tensor, Tensor, Tensor]:
    dx = hidden.new_empty((*hidden.shape[:3], weights.shape[1]))
    dgates, dh0 = torch.empty_like(dx), hidden.new_empty(dh.shape)
    _launch(gru_backward_kernel, hidden, weights, batch_first,
            (dy.contiguous(), dh.contiguous(), weights.contiguous(), hidden, gates, dx, dgates, dh0))
    return dx, dgates, dh0


lstm, _ = operator(_lstm, "heddle::lstm"), operator(_lstm_backward, "heddle::lstm_backward")
gru, _ = operator(_gru, "heddle::gru"), operator(_gru_backward, "heddle::gru_backward")


def _gradient_of_weights(dgates: Tensor, hidden: Tensor) -> Tensor:
    """[directions, gates * units, units]: the sum over sequences and steps."""
    left, right = dgates.flatten(0, 1), hidden.flatten(0, 1)
    return torch.bmm(left.permute(1, 2, 0), right.transpose(0, 1))


def _save_lstm(ctx: Any, inputs: Any, output: Any) -> None:
    _, weights, _, _, ctx.batch_first, _ = inputs
    ctx.save_for_backward(weights, *output[3:])
    ctx.mark_non_differentiable(*output[3:])


def _lstm_gradients(ctx: Any, dy: Tensor, dh: Tensor, dc: Tensor, *_: Any) -> Tuple[Optional[Tensor], ...]:
    weights, hidden, cells, gates = ctx.saved_tensors
    dx, dh0, dc0 = torch.ops.heddle.lstm_backward(dy, dh, dc, weights, cells, gates, ctx.batch_first)
    return dx, _gradient_of_weights(dx, hidden), dh0, dc0, None, None


def _save_gru(ctx: Any, inputs: Any, output: Any) -> None:
    _, weights, bias, _, ctx.batch_first, _ = inputs
    ctx.has_bias = bias is not None
    ctx.save_for_backward(weights, *output[2:])
    ctx.mark_non_differentiable(*output[2:])


def _gru_gradients(ctx: Any, dy: Tensor, dh: Tensor, *_: Any) -> Tuple[Optional[Tensor], ...]:
    weights, hidden, gates = ctx.saved_tensors
    dx, dgates, dh0 = torch.ops.heddle.gru_backward(dy, dh, weights, hidden, gates, ctx.batch_first)
    return dx, _gradient_of_weights(dgates, hidden), dgates.sum((0, 1)) if ctx.has_bias else None, dh0, None, None


torch.library.register_autograd("heddle::lstm", _lstm_gradients, setup_context=_save_lstm)
torch.library.register_autograd("heddle::gru", _gru_gradients, setup_context=_save_gru)
