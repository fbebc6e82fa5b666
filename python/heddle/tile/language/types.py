"""Types of the language: numbers, pointers, tiles, tuples, and values that are known when a kernel is compiled."""
import enum
from typing import Any

# name in the language: (bits, kind, name in the IR, bits of the mantissa, bias of the exponent)
_NUMBERS = {
    "int1": (1, "bool", "i1", 0),
    "int8": (8, "signed", "i8", 0), "int16": (16, "signed", "i16", 0),
    "int32": (32, "signed", "i32", 0), "int64": (64, "signed", "i64", 0),
    "uint8": (8, "unsigned", "u8", 0), "uint16": (16, "unsigned", "u16", 0),
    "uint32": (32, "unsigned", "u32", 0), "uint64": (64, "unsigned", "u64", 0),
    "fp8e4nv": (8, "float", "f8e4m3", 3, 7), "fp8e4b8": (8, "float", "f8e4m3b8", 3, 8),
    "fp8e4b15": (8, "float", "f8e4m3b15", 3, 15), "fp8e5": (8, "float", "f8e5m2", 2, 15),
    "fp8e5b16": (8, "float", "f8e5m2b16", 2, 16),
    "fp16": (16, "float", "f16", 10, 15), "bf16": (16, "float", "bf16", 7, 127),
    "fp32": (32, "float", "f32", 23, 127), "fp64": (64, "float", "f64", 52, 1023),
    "void": (0, "void", "void", 0),
}


class base_type:
    """What every type is."""


class dtype(base_type):
    """A type of numbers. Two of the same name are equal."""

    class SIGNEDNESS(enum.Enum):
        SIGNED = 0
        UNSIGNED = 1

    class KIND(enum.Enum):
        BOOLEAN = 0
        INTEGRAL = 1
        FLOATING = 2

    def __init__(self, name):
        self.name = unwrap(name)
        if self.name not in _NUMBERS:
            raise ValueError(f"{self.name!r} is no type of the language; there are {', '.join(_NUMBERS)}")
        bits, self._kind, self.ir, *layout = _NUMBERS[self.name]
        self.primitive_bitwidth = bits
        self.itemsize = bits // 8
        if self._kind == "float":
            self.fp_mantissa_width, self.exponent_bias = layout
        elif self._kind != "void":
            self.int_bitwidth = bits
            self.int_signedness = self.SIGNEDNESS.SIGNED if self._kind == "signed" else self.SIGNEDNESS.UNSIGNED

    def is_floating(self):
        return self._kind == "float"

    def is_standard_floating(self):
        return self.is_floating() and not self.is_fp8()

    def is_fp8(self):
        return self._kind == "float" and self.primitive_bitwidth == 8

    def is_int(self):
        return self._kind in ("bool", "signed", "unsigned")

    def is_int_signed(self):
        return self._kind == "signed"

    def is_int_unsigned(self):
        return self._kind in ("bool", "unsigned")

    def is_bool(self):
        return self._kind == "bool"

    def kind(self):
        """bool < int < float, by value."""
        if self.is_bool():
            return self.KIND.BOOLEAN
        return self.KIND.INTEGRAL if self.is_int() else self.KIND.FLOATING

    def get_int_max_value(self):
        return 2 ** (self.int_bitwidth - (1 if self.is_int_signed() else 0)) - 1

    def get_int_min_value(self):
        return -2 ** (self.int_bitwidth - 1) if self.is_int_signed() else 0

    @staticmethod
    def is_dtype(name):
        return name in _NUMBERS

    def is_void(self):
        return self.name == "void"

    def is_block(self):
        return False

    def is_ptr(self):
        return False

    def is_const(self):
        return False

    @property
    def scalar(self):
        return self

    @property
    def shape(self):
        return ()

    @property
    def numel(self):
        return 1

    def with_element_ty(self, element):
        return element

    def __eq__(self, other):
        other = unwrap(other)
        return type(other) is dtype and type(self) is dtype and self.name == other.name

    def __hash__(self):
        return hash(self.name)

    def __str__(self):
        return self.name

    def __repr__(self):
        return self.name


def _ask_by_name(name):
    def ask(self):
        return self.name == name

    return ask


for _name in _NUMBERS:
    setattr(dtype, f"is_{_name}", _ask_by_name(_name)) if _name != "void" else None


