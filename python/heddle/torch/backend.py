"""The backend of torch.compile."""
import contextlib
import dataclasses
from functools import partial
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence

import torch

from heddle._errors import make
from heddle._options import did_you_mean, refuse
from heddle.torch.constants import make_numbers_operators
from heddle.torch.graph import CompiledGraph, device_of
from heddle.torch.joint import partitioned
from heddle.torch.part import line_of
from heddle.torch.random import seed_random_operators

_OLDEST = (2, 10)
# Kernels of a GPU are launched as graphs in each mode, so "reduce-overhead" changes nothing.
_MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
_OPTIONS = {"fallback": ("run", "error"), "execution": ("compiled", "reference"), "weights": ("watched", "fixed", "arguments")}

_BUDGET = "memory_budget"


@dataclasses.dataclass(eq=False)  # one within another may have seen the same graphs
class _Observer:
    graphs: List[CompiledGraph]
    keep_arguments: bool


_observers: List[_Observer] = []


@contextlib.contextmanager
def observed(keep_arguments: bool = False) -> Iterator[List[CompiledGraph]]:
    """Yields a list of the graphs that the block compiles. With `keep_arguments` each keeps copies of its last arguments."""
    observer = _Observer([], keep_arguments)
    _observers.append(observer)
    try:
        yield observer.graphs
    finally:
        _observers.remove(observer)


def fresh_backend() -> Callable[..., Any]:
    """The backend as an object of its own. Dynamo compiles a function again only for a backend that it has not met."""
    def heddle(module: Any, inputs: Sequence[Any], **words: Any) -> Any:
        return compile_graph(module, inputs, **words)
    return heddle


def compile_graph(module: Any, inputs: Sequence[Any], *, mode: Optional[str] = None, options: Optional[Dict[str, Any]] = None) -> Any:
    """What torch.compile calls for each graph of Dynamo's."""
    from torch._dynamo.backends.common import aot_autograd
    from heddle.torch.attention import keep_attention_whole, trains
    from heddle.torch.decompositions import Table
    from heddle.torch.large_logits import divide_large_logits
    from heddle.torch.warm_start import caching, compiler

    _check(mode, options or {})
    keep_attention_whole(module, inputs)
    divide_large_logits(module)
    build = partial(build_graph, options=dict(options or {}), tunes=(mode or "").startswith("max-autotune"))
    run = aot_autograd(fw_compiler=compiler("forward", build, _weights), bw_compiler=compiler("backward", build, _weights),
                       inference_compiler=compiler("inference", build, _weights), decompositions=Table(trains(inputs)),
                       partition_fn=partial(partitioned, budget=(options or {}).get("memory_budget")), keep_inference_input_mutations=True)
    with caching(module, build, options or {}):
        compiled = run(module, inputs)
    # It takes arguments one by one, and has the mark of the boxed function that it wraps: the minifier would believe it.
    vars(compiled).pop("_boxed_call", None)
    return compiled


def _check(mode: Optional[str], options: Dict[str, Any]) -> None:
    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if version < _OLDEST:
        refuse("torch.compile", f"torch is {torch.__version__}", "The backend heddle needs 2.10 or later")
    if mode not in (None, *_MODES):
        refuse("torch.compile: mode", f'there is no mode "{mode}"', f"{did_you_mean(str(mode), _MODES)}The modes are {', '.join(_MODES)}")
    names = [*_OPTIONS, _BUDGET]
    for name, value in options.items():
        if name not in names:
            refuse("torch.compile: options", f"there is no option {name}",
                   f"{did_you_mean(name, names)}The options of heddle are {', '.join(names)}")
        if name == _BUDGET:
            if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
                refuse(f"torch.compile: options: {name}", f"{value!r} is no number of bytes", "Give a positive integer")
            continue
        if value not in _OPTIONS[name]:
            refuse(f"torch.compile: options: {name}", f"{value!r} is no value of it", f"It is {' or '.join(_OPTIONS[name])}")


def build_graph(module: torch.fx.GraphModule, *, kind: str, weights: Sequence[int], options: Dict[str, Any], tunes: bool = False) -> CompiledGraph:
    """`weights`: positions of the arguments that are parameters and buffers of modules, where they seldom change."""
    if kind == "inference":
        seed_random_operators(module.graph)
    device = device_of(module.graph)
    make_numbers_operators(module, device)
    target = "cpu" if device.type == "cpu" else f"cuda:{device.index or 0}"
    words = {"target": target, "tunes": tunes, **({"threads": torch.get_num_threads()} if target == "cpu" else {})}
    graph = CompiledGraph(module, kind, None if options.get("execution") == "reference" else words,
                          weights if options.get("weights") != "arguments" else (), options.get("weights") == "fixed")
    if options.get("fallback") == "error" and graph.division.fallbacks:
        _refuse_fallbacks(graph)
    for observer in _observers:
        observer.graphs.append(graph)
        graph.keeps_arguments = graph.keeps_arguments or observer.keep_arguments
    return graph


def _weights(kind: str) -> Sequence[int]:
    """In a graph that is being compiled. Those of graphs with gradients change in each step."""
    context = torch._guards.TracingContext.try_get()
    metadata = context.fw_metadata if context and kind == "inference" else None
    return metadata.static_input_indices if metadata else ()


def _refuse_fallbacks(graph: CompiledGraph) -> None:
    listed = "; ".join(f"{one.node.target}{' at ' + line_of(one.node) if line_of(one.node) else ''} ({one.reason})"
                       for one in graph.division.fallbacks)
    why = f"PyTorch would have to run operators of the {graph.kind} graph: {listed}"
    raise make(301, "torch.compile", why, 'Leave options={"fallback": "error"} out', f"torch.compile: {why}")
