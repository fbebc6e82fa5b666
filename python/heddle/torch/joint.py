"""Divides the joint graph of a training step into its forward and its backward graph: what is saved, and what is computed again."""
from typing import Any

import torch
from torch.fx import Graph
from torch.utils.checkpoint import CheckpointPolicy

from heddle.torch.pools import keep_places
from heddle.torch.random import NORMAL, UNIFORM, seed_random_operators

_SAME = (torch.ops.aten.alias.default, torch.ops.aten.detach.default)


def partitioned(joint: torch.fx.GraphModule, *arguments: Any, **words: Any) -> Any:
    """The forward and the backward graph of a joint one."""
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    seed_random_operators(joint.graph)
    _remove_aliases(joint.graph)
    keep_places(joint.graph)
    _recompute_random_numbers(joint.graph)
    joint.recompile()
    return min_cut_rematerialization_partition(joint, *arguments, **words)


def _remove_aliases(graph: Graph) -> None:
    """Of values that both an operator of the backward graph and others read: each would be saved beside its source."""
    for node in list(graph.nodes):
        if node.target in _SAME and node.args[0].op != "placeholder":
            node.replace_all_uses_with(node.args[0], delete_user_cb=lambda user: user.op != "output")
            if not node.users:
                graph.erase_node(node)


def _recompute_random_numbers(graph: Graph) -> None:
    """The seeds of a graph are some bytes, the masks of its dropouts are as many as its activations."""
    for node in graph.nodes:
        if node.target in (UNIFORM, NORMAL):
            node.meta["recompute"] = CheckpointPolicy.MUST_RECOMPUTE
