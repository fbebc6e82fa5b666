"""Choosing among configurations of a kernel by timing them, and computing constants of its arguments."""
import concurrent.futures
import functools
import hashlib
import inspect
import os
import time
from typing import Any, Callable, Optional, Sequence

from heddle._core import tile as core
from heddle._errors import Error
from heddle.tile.runtime.arrays import HOST
from heddle.tile.runtime.jit import JITFunction, KernelInterface, Prepared
from heddle.tile.runtime.kernel import interprets
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


class Autotuner(core.Launcher, _Wrapper):
    """A kernel with configurations, of which the fastest runs for each value of the key.

    Launches with arguments and a key like earlier ones are done by core.Launcher, where no hook belongs to a configuration.
    """

    def __init__(self, fn: Any, arg_names: Sequence[str], configs: Sequence[Config], key: Sequence[str], reset_to_zero=None,
                 restore_value=None, pre_hook=None, post_hook=None, prune_configs_by=None, warmup=None, rep=None,
                 use_cuda_graph=False, do_bench=None, cache_results=False):
        super().__init__(fn, arg_names)
        self.configs, self.keys = list(configs) or [Config({})], list(key)
        self.cache: dict[tuple, Config] = {}
        self.configs_timings: dict[Config, Any] = {}
        self.failures: dict[Config, Error] = {}
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
        if isinstance(fn, JITFunction) and not any(parameter.is_variadic for parameter in fn.params):
            if all(config.pre_hook is None for config in self.configs):
                self._describe(self.arg_names, {}, [parameter.is_constexpr for parameter in fn.params],
                               [name in self.keys for name in self.arg_names], True, fn.pre_run_hooks)

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

    def _words(self, config: Config, keywords: dict) -> dict:
        """What a launch with a configuration says beside its arguments."""
        both = keywords.keys() & config.kwargs.keys()
        if both:
            raise ValueError(f"Conflicting meta-parameters: {', '.join(sorted(both))}. Make sure that you don't re-define auto-tuned "
                             "symbols.")
        return {**keywords, **config.all_kwargs()}

    def _measure(self, arguments: tuple, grid: Any, config: Config, keywords: dict) -> Any:
        words = self._words(config, keywords)
        values = {**self.nargs, **words, "grid": grid}

        def launch() -> None:
            if config.pre_hook is not None:
                config.pre_hook(values)
            self._before(values)
            try:
                self.fn[grid](*arguments, **words)
            except Exception as error:
                self.post_hook(values, exception=error)
                raise
            self.post_hook(values, exception=None)

        try:
            return self.do_bench(launch, quantiles=(0.5, 0.2, 0.8))
        except Error as error:
            self._failed(config, error)
            return _FAILED

    def _failed(self, config: Config, error: Error) -> None:
        self.failures[config] = error
        if _prints():
            print(f"Autotuning passes over {config}: {error}")

    def _prepare(self, arguments: tuple, configs: Sequence[Config], keywords: dict) -> dict[Config, Prepared]:
        """The kernels of configurations, without those that are refused. One after the other, since hooks may change arguments."""
        prepared = {}
        for config in configs:
            words = self._words(config, keywords)
            if config.pre_hook is not None:
                config.pre_hook({**self.nargs, **words})
            try:
                prepared[config] = self.fn.prepare(*arguments, **words)
            except Error as error:
                self._failed(config, error)
        return prepared

    def _compile(self, prepared: dict[Config, Prepared]) -> None:
        """All at once: their compilers hold no lock of Python's."""
        cancellation = core.Cancellation()
        threads = concurrent.futures.ThreadPoolExecutor(max(1, min(len(prepared), len(os.sched_getaffinity(0)))))
        loads = {config: threads.submit(found.kernel.load, cancellation) for config, found in prepared.items()}
        try:
            concurrent.futures.wait(loads.values())
        except BaseException:  # KeyboardInterrupt
            cancellation.cancel()
            raise
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
        for config, load in loads.items():
            error = load.exception()
            if error is None:
                continue
            if not isinstance(error, Error):
                raise error
            self._failed(config, error)

    # -- launches

    def run(self, *arguments: Any, grid: Any, warmup: bool = False, **keywords: Any) -> Any:
        """Launches the best configuration, which is looked for at the first call with such arguments."""
        return self._launched(*arguments, grid=grid, warmup=warmup, **keywords)[0]

    def _launched(self, *arguments: Any, grid: Any, warmup: bool = False, **keywords: Any) -> tuple:
        self.nargs = dict(zip(self.arg_names, arguments))
        only_one = len(self.configs) == 1 or active.recorder is not None  # what is not run cannot be timed
        config = self.configs[0] if only_one else self._chosen(arguments, grid, keywords)
        self.best_config = config
        words = config.all_kwargs()
        if config.pre_hook is not None:
            config.pre_hook({**self.nargs, **keywords, **words})
        if warmup:
            return self.fn.warmup(*arguments, **keywords, **words), {}
        return self.fn[grid](*arguments, **keywords, **words), {"best_config": config}

    def _chosen(self, arguments: tuple, grid: Any, keywords: dict) -> Config:
        values = {name: value for name, value in {**self.nargs, **keywords}.items() if name in self.arg_names}
        key = (*(values[name] for name in self.keys if name in values),
               *(_dtype_name(value.dtype) for value in values.values() if hasattr(value, "dtype")))
        if key not in self.cache:
            start = time.perf_counter()
            self.cache[key] = self._tuned(arguments, grid, keywords, key)
            self.bench_time = time.perf_counter() - start
            self._before({**self.nargs, **keywords, **self.cache[key].all_kwargs()}, reset_only=True)
            if _prints():
                print(f"Autotuning of {self.base_fn.__name__} for {key}: {self.bench_time:.2f} s, best is {self.cache[key]}")
        return self.cache[key]

    def _tuned(self, arguments: tuple, grid: Any, keywords: dict, key: tuple) -> Config:
        """The fastest configuration: what the tuning database has for this problem, else what measuring finds."""
        self.failures, self.configs_timings = {}, {}
        configs = self.prune_configs(keywords)
        prepared = self._prepare(arguments, configs, keywords)
        device = next((found.device for found in prepared.values()), HOST)
        ordinal = -1 if device is HOST else device
        problem = _problem(self.base_fn.__name__, key, prepared)
        kept = core.find_winner(ordinal, problem) if not interprets() else None
        for config in prepared:
            if str(config) == kept:
                return config
        self._compile(prepared)
        timings = {config: _FAILED if config in self.failures else self._measure(arguments, grid, config, keywords) for config in configs}
        self.configs_timings = timings
        best = min(timings, key=lambda config: _quantiles(timings[config]))
        if best not in self.failures and not interprets():
            core.store_winner(ordinal, problem, str(best), 1e3 * _quantiles(timings[best])[0], len(configs))
        return best

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

    def warmup(self, *arguments: Any, grid: Any = None, **keywords: Any) -> list:
        """Compiles all configurations."""
        self.nargs, self.failures = dict(zip(self.arg_names, arguments)), {}
        prepared = self._prepare(arguments, self.prune_configs(keywords), keywords)
        self._compile(prepared)
        if self.failures:
            raise next(iter(self.failures.values()))
        return [found.kernel for found in prepared.values()]


