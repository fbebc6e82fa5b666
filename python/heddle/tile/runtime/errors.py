"""What goes wrong when kernels are compiled for a device and run, by the names that Triton has."""
from heddle._errors import Error as TritonError
from heddle._errors import MachineError
from heddle.tile.compiler.errors import OutOfResources
from heddle.tile.runtime.autotuner import AutotunerError


class PTXASError(MachineError):
    """Triton's error of NVIDIA's assembler. Heddle raises heddle.MachineError with the compiler's log instead."""


class InterpreterError(MachineError):
    """Triton's error of its interpreter. That of Heddle raises what a compiled kernel would raise."""


__all__ = ["AutotunerError", "InterpreterError", "OutOfResources", "PTXASError", "TritonError"]
