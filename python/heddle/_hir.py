"""Writes textual IR (docs/design/ir.md), node by node."""
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

Shape = Tuple[int, ...]


class Unsupported(Exception):
    """Why a node cannot be lowered: what PyTorch's own operator runs then is reported with this text."""


class Value(NamedTuple):
    """A tensor of the graph: dense, of one dtype ("f32") and shape."""

    name: str
    dtype: str
    shape: Shape


class Word(str):
    """An attribute that is written without quotes: a dtype or a constant."""


FLOATS = ("f64", "f32", "f16", "bf16")
INTEGERS = ("i64", "i32", "i16", "i8", "u8")


def _written(attribute: Any) -> str:
    if isinstance(attribute, Word):
        return attribute
    if isinstance(attribute, str):
        return '"' + attribute.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(attribute, (list, tuple, range)):
        return "[" + ",".join(str(int(one)) for one in attribute) + "]"
    return str(int(attribute))


def _number(value: Any, dtype: str) -> str:
    if dtype in FLOATS:
        return repr(float(value))
    return str(int(value))


class Writer:
    """Nodes in the order of emit(). `origin`, where set, is said of each node: the line of the user's program."""

    def __init__(self) -> None:
        self._parameters: List[str] = []
        self._lines: List[str] = []
        self._constants: dict = {}
        self._count = 0
        self.origin: Optional[str] = None

    def parameter(self, dtype: str, shape: Shape, name: str = "") -> Value:
        value = Value(f"%{name or f'p{len(self._parameters)}'}", dtype, tuple(shape))
        self._parameters.append(f"{value.name}: {self._type(dtype, shape)}")
        return value

    def emit(self, op: str, inputs: Sequence[Value], dtype: str, shape: Sequence[int], /, **attributes: Any) -> Value:
        return self.emit_all(op, inputs, [(dtype, tuple(shape))], **attributes)[0]

    def emit_all(self, op: str, inputs: Sequence[Value], results: Sequence[Tuple[str, Shape]], /, **attributes: Any) -> List[Value]:
        values = [Value(f"%{self._count + i}", dtype, shape) for i, (dtype, shape) in enumerate(results)]
        self._count += len(values)
        names = ", ".join(value.name for value in values)
        operands = ", ".join(value.name for value in inputs)
        written = ", ".join(f"{name} = {_written(attribute)}" for name, attribute in attributes.items())
        types = ", ".join(self._type(dtype, shape) for dtype, shape in results)
        origin = f" @{_written(self.origin)}" if self.origin else ""
        call = f"{op}({operands})" if inputs else op
        self._lines.append(f"  {names} = {call}{' {' + written + '}' if written else ''} : {types}{origin}")
        return values

    def constant(self, value: Any, dtype: str, shape: Sequence[int] = ()) -> Value:
        """A tensor with one number in all places."""
        text = _number(value, dtype)
        scalar = self._constants.get((text, dtype))
        if scalar is None:
            name = f"%c{len(self._constants)}"
            self._lines.append(f"  {name} = constant {{value = {dtype}[]{{{text}}}}}")
            scalar = self._constants[text, dtype] = Value(name, dtype, ())
        return scalar if not shape else self.emit("broadcast", [scalar], dtype, shape, shape=list(shape), dims=[])

    def numbers(self, values: Sequence[Any], dtype: str, shape: Sequence[int]) -> Value:
        """A constant tensor of these numbers in row-major order."""
        name = f"%{self._count}"
        self._count += 1
        listed = ", ".join(_number(value, dtype) for value in values)
        self._lines.append(f"  {name} = constant {{value = {self._type(dtype, shape)}{{{listed}}}}}")
        return Value(name, dtype, tuple(shape))

    def text(self, results: Sequence[Value], names: Sequence[str]) -> str:
        returned = ", ".join(f"{_written(str(name))} = {value.name}" for name, value in zip(names, results))
        return "\n".join([f"graph g({', '.join(self._parameters)}) {{", *self._lines, f"  return {returned}", "}", ""])

    @staticmethod
    def _type(dtype: str, shape: Sequence[int]) -> str:
        return f"{dtype}[{','.join(str(extent) for extent in shape)}]"
