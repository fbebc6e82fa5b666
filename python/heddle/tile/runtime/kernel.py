"""A compiled kernel, and how one is made of its text."""
import functools
import os
from typing import Any, NamedTuple, Optional, Sequence


class Options(NamedTuple):
    """What a launch may say beside its arguments."""

    num_warps: int = 4
    num_stages: int = 3
    num_ctas: int = 1
    maxnreg: Optional[int] = None
    debug: bool = False
    sanitize_overflow: bool = True
    enable_fp_fusion: bool = True
    launch_pdl: bool = False
    launch_cooperative_grid: bool = False
    checked: bool = False


class Metadata(NamedTuple):
    """What is known of a compiled kernel."""

    name: str
    num_warps: int
    num_stages: int
    num_ctas: int
    shared: int
    target: str


def interprets() -> bool:
    """Whether kernels run in the interpreter: slowly, one operation of the IR after the other."""
    return os.environ.get("HEDDLE_TILE_INTERPRET", "0") not in ("", "0")


def core() -> Any:
    """The part that is C++."""
    from heddle import _core

    return _core.tile


class CompiledKernel:
    """A kernel for one set of facts, on one target.

    `ir` is its typed text, `text` the C++ that it became; `asm` has both by name. Called as `kernel[grid](*arguments)` with
    the arguments that are not constants.
    """

    def __init__(self, name: str, ir: str, target: str, options: Options, facts: tuple = ()):
        self.name, self.ir, self.target, self.options, self.facts = name, ir, target, options, facts
        self.used_globals: dict = {}
        self._loaded: Any = None
        self._parameters: Any = None  # (name, type, whether it is a pointer, whether the kernel writes there) of each

    def load(self, cancellation: Any = None) -> "CompiledKernel":
        """Compiles, where that is not done yet. `cancellation` (core().Cancellation) is that of another thread that waits for it."""
        if self._loaded is None:
            verified = core().parse_and_verify(self.ir)
            if self.interprets:
                self._loaded = verified
            else:
                self._loaded = (verified.with_checks() if self.options.checked else verified).compile(self.target, cancellation)
        return self

    @property
    def record(self) -> Optional[tuple]:
        """What core.Launcher launches again without asking Python; None: it does not.

        (the kernel in C++, whether it is passed of each parameter, the options by name, (names, name, value) of each global, the
        value of each parameter that is a constant).
        """
        if self._loaded is None or self.options.checked or self.interprets:
            return None
        if not all(kind in ("known", "number", "pointer") for kind, *_ in self.facts):
            return None
        passed = tuple([kind != "known" for kind, *_ in self.facts])
        used = tuple([(names, name, value) for (name, _), (value, names) in self.used_globals.items()])
        return self._loaded, passed, self.options._asdict(), used, tuple([value if kind == "known" else None for kind, value, *_ in self.facts])

    def check_writes(self, read_only: Sequence[tuple]) -> None:
        """Raises ArgumentError where the kernel stores to one of these (position among its parameters, array), whose memory is read-only."""
        if not read_only:
            return
        from heddle.tile.compiler.errors import ArgumentError

        if self._parameters is None:
            self._parameters = core().export.parameters(self.ir)
        for position, _ in read_only:
            name, _, _, writes = self._parameters[position]
            if writes:
                raise ArgumentError(name, f"its memory is read-only, and {self.name} stores to it", "Give an array that may be written")

    @property
    def interprets(self) -> bool:
        """Whether it runs in the interpreter."""
        return self.target == "cpu" and interprets()

    def _init_handles(self) -> None:
        """Triton's name for load()."""
        self.load()

    @property
    def text(self) -> str:
        loaded = self.load()._loaded
        return self.ir if callable(loaded.text) else loaded.text

    @property
    def asm(self) -> dict:
        return {"tile_ir": self.ir, "text": self.text}

    @property
    def n_regs(self) -> int:
        return getattr(self._loaded, "registers", 0)

    @property
    def n_spills(self) -> int:
        return getattr(self._loaded, "spills", 0)

    @property
    def metadata(self) -> Metadata:
        return Metadata(self.name, self.options.num_warps, self.options.num_stages, self.options.num_ctas,
                        getattr(self._loaded, "shared", 0), self.target)

    def launch(self, grid: Sequence[int], values: Sequence[Any], stream: int = 0, memory: Sequence[tuple] = (), device: int = 0) -> None:
        """Runs it for each program of a grid. Values are addresses and numbers, in the order of its parameters.

        `device` is the GPU of the stream. `memory`, of a kernel that is checked: (address, bytes, name) of each array that it may use.
        """
        if 0 in grid:
            return
        loaded = self.load()._loaded
        if self.options.checked and not self.interprets:
            values = [*values, *(address + size for address, size, _ in memory)]
        if self.target != "cpu":
            loaded.launch(grid, values, stream, device)
        elif self.interprets:
            loaded.interpret(list(grid), list(values), list(memory), self.options.checked, print)
        else:
            loaded.launch(grid, values, print)

    def __getitem__(self, grid: Any) -> Any:
        return functools.partial(self._launch_with, grid_of(grid))

    def _launch_with(self, grid: tuple, *values: Any, stream: int = 0) -> None:
        """launch() with arrays in place of addresses."""
        from heddle.tile.runtime.arrays import address_of, is_array, is_read_only

        arrays = {i: value for i, value in enumerate(values) if is_array(value)}
        self.check_writes([(i, array) for i, array in arrays.items() if is_read_only(array)])
        self.launch(grid, [address_of(value) if i in arrays else value for i, value in enumerate(values)], stream)


def grid_of(grid: Any) -> tuple:
    """A grid of three extents."""
    if isinstance(grid, int):
        grid = (grid,)
    extents = [int(extent) for extent in grid]
    if not 1 <= len(extents) <= 3:
        raise ValueError(f"a grid has one to three extents, not {len(extents)}")
    if min(extents) < 0:
        raise ValueError(f"the extents of a grid are not negative: {extents}")
    return (*extents, *(1,) * (3 - len(extents)))


