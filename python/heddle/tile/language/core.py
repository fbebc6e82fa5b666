"""The language by the place that it has in Triton: `tl.core.load` is `tl.load`."""
from typing import Any

from heddle.tile.language.types import constexpr


CONSTEXPR_0 = constexpr(0)


def __getattr__(name: str) -> Any:
    from heddle.tile import language

    return getattr(language, name)
