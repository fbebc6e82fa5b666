"""Parameters and buffers whose values become constants of compiled parts: folded into each other, and packed as kernels read them."""
import contextlib
import math
import weakref
from collections import OrderedDict
from typing import Any, Callable, Collection, Dict, List, Mapping, NamedTuple, Sequence, Set, Tuple

import torch
from torch.fx import Node

from heddle import _core
from heddle.torch.part import TENSORS
from heddle.torch.partition import Division, Part
from heddle.torch.shapes import is_dense

MOST_SHAPES = 64  # sets of extents whose plans a graph keeps
Key = Tuple[int, ...]  # the extents of a call
_MOST_PATIENCE = 32
_SMALL = 1 << 16
_FEW_ROWS, _SHORT = 32, 8 << 20  # of a product whose launch takes as long as reading its matrix: rows, bytes of the matrix
_FEW_PRODUCTS = 4  # fewer short ones, such as the pair of a gated product, are not worth copies
_CONVOLUTION = torch.ops.aten.convolution.default
_PRODUCTS = (torch.ops.aten.mm.default, torch.ops.aten.addmm.default)
_TRANSPOSES = (torch.ops.aten.t.default, torch.ops.aten.permute.default, torch.ops.aten.transpose.int)
_RESHAPES = (torch.ops.aten.view.default, torch.ops.aten._unsafe_view.default, torch.ops.aten.reshape.default)


class Packed(NamedTuple):
    """Programs with certain weights as constants."""

    versions: Any  # of the weights
    programs: "OrderedDict[Key, Any]"  # by extents; the last used is the last one


class Weights:
    """The weights of a graph, and the programs that have them as constants.

    The first call makes such a program. When the weights change, calls run with weights as arguments until they have been
    the same for a while. That while doubles with each change: a program that changes its weights between few calls makes no
    constants of them. Programs for several extents share what is packed (CompileOptions::constants).
    """

    def __init__(self, candidates: Sequence[Node], slots: Mapping[Node, int], division: Division, device: torch.device,
                 are_fixed: bool):
        read = {node: part for part in division.steps if isinstance(part, Part) for node in part.inputs}
        written = {node.args[0] for node in division.writes}
        kept = [node for node in candidates if node in read and node not in written]
        joined = set().union(*(side_by_side(step, kept) for step in division.steps if isinstance(step, Part)))
        self._nodes = [node for node in kept if node in joined or _gains(node, read[node], device)]
        self._slots = [slots[node] for node in self._nodes]
        self._are_fixed = are_fixed
        self._last = self._versions()
        self._calls, self._patience = 0, 0
        self._owners: List[Any] = []  # weak references to the weights that are packed
        self.packed = Packed(self._versions(), OrderedDict())

    def __bool__(self) -> bool:
        return bool(self._nodes)

    def find(self, key: Key, arguments: Sequence[Any]) -> Any:
        """The program for these extents and weights; None if there is none."""
        packed = self.packed  # another thread may replace it
        program = packed.programs.get(key)
        if program is None or not (self._are_fixed or packed.versions.are_same(arguments)):
            return None
        if len(packed.programs) > 1:
            with contextlib.suppress(KeyError):  # another thread needed its place
                packed.programs.move_to_end(key)
        return program

    def pack(self, key: Key, arguments: Sequence[Any], program_of: Callable[[Dict[Node, torch.Tensor]], Any]) -> Any:
        """The program with the weights of `arguments` as constants. Those with other weights end. None if it is too early for that."""
        if not (self.packed.programs and self.packed.versions.are_same(arguments)):
            if not self._are_settled(arguments):
                return None
            self._owners, self.packed = [], Packed(self._versions(), OrderedDict())  # first, so that there are no two copies
            self.packed.versions.take(arguments)
        packed = self.packed
        program = program_of({node: arguments[i] for node, i in zip(self._nodes, self._slots)})
        if len(packed.programs) >= MOST_SHAPES:
            packed.programs.popitem(last=False)
        packed.programs[key] = program
        self._owners = [weakref.ref(arguments[i], self._drop) for i in self._slots]
        return program

    def _drop(self, _owner: Any) -> None:
        """Packed weights end with the module's."""
        self.packed = Packed(self._versions(), OrderedDict())

    def _versions(self) -> Any:
        return _core.Versions(TENSORS, self._slots, [_bytes_on_host(node) for node in self._nodes])

    def _are_settled(self, arguments: Sequence[Any]) -> bool:
        """Whether constants are to be made of weights that differ from those of the programs."""
        self._calls = self._calls + 1 if self._last.are_same(arguments) else 0
        if not self._last.take(arguments):  # PyTorch does not count changes of tensors that inference_mode() made
            return False
        if self._calls < self._patience:
            return False
        self._patience = min(2 * max(self._patience, 1), _MOST_PATIENCE)
        return True


