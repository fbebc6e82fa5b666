"""What the backend returns for a graph: its parts compiled, and the operators of PyTorch between them."""
import os
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch
from torch.fx import GraphModule, Node

from heddle import _core
from heddle._model import Model
from heddle.torch.hir import Value, Writer
from heddle.torch.lowering import TABLE, Context, Unsupported, dtype_name
from heddle.torch.partition import Division, Fallback, Part, divide, is_item, is_tensor, is_write, used_results
from heddle.torch.shapes import Bindings, Environment, concrete, inverse, is_dense, memory_order, restrided

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


def why_not(node: Node, symbols: Environment) -> str:
    """Why a node cannot be compiled, found by lowering it alone; "" if it can."""
    if node.target not in TABLE:
        return "no kernel of Heddle's computes it"
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
    values: Dict[Node, List[Optional[Value]]] = {}
    inputs, outputs = [], []
    parameters = []
    for node in part.inputs:
        layout = _Layout.of(node.meta["val"], symbols)
        inputs.append(layout)
        parameters.append((node, layout, writer.parameter(dtype_name(node.meta["val"].dtype), layout.in_memory)))
    for node, layout, parameter in parameters:
        values[node] = [Context(writer, []).transpose(parameter, inverse(layout.order))]

    def of_node(one: Node) -> Any:
        return values[one][0] if is_tensor(one) else _number_of(one, symbols)
    for node in part.nodes:
        if is_item(node):
            values[node] = [values[node.args[0]][node.args[1]]]  # type: ignore[index]
            continue
        writer.origin = line_of(node)
        values[node] = lower_node(node, Context(writer, _results(node, symbols), used_results(node)), of_node)
    writer.origin = None
    results = []
    for node in part.outputs:
        layout = _Layout.of(node.meta["val"], symbols)
        outputs.append(layout)
        value = values[node][0]
        assert value is not None
        results.append(Context(writer, []).transpose(value, layout.order))
    return writer.text(results), inputs, outputs


class CompiledPart:
    """A part for certain extents. Called with its inputs, it returns its outputs with the strides that were promised."""

    def __init__(self, part: Part, symbols: Environment, device: torch.device, options: Dict[str, Any]):
        text, self.inputs, self.outputs = lower_part(part, symbols)
        self.dtypes = [node.meta["val"].dtype for node in part.outputs]
        self.device = device
        self.text = text
        if options.get("execution") == "reference":
            self._run = self._evaluate
        else:
            self.model = Model(text.encode(), {name: value for name, value in options.items() if name != "execution"})
            self._run = self.model._core.run
        self._alignment = 1 if device.type == "cpu" else 16

    def __call__(self, tensors: Sequence[torch.Tensor]) -> List[torch.Tensor]:
        given = tuple(self._dense(tensor, layout) for tensor, layout in zip(tensors, self.inputs))
        made = [torch.empty(layout.in_memory, dtype=dtype, device=self.device) for layout, dtype in zip(self.outputs, self.dtypes)]
        self._run(given, {}, made, None, None)
        return [tensor if layout.is_plain else restrided(tensor.permute(inverse(layout.order)), layout.strides)
                for tensor, layout in zip(made, self.outputs)]

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


