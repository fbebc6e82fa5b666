"""Operators of PyTorch that are functions of ATen's operators, which the backend compiles for each signature of their arguments.

The same function is the operator's kernel, its shape function, and what torch.compile(backend="heddle") takes it apart into. Other
backends keep the operator as one node.
"""
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple

import torch
from torch.autograd.function import once_differentiable

from heddle import _core
from heddle.torch.part import TENSORS

_library = torch.library.Library("heddle", "FRAGMENT")
PARTS: Dict[Any, Callable[..., Any]] = {}  # by overload: the function
OPTIONS: Dict[str, Any] = {}  # of the backend
_operators: List["Operator"] = []
# Whether PyTorch has to see a call: transforms, modes, tracing and profilers that it has told to.
_MODES = [torch._C._are_functorch_transforms_active, torch._C._len_torch_dispatch_stack, torch._C._len_torch_function_stack,
          torch._C._is_tracing, torch._C._autograd._profiler_enabled]


class Operator:
    """`function` gets the arguments of `schema`, "name(Tensor x, float eps) -> Tensor", and returns a tensor, or several of them.

    With `gradient` the first result has a gradient. gradient(of the result, *arguments, *results if there are several, wanted) returns
    the gradients of those tensors among the arguments for which `wanted` has a True. Without `reads_result` it does not get the first
    result, which is then not saved. Schemas have no defaults.

    A call from eager code on plain tensors goes to the kernels without PyTorch's dispatcher, which takes longer than a small kernel.
    """

    def __init__(self, schema: str, function: Callable[..., Any], gradient: Optional[Callable[..., Any]] = None, reads_result: bool = True):
        name, _, rest = schema.partition("(")
        arguments, _, results = rest.partition(") -> ")
        _library.define(schema)
        self.overload: Any = getattr(torch.ops.heddle, name).default
        self._is_single, self._first_kept = results == "Tensor", 0 if reads_result else 1
        kept = [] if self._is_single else range(self._first_kept, results.count("Tensor"))
        self._gradient = None if gradient is None else _gradient_of(name, arguments, kept, gradient)
        kinds = [str(one.type) for one in self.overload._schema.arguments]
        self._tensors = [i for i, kind in enumerate(kinds) if "Tensor" in kind]
        self._numbers = [i for i, kind in enumerate(kinds) if "Tensor" not in kind]
        self._function, self._apply = function, self._differentiated()
        self._kernel = self.fresh_kernel()
        PARTS[self.overload] = function
        _operators.append(self)
        for key in ("CPU", "CUDA"):
            _library.impl(name, self._run, key)
        torch.library.register_fake(f"heddle::{name}", function, lib=_library)
        if gradient is not None:
            torch.library.register_autograd(f"heddle::{name}", once_differentiable(self._gradients), setup_context=self._save, lib=_library)

    def fresh_kernel(self) -> Any:
        """One that is compiled for no signature yet."""
        return _core.Specialised(TENSORS, lambda given: _compiled(self._function, given), self._apply, _MODES, torch.is_grad_enabled,
                                 self._is_single)

    def __call__(self, *arguments: Any) -> Any:
        if not torch.compiler.is_compiling():
            result = self._kernel.call(arguments)
            if result is not NotImplemented:
                return result
        return self.overload(*arguments)

    def _run(self, *arguments: Any) -> Any:
        result = self._kernel.run(arguments)
        if result is NotImplemented:  # a tensor that is lazily negated, or of a class of its own
            result = self._kernel.run(torch.utils._pytree.tree_map_only(torch.Tensor, torch.Tensor.clone, arguments))
        return result

    def _differentiated(self) -> Any:
        """What differentiates a call that PyTorch's dispatcher does not see."""
        if self._gradient is None:
            return None
        run, save, gradients, once = self._run, self._save, self._gradients, once_differentiable(self._gradients)

        def forward(ctx: Any, *inputs: Any) -> Any:
            output = run(*inputs)
            save(ctx, inputs, output)
            return output

        def backward(ctx: Any, *of_results: Any) -> Any:
            # Gradients of gradients alone need the check, which takes some microseconds.
            return (once if torch.is_grad_enabled() else gradients)(ctx, *of_results)
        methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
        function = type(torch.autograd.Function)(self.overload.name().partition("::")[2], (torch.autograd.Function,), methods)
        return super(torch.autograd.Function, function).apply  # type: ignore[misc]  what is around it is for functions that transforms see

    def _save(self, ctx: Any, inputs: Tuple[Any, ...], output: Any) -> None:
        if self._is_single:
            ctx.save_for_backward(*[inputs[i] for i in self._tensors])
        else:
            ctx.save_for_backward(*[inputs[i] for i in self._tensors], *output[self._first_kept:])
            ctx.mark_non_differentiable(*output[1:])
            ctx.set_materialize_grads(False)  # of the others they would be zeros
        ctx.numbers = [inputs[i] for i in self._numbers]

    def _gradients(self, ctx: Any, gradient: Optional[torch.Tensor], *_: Any) -> Tuple[Any, ...]:
        saved, needs = ctx.saved_tensors, ctx.needs_input_grad
        if gradient is None:
            return (None,) * len(needs)
        inputs = list(needs)
        for i, tensor in zip(self._tensors, saved):
            inputs[i] = tensor
        for i, number in zip(self._numbers, ctx.numbers):
            inputs[i] = number
        wanted = [needs[i] for i in self._tensors]
        made = iter(self._gradient(gradient, *inputs, *saved[len(self._tensors):], wanted))  # type: ignore[misc]
        return tuple([next(made) if need else None for need in needs])


def operators() -> Sequence[Operator]:
    return _operators


def _gradient_of(name: str, arguments: str, results: Iterable[int], function: Callable[..., Any]) -> Operator:
    kept = "".join(f"Tensor result{i}, " for i in results)
    return Operator(f"{name}_backward(Tensor gradient, {arguments}, {kept}bool[] wanted) -> Tensor[]", function)


def _compiled(function: Callable[..., Any], arguments: Sequence[Any]) -> Callable[[List[Any]], List[Any]]:
    """A function of a list of the tensors among the arguments."""
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.utils._python_dispatch import _disable_current_modes
    from heddle.torch.backend import build_graph
    from heddle.torch.decompositions import table

    flat, spec = torch.utils._pytree.tree_flatten(tuple(arguments))
    places = [i for i, one in enumerate(flat) if isinstance(one, torch.Tensor)]

    def of_tensors(*tensors: torch.Tensor) -> List[torch.Tensor]:
        values = list(flat)
        for place, tensor in zip(places, tensors):
            values[place] = tensor
        made = function(*torch.utils._pytree.tree_unflatten(values, spec))
        return [made] if isinstance(made, torch.Tensor) else list(made)
    with torch.inference_mode(False), torch.no_grad(), _disable_current_modes():
        examples = [flat[i].detach() if not flat[i].is_inference() else flat[i].clone() for i in places]
        module = make_fx(of_tensors, decomposition_table=table(True), tracing_mode="fake")(*examples)
        module.graph.eliminate_dead_code()
        return build_graph(module, kind="inference", weights=(), options=OPTIONS).function()
