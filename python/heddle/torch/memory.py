"""The memory of graphs of a training step, before they run.

A graph's arguments that its caller keeps (parameters, inputs) count for nothing: peaks are beside them.
"""
from typing import TYPE_CHECKING, Any, Callable, Dict, List, NamedTuple, Sequence, Set

from torch.fx import Graph, Node

from heddle.torch.partition import Division, Part, is_own, is_tensor, viewed
from heddle.torch.segments import peak_of
from heddle.torch.shapes import Environment, bytes_of

if TYPE_CHECKING:
    from heddle.torch.graph import CompiledGraph


def kept_by_caller(placeholders: Sequence[Node], kind: str) -> Set[Node]:
    return {node for node in placeholders if kind != "backward" or node.name.startswith("primals")}


def saved_by(placeholders: Sequence[Node]) -> List[Node]:
    """Of the arguments of a backward graph those that the forward graph made."""
    return [node for node in placeholders if is_tensor(node) and not node.name.startswith(("primals", "tangents"))]


class Peak(NamedTuple):
    bytes: int
    scratch: int  # the largest of a part


def peak_of_compiled(graph: "CompiledGraph") -> Peak:
    """From the sizes of its values, the steps that it runs in, and the scratch memory of its compiled parts."""
    compiled = iter(graph.compiled_parts())

    def taken(_part: Part) -> int:
        model = next(compiled).model
        return model._core.arena_bytes if model is not None else 0
    return peak_with(graph, taken)


def peak_with(graph: "CompiledGraph", taken_by: Callable[[Part], int]) -> Peak:
    """`taken_by`: the scratch memory of a part; it is asked for each in turn."""
    return _peak(graph.division.steps, graph.results, graph.placeholders, graph.kind, graph.examples, taken_by)


def estimated_peak(graph: Graph, kind: str, division: Division, symbols: Environment) -> int:
    """Of a graph that is not compiled: what kernels keep in registers is a guess."""
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]

    def taken(part: Part) -> int:
        return peak_of(part, lambda node: bytes_of(node, symbols), part.inputs) - sum(bytes_of(node, symbols) for node in part.outputs)
    results: Sequence[Any] = graph.output_node().args[0]  # type: ignore[assignment]
    return _peak(division.steps, results, placeholders, kind, symbols, taken).bytes


def _peak(steps: Sequence[Any], results: Sequence[Any], placeholders: Sequence[Node], kind: str, symbols: Environment,
          taken_by: Callable[[Part], int]) -> Peak:
    kept, owner = kept_by_caller(placeholders, kind), viewed(steps)
    last: Dict[Node, int] = {owner.get(node, node): len(steps) for node in results if isinstance(node, Node)}
    for i, step in enumerate(steps):
        for node in step.inputs if isinstance(step, Part) else step.node.all_input_nodes:
            node = owner.get(node, node)
            last[node] = max(last.get(node, 0), i)
    ends: Dict[int, int] = {}
    for node, i in last.items():
        if node not in kept:
            ends[i] = ends.get(i, 0) + bytes_of(node, symbols)
    alive = sum(bytes_of(node, symbols) for node in placeholders if node not in kept and node in last)
    peak, scratch = alive, 0
    for i, step in enumerate(steps):
        made = step.outputs if isinstance(step, Part) else [step.node]
        alive += sum(bytes_of(node, symbols) for node in made if node in last)
        taken = taken_by(step) if isinstance(step, Part) else _scratch_of(step.node)
        peak, scratch = max(peak, alive + taken), max(scratch, taken)
        alive -= ends.get(i, 0)
    return Peak(peak, scratch)


def _scratch_of(node: Node) -> int:
    if not is_own(node) or "cross_entropy" not in node.target.name():  # type: ignore[union-attr]
        return 0
    from heddle.torch.loss import scratch_of

    return scratch_of(node)
