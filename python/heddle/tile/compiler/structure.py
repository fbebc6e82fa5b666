"""How values are carried through loops and branches: as the tensors in them."""
import ast
from typing import Any, Iterator

from heddle.tile.language.aggregates import aggregate_value
from heddle.tile.language.types import constexpr, unwrap
from heddle.tile.language.values import base_value, tensor, tuple
from heddle.tile.language.windows import window


def flatten(value: Any) -> list:
    """The tensors of which a value consists; none for what is known when the kernel is compiled."""
    if isinstance(value, tensor):
        return [value]
    if isinstance(value, tuple):
        return [part for one in value.values for part in flatten(one)]
    if isinstance(value, aggregate_value):
        return [part for one in value.values_of_fields() for part in flatten(one)]
    return value.parts() if isinstance(value, window) else []


def rebuild(value: Any, parts: Iterator[tensor]) -> Any:
    """A value like this one with other tensors in it."""
    if isinstance(value, tensor):
        return next(parts)
    if isinstance(value, tuple):
        return tuple([rebuild(one, parts) for one in value.values], value.fields)
    if isinstance(value, aggregate_value):
        return value.rebuilt_of([rebuild(one, parts) for one in value.values_of_fields()])
    if isinstance(value, window):
        return value.rebuilt([next(parts) for _ in value.parts()])
    return value


def shape_of_value(value: Any) -> Any:
    """What two values have to agree in to take each other's place."""
    if isinstance(value, tuple):
        return ("tuple", value.fields and (*value.fields,), *(shape_of_value(one) for one in value.values))
    if isinstance(value, aggregate_value):
        return ("aggregate", type(value), *(shape_of_value(one) for one in value.values_of_fields()))
    if isinstance(value, (tensor, window)):
        return value.type
    return ("known", unwrap(value))


def same(a: Any, b: Any) -> bool:
    """Whether two values may take each other's place."""
    left, right = shape_of_value(a), shape_of_value(b)
    return type(left) is type(right) and bool(left == right)


def described(value: Any) -> str:
    return f"constexpr[{value.value!r}]" if isinstance(value, constexpr) else repr(value)


def is_value(value: Any) -> bool:
    """Of the kernel, not of Python."""
    return isinstance(value, (base_value, constexpr))


def constant_of(value: Any) -> Any:
    """What a name that is annotated as a constexpr holds: a value of the run is one all the same, as in Triton."""
    return value if is_value(value) else constexpr(value)


def assigned_names(statements: list) -> list[str]:
    """The names that statements give a value to, in their order. Expressions may be deeper than Python's stack."""
    names: dict[str, None] = {}
    open_nodes = statements[::-1]
    while open_nodes:
        node = open_nodes.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names[node.id] = None
        open_nodes.extend(reversed(list(ast.iter_child_nodes(node))))
    return list(names)


def has_return(node: ast.AST) -> bool:
    return any(isinstance(inner, ast.Return) for inner in ast.walk(node))