class pointer_type(dtype):
    """A pointer to elements of a type; of a constant one nothing is stored."""

    def __init__(self, element_ty, address_space=1, const=False):
        element_ty = unwrap(element_ty)
        if not isinstance(element_ty, dtype):
            raise TypeError(f"element_ty is a {type(element_ty).__name__}, and no type of the language")
        self.element_ty, self.address_space, self.const = element_ty, address_space, const
        self.name = f"pointer<{element_ty}>" if not const else f"const_pointer<{element_ty}>"
        self._kind, self.ir, self.primitive_bitwidth, self.itemsize = "pointer", f"ptr<{element_ty.ir}>", 64, 8

    def is_ptr(self):
        return True

    def is_const(self):
        return self.const

    def __eq__(self, other):
        other = unwrap(other)
        return isinstance(other, pointer_type) and (self.element_ty, self.const) == (other.element_ty, other.const)

    def __hash__(self):
        return hash((self.element_ty, self.const))


class block_type(dtype):
    """A tile: elements of a type in a shape of at least one dimension, of any extents."""

    def __init__(self, element_ty, shape):
        self.element_ty = unwrap(element_ty)
        self.shape_ = tuple(int(unwrap(extent)) for extent in unwrap_all(shape))
        if not self.shape_:
            raise TypeError("a tile has at least one dimension")
        self.name = f"<{list(self.shape_)}, {self.element_ty}>"
        self._kind, self.primitive_bitwidth = "tile", self.element_ty.primitive_bitwidth
        self.ir = f"tile<{'x'.join(map(str, self.shape_))}x{self.element_ty.ir}>"

    def is_block(self):
        return True

    @property
    def shape(self):
        return self.shape_

    @property
    def numel(self):
        count = 1
        for extent in self.shape_:
            count *= extent
        return count

    @property
    def scalar(self):
        return self.element_ty

    def get_block_shapes(self):
        return self.shape_

    def with_element_ty(self, element):
        return block_type(element, self.shape_)

    def __eq__(self, other):
        other = unwrap(other)
        return isinstance(other, block_type) and (self.element_ty, self.shape_) == (other.element_ty, other.shape_)

    def __hash__(self):
        return hash((self.element_ty, self.shape_))


class tuple_type(base_type):
    """The types of a tuple; `fields` are the names of a namedtuple's."""

    def __init__(self, types, fields=None):
        self.types, self.fields = list(types), fields

    def __eq__(self, other):
        return isinstance(other, tuple_type) and self.types == other.types and self.fields == other.fields

    def __hash__(self):
        return hash(tuple(self.types))

    def __iter__(self):
        return iter(self.types)

    def __getitem__(self, index):
        return self.types[index]

    def __str__(self):
        return f"[{','.join(map(str, self.types))}]"

    __repr__ = __str__


class constexpr_type(base_type):
    """The type of one value that is known when the kernel is compiled."""

    def __init__(self, value):
        self.value = unwrap(value)

    def __eq__(self, other):
        return isinstance(other, constexpr_type) and self.value == other.value

    def __hash__(self):
        return hash((type(self), self.value))

    def __str__(self):
        return f"constexpr[{self.value!r}]"

    __repr__ = __str__


class constexpr:
    """A value that is known when a kernel is compiled. What is computed of such values alone is one again."""

    def __init__(self, value):
        while isinstance(value, constexpr):
            value = value.value
        self.value = value

    @property
    def type(self):
        return constexpr_type(self.value)

    def __repr__(self):
        return f"constexpr[{self.value!r}]"

    def __hash__(self):
        return hash((self.value, "constexpr"))

    def __index__(self):
        return self.value

    def __bool__(self):
        return bool(self.value)

    def __iter__(self):
        return iter(self.value)

    def __len__(self):
        return len(self.value)

    def __call__(self, *arguments, **keywords):
        return self.value(*arguments, **keywords)

    def __getitem__(self, index):
        return constexpr(self.value[unwrap(index)])

    def __not__(self):
        return constexpr(not self.value)

    def logical_and(self, other):
        return constexpr(self.value and unwrap(other))

    def logical_or(self, other):
        return constexpr(self.value or unwrap(other))

    def __pos__(self):
        return constexpr(+self.value)

    def __neg__(self):
        return constexpr(-self.value)

    def __invert__(self):
        return constexpr(~self.value)


