"""Choosing among configurations of a kernel by timing them, and computing constants of its arguments."""
import functools
import inspect
import os
import time
from typing import Any, Callable, Optional, Sequence

from heddle.tile.compiler.errors import CompileTimeAssertionFailure, OutOfResources
from heddle.tile.runtime.jit import KernelInterface
from heddle.tile.runtime.recording import active

_FAILED = [float("inf")] * 3


class Config:
    """Constants and options to try: `kwargs` for parameters of the kernel, the rest for its launch.

    `pre_hook(arguments by name)` is called before each launch.
    """

    def __init__(self, kwargs: dict, num_warps: int = 4, num_stages: int = 3, num_ctas: int = 1, maxnreg: Optional[int] = None,
                 pre_hook: Optional[Callable] = None, ir_override: Optional[str] = None):
        if ir_override is not None:
            raise ValueError("ir_override names text of Triton's own IR, which Heddle does not have")
        self.kwargs, self.num_warps, self.num_stages, self.num_ctas = kwargs, num_warps, num_stages, num_ctas
        self.maxnreg, self.pre_hook = maxnreg, pre_hook

    def all_kwargs(self) -> dict:
        options = {"num_warps": self.num_warps, "num_ctas": self.num_ctas, "num_stages": self.num_stages, "maxnreg": self.maxnreg}
        return {**self.kwargs, **{name: value for name, value in options.items() if value is not None}}

    def __str__(self) -> str:
        return ", ".join(f"{name}: {value}" for name, value in self.all_kwargs().items())

    __repr__ = __str__

    def _key(self) -> tuple:
        return (*self.all_kwargs().items(), self.pre_hook)

    def __hash__(self) -> int:
        return hash(self._key())

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Config) and self._key() == other._key()


class _Wrapper(KernelInterface):
    """What stands around a kernel and is launched like it."""

    def __init__(self, fn: Any, arg_names: Sequence[str]):
        functools.update_wrapper(self, fn, updated=())
        self.fn, self.arg_names = fn, list(arg_names)
        self.base_fn = fn
        while not inspect.isfunction(self.base_fn):
            self.base_fn = self.base_fn.fn

    @property
    def inlined(self) -> Any:
        return self.fn.inlined

    def inline(self, arguments: list, keywords: Optional[dict] = None) -> Any:
        return self.fn.inline(arguments, keywords)

    def add_pre_run_hook(self, hook: Callable) -> None:
        self.fn.add_pre_run_hook(hook)


class AutotunerError(RuntimeError):
    """Configurations of which none can be chosen."""


