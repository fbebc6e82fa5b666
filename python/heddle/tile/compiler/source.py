"""Compiling a kernel by the types of its arguments, without arrays: `compile(ASTSource(kernel, signature={"x": "*fp32"}))`."""
from typing import Any, Optional

from heddle.tile.language.types import unwrap
from heddle.tile.runtime.kernel import CompiledKernel, Options
from heddle.tile.runtime.specialize import facts_of_signature, hashable


class ASTSource:
    """A kernel with the type of each argument, and the values of those that are constants."""

    def __init__(self, fn: Any, signature: dict, constexprs: Optional[dict] = None, attrs: Optional[dict] = None):
        self.fn, self.signature, self.attrs = fn, signature, attrs or {}
        self.constexprs = {fn.arg_names[name[0]] if isinstance(name, tuple) else name: value for name, value in (constexprs or {}).items()}

    def facts(self) -> tuple:
        known = []
        for parameter in self.fn.params:
            if parameter.name in self.constexprs:
                known.append(("known", hashable(unwrap(self.constexprs[parameter.name]))))
            elif self.signature.get(parameter.name, "constexpr") != "constexpr":
                known.append(_facts(self.signature[parameter.name]))
            else:
                known.append(("known", hashable(parameter.parameter.default)))
        return tuple(known)


def _facts(written: Any) -> tuple:
    return ("tuple", None, tuple(map(_facts, written))) if isinstance(written, tuple) else facts_of_signature(written)


def compile(src: ASTSource, target: Any = None, options: Optional[dict] = None) -> CompiledKernel:
    """The kernel, compiled for a target: "cpu", "cuda-sm_90a", or a GPUTarget."""
    target = getattr(target, "compiler_name", target)
    return src.fn.instance(src.facts(), Options(**(options or {})), target or "cpu").load()