_PYTHON_OPERATORS = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "truediv": lambda a, b: a / b,
    "floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b, "pow": lambda a, b: a**b, "and": lambda a, b: a & b,
    "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b, "lshift": lambda a, b: a << b, "rshift": lambda a, b: a >> b,
    "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b,
}


def _forward(compute, name):
    def method(self, other):
        other = unwrap(other)
        if hasattr(other, "handle"):  # a value of the kernel: its own rules decide
            return NotImplemented
        return constexpr(compute(self.value, other))

    def reverse(self, other):
        return constexpr(compute(unwrap(other), self.value))

    method.__name__ = f"__{name}__"
    return method, reverse


for _name, _compute in _PYTHON_OPERATORS.items():
    _method, _reverse = _forward(_compute, _name)
    setattr(constexpr, f"__{_name}__", _method)
    if _name not in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(constexpr, f"__r{_name}__", _reverse)


class const:
    """Annotates a pointer argument whose elements are only read."""


class PropagateNan(enum.Enum):
    """What minimum, maximum and clamp do where one operand is NaN: NONE takes the other, ALL gives NaN."""

    NONE = 0
    ALL = 0xFFFF


def unwrap(value: Any) -> Any:
    """The value of a constexpr; anything else as it is."""
    return value.value if isinstance(value, constexpr) else value


def unwrap_all(values: Any) -> list:
    """The values of a tuple, list, language tuple or constexpr of one; of a single value a list of one."""
    values = unwrap(values)
    if isinstance(values, (tuple, list)) or hasattr(values, "values"):
        return [unwrap(value) for value in (values.values if hasattr(values, "values") else values)]
    return [values]


void = dtype("void")
int1, int8, int16, int32, int64 = (dtype(f"int{bits}") for bits in (1, 8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (dtype(f"uint{bits}") for bits in (8, 16, 32, 64))
float8e4nv, float8e4b8, float8e4b15 = dtype("fp8e4nv"), dtype("fp8e4b8"), dtype("fp8e4b15")
float8e5, float8e5b16 = dtype("fp8e5"), dtype("fp8e5b16")
float16, bfloat16, float32, float64 = dtype("fp16"), dtype("bf16"), dtype("fp32"), dtype("fp64")
pi32_t = pointer_type(int32)


def get_int_dtype(bitwidth: int, signed: bool) -> dtype:
    """The integer of so many bits."""
    return int1 if bitwidth == 1 else dtype(f"{'' if signed else 'u'}int{bitwidth}")


# Short names, as signatures are written and arrays name their types.
BY_NAME = {
    "i1": int1, "u1": int1, "i8": int8, "i16": int16, "i32": int32, "i64": int64, "u8": uint8, "u16": uint16, "u32": uint32,
    "u64": uint64, "fp8e4nv": float8e4nv, "fp8e4b8": float8e4b8, "fp8e4b15": float8e4b15, "fp8e5": float8e5,
    "fp8e5b16": float8e5b16, "fp16": float16, "bf16": bfloat16, "fp32": float32, "fp64": float64, "f16": float16,
    "f32": float32, "f64": float64, "bool": int1, "int1": int1, "int8": int8, "int16": int16, "int32": int32,
    "int64": int64, "uint8": uint8, "uint16": uint16, "uint32": uint32, "uint64": uint64, "float16": float16,
    "bfloat16": bfloat16, "float32": float32, "float64": float64, "float8_e4m3fn": float8e4nv, "float8_e5m2": float8e5,
    "float8e4nv": float8e4nv, "float8e4b8": float8e4b8, "float8e4b15": float8e4b15, "float8e5": float8e5,
    "float8e5b16": float8e5b16, "float8_e4m3fnuz": float8e4b8, "float8_e5m2fnuz": float8e5b16, "f8e4m3": float8e4nv,
    "f8e5m2": float8e5, "f8e4m3fnuz": float8e4b8, "f8e5m2fnuz": float8e5b16,
}


def parse_type(name: str) -> dtype:
    """The type that a signature writes as "fp32", "*fp16" or "*k fp16" (a pointer to constants)."""
    if name.startswith("*"):
        const = name.startswith("*k")
        return pointer_type(parse_type(name[2 if const else 1:].strip()), const=const)
    if name not in BY_NAME:
        raise ValueError(f"{name!r} names no type; write one of {', '.join(sorted(BY_NAME))}, or '*' before one for a pointer")
    return BY_NAME[name]
