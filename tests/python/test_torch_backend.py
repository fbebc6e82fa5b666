"""torch.compile(backend="heddle"): modules and functions with their gradients, shapes, memory and errors, compared with eager.

Most graphs run in the reference evaluator, which needs no C++ compiler; a few are compiled.
"""
import copy
import sys
import unittest

try:
    import torch
    from torch.nn import functional as F
except ImportError:
    sys.exit("skipped: there is no torch")
if tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2]) < (2, 10):
    sys.exit("skipped: there is no torch 2.10")

import heddle.torch

REFERENCE = {"execution": "reference"}


class Backend(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        torch.manual_seed(0)

    def compiled(self, function, options=REFERENCE, **words):
        return torch.compile(function, backend=heddle.torch.heddle_backend, options=dict(options), **words)

    def graphs(self):
        from heddle.torch.backend import observed

        return observed()

    def check(self, function, *inputs, fallbacks=(), parts=1, tolerance=1e-5, options=REFERENCE, **words):
        """Results, their strides, and what becomes of the inputs are those of eager; `fallbacks`: operators of PyTorch."""
        mine = copy.deepcopy(inputs)
        with self.graphs() as graphs:
            got = self.compiled(function, options, **words)(*mine)
        want = function(*inputs)
        leaves = torch.utils._pytree.tree_leaves
        for a, b in zip([*leaves(want), *leaves(inputs)], [*leaves(got), *leaves(mine)], strict=True):
            if isinstance(a, torch.Tensor):
                torch.testing.assert_close(b, a, rtol=max(1e-4, tolerance), atol=tolerance, check_stride=True, equal_nan=True)
            else:
                self.assertEqual(a, b)
        self.assertEqual([str(one.node.target) for graph in graphs for one in graph.division.fallbacks], list(fallbacks))
        self.assertEqual(sum(len(graph.parts) for graph in graphs), parts)

    def check_gradients(self, module, *inputs, fallbacks=0, options=REFERENCE, tolerance=1e-4):
        """Of every parameter and of the inputs that require them; buffers change as they do in eager."""
        other, mine = copy.deepcopy(module), [one.detach().clone().requires_grad_(one.requires_grad) for one in inputs]
        with self.graphs() as graphs:
            self.compiled(module, options)(*mine).square().mean().backward()
        other(*inputs).square().mean().backward()
        for (name, a), b in zip(other.named_parameters(), module.parameters()):
            torch.testing.assert_close(b.grad, a.grad, rtol=1e-3, atol=tolerance, msg=lambda why: f"{name}: {why}")
        for (name, a), b in zip(other.named_buffers(), module.buffers()):
            torch.testing.assert_close(b, a, msg=lambda why: f"{name}: {why}")
        for a, b in zip(inputs, mine):
            if a.requires_grad:
                torch.testing.assert_close(b.grad, a.grad, rtol=1e-3, atol=tolerance)
        self.assertEqual({graph.kind for graph in graphs}, {"forward", "backward"})
        self.assertEqual(sum(len(graph.division.fallbacks) for graph in graphs), fallbacks)
        self.assertTrue(all(graph.parts for graph in graphs))


class Graphs(Backend):
    def test_results_have_the_strides_of_eager(self):
        self.check(lambda x: (x + 1).t(), torch.randn(3, 4))
        self.check(lambda x: (x + 1).sum(1, keepdim=True).expand(3, 7), torch.randn(3, 4))
        self.check(lambda x: F.relu(x) * 2, torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last))

    def test_inputs_of_any_strides(self):
        self.check(lambda x: x * 2 + 1, torch.randn(4, 6)[:, ::2])
        self.check(lambda x: x * 2 + 1, torch.randn(4, 1).expand(4, 5))
        self.check(lambda x, y: x + y, *[torch.randn(3)] * 2)

    def test_kernels_read_and_write_any_strides(self):
        def function(x, y, z):
            return (x * 2 + 1).t(), (y + x).sum(1, keepdim=True).expand(4, 7), F.relu(z) * 2, z.mean()
        inputs = torch.randn(4, 6)[:, ::2], torch.randn(4, 1).expand(4, 3), torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
        with self.graphs() as graphs:
            self.check(function, *inputs, options={})
        arguments = [one.contiguous() for one in inputs]  # dense ones where the graph was promised others
        for got, want in zip(graphs[0](list(arguments)), function(*arguments)):
            torch.testing.assert_close(got, want)

    def test_arguments_end_as_soon_as_nothing_reads_them(self):
        import weakref

        events = []
        library = torch.library.Library("heddle_test", "DEF")
        library.define("between(Tensor x) -> Tensor")
        library.impl("between", lambda x: (events.append("operator"), x.clone())[1], "CPU")
        torch.library.register_fake("heddle_test::between", lambda x: torch.empty_like(x), lib=library)
        with self.graphs() as graphs:
            self.compiled(lambda x: torch.ops.heddle_test.between(x * 2) + 1, {})(torch.randn(4))
        events.clear()
        arguments = [torch.randn(4)]
        weakref.finalize(arguments[0], events.append, "the argument ends")
        graphs[0](arguments)
        self.assertEqual((events, arguments), (["the argument ends", "operator"], []))

    def test_inputs_are_changed_in_place(self):
        self.check(lambda x: (x.add_(1), x * 2)[1], torch.randn(3, 4))

        def writes(x, y):
            x[:, 1:5:2] = y
            return x + 1
        self.check(writes, torch.randn(3, 6), torch.randn(3, 2))

    def test_inputs_that_are_copied_into_each_other(self):
        def copied_before_it_changes(x, y):
            y.copy_(x)
            x.add_(1)
            return x * 2

        def swapped(x, y):
            old = x.clone()
            x.copy_(y)
            y.copy_(old)
            return x + y
        for function in (copied_before_it_changes, swapped):
            self.check(function, torch.randn(3, 3), torch.randn(3, 3))

    def test_views_of_inputs_share_their_memory(self):
        function = lambda x: (x.t(), x[1:], x.view(-1), x + 1)  # noqa: E731
        self.check(function, torch.randn(3, 4))
        x = torch.randn(3, 4)
        views = self.compiled(function)(x)
        for view in views[:3]:
            self.assertEqual(view.untyped_storage().data_ptr(), x.untyped_storage().data_ptr())

    def test_arguments_and_results_that_are_no_tensors(self):
        self.check(lambda x, s: (x * s, None, 5), torch.randn(4), 3)
        self.check(lambda x, s: x * s, torch.randn(4), 2.5)
        self.check(lambda x: (x, x + 1), torch.randn(4))

    def test_shapes_without_elements_and_without_dimensions(self):
        self.check(lambda x: x + 1, torch.randn(0, 4))
        self.check(lambda x: x.sum() + 1, torch.randn(3))

    def test_types(self):
        self.check(lambda x: (x > 0) & (x < 1), torch.randn(9))
        self.check(lambda x: x * 3 // 2, torch.arange(-9, 9))
        self.check(lambda x: x.exp(), torch.randn(9, dtype=torch.float64), tolerance=1e-12)
        self.check(lambda x: F.softmax(x, -1), torch.randn(3, 9).bfloat16(), tolerance=1e-2)
        self.check(lambda x: F.layer_norm(x, (9,)), torch.randn(3, 9).half(), tolerance=1e-2)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            self.check(lambda x, w: F.gelu(x @ w), torch.randn(4, 5), torch.randn(5, 6), tolerance=3e-2)

    def test_numbers_are_not_rounded_to_the_type_of_a_tensor(self):
        for function in (lambda x: x * 0.79788, lambda x: x + 0.1, lambda x: 0.3 - x, lambda x: x / 0.7):
            dtype, x = torch.bfloat16, torch.randn(501).bfloat16()
            torch.testing.assert_close(self.compiled(function)(x), function(x.float()).to(dtype), rtol=0, atol=0)

    def test_a_symbolic_extent_compiles_the_graph_once(self):
        def function(x):
            return F.softmax(x @ x.t(), -1).sum(0) + x.shape[0]
        with self.graphs() as graphs:
            compiled = self.compiled(function, dynamic=True)
            for rows in (5, 2, 3, 7, 5):
                x = torch.randn(rows, 4)
                torch.testing.assert_close(compiled(x), function(x))
        self.assertEqual(len(graphs), 1)

    def test_threads_that_meet_new_extents_at_once(self):
        from concurrent.futures import ThreadPoolExecutor

        def function(x):
            return torch.tanh(x).sum(0)
        with self.graphs() as graphs, torch.no_grad():
            self.compiled(function, dynamic=True)(torch.randn(5, 4))
        graph, inputs = graphs[0], [torch.randn(rows, 4) for rows in (2, 3, 2, 7, 3, 2)]

        def run(x):  # arguments as AOTAutograd passes them: symbolic extents, then tensors
            return graph([*x.shape, x])[0]
        with ThreadPoolExecutor(4) as pool:
            for x, got in zip(inputs, pool.map(run, inputs)):
                torch.testing.assert_close(got, function(x))

    def test_extents_that_were_used_last_are_kept(self):
        from unittest import mock

        from heddle.torch import graph as module

        with mock.patch.object(module, "MOST_SHAPES", 2), self.graphs() as graphs:
            compiled = self.compiled(lambda x: x * 2, dynamic=True)
            for rows in (3, 4, 3, 5):
                compiled(torch.randn(rows, 4))
        self.assertEqual([key[0] for key in graphs[0]._programs], [3, 5])

    def test_nan_and_infinity(self):
        values = torch.tensor([1.0, float("nan"), float("inf"), float("-inf"), -0.0])
        self.check(lambda x: (F.relu(x), x.clamp(-1, 1), torch.maximum(x, x.flip(0)), x.isnan(), x.sort()[0], x.max()), values)

    def test_powers_of_two(self):
        for options in (REFERENCE, {}):
            self.check(lambda x: (torch.exp2(x), 2 ** x), torch.linspace(-20, 20, 43), options=options)

    def test_complement_of_the_error_function_keeps_its_digits(self):
        x = torch.linspace(-4, 9, 53)
        for options in (REFERENCE, {}):
            compiled = self.compiled(torch.erfc, options)
            torch.testing.assert_close(compiled(x), torch.erfc(x.double()).float(), rtol=1e-6, atol=0)

    def test_operators_that_stay_with_pytorch_run_between_the_parts(self):
        def function(x):
            return torch.view_as_real(torch.fft.fft(x + 1)).sum(-1) * 2
        self.check(function, torch.randn(8), fallbacks=["aten._fft_r2c.default", "aten.view_as_real.default"], parts=2, tolerance=1e-4)

    def test_numbers_that_data_decide_stay_with_pytorch(self):
        def function(x):
            return torch.ones(x.sum().int().item()) * 2
        with torch._dynamo.config.patch(capture_scalar_outputs=True), self.graphs() as graphs:
            got = self.compiled(function)(torch.tensor([1.0, 2.0]))
        torch.testing.assert_close(got, torch.full((3,), 2.0))
        self.assertIn("aten._local_scalar_dense.default", [str(one.node.target) for graph in graphs for one in graph.division.fallbacks])


class Random(Backend):
    def draw(self, function, *inputs, seed=1, options=REFERENCE):
        """Results of two calls after manual_seed(seed); nothing falls back."""
        with self.graphs() as graphs:
            compiled = self.compiled(function, options)
            torch.manual_seed(seed)
            results = [compiled(*inputs), compiled(*inputs)]
        self.assertEqual([one.node.target for graph in graphs for one in graph.division.fallbacks], [])
        self.assertEqual([len(graph.parts) for graph in graphs], [1] * len(graphs))
        return results

    def test_calls_differ_and_seeds_repeat(self):
        function = lambda x: (F.dropout(x, 0.3, True), torch.rand(50) + torch.rand(50))  # noqa: E731
        (a, b), (c, d), (e, f) = [self.draw(function, torch.ones(50), seed=seed) for seed in (1, 1, 2)]
        for i in range(2):
            self.assertTrue(torch.equal(a[i], c[i]) and torch.equal(b[i], d[i]))
            self.assertFalse(torch.equal(a[i], b[i]) or torch.equal(a[i], e[i]) or torch.equal(b[i], f[i]))

    def test_distributions(self):
        count = 100_000

        def function(x):
            return {"rand": torch.rand(count), "randn": torch.randn(count), "rand_like": torch.rand_like(x), "f64": torch.rand(count, dtype=torch.float64),
                    "randn64": torch.randn(count, dtype=torch.float64), "bf16": torch.rand(count, dtype=torch.bfloat16),
                    "bernoulli": torch.bernoulli(x * 0.25), "randint": torch.randint(-3, 9, (count,)), "normal": torch.empty(count).normal_(3, 2),
                    "uniform": torch.empty(count).uniform_(-1, 3), "exponential": torch.empty(count).exponential_(2.0), "dropout": F.dropout(x, 0.1, True)}
        wanted = {"rand": (0.5, 12 ** -0.5), "randn": (0, 1), "rand_like": (0.5, 12 ** -0.5), "f64": (0.5, 12 ** -0.5), "randn64": (0, 1),
                  "bf16": (0.5 - 2 ** -9, 12 ** -0.5), "bernoulli": (0.25, 0.1875 ** 0.5), "randint": (2.5, (143 / 12) ** 0.5), "normal": (3, 2),
                  "uniform": (1, 4 * 12 ** -0.5), "exponential": (0.5, 0.5), "dropout": (1, 1 / 3)}
        drawn = self.draw(function, torch.ones(count), options={})[1]
        for name, (mean, deviation) in wanted.items():
            values = drawn[name].double()
            self.assertLess(abs(values.mean() - mean), 5 * deviation / count ** 0.5, name)
            self.assertLess(abs(values.std() / deviation - 1), 0.02, name)
            for lag in (1, 2, 8, 256):
                apart = (values[lag:] - mean) * (values[:-lag] - mean) / deviation ** 2
                self.assertLess(abs(apart.mean()), 5 / count ** 0.5, f"{name}, lag {lag}")
        for name in ("rand", "f64", "rand_like"):
            self.assertTrue(0 <= drawn[name].min() and drawn[name].max() < 1)
            counts = torch.histc(drawn[name].float(), 256, 0, 1).double()
            self.assertLess(((counts - count / 256) ** 2 / (count / 256)).sum(), 255 + 5 * 510 ** 0.5, name)  # chi squared
        self.assertEqual((drawn["randint"].min(), drawn["randint"].max()), (-3, 8))

    def test_numbers_of_a_seed_are_those_of_pytorchs_arithmetic(self):
        seeds = torch.tensor([[5, 7], [(1 << 31) - 1, 1 << 30]])
        for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
            for kind, tolerance in (("uniform", 0), ("normal", 1e-2 if dtype.itemsize == 2 else 1e-5)):
                function = lambda seeds: getattr(torch.ops.heddle, kind)(seeds, 1, [7, 9], dtype)  # noqa: E731, B023
                torch._dynamo.reset()
                torch.testing.assert_close(self.compiled(function)(seeds), function(seeds), rtol=tolerance, atol=tolerance)

    def test_generators_of_the_caller_stay_with_pytorch(self):
        generator = torch.Generator().manual_seed(3)
        want = torch.rand(5, generator=torch.Generator().manual_seed(3)) + 1
        torch.testing.assert_close(self.compiled(lambda: torch.rand(5, generator=generator) + 1)(), want)

    def test_the_backward_graph_has_the_masks_of_the_forward_graph(self):
        from torch.utils.checkpoint import checkpoint

        def dropped(x):
            return F.dropout(x * 2, 0.5, True).sin()
        for function in (dropped, lambda x: checkpoint(dropped, x, use_reentrant=False)):
            torch._dynamo.reset()
            compiled = self.compiled(function)
            for _ in range(2):
                x = torch.rand(200, requires_grad=True)
                y = compiled(x)
                y.sum().backward()
                self.assertTrue(torch.equal(x.grad != 0, y != 0))
                self.assertTrue(50 < (y != 0).sum() < 150)

    def test_a_transformer_with_dropout_trains_without_fallbacks(self):
        module = torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.2, batch_first=True)
        with self.graphs() as graphs:
            self.compiled(module, {**REFERENCE, "fallback": "error"})(torch.randn(2, 5, 16)).square().mean().backward()
        self.assertEqual({graph.kind for graph in graphs}, {"forward", "backward"})
        self.assertTrue(all(parameter.grad.isfinite().all() for parameter in module.parameters()))


