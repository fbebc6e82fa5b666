"""What a kernel is compiled for: of each argument its type, and the facts that make better code."""
import inspect
from typing import Any, Optional

from heddle._errors import InputError
from heddle.tile.language.types import BY_NAME, const, constexpr, dtype, parse_type, pointer_type, unwrap
from heddle.tile.runtime.arrays import access_of, address_of, element_type, is_read_only, type_of
from heddle.tile.tools.tensor_descriptor import TensorDescriptor

ALIGNMENT = 16

# What is known of an argument, as a key. Repeated launches are found by binding/launch_key.cc, which has to tell apart
# whatever has different facts here, and read-only arrays.
#   ("known", value)                            it is a constant
#   ("number", "i32", divisible)                a number; whether it is a multiple of 16
#   ("pointer", "*fp32", divisible)             an array; whether its address is a multiple of 16
#   ("tuple", fields, (of each element...))
#   ("descriptor", "*fp16", block, padding, number of dimensions)


class Parameter:
    """One parameter of a kernel, and what its annotation says."""

    def __init__(self, parameter: inspect.Parameter, specialize: bool, align: bool):
        self.name, self.parameter, self.specialize, self.align = parameter.name, parameter, specialize, align
        self.default, self.has_default = parameter.default, parameter.default is not inspect.Parameter.empty
        annotation = parameter.annotation
        written = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
        self.is_constexpr = annotation is constexpr or isinstance(annotation, str) and "constexpr" in annotation
        self.is_const = not self.is_constexpr and (annotation is const or isinstance(annotation, str) and annotation.endswith("const"))
        self.type = self._annotated(annotation, written)
        self.pointer = annotation if isinstance(annotation, pointer_type) else None
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

    def read(self, value: Any, call: "Call") -> tuple:
        """The facts of an argument; what is passed for it goes to the call. Raises ArgumentError for one that no kernel takes, or that
        is not what its annotation says."""
        if self.is_constexpr:
            return ("known", hashable(unwrap(value)))
        try:
            if self.is_variadic:
                return ("tuple", None, tuple([self._read(one, call) for one in value]))
            return self._read(value, call)
        except InputError as error:
            raise _refused(self.name, error.why, error.remedy) from None
        except (TypeError, OverflowError) as error:
            raise _refused(self.name, str(error)) from None

    def _read(self, value: Any, call: "Call") -> tuple:
        if self.type is not None:
            value = value.item() if type(value).__module__ == "numpy" and access_of(value) is None else value
            if isinstance(value, (int, float)):
                return self._number(value, call)
        facts = read(value, call, self.specialize, self.specialize and self.align, self.is_const)
        self._check_annotation(value, facts)
        return facts

    def _number(self, value: Any, call: "Call") -> tuple:
        """A number for a parameter whose annotation says its type."""
        is_float = self.type in _FLOATS
        if isinstance(value, float) and not is_float:
            raise TypeError(f"{value} is a float, and the kernel declares {self.name} as an integer ({self.type})")
        call.values.append(float(value) if is_float else int(value))
        return ("number", self.type, self.specialize and self.align and isinstance(value, int) and value % ALIGNMENT == 0)

    def _check_annotation(self, value: Any, facts: tuple) -> None:
        """Whether it is an array where the annotation says a pointer, and none where it says a number. None stands for either."""
        if value is None or isinstance(value, constexpr) or self.type is None and self.pointer is None and not self.is_const:
            return
        given = "an array" if facts[0] == "pointer" else f"a {type(value).__name__}"
        if self.type is not None:
            raise TypeError(f"{given} is given, and the kernel declares {self.name} as a number ({self.type})")
        if facts[0] not in ("pointer", "descriptor"):
            raise TypeError(f"{given} is given, and the kernel declares {self.name} as a pointer: give an array")
        if self.pointer is not None and facts[0] == "pointer" and parse_type(facts[1]).element_ty != self.pointer.element_ty:
            raise TypeError(f"an array of {parse_type(facts[1]).element_ty} is given, and the kernel declares {self.name} as a pointer to "
                            f"{self.pointer.element_ty}")


