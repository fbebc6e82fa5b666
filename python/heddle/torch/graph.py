"""What the backend returns for a graph: its parts compiled, and the operators of PyTorch between them."""
import os
import threading
from collections import OrderedDict
from typing import Any, Callable, Collection, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

import torch
from torch.fx import GraphModule, Node

from heddle import _core
from heddle._model import Model
from heddle.torch.hir import Value, Writer
from heddle.torch.lowering import TABLE, Context, Unsupported, dtype_name
from heddle.torch.partition import Division, Part, divide, is_item, is_tensor, is_write, used_results
from heddle.torch.weights import Weights
from heddle.torch.shapes import Bindings, Environment, concrete, inverse, is_dense, is_known, memory_order, restrided

_PLACEMENT = {"device", "layout", "pin_memory", "memory_format"}  # which the result's type tells
_MOST_SHAPES = 64  # sets of extents whose plans a graph keeps


def line_of(node: Node) -> str:
    """"model.py:17", the innermost line of the user's program that made the node; "" where it is not known."""
    found = ""
    for line in (node.meta.get("stack_trace") or "").splitlines():
        if line.lstrip().startswith('File "'):
            path, _, rest = line.strip()[6:].partition('", line ')
            found = f"{os.path.basename(path)}:{rest.partition(',')[0]}"
    return found


def _results(node: Node, symbols: Environment) -> List[Optional[Tuple[str, Tuple[int, ...]]]]:
    value = node.meta["val"]
    listed = [value] if isinstance(value, torch.Tensor) else list(value)
    return [(dtype_name(one.dtype), _shape(one, symbols)) if isinstance(one, torch.Tensor) else None for one in listed]


def _shape(value: torch.Tensor, symbols: Environment) -> Tuple[int, ...]:
    return tuple(concrete(extent, symbols) for extent in value.shape)


def _strides(value: torch.Tensor, symbols: Environment) -> Tuple[int, ...]:
    return tuple(concrete(stride, symbols) for stride in value.stride())


def _number_of(node: Node, symbols: Environment) -> Any:
    return concrete(node.meta["val"], symbols)


def _arguments(node: Node, of_node: Callable[[Node], Any]) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
    take = torch.fx.node.map_arg
    return take(node.args, of_node), take(node.kwargs, of_node)


def lower_node(node: Node, context: Context, of_node: Callable[[Node], Any]) -> List[Optional[Value]]:
    """Emits one node. Raises Unsupported."""
    arguments, words = _arguments(node, of_node)
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
    if any(one != device for one in _devices([node, *node.all_input_nodes])):
        return f"it has tensors elsewhere than on {device}"
    writer = Writer()

    def of_node(one: Node) -> Any:
        if not is_tensor(one):
            return _number_of(one, symbols)
        value = one.meta["val"]
        return writer.parameter(dtype_name(value.dtype), _shape(value, symbols))
    try:
        lower_node(node, Context(writer, _results(node, symbols), used_results(node)), of_node)
    except Unsupported as reason:
        return str(reason)
    return ""


class _Layout(NamedTuple):
    """A tensor and its memory, which is dense in the order `order` of its dimensions."""

    shape: Tuple[int, ...]
    strides: Tuple[int, ...]
    order: List[int]
    is_plain: bool  # in order, and dense

    @staticmethod
    def of(value: torch.Tensor, symbols: Environment) -> "_Layout":
        shape, strides = _shape(value, symbols), _strides(value, symbols)
        order = memory_order(strides, shape)
        return _Layout(shape, strides, order, order == list(range(len(shape))) and is_dense(strides, shape))

    @property
    def in_memory(self) -> Tuple[int, ...]:
        return tuple(self.shape[d] for d in self.order)


