"""The options of compile() and of the tools, and what refuses others."""
from typing import Any, Callable, Iterable, Mapping, NoReturn, Optional, Sequence, Tuple, TypedDict, Union

from heddle import _core
from heddle._errors import make


class Options(TypedDict, total=False):
    """Keywords of heddle.compile(), verify(), tune(), inspect() and bench(). None stands for the default."""

    target: str
    precision: str
    shapes: Optional[Mapping[str, Sequence[int]]]
    dims: Optional[Mapping[str, Union[int, Tuple[int, int]]]]
    values: Optional[Mapping[str, Any]]
    constants: Optional[Mapping[str, Any]]
    threads: int
    kernels: Optional[Mapping[str, Any]]
    alias: Union[None, str, Mapping[str, str]]
    rows: Optional[Mapping[str, str]]
    appended: Optional[Mapping[str, str]]
    progress: Optional[Callable[[str, float], None]]
    fusion: str
    cache: bool
    tuned: bool
    background: bool
    max_plans: int
    max_plan_bytes: int
    limits: Optional[Mapping[str, float]]
    callers_memory: bool
    external_data_links: bool


def refuse(where: str, why: str, remedy: str) -> NoReturn:
    """Raises heddle.InputError."""
    raise make(201, where, why, remedy, f"{where}: {why}. {remedy}")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """What stands in front of a remedy where a name of `known` is near."""
    meant = _core.near_miss(name, list(known))
    return f"Did you mean {meant}? " if meant else ""


def require_known(options: Mapping[str, Any], where: str) -> None:
    """Refuses the first option that there is not."""
    known = sorted(Options.__annotations__)
    for name in options:
        if name not in known:
            refuse(where, f"there is no option {name}", f"{did_you_mean(name, known)}The options are {', '.join(known)}")
