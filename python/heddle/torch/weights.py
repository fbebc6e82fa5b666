"""Parameters and buffers whose values become constants of compiled parts: folded into each other, and packed as kernels read them."""
import math
import weakref
from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple

import torch
from torch.fx import Node

from heddle import _core
from heddle.torch.partition import Division, Part

_MOST_PATIENCE = 32
_SMALL = 1 << 16
_CONVOLUTION = torch.ops.aten.convolution.default


class Weights:
    """The weights of a graph, and the program that has them as constants.

    That program is made at the first call. When the weights change, calls run with weights as arguments until they have been
    the same for a while. That while doubles with each change: a program that changes its weights between few calls makes no
    constants of them.
    """

    def __init__(self, candidates: Sequence[Node], slots: Mapping[Node, int], division: Division, device: torch.device,
                 are_fixed: bool):
        read = {node: part for part in division.steps if isinstance(part, Part) for node in part.inputs}
        written = {node.args[0] for node in division.writes}
        self._nodes = [node for node in candidates if node in read and node not in written and _gains(node, read[node], device)]
        self._slots = [slots[node] for node in self._nodes]
        self.are_fixed = are_fixed
        self._last = self.versions()
        self._calls, self._patience = 0, 0
        self._owners: List[Any] = []  # weak references to the weights that are packed
        self.packed: Tuple[Any, Any] = (None, self.versions())  # the program, and the weights that it has

    def __bool__(self) -> bool:
        return bool(self._nodes)

    def pack(self, arguments: Sequence[Any], program_of: Callable[[Dict[Node, torch.Tensor]], Any]) -> Any:
        """The program with the weights of `arguments` as constants, in place of the one that there was."""
        self._owners, self.packed = [], (None, self.versions())  # first, so that there are no two copies
        versions = self.versions()
        versions.take(arguments)
        program = program_of({node: arguments[i] for node, i in zip(self._nodes, self._slots)})
        self.packed = (program, versions)
        self._owners = [weakref.ref(arguments[i], self._drop) for i in self._slots]
        return program

    def _drop(self, _owner: Any) -> None:
        """Packed weights end with the module's."""
        self.packed = (None, self.versions())

    def versions(self) -> Any:
        return _core.Versions(torch.Tensor, self._slots)

    def are_settled(self, arguments: Sequence[Any]) -> bool:
        """Whether constants are to be made of weights that differ from those of the program."""
        self._calls = self._calls + 1 if self._last.are_same(arguments) else 0
        if not self._last.take(arguments):  # PyTorch does not count changes of tensors that inference_mode() made
            return False
        if self._calls < self._patience:
            return False
        self._patience = min(2 * max(self._patience, 1), _MOST_PATIENCE)
        return True


def _gains(node: Node, part: Part, device: torch.device) -> bool:
    """Whether kernels get better by the weight as a constant.

    Numbers alone would be literals of kernels, which another value would compile again. A GPU reads matrices as they lie, and
    a constant of theirs would be a second copy.
    """
    shape = node.meta["val"].shape
    elements = math.prod(int(extent) for extent in shape)
    if elements <= 1:
        return False
    if device.type == "cpu":
        return True
    return any(one.target is _CONVOLUTION for one in part.nodes) and (len(shape) > 2 or elements <= _SMALL)
