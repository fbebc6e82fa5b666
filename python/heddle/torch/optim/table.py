"""Tensors of a model as rows of addresses on their device, and launches of kernels over them."""
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

import torch

import heddle.tile.language as tl
from heddle._errors import make
from heddle.torch.optim.kernels import ROW, Column, norm_kernel, update_kernel

TYPES = {torch.float32: tl.float32, torch.float16: tl.float16, torch.bfloat16: tl.bfloat16}
_ALIGNMENT = 16


class Rule(NamedTuple):
    """The arithmetic of an optimiser: kernel functions for one block and for the scalars of a tensor, the names of the states, and
    whether it counts the steps of each tensor."""

    function: Any
    scalars: Any
    states: Tuple[str, ...] = ()
    counts: bool = False


class Kind(NamedTuple):
    """What the tensors of one launch have in common."""

    device: torch.device
    parameter: torch.dtype
    gradient: torch.dtype
    rule: Rule


class Entry(NamedTuple):
    """A tensor in a table. Its gradient and states have the strides of the parameter."""

    parameter: torch.Tensor
    step: Optional[torch.Tensor]
    states: Tuple[torch.Tensor, ...]
    group: int


class Table:
    """Tensors of one kind. Addresses and numbers are collected on the host, and copied to the device if they changed."""

    def __init__(self, kind: Kind, entries: Sequence[Entry], groups: int, width: int):
        """`width` is how many numbers each of the groups has."""
        self.kind, self.entries = kind, list(entries)
        self._block, self._chunk, self._warps = (2048, 8192, 8) if kind.device.type == "cuda" else (256, 32768, 1)
        counts = torch.tensor([-(-entry.parameter.numel() // self._chunk) for entry in entries])
        tensors = torch.arange(len(counts)).repeat_interleave(counts)
        chunks = torch.arange(len(tensors)) - (counts.cumsum(0) - counts)[tensors]
        self.programs = len(tensors)
        self._chunks = ((tensors << 32) + chunks).to(kind.device)
        self._count = torch.zeros(1, dtype=torch.int32, device=kind.device)
        size, width = len(counts) * ROW, (width + 1) // 2  # two numbers are a word
        self._host = torch.zeros(size + groups * width, dtype=torch.int64)
        self._rows = self._host[:size].view(-1, ROW)
        self._numbers = self._host[size:].view(torch.float32).view(groups, -1)
        self._rows.copy_(torch.tensor([_row(entry, size + entry.group * width) for entry in entries]))
        self._fixed_are_aligned = _are_aligned(one.data_ptr() for entry in entries for one in (entry.parameter, *entry.states))
        self._words: Optional[torch.Tensor] = None
        self._current = self._host
        self._reserve: Optional[torch.Tensor] = None
        self._captured: List[Tuple[torch.Tensor, torch.Tensor]] = []

    def set_gradients(self, addresses: Sequence[int]) -> None:
        self._alignment = _ALIGNMENT if self._fixed_are_aligned and _are_aligned(addresses) else 1
        self._rows[:, Column.GRADIENT] = torch.tensor(addresses)
        self._words = None

    def set_numbers(self, numbers: Sequence[Sequence[float]], rates: Sequence[int]) -> None:
        """The numbers of each group, and the address of its learning rate, or 0 if that is the first number."""
        self._numbers[:, :len(numbers[0])] = torch.tensor(numbers, dtype=torch.float32)
        self._rows[:, Column.LEARNING_RATE] = torch.tensor([rates[entry.group] for entry in self.entries])
        self._words = None

    def prepare(self) -> None:
        """Brings the table to the device, once for all launches of a step."""
        self._current = self._on_device()

    def _on_device(self) -> torch.Tensor:
        if self.kind.device.type != "cuda":
            return self._host
        if torch.cuda.is_current_stream_capturing():
            return self._in_capture()
        if self._words is None:
            self._words = self._host.pin_memory().to(self.kind.device, non_blocking=True)
        if self._reserve is None:
            self._reserve = torch.empty_like(self._host, pin_memory=True)
        return self._words

    def _in_capture(self) -> torch.Tensor:
        """Each replay repeats the copy, whose two sides the graph therefore keeps. A capture must not allocate pinned memory."""
        if self._reserve is None:
            refuse_capture()
        self._captured.append((self._reserve, self._reserve.copy_(self._host).to(self.kind.device, non_blocking=True)))
        self._reserve = None
        return self._captured[-1][1]

    def add_squares(self, norm: "Norm", first: int, scale: Optional[torch.Tensor]) -> None:
        norm_kernel[(self.programs,)](self._current, self._chunks, norm.partials, first, len(norm.partials), norm.count, norm.value, scale,
                                      GRADIENT=TYPES[self.kind.gradient], CHUNK=self._chunk, BLOCK=self._block,
                                      ALIGNMENT=self._alignment, num_warps=self._warps)

    def update(self, scale: Optional[torch.Tensor], skip: Optional[torch.Tensor], norm: Optional[torch.Tensor], max_norm: float) -> None:
        rule = self.kind.rule
        update_kernel[(self.programs,)](self._current, self._chunks, len(self.entries), self.programs, self._count, scale, skip, norm,
                                        max_norm, SCALARS=rule.scalars, RULE=rule.function, STATES=len(rule.states), COUNTS=rule.counts,
                                        PARAMETER=TYPES[self.kind.parameter], GRADIENT=TYPES[self.kind.gradient], CHUNK=self._chunk,
                                        BLOCK=self._block, ALIGNMENT=self._alignment, num_warps=self._warps)


class Norm:
    """The norm of the gradients of several tables on one device."""

    def __init__(self, tables: Sequence[Table]):
        device = tables[0].kind.device
        self._tables = tables
        self.partials = torch.empty(sum(table.programs for table in tables), device=device)
        self.count = torch.zeros(1, dtype=torch.int32, device=device)
        self.value = torch.zeros((), device=device)

    def compute(self, scale: Optional[torch.Tensor]) -> torch.Tensor:
        first = 0
        for table in self._tables:
            table.add_squares(self, first, scale)
            first += table.programs
        return self.value


def refuse_capture() -> Any:
    where, why = "step() in a CUDA graph", "the table of tensors on the device must exist before the capture"
    remedy = "Call step() with the same parameters outside of the capture first, before each capture"
    raise make(201, where, why, remedy, f"{where}: {why}. {remedy}")


def _are_aligned(addresses: Any) -> bool:
    return all(address % _ALIGNMENT == 0 for address in addresses)


def _row(entry: Entry, numbers: int) -> List[int]:
    row = [0] * ROW
    row[Column.PARAMETER], row[Column.STEP] = entry.parameter.data_ptr(), 0 if entry.step is None else entry.step.data_ptr()
    row[Column.NUMBERS], row[Column.SIZE] = numbers, entry.parameter.numel()
    row[Column.STATES:Column.STATES + len(entry.states)] = [state.data_ptr() for state in entry.states]
    return row
