"""Compiles a part of a graph."""
import os
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

import torch
from torch.fx import Node

from heddle import _core
from heddle._model import Model
from heddle._tools import tune
from heddle._hir import Value, Writer
from heddle.torch.lowering import TABLE, Context, Unsupported, dtype_name
from heddle.torch.partition import Part, is_item, is_tensor, used_results
from heddle.torch.shapes import Environment, concrete, dense_strides, inverse, is_dense, memory_order, restrided

with torch._subclasses.fake_tensor.unset_fake_temporarily():
    TENSORS = _core.TorchTensors(torch.Tensor)

# PyTorch's own compiled code allocates with these; they cost less than torch.empty_strided. On a GPU: on the current one.
_EMPTY = {device: getattr(torch._C._dynamo.guards, f"_empty_strided_{device}", None) for device in ("cpu", "cuda")}
_PLACEMENT = {"device", "layout", "pin_memory", "memory_format"}  # which the result's type tells


def line_of(node: Node) -> str:
    """"model.py:17", the innermost line of the user's program that made the node; "" where it is not known."""
    for line in reversed((node.meta.get("stack_trace") or "").splitlines()):
        if line.lstrip().startswith('File "'):
            path, _, rest = line.strip()[6:].partition('", line ')
            return f"{os.path.basename(path)}:{rest.partition(',')[0]}"
    return ""


def _name_of(node: Node) -> str:
    """"tanh" for aten.tanh.default."""
    packet = getattr(node.target, "overloadpacket", node.target)
    return str(getattr(packet, "__name__", packet))


def _results(node: Node, symbols: Environment) -> List[Optional[Tuple[str, Tuple[int, ...]]]]:
    value = node.meta["val"]
    listed = [value] if isinstance(value, torch.Tensor) else list(value)
    return [(dtype_name(one.dtype), _shape(one, symbols)) if isinstance(one, torch.Tensor) else None for one in listed]


def _shape(value: torch.Tensor, symbols: Environment) -> Tuple[int, ...]:
    return tuple(concrete(extent, symbols) for extent in value.shape)


def _strides(value: torch.Tensor, symbols: Environment) -> Tuple[int, ...]:
    return tuple(concrete(stride, symbols) for stride in value.stride())


def number_of(node: Node, symbols: Environment) -> Any:
    return concrete(node.meta["val"], symbols)


def arguments_of(node: Node, of_node: Callable[[Node], Any]) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
    take = torch.fx.node.map_arg
    return take(node.args, of_node), take(node.kwargs, of_node)


def lower_node(node: Node, context: Context, of_node: Callable[[Node], Any]) -> List[Optional[Value]]:
    """Emits one node. Raises Unsupported."""
    arguments, words = arguments_of(node, of_node)
    words = {name: value for name, value in words.items() if name not in _PLACEMENT}
    made = TABLE[node.target](context, *arguments, **words)
    listed = [made] if isinstance(made, Value) else list(made)
    for one, expected in zip(listed, context.results):
        if one is not None and expected is not None and (one.dtype, one.shape) != expected:
            raise AssertionError(f"{node.target} was lowered to {one.dtype}{list(one.shape)}, not {expected[0]}{list(expected[1])}")
    return listed


def why_not(node: Node, symbols: Environment, device: torch.device) -> str:
    """Why a node cannot be compiled for a device, found by lowering it alone; "" if it can."""
    if node.target not in TABLE:
        return "no kernel of Heddle's computes it"
    if any(one != device for one in devices_of([node, *node.all_input_nodes])):
        return f"it has tensors elsewhere than on {device}"
    writer = Writer()

    def of_node(one: Node) -> Any:
        if not is_tensor(one):
            return number_of(one, symbols)
        value = one.meta["val"]
        return writer.parameter(dtype_name(value.dtype), _shape(value, symbols))
    try:
        lower_node(node, Context(writer, _results(node, symbols), used_results(node)), of_node)
    except Unsupported as reason:
        return str(reason)
    return ""


class Layout(NamedTuple):
    """A tensor and its memory, which is dense in the order `order` of its dimensions."""

    shape: Tuple[int, ...]
    strides: Tuple[int, ...]
    order: List[int]
    is_plain: bool  # in order, and dense

    @staticmethod
    def of(value: torch.Tensor, symbols: Environment) -> "Layout":
        shape, strides = _shape(value, symbols), _strides(value, symbols)
        order = memory_order(strides, shape)
        return Layout(shape, strides, order, order == list(range(len(shape))) and is_dense(strides, shape))

    @staticmethod
    def plain(value: torch.Tensor, symbols: Environment) -> "Layout":
        """That of the same tensor in row-major memory."""
        shape = _shape(value, symbols)
        order = list(range(len(shape)))
        return Layout(shape, dense_strides(shape, order), order, True)

    @property
    def in_memory(self) -> Tuple[int, ...]:
        return tuple(self.shape[d] for d in self.order)


