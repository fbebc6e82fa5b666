"""compile() and Model."""
import json
import os
from dataclasses import dataclass, field
from typing import Any, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union, Unpack

from heddle import _core, _html
from heddle._options import Options, did_you_mean, refuse, require_known
from heddle._profile import Profile
from heddle._report import Report


class Port(NamedTuple):
    """An input or output: its name, dtype ("f32", "i64", ...) and the shape that compile() planned for.

    `alias`: the input in whose memory an output may lie (compile(..., alias=...)); "" for none.
    """

    name: str
    dtype: str
    shape: Tuple[int, ...]
    alias: str = ""


class Memory(NamedTuple):
    """Bytes of a model's constants, and of the intermediate values of a run."""

    constants: int
    values: int


@dataclass(frozen=True)
class Kernel:
    """A kernel of a model: the C++ or CUDA text that was compiled, below a comment on what it does."""

    symbol: str
    file_name: str
    text: str = field(repr=False)

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return _html.details(self.file_name, _html.text(self.text), is_open=True)


class Kernels(List[Kernel]):
    """The kernels of a model, equal ones once, in the order in which the model first uses them."""

    def _repr_html_(self) -> str:
        return "".join(_html.details(f"{i + 1}: {k.file_name}", _html.text(k.text)) for i, k in enumerate(self))


class Explanation(Report):
    """What became of a model: `text` is a summary, which a notebook shows with a picture of the kernels.

    As a mapping it has every group, kernel and decision with its reason (`heddle explain --json`).
    """

    def __init__(self, source: Any, verbose: bool):
        super().__init__(source.explain(verbose), source.explain_json)
        self._source = source

    @property
    def svg(self) -> str:
        """The model's kernels as a picture."""
        return self._source.svg()

    def _repr_html_(self) -> str:
        return super()._repr_html_() + self.svg


def source_of(model: Any, options: Mapping[str, Any], where: str) -> Any:
    """A _core.Source of what compile() and the tools are called with; `where`: the function that is called."""
    require_known(options, where)
    if options.get("kernels"):
        options = {**options, "kernels": _operators(options["kernels"])}
    if isinstance(model, Model):
        if not options:
            return model._source
        return _core.Source(model._given, {**model._options, **options})
    return _core.Source(_path_or_bytes(model), dict(options))


def _path_or_bytes(model: Any) -> Union[str, bytes]:
    if isinstance(model, (str, os.PathLike)):
        return os.fsdecode(model)
    if isinstance(model, (bytes, bytearray, memoryview)):
        return bytes(model)
    if hasattr(model, "SerializeToString"):
        try:
            return model.SerializeToString()
        except Exception as reason:  # protobuf has a limit of 2 GB
            refuse("model", f"the ModelProto cannot be serialised: {reason}",
                   "Save it with onnx.save(..., save_as_external_data=True) and give the path")
    refuse("model", f"a {type(model).__name__} is no model",
           "Give the path of an ONNX or plan file, its bytes, or an onnx.ModelProto")


def _operators(kernels: Any) -> dict:
    """The operators for nodes by "domain::Name"."""
    from heddle.tile.runtime.operators import Operator, operator

    if not isinstance(kernels, Mapping):
        refuse("kernels", f"a {type(kernels).__name__} is no mapping", 'Write kernels={"domain::Name": operator}')
    for name, given in kernels.items():
        if not isinstance(name, str) or name.count("::") != 1:
            refuse("kernels", f"{name!r} names no operator of a model", 'Write "domain::Name"')
        if hasattr(given, "inline") or not (isinstance(given, Operator) or callable(given)):
            refuse("kernels", f"what is given for {name} is {'a kernel' if hasattr(given, 'inline') else type(given).__name__} and no operator",
                   "Give a function that makes the results and launches the kernel, under @heddle.tile.operator")
    return {name: operator(given) for name, given in kernels.items()}


def _arrays_by_name(inputs: Optional[Mapping[str, Any]]) -> dict:
    return dict(inputs or {})


