"""Classes whose values are made of those of the language."""
from typing import Any

from heddle.tile.language.promotion import is_number, to_tensor
from heddle.tile.language.types import base_type, constexpr, unwrap
from heddle.tile.language.values import base_value, tensor, tuple


class aggregate_type(base_type):
    """The type of such a value: its class, and what its fields are."""

    def __init__(self, cls: type, types: tuple):
        self.cls, self.types = cls, types

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, aggregate_type) and self.cls is other.cls and self.types == other.types

    def __hash__(self) -> int:
        return hash((self.cls, *self.types))

    def __str__(self) -> str:
        return self.cls.__name__

    __repr__ = __str__


class aggregate_value(base_value):
    """What classes with @aggregate derive from."""

    aggregate_fields: dict = {}

    @property
    def type(self) -> aggregate_type:
        return aggregate_type(type(self), [getattr(value, "type", value) for value in self.values_of_fields()])

    def values_of_fields(self) -> list:
        return [getattr(self, name) for name in self.aggregate_fields]

    def rebuilt_of(self, values: list) -> "aggregate_value":
        made = object.__new__(type(self))
        made.__dict__.update(zip(self.aggregate_fields, values))
        return made

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.values_of_fields()))})"


def _field(owner: type, name: str, annotation: Any, value: Any) -> Any:
    """A value as its field holds it."""
    if annotation is constexpr:
        if isinstance(value, base_value) and not isinstance(value, tuple):
            raise TypeError(f"{owner.__name__}.{name} is a constexpr, and {value!r} is not known when the kernel is compiled")
        return value if isinstance(value, (constexpr, tuple)) else constexpr(value)
    if annotation is tensor and is_number(unwrap(value)):
        return to_tensor(value)
    plain = unwrap(value)
    if isinstance(annotation, type) and not isinstance(plain, annotation):
        raise TypeError(f"{owner.__name__}.{name} is a {annotation.__name__}, not a {value!r}")
    return value if isinstance(value, (base_value, constexpr)) else constexpr(value)


def aggregate(cls: type) -> type:
    """Makes a class with annotated fields one whose values kernels pass around, carry through loops and return.

    Its methods are @jit functions; without an `__init__` of its own it takes its fields, in their order.
    """
    fields = dict(cls.__dict__.get("__annotations__", {}))
    own = cls.__dict__.get("__init__")
    members = {name: value for name, value in cls.__dict__.items() if name not in ("__dict__", "__weakref__", "__init__")}

    def __init__(self, *arguments, **keywords):
        if own is not None:
            (own.fn if hasattr(own, "fn") else own)(self, *arguments, **keywords)
        else:
            names = [name for name in fields]
            given = {**dict(zip(names, arguments)), **keywords}
            if len(arguments) > len(names) or set(given) - set(names):
                raise TypeError(f"{cls.__name__} has the fields {', '.join(names)}")
            for name in names:
                setattr(self, name, given[name] if name in given else getattr(cls, name))
        missing = [name for name in fields if name not in self.__dict__]
        if missing:
            raise TypeError(f"{cls.__name__}.__init__ does not set {', '.join(missing)}")

    def __setattr__(self, name, value):
        if name not in fields:
            raise AttributeError(f"{cls.__name__} has no field {name!r}; it has {', '.join(fields)}")
        self.__dict__[name] = _field(cls, name, fields[name], value)

    members.update(__init__=__init__, __setattr__=__setattr__, aggregate_fields=fields, __qualname__=cls.__qualname__,
                   tile_function=True)
    return type(cls.__name__, (aggregate_value,), members)


def aggregate_replace(instance: aggregate_value, **changes: Any) -> aggregate_value:
    """The value with other fields in place of some."""
    values = {name: getattr(instance, name) for name in instance.aggregate_fields}
    for name, value in changes.items():
        if name not in values:
            raise AttributeError(f"{type(instance).__name__} has no field {name!r}")
        values[name] = _field(type(instance), name, instance.aggregate_fields[name], value)
    return instance.rebuilt_of(list(values.values()))


aggregate_replace.tile_builtin = True
