"""Single operators with gradients, which heddle.ops offers."""
from typing import Any, List, Optional, Sequence, Tuple, Union

import torch
from torch.nn import functional as F

from heddle._options import refuse
from heddle.torch.attention import ATTENTION
from heddle.torch.specialised import Operator

Tensor = torch.Tensor
aten = torch.ops.aten


def _wide(x: Tensor) -> Tensor:
    return x if x.dtype == torch.float64 else x.float()


def _statistics(x: Tensor, shape: Sequence[int], eps: float, is_centred: bool) -> List[Tensor]:
    """Of each row: its mean, if `is_centred`, and the factor that scales it to variance 1."""
    dims, x = _dims_of(shape), _wide(x)
    if is_centred:
        variance, mean = torch.var_mean(x, dims, correction=0, keepdim=True)
        return [mean, torch.rsqrt(variance + eps)]
    return [torch.rsqrt((x * x).mean(dims, keepdim=True) + eps)]


def _normalised(x: Tensor, statistics: Sequence[Tensor]) -> Tensor:
    *mean, factor = statistics
    return (_wide(x) - mean[0] if mean else _wide(x)) * factor


def _norm_gradients(gradient: Tensor, x: Tensor, shape: Sequence[int], weight: Optional[Tensor], statistics: Sequence[Tensor],
                    wanted: Sequence[bool]) -> List[Tensor]:
    """Of x, the weight, and, if it is wanted, a bias of the weight's type."""
    normal, is_centred = _normalised(x, statistics), len(statistics) == 2
    dims, rows, outer = _dims_of(shape), _wide(gradient), list(range(x.dim() - len(shape)))
    made = []
    if wanted[0]:
        inner = rows if weight is None else rows * weight
        rest = normal * (inner * normal).mean(dims, keepdim=True)
        if is_centred:
            rest = rest + inner.mean(dims, keepdim=True)
        made.append(((inner - rest) * statistics[-1]).to(x.dtype))
    for one, is_wanted in zip((rows * normal, rows), wanted[1:]):
        if is_wanted:
            made.append(one.sum(outer) if outer else one)
    return made


def _dims_of(shape: Sequence[int]) -> List[int]:
    return list(range(-len(shape), 0))


def _check_norm(where: str, x: Tensor, shape: Sequence[int], *weights: Optional[Tensor]) -> None:
    if not shape or tuple(x.shape[-len(shape):]) != tuple(shape):
        refuse(where, f"rows are {list(shape)} and the tensor is {list(x.shape)}", "Rows are the last dimensions of the tensor")
    for one in weights:
        if one is not None and tuple(one.shape) != tuple(shape):
            refuse(where, f"the weight or bias is {list(one.shape)}", f"It has the shape of a row, {list(shape)}")


def _layer_norm_kept(x: Tensor, shape: Sequence[int], weight: Optional[Tensor], bias: Optional[Tensor], eps: float) -> List[Tensor]:
    """The result, and the mean and the factor of each row."""
    _check_norm("heddle.ops.layer_norm", x, shape, weight, bias)
    statistics = _statistics(x, shape, eps, True)
    y = _normalised(x, statistics)
    if weight is not None:
        y = y * weight
    return [(y if bias is None else y + bias).to(x.dtype), *statistics]


def _layer_norm(*arguments: Any) -> Tensor:
    return _layer_norm_kept(*arguments)[0]


def _layer_norm_backward(gradient: Tensor, x: Tensor, shape: Sequence[int], weight: Optional[Tensor], bias: Optional[Tensor], eps: float,
                         mean: Tensor, factor: Tensor, wanted: Sequence[bool]) -> List[Tensor]:
    made = _norm_gradients(gradient, x, shape, weight, [mean, factor], wanted)
    types = [one.dtype for one, is_wanted in zip((x, weight, bias), wanted) if is_wanted]  # type: ignore[union-attr]
    return [one.to(dtype) for one, dtype in zip(made, types)]


def _rms_norm_kept(x: Tensor, shape: Sequence[int], weight: Optional[Tensor], eps: float) -> List[Tensor]:
    """The result, and the factor of each row."""
    _check_norm("heddle.ops.rms_norm", x, shape, weight)
    statistics = _statistics(x, shape, eps, False)
    y = _normalised(x, statistics)
    return [(y if weight is None else y * weight).to(x.dtype), *statistics]


def _rms_norm(*arguments: Any) -> Tensor:
    return _rms_norm_kept(*arguments)[0]


def _rms_norm_backward(gradient: Tensor, x: Tensor, shape: Sequence[int], weight: Optional[Tensor], eps: float, factor: Tensor,
                       wanted: Sequence[bool]) -> List[Tensor]:
    made = _norm_gradients(gradient, x, shape, weight, [factor], wanted)
    types = [one.dtype for one, is_wanted in zip((x, weight), wanted) if is_wanted]  # type: ignore[union-attr]
    return [one.to(dtype) for one, dtype in zip(made, types)]


