"""The memory of graphs of a training step, before they run.

A graph's arguments that its caller keeps (parameters, inputs) count for nothing: peaks are beside them.
"""
from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Sequence, Set

import torch
from torch.fx import Graph, Node

from heddle.torch.partition import Part, is_own, is_tensor
from heddle.torch.segments import may_divide, peak_of, segments_of
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
    symbols, kept = graph.examples, kept_by_caller(graph.placeholders, graph.kind)
    last: Dict[Node, int] = {node: len(graph.division.steps) for node in graph.results if isinstance(node, Node)}
    for i, step in enumerate(graph.division.steps):
        for node in step.inputs if isinstance(step, Part) else step.node.all_input_nodes:
            last[node] = max(last.get(node, 0), i)
    ends: Dict[int, int] = {}
    for node, i in last.items():
        if node not in kept:
            ends[i] = ends.get(i, 0) + bytes_of(node, symbols)
    alive = sum(bytes_of(node, symbols) for node in graph.placeholders if node not in kept and node in last)
    peak, scratch = alive, 0
    compiled = iter(graph.compiled_parts())
    for i, step in enumerate(graph.division.steps):
        made = step.outputs if isinstance(step, Part) else [step.node]
        alive += sum(bytes_of(node, symbols) for node in made if node in last)
        if isinstance(step, Part):
            model = next(compiled).model
            taken = model._core.arena_bytes if model is not None else 0
        else:
            taken = _scratch_of(step.node)
        peak, scratch = max(peak, alive + taken), max(scratch, taken)
        alive -= ends.get(i, 0)
    return Peak(peak, scratch)


def _scratch_of(node: Node) -> int:
    if not is_own(node) or "cross_entropy" not in node.target.name():  # type: ignore[union-attr]
        return 0
    from heddle.torch.loss import scratch_of

    return scratch_of(node)


def estimated_peak(graph: Graph, kind: str, symbols: Environment, device: torch.device) -> int:
    """Of a graph that is not compiled: what kernels keep in registers is a guess."""
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    nodes = [node for node in graph.nodes if node.op == "call_function" and is_tensor(node)]
    outputs = [node for node in graph.output_node().all_input_nodes if node.op == "call_function" and is_tensor(node)]
    part = Part(nodes, [node for node in placeholders if is_tensor(node) and node.users], outputs)
    kept = kept_by_caller(placeholders, kind)

    def size(node: Node) -> int:
        return bytes_of(node, symbols) + _scratch_of(node)
    parts = segments_of(part, size, kept) if may_divide(device) else [part]
    return max((peak_of(one, size, kept, _resident(parts, i, size, kept)) for i, one in enumerate(parts)), default=0)


def _resident(parts: Sequence[Part], i: int, size: Any, kept: Set[Node]) -> int:
    """What is in memory beside a segment's own inputs and outputs: for later segments, or results of earlier ones."""
    own = {*parts[i].inputs, *parts[i].outputs}
    later = {node for one in parts[i + 1:] for node in one.inputs}
    made = {node for one in parts[:i] for node in one.outputs}
    last = {node for node in made if any(user.op == "output" for user in node.users)}
    given = {node for node in later if node.op == "placeholder"}
    return sum(size(node) for node in (last | later & made | given) - own - kept)
