"""`libdevice` by the place that it has for AMD's GPUs: its functions are the same."""
import sys

from heddle.tile.language.extra import libdevice

sys.modules[f"{__name__}.libdevice"] = libdevice

__all__ = ["libdevice"]
