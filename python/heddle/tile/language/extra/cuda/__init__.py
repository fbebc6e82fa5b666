"""What is CUDA's alone: `libdevice` by its old place, the threads of a program, and waiting for the kernel in front of this one."""
import sys

from heddle.tile.language.extra import libdevice
from heddle.tile.language.extra.cuda.gdc import gdc_launch_dependents, gdc_wait
from heddle.tile.language.extra.cuda.utils import globaltimer, num_threads, num_warps, smid

sys.modules[f"{__name__}.libdevice"] = libdevice

__all__ = ["gdc_launch_dependents", "gdc_wait", "globaltimer", "libdevice", "num_threads", "num_warps", "smid"]
