"""Operators of kernels: functions that make their results and launch kernels, for models and other frameworks."""
import functools
import math
import sys
import traceback
from typing import Any, Callable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from heddle._errors import make
from heddle.tile.language.types import BY_NAME, dtype as language_type
from heddle.tile.runtime.arrays import element_type
from heddle.tile.runtime.recording import Recorder, recording

# What other libraries call the types of the IR.
_LIBRARY_NAMES = {
    "i1": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16", "u32": "uint32",
    "u64": "uint64", "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "f8e4m3": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2", "f8e4m3b8": "float8_e4m3fnuz", "f8e5m2b16": "float8_e5m2fnuz",
}
# What models call those types that have another name there.
_MODEL_NAMES = {"i1": "bool", "f8e4m3b8": "f8e4m3fnuz", "f8e5m2b16": "f8e5m2fnuz"}
_OF_MODELS = {_MODEL_NAMES.get(ir, ir): BY_NAME[library] for ir, library in _LIBRARY_NAMES.items()}


class _Address(int):
    """Where a described array would be. A multiple of 16, as memory of models is."""

    array: "Described"


class Described:
    """An array of which shape and dtype are known and nothing else: what operators get when they are written down."""

    def __init__(self, shape: Sequence[int], element: language_type, name: str):
        self.shape, self.dtype, self.name, self.device = tuple(int(n) for n in shape), element, name, "cpu"
        if any(extent < 0 for extent in self.shape):
            raise ValueError(f"an array has no extents {list(self.shape)}")

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def numel(self) -> int:
        return math.prod(self.shape)

    def stride(self, axis: Optional[int] = None) -> Any:
        """In elements, of dense memory."""
        strides = tuple(math.prod(self.shape[i + 1:]) for i in range(len(self.shape)))
        return strides if axis is None else strides[axis]

    @property
    def strides(self) -> Tuple[int, ...]:
        """In bytes, as NumPy counts."""
        return tuple(stride * self.dtype.itemsize for stride in self.stride())

    def data_ptr(self) -> int:
        address = _Address(256)
        address.array = self
        return address

    def __repr__(self) -> str:
        return f"<{self.name}: {self.dtype}{list(self.shape)}>"


def empty(shape: Sequence[int], dtype: Any = None, *, like: Any) -> Any:
    """An array without content, of the library and on the device of another one, `like`; by default of its dtype, too.

    `dtype` is a type of the language (tl.float32) or of any library.
    """
    element = element_type(like.dtype if dtype is None else dtype)
    shape = tuple(shape)
    if isinstance(like, Described):
        return Described(shape, element, "an array that the operator makes")
    name = _LIBRARY_NAMES.get(element.ir)
    if name is None:
        raise TypeError(f"arrays of {element} exist in no library")
    if hasattr(like, "new_empty"):
        return like.new_empty(shape, dtype=getattr(sys.modules["torch"], name))
    if type(like).__module__ == "numpy":
        import numpy

        return numpy.empty(shape, numpy.dtype(name) if element.ir in _OF_NUMPY else getattr(sys.modules["ml_dtypes"], name))
    return _empty_of_others(shape, _MODEL_NAMES.get(element.ir, element.ir), name, like)


_OF_NUMPY = frozenset(ir for ir in _LIBRARY_NAMES if not ir.startswith(("bf", "f8")))


def _empty_of_others(shape: tuple, ours: str, name: str, like: Any) -> Any:
    import heddle
    from heddle._arrays import hooks_of
    from heddle.tile.runtime.arrays import HOST, device_of

    device = device_of(like)
    made = None if device is HOST else hooks_of(type(like)).empty(shape, name, device)
    return heddle.empty(shape, ours, device="cpu" if device is HOST else f"cuda:{device}") if made is None else made


def empty_like(array: Any, dtype: Any = None) -> Any:
    """An array without content, of the shape, library and device of another one."""
    return empty(array.shape, dtype, like=array)


class ProgramText(NamedTuple):
    """An operator for certain shapes: its launches as text, and the (dtype, shape) of each result."""

    text: str
    outputs: List[Tuple[str, Tuple[int, ...]]]