def _quantiles(timing: Any) -> Sequence[float]:
    return [timing] if isinstance(timing, (int, float)) else timing


def _problem(name: str, key: tuple, prepared: dict[Config, Prepared]) -> str:
    """What a winner holds for: the kernels of all configurations, but not the files that they stand in, and the key."""
    text = hashlib.sha256(repr(key).encode())
    for config, found in prepared.items():
        lines = found.kernel.ir.splitlines()
        text.update("\n".join([str(config), *(line for line in lines if not line.startswith("file "))]).encode())
    return f"tile {name} {text.hexdigest()}"


@functools.lru_cache(maxsize=None)
def _dtype_name(dtype: Any) -> str:
    return str(dtype)


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

    def _completed(self, arguments: tuple, keywords: dict) -> dict:
        for name, compute in self.values.items():
            keywords[name] = compute({**dict(zip(self.arg_names, arguments)), **keywords})
        return keywords

    def run(self, *arguments: Any, grid: Any = None, warmup: bool = False, **keywords: Any) -> Any:
        if warmup:
            return self.warmup(*arguments, **keywords)
        return self.fn[grid](*arguments, **self._completed(arguments, keywords))

    def prepare(self, *arguments: Any, **keywords: Any) -> Prepared:
        return self.fn.prepare(*arguments, **self._completed(arguments, keywords))

    def warmup(self, *arguments: Any, grid: Any = None, **keywords: Any) -> Any:
        return self.fn.warmup(*arguments, **self._completed(arguments, keywords))


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
