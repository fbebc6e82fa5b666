"""The language by the place that it has in Triton: `tl.core.load` is `tl.load`."""
from typing import Any

from heddle.tile.language.shaping import builtin
from heddle.tile.language.types import base_type, constexpr, get_int_dtype
from heddle.tile.language.types import unwrap as _unwrap_if_constexpr
from heddle.tile.language.values import base_value

CONSTEXPR_0 = constexpr(0)


def __getattr__(name: str) -> Any:
    from heddle.tile import language

    return getattr(language, name)
