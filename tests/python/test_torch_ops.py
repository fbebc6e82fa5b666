"""The operators that PyTorch tags as its core, on samples of PyTorch's own tests, forward and backward, compared with eager.

Graphs run in the reference evaluator. An ordinary run takes one sample of every third operator, and one in bf16 of every ninth;
HEDDLE_ALL_INSTANCES=1 takes eight of each.
"""
import collections
import functools
import os
import unittest
import warnings
import zlib

import test_torch_backend  # noqa: F401  it ends the program where there is no torch
import torch
from torch.testing._internal.common_methods_invocations import op_db

TAKES_ALL = bool(os.environ.get("HEDDLE_ALL_INSTANCES"))
# Numbers that nobody can predict, strides of memory that the sample does not own, and layouts that no graph is traced of.
NOT_COMPARED = {"randn", "empty", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "empty_like",
                "as_strided.partial_views", "sparse.mm.reduce"}
# Errors of tracing, which the backend never sees: shapes that depend on data.
DATA_DEPENDENT = ("DataDependentOutputException", "DynamicOutputShapeException", "GuardOnDataDependentSymNode")


def core_operators(one_of):
    """OpInfos of the packets that have an overload with the tag, by name; in an ordinary run one of so many."""
    aten = torch.ops.aten
    packets = {name: getattr(aten, name) for name in dir(aten) if hasattr(getattr(aten, name), "overloads")}
    core = {name for name, packet in packets.items() if any(torch.Tag.core in getattr(packet, one).tags for one in packet.overloads())}
    named = {op.full_name: op for op in op_db if {op.aten_name, op.name.split(".")[-1]} & core}
    return {name: op for name, op in named.items() if name not in NOT_COMPARED
            and (TAKES_ALL or zlib.crc32(name.encode()) % one_of == 0)}


def leaves(tree):
    return [one for one in torch.utils._pytree.tree_leaves(tree) if isinstance(one, torch.Tensor)]


def traced(function, fallbacks):
    """`function` through AOTAutograd and the backend, without Dynamo; counts operators that fall back."""
    from torch._functorch.aot_autograd import aot_function
    from heddle.torch.backend import build_graph, partitioned
    from heddle.torch.decompositions import table

    def build(module, _inputs, kind):
        graph = build_graph(module, kind=kind, weights=(), options={"execution": "reference"})
        fallbacks[kind].update(f"{one.node.target}: {one.reason}" for one in graph.division.fallbacks)
        return graph
    forward, backward, inference = (functools.partial(build, kind=kind) for kind in ("forward", "backward", "inference"))
    return aot_function(function, fw_compiler=forward, bw_compiler=backward, inference_compiler=inference,
                        decompositions=table(True), partition_fn=partitioned)


class Core(unittest.TestCase):
    def run_sample(self, op, sample, fallbacks):
        flat, spec = torch.utils._pytree.tree_flatten(((sample.input, *sample.args), sample.kwargs))
        places = [i for i, one in enumerate(flat) if isinstance(one, torch.Tensor)]

        def function(*tensors):
            arguments = list(flat)
            for place, tensor in zip(places, tensors):
                arguments[place] = tensor
            positional, words = torch.utils._pytree.tree_unflatten(arguments, spec)
            return op.op(*positional, **words)

        def results(run, wide=False):
            """Outputs, and gradients of a random sum of them."""
            inputs = [flat[i].detach().clone() for i in places]
            inputs = [one.double() if wide and one.is_floating_point() else one for one in inputs]
            inputs = [one.requires_grad_(flat[i].requires_grad) for i, one in zip(places, inputs)]
            outputs = leaves(run(*inputs))
            differentiable = [one for one in outputs if one.requires_grad]
            if not differentiable:
                return outputs
            tangents = [torch.randn(one.shape, generator=torch.Generator().manual_seed(1)).to(one) for one in differentiable]
            wanted = [one for one in inputs if one.requires_grad]
            gradients = torch.autograd.grad(differentiable, wanted, tangents, allow_unused=True)
            return outputs + [torch.zeros_like(x) if one is None else one for x, one in zip(wanted, gradients)]
        want, got = results(function), results(traced(function, fallbacks))
        for i, (a, b) in enumerate(zip(want, got, strict=True)):
            rtol, atol = (2e-2, 1e-3) if a.dtype == torch.bfloat16 else (1e-3, 1e-5)
            try:
                torch.testing.assert_close(b, a, rtol=rtol, atol=atol, equal_nan=True)
            except AssertionError:  # where terms cancel, eager may be the one that is wrong
                if not a.is_floating_point():
                    raise
                exact = results(function, wide=True)[i]
                self.assertLessEqual((b - exact).abs().max(), 2 * (a - exact).abs().max() + atol)

    def run_operators(self, operators, dtype_of):
        """By operator the fallbacks of its forward and backward graphs."""
        warnings.filterwarnings("ignore")
        found = {}
        for name, op in operators.items():
            dtype = dtype_of(op)
            torch.manual_seed(1)
            samples = list(op.sample_inputs("cpu", dtype, requires_grad=op.supports_autograd and dtype.is_floating_point))
            count = 8 if TAKES_ALL else 1
            fallbacks = collections.defaultdict(collections.Counter)
            for sample in samples[::max(1, len(samples) // count)][:count]:
                with self.subTest(operator=name, dtype=dtype):
                    try:
                        self.run_sample(op, sample, fallbacks)
                    except Exception as error:
                        if type(error).__name__ not in DATA_DEPENDENT:
                            raise
            found[name] = fallbacks["forward"] + fallbacks["inference"], fallbacks["backward"]
        return found

    def test_samples_agree_with_eager(self):
        found = self.run_operators(core_operators(3), lambda op: next(one for one in (torch.float32, torch.int64, torch.bool) if one in op.dtypes))
        left_out = {name: dict(forward + backward) for name, (forward, backward) in found.items() if forward or backward}
        whole = [sum(not one[i] for one in found.values()) for i in range(2)]
        self.assertGreaterEqual(whole[0], 0.95 * len(found), left_out)
        self.assertGreaterEqual(whole[1], 0.8 * len(found), left_out)
        print(f"{len(found)} operators, without fallbacks: {whole[0]} forward, {whole[1]} backward; {left_out}")

    def test_samples_in_bf16_agree_with_eager(self):
        # Equal numbers may stand in any order, and most samples of a sort in 8 bits of precision have some.
        operators = {name: op for name, op in core_operators(9).items() if torch.bfloat16 in op.dtypes and name != "sort"}
        self.assertGreater(len(self.run_operators(operators, lambda _: torch.bfloat16)), 5)


if __name__ == "__main__":
    unittest.main()