class Autotuner(_Wrapper):
    """A kernel with configurations, of which the fastest runs for each value of the key."""

    def __init__(self, fn: Any, arg_names: Sequence[str], configs: Sequence[Config], key: Sequence[str], reset_to_zero=None,
                 restore_value=None, pre_hook=None, post_hook=None, prune_configs_by=None, warmup=None, rep=None,
                 use_cuda_graph=False, do_bench=None, cache_results=False):
        super().__init__(fn, arg_names)
        self.configs, self.keys = list(configs) or [Config({})], list(key)
        self.cache: dict[tuple, Config] = {}
        self.configs_timings: dict[Config, Any] = {}
        self.best_config: Optional[Config] = None
        self.bench_time = 0.0
        self.reset_to_zero, self.restore_value = list(reset_to_zero or ()), list(restore_value or ())
        self.user_defined_pre_hook, self.user_defined_post_hook = pre_hook is not None, post_hook is not None
        self.pre_hook, self.post_hook = pre_hook or self._reset, post_hook or self._restore
        prune = prune_configs_by or {}
        self.early_config_prune, self.perf_model, self.top_k = (prune.get("early_config_prune"), prune.get("perf_model"),
                                                                prune.get("top_k", 1.0))
        self._bench_with, self.warmup_ms, self.rep_ms = do_bench, warmup, rep
        self._kept: dict[str, Any] = {}

    @property
    def do_bench(self) -> Callable:
        if self._bench_with is not None:
            return self._bench_with
        from heddle.tile.testing import do_bench

        words = {name: value for name, value in (("warmup", self.warmup_ms), ("rep", self.rep_ms)) if value is not None}
        return functools.partial(do_bench, **words)

    # -- around a launch

    def _reset(self, values: dict, reset_only: bool = False) -> None:
        for name in self.reset_to_zero:
            if values[name] is not None:
                _fill(values[name], 0)
        if not reset_only:
            self._kept = {name: _copy(values[name]) for name in self.restore_value if values[name] is not None}

    def _restore(self, values: dict, exception: Optional[Exception] = None) -> None:
        for name, value in self._kept.items():
            _fill(values[name], value)
        self._kept = {}

    def _before(self, values: dict, reset_only: bool = False) -> None:
        if _takes(self.pre_hook, "reset_only"):
            self.pre_hook(values, reset_only=reset_only)
        else:
            self.pre_hook(values)

    def _measure(self, arguments: tuple, config: Config, keywords: dict) -> Any:
        both = keywords.keys() & config.kwargs.keys()
        if both:
            raise ValueError(f"Conflicting meta-parameters: {', '.join(sorted(both))}. Make sure that you don't re-define auto-tuned "
                             "symbols.")
        words = {**keywords, **config.all_kwargs()}
        values = {**self.nargs, **words}

        def launch() -> None:
            if config.pre_hook is not None:
                config.pre_hook(values)
            self._before(values)
            try:
                self.fn.run(*arguments, **words)
            except Exception as error:
                self.post_hook(values, exception=error)
                raise
            self.post_hook(values, exception=None)

        try:
            return self.do_bench(launch, quantiles=(0.5, 0.2, 0.8))
        except (OutOfResources, CompileTimeAssertionFailure) as error:
            if _prints():
                print(f"Autotuning failed with {error}")
            return _FAILED

    # -- launches

    def run(self, *arguments: Any, grid: Any, warmup: bool = False, **keywords: Any) -> Any:
        """Launches the best configuration, which is looked for at the first call with such arguments."""
        self.nargs = dict(zip(self.arg_names, arguments))
        words = {**keywords, "grid": grid, "warmup": warmup}
        only_one = len(self.configs) == 1 or active.recorder is not None  # what is not run cannot be timed
        config = self.configs[0] if only_one else self._chosen(arguments, words, keywords)
        self.best_config = config
        if config.pre_hook is not None:
            config.pre_hook({**self.nargs, **keywords, **config.all_kwargs()})
        return self.fn.run(*arguments, **words, **config.all_kwargs())

    def _chosen(self, arguments: tuple, words: dict, keywords: dict) -> Config:
        values = {name: value for name, value in {**self.nargs, **keywords}.items() if name in self.arg_names}
        key = (*(values[name] for name in self.keys if name in values),
               *(str(value.dtype) for value in values.values() if hasattr(value, "dtype")))
        if key not in self.cache:
            start = time.perf_counter()
            timings = {config: self._measure(arguments, config, words) for config in self.prune_configs(keywords)}
            self.bench_time, self.configs_timings = time.perf_counter() - start, timings
            self.cache[key] = min(timings, key=lambda config: timings[config] if not isinstance(timings[config], float)
                                  else [timings[config]])
            self._before({**self.nargs, **keywords, **self.cache[key].all_kwargs()}, reset_only=True)
            if _prints():
                print(f"Autotuning of {self.base_fn.__name__} for {key}: {self.bench_time:.2f} s, best is {self.cache[key]}")
        return self.cache[key]

    def prune_configs(self, keywords: dict) -> list[Config]:
        """The configurations that are timed."""
        configs = self.configs
        if self.early_config_prune is not None:
            configs = self.early_config_prune(self.configs, self.nargs, **keywords)
            if not configs:
                raise AutotunerError("No valid autotuner configs after pruning. `early_config_prune` should return at least one config.")
        if self.perf_model is None:
            return configs
        count = self.top_k
        if isinstance(count, float) and count <= 1.0:
            count = int(len(self.configs) * count)
        elif not isinstance(count, int):
            raise TypeError("Error while pruning configs, top_k must be either 1) a float <= 1.0 or 2) an int")
        if len(configs) <= count:
            return configs
        predicted = {config: self.perf_model(**self.nargs, **keywords, **config.all_kwargs()) for config in configs}
        return sorted(predicted, key=predicted.get)[:count]

    def warmup(self, *arguments: Any, **keywords: Any) -> list:
        """Compiles all configurations."""
        self.nargs = dict(zip(self.arg_names, arguments))
        return [self.fn.warmup(*arguments, **keywords, **config.all_kwargs()) for config in self.prune_configs(keywords)]


def _takes(function: Callable, name: str) -> bool:
    return name in inspect.signature(function).parameters


def _prints() -> bool:
    return os.environ.get("HEDDLE_TILE_PRINT_AUTOTUNING", "0") not in ("", "0")


def _fill(array: Any, value: Any) -> None:
    if hasattr(array, "copy_"):
        array.copy_(value) if hasattr(value, "copy_") else array.fill_(value)
    else:
        array[...] = value


def _copy(array: Any) -> Any:
    return array.clone() if hasattr(array, "clone") else array.copy()


class Heuristics(_Wrapper):
    """A kernel some of whose constants are computed of its arguments."""

    def __init__(self, fn: Any, arg_names: Sequence[str], values: dict):
        super().__init__(fn, arg_names)
        self.values = values

    def run(self, *arguments: Any, grid: Any = None, warmup: bool = False, **keywords: Any) -> Any:
        for name, compute in self.values.items():
            keywords[name] = compute({**dict(zip(self.arg_names, arguments)), **keywords})
        return self.fn.run(*arguments, grid=grid, warmup=warmup, **keywords)

    def warmup(self, *arguments: Any, grid: Any = None, **keywords: Any) -> Any:
        return self.run(*arguments, grid=grid, warmup=True, **keywords)


def autotune(configs: Sequence[Config], key: Sequence[str], prune_configs_by: Optional[dict] = None, reset_to_zero=None,
             restore_value=None, pre_hook=None, post_hook=None, warmup=None, rep=None, use_cuda_graph=False, do_bench=None,
             cache_results=False):
    """Lets the fastest of some configurations run. It is chosen again whenever one of the arguments named in `key` changes.

    `reset_to_zero` and `restore_value` name arrays that the kernel changes, so that timing it leaves them as they were.
    `prune_configs_by`: {"early_config_prune": function, "perf_model": function, "top_k": number or share}.
    """
    def decorate(fn: Any) -> Autotuner:
        return Autotuner(fn, fn.arg_names, configs, key, reset_to_zero, restore_value, pre_hook, post_hook, prune_configs_by, warmup,
                         rep, use_cuda_graph, do_bench, cache_results)

    return decorate


def heuristics(values: dict):
    """Computes constants of a kernel: {name: function of the arguments by name}."""
    def decorate(fn: Any) -> Heuristics:
        return Heuristics(fn, fn.arg_names, values)

    return decorate
