"""Steps of optimisers in one launch over all tensors."""
from typing import Any, Dict, List, Optional, Sequence, Tuple

import torch

from heddle import _core
from heddle._errors import make
from heddle.torch.optim.table import TYPES, Entry, Kind, Norm, Rule, Table, refuse_capture
from heddle.torch.part import TENSORS
from heddle.torch.shapes import is_dense


class TableOptimizer(torch.optim.Optimizer):
    """Beside a class of torch.optim: its constructor and states, with step() in one launch for the tensors of each type.

    `grad_norm` is the norm of all gradients in the last step, before clipping, on their device; None without `max_norm`.
    """

    _step_supports_amp_scaling = True  # torch.amp.GradScaler then leaves unscaling and skipping to step()
    max_norm: Optional[float] = None
    grad_norm: Optional[torch.Tensor] = None
    _addresses: Any = None

    def _rule(self, group: Dict[str, Any]) -> Rule:
        raise NotImplementedError

    def _numbers(self, group: Dict[str, Any]) -> List[float]:
        """What the rule's scalars are computed from, beside the learning rate."""
        raise NotImplementedError

    def _clip(self, max_norm: Optional[float]) -> None:
        if max_norm is not None and not max_norm > 0:
            refuse(f"max_norm is {max_norm}, and norms are positive", "Give a positive number, or None for no clipping")
        self.max_norm = max_norm

    @torch.compiler.disable
    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:  # type: ignore[override]
        """Updates all parameters that have a gradient. `closure`, if given, computes the loss anew, which is returned."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self._find_tensors()
        if not self._tables:
            return loss
        self._find_numbers()
        for table in self._tables:
            table.prepare()
        scale, skip = getattr(self, "grad_scale", None), getattr(self, "found_inf", None)
        norm = None
        if self.max_norm is not None:
            self._norm = self._norm or self._norm_of_tables()
            norm = self._norm.compute(_on(scale, self._norm.value.device))
        for table in self._tables:
            device = table.kind.device
            table.update(_on(scale, device), _on(skip, device), norm, self.max_norm or 0.0)
        self.grad_norm = norm
        torch.autograd.graph.increment_version(self._updated)
        return loss

    # -- where tensors are

    def _find_tensors(self) -> None:
        """Brings the tables up to date with parameters and gradients."""
        if self._addresses is None or self._seen_state is not self.state:
            self._list_parameters()
        gradients = [one.grad for one in self._parameters]
        local = [None if one is None else _local(one) for one in gradients] if not self._are_local else gradients
        try:
            addresses = self._addresses.changed(self._locals + local)
        except (BufferError, RuntimeError):
            if any(one is not None and one.layout is not torch.strided for one in local):
                refuse("a gradient is sparse", "Use torch.optim.SparseAdam for that parameter, or an Embedding with sparse=False")
            raise
        if addresses is None:
            return
        count = len(self._locals)
        parameters, addresses = addresses[:count], addresses[count:]
        if _OTHER_LAYOUT in addresses:
            addresses = [self._copied(i, local[i]) if address == _OTHER_LAYOUT else address for i, address in enumerate(addresses)]
        kept = parameters, [address and one.dtype for one, address in zip(local, addresses)]
        if kept != self._kept:
            self._build(local)
            self._kept = kept
        for table, places in zip(self._tables, self._places):
            table.set_gradients([addresses[i] for i in places])

    def _list_parameters(self) -> None:
        self._groups = [i for i, group in enumerate(self.param_groups) for _ in group["params"]]
        self._parameters = [one for group in self.param_groups for one in group["params"]]
        self._locals = [_local(one) for one in self._parameters]
        self._are_local = all(one is other for one, other in zip(self._parameters, self._locals))
        layouts = [(tuple(one.shape), one.stride()) for one in self._locals]
        self._addresses = _core.Addresses(TENSORS, layouts * 2)
        self._seen_state, self._kept, self._copies = self.state, None, {}
        self._tables: List[Table] = []

    def _copied(self, i: int, gradient: torch.Tensor) -> int:
        """The address of the gradient in the layout of its parameter."""
        copy = self._copies.get(i)
        if copy is None or copy.dtype != gradient.dtype:
            copy = self._copies[i] = torch.empty_like(self._locals[i], dtype=gradient.dtype)
        return copy.copy_(gradient).data_ptr()

    def _build(self, gradients: Sequence[Optional[torch.Tensor]]) -> None:
        if torch.cuda.is_available() and torch.cuda.is_current_stream_capturing():
            refuse_capture()
        rules = [self._rule(group) for group in self.param_groups]
        kinds: Dict[Kind, List[int]] = {}
        for i, (parameter, gradient) in enumerate(zip(self._locals, gradients)):
            if gradient is None:
                continue
            _check(parameter, gradient)
            if parameter.numel() == 0:
                self._entry(i, rules[self._groups[i]])  # a checkpoint has states for it, too
                continue
            kind = Kind(parameter.device, parameter.dtype, gradient.dtype, rules[self._groups[i]])
            kinds.setdefault(kind, []).append(i)
        groups, width = len(rules), 1 + len(self._numbers(self.param_groups[0]))
        self._tables = [Table(kind, [self._entry(i, kind.rule) for i in places], groups, width) for kind, places in kinds.items()]
        self._seen_numbers = None
        self._places = list(kinds.values())
        self._updated = [self._parameters[i] for places in self._places for i in places]
        self._norm: Optional[Norm] = None

    def _norm_of_tables(self) -> Norm:
        if not self._are_local:
            refuse("max_norm of parameters that are shards", "Call torch.nn.utils.clip_grad_norm_() before step()")
        if len({table.kind.device for table in self._tables}) > 1:
            refuse("max_norm of parameters on several devices", "Call torch.nn.utils.clip_grad_norm_() before step()")
        return Norm(self._tables)

    def _entry(self, i: int, rule: Rule) -> Entry:
        """The states of a parameter: made, or as they were loaded, in float32 and in the layout of the parameter."""
        parameter, own = self._parameters[i], self._locals[i]
        state = self.state[parameter] if rule.counts or rule.states else {}
        for name in rule.states:
            value = state.get(name)
            if value is None:
                value = torch.zeros_like(parameter, dtype=torch.float32)
            elif value.dtype != torch.float32 or value.device != parameter.device or _local(value).stride() != own.stride():
                value = torch.empty_like(parameter, dtype=torch.float32).copy_(value)
            state[name] = value
        if rule.counts:
            step = torch.as_tensor(state.get("step", 0.0))
            state["step"] = step.to(own.device, torch.float32).clone() if step.data_ptr() % 4 else step.to(own.device, torch.float32)
        return Entry(own, state.get("step") if rule.counts else None, tuple(_local(state[name]) for name in rule.states), self._groups[i])

    # -- numbers

    def _find_numbers(self) -> None:
        numbers, rates = [], []
        for group in self.param_groups:
            rate, address = group["lr"], 0
            if isinstance(rate, torch.Tensor) and rate.device.type != "cpu":
                if rate.dtype != torch.float32:
                    refuse(f"lr is a tensor of {rate.dtype}", "Make it one of torch.float32, or a number")
                rate, address = 0.0, rate.data_ptr()
            numbers.append([float(rate), *self._numbers(group)])
            rates.append(address)
        if (numbers, rates) != self._seen_numbers:
            for table in self._tables:
                table.set_numbers(numbers, rates)
            self._seen_numbers = numbers, rates

    # -- what else changes tensors

    def add_param_group(self, param_group: Dict[str, Any]) -> None:
        super().add_param_group(param_group)
        self._addresses = None

    def __getstate__(self) -> Dict[str, Any]:
        return {**super().__getstate__(), "max_norm": self.max_norm}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        super().__setstate__(state)
        self._addresses = None

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:  # type: ignore[override]
        """Loads states of this class, or of that of torch.optim which has its name."""
        super().load_state_dict(state_dict)
        saved = [index for group in state_dict["param_groups"] for index in group["params"]]
        for index, parameter in zip(saved, (one for group in self.param_groups for one in group["params"])):
            if parameter.dtype != torch.float32:  # PyTorch has rounded its states to that type
                for name, value in state_dict["state"].get(index, {}).items():
                    if torch.is_tensor(value) and value.dtype == torch.float32:
                        self.state[parameter][name] = value.to(parameter.device, copy=True)


_OTHER_LAYOUT = -1  # in the place of an address; that of no gradient, or of none with elements, is 0


def refuse(why: str, remedy: str) -> Any:
    where = "heddle.torch.optim"
    raise make(201, where, why, remedy, f"{where}: {why}. {remedy}")


def _check(parameter: torch.Tensor, gradient: torch.Tensor) -> None:
    if parameter.dtype not in TYPES or gradient.dtype not in TYPES:
        refuse(f"a parameter is of {parameter.dtype}, its gradient of {gradient.dtype}", "Use float32, bfloat16 or float16")
    if not is_dense(parameter.stride(), parameter.shape):
        refuse(f"a parameter has extents {tuple(parameter.shape)} and strides {parameter.stride()}, with gaps",
               "Give parameters whose memory is dense")
    if gradient.device != parameter.device:
        refuse(f"a parameter is on {parameter.device}, its gradient on {gradient.device}", "Move both to one device")


def _local(tensor: torch.Tensor) -> torch.Tensor:
    """The memory of this process, if the tensor is one of torch.distributed."""
    return getattr(tensor, "_local_tensor", tensor)


def _on(tensor: Optional[torch.Tensor], device: torch.device) -> Optional[torch.Tensor]:
    return tensor if tensor is None or tensor.device == device else tensor.to(device)
