"""verify, tune, bench and inspect."""
import json
from dataclasses import dataclass, field
from typing import Any, Mapping, Optional

from heddle import _html
from heddle._model import Model, _arrays_by_name, compile, source_of


@dataclass(frozen=True)
class Report:
    """What a tool found: `text` as the command `heddle` prints it, `data` as its --json."""

    text: str = field(repr=False)
    data: Mapping[str, Any]

    @property
    def ok(self) -> bool:
        """False where verification failed or a problem could not be measured."""
        return bool(self.data.get("ok", not self.data.get("failed")))

    def __bool__(self) -> bool:
        return self.ok

    def __getitem__(self, name: str) -> Any:
        return self.data[name]

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return _html.text(self.text)


@dataclass(frozen=True)
class BenchResult:
    """Times of runs in milliseconds. `floor_ms`: the least time that the machine allows. Those of the device, and its
    bytes in use, are None on a CPU; `waiting`: the share of the time that a thread waited for a processor, more than
    0.1 on a busy machine, where times say little; with host arrays a run has copies to and from the device beside them."""

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


def _report(pair) -> Report:
    return Report(pair[0], json.loads(pair[1]))


def verify(model: Any, inputs: Optional[Mapping[str, Any]] = None, *, seed: int = 0, **options: Any) -> Report:
    """Compares a model's results with a float64 reference.

    `model` is a path, the bytes of an ONNX file, an onnx.ModelProto or a heddle.Model; `inputs` are host arrays by
    name, those that lack are random by `seed`; `options` are those of heddle.compile(). The report is true where every
    output is within the bound of its type, and names the first group of nodes that diverges where one is not. Raises
    heddle.Error, for a plan file, too, which has no graph.
    """
    return _report(source_of(model, options).verify(_arrays_by_name(inputs), seed))


def tune(model: Any, *, seconds: float = 60, candidates: int = 12, again: bool = False, **options: Any) -> Report:
    """Measures the configurations of a model's contractions and keeps the winners for later compilations.

    Measuring ends after about `seconds`, the heaviest problems first; `candidates` is the most for one problem; `again`
    measures what is known already. `model` and `options` as for verify(). Raises heddle.Error.
    """
    return _report(source_of(model, options).tune(seconds, candidates, again))


def inspect(model: Any, **options: Any) -> Report:
    """Inputs, outputs, operators, memory and what is not supported of a model; compiles nothing."""
    return _report(source_of(model, options).inspect())


def bench(model: Any, inputs: Optional[Mapping[str, Any]] = None, *, seconds: float = 2, seed: int = 0,
          **options: Any) -> BenchResult:
    """Runs a model on host arrays for about `seconds` and tells how long that took.

    `inputs` that lack are random by `seed`. `model` and `options` as for verify(). Raises heddle.Error.
    """
    compiled = model if isinstance(model, Model) and not options else compile(model, **options)
    return BenchResult(**compiled._core.bench(_arrays_by_name(inputs), seconds, seed))