def _refused(name: str, why: str, remedy: str = "") -> Exception:
    from heddle.tile.compiler.errors import ArgumentError

    return ArgumentError(name, why, remedy)


_FLOATS = ("f16", "bf16", "f32", "f64")


class Call:
    """What a launch passes to the kernel, the arrays among its arguments, and which of the values are read-only ones' addresses."""

    __slots__ = ("values", "arrays", "read_only")

    def __init__(self):
        self.values: list = []
        self.arrays: list = []
        self.read_only: list = []

    def add_array(self, array: Any, address: int) -> None:
        if is_read_only(array):
            self.read_only.append((len(self.values), array))
        self.values.append(address)
        self.arrays.append(array)


def hashable(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(hashable, value))
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(map(hashable, value))
    return value


def read(value: Any, call: Call, specialize: bool = True, align: bool = True, is_const: bool = False) -> tuple:
    """The facts of a value."""
    kind = type(value)
    if kind is int:
        return _integer(value, call, specialize, align)
    access = access_of(value)
    if access is not None:
        address = access.address(value)
        call.add_array(value, address)
        return ("pointer", pointer_to(value.dtype, is_const), align and address % ALIGNMENT == 0)
    if value is None:
        return ("known", None)
    if kind is bool:
        call.values.append(int(value))
        return ("number", "i1", False)
    if kind is float:
        call.values.append(value)
        return ("number", "f32", False)
    return _other(value, call, specialize, align, is_const)


def _integer(value: int, call: Call, specialize: bool, align: bool) -> tuple:
    if specialize and value == 1:
        return ("known", 1)
    call.values.append(value)
    if -2**31 <= value < 2**31:
        type = "i32"
    elif 2**63 <= value < 2**64:
        type = "u64"
    elif -2**63 <= value < 2**63:
        type = "i64"
    else:
        raise OverflowError(f"argument {value} has more than 64 bits")
    return ("number", type, align and value % ALIGNMENT == 0)


_pointers: dict = {}


def pointer_to(array_dtype: Any, is_const: bool) -> str:
    """The type of a pointer to elements of an array's dtype, as signatures write it."""
    try:
        return _pointers[array_dtype, is_const]
    except KeyError:
        written = ("*k" if is_const else "*") + str(element_type(array_dtype))
        _pointers[array_dtype, is_const] = written
        return written


def _other(value: Any, call: Call, specialize: bool, align: bool, is_const: bool) -> tuple:
    """Tuples, descriptors, numbers of NumPy, types in place of arrays (warmup), functions, types and words as constants."""
    if isinstance(value, TensorDescriptor):
        call.add_array(value.base, address_of(value.base))
        call.values += [*map(int, value.shape), *map(int, value.strides[:-1])]  # the last stride is 1
        return ("descriptor", "*" + str(type_of(value.base)), tuple(value.block_shape), value.padding, len(value.shape))
    if isinstance(value, constexpr):
        return ("known", hashable(value.value))
    if isinstance(value, (tuple, list)):
        return ("tuple", getattr(value, "_fields", None), tuple([read(one, call, specialize, align) for one in value]))
    module = type(value).__module__
    if module == "numpy" and hasattr(value, "item"):
        return read(value.item(), call, specialize, align, is_const)
    if isinstance(value, dtype) or "dtype" in type(value).__name__.lower():
        call.values.append(0)
        return ("pointer", pointer_to(value, is_const), align)
    if hasattr(value, "inline") or isinstance(value, str):
        return ("known", value)
    raise TypeError(f"an argument of type {module}.{type(value).__name__} is nothing that a kernel takes: arrays, numbers, None, tuples of "
                    "these and descriptors are; for what is known when it is compiled annotate the parameter with tl.constexpr")


def facts_of_signature(written: str) -> tuple:
    """Of an argument by its type alone, as ASTSource writes it: "*fp32", "i32"."""
    if written.startswith("*"):
        parse_type(written)
        return ("pointer", written, False)
    return ("number", parse_type(written).ir, False)