class Gradients(Backend):
    def test_scatters_into_memory(self):
        def function(x, y):
            return torch.as_strided_scatter(x * 2, y, (2, 2), (4, 1), 5).sin()
        self.check(function, torch.randn(3, 4), torch.randn(2, 2))

    def test_convolutions_normalisation_and_pools(self):
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.conv, self.bn = torch.nn.Conv2d(4, 8, 3, stride=2, padding=1, groups=2), torch.nn.BatchNorm2d(8)
                self.up = torch.nn.ConvTranspose2d(8, 6, 4, stride=2, padding=1, groups=2, output_padding=1)

            def forward(self, x):
                x = self.up(F.silu(self.bn(self.conv(x))))
                return F.interpolate(F.avg_pool2d(F.max_pool2d(x, 3, 2, 1), 2, ceil_mode=True), scale_factor=2)
        self.check_gradients(Net(), torch.randn(2, 4, 17, 15, requires_grad=True))

    def test_gradients_of_pools_that_overlap_leave_pixels_out_or_are_dilated(self):
        class Pools(torch.nn.Module):
            def forward(self, x, volume):
                made = [F.max_pool2d(x, *window) for window in ((3, 2, 1), (3, 1, 1), (2, 3), (3, 2, 0, 2), ((3, 1), (1, 2)), (7, 1, 3))]
                made += [F.max_pool2d(x, 3, 2, 1, ceil_mode=True), F.max_pool3d(volume, (3, 2, 1), (2, 1, 1), (1, 0, 0))]
                return torch.cat([one.flatten() for one in made])
        # Few values, so that windows have several maxima.
        x, volume = torch.randint(-3, 4, (2, 3, 13, 16)).float(), torch.randint(-3, 4, (1, 2, 7, 5, 4)).float()
        self.check_gradients(Pools(), x.requires_grad_(), volume.requires_grad_())

    def test_a_transformer_is_compiled_to_kernels(self):
        class Block(torch.nn.Module):
            def __init__(self, width=16, heads=2):
                super().__init__()
                self.heads, self.table = heads, torch.nn.Embedding(30, width)
                self.norm, self.qkv, self.out = torch.nn.LayerNorm(width), torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)

            def forward(self, tokens):
                x = self.table(tokens)
                b, t, d = x.shape
                q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(self.norm(x)).split(d, 2))
                y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, d)
                return F.log_softmax((x + self.out(y)) @ self.table.weight.t(), -1)
        with self.graphs() as graphs:
            self.check_gradients(Block(), torch.randint(0, 30, (2, 9)), options={})
        for graph in graphs:
            self.assertGreater(sum(len(part.model.kernels()) for part in graph.compiled_parts()), 0)

    def test_heads_that_share_their_keys(self):
        class Shared(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.q, self.kv = torch.nn.Linear(16, 16), torch.nn.Linear(16, 8)

            def forward(self, x):
                q = self.q(x).unflatten(-1, (4, 4)).transpose(1, 2)
                k, v = (one[:, None] for one in self.kv(x).chunk(2, -1))
                return F.scaled_dot_product_attention(q, k, v)
        self.check_gradients(Shared(), torch.randn(2, 5, 16))

    def test_batches_that_change(self):
        module = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh())
        compiled = self.compiled(module, dynamic=True)
        for rows in (2, 5, 6):
            x = torch.randn(rows, 4)
            got = torch.autograd.grad(compiled(x).square().sum(), list(module.parameters()))
            want = torch.autograd.grad(module(x).square().sum(), list(module.parameters()))
            for a, b in zip(want, got):
                torch.testing.assert_close(b, a)

    def test_checkpoints(self):
        from torch.utils.checkpoint import checkpoint

        inner = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh())

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = inner

            def forward(self, x):
                return checkpoint(self.inner, x, use_reentrant=False)
        self.check_gradients(Net(), torch.randn(3, 4, requires_grad=True))


