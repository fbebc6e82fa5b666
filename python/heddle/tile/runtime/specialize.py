"""What a kernel is compiled for: of each argument its type, and the facts that make better code."""
import inspect
from typing import Any, Optional

from heddle.tile.language.types import BY_NAME, const, constexpr, dtype, parse_type, unwrap
from heddle.tile.runtime.arrays import address_of, element_type, is_array, type_of
from heddle.tile.tools.tensor_descriptor import TensorDescriptor

ALIGNMENT = 16

# What is known of an argument, as a key:
#   ("known", value)                            it is a constant
#   ("number", "i32", divisible)                a number; whether it is a multiple of 16
#   ("pointer", "*fp32", divisible)             an array; whether its address is a multiple of 16
#   ("tuple", fields, (of each element...))
#   ("descriptor", "*fp16", block, padding, number of dimensions)


class Parameter:
    """One parameter of a kernel, and what its annotation says."""

    def __init__(self, parameter: inspect.Parameter, specialize: bool, align: bool):
        self.name, self.parameter, self.specialize, self.align = parameter.name, parameter, specialize, align
        annotation = parameter.annotation
        written = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
        self.is_constexpr = annotation is constexpr or isinstance(annotation, str) and "constexpr" in annotation
        self.is_const = not self.is_constexpr and (annotation is const or isinstance(annotation, str) and annotation.endswith("const"))
        self.type = self._annotated(annotation, written)
        self.is_variadic = parameter.kind is inspect.Parameter.VAR_POSITIONAL

    @staticmethod
    def _annotated(annotation: Any, written: str) -> Optional[str]:
        """The type that an annotation fixes: tl.int64, "i64", "fp32"."""
        if isinstance(annotation, dtype) and not annotation.is_ptr():
            return annotation.ir
        word = written.rpartition(".")[2].strip("'\"")
        if isinstance(annotation, str) and word in BY_NAME and word != "bool":
            return BY_NAME[word].ir
        return None

    def facts(self, value: Any) -> tuple:
        value = unwrap(value)
        if self.is_constexpr:
            return ("known", hashable(value))
        if self.type is not None and isinstance(value, (int, float)):
            divides = self.specialize and self.align and isinstance(value, int) and value % ALIGNMENT == 0
            return ("number", self.type, divides)
        return facts_of(value, self.specialize, self.align, self.is_const)


def hashable(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(hashable, value))
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(map(hashable, value))
    return value


def facts_of(value: Any, specialize: bool = True, align: bool = True, is_const: bool = False) -> tuple:
    """What is known of a value."""
    kind = type(value)
    if value is None:
        return ("known", None)
    if kind is bool:
        return ("number", "i1", False)
    if kind is int:
        return _integer(value, specialize, align)
    if kind is float:
        return ("number", "f32", False)
    if isinstance(value, TensorDescriptor):
        return ("descriptor", "*" + type_of(value.base).name, tuple(value.block_shape), value.padding, len(value.shape))
    if is_array(value):
        return ("pointer", ("*k" if is_const else "*") + str(type_of(value)),
                specialize and align and address_of(value) % ALIGNMENT == 0)
    if isinstance(value, constexpr):
        return ("known", hashable(value.value))
    if isinstance(value, (tuple, list)):
        return ("tuple", getattr(value, "_fields", None), tuple(facts_of(one, specialize, align) for one in value))
    return _other(value, specialize, align, is_const)


def _integer(value: int, specialize: bool, align: bool) -> tuple:
    if specialize and value == 1:
        return ("known", 1)
    if -2**31 <= value < 2**31:
        type = "i32"
    elif 2**63 <= value < 2**64:
        type = "u64"
    elif -2**63 <= value < 2**63:
        type = "i64"
    else:
        raise OverflowError(f"argument {value} has more than 64 bits")
    return ("number", type, specialize and align and value % ALIGNMENT == 0)


def _other(value: Any, specialize: bool, align: bool, is_const: bool) -> tuple:
    """Numbers of NumPy, types in place of arrays (warmup), and functions, types and words as constants."""
    module = type(value).__module__
    if module == "numpy" and hasattr(value, "item"):
        return facts_of(value.item(), specialize, align, is_const)
    if isinstance(value, dtype) or type(value).__name__ == "dtype":
        return ("pointer", ("*k" if is_const else "*") + str(element_type(value)), specialize and align)
    if hasattr(value, "inline") or isinstance(value, str):
        return ("known", value)
    raise TypeError(f"an argument of type {module}.{type(value).__name__} is nothing that a kernel takes: arrays, numbers, None, tuples of "
                    "these and descriptors are; for what is known when it is compiled annotate the parameter with tl.constexpr")


def values_of(value: Any, facts: tuple) -> list:
    """What is passed to the kernel for an argument."""
    kind = facts[0]
    if kind == "known":
        return []
    if kind == "pointer":
        return [address_of(value)]
    if kind == "tuple":
        return [one for item, inner in zip(value, facts[2]) for one in values_of(item, inner)]
    if kind == "descriptor":
        return [address_of(value.base), *map(int, value.shape), *map(int, value.strides)]
    value = unwrap(value)
    return [float(value) if facts[1] in ("f16", "bf16", "f32", "f64") else int(value)]


def facts_of_signature(written: str) -> tuple:
    """Of an argument by its type alone, as ASTSource writes it: "*fp32", "i32"."""
    if written.startswith("*"):
        parse_type(written)
        return ("pointer", written, False)
    return ("number", parse_type(written).ir, False)


def arrays_in(values: Any) -> list:
    """All arrays among arguments."""
    found = []
    for value in values:
        if isinstance(value, TensorDescriptor):
            found.append(value.base)
        elif isinstance(value, (tuple, list)):
            found.extend(arrays_in(value))
        elif is_array(value):
            found.append(value)
    return found


def named_arrays(bound: dict) -> list:
    """The arrays among arguments with the names of their parameters."""
    return [(name, array) for name, value in bound.items() for array in arrays_in([value])]
