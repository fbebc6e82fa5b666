"""Heddle's tile language under the names of Triton, so that Triton's own tests run on it. For tests only."""
import os
import sys
import types

import heddle.tile as _tile
import heddle.tile.compiler.source as _compile
import heddle.tile.language as language
from heddle.tile import *  # noqa: F403
from heddle.tile.compiler.source import compile
from heddle.tile.language import arithmetic, math, memory, program, promotion, random, reductions, shaping, standard
from heddle.tile.language import types as language_types
from heddle.tile.language import values
from triton import knobs
from triton import _driver as driver

TritonError = _tile.TileError
__version__ = _tile.__version__


def _module(name, *sources, **names):
    """A module of Triton's made of modules of ours."""
    made = types.ModuleType(f"triton.{name}")
    for source in sources:
        made.__dict__.update({key: value for key, value in vars(source).items() if not key.startswith("__")})
    made.__dict__.update(names)
    made.__path__ = []
    sys.modules[f"triton.{name}"] = made
    parent, _, last = f"triton.{name}".rpartition(".")
    setattr(sys.modules[parent], last, made)
    return made


def _alias(name, module):
    sys.modules[f"triton.{name}"] = module
    parent, _, last = f"triton.{name}".rpartition(".")
    setattr(sys.modules[parent], last, module)


class InterpreterError(Exception):
    """Triton's interpreter raises it; ours is not Python's."""


_alias("language", language)
for _name in ("extra", "extra.libdevice", "math", "random", "standard"):
    _alias(f"language.{_name}", sys.modules[f"heddle.tile.language.{_name}"])
_module("language.core", sys.modules["heddle.tile.language.core"], language_types, values, arithmetic, memory, program, promotion, reductions, shaping, language)
language.core = sys.modules["triton.language.core"]
for _kind, _types in (("SINT", ("int8", "int16", "int32", "int64")), ("UINT", ("int1", "uint8", "uint16", "uint32", "uint64")),
                      ("FP", ("fp8e4b15", "fp8e4nv", "fp8e4b8", "fp8e5", "fp8e5b16", "fp16", "bf16", "fp32", "fp64")),
                      ("STANDARD_FP", ("fp16", "bf16", "fp32", "fp64")), ("OTHER", ("void",))):
    setattr(language_types.dtype, f"{_kind}_TYPES", list(_types))
language.str_to_ty = lambda name, _: language_types.parse_type(name)
_alias("testing", _tile.testing)
# Helpers of the tests that are beside the language come from the checkout itself.
_module("tools").__path__ = [os.path.join(os.environ["HEDDLE_TRITON"], "python/triton/tools")] if "HEDDLE_TRITON" in os.environ else []
_alias("tools.tensor_descriptor", sys.modules["heddle.tile.tools.tensor_descriptor"])
_module("errors", TritonError=TritonError)
runtime = _module("runtime", _tile.runtime, driver=driver)
_module("runtime.errors", InterpreterError=InterpreterError, OutOfResources=_tile.OutOfResources,
        AutotunerError=sys.modules["heddle.tile.runtime.autotuner"].AutotunerError)
_module("runtime._allocation", NullAllocator=lambda: None)
_module("runtime.jit", sys.modules["heddle.tile.runtime.jit"], sys.modules["heddle.tile.runtime.arrays"],
        TensorWrapper=sys.modules["heddle.tile.runtime.arrays"].Reinterpreted, JITCallable=_tile.JITFunction,
        MockTensor=types.SimpleNamespace(wrap_dtype=lambda one: one),
        type_canonicalisation_dict={name: name for name in language_types.BY_NAME})
_alias("runtime.driver", driver)
_alias("runtime.autotuner", sys.modules["heddle.tile.runtime.autotuner"])
_module("compiler", _tile.compiler, _compile)
_alias("compiler.errors", _tile.compiler.errors)

_module("compiler.compiler", _compile, triton_key=lambda: "heddle")
_module("runtime.cache", triton_key=lambda: "heddle")
_module("_utils", canonicalize_dtype=lambda one: str(sys.modules["heddle.tile.runtime.arrays"].element_type(one)))
_module("backends")
_module("backends.compiler", GPUTarget=sys.modules["heddle.tile.runtime.driver"].Target)
