"""What runs kernels: facts of arguments, instances, launches, tuning."""
from heddle.tile.runtime import driver, errors
from heddle.tile.runtime.autotuner import Autotuner, Config, Heuristics, autotune, heuristics
from heddle.tile.runtime.jit import ConstexprFunction, JITFunction, constexpr_function, jit
from heddle.tile.runtime.kernel import CompiledKernel, Options

__all__ = ["Autotuner", "CompiledKernel", "Config", "ConstexprFunction", "Heuristics", "JITFunction", "Options", "autotune",
           "constexpr_function", "driver", "errors", "heuristics", "jit"]