class Weights(Backend):
    """Parameters and buffers of graphs without gradients are constants of kernels."""

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm = torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8)
            self.out, self.scale = torch.nn.Linear(8, 5), torch.nn.Parameter(torch.tensor(1.5))
            with torch.no_grad():
                self.norm.running_mean.uniform_(-1, 1)
                self.norm.running_var.uniform_(0.5, 2)

        def forward(self, x):
            return self.out(F.relu(self.norm(self.conv(x))).mean((2, 3))) * self.scale

    def run_both(self, compiled, module, x):
        with torch.no_grad():
            torch.testing.assert_close(compiled(x), module(x), rtol=1e-4, atol=1e-5)

    def test_they_are_folded_and_follow_every_change(self):
        module, x = self.Net().eval(), torch.randn(2, 3, 9, 9)
        compiled = self.compiled(module, {})
        with self.graphs() as graphs:
            self.run_both(compiled, module, x)
        self.assertEqual([port.shape for port in graphs[0].compiled_parts()[0].model.inputs], [(2, 3, 9, 9), ()])  # the scale
        changes = [lambda: module.load_state_dict(self.Net().state_dict()),
                   lambda: module.norm.running_mean.add_(1),
                   lambda: setattr(module.conv.weight, "data", torch.randn(8, 3, 3, 3)),
                   lambda: module.conv.weight.data.copy_(torch.randn(8, 3, 3, 3)),
                   lambda: module.norm.weight.data.mul_(2),
                   lambda: setattr(module.out, "bias", torch.nn.Parameter(torch.randn(5))),
                   lambda: module.scale.fill_(-2)]
        for change in changes:
            with torch.no_grad():
                change()
            for _ in range(4):
                self.run_both(compiled, module, x)

    def test_a_pytorch_without_the_c_interface_is_read_by_dlpack(self):
        from unittest import mock

        from heddle import _core

        with mock.patch("torch._C._aoti.unsafe_alloc_void_ptrs_from_tensors", side_effect=RuntimeError) as asked:
            tensors = _core.TorchTensors(torch.Tensor)
        self.assertTrue(asked.called)
        with mock.patch("heddle.torch.graph.TENSORS", tensors), mock.patch("heddle.torch.weights.TENSORS", tensors):
            self.test_they_are_folded_and_follow_every_change()

    def test_a_loop_that_changes_them_in_each_call_compiles_once_more(self):
        from unittest import mock

        from heddle.torch import graph

        module, x = self.Net().eval(), torch.randn(2, 3, 9, 9)
        compiled = self.compiled(module, {})
        optimiser = torch.optim.SGD(module.parameters(), 0.1)
        with mock.patch.object(graph, "CompiledPart", wraps=graph.CompiledPart) as made:
            for _ in range(6):
                self.run_both(compiled, module, x)
                module(x).sum().backward()
                optimiser.step()
        self.assertEqual(made.call_count, 2)  # with the weights of the first call, and with weights as arguments

    def test_graphs_of_open_extents_pack_for_each_of_them(self):
        module = self.Net().eval()
        compiled = self.compiled(module, {}, dynamic=True)
        with self.graphs() as graphs:
            for change in (None, lambda: module.conv.weight.mul_(2), None):
                for rows in (2, 5, 2, 3):
                    self.run_both(compiled, module, torch.randn(rows, 3, 9, 9))
                if change:
                    with torch.no_grad():
                        change()
        self.assertEqual(len(graphs), 1)
        self.assertEqual({key[0] for key in graphs[0]._weights.packed.programs}, {2, 3})  # two calls after the change waited

    def test_weights_that_change_unseen(self):
        results = {}
        for option in ("fixed", "arguments"):
            torch._dynamo.reset()
            module, x = self.Net().eval(), torch.randn(2, 3, 9, 9)
            compiled = self.compiled(module, {"weights": option})
            with torch.no_grad():
                before = compiled(x)
                module.conv.weight.data.add_(1)
                results[option] = torch.equal(compiled(x), before), torch.allclose(compiled(x), module(x), rtol=1e-4, atol=1e-5)
        self.assertEqual(results, {"fixed": (True, False), "arguments": (False, True)})

    def test_what_a_graph_writes_and_what_inference_mode_made_are_arguments(self):
        module, x = self.Net().train(), torch.randn(2, 3, 9, 9)
        compiled = self.compiled(copy.deepcopy(module), {})
        for _ in range(2):
            self.run_both(compiled, module, x)  # statistics change
        with torch.inference_mode():
            module = torch.nn.Linear(4, 4)
            compiled, x = self.compiled(module, {}), torch.randn(2, 4)
            for _ in range(2):
                self.run_both(compiled, module, x)
                module.weight.mul_(2)