def compile(model: Any, **options: Unpack[Options]) -> "Model":
    """Compiles a model, or takes it from the cache.

    model: the path of an ONNX file, textual IR or plan file; the bytes of an ONNX file or of textual IR; or an onnx.ModelProto.
    target: "cpu", "cuda" or "cuda:1".
    precision: what an f32 model is computed in: "f32", "tf32", "f16", "bf16".
    shapes: of inputs whose shape the model leaves open: {"x": (1, 3, 224, 224)}; and of those with a default (an
        initializer of the model) that calls are going to give.
    dims: of extents that the model leaves open, by name or by input and dimension: {"batch": 8, "x.1": (1, 512)}. A
        pair is a range, whose kernels are compiled in the background on a CPU. Other shapes stay allowed in calls.
    threads: of a CPU; 0: as many as cores that this process may use.
    kernels: operators of yours, made by heddle.tile.operator(), by the domain and name of the nodes that they compute:
        {"acme::Softmax": softmax}. They take the place of what the model or Heddle has for these nodes.
    alias: outputs in the memory of inputs, such as the caches of a decoder: {"present.*": "past.*"}, or "auto" for all
        outputs that are inputs with some elements replaced. A call with the input as `out` writes these elements only.
    rows: outputs [batch, rows, ...] of which one row for each element of the batch is computed, and the new inputs
        i64[batch] that name the rows: {"logits": "last"}. An index outside takes the nearest row.
    appended: outputs that are inputs with rows appended, such as the caches of a decoder, of which these rows alone are
        computed: {"present.*": "past.*"}.
    progress: called with a stage and the share of the work that is done, from 0 to 1, while it compiles.
    values: of inputs that decide shapes, and of text, by name.
    constants: values of inputs that become constants, by name: weights, which are folded and packed. The arrays are kept
        and must not change. The plan is not cached on disk.
    fusion: "none", "basic" or "stitch".
    cache: False compiles what is known already.
    tuned: False leaves aside what heddle.tune() found.
    background: False waits for the best kernels of each new shape.
    max_plans, max_plan_bytes: limit what is kept for shapes.
    callers_memory: True for a model whose every call has its arrays on the GPU: no device memory is allocated for others.
    limits: what reading the model may take: {"nodes": 5_000_000, "bytes": ..., "depth": ..., "seconds": ...}.
    external_data_links: True follows symbolic links to the model's data.

    Other threads run meanwhile. Raises heddle.ModelError, heddle.UnsupportedError (all operators that lack at once),
    heddle.InputError, heddle.MachineError.
    """
    given = {name: value for name, value in options.items() if value is not None}
    return Model(_path_or_bytes(model), given)


