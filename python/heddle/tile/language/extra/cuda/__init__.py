"""What is CUDA's alone: `libdevice` by its old place, and waiting for the kernel in front of this one."""
from heddle.tile.language.extra import libdevice
from heddle.tile.language.extra.cuda.gdc import gdc_launch_dependents, gdc_wait

__all__ = ["gdc_launch_dependents", "gdc_wait", "libdevice"]