def lower_part(part: Part, symbols: Environment) -> Tuple[str, List[_Layout], List[_Layout]]:
    """The textual IR of a part for these extents, and how its inputs and outputs lie in memory."""
    writer = Writer()
    layouts = Context(writer, [])
    values: Dict[Node, List[Optional[Value]]] = {}
    inputs, outputs, results = [], [], []
    for node in part.inputs:
        layout = _Layout.of(node.meta["val"], symbols)
        inputs.append(layout)
        parameter = writer.parameter(dtype_name(node.meta["val"].dtype), layout.in_memory)
        values[node] = [layouts.transpose(parameter, inverse(layout.order))]

    def of_node(one: Node) -> Any:
        return values[one][0] if is_tensor(one) else _number_of(one, symbols)
    for node in part.nodes:
        if is_item(node):
            values[node] = [values[node.args[0]][node.args[1]]]  # type: ignore[index]
            continue
        writer.origin = line_of(node)
        values[node] = lower_node(node, Context(writer, _results(node, symbols), used_results(node)), of_node)
    writer.origin = None
    for node in part.outputs:
        layout = _Layout.of(node.meta["val"], symbols)
        outputs.append(layout)
        value = values[node][0]
        assert value is not None
        results.append(layouts.transpose(value, layout.order))
    return writer.text(results), inputs, outputs


class CompiledPart:
    """A part for certain extents. Called with its inputs, it returns its outputs with the strides that were promised."""

    def __init__(self, part: Part, symbols: Environment, device: torch.device, options: Optional[Dict[str, Any]],
                 constants: Optional[Dict[Node, torch.Tensor]] = None):
        """`constants`: inputs that it has the values of, and that calls leave out. They need options."""
        text, inputs, self.outputs = lower_part(part, symbols)
        constants = constants or {}
        self.inputs = [layout for node, layout in zip(part.inputs, inputs) if node not in constants]
        self._results = [(layout, layout.in_memory, node.meta["val"].dtype) for layout, node in zip(self.outputs, part.outputs)]
        self.device = device
        self.text = text
        self._alignment = 1 if device.type == "cpu" else 16
        if constants and options is not None:
            options = {**options, "constants": {f"p{i}": self._dense(constants[node].detach(), layout).cpu()
                                                for i, (node, layout) in enumerate(zip(part.inputs, inputs)) if node in constants}}
        # Without options for the compiler the reference evaluator runs it.
        self.model = None if options is None else Model(text.encode(), options)
        self._run = self._evaluate if self.model is None else self.model._core.run

    def __call__(self, tensors: Sequence[torch.Tensor]) -> List[torch.Tensor]:
        given = tuple(self._dense(tensor, layout) for tensor, layout in zip(tensors, self.inputs))
        made = [torch.empty(shape, dtype=dtype, device=self.device) for _, shape, dtype in self._results]
        self._run(given, {}, made, None, None)
        return [tensor if layout.is_plain else restrided(tensor.permute(inverse(layout.order)), layout.strides)
                for tensor, (layout, _, _) in zip(made, self._results)]

    def _evaluate(self, tensors: Sequence[torch.Tensor], _named: Any, made: Sequence[torch.Tensor], *_: Any) -> None:
        named = {f"p{i}": tensor for i, tensor in enumerate(tensors)}
        for into, result in zip(made, _core.evaluate(self.text, named)):
            into.copy_(torch.from_dlpack(result))

    def _dense(self, tensor: torch.Tensor, layout: _Layout) -> torch.Tensor:
        if not layout.is_plain:
            tensor = tensor.permute(layout.order)
        if not tensor.is_contiguous():
            tensor = tensor.contiguous()
        return tensor if self._alignment == 1 or tensor.data_ptr() % self._alignment == 0 else tensor.clone()


class _Operator:
    """A node that PyTorch runs, on a list of values."""

    def __init__(self, node: Node, slots: Dict[Node, int], symbols: Environment):
        self._node, self._slots, self._symbols = node, slots, symbols
        self._slot = slots[node]

    def __call__(self, values: List[Any]) -> None:
        arguments, words = _arguments(self._node, lambda one: self._value(one, values))
        values[self._slot] = self._node.target(*arguments, **words)  # type: ignore[operator]

    def _value(self, node: Node, values: List[Any]) -> Any:
        return values[self._slots[node]] if node in self._slots else _number_of(node, self._symbols)


