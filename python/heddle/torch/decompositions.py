"""Which operators AOTAutograd takes apart before the backend sees them."""
import functools
from typing import Any, Callable, Dict, Iterator, Mapping, Optional, Sequence

import torch

aten = torch.ops.aten

# Beside PyTorch's core table: stitching joins again what these become, with statistics in f32.
_MORE = [
    aten.addcdiv, aten.addcmul, aten.baddbmm, aten.celu, aten.elu, aten.elu_backward, aten.gelu, aten.gelu_backward, aten.glu,
    aten.glu_backward, aten.grid_sampler_2d, aten.hardsigmoid, aten.hardsigmoid_backward, aten.hardswish, aten.hardswish_backward, aten.hardtanh,
    aten.hardtanh_backward, aten.huber_loss, aten.index_add, aten.index_copy, aten.l1_loss, aten.leaky_relu,
    aten.leaky_relu_backward, aten.lerp, aten.linalg_vector_norm, aten.log_sigmoid_forward, aten.log_sigmoid_backward,
    aten.logaddexp, aten.mish, aten.mse_loss, aten.mse_loss_backward, aten._native_batch_norm_legit,
    aten._native_batch_norm_legit_functional, aten._native_batch_norm_legit_no_training, aten.native_batch_norm,
    aten.native_batch_norm_backward, aten.native_group_norm, aten.native_group_norm_backward, aten.native_layer_norm,
    aten.native_layer_norm_backward, aten.nll_loss_backward, aten.nll_loss_forward, aten.norm, aten._log_softmax_backward_data,
    aten.sigmoid_backward, aten.silu, aten.silu_backward, aten.smooth_l1_loss, aten.smooth_l1_loss_backward,
    aten._log_softmax, aten._softmax, aten._softmax_backward_data, aten.softplus, aten.softplus_backward, aten.std, aten.std_mean, aten.tanh_backward,
    aten.threshold, aten.threshold_backward, aten.upsample_bilinear2d, aten.upsample_nearest1d, aten.upsample_nearest2d,
    aten.xlogy]
# What has a lowering of its own, which knows more than its parts would tell.
_WHOLE = [
    aten.var_mean, aten.var, aten.addmm, aten.baddbmm, aten.mv, aten.dot, aten.max_pool2d_with_indices,
    aten._scaled_dot_product_flash_attention_for_cpu, aten.avg_pool2d, aten.convolution_backward, aten.embedding_dense_backward, aten.native_dropout]
# Where nothing is trained: PyTorch takes longer to trace what an operator is made of than the operator. With gradients the parts
# let a softmax be computed again from its statistics.
_WHOLE_IN_INFERENCE = [
    aten._softmax, aten._log_softmax, aten._native_batch_norm_legit_no_training, aten.native_layer_norm, aten.gelu, aten.silu, aten.hardswish]


def _as_strided_scatter(x: torch.Tensor, source: torch.Tensor, size: Sequence[int], stride: Sequence[int],
                        offset: Optional[int] = None) -> Any:
    """Positions in memory are those of a dense tensor."""
    if not x.is_contiguous() or not all(isinstance(one, int) for one in (*x.shape, *size, *stride, offset or 0)):
        return NotImplemented
    order, dense = sorted(range(len(size)), key=lambda d: -stride[d]), 1
    for d in reversed(order):
        if size[d] != 1:
            dense = dense * size[d] if stride[d] == dense else -1
    if dense == x.numel() and not (offset if offset is not None else x.storage_offset()):
        return source.permute(order).reshape(x.shape)  # each element is replaced
    at = torch.full((), offset if offset is not None else x.storage_offset(), dtype=torch.int64, device=x.device)
    for d, (extent, step) in enumerate(zip(size, stride)):
        at = at + (torch.arange(extent, device=x.device) * step).view(-1, *[1] * (len(size) - d - 1))
    return x.flatten().index_put([at.expand(*size).flatten()], source.flatten()).view(x.shape)


@functools.cache
def table(trains: bool) -> Dict[Any, Callable[..., Any]]:
    from torch._decomp import core_aten_decompositions, get_decompositions
    from heddle.torch import functional, specialised  # noqa: F401  its operators are taken apart

    made = {**core_aten_decompositions(), **get_decompositions(_MORE), **specialised.PARTS, aten.as_strided_scatter.default: _as_strided_scatter}
    for packet in _WHOLE if trains else [*_WHOLE, *_WHOLE_IN_INFERENCE]:
        for overload in packet.overloads():
            made.pop(getattr(packet, overload), None)
    return made


class Table(Mapping[Any, Callable[..., Any]]):
    """table(), made when it is read first: AOTAutograd reads nothing of it where it finds the graph in its cache."""

    def __init__(self, trains: bool):
        self._trains = trains

    def __getitem__(self, operator: Any) -> Callable[..., Any]:
        return table(self._trains)[operator]

    def __iter__(self) -> Iterator[Any]:
        return iter(table(self._trains))

    def __len__(self) -> int:
        return len(table(self._trains))

    def __bool__(self) -> bool:
        return True
