"""Numbers that a module writes into tensors or makes tensors of, as `x[0] = 2` and `torch.tensor(2.0)` do.

PyTorch traces such a number as a tensor on the CPU. A kernel on a GPU cannot read it, and a CUDA graph cannot hold the copy to
the device.
"""
from operator import attrgetter

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx import GraphModule

from heddle.torch.rewriting import emit

aten = torch.ops.aten


def make_numbers_operators(module: GraphModule, device: torch.device) -> None:
    """Replaces tensors of one number by nodes that make them on `device`, for readers there."""
    graph = module.graph
    for node in list(graph.nodes):
        source = node.args[0] if node.target is aten.lift_fresh_copy.default else None
        if not isinstance(source, torch.fx.Node) or source.op != "get_attr" or node.meta["val"].dim() != 0:
            continue
        with unset_fake_temporarily():
            number = attrgetter(str(source.target))(module).item()
        readers = [user for user in node.users if isinstance(user.meta.get("val"), torch.Tensor) and user.meta["val"].device == device]
        if readers:
            made = emit(node, aten.full.default, ([], number), {"dtype": node.meta["val"].dtype, "device": device})
            for reader in readers:
                reader.replace_input_with(node, made)
        for one in (node, source):
            if not one.users:
                graph.erase_node(one)