def lower_part(part: Part, symbols: Environment, layout_of: Callable[[torch.Tensor, Environment], Layout] = Layout.of,
               names: Tuple[Sequence[str], Sequence[str]] = ((), ())) -> Tuple[str, List[Layout], List[Layout]]:
    """The textual IR of a part for these extents, and how its inputs and outputs lie in memory.

    `names`: of inputs and outputs; by default p0, p1, ... and y0, y1, ...
    """
    writer = Writer()
    layouts = Context(writer, [])
    values: Dict[Node, List[Optional[Value]]] = {}
    inputs, outputs, results = [], [], []
    for i, node in enumerate(part.inputs):
        layout = layout_of(node.meta["val"], symbols)
        inputs.append(layout)
        name = names[0][i] if names[0] else f"p{i}"
        parameter = writer.parameter(dtype_name(node.meta["val"].dtype), layout.in_memory, name)
        values[node] = [layouts.transpose(parameter, inverse(layout.order))]

    def of_node(one: Node) -> Any:
        return values[one][0] if is_tensor(one) else number_of(one, symbols)
    for node in part.nodes:
        if is_item(node):
            values[node] = [values[node.args[0]][node.args[1]]]  # type: ignore[index]
            continue
        line = line_of(node)
        writer.origin = f"{line}:{_name_of(node)}" if line else None
        values[node] = lower_node(node, Context(writer, _results(node, symbols), used_results(node)), of_node)
    writer.origin = None
    for node in part.outputs:
        layout = layout_of(node.meta["val"], symbols)
        outputs.append(layout)
        value = values[node][0]
        assert value is not None
        results.append(layouts.transpose(value, layout.order))
    return writer.text(results, names[1] or [f"y{i}" for i in range(len(results))]), inputs, outputs


def _allocation(layout: Layout, dtype: torch.dtype) -> Tuple[Any, ...]:
    """An output's shape, strides and dtype in memory, and the function that gives it the promised strides, if it needs one."""
    if is_dense(layout.strides, layout.shape):
        return (layout.shape, layout.strides, dtype), None
    return (layout.shape, dense_strides(layout.shape, layout.order), dtype), lambda tensor: restrided(tensor, layout.strides)


class CompiledPart:
    """A part for certain extents. Called with its inputs, it returns its outputs with the strides that were promised."""

    def __init__(self, part: Part, symbols: Environment, device: torch.device, options: Optional[Dict[str, Any]],
                 constants: Optional[Dict[Node, torch.Tensor]] = None):
        """`options`: of heddle.compile(), and `tunes`: whether to tune first.

        `constants`: inputs that it has the values of, and that calls leave out. They need options.
        """
        text, inputs, self._outputs = lower_part(part, symbols)
        constants = constants or {}
        self._inputs = [layout for node, layout in zip(part.inputs, inputs) if node not in constants]
        self._dtypes = [node.meta["val"].dtype for node in part.outputs]
        self._device = device
        self._text = text
        self._alignment = 1 if device.type == "cpu" else 16
        if constants and options is not None:
            options = {**options, "constants": {f"p{i}": self._in_memory(constants[node].detach(), layout).cpu()
                                                for i, (node, layout) in enumerate(zip(part.inputs, inputs)) if node in constants}}
        # Without options for the compiler the reference evaluator runs it.
        self.model = None if options is None else _model(text.encode(), dict(options))

    def add_to(self, program: Any, inputs: Sequence[int], outputs: Sequence[int], ended: Sequence[int] = ()) -> None:
        """Makes it the next step of a _core.Program, on values at these positions; `ended`: those that nothing reads after it."""
        if self.model is None:
            program.add_call(lambda values: self._evaluate(values, inputs, outputs), ended)
            return
        wanted = [(slot, layout.shape, dense_strides(layout.shape, layout.order)) for slot, layout in zip(inputs, self._inputs)]
        made = [(slot, *_allocation(layout, dtype)) for slot, layout, dtype in zip(outputs, self._outputs, self._dtypes)]
        program.add_part(self.model._core, wanted, made, _EMPTY.get(self._device.type), self._empty,
                         lambda tensor, i: self._in_memory(tensor, self._inputs[i]), ended)

    def __call__(self, tensors: Sequence[torch.Tensor]) -> List[torch.Tensor]:
        places = range(len(tensors), len(tensors) + len(self._outputs))
        program = _core.Program(TENSORS, [None] * len(places), places, [None] * len(places))
        self.add_to(program, range(len(tensors)), places)
        return program.run(list(tensors))

    def _empty(self, shape: Sequence[int], strides: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        return torch.empty_strided(shape, strides, dtype=dtype, device=self._device)

    def _evaluate(self, values: List[Any], inputs: Sequence[int], outputs: Sequence[int]) -> None:
        named = {f"p{i}": self._in_memory(values[at], layout).cpu() for i, (at, layout) in enumerate(zip(inputs, self._inputs))}
        made = _core.evaluate(self._text, named)
        for at, result, layout, dtype in zip(outputs, made, self._outputs, self._dtypes):
            tensor = torch.empty(layout.in_memory, dtype=dtype, device=self._device).copy_(torch.from_dlpack(result))
            values[at] = restrided(tensor.permute(inverse(layout.order)), layout.strides)

    def _in_memory(self, tensor: torch.Tensor, layout: Layout) -> torch.Tensor:
        """The tensor as kernels read it: dense, with the outermost dimension first."""
        if not layout.is_plain:
            tensor = tensor.permute(layout.order)
        if not tensor.is_contiguous():
            tensor = tensor.contiguous()
        return tensor if tensor.data_ptr() % self._alignment == 0 else tensor.clone()


def _model(text: bytes, options: Dict[str, Any]) -> Model:
    if options.pop("tunes", False):
        tune(text, **options)
    return Model(text, {**options, "callers_memory": True})


def devices_of(nodes: Iterable[Node]) -> List[torch.device]:
    values = [value for node in nodes for value in torch.utils._pytree.tree_leaves(node.meta.get("val"))]
    return [value.device for value in values if isinstance(value, torch.Tensor)]