class Export(Backend):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm, self.out = torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.Linear(8, 5)
            self.register_buffer("offset", torch.randn(5))

        def forward(self, image, *, scale, unused=None):
            x = self.norm(self.conv(image))
            return {"scores": self.out(x.mean((2, 3))) * scale + self.offset, "pixels": image.permute(0, 2, 3, 1), "image": image}

    def test_a_plan_runs_without_torch(self):
        import subprocess
        import tempfile

        import numpy as np

        module = self.Net().eval()
        image, scale = torch.randn(2, 3, 6, 7).to(memory_format=torch.channels_last), torch.randn(2, 1)
        with tempfile.TemporaryDirectory() as folder:
            model = heddle.torch.export(module, (image,), folder + "/m.plan", keywords={"scale": scale})
            self.assertEqual([port.name for port in model.inputs], ["image", "scale"])
            given = {"image": image.contiguous().numpy(), "scale": scale.numpy()}
            np.savez(folder + "/in.npz", **given)
            program = """import sys
sys.modules["torch"] = None
import heddle, numpy
model = heddle.compile(sys.argv[1] + "/m.plan")
numpy.savez(sys.argv[1] + "/out.npz", **model.run(dict(numpy.load(sys.argv[1] + "/in.npz"))))"""
            subprocess.run([sys.executable, "-c", program, folder], check=True, timeout=120)
            got = np.load(folder + "/out.npz")
            with torch.no_grad():
                want = module(image, scale=scale)
            self.assertEqual(set(got), set(want))
            for name in want:
                np.testing.assert_allclose(got[name], want[name].numpy(), rtol=1e-4, atol=1e-5)

    def test_what_no_plan_can_do_is_refused(self):
        class Cdist(torch.nn.Module):
            def forward(self, x):
                return torch.cdist(x, x)
        with self.assertRaisesRegex(heddle.UnsupportedError, r"aten._cdist_forward.default at test_torch_backend.py:\d+"):
            heddle.torch.export(Cdist(), (torch.randn(2, 3),), "m.plan")
        with self.assertRaisesRegex(heddle.InputError, r"norm.*in place.*module.eval\(\)"):
            heddle.torch.export(self.Net().train(), (torch.randn(2, 3, 6, 7),), "m.plan", keywords={"scale": torch.ones(1)})