def _swiglu(gate: Tensor, up: Tensor) -> Tensor:
    if gate.shape != up.shape:
        refuse("heddle.ops.swiglu", f"gate is {list(gate.shape)} and up {list(up.shape)}", "They have the same shape")
    wide = _wide(gate)
    return (wide * torch.sigmoid(wide) * up).to(gate.dtype)


def _swiglu_backward(gradient: Tensor, gate: Tensor, up: Tensor, wanted: Sequence[bool]) -> List[Tensor]:
    x, outer = _wide(gate), _wide(gradient)
    share = torch.sigmoid(x)
    made = [(outer * up * share * (1 + x * (1 - share))).to(gate.dtype), (outer * x * share).to(up.dtype)]
    return [one for one, is_wanted in zip(made, wanted) if is_wanted]


def _convolution(x: Tensor, weight: Tensor, bias: Optional[Tensor], stride: Sequence[int], padding: Sequence[int],
                 dilation: Sequence[int], groups: int) -> Tensor:
    if not 3 <= x.dim() == weight.dim() <= 5:
        refuse("heddle.ops.convolution", f"the image has {x.dim()} dimensions and the filter {weight.dim()}",
               "Both have three to five: images [batch, channels, ...], filters [channels out, channels in / groups, ...]")
    return aten.convolution(x, weight, bias, stride, padding, dilation, False, [0] * len(stride), groups)


def _convolution_backward(gradient: Tensor, x: Tensor, weight: Tensor, bias: Optional[Tensor], stride: Sequence[int], padding: Sequence[int],
                          dilation: Sequence[int], groups: int, wanted: Sequence[bool]) -> List[Tensor]:
    sizes = None if bias is None else [bias.shape[0]]
    made = aten.convolution_backward(gradient, x, weight, sizes, stride, padding, dilation, False, [0] * len(stride), groups, list(wanted))
    return [one for one, is_wanted in zip(made, wanted) if is_wanted]


def _attention(q: Tensor, k: Tensor, v: Tensor, mask: Optional[Tensor], causal: bool, scale: Optional[float]) -> Tensor:
    _check_attention(q, k, v)
    return ATTENTION(q, k, v, mask, 0.0, causal, scale=scale, enable_gqa=True)


def _attention_kept(q: Tensor, k: Tensor, v: Tensor, mask: Optional[Tensor], causal: bool, scale: Optional[float]) -> List[Tensor]:
    """The result, and the logarithm of each row's sum of exponentials."""
    _check_attention(q, k, v)
    return aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, causal, attn_mask=mask, scale=scale)


def _attention_backward(gradient: Tensor, q: Tensor, k: Tensor, v: Tensor, mask: Optional[Tensor], causal: bool, scale: Optional[float],
                        out: Tensor, logarithms: Tensor, wanted: Sequence[bool]) -> List[Tensor]:
    made = aten._scaled_dot_product_flash_attention_for_cpu_backward(gradient, q, k, v, out, logarithms, 0.0, causal, attn_mask=mask,
                                                                     scale=scale)
    return [one for one, is_wanted in zip(made, wanted) if is_wanted]


def _check_attention(q: Tensor, k: Tensor, v: Tensor) -> None:
    where = "heddle.ops.scaled_dot_product_attention"
    if not q.dim() == k.dim() == v.dim() == 4:
        refuse(where, f"query, key and value have {q.dim()}, {k.dim()} and {v.dim()} dimensions", "Give [batch, heads, length, depth]")
    if k.shape[:3] != v.shape[:3] or q.shape[0] != k.shape[0] or q.shape[3] != k.shape[3] or q.shape[1] % max(1, k.shape[1]):
        refuse(where, f"query is {list(q.shape)}, key {list(k.shape)} and value {list(v.shape)}",
               "Key and value have the same heads and length, and the heads of query are a multiple of theirs")


_OF_LAYER_NORM = "(Tensor x, int[] shape, Tensor? weight, Tensor? bias, float eps)"
LAYER_NORM = Operator(f"layer_norm{_OF_LAYER_NORM} -> Tensor", _layer_norm)
LAYER_NORM_KEPT = Operator(f"layer_norm_kept{_OF_LAYER_NORM} -> (Tensor, Tensor, Tensor)", _layer_norm_kept, _layer_norm_backward,
                           reads_result=False)
_OF_RMS_NORM = "(Tensor x, int[] shape, Tensor? weight, float eps)"
RMS_NORM = Operator(f"rms_norm{_OF_RMS_NORM} -> Tensor", _rms_norm)
RMS_NORM_KEPT = Operator(f"rms_norm_kept{_OF_RMS_NORM} -> (Tensor, Tensor)", _rms_norm_kept, _rms_norm_backward, reads_result=False)
SWIGLU = Operator("swiglu(Tensor gate, Tensor up) -> Tensor", _swiglu, _swiglu_backward)
CONVOLUTION = Operator("convolution(Tensor x, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, int groups) -> Tensor",
                       _convolution, _convolution_backward)
