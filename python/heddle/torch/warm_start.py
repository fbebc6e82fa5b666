"""Graphs in AOTAutograd's cache on disk: a later process with the same module does not trace and partition it again.

An entry has the graphs of operators. What Heddle compiles of them is in Heddle's own cache.
"""
import contextlib
import functools
import hashlib
import pathlib
import threading
from typing import Any, Callable, Iterator, List, Mapping, Optional, Sequence

import torch
from torch._functorch._aot_autograd.schemas import SerializableAOTDispatchCompiler
from torch._inductor.output_code import OutputCode
from torch.fx import Graph, GraphModule
from torch.fx._graph_pickler import GraphPickler, Options

import heddle
from heddle.torch.graph import CompiledGraph

Build = Callable[..., CompiledGraph]  # of a graph module, its kind, and the positions of its weights
_builds: List[Build] = []  # of the calls of the backend that are under way, which loaded entries are compiled by


class StoredGraph(OutputCode):
    """A graph that AOTAutograd can store. A backward graph is compiled in its first call."""

    def __init__(self, module: GraphModule, kind: str, weights: Sequence[int], build: Build):
        self.kind, self.weights = kind, list(weights)
        self._stored: Optional[bytes] = None
        self._boxed_call = True
        self._start(_copied(module), build)

    def _start(self, module: GraphModule, build: Build) -> None:
        self._module: Optional[GraphModule] = module
        self._build: Optional[Build] = build
        self._graph: Optional[CompiledGraph] = None
        self._lock: Any = threading.Lock()
        if self.kind != "backward":
            self._compiled()

    def _compiled(self) -> CompiledGraph:
        with self._lock:
            if self._graph is None:
                self._graph = self._build(self._module, kind=self.kind, weights=self.weights)  # type: ignore[misc]
            return self._graph

    def __call__(self, arguments: List[Any]) -> List[Any]:  # type: ignore[override]
        return (self._graph or self._compiled())(arguments)

    def prepare_for_serialization(self) -> None:
        """Of a copy that will be pickled."""
        options = Options(ops_filter=None, node_metadata_key_filter=lambda key: key in ("val", "stack_trace"))
        if any(node.op == "get_attr" for node in self._module.graph.nodes):  # type: ignore[union-attr]
            raise _bypass("a graph has tensors of its own")
        self._stored = GraphPickler.dumps(self._module, options)
        self._module = self._build = self._graph = self._lock = None

    def post_compile(self, example_inputs: Sequence[Any], _constants: Any, _words: Any) -> None:
        """Of an entry that was loaded."""
        assert self._stored is not None
        mode = torch._guards.detect_fake_mode(example_inputs)
        module = GraphPickler.loads(self._stored, mode)
        self._stored = None
        assert isinstance(module, GraphModule)
        self._start(module, _builds[-1])

    def set_triton_bundle(self, _bundle: Any) -> None:
        """There are no kernels of Triton in it."""


def _copied(module: GraphModule) -> GraphModule:
    """AOTAutograd takes from the nodes of the module what they say of themselves."""
    graph = Graph()
    graph.output(graph.graph_copy(module.graph, {}))
    return GraphModule(module, graph)


def _bypass(why: str) -> Exception:
    from torch._functorch._aot_autograd.autograd_cache import BypassAOTAutogradCache

    return BypassAOTAutogradCache(why)


def compiler(kind: str, build: Build, weights_of: Callable[[str], Sequence[int]]) -> SerializableAOTDispatchCompiler:
    return SerializableAOTDispatchCompiler(
        StoredGraph, lambda module, _inputs: StoredGraph(module, kind, weights_of(kind), build))  # type: ignore[arg-type]


@contextlib.contextmanager
def caching(module: GraphModule, build: Build, options: Mapping[str, Any]) -> Iterator[None]:
    """Within it AOTAutograd stores and loads graphs. It stores forward and backward graphs together."""
    budget = options.get("memory_budget", "")  # divides them
    tag = f"{torch.compiler.config.cache_key_tag} heddle {_version()} {budget} {_lines(module)}"
    _builds.append(build)
    try:
        with torch._functorch.config.patch(bundled_autograd_cache=True, force_non_lazy_backward_lowering=True), \
                torch.compiler.config.patch(cache_key_tag=tag), _keys_without_inductor():
            yield
    finally:
        _builds.pop()


@contextlib.contextmanager
def _keys_without_inductor() -> Iterator[None]:
    """Keys of entries tell Inductor's code generators and, by a hash of some 2,500 files, PyTorch's source, which take a tenth of a
    second process. No entry here has code of the generators, and a release's version tells its source. Versions of torch whose keys
    are made otherwise are left alone."""
    from torch._inductor import codecache, config

    changes = [(vars(codecache), "init_backend_registration", lambda: None), (vars(config), "_cache_config_serializer", None)]
    if torch.version.git_version and "git" not in torch.__version__:  # not built from a source that may change
        changes.append((vars(codecache), "torch_key", lambda: f"{torch.__version__} {torch.version.git_version}".encode()))
    found = [(names, name, names[name], value) for names, name, value in changes if name in names]
    try:
        for names, name, _, value in found:
            names[name] = value
        yield
    finally:
        for names, name, before, _ in found:
            names[name] = before


@functools.cache
def _version() -> str:
    """Of what makes graphs: decompositions, random operators, and what is stored."""
    found = hashlib.sha256(heddle.__version__.encode())
    for path in sorted(pathlib.Path(__file__).parent.rglob("*.py")):
        found.update(path.read_bytes())
    return found.hexdigest()


def _lines(module: GraphModule) -> str:
    """Of the program: reports name them, and an entry keeps them."""
    found = hashlib.sha256()
    for node in getattr(module, "graph", Graph()).nodes:
        found.update((node.meta.get("stack_trace") or "").encode())
    return found.hexdigest()