def _bytes_on_host(node: Node) -> int:
    """Of memory without gaps; 0 for tensors elsewhere."""
    value = node.meta["val"]
    if value.device.type != "cpu" or not all(isinstance(one, int) for one in (*value.shape, *value.stride())):
        return 0
    return value.nbytes if is_dense(value.stride(), value.shape) else 0


def _gains(node: Node, part: Part, device: torch.device) -> bool:
    """Whether kernels get better by the weight as a constant.

    Numbers alone would be literals of kernels, which another value would compile again. A GPU reads matrices as they lie, and
    a constant of theirs would be a second copy: only those of `side_by_side` are worth it.
    """
    shape = node.meta["val"].shape
    elements = math.prod(int(extent) for extent in shape)
    if elements <= 1:
        return False
    if device.type == "cpu":
        return True
    return any(one.target is _CONVOLUTION for one in part.nodes) and (len(shape) > 2 or elements <= _SMALL)


def side_by_side(part: Part, weights: Collection[Node]) -> Set[Node]:
    """Matrices, and the biases of their products, of which the compiler makes one product if they are constants: they have the
    same left operand, and the columns of each result are divided into heads (queries, keys and values of an attention), or
    the products are short (what the blocks of a network make of one condition)."""
    joined: Dict[Node, List[Set[Node]]] = {}
    short: Dict[Node, List[Set[Node]]] = {}
    first = _first_of_equals(part.nodes)
    for node in part.nodes:
        if node.target not in _PRODUCTS:
            continue
        *bias, left, right = node.args[:3]
        own = {_unturned(one) for one in (*bias, right)}  # type: ignore[arg-type]
        source = _unfolded(left)  # type: ignore[arg-type]
        if own <= set(weights) and (_has_heads(node) or _is_short(left, right)):  # type: ignore[arg-type]
            (joined if _has_heads(node) else short).setdefault(first.get(source, source), []).append(own)
    groups = [*(one for one in joined.values() if len(one) > 1), *(one for one in short.values() if len(one) >= _FEW_PRODUCTS)]
    return {node for found in groups for own in found for node in own}


def _first_of_equals(nodes: Sequence[Node]) -> Dict[Node, Node]:
    """For each node the first one that computes the same."""
    first: Dict[Node, Node] = {}
    met: Dict[str, Node] = {}
    for node in nodes:
        given = torch.fx.node.map_arg((node.args, node.kwargs), lambda one: first.get(one, one))
        first[node] = met.setdefault(f"{node.target} {given}", node)
    return first


def _is_short(left: Node, right: Node) -> bool:
    rows, matrix = left.meta["val"].shape[0], right.meta["val"]
    return isinstance(rows, int) and rows <= _FEW_ROWS and matrix.numel() * matrix.element_size() <= _SHORT


def _unturned(node: Node) -> Node:
    """The matrix that a node is the transposed one of, or the node."""
    return node.args[0] if node.target in _TRANSPOSES else node  # type: ignore[return-value]


def _unfolded(node: Node) -> Node:
    """What a matrix of rows is a view of."""
    while node.target in _RESHAPES and not _divides(node):
        node = node.args[0]  # type: ignore[assignment]
    return node


def _has_heads(node: Node) -> bool:
    """Whether all that reads a matrix divides its columns, or takes them as those of one head."""
    return bool(node.users) and all(
        reader.target in _RESHAPES and (_divides(reader) or _has_heads(reader)) or reader.target in _TRANSPOSES and reader.meta["val"].dim() > 3
        for reader in node.users)


def _divides(reshape: Node) -> bool:
    """Whether a reshape has other columns than its operand."""
    before, after = reshape.args[0].meta["val"].shape[-1], reshape.meta["val"].shape[-1]  # type: ignore[union-attr]
    return not (isinstance(before, int) and isinstance(after, int) and before == after)