_OF_ATTENTION = "(Tensor query, Tensor key, Tensor value, Tensor? mask, bool causal, float? scale)"
SDPA = Operator(f"scaled_dot_product_attention{_OF_ATTENTION} -> Tensor", _attention)
SDPA_KEPT = Operator(f"scaled_dot_product_attention_kept{_OF_ATTENTION} -> (Tensor, Tensor)", _attention_kept, _attention_backward)


def layer_norm(input: Tensor, normalized_shape: Union[int, Sequence[int]], weight: Optional[Tensor] = None, bias: Optional[Tensor] = None,
               eps: float = 1e-5) -> Tensor:
    """torch.nn.functional.layer_norm in one kernel; its gradients read `input` and the gradient once.

    Statistics are f32 (f64 of f64), the result has the type of `input`, under autocast, too. `weight` and `bias` may have
    another floating-point type. The gradient keeps `input` and the statistics of its rows. Raises heddle.InputError for
    shapes that do not fit.
    """
    arguments = input, [normalized_shape] if isinstance(normalized_shape, int) else normalized_shape, weight, bias, eps
    return LAYER_NORM_KEPT(*arguments)[0] if _needs_gradients(input, weight, bias) else LAYER_NORM(*arguments)


def rms_norm(input: Tensor, normalized_shape: Union[int, Sequence[int]], weight: Optional[Tensor] = None,
             eps: Optional[float] = None) -> Tensor:
    """torch.nn.functional.rms_norm, as layer_norm(). `eps` is by default that of input's type, as in PyTorch."""
    arguments = (input, [normalized_shape] if isinstance(normalized_shape, int) else normalized_shape, weight,
                 torch.finfo(input.dtype).eps if eps is None else eps)
    return RMS_NORM_KEPT(*arguments)[0] if _needs_gradients(input, weight) else RMS_NORM(*arguments)


def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    """silu(gate) * up, computed in f32 and rounded once; `gate` and `up` have one shape. The result has the type of `gate`."""
    return SWIGLU(gate, up)


def convolution(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: Union[int, Sequence[int]] = 1,
                padding: Union[int, Sequence[int]] = 0, dilation: Union[int, Sequence[int]] = 1, groups: int = 1) -> Tensor:
    """torch.nn.functional.conv1d, conv2d or conv3d, by the number of dimensions of `weight`.

    `input` is [batch, channels, ...] of any strides. Where `input` or `weight` has its channels last in memory
    (torch.channels_last), so has the result. Under autocast operands are cast, as by PyTorch's.
    """
    if torch.is_autocast_enabled(input.device.type):
        input, weight, bias = _cast(input, weight, bias)
    rank = weight.dim() - 2
    numbers = [[one] * rank if isinstance(one, int) else one for one in (stride, padding, dilation)]
    return CONVOLUTION(input, weight, bias, *numbers, groups)


def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Optional[Tensor] = None, *, is_causal: bool = False,
                                 scale: Optional[float] = None) -> Tensor:
    """torch.nn.functional.scaled_dot_product_attention of [batch, heads, length, depth].

    The heads of `query` share those of `key` and `value` where these have fewer. `attn_mask` is bool or is added to scores,
    and may be given together with `is_causal`. With gradients PyTorch's operator runs for tensors on a GPU, for a mask that
    requires a gradient, and for values of another depth. Under autocast operands are cast, as by PyTorch's.
    """
    if torch.is_autocast_enabled(query.device.type):
        query, key, value = _cast(query, key, value)
    learns_mask = attn_mask is not None and attn_mask.requires_grad
    if not _needs_gradients(query, key, value, attn_mask):
        return SDPA(query, key, value, attn_mask, is_causal, scale)
    if learns_mask or query.device.type != "cpu" or query.shape[-1] != value.shape[-1]:
        return _by_pytorch(query, key, value, attn_mask, is_causal, scale)
    return SDPA_KEPT(query, key, value, attn_mask, is_causal, scale)[0]


def _by_pytorch(query: Tensor, key: Tensor, value: Tensor, mask: Optional[Tensor], is_causal: bool, scale: Optional[float]) -> Tensor:
    _check_attention(query, key, value)
    if mask is not None and is_causal:
        sees = torch.ones(query.shape[2], key.shape[2], dtype=torch.bool, device=query.device).tril()
        mask, is_causal = mask & sees if mask.dtype == torch.bool else mask.masked_fill(~sees, -torch.inf), False
    return F.scaled_dot_product_attention(query, key, value, mask, is_causal=is_causal, scale=scale, enable_gqa=key.shape[1] != query.shape[1])


def _needs_gradients(*tensors: Optional[Tensor]) -> bool:
    return torch.is_grad_enabled() and any(one is not None and one.requires_grad for one in tensors)


def _cast(*tensors: Optional[Tensor]) -> Any:
    """To the type of autocast, but for f64."""
    dtype = torch.get_autocast_dtype(next(one for one in tensors if one is not None).device.type)
    return [one if one is None or one.dtype == torch.float64 else one.to(dtype) for one in tensors]