class Model:
    """A compiled model, made by heddle.compile(). Several threads may call it at once."""

    __slots__ = ("_core", "_source", "_given", "_options")

    def __init__(self, model: Union[str, bytes], options: Mapping[str, Any]):
        self._given, self._options = model, dict(options)
        self._source = source_of(model, options, "heddle.compile")
        self._core = _core.Model(self._source)
        self._options.pop("progress", None)

    @property
    def inputs(self) -> List[Port]:
        """The inputs in the model's order."""
        return [Port(*port) for port in self._core.inputs]

    @property
    def optional_inputs(self) -> List[Port]:
        """Further inputs that calls may pass by name; their defaults are constants of the compiled model.

        Which of them are given decides the plan, as shapes do. One that `shapes` of compile() names is one of `inputs`.
        """
        return [Port(*port) for port in self._core.optional_inputs]

    @property
    def outputs(self) -> List[Port]:
        """The outputs in the model's order."""
        return [Port(*port) for port in self._core.outputs]

    @property
    def device(self) -> str:
        """Where it runs: "cpu" or "cuda:N"."""
        return self._core.device

    @property
    def threads(self) -> int:
        """Threads of the CPU that a run uses."""
        return self._core.threads

    @property
    def memory(self) -> Memory:
        """What a run for the shapes of compile() takes on the device beside inputs and outputs."""
        return Memory(self._core.constant_bytes, self._core.arena_bytes)

    @property
    def from_cache(self) -> bool:
        """Whether compile() found the model compiled."""
        return self._core.from_cache

    def __call__(self, *arrays: Any, out: Any = None, workspace: Any = None, stream: Any = None, **named: Any) -> Any:
        """Runs the model on arrays in its order, by name, or both: its output, or a tuple where it has several.

        Arrays are dense, of the dtypes of `inputs`; nothing is converted in silence. Text is str, or a list or array of
        it (NumPy's dtypes "U", "S" and objects that are str), and is compiled for. All lie on the host, or all on the
        model's GPU. With host arrays the results are there when the call returns. With arrays on the GPU the run is put
        onto `stream` (by default the current one of the arrays' library) behind the work that is there, and the call
        returns at once: nothing is copied and nothing is waited for, and a stream that captures gets the run into its
        graph. Results are arrays of the library of the first input. `out`: arrays for the results in place of new ones,
        None where a new one is wanted, which overlap no input but the one that Port.alias names; `workspace`: device memory of workspace_bytes() for the run. Arrays may be let go when
        the call returns if their library reuses memory in the order of the stream, as torch and CuPy do.

        Shapes other than those of compile() are compiled when they occur. Raises heddle.InputError, which names the
        input, what was given, what is wanted and what to do.
        """
        results = self._core.run(arrays, named, out, workspace, stream)
        return results[0] if len(results) == 1 else tuple(results)

    def run(self, inputs: Mapping[str, Any], *, out: Optional[Mapping[str, Any]] = None, workspace: Any = None,
            stream: Any = None) -> dict:
        """The same with arrays by name, for inputs and results; results without an array in `out` get a new one."""
        names = [port[0] for port in self._core.outputs]
        given = None
        if out is not None:
            unknown = [name for name in out if name not in names]
            if unknown:
                refuse("out", f"the model has no output {unknown[0]}",
                       f"{did_you_mean(unknown[0], names)}The model's outputs are {', '.join(names)}")
            given = [out.get(name) for name in names]
        return dict(zip(names, self._core.run((), dict(inputs), given, workspace, stream)))

    def workspace_bytes(self, *shapes: Sequence[int]) -> int:
        """Bytes of device memory that a run on inputs of these shapes takes beside them; compiles for them.

        Without shapes: for those of compile(). Raises heddle.InputError for a model on a CPU, and
        heddle.UnsupportedError for one in which the host takes part in a run.
        """
        return self._core.prepare(self._shapes(shapes))[0]

    def output_shapes(self, *shapes: Sequence[int]) -> List[Tuple[int, ...]]:
        """Shapes of the outputs for inputs of these shapes; without shapes: for those of compile().

        Found without compiling a kernel. Raises heddle.InputError where the model does not take the shapes.
        """
        wanted = self._shapes(shapes)
        if wanted == [port.shape for port in self.inputs]:
            return [port.shape for port in self.outputs]
        by_name = {port.name: shape for port, shape in zip(self.inputs, wanted)}
        options = {name: value for name, value in self._options.items() if name != "dims"}
        told = json.loads(_core.Source(self._given, {**options, "shapes": by_name}).inspect()[1])
        if told["no_estimate"]:
            refuse("output_shapes", told["no_estimate"], "Run the model on these shapes")
        return [tuple(port["shape"]) for port in told["outputs"]]

    def _shapes(self, shapes: Sequence[Sequence[int]]) -> List[Tuple[int, ...]]:
        return [tuple(shape) for shape in shapes] or [port.shape for port in self.inputs]

    def explain(self, verbose: bool = False) -> Explanation:
        """What was fused, where the time goes, what holds it back; `verbose`: every decision and why."""
        return Explanation(self._source, verbose)

    def profile(self, inputs: Optional[Mapping[str, Any]] = None, *, seconds: float = 1, seed: int = 0) -> Profile:
        """Runs the model for about `seconds` and tells which of its nodes take the time.

        `inputs` are host arrays by name, those that lack are random by `seed`. The time of a kernel that computes several
        nodes is divided among them by samples of program counters, by an estimate where these lack; the rows are those of one run, on average, and sum to its time. Raises heddle.InputError for a
        model from a plan file.
        """
        return Profile(*self._source.profile(_arrays_by_name(inputs), seconds, seed))

    def kernels(self) -> Kernels:
        """The texts of the model's kernels. Raises heddle.InputError for a model from a plan file."""
        return Kernels(Kernel(*kernel) for kernel in self._source.kernels())

    def wait(self) -> None:
        """Returns when nothing is compiled in the background."""
        self._core.wait()

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes a plan file for the shapes of compile(), which compile() loads without compiler and source."""
        self._core.save(path)

    def __repr__(self) -> str:
        ports = ", ".join(f"{p.name}: {p.dtype}{list(p.shape)}" for p in self.inputs)
        results = ", ".join(f"{p.name}: {p.dtype}{list(p.shape)}" for p in self.outputs)
        return f"heddle.Model({ports} -> {results} on {self.device})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{kind}</td><td>{_html.html.escape(p.name)}</td><td>{p.dtype}{list(p.shape)}</td></tr>"
            for kind, ports in (("input", self.inputs), ("output", self.outputs)) for p in ports)
        return f"<table>{rows}</table><p>on {self.device}</p>"