class _Program(Recorder):
    """Writes launches down (docs/design/tile-language.md, "Programs")."""

    def __init__(self, inputs: Sequence[Described]):
        self.inputs, self.kernels = list(inputs), {}
        self.launches: List[Tuple[int, tuple, list]] = []
        self.made: List[Described] = []

    def launch(self, kernel: Any, grid: Any, bound: dict, words: dict) -> None:
        from heddle.tile.runtime.kernel import Options, grid_of
        from heddle.tile.runtime.specialize import Call

        words.pop("stream", None)
        call, options = Call(), kernel.options_of(words)
        facts = tuple(parameter.read(value, call) for parameter, value in zip(kernel.params, bound.values()))
        for array in call.arrays:
            if not isinstance(array, Described):
                raise TypeError(f"{kernel.__name__} gets a {type(array).__name__}, which is neither an input of the operator nor made by "
                                "heddle.tile.empty() in it; constants are inputs of the node, too")
        if callable(grid):
            grid = grid({**bound, **options._asdict()})
        text = kernel.instance(facts, options, "cpu").ir
        number = self.kernels.setdefault(text, len(self.kernels))
        self.launches.append((number, grid_of(grid), [self._argument(value) for value in call.values]))

    def _argument(self, value: Any) -> Any:
        if not isinstance(value, _Address):
            return value.hex() if isinstance(value, float) else str(int(value))
        array = value.array
        if not _has(self.inputs, array) and not _has(self.made, array):
            self.made.append(array)
        return array

    def text(self, results: Sequence[Described]) -> str:
        buffers = [array for array in self.made if not _has(results, array)]
        names = {id(array): f"%{kind}{i}" for kind, arrays in (("in", self.inputs), ("out", results), ("buffer", buffers))
                 for i, array in enumerate(arrays)}
        lines = ["tile_program 1"]
        if buffers:
            lines.append("buffers " + " ".join(str(array.numel() * array.dtype.itemsize) for array in buffers))
        for number, grid, arguments in self.launches:
            written = " ".join(names.get(id(one), one) for one in arguments)
            lines.append(f"launch {number} grid {grid[0]} {grid[1]} {grid[2]} arguments {written}")
        return "\n".join(lines) + "\n" + "".join(self.kernels)


def _has(arrays: Sequence[Any], array: Any) -> bool:
    return any(one is array for one in arrays)


class Operator:
    """A function of arrays that makes its results by empty() and launches kernels: called, it runs.

    heddle.compile(..., kernels={"domain::Name": operator}) takes it for the nodes of that name, heddle.torch.operator()
    makes it one of PyTorch.
    """

    def __init__(self, fn: Callable):
        functools.update_wrapper(self, fn, updated=())
        self.fn = fn

    def __call__(self, *arrays: Any, **attributes: Any) -> Any:
        return self.fn(*arrays, **attributes)

    def program(self, inputs: Sequence[Optional[Tuple[str, Sequence[int]]]], attributes: Mapping[str, Any]) -> ProgramText:
        """The operator for inputs of such (dtype, shape), None for one that is not given, and attributes by name.

        The function is called with descriptions of arrays, and its launches are written down in place of run.
        """
        arrays = [one and Described(one[1], _element(one[0], i), f"input {i}") for i, one in enumerate(inputs)]
        given = [array for array in arrays if array is not None]
        with recording(_Program(given)) as program:
            results = self.fn(*arrays, **attributes)
        results = list(results) if isinstance(results, (tuple, list)) else [results]
        for i, array in enumerate(results):
            self._check_result(program, results, i, array)
        outputs = [(_MODEL_NAMES.get(array.dtype.ir, array.dtype.ir), array.shape) for array in results]
        return ProgramText(program.text(results), outputs)

    def _check_result(self, program: _Program, results: list, i: int, array: Any) -> None:
        if not isinstance(array, Described):
            raise TypeError(f"result {i} of {self.__name__} is a {type(array).__name__}; make results by heddle.tile.empty() and return them")
        if _has(program.inputs, array) or _has(results[:i], array):
            raise ValueError(f"result {i} of {self.__name__} is {array.name if _has(program.inputs, array) else 'returned twice'}; a result "
                             "is an array of its own")
        if not _has(program.made, array):
            raise ValueError(f"result {i} of {self.__name__} is written by no kernel")

    def told_program(self, node: str, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> ProgramText:
        """program() for a node of a model; what goes wrong is an error that names both."""
        try:
            return self.program(inputs, attributes)
        except Exception as error:
            why = f"its operator {self.__name__} fails: {_told(error)}"
            remedy = "Call the operator with arrays of these shapes to see it run"
            raise make(201, node, why, remedy, f"{node}: {why}. {remedy}") from error


def _element(name: str, position: int) -> language_type:
    if name not in _OF_MODELS:
        raise TypeError(f"input {position} has elements of {name}, which kernels do not know; they know {', '.join(sorted(_OF_MODELS))}")
    return _OF_MODELS[name]


def _told(error: BaseException) -> str:
    """An error with the line of the caller's that it comes from."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/heddle/" not in frame.filename]
    at = f" ({frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{at}"


def operator(fn: Callable) -> Operator:
    """Makes a function an operator: of a model, of PyTorch, and called with arrays, of itself.

        @heddle.tile.operator
        def softmax(x, axis=-1):
            y = heddle.tile.empty_like(x)
            rows, n = x.shape
            softmax_kernel[(rows,)](y, x, n, BLOCK=heddle.tile.next_power_of_2(n))
            return y

    The function makes its results by empty() or empty_like(), launches kernels, and returns the results: one, or a tuple.
    Attributes of a node are keywords. What it does otherwise depends on shapes, dtypes and attributes alone, since for a
    model it is called with descriptions of arrays, once for each set of shapes. An array that no launch writes has no
    content, and inputs are not written. `autotune` takes the first configuration there.
    """
    return fn if isinstance(fn, Operator) else Operator(fn)
