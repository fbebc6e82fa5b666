"""Kernels in Python: the decorator, and what happens when one is launched."""
import collections
import functools
import inspect
from typing import Any, Callable, NamedTuple, Optional

from heddle._core import tile as core
from heddle._options import did_you_mean
from heddle.tile import ir
from heddle.tile.language.types import constexpr, dtype, unwrap
from heddle.tile.language.values import base_value, tuple as language_tuple
from heddle.tile.runtime.arrays import HOST, address_of, bytes_of, current_stream, device_of
from heddle.tile.runtime.driver import cuda_target
from heddle.tile.runtime.kernel import CompiledKernel, Options, grid_of
from heddle.tile.runtime.recording import active
from heddle.tile.runtime.source import Source
from heddle.tile.runtime.specialize import Call, Parameter

_DEFAULTS = Options()
# Counts changes of texts, so that what was compiled of an old one is not used.
_revision = 0


class Prepared(NamedTuple):
    """A kernel for arguments, what is passed to it, and the GPU that it is for with an array that lies there."""

    kernel: CompiledKernel
    call: Call
    device: Optional[int]
    owner: Any


class KernelInterface:
    """What is launched as `kernel[grid](arguments)`."""

    tile_function = True

    def __getitem__(self, grid: Any) -> Callable:
        return functools.partial(self.run, grid=grid, warmup=False)

    def run(self, *arguments: Any, grid: Any, warmup: bool = False, **keywords: Any) -> Any:
        raise NotImplementedError

    def _launched(self, *arguments: Any, grid: Any, **keywords: Any) -> tuple:
        """Launches for core.Launcher: (the kernel, what each such launch sets of self)."""
        return self.run(*arguments, grid=grid, **keywords), {}