class _Step(NamedTuple):
    run: Callable[[Any], Any]  # a CompiledPart, or an _Operator where there are no inputs
    inputs: Optional[List[int]]
    outputs: List[int]
    ended: List[int]  # values that nothing reads behind it


class _Program:
    """A graph for certain extents. Values have positions in one list: arguments first.

    `constants`: arguments whose values its parts have.
    """

    def __init__(self, graph: "CompiledGraph", symbols: Environment, constants: Dict[Node, torch.Tensor]):
        slots = graph.slots
        self.parts: List[CompiledPart] = []
        self._steps: List[_Step] = []
        for step, ended in zip(graph.division.steps, _last_reads(graph.division)):
            places = [slots[node] for node in ended]
            if isinstance(step, Part):
                given = [node for node in step.inputs if node not in constants]
                known = {node: constants[node] for node in step.inputs if node in constants}
                self.parts.append(CompiledPart(step, symbols, graph.device, graph.options, known))
                self._steps.append(_Step(self.parts[-1], [slots[node] for node in given],
                                         [slots[node] for node in step.outputs], places))
            else:
                self._steps.append(_Step(_Operator(step.node, slots, symbols), None, [], places))
        self._steps += [_Step(_Operator(node, slots, symbols), None, [], [])
                        for node in [*graph.division.views, *graph.division.writes]]
        # For each result the position of its value, or, in a list of one, what it is.
        self._results = [slots[one] if isinstance(one, Node) and one in slots
                         else [_number_of(one, symbols) if isinstance(one, Node) else one] for one in graph.results]

    def run(self, values: List[Any]) -> List[Any]:
        for step in self._steps:
            if step.inputs is None:
                step.run(values)
            else:
                for place, value in zip(step.outputs, step.run([values[i] for i in step.inputs])):
                    values[place] = value
            for place in step.ended:
                values[place] = None
        return [values[one] if isinstance(one, int) else one[0] for one in self._results]


