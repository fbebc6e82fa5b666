"""Programmatic dependent launch. Kernels run one after the other on a stream, so that there is nothing to wait for yet."""
from heddle.tile.language.shaping import builtin


@builtin
def gdc_wait():
    """Waits for what the kernel in front of this one on the stream has written."""


@builtin
def gdc_launch_dependents():
    """Lets the kernel behind this one on the stream begin."""