class JITFunction(core.Launcher, KernelInterface):
    """A function of the language: a kernel when it is launched, `function[grid](arguments)`, a part of one when it is called.

    Launches with arguments like earlier ones are done by core.Launcher; others come to run().
    """

    def __init__(self, fn: Callable, do_not_specialize=(), do_not_specialize_on_alignment=(), debug: Optional[bool] = None,
                 noinline: bool = False, repr: Optional[Callable] = None, launch_metadata: Optional[Callable] = None):
        functools.update_wrapper(self, fn, updated=())
        self.fn, self.source, self.signature = fn, Source(fn), inspect.signature(fn)
        self.debug, self.noinline, self.repr, self.launch_metadata = debug, noinline, repr, launch_metadata
        fixed, unaligned = set(do_not_specialize or ()), set(do_not_specialize_on_alignment or ())
        self.params = [
            Parameter(parameter, not {i, name} & fixed, not {i, name} & unaligned)
            for i, (name, parameter) in enumerate(self.signature.parameters.items())
        ]
        self.arg_names = [parameter.name for parameter in self.params]
        self.constexprs = [i for i, parameter in enumerate(self.params) if parameter.is_constexpr]
        self.instances: dict[tuple, CompiledKernel] = {}
        self.pre_run_hooks: list[Callable] = []
        self._bind = None
        if not any(parameter.is_variadic for parameter in self.params):
            self._describe(self.arg_names, {parameter.name: parameter.default for parameter in self.params if parameter.has_default},
                           [parameter.is_constexpr for parameter in self.params], [False] * len(self.params), False, self.pre_run_hooks)

    # -- as a part of a kernel

    @property
    def inlined(self) -> "JITFunction":
        return self

    def inline(self, arguments: list, keywords: Optional[dict] = None) -> Any:
        """What a call in a kernel becomes."""
        from heddle.tile.compiler.visitor import inline

        return inline(self, arguments, keywords or {})

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        if ir.is_building():
            return self.inline(list(arguments), keywords)
        raise RuntimeError(f"Cannot call @jit'd {self.__name__} outside of the scope of a kernel; launch it: {self.__name__}[grid](...)")

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else _method_of(self, instance)

    def capture(self) -> dict:
        """The names that the function sees around it."""
        if self.fn.__closure__ is None:
            return self.fn.__globals__
        cells = {}
        for name, cell in zip(self.fn.__code__.co_freevars, self.fn.__closure__):
            try:
                cells[name] = cell.cell_contents
            except ValueError:  # defined later
                continue
        return {**self.fn.__globals__, **cells}

    def uses_global(self, name: str, value: constexpr) -> None:
        if self.fn.__globals__.get(name) is value:
            ir.builder().used_globals[(name, id(self.fn.__globals__))] = (value, self.fn.__globals__)

    # -- its text

    @property
    def src(self) -> str:
        return self.source.text

    @property
    def type(self) -> Any:
        return constexpr(self).type

    def _unsafe_update_src(self, text: str) -> None:
        """Another text in place of the file's. Kernels that call this function are compiled again."""
        global _revision
        _revision += 1
        core.forget_launches()
        self.source = self.source.replaced(text)

    # -- as a kernel

    def prepare(self, *arguments: Any, **keywords: Any) -> Prepared:
        """What would be launched for arguments, or for types in place of arrays. It is not compiled yet."""
        bound, words = self._bound(arguments, keywords)
        words.pop("stream", None)
        return self._prepared(bound, self.options_of(words))

    def warmup(self, *arguments: Any, grid: Any = None, **keywords: Any) -> CompiledKernel:
        """Compiles for arguments, or for types in place of arrays, and does not launch."""
        return self.prepare(*arguments, **keywords).kernel.load()

    def add_pre_run_hook(self, hook: Callable) -> None:
        """hook(*arguments, **keywords) is called before each launch."""
        self.pre_run_hooks.append(hook)

    def run(self, *arguments: Any, grid: Any, warmup: bool = False, **keywords: Any) -> CompiledKernel:
        """Launches: finds or makes the instance for these arguments, and runs it on the grid."""
        if warmup:
            return self.warmup(*arguments, **keywords)
        for hook in self.pre_run_hooks:
            hook(*arguments, **keywords)
        bound, words = self._bound(arguments, keywords)
        if active.recorder is not None:
            return active.recorder.launch(self, grid, bound, words)
        stream = words.pop("stream", None)
        options = self.options_of(words)
        kernel, call, device, owner = self._prepared(bound, options)
        kernel.check_writes(call.read_only)
        if callable(grid):
            grid = grid({**bound, **options._asdict()})
        if owner is not None and stream is None:
            stream = current_stream(owner, device)
        memory = [(address_of(array), bytes_of(array), self._name_of(array, bound)) for array in call.arrays] if options.checked else ()
        kernel.launch(grid_of(grid), call.values, stream or 0, memory, device or 0)
        return kernel

    def _prepared(self, bound: dict, options: Options) -> Prepared:
        call = Call()
        facts = tuple([parameter.read(value, call) for parameter, value in zip(self.params, bound.values())])
        device, owner = HOST, None
        for array in call.arrays:
            place = device_of(array)
            if place is not HOST:
                device, owner = place, array
                break
        return Prepared(self.instance(facts, options, "cpu" if device is HOST else cuda_target(device)), call, device, owner)

    @staticmethod
    def _name_of(array: Any, bound: dict) -> str:
        return next((name for name, value in bound.items() if value is array), "argument")

    def instance(self, facts: tuple, options: Options, target: str) -> CompiledKernel:
        """The kernel for facts of the arguments."""
        key = (facts, options, target, _revision)
        kernel = self.instances.get(key)
        if kernel is None:
            from heddle.tile.compiler.blame import explained
            from heddle.tile.compiler.errors import CompilationError
            from heddle.tile.compiler.lower import lower, name_of

            self._check_constexprs()
            known = dict(zip(self.arg_names, facts))
            try:
                text, used = lower(self, known, options)
            except CompilationError as error:
                raise explained(error, self, known) from error
            kernel = CompiledKernel(name_of(self, known), text, target, options, facts)
            kernel.used_globals = used
            self.instances[key] = kernel
        for (name, _), (value, names) in kernel.used_globals.items():
            if names.get(name) is not value and names.get(name) != value:
                raise RuntimeError(f"Global variable {name} has changed since we compiled this kernel, from {value} to {names.get(name)}; "
                                   "make it an argument that is a tl.constexpr")
        return kernel

    def _check_constexprs(self) -> None:
        for parameter in self.params:
            if parameter.is_constexpr and not (parameter.specialize and parameter.align):
                from heddle.tile.compiler.errors import CompilationError

                raise CompilationError(self.source, self.source.tree, f"{parameter.name} marked as constexpr and listed in "
                                       "do_not_specialize/do_not_specialize_on_alignment. Remove constexpr designation to skip "
                                       "specialization.")

    def options_of(self, words: dict) -> Options:
        """The options of a launch."""
        if not words and self.debug is None:
            return _DEFAULTS
        if self.debug is not None and "debug" not in words:
            words["debug"] = self.debug
        unknown = [word for word in words if word not in Options._fields]
        if unknown:
            near = did_you_mean(unknown[0], [*self.arg_names, *Options._fields])
            raise KeyError(f"Keyword argument {unknown[0]} was specified but unrecognised: {near}{self.__name__} has the parameters "
                           f"{', '.join(self.arg_names)}, and a launch the options {', '.join(Options._fields)}")
        return Options(**words)

    def _bound(self, arguments: tuple, keywords: dict) -> tuple:
        """(value of each parameter by name, the other words)."""
        if self._bind is None:
            self._bind = _binder(self.signature)
        try:
            return self._bind(*arguments, **keywords)
        except TypeError as error:
            unknown = [word for word in keywords if word not in self.arg_names and word not in Options._fields]
            near = did_you_mean(unknown[0], self.arg_names) if unknown else ""
            other = f". It has no parameter {unknown[0]}. {near}".rstrip() if unknown else ""
            raise TypeError(str(error).replace("bind()", f"{self.__name__}()") + other) from None