class CompiledGraph:
    """A function of one list of arguments, which it empties, as AOTAutograd calls compiled graphs."""

    def __init__(self, module: GraphModule, kind: str, options: Optional[Dict[str, Any]], weights: Collection[int] = ()):
        """`options`: of heddle.compile(); None runs the parts in the reference evaluator.

        `weights`: positions of arguments that seldom change, which may become constants.
        """
        graph = module.graph
        self.kind = kind
        self.options = options
        self.keeps_arguments = False
        self.last_arguments: Optional[List[Any]] = None  # copies, with keeps_arguments
        self._graph = graph
        self._placeholders = [node for node in graph.nodes if node.op == "placeholder"]
        self._attributes = {node: _attribute(module, str(node.target)) for node in graph.nodes if node.op == "get_attr"}
        self._bindings = Bindings(self._placeholders)
        examples = self._bindings.examples
        self.device = device_of(graph)
        self.division: Division = divide(graph, lambda node: why_not(node, examples, self.device),
                                         lambda node: is_known(node.meta.get("val"), examples))
        self.results: Sequence[Any] = graph.output_node().args[0]  # type: ignore[assignment]
        made = [node for node in graph.nodes if node.op == "call_function"
                and (is_tensor(node) or not is_known(node.meta.get("val"), examples))]
        self.slots = {node: i for i, node in enumerate([*self._placeholders, *self._attributes, *made])}
        self._rest = [*self._attributes.values(), *[None] * len(made)]
        self._programs: "OrderedDict[Tuple[int, ...], _Program]" = OrderedDict()  # the last used is the last one
        self._lock = threading.RLock()
        # Each set of extents has a model of its own, which would pack the weights once more.
        takes_weights = options is not None and not len(self._bindings)
        self._weights = Weights([node for i, node in enumerate(self._placeholders) if i in weights], self.slots, self.division,
                                self.device) if takes_weights else None
        if not len(self._bindings) and not self._weights:
            self._program(())
        self._boxed_call = True

    @property
    def parts(self) -> List[Part]:
        return [step for step in self.division.steps if isinstance(step, Part)]

    def compiled_parts(self) -> List[CompiledPart]:
        """For the extents of the last call."""
        if self._weights and self._weights.program:
            return self._weights.program.parts
        return next(reversed(self._programs.values())).parts if self._programs else []

    def _program(self, key: Tuple[int, ...]) -> _Program:
        with self._lock:
            if key in self._programs:
                self._programs.move_to_end(key)
                return self._programs[key]
            if len(self._programs) >= _MOST_SHAPES:
                self._programs.popitem(last=False)
            with torch._subclasses.fake_tensor.unset_fake_temporarily():
                self._programs[key] = _Program(self, self._bindings.symbols(key), {})
            return self._programs[key]

    def _program_with(self, weights: "Weights", arguments: Sequence[Any]) -> _Program:
        """With the weights of this call as constants, unless they change from call to call."""
        stamp = weights.stamp(arguments)
        if weights.program is not None and stamp == weights.packed:
            return weights.program
        with self._lock:
            if not weights.is_settled(stamp):
                return self._program(())
            weights.program = None  # before there is another copy
            weights.program = _Program(self, {}, weights.values(arguments))
            weights.packed = stamp
            return weights.program

    def replay(self, arguments: Sequence[Any]) -> Tuple[Environment, Dict[Node, Any]]:
        """What PyTorch's own operators make of these arguments: all values of the graph."""
        symbols = self._bindings.symbols(self._bindings.key(arguments))
        values: Dict[Node, Any] = {**self._attributes, **dict(zip(self._placeholders, arguments))}
        for node in self._graph.nodes:
            if node.op == "call_function" and node in self.slots and not is_write(node):
                given, words = _arguments(node, lambda one: values[one] if one in values else _number_of(one, symbols))
                values[node] = node.target(*given, **words)  # type: ignore[operator]
        return symbols, values

    def __call__(self, arguments: List[Any]) -> List[Any]:
        if self.keeps_arguments:
            self.last_arguments = [one.detach().clone() if isinstance(one, torch.Tensor) else one for one in arguments]
        if self._weights:
            program = self._program_with(self._weights, arguments)
        else:
            program = self._program(self._bindings.key(arguments) if len(self._bindings) else ())
        values = [*arguments, *self._rest]
        arguments.clear()
        return program.run(values)


def _attribute(module: GraphModule, path: str) -> Any:
    value: Any = module
    for name in path.split("."):
        value = getattr(value, name)
    return value


def device_of(graph: torch.fx.Graph) -> torch.device:
    """The GPU that the graph's tensors lie on, else the CPU."""
    return next((device for device in _devices(graph.nodes) if device.type == "cuda"), torch.device("cpu"))


def _devices(nodes: Iterable[Node]) -> List[torch.device]:
    values = [value for node in nodes for value in torch.utils._pytree.tree_leaves(node.meta.get("val"))]
    return [value.device for value in values if isinstance(value, torch.Tensor)]


def _last_reads(division: Division) -> List[List[Node]]:
    """For each step the values that nothing reads after it."""
    needed_at_end = {one for node in [*division.views, *division.writes] for one in node.all_input_nodes}
    seen = set(needed_at_end)
    ended: List[List[Node]] = []
    for step in reversed(division.steps):
        reads = step.inputs if isinstance(step, Part) else step.node.all_input_nodes
        last = [node for node in reads if node not in seen and not any(user.op == "output" for user in node.users)]
        seen.update(last)
        ended.insert(0, last)
    return ended
