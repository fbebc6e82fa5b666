"""heddle.torch.explain() and profile()."""
import contextlib
import copy
import json
from typing import Any, Dict, Iterator, List, Mapping, Sequence

import torch
from torch.fx import Node

from heddle._options import refuse
from heddle._profile import Profile
from heddle._report import Report
from heddle.torch.backend import fresh_backend, observed
from heddle.torch.graph import CompiledGraph
from heddle.torch.memory import peak_of_compiled, saved_by
from heddle.torch.part import line_of
from heddle.torch.shapes import bytes_of

_MOST_LINES = 10  # of the module, that the text lists saved bytes for


def explain(module: Any, inputs: Sequence[Any], options: Dict[str, Any]) -> Report:
    with _compiled(module, inputs, options) as graphs:
        return _explained(graphs)


def _explained(graphs: Sequence[CompiledGraph]) -> Report:
    origins = {node.name: line_of(node) for graph in graphs if graph.kind == "forward" for node in graph.results if isinstance(node, Node)}
    told = {"graphs": [_told(graph, origins) for graph in graphs]}
    return Report(_text(told), json.dumps(told))


def profile(module: Any, inputs: Sequence[Any], seconds: float, options: Dict[str, Any]) -> Dict[str, Profile]:
    found = {}
    with _compiled(module, inputs, options) as graphs:
        for number, graph in enumerate(graphs, 1):
            for at, part in enumerate(graph.compiled_parts(), 1):
                if part.model is None:
                    refuse("heddle.torch.profile: options", "the reference evaluator has no kernels", 'Leave "execution" out')
                found[f"graph {number} ({graph.kind}), part {at}"] = part.model.profile(seconds=seconds)
    return found


@contextlib.contextmanager
def _compiled(module: Any, inputs: Sequence[Any], options: Dict[str, Any]) -> Iterator[List[CompiledGraph]]:
    """Runs a copy of the module once, with its backward pass if it has one, and yields the graphs.

    Programs with packed weights end with the copy.
    """
    module = copy.deepcopy(module)
    with observed() as graphs:
        compiled = torch.compile(module, backend=fresh_backend(), options=options or None)
        result = compiled(*inputs)
        leaves = [one for one in torch.utils._pytree.tree_leaves(result) if isinstance(one, torch.Tensor) and one.requires_grad]
        if leaves:
            torch.autograd.grad([one.sum() for one in leaves], _leaves_of(module, inputs), allow_unused=True)
    yield graphs


def _leaves_of(module: Any, inputs: Sequence[Any]) -> List[torch.Tensor]:
    parameters = list(module.parameters()) if isinstance(module, torch.nn.Module) else []
    tensors = [one for one in torch.utils._pytree.tree_leaves(inputs) if isinstance(one, torch.Tensor)]
    return [one for one in [*parameters, *tensors] if one.requires_grad]


def _told(graph: CompiledGraph, origins: Mapping[str, str]) -> Dict[str, Any]:
    fallbacks: Dict[Any, int] = {}
    for one in graph.division.fallbacks:
        key = (str(one.node.target), one.reason, line_of(one.node))
        fallbacks[key] = fallbacks.get(key, 0) + 1
    kernels = [len(part.model.kernels()) if part.model else 0 for part in graph.compiled_parts()]
    saved: Dict[str, int] = {}  # by line
    for node in saved_by(graph.placeholders) if graph.kind == "backward" else ():
        line = origins.get(node.name, "")
        saved[line] = saved.get(line, 0) + bytes_of(node, graph.examples)
    peak, scratch = peak_of_compiled(graph)
    return {"kind": graph.kind, "peak_bytes": peak, "scratch_bytes": scratch,
            "saved": [{"line": line, "bytes": count} for line, count in sorted(saved.items(), key=lambda one: -one[1])],
            "parts": [{"operators": len(part.nodes), "kernels": count} for part, count in zip(graph.parts, kernels)],
            "fallbacks": [{"operator": operator, "reason": reason, "line": line, "count": count}
                          for (operator, reason, line), count in fallbacks.items()]}


def _text(told: Dict[str, Any]) -> str:
    lines = []
    for number, graph in enumerate(told["graphs"], 1):
        operators, kernels = (sum(part[name] for part in graph["parts"]) for name in ("operators", "kernels"))
        lines.append(f"graph {number} ({graph['kind']}): {operators} operators in {kernels} distinct kernels, parts: {len(graph['parts'])}")
        lines.append(f"  memory: at most {_size(graph['peak_bytes'])} beside parameters and inputs, of it {_size(graph['scratch_bytes'])} of scratch")
        if graph["saved"]:
            lines.append(f"  saved by the forward graph: {_size(sum(one['bytes'] for one in graph['saved']))}")
            shown = [one for one in graph["saved"] if one["line"]][:_MOST_LINES]
            lines += [f"    {_size(one['bytes'])} at {one['line']}" for one in shown]
        for one in graph["fallbacks"]:
            times = f" ({one['count']} times)" if one["count"] > 1 else ""
            place = f" at {one['line']}" if one["line"] else ""
            lines.append(f"  PyTorch runs {one['operator']}{place}{times}: {one['reason']}")
    return "\n".join(lines)


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{count / 1e3:.1f} KB"