def _binder(signature: inspect.Signature) -> Callable:
    """A function of the kernel's own parameters, which Python binds faster than `inspect` does."""
    defaults = {name: parameter.default for name, parameter in signature.parameters.items()}
    written = []
    for name, parameter in signature.parameters.items():
        star = "*" if parameter.kind is inspect.Parameter.VAR_POSITIONAL else ""
        has_default = parameter.default is not inspect.Parameter.empty
        written.append(f"{star}{name}" + (f"=_defaults[{name!r}]" if has_default else ""))
    values = ", ".join(f"{name!r}: {name}" for name in signature.parameters)
    names: dict[str, Any] = {"_defaults": defaults}
    exec(f"def bind({', '.join([*written, '**_words'])}):\n    return {{{values}}}, _words", names)
    return names["bind"]


def jit(fn: Optional[Callable] = None, *, version=None, repr: Optional[Callable] = None, launch_metadata: Optional[Callable] = None,
        do_not_specialize=None, do_not_specialize_on_alignment=None, debug: Optional[bool] = None, noinline: Optional[bool] = None):
    """Makes a function a kernel, or a part of kernels.

    `do_not_specialize` names integers that change often, so that 1 and multiples of 16 are not compiled for apart;
    `debug` turns on assertions.
    """
    def decorate(function: Callable) -> JITFunction:
        if isinstance(function, JITFunction):
            return function
        return JITFunction(function, do_not_specialize, do_not_specialize_on_alignment, debug, bool(noinline), repr, launch_metadata)

    return decorate if fn is None else decorate(fn)


class ConstexprFunction:
    """A function of Python's that kernels call with what is known when they are compiled."""

    tile_builtin = True

    def __init__(self, fn: Callable):
        functools.update_wrapper(self, fn, updated=())
        self.fn = fn

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else _method_of(self, instance)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        if not ir.is_building():
            return self.fn(*arguments, **keywords)
        result = self.fn(*map(_plain, arguments), **{name: _plain(value) for name, value in keywords.items()})
        return result if isinstance(result, (base_value, dtype, tuple, list)) else constexpr(result)


def _method_of(function: Any, instance: Any) -> Callable:
    """A function that a value is the first argument of, as kernels call it."""
    method = functools.partial(function, instance)
    method.tile_builtin = True
    method.must_use_result = getattr(function, "must_use_result", False)
    return method


def must_use_result(fn: Any, reason: Any = True) -> Any:
    """Marks a function whose result is all that it does: a call that drops it is an error."""
    if isinstance(fn, str):
        return functools.partial(must_use_result, reason=fn)
    fn.must_use_result = reason
    return fn


def _plain(value: Any) -> Any:
    value = unwrap(value)
    if not isinstance(value, language_tuple):
        return value
    values = tuple(map(_plain, value.values))
    return collections.namedtuple("Fields", value.fields)(*values) if value.fields else values


def constexpr_function(fn: Callable) -> ConstexprFunction:
    """Makes a function of Python's one that kernels may call."""
    return ConstexprFunction(fn)