class CompiledGraph:
    """A function of one list of arguments, which it empties, as AOTAutograd calls compiled graphs."""

    def __init__(self, module: GraphModule, kind: str, options: Dict[str, Any]):
        graph = module.graph
        self.kind = kind
        self.options = options
        self.keeps_arguments = False
        self.last_arguments: Optional[List[Any]] = None  # copies, with keeps_arguments
        self._graph = graph
        self._placeholders = [node for node in graph.nodes if node.op == "placeholder"]
        self._attributes = {node: _attribute(module, str(node.target)) for node in graph.nodes if node.op == "get_attr"}
        self._bindings = Bindings(self._placeholders)
        examples = {symbol: _hint(symbol, self._placeholders) for symbol, _, _ in self._bindings._places}
        self.division: Division = divide(graph, lambda node: why_not(node, examples))
        self.device = _device_of(graph)
        self._results = graph.output_node().args[0]
        self._shapes: Dict[Tuple[int, ...], List[Any]] = {}
        self._last_reads = _last_reads(self.division)
        if not len(self._bindings):
            self._steps_for(())
        self._boxed_call = True

    @property
    def parts(self) -> List[Part]:
        return [step for step in self.division.steps if isinstance(step, Part)]

    def compiled_parts(self) -> List[CompiledPart]:
        """Of the extents that were met last."""
        steps = next(reversed(self._shapes.values()), [])
        return [step for step in steps if isinstance(step, CompiledPart)]

    def _steps_for(self, key: Tuple[int, ...]) -> Tuple[Environment, List[Any]]:
        symbols = self._bindings.symbols(key) if key else {}
        steps = self._shapes.pop(key, None)
        if steps is None:
            if len(self._shapes) >= _MOST_SHAPES:
                self._shapes.pop(next(iter(self._shapes)))
            with torch._subclasses.fake_tensor.unset_fake_temporarily():
                steps = [CompiledPart(step, symbols, self.device, self.options) if isinstance(step, Part) else step
                         for step in self.division.steps]
        self._shapes[key] = steps  # the last used is the last
        return symbols, steps

    def replay(self, arguments: Sequence[Any]) -> Tuple[Environment, Dict[Node, Any]]:
        """What PyTorch's own operators make of these arguments: all values of the graph."""
        symbols = self._bindings.symbols(self._bindings.key(arguments))
        values: Dict[Node, Any] = {**self._attributes, **dict(zip(self._placeholders, arguments))}
        for node in self._graph.nodes:
            if node.op == "call_function" and is_tensor(node) and not is_write(node):
                _run(node, lambda one: values[one] if one in values else _number_of(one, symbols), values)
        return symbols, values

    def __call__(self, arguments: List[Any]) -> List[Any]:
        if self.keeps_arguments:
            self.last_arguments = [one.detach().clone() if isinstance(one, torch.Tensor) else one for one in arguments]
        key = self._bindings.key(arguments)
        symbols, steps = self._steps_for(key)
        values: Dict[Node, Any] = dict(self._attributes)
        values.update(zip(self._placeholders, arguments))
        arguments.clear()

        def of_node(node: Node) -> Any:
            return values[node] if node in values else _number_of(node, symbols)
        for step, shape, ended in zip(self.division.steps, steps, self._last_reads):
            if isinstance(step, Part):
                values.update(zip(step.outputs, shape([values[node] for node in step.inputs])))
            else:
                _run(step.node, of_node, values)
            for node in ended:
                values.pop(node, None)
        for node in self.division.views:
            _run(node, of_node, values)
        for node in self.division.writes:
            values[node] = values[node.args[0]].copy_(of_node(node.args[1]))  # type: ignore[index]
        return [of_node(one) if isinstance(one, Node) else one for one in self._results]  # type: ignore[union-attr]


def _run(node: Node, of_node: Callable[[Node], Any], values: Dict[Node, Any]) -> None:
    arguments, words = _arguments(node, of_node)
    values[node] = node.target(*arguments, **words)  # type: ignore[operator]


def _attribute(module: GraphModule, path: str) -> Any:
    value: Any = module
    for name in path.split("."):
        value = getattr(value, name)
    return value


def _hint(symbol: Any, placeholders: Sequence[Node]) -> Any:
    """The value that a symbol had when the graph was traced."""
    for node in placeholders:
        value = node.meta.get("val")
        for one in [value] if isinstance(value, torch.SymInt) else list(getattr(value, "shape", ())):
            if isinstance(one, torch.SymInt) and one.node.expr == symbol:
                import sympy

                return sympy.Integer(one.node.hint)
    raise AssertionError(symbol)


def _device_of(graph: torch.fx.Graph) -> torch.device:
    """The GPU that the graph's tensors lie on, else the CPU."""
    devices = {node.meta["val"].device for node in graph.nodes if isinstance(node.meta.get("val"), torch.Tensor)}
    return next((device for device in devices if device.type == "cuda"), torch.device("cpu"))


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
