"""The device for which kernels are compiled."""
import functools
from typing import NamedTuple


class Target(NamedTuple):
    """A kind of device: "cpu" or "cuda", and of the latter its compute capability as 90."""

    backend: str
    arch: object
    warp_size: int


@functools.lru_cache(maxsize=None)
def cuda_target(device: int) -> str:
    """The name of what the compiler makes for a GPU: "cuda-sm_90a"."""
    from heddle.tile.runtime.kernel import core

    return core().cuda_target(device)
