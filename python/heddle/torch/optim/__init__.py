"""Optimisers for PyTorch that update all parameters in one launch: Adam, AdamW and SGD as in torch.optim, and Lion.

They take the arguments of the classes of torch.optim, and `max_norm`, which clips the norm of all gradients in the same step (two
launches). States have the same names, so checkpoints of either load into the other; they are float32 whatever the parameters are.
A step waits for nothing, counts on the device and can be captured into a CUDA graph after one that is not; `foreach`, `fused` and
`capturable` change nothing.
"""
import math
from typing import Any, Dict, Iterable, List, Optional, Tuple

import torch

from heddle.torch.optim import kernels
from heddle.torch.optim.optimizer import TableOptimizer, refuse
from heddle.torch.optim.table import Rule

__all__ = ["Adam", "AdamW", "Lion", "SGD"]

_ADAM = Rule(kernels.adam, kernels.adam_scalars, ("exp_avg", "exp_avg_sq"), counts=True)
_AMSGRAD = Rule(kernels.amsgrad, kernels.adam_scalars, ("exp_avg", "exp_avg_sq", "max_exp_avg_sq"), counts=True)
_SGD = Rule(kernels.sgd, kernels.sgd_scalars)
_MOMENTUM = Rule(kernels.momentum, kernels.sgd_scalars, ("momentum_buffer",))
_LION = Rule(kernels.lion, kernels.lion_scalars, ("exp_avg",))


class _AdamRule(TableOptimizer):
    def _rule(self, group: Dict[str, Any]) -> Rule:
        return _AMSGRAD if group["amsgrad"] else _ADAM

    def _numbers(self, group: Dict[str, Any]) -> List[float]:
        decay, is_decoupled = float(group["weight_decay"]), group["decoupled_weight_decay"]
        of_betas = [one for beta in map(float, group["betas"]) for one in (beta, 1 - beta, math.log(beta) if beta > 0 else -math.inf)]
        return [*of_betas, group["eps"], decay if is_decoupled else 0.0, 0.0 if is_decoupled else decay, _sign(group)]


class Adam(_AdamRule, torch.optim.Adam):
    """torch.optim.Adam in one launch. `max_norm` clips the norm of all gradients."""

    def __init__(self, params: Any, lr: Any = 1e-3, betas: Tuple[Any, Any] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0,
                 amsgrad: bool = False, *, foreach: Optional[bool] = None, maximize: bool = False, capturable: bool = False,
                 differentiable: bool = False, fused: Optional[bool] = None, decoupled_weight_decay: bool = False,
                 max_norm: Optional[float] = None):
        torch.optim.Adam.__init__(self, params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize, capturable=capturable,
                                  differentiable=differentiable, fused=True, decoupled_weight_decay=decoupled_weight_decay)
        self._clip(max_norm)


class AdamW(_AdamRule, torch.optim.AdamW):
    """torch.optim.AdamW in one launch. `max_norm` clips the norm of all gradients."""

    def __init__(self, params: Any, lr: Any = 1e-3, betas: Tuple[Any, Any] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 1e-2,
                 amsgrad: bool = False, *, maximize: bool = False, foreach: Optional[bool] = None, capturable: bool = False,
                 differentiable: bool = False, fused: Optional[bool] = None, max_norm: Optional[float] = None):
        torch.optim.AdamW.__init__(self, params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize, capturable=capturable,
                                   differentiable=differentiable, fused=True)
        self._clip(max_norm)


class SGD(TableOptimizer, torch.optim.SGD):
    """torch.optim.SGD in one launch, without dampening. `max_norm` clips the norm of all gradients."""

    def __init__(self, params: Any, lr: Any = 1e-3, momentum: float = 0, dampening: float = 0, weight_decay: float = 0,
                 nesterov: bool = False, *, maximize: bool = False, foreach: Optional[bool] = None, differentiable: bool = False,
                 fused: Optional[bool] = None, max_norm: Optional[float] = None):
        torch.optim.SGD.__init__(self, params, lr, momentum, dampening, weight_decay, nesterov, maximize=maximize,
                                 differentiable=differentiable, fused=True)
        self._clip(max_norm)

    def _rule(self, group: Dict[str, Any]) -> Rule:
        if group["dampening"] != 0:
            refuse(f"dampening is {group['dampening']}", "Use 0, or torch.optim.SGD")
        return _MOMENTUM if group["momentum"] != 0 else _SGD

    def _numbers(self, group: Dict[str, Any]) -> List[float]:
        return [float(group["momentum"]), float(group["nesterov"]), float(group["weight_decay"]), _sign(group)]


class Lion(TableOptimizer):
    """Chen et al., "Symbolic discovery of optimization algorithms", 2023: the sign of an average, with decoupled weight decay.

    `max_norm` clips the norm of all gradients.
    """

    def __init__(self, params: Iterable[Any], lr: Any = 1e-4, betas: Tuple[float, float] = (0.9, 0.99), weight_decay: float = 0.0, *,
                 maximize: bool = False, max_norm: Optional[float] = None):
        if not lr >= 0 or not all(0 <= beta < 1 for beta in betas) or not weight_decay >= 0:
            refuse(f"lr is {lr}, betas are {betas}, weight_decay is {weight_decay}", "lr and weight_decay are at least 0, betas in [0, 1)")
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay, "maximize": maximize})
        self._clip(max_norm)

    def _rule(self, group: Dict[str, Any]) -> Rule:
        return _LION

    def _numbers(self, group: Dict[str, Any]) -> List[float]:
        first, second = group["betas"]
        return [first, 1 - first, second, 1 - second, float(group["weight_decay"]), _sign(group)]


def _sign(group: Dict[str, Any]) -> float:
    return -1.0 if group["maximize"] else 1.0
