"""What is beside the language proper: `libdevice`, functions by the names of CUDA's library."""
from heddle.tile.language.extra import libdevice
from heddle.tile.language.extra import cuda, hip

__all__ = ["cuda", "hip", "libdevice"]