class Errors(Backend):
    def refused(self, *words, **options):
        function = lambda x: torch.multinomial(x.abs() + 1, 2)  # noqa: E731
        with self.assertRaises(torch._dynamo.exc.BackendCompilerFailed) as raised:
            torch.compile(function, backend=heddle.torch.heddle_backend, **options)(torch.randn(4))
        for word in words:
            self.assertIn(word, str(raised.exception))

    def test_unknown_options_and_modes(self):
        self.refused("no option falback", "Did you mean fallback?", options={"falback": "error"})
        self.refused("fallback: 'never'", "run or error", options={"fallback": "never"})
        self.refused('no mode "fast"', "reduce-overhead", mode="fast")

    def test_fallbacks_that_are_refused_are_named_with_their_line(self):
        self.refused("aten.multinomial.default", "test_torch_backend.py:", options={"fallback": "error"})

    def test_explain_names_fallbacks(self):
        class Net(torch.nn.Linear):
            def forward(self, x):
                return torch.cdist(super().forward(x), x)
        report = heddle.torch.explain(Net(4, 4), torch.randn(3, 4), **REFERENCE)
        self.assertEqual([graph["kind"] for graph in report["graphs"]], ["forward", "backward"])
        self.assertEqual(report["graphs"][0]["fallbacks"][0]["operator"], "aten._cdist_forward.default")
        self.assertIn("PyTorch runs aten._cdist_forward.default", str(report))

    def test_explain_reports_what_was_compiled_before(self):
        module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
        for _ in range(2):
            report = heddle.torch.explain(module, torch.randn(3, 4), **REFERENCE)
            self.assertEqual([graph["kind"] for graph in report["graphs"]], ["forward", "backward"])
        self.assertEqual(module[1].num_batches_tracked, 0)  # a copy ran


class Verification(Backend):
    def module(self):
        return torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.LayerNorm(5))

    def test_right_modules_pass(self):
        report = heddle.torch.verify(self.module(), torch.randn(3, 4), **REFERENCE)
        self.assertTrue(report, str(report))
        self.assertEqual(len(report["tensors"]), 5)  # an output, and the gradients of four parameters

    def test_the_first_wrong_operator_is_named_with_its_line(self):
        from unittest import mock

        from heddle.torch.lowering import TABLE

        def function(x):
            y = x * 2
            return torch.tanh(y) + 1
        with mock.patch.dict(TABLE, {torch.ops.aten.tanh.default: lambda context, x: context.unary("sin", x)}):
            report = heddle.torch.verify(function, torch.randn(3, 4), **REFERENCE)
        self.assertFalse(report)
        line = function.__code__.co_firstlineno + 2
        self.assertEqual(report["first_difference"],
                         {"graph": "inference", "operator": "aten.tanh.default", "line": f"test_torch_backend.py:{line}"})


if __name__ == "__main__":
    unittest.main()
