"""Modules in the place of torch.nn.LSTM and torch.nn.GRU, which torch.compile traces without a break."""
from typing import Any, List, Optional, Tuple

import torch
import torch.nn.functional as F

from heddle._errors import make
from heddle.torch.recurrent import operators


class _Recurrent(torch.nn.Module):
    """Takes the attributes of a module of torch.nn, its parameters among them."""

    @classmethod
    def in_place_of(cls, module: torch.nn.RNNBase) -> "_Recurrent":
        made = cls.__new__(cls)
        made.__dict__.update(module.__dict__)
        for name in ("_flat_weights", "_flat_weight_refs"):  # which would not follow the parameters
            made.__dict__.pop(name, None)
        return made

    def flatten_parameters(self) -> None:
        """Does nothing: torch.nn.LSTM and torch.nn.GRU have it."""

    def extra_repr(self) -> str:
        words = {"num_layers": 1, "bias": True, "batch_first": False, "dropout": 0.0, "bidirectional": False}
        changed = [f"{word}={getattr(self, word)}" for word, default in words.items() if getattr(self, word) != default]
        return ", ".join([f"{self.input_size}, {self.hidden_size}", *changed])

    def _of_layer(self, name: str, layer: int) -> List[torch.Tensor]:
        """A parameter of each direction."""
        return [getattr(self, f"{name}_l{layer}{end}") for end in (("", "_reverse") if self.bidirectional else ("",))]

    def _stacked(self, name: str, layer: int, dtype: torch.dtype) -> Optional[torch.Tensor]:
        if not self.bias and name.startswith("bias"):
            return None
        return torch.stack(self._of_layer(name, layer)).to(dtype)

    def _run(self, x: Any, states: Optional[Tuple[torch.Tensor, ...]]) -> Tuple[torch.Tensor, List[torch.Tensor]]:
        """The outputs of the last layer, and the final states of all."""
        if isinstance(x, torch.nn.utils.rnn.PackedSequence):
            _refuse("packed sequences have no kernel", "Pass padded sequences, or leave this module out of heddle.torch.prepare()")
        is_batched = x.dim() == 3
        axis = 0 if self.batch_first else 1
        if not is_batched:
            x = x.unsqueeze(axis)
            states = None if states is None else tuple(one.unsqueeze(1) for one in states)
        directions = 2 if self.bidirectional else 1
        shape = (self.num_layers * directions, x.shape[axis], self.hidden_size)
        for one in states or ():
            if one.shape != shape:
                _refuse(f"a state has the shape {tuple(one.shape)}", f"It is {shape} for this module and input")
        finals: List[Tuple[torch.Tensor, ...]] = []
        for layer in range(self.num_layers):
            if layer > 0 and self.dropout > 0:
                x = F.dropout(x, self.dropout, self.training)
            begin = layer * directions
            of_layer = None if states is None else tuple(one[begin:begin + directions] for one in states)
            x, *last = self._layer(x, layer, of_layer)
            finals.append(tuple(last))
            x = x.flatten(2)
        results = [torch.cat(one) for one in zip(*finals)]
        if not is_batched:
            return x.squeeze(axis), [one.squeeze(1) for one in results]
        return x, results

    def _projected(self, x: torch.Tensor, layer: int, bias: Optional[torch.Tensor]) -> torch.Tensor:
        """The gates' products by the input, of all directions in one product."""
        gates = F.linear(x, torch.cat(self._of_layer("weight_ih", layer)), bias)
        return gates.unflatten(-1, (2 if self.bidirectional else 1, -1))

    def _states(self, gates: torch.Tensor, states: Optional[Tuple[torch.Tensor, ...]], count: int) -> Tuple[torch.Tensor, ...]:
        if states is not None:
            return tuple(one.to(gates.dtype) for one in states)
        return (gates.new_zeros((gates.shape[2], gates.shape[0 if self.batch_first else 1], self.hidden_size)),) * count


class LSTM(_Recurrent):
    def forward(self, input: Any, hx: Optional[Tuple[torch.Tensor, torch.Tensor]] = None) -> Any:
        y, (h, c) = self._run(input, hx)
        return y, (h, c)

    def _layer(self, x: torch.Tensor, layer: int, states: Optional[Tuple[torch.Tensor, ...]]) -> Tuple[torch.Tensor, ...]:
        bias = None
        if self.bias:
            bias = torch.cat(self._of_layer("bias_ih", layer)) + torch.cat(self._of_layer("bias_hh", layer))
        gates = self._projected(x, layer, bias)
        h0, c0 = self._states(gates, states, 2)
        return operators.lstm(gates, self._stacked("weight_hh", layer, gates.dtype), h0, c0, self.batch_first,
                              torch.is_grad_enabled())[:3]


class GRU(_Recurrent):
    def forward(self, input: Any, hx: Optional[torch.Tensor] = None) -> Any:
        y, (h,) = self._run(input, None if hx is None else (hx,))
        return y, h

    def _layer(self, x: torch.Tensor, layer: int, states: Optional[Tuple[torch.Tensor, ...]]) -> Tuple[torch.Tensor, ...]:
        gates = self._projected(x, layer, torch.cat(self._of_layer("bias_ih", layer)) if self.bias else None)
        h0, = self._states(gates, states, 1)
        weights, bias = (self._stacked(name, layer, gates.dtype) for name in ("weight_hh", "bias_hh"))
        return operators.gru(gates, weights, bias, h0, self.batch_first, torch.is_grad_enabled())[:2]


_REPLACED = {torch.nn.LSTM: LSTM, torch.nn.GRU: GRU}
_MOST_UNITS = 256  # a program reads the recurrent matrix in every step, and two parts of larger ones do not fit into shared memory


def prepare(module: torch.nn.Module) -> torch.nn.Module:
    replacements = {}
    for one in module.modules():
        cls = _REPLACED.get(type(one))
        if cls is not None and one.hidden_size <= _MOST_UNITS and not one.proj_size:
            replacements[one] = cls.in_place_of(one)
    for parent in list(module.modules()):
        for name, child in parent._modules.items():
            if child in replacements:
                parent._modules[name] = replacements[child]
    return replacements.get(module, module)


def _refuse(why: str, remedy: str) -> None:
    where = "input of a module of heddle.torch.prepare()"
    raise make(202, where, why, remedy, f"{where}: {why}. {remedy}")
