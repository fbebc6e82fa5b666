"""The operators with gradients of heddle.ops, against PyTorch's in float64; in eager code, under torch.compile, autocast and modes.

Most shapes run in the reference evaluator, which needs no C++ compiler; one of each operator is compiled.
"""
import contextlib
import unittest
from unittest import mock

import test_torch_backend  # it ends the program where there is no torch
import torch
from test_torch_backend import REFERENCE
from torch.nn import functional as F

import heddle
import heddle.torch
from heddle import ops
from heddle.torch import specialised

BOUNDS = {torch.float64: 1e-11, torch.float32: 1e-5, torch.bfloat16: 2e-2}


OF_RANK = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}


def attention64(q, k, v, mask=None, causal=False, scale=None):
    k, v = (one.repeat_interleave(q.shape[1] // k.shape[1], 1) for one in (k, v))
    scores = q @ k.transpose(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
    if causal:
        scores = scores.masked_fill(~torch.ones(scores.shape[-2:], dtype=torch.bool).tril(), -torch.inf)
    return scores.softmax(-1).nan_to_num(0.0) @ v


class Operators(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def check(self, mine, exact, *inputs, needs=None, dtype=torch.float32, kernels=False, layout=None):
        """Results and gradients of those inputs that are floats, and that `needs` does not leave out."""
        from heddle.torch.backend import observed

        made = [one.to(dtype) if one is not None and one.is_floating_point() else one for one in inputs]
        learns = [one is not None and one.is_floating_point() and (needs is None or needs[i]) for i, one in enumerate(made)]
        given = [one.detach().requires_grad_(is_wanted) if one is not None else None for one, is_wanted in zip(made, learns)]
        wide = [one.detach().double().requires_grad_(is_wanted) if one is not None and one.is_floating_point() else one
                for one, is_wanted in zip(made, learns)]
        with self.options({} if kernels else REFERENCE), observed() as graphs:
            got = mine(*given)
            gradient = torch.randn(got.shape).to(dtype)
            gradients = torch.autograd.grad(got, [one for one, is_wanted in zip(given, learns) if is_wanted], gradient) if any(learns) else ()
        want = exact(*wide)
        self.assertEqual((got.dtype, got.requires_grad), (dtype, any(learns)))
        self.assertTrue(layout is None or got.is_contiguous(memory_format=layout))
        expected = torch.autograd.grad(want, [one for one, is_wanted in zip(wide, learns) if is_wanted], gradient.double()) if any(learns) else ()
        for a, b in zip((got, *gradients), (want, *expected), strict=True):
            bound = 4 * BOUNDS[dtype] * max(1.0, b.abs().max().item() if b.numel() else 0.0)
            torch.testing.assert_close(a.double(), b.detach(), rtol=0, atol=bound)
        for graph in graphs:
            self.assertFalse(graph.division.fallbacks)
            self.assertTrue(all(part.model is not None and part.model.kernels() for part in graph.compiled_parts()) or not kernels)

    @contextlib.contextmanager
    def options(self, options):
        """In operators without programs of earlier tests."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(mock.patch.object(specialised, "OPTIONS", options))
            for operator in specialised.operators():
                stack.enter_context(mock.patch.object(operator, "_kernel", operator.fresh_kernel()))
            yield

    def test_norms(self):
        for shape, rows, dtype, needs in (((3, 17), 1, torch.float32, (True, True, True)), ((1, 1), 1, torch.float32, (False, True, False)),
                                          ((2, 5, 7), 2, torch.float64, (True, False, True)), ((13, 130), 1, torch.bfloat16, (True, True, True))):
            row = shape[-rows:]
            x, weight, bias = torch.randn(shape), torch.randn(row), torch.randn(row)
            self.check(lambda *a: ops.layer_norm(a[0], row, *a[1:]), lambda *a: F.layer_norm(a[0], row, *a[1:]), x, weight, bias, dtype=dtype,
                       needs=needs)
            self.check(lambda *a: ops.rms_norm(a[0], row, a[1], 1e-4), lambda *a: F.rms_norm(a[0], row, a[1], 1e-4), x, weight, dtype=dtype,
                       needs=needs[:2])
        x = torch.randn(6)
        self.check(lambda x: ops.rms_norm(x, 6), lambda x: F.rms_norm(x, (6,), eps=torch.finfo(torch.float32).eps), x)
        self.check(lambda x, b: ops.layer_norm(x, 6, None, b), lambda x, b: F.layer_norm(x, (6,), None, b), x, torch.randn(6))

    def test_gates(self):
        for shape, dtype, needs in (((3, 17), torch.float32, (True, True)), ((1,), torch.float64, (False, True)),
                                    ((2, 3, 129), torch.bfloat16, (True, True))):
            self.check(ops.swiglu, lambda x, y: F.silu(x) * y, torch.randn(shape), torch.randn(shape), dtype=dtype, needs=needs)

    def test_convolutions(self):
        for rank, words, bias in ((1, {}, True), (2, {"padding": 1, "stride": (2, 1)}, False), (3, {"padding": (1, 0, 2)}, True),
                                  (2, {"groups": 2, "dilation": 2}, True)):
            x, w = torch.randn(2, 4, *[5] * rank), torch.randn(6, 4 // words.get("groups", 1), *[2] * rank)
            self.check(lambda *a: ops.convolution(*a, **words), lambda *a: OF_RANK[rank](*a, **words), x, w, torch.randn(6) if bias else None)
        self.check(lambda *a: ops.convolution(*a, padding=1), lambda *a: F.conv2d(*a, padding=1),
                   torch.randn(2, 5, 7, 3).to(memory_format=torch.channels_last), torch.randn(3, 5, 3, 3), dtype=torch.bfloat16,
                   layout=torch.channels_last)

    def test_attention(self):
        each, one, none = (True, True, True, False), (False, False, True, False), (False,) * 4
        for heads, shared, queries, keys, mask, needs, words in (
                (4, 2, 5, 7, torch.randn(5, 7), each, {}), (2, 1, 7, 7, None, one, {"is_causal": True}),
                (3, 3, 1, 3, torch.rand(2, 1, 1, 3) > 0.5, each, {"scale": 0.3}), (2, 1, 4, 6, torch.randn(4, 6), none, {"is_causal": True}),
                (2, 2, 5, 5, torch.randn(5, 5), None, {"is_causal": True})):  # the last mask learns
            q, k, v = torch.randn(2, heads, queries, 9), torch.randn(2, shared, keys, 9), torch.randn(2, shared, keys, 9)
            self.check(lambda q, k, v, m: ops.scaled_dot_product_attention(q, k, v, m, **words),
                       lambda q, k, v, m: attention64(q, k, v, m, words.get("is_causal", False), words.get("scale")), q, k, v, mask, needs=needs)
        q, k, v = (torch.randn(1, 2, 3, width) for width in (8, 8, 5))
        self.check(ops.scaled_dot_product_attention, attention64, q, k, v, dtype=torch.bfloat16)

    def test_operands_of_any_strides(self):
        x = torch.randn(6, 20)[:, ::2]
        self.check(lambda x, w: ops.rms_norm(x, 10, w), lambda x, w: F.rms_norm(x, (10,), w, torch.finfo(torch.float32).eps), x, torch.randn(10))
        self.check(ops.swiglu, lambda x, y: F.silu(x) * y, x, torch.randn(6, 1).expand(6, 10))
        self.check(ops.convolution, F.conv1d, torch.randn(2, 9, 4).transpose(1, 2), torch.randn(3, 4, 2).flip(2))
        q, k, v = torch.randn(2, 5, 3, 2, 8).unbind(2)
        self.check(lambda *a: ops.scaled_dot_product_attention(*(one.transpose(1, 2) for one in a)),
                   lambda *a: attention64(*(one.transpose(1, 2) for one in a)), q, k, v)
        negated = torch.imag(torch.randn(5, 3, dtype=torch.complex64).conj())
        self.assertTrue(negated.is_neg())
        with self.options(REFERENCE):
            torch.testing.assert_close(ops.swiglu(negated, negated), F.silu(negated) * negated)

    def test_kernels_compute_them(self):
        self.check(lambda *a: ops.layer_norm(a[0], 35, *a[1:]), lambda *a: F.layer_norm(a[0], (35,), *a[1:]), torch.randn(11, 35),
                   torch.randn(35), torch.randn(35), kernels=True)
        self.check(ops.swiglu, lambda x, y: F.silu(x) * y, torch.randn(11, 35), torch.randn(11, 35), dtype=torch.bfloat16, kernels=True)
        self.check(lambda *a: ops.scaled_dot_product_attention(*a, is_causal=True), lambda *a: attention64(*a, causal=True),
                   torch.randn(1, 4, 9, 8), torch.randn(1, 2, 9, 8), torch.randn(1, 2, 9, 8), kernels=True)

    def test_a_signature_is_compiled_once(self):
        x = torch.randn(3, 8)
        with self.options(REFERENCE), mock.patch.object(specialised, "_compiled", wraps=specialised._compiled) as compiled:
            for one in (x, x + 1, x.clone().requires_grad_(), torch.nn.Parameter(x)):
                ops.swiglu(one, x)
            self.assertEqual(compiled.call_count, 1)
            for one in (x.double(), torch.randn(2, 8), torch.randn(8, 3).t()):
                ops.swiglu(one, torch.empty_like(one))
            self.assertEqual(compiled.call_count, 4)

    def test_operators_keep_their_contracts(self):
        def leaf(*shape):
            return torch.randn(*shape, requires_grad=True)
        with self.options(REFERENCE):
            calls = [("layer_norm", torch.randn(3, 6), [6], torch.randn(6), None, 1e-5), ("rms_norm", torch.randn(3, 6), [6], None, 1e-5),
                     ("layer_norm_kept", leaf(3, 6), [6], leaf(6), leaf(6), 1e-5), ("rms_norm_kept", leaf(3, 6), [6], None, 1e-5),
                     ("swiglu", leaf(3, 6), leaf(3, 6)), ("convolution", leaf(1, 2, 5), leaf(3, 2, 3), None, [1], [0], [1], 1),
                     ("scaled_dot_product_attention", *(torch.randn(1, 2, 3, 4) for _ in range(3)), None, True, None),
                     ("scaled_dot_product_attention_kept", leaf(1, 2, 3, 4), leaf(1, 1, 3, 4), leaf(1, 1, 3, 4), torch.randn(3, 3), False, 0.5)]
            for name, *arguments in calls:
                utilities = ("test_schema", "test_autograd_registration", "test_faketensor")
                more = ("test_aot_dispatch_dynamic",) if name == "swiglu" else ()  # half a second each
                torch.library.opcheck(getattr(torch.ops.heddle, name).default, tuple(arguments), test_utils=(*utilities, *more))
            x, y = (torch.randn(2, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
            torch.autograd.gradcheck(ops.swiglu, (x, y))
            gradient, = torch.autograd.grad(ops.swiglu(x, y).square().sum(), x, create_graph=True)
            with self.assertRaisesRegex(RuntimeError, "once_differentiable"):
                gradient.sum().backward()

    def test_modes_see_the_operators(self):
        from torch._subclasses.fake_tensor import FakeTensorMode
        from torch.utils.flop_counter import FlopCounterMode

        x = torch.randn(3, 6)
        with self.options(REFERENCE):
            with FakeTensorMode() as mode:
                fake = ops.rms_norm(mode.from_tensor(x), 6)
            self.assertEqual((type(fake).__name__, fake.shape), ("FakeTensor", x.shape))
            with torch.profiler.profile() as profile, FlopCounterMode(display=False):
                ops.rms_norm(x, 6)
            self.assertIn("heddle::rms_norm", [one.name for one in profile.events()])
            with torch.inference_mode():
                torch.testing.assert_close(ops.rms_norm(x * 2, 6), F.rms_norm(x * 2, (6,)))

    def test_autocast(self):
        q, w = torch.randn(1, 2, 5, 8, requires_grad=True), torch.randn(3, 2, 1, 1, requires_grad=True)
        with self.options(REFERENCE), torch.autocast("cpu", torch.bfloat16):
            made = [ops.scaled_dot_product_attention(q, q, q), ops.convolution(q, w), ops.layer_norm(q.bfloat16(), 8, torch.ones(8)),
                    ops.swiglu(q, q)]
        self.assertEqual([one.dtype for one in made], [torch.bfloat16] * 3 + [torch.float32])
        torch.autograd.backward([one.sum() for one in made])
        self.assertEqual((q.grad.dtype, w.grad.dtype), (torch.float32, torch.float32))
        torch.testing.assert_close(made[1], F.conv2d(q, w).bfloat16(), rtol=2e-2, atol=2e-2)

    def test_errors(self):
        x, q = torch.randn(3, 6), torch.randn(1, 3, 4, 8)
        wrong = [(lambda: ops.layer_norm(x, 5), r"rows are \[5\]"), (lambda: ops.rms_norm(x, 6, torch.ones(5)), "weight"),
                 (lambda: ops.swiglu(x, x[1:]), "same shape"), (lambda: ops.convolution(x, x), "dimensions"),
                 (lambda: ops.scaled_dot_product_attention(x, x, x), "dimensions"),
                 (lambda: ops.scaled_dot_product_attention(q, q[:, :2], q[:, :2]), "multiple")]
        for call, said in wrong:
            with self.assertRaisesRegex(heddle.InputError, said):
                call()
        with self.assertRaisesRegex(AttributeError, "no attribute 'layernorm'"):
            ops.layernorm


class Compiled(test_torch_backend.Backend):
    @staticmethod
    def block(x, w):
        y = ops.layer_norm(x, 8, w)
        return ops.swiglu(ops.rms_norm(y, 8), y)

    def check_with(self, function, backend, *inputs, **words):
        leaves = [one.requires_grad_() for one in inputs]
        want = function(*leaves)
        got = torch.compile(function, backend=backend, fullgraph=True, **words)(*leaves)
        torch.testing.assert_close(got, want)
        for a, b in zip(*(torch.autograd.grad(one.square().sum(), leaves) for one in (got, want))):
            torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)

    def test_the_backend_takes_them_apart_and_others_keep_them(self):
        with mock.patch.object(specialised, "OPTIONS", REFERENCE), self.graphs() as graphs:
            self.check_with(self.block, heddle.torch.heddle_backend, torch.randn(6, 8), torch.randn(8), options=REFERENCE)
            self.check_with(ops.swiglu, "aot_eager", torch.randn(2, 3), torch.randn(2, 3))
        ours = [graph for graph in graphs if graph.kind != "inference"]
        self.assertEqual([(graph.kind, len(graph.parts), graph.division.fallbacks) for graph in ours], [("forward", 1, []), ("backward", 1, [])])
        self.assertFalse([node for graph in ours for node in graph._graph.nodes if str(node.target).startswith("heddle.")])


if __name__ == "__main__":
    unittest.main()
