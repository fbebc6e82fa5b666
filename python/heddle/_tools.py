"""verify, tune, bench and inspect."""
from typing import Any, Literal, Mapping, Optional, Unpack

from heddle._model import Model, _arrays_by_name, compile, source_of
from heddle._options import Options, require_known
from heddle._report import Report


class BenchResult(Report):
    """Times of runs in milliseconds. `floor_ms`: the least time that the machine allows. Those of the device, and its
    bytes in use, are None on a CPU; `waiting`: the share of the time that a thread waited for a processor, more than
    0.1 on a busy machine, where times say little; `energy`: `joules` of a run and how they were measured, or `why_not`; with host arrays a run has copies to and from the device beside them."""

    runs: int
    p10_ms: float
    p50_ms: float
    p90_ms: float
    cpu_ms: float
    floor_ms: float
    threads: int
    waiting: float
    device_p10_ms: Optional[float] = None
    device_p50_ms: Optional[float] = None
    device_p90_ms: Optional[float] = None
    device_cold_p50_ms: Optional[float] = None
    device_bytes: Optional[int] = None
    energy: Mapping[str, Any]

    def __init__(self, text: str, form: str):
        super().__init__(text, form)
        self.__dict__.update(self.data)


def verify(model: Any, inputs: Optional[Mapping[str, Any]] = None, *, seed: int = 0, **options: Unpack[Options]) -> Report:
    """Compares a model's results with a float64 reference.

    `model` is a path, the bytes of an ONNX file, an onnx.ModelProto or a heddle.Model; `inputs` are host arrays by
    name, those that lack are random by `seed`; `options` are those of heddle.compile(). The report is true where every
    output is within the bound of its type, and names the first group of nodes that diverges where one is not. Raises
    heddle.Error, for a plan file, too, which has no graph.
    """
    return Report(*source_of(model, options, "heddle.verify").verify(_arrays_by_name(inputs), seed))


def tune(model: Any, *, seconds: float = 60, candidates: int = 12, again: bool = False,
         objective: Literal["time", "energy"] = "time", **options: Unpack[Options]) -> Report:
    """Measures the configurations of a model's contractions and keeps the winners for later compilations.

    Measuring ends after about `seconds`, the heaviest problems first; `candidates` is the most for one problem; `again`
    measures what is known already. `objective` is what the winner takes the least of. `model` and `options` as for verify(). Raises heddle.Error.
    """
    if objective not in ("time", "energy"):
        raise ValueError(f"objective is 'time' or 'energy', not {objective!r}")
    return Report(*source_of(model, options, "heddle.tune").tune(seconds, candidates, again, objective == "energy"))


def inspect(model: Any, **options: Unpack[Options]) -> Report:
    """Inputs, outputs, operators, memory and what is not supported of a model; compiles nothing."""
    return Report(*source_of(model, options, "heddle.inspect").inspect())


def bench(model: Any, inputs: Optional[Mapping[str, Any]] = None, *, seconds: float = 2, seed: int = 0,
          **options: Unpack[Options]) -> BenchResult:
    """Runs a model on host arrays for about `seconds` and tells how long that took.

    `inputs` that lack are random by `seed`. `model` and `options` as for verify(). Raises heddle.Error.
    """
    require_known(options, "heddle.bench")
    compiled = model if isinstance(model, Model) and not options else compile(model, **options)
    return BenchResult(*compiled._core.bench(_arrays_by_name(inputs), seconds, seed))
