"""Puts nodes into a graph in place of others."""
from typing import Any

import torch
from torch.fx import Node


def emit(like: Node, target: Any, arguments: Any, words: Any) -> Node:
    """A node before `like` that says of itself what `like` does, but for its value."""
    of_node = torch.fx.node.map_arg
    with first_tensor(like).fake_mode:
        value = target(*of_node(tuple(arguments), lambda one: one.meta["val"]), **of_node(words, lambda one: one.meta["val"]))
    with like.graph.inserting_before(like):
        node = like.graph.call_function(target, tuple(arguments), words)
    node.meta = {**like.meta, "val": value}
    return node


def first_tensor(node: Node) -> Any:
    return next(one for one in torch.utils._pytree.tree_leaves(node.meta["val"]) if isinstance(one, torch.Tensor))


def replace(node: Node, made: Any) -> None:
    """Replaces a node by another, or a node of several results by a node for each of them."""
    results = [(made, node.meta["val"], [node])] if isinstance(made, Node) else [
        (one, value, [user for user in node.users if user.args[1] == i]) for i, (one, value) in enumerate(zip(made, node.meta["val"]))]
    for one, value, users in results:
        one.meta["val"] = value  # with its strides
        for user in users:
            user.replace_all_uses_with(one)
            node.graph.erase_node(user)
    if not isinstance(made, Node):
        node.graph.erase_node(node)
