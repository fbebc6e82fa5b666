"""What the backend returns for a graph: its parts compiled, and the operators of PyTorch between them."""
import threading
from collections import OrderedDict
from typing import Any, Callable, Collection, Dict, List, Optional, Sequence, Tuple

import torch
from torch.fx import Graph, GraphModule, Node

from heddle import _core
from heddle.torch.memory import kept_by_caller
from heddle.torch.part import TENSORS, CompiledPart, arguments_of, devices_of, number_of, why_not
from heddle.torch.partition import Division, Part, divide, is_tensor, is_write
from heddle.torch.segments import may_divide, segmented
from heddle.torch.shapes import Bindings, Environment, bytes_of, is_known
from heddle.torch.weights import MOST_SHAPES, Key, Weights


class _Operator:
    """A node that PyTorch runs, on a list of values."""

    def __init__(self, node: Node, slots: Dict[Node, int], symbols: Environment):
        self._node, self._slots, self._symbols = node, slots, symbols
        self._slot = slots[node]

    def __call__(self, values: List[Any]) -> None:
        arguments, words = arguments_of(self._node, lambda one: self._value(one, values))
        values[self._slot] = self._node.target(*arguments, **words)  # type: ignore[operator]

    def _value(self, node: Node, values: List[Any]) -> Any:
        return values[self._slots[node]] if node in self._slots else number_of(node, self._symbols)


class _Copies:
    """Copies of values that parts made into inputs of the graph, such as the running statistics of normalisations, at once."""

    def __init__(self, writes: Sequence[Node], slots: Dict[Node, int]):
        self._to, self._from = ([slots[node.args[i]] for node in writes] for i in range(2))  # type: ignore[index]

    def __call__(self, values: List[Any]) -> None:
        torch._foreach_copy_([values[i] for i in self._to], [values[i] for i in self._from])


class _Program:
    """A graph for certain extents. Values have positions in one list: arguments first.

    `constants`: arguments whose values its parts have.
    """

    def __init__(self, graph: "CompiledGraph", symbols: Environment, constants: Dict[Node, torch.Tensor]):
        slots = graph.slots
        results = [None if isinstance(one, Node) and one in slots
                   else number_of(one, symbols) if isinstance(one, Node) else one for one in graph.results]
        places = [slots.get(one, -1) if isinstance(one, Node) else -1 for one in graph.results]
        program = _core.Program(TENSORS, graph.rest, places, results)
        self.parts: List[CompiledPart] = []
        for step, ended in zip(graph.division.steps, _last_reads(graph.division)):
            last = [slots[node] for node in ended]
            if isinstance(step, Part):
                given = [node for node in step.inputs if node not in constants]
                known = {node: constants[node] for node in step.inputs if node in constants}
                self.parts.append(CompiledPart(step, symbols, graph.device, graph.options, known))
                self.parts[-1].add_to(program, [slots[node] for node in given], [slots[node] for node in step.outputs], last)
            else:
                program.add_call(_Operator(step.node, slots, symbols), last)
        together, alone = _joined_writes(graph.division)
        # Alone are copies of inputs, which read the values before all writes.
        for node in [*graph.division.views, *alone]:
            program.add_call(_Operator(node, slots, symbols), [])
        for nodes in together:
            program.add_call(_Copies(nodes, slots), [])
        self.run = program.run


