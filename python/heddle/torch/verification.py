"""heddle.torch.verify()."""
import copy
import json
from typing import Any, Dict, Optional, Sequence

import torch

from heddle._report import Report
from heddle.torch.backend import fresh_backend, observed
from heddle.torch.graph import CompiledGraph
from heddle.torch.part import CompiledPart, line_of
from heddle.torch.partition import is_item

# The largest error of the compiled module, relative to the largest magnitude in a tensor: a multiple of eager's own error,
# or what rounding alone may give, whichever is larger.
_TIMES_EAGER = 4
_LEAST = {torch.float64: 1e-10, torch.float32: 1e-5, torch.float16: 5e-3, torch.bfloat16: 4e-2}


def verify(module: Any, inputs: Sequence[Any], options: Dict[str, Any]) -> Report:
    wanted, eager = _results(copy.deepcopy(module), _widened(inputs), wide=True), _results(copy.deepcopy(module), inputs)
    with observed(keep_arguments=True) as graphs:
        compiled = torch.compile(copy.deepcopy(module), backend=fresh_backend(), options=options or None)
        got = _results(compiled, inputs)
    rows = []
    for name, exact in wanted.items():
        mine, theirs = _error(got.get(name), exact), _error(eager.get(name), exact)
        least = _LEAST.get(eager[name].dtype, 0.0)
        rows.append({"name": name, "error": mine, "error_of_eager": theirs, "ok": mine <= max(_TIMES_EAGER * theirs, least)})
    ok = all(row["ok"] for row in rows)
    first = None if ok else _first_difference(graphs)
    told = {"ok": ok, "tensors": rows, "first_difference": first}
    return Report(_text(told), json.dumps(told))


def _widened(tree: Any) -> Any:
    return torch.utils._pytree.tree_map(
        lambda one: one.detach().double().requires_grad_(one.requires_grad) if _is_real(one) else one, tree)


def _is_real(one: Any) -> bool:
    return isinstance(one, torch.Tensor) and one.is_floating_point()


def _results(module: Any, inputs: Sequence[Any], wide: bool = False) -> Dict[str, torch.Tensor]:
    """Outputs and gradients by name. The gradient is that of a random sum of all outputs."""
    module = module.double() if wide and isinstance(module, torch.nn.Module) else module
    inputs = torch.utils._pytree.tree_map(
        lambda one: one.detach().clone().requires_grad_(one.requires_grad) if isinstance(one, torch.Tensor) else one, tuple(inputs))
    outputs = [one for one in torch.utils._pytree.tree_leaves(module(*inputs)) if _is_real(one)]
    found = {f"output {i}": one.detach() for i, one in enumerate(outputs)}
    leaves = list(module.named_parameters()) if isinstance(module, torch.nn.Module) else []
    leaves = [(name.removeprefix("_orig_mod."), one) for name, one in leaves]
    leaves += [(f"input {i}", one) for i, one in enumerate(torch.utils._pytree.tree_leaves(inputs)) if isinstance(one, torch.Tensor)]
    leaves = [(name, one) for name, one in leaves if one.requires_grad]
    outputs = [one for one in outputs if one.requires_grad]
    if outputs and leaves:
        generator = torch.Generator().manual_seed(0)
        tangents = [torch.randn(one.shape, generator=generator).to(one) for one in outputs]
        gradients = torch.autograd.grad(outputs, [one for _, one in leaves], tangents, allow_unused=True)
        found.update((f"gradient of {name}", one) for (name, _), one in zip(leaves, gradients) if one is not None)
    return found


def _error(got: Optional[torch.Tensor], exact: torch.Tensor) -> float:
    if got is None or got.shape != exact.shape:
        return float("inf")
    same = (got.double() == exact) | (got.isnan() & exact.isnan())
    apart = torch.where(same, 0, (got.double() - exact).abs())
    finite = exact[exact.isfinite()].abs()
    largest = finite.max().item() if finite.numel() else 0.0
    worst = apart.max().item() if apart.numel() else 0.0
    return worst / max(largest, 1e-30) if worst == worst else float("inf")


def _first_difference(graphs: Sequence[CompiledGraph]) -> Optional[Dict[str, str]]:
    """The first operator that differs from PyTorch's on the arguments of the last call."""
    for graph in graphs:
        if graph.last_arguments is None:
            continue
        symbols, values = graph.replay(graph.last_arguments)
        for part in graph.parts:
            # Every value becomes a result of the part. Kernels then store what they would keep in registers, and compute the same.
            nodes = [node for node in part.nodes if isinstance(node.meta["val"], torch.Tensor) and not is_item(node)]
            everything = CompiledPart(part._replace(outputs=nodes), symbols, graph.device, graph.options)
            for node, got in zip(nodes, everything([values[one] for one in part.inputs])):
                want = values[node]
                if _is_real(want) and _error(got, want.double()) > 10 * _LEAST[want.dtype]:
                    return {"graph": graph.kind, "operator": str(node.target), "line": line_of(node)}
    return None


def _text(told: Dict[str, Any]) -> str:
    wrong = [row for row in told["tensors"] if not row["ok"]]
    lines = [f"{len(told['tensors'])} outputs and gradients, {len(wrong)} wrong"]
    for row in wrong or sorted(told["tensors"], key=lambda one: -one["error"])[:3]:
        lines.append(f"  {row['name']}: error {row['error']:.1e} of the largest element, eager's is {row['error_of_eager']:.1e}")
    if told["first_difference"]:
        first = told["first_difference"]
        place = f" at {first['line']}" if first["line"] else ""
        lines.append(f"  the {first['graph']} graph differs first in {first['operator']}{place}")
    return "\n".join(lines)

