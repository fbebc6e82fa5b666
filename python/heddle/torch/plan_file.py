"""heddle.torch.export()."""
from typing import Any, Dict, List, Mapping, Optional, Sequence

import torch
from torch.fx import Node

from heddle._errors import make
from heddle._model import Model
from heddle._options import refuse
from heddle.torch.graph import device_of
from heddle.torch.part import Layout, line_of, lower_part, why_not
from heddle.torch.partition import Part, is_item, is_tensor


def export(module: torch.nn.Module, inputs: Sequence[Any], path: Any, keywords: Optional[Mapping[str, Any]], options: Mapping[str, Any]) -> Model:
    from heddle.torch.decompositions import table

    with torch.no_grad():
        program = torch.export.export(module, tuple(inputs), dict(keywords or {})).run_decompositions(table(False))
    signature, graph = program.graph_signature, program.graph_module.graph
    mutated = [*signature.buffers_to_mutate.values(), *signature.user_inputs_to_mutate.values()]
    if mutated:
        refuse("heddle.torch.export", f"the module changes {mutated[0]} in place", "Call module.eval() first, or return the new value")
    values = _constants(program)
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    read = [node for node in placeholders if is_tensor(node) and (node.name not in values or node.users)]
    results = list(graph.output_node().args[0])
    if not all(isinstance(one, Node) and is_tensor(one) for one in results):
        refuse("heddle.torch.export", "an output is no tensor", "Return tensors only")
    part = Part([node for node in graph.nodes if node.op == "call_function" and is_tensor(node)], read, results)
    device = device_of(graph)
    _refuse_what_has_no_kernel(part, device)
    text, *_ = lower_part(part, {}, Layout.plain, ([node.name for node in read], _names_of(program, len(results))))
    constants = {node.name: values[node.name].detach().contiguous().cpu() for node in read if node.name in values}
    target = "cpu" if device.type == "cpu" else f"cuda:{device.index or 0}"
    model = Model(text.encode(), {"target": target, **options, "constants": constants})
    model.save(path)
    return model


def _constants(program: Any) -> Dict[str, torch.Tensor]:
    """Parameters, buffers and other tensors of the module, by the names of their placeholders."""
    signature = program.graph_signature
    known = {**program.constants, **program.state_dict}
    named = {**signature.inputs_to_parameters, **signature.inputs_to_buffers, **signature.inputs_to_lifted_tensor_constants}
    return {placeholder: known[name] for placeholder, name in named.items()}


def _names_of(program: Any, count: int) -> List[str]:
    """The keys where the module returns a dictionary of tensors."""
    spec = program.call_spec.out_spec
    if spec.type is dict and len(spec.context) == count:
        return [str(key) for key in spec.context]
    return [f"y{i}" for i in range(count)]


def _refuse_what_has_no_kernel(part: Part, device: torch.device) -> None:
    found = [(node, why_not(node, {}, device)) for node in part.nodes if not is_item(node)]
    listed = "; ".join(f"{node.target}{' at ' + line_of(node) if line_of(node) else ''} ({reason})" for node, reason in found if reason)
    if listed:
        why, remedy = f"a plan has no PyTorch, which would have to run {listed}", "Call module.eval() if these are random, or compute them outside"
        raise make(301, "heddle.torch.export", why, remedy, f"heddle.torch.export: {why}. {remedy}")