class CompiledGraph:
    """A function of one list of arguments, which it empties, as AOTAutograd calls compiled graphs."""

    def __init__(self, module: GraphModule, kind: str, options: Optional[Dict[str, Any]], weights: Collection[int] = (),
                 are_fixed: bool = False):
        """`options`: of heddle.compile(); None runs the parts in the reference evaluator.

        `weights`: positions of arguments that seldom change, which may become constants, or that never change (`are_fixed`).
        """
        graph = module.graph
        self.kind = kind
        self.options = options
        self.keeps_arguments = False
        self.last_arguments: Optional[List[Any]] = None  # copies, with keeps_arguments
        self._graph = graph
        self.placeholders = [node for node in graph.nodes if node.op == "placeholder"]
        self._attributes = {node: _attribute(module, str(node.target)) for node in graph.nodes if node.op == "get_attr"}
        self._bindings = Bindings(self.placeholders)
        self.examples = examples = self._bindings.examples
        self.device = device_of(graph)
        self.division = division_of(graph, kind, examples, self.device)
        self.results: Sequence[Any] = graph.output_node().args[0]  # type: ignore[assignment]
        made = [node for node in graph.nodes if node.op == "call_function"
                and (is_tensor(node) or not is_known(node.meta.get("val"), examples))]
        self.slots = {node: i for i, node in enumerate([*self.placeholders, *self._attributes, *made])}
        self.rest = [*self._attributes.values(), *[None] * len(made)]
        self._programs: "OrderedDict[Key, _Program]" = OrderedDict()  # the last used is the last one
        self._lock = threading.RLock()
        candidates = [node for i, node in enumerate(self.placeholders) if i in weights]
        self._weights = Weights(candidates, self.slots, self.division, self.device, are_fixed) if options is not None else None
        if not len(self._bindings) and not self._weights:
            self._program(())
        self._boxed_call = True

    @property
    def parts(self) -> List[Part]:
        return [step for step in self.division.steps if isinstance(step, Part)]

    def compiled_parts(self) -> List[CompiledPart]:
        """For the extents of the last call."""
        programs = (self._weights and self._weights.packed.programs) or self._programs
        return next(reversed(programs.values())).parts if programs else []

    def _program(self, key: Key) -> _Program:
        with self._lock:
            if key in self._programs:
                self._programs.move_to_end(key)
                return self._programs[key]
            if len(self._programs) >= MOST_SHAPES:
                self._programs.popitem(last=False)
            with torch._subclasses.fake_tensor.unset_fake_temporarily():
                self._programs[key] = _Program(self, self._bindings.symbols(key), {})
            return self._programs[key]

    def _program_for(self, arguments: Sequence[Any]) -> _Program:
        """With the weights of this call as constants, unless they change from call to call."""
        key = self._bindings.key(arguments) if len(self._bindings) else ()
        if not self._weights:
            return self._program(key)
        found = self._weights.find(key, arguments)
        if found is not None:
            return found
        with self._lock:
            made = self._weights.pack(key, arguments, lambda constants: _Program(self, self._bindings.symbols(key), constants))
        return made or self._program(key)

    def function(self) -> Callable[[List[Any]], List[Any]]:
        """What a call does, for a graph without weights and symbolic extents."""
        return self._program(()).run

    def replay(self, arguments: Sequence[Any]) -> Tuple[Environment, Dict[Node, Any]]:
        """What PyTorch's own operators make of these arguments: all values of the graph."""
        symbols = self._bindings.symbols(self._bindings.key(arguments))
        values: Dict[Node, Any] = {**self._attributes, **dict(zip(self.placeholders, arguments))}
        for node in self._graph.nodes:
            if node.op == "call_function" and node in self.slots and not is_write(node):
                given, words = arguments_of(node, lambda one: values[one] if one in values else number_of(one, symbols))
                values[node] = node.target(*given, **words)  # type: ignore[operator]
        return symbols, values

    def __call__(self, arguments: List[Any]) -> List[Any]:
        if self.keeps_arguments:
            self.last_arguments = [one.detach().clone() if isinstance(one, torch.Tensor) else one for one in arguments]
        return self._program_for(arguments).run(arguments)


def division_of(graph: Graph, kind: str, examples: Environment, device: torch.device) -> Division:
    """The steps that a graph runs in."""
    def size(node: Node) -> int:
        return bytes_of(node, examples)
    division = divide(graph, lambda node: why_not(node, examples, device), lambda node: is_known(node.meta.get("val"), examples), size)
    if kind == "inference" or not may_divide(device):
        return division
    kept = kept_by_caller([node for node in graph.nodes if node.op == "placeholder"], kind)
    return division._replace(steps=segmented(division.steps, graph.output_node().all_input_nodes, size, kept))


def _attribute(module: GraphModule, path: str) -> Any:
    value: Any = module
    for name in path.split("."):
        value = getattr(value, name)
    return value


def device_of(graph: Graph) -> torch.device:
    """The GPU that the graph's tensors lie on, else the CPU."""
    return next((device for device in devices_of(graph.nodes) if device.type == "cuda"), torch.device("cpu"))


def _joined_writes(division: Division) -> Tuple[List[List[Node]], List[Node]]:
    """The writes that are a few launches together, as PyTorch copies tensors of one type and equal strides; and the others."""
    made = {node for step in division.steps if isinstance(step, Part) for node in step.outputs}
    together: Dict[Any, List[Node]] = {}
    alone = []
    for node in division.writes:
        to, source = (one.meta["val"] for one in node.args[:2])  # type: ignore[union-attr]
        if node.args[1] in made and to.shape == source.shape and to.stride() == source.stride():
            together.setdefault((to.device, to.dtype, source.dtype), []).append(node)
        else:
            alone.append(node)
    return list(together.values()), alone


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
