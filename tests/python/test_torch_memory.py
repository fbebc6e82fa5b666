"""Memory of training steps under torch.compile(backend="heddle"): what is saved for the backward graph, and for how long."""
import itertools
import re
import unittest
import weakref
from unittest import mock

import test_torch_backend  # it ends the program where there is no torch
import torch
from test_torch_backend import REFERENCE
from torch.nn import functional as F

import heddle.torch
from heddle.torch.memory import peak_of_compiled, saved_by


def saved(graphs):
    """Tensors that the forward graph makes for the backward graph: its results but the first."""
    nodes = [node for node in graphs[0].results[1:] if node.op == "call_function"]
    return [node.meta["val"] for node in nodes if isinstance(node.meta["val"], torch.Tensor)]


class Saved(test_torch_backend.Backend):
    def run_with_gradients(self, function, *inputs):
        with self.graphs() as graphs:
            self.compiled(function)(*inputs).square().sum().backward()
        self.assertEqual([graph.kind for graph in graphs], ["forward", "backward"])
        self.assertFalse([one.node for graph in graphs for one in graph.division.fallbacks])
        return graphs

    def test_pools_save_a_byte_for_each_maximum_and_not_their_operand(self):
        x = torch.randn(2, 3, 13, 15, requires_grad=True)
        graphs = self.run_with_gradients(lambda x: F.max_pool2d(x.sin() * 2, 3, 2, 1), x)
        self.assertEqual([(one.dtype, list(one.shape)) for one in saved(graphs)], [(torch.uint8, [2, 3, 7, 8])])

    def test_views_of_what_is_saved_are_made_again(self):
        weight = torch.randn(8, 16, requires_grad=True)

        def function(x):
            with torch.autocast("cpu", torch.bfloat16):
                return F.linear(F.linear(x, weight).t(), weight.t())
        graphs = self.run_with_gradients(function, torch.randn(8, 16, requires_grad=True))
        self.assertEqual([one.dtype for one in saved(graphs)], [torch.bfloat16] * len(saved(graphs)))
        self.assertFalse([node for node in graphs[0].results[1:] if node.target in (torch.ops.aten.permute.default, torch.ops.aten.t.default)])

    def test_gradients_of_pools(self):
        windows = [(3, 2, 1), (3, 1, 1), (2, 3), (3, 2, 0, 2), ((3, 1), (1, 2)), (7, 1, 3), ((2, 5), (2, 3), (1, 2), (3, 1)), (5, 1, 2, 1, True)]

        def function(x):
            return torch.cat([F.max_pool2d(x, *window).flatten() for window in windows])
        ties = torch.randint(-2, 2, (2, 3, 17, 19)).float()
        ties[0, 0] = -torch.inf
        for x in (ties, torch.randn(1, 2, 17, 19), torch.randn(3, 11, 18)):
            torch._dynamo.reset()
            mine, eager = (x.clone().requires_grad_() for _ in range(2))
            gradient = torch.randn(function(x).shape)
            self.compiled(function)(mine).backward(gradient)
            function(eager).backward(gradient)
            torch.testing.assert_close(mine.grad, eager.grad)

    def test_operators_of_pools_agree_with_their_kernels(self):
        from heddle.torch.pools import MAX_POOL, MAX_POOL_BACKWARD

        x = torch.randn(2, 3, 11, 12)
        for window in ([3, 3], [2, 2], [1, 1], [1, 1]), ([2, 3], [2, 1], [0, 1], [3, 1]):
            values, places = MAX_POOL(x, *window, False)
            want, positions = torch.ops.aten.max_pool2d_with_indices(x, *window)
            torch.testing.assert_close(values, want)
            gradient = torch.randn_like(values)
            torch.testing.assert_close(
                MAX_POOL_BACKWARD(gradient, places, [11, 12], *window),
                torch.ops.aten.max_pool2d_with_indices_backward(gradient, x, *window, False, positions))

    def test_positions_that_the_program_reads_stay(self):
        x = torch.randn(2, 3, 8, 8, requires_grad=True)

        def function(x):
            values, positions = F.max_pool2d(x, 2, return_indices=True)
            return F.max_unpool2d(values, positions, 2)
        mine = x.detach().clone().requires_grad_()
        torch.compile(function, backend=heddle.torch.heddle_backend)(mine).square().sum().backward()
        function(x).square().sum().backward()
        torch.testing.assert_close(mine.grad, x.grad)

    def test_operands_of_products_are_computed_again_but_casts_of_weights_are_saved(self):
        class Layers(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.up, self.down = torch.nn.Linear(32, 96, bias=False), torch.nn.Linear(96, 8, bias=False)

            def forward(self, x):
                hidden = F.linear(x, self.up.weight.bfloat16())
                return F.linear(F.gelu(hidden), self.down.weight.bfloat16())
        graphs = self.run_with_gradients(Layers(), torch.randn(16, 32).bfloat16())
        shapes = sorted(sorted(one.shape) for one in saved(graphs))
        self.assertEqual(shapes, [[8, 96], [16, 96]])  # a weight, and `hidden`

    def test_masks_and_softmaxes_are_computed_again(self):
        x = torch.randn(16, 256, requires_grad=True)
        graphs = self.run_with_gradients(lambda x: F.dropout(x.sin(), 0.4), x)
        self.assertLess(sum(one.nbytes for one in saved(graphs)), 64)  # the seeds
        torch._dynamo.reset()
        weight = torch.randn(256, 256, requires_grad=True)
        graphs = self.run_with_gradients(lambda x, w: F.softmax(x.bfloat16() @ w.bfloat16(), 1, dtype=torch.float32).bfloat16() @ w.bfloat16(), x, weight)
        wide = [one for one in saved(graphs) if one.dtype == torch.float32 and one.shape == x.shape]
        self.assertFalse(wide)


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = torch.nn.LayerNorm(32), torch.nn.Linear(32, 128), torch.nn.Linear(128, 32)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Parts(test_torch_backend.Backend):
    """Which part computes a value, where PyTorch runs operators between parts."""

    def test_masks_belong_to_the_part_that_reads_them(self):
        def function(x):
            return F.dropout(torch.view_as_real(torch.fft.rfft(x.sin())), 0.5, True)
        with self.graphs() as graphs:
            self.compiled(function)(torch.randn(256))
        draws = [any(node.target is torch.ops.heddle.uniform.default for node in part.nodes) for part in graphs[0].parts]
        self.assertEqual(draws, [False, True])

    def test_what_is_made_of_numbers_and_positions_belongs_to_each_part_that_reads_it(self):
        def function(x):
            for _ in range(3):
                gradients = [torch.zeros(3, 5).select_scatter(x + i, 0, i) for i in range(3)]
                x = torch.lgamma(sum(gradients).square().sum(0) + torch.arange(5) + 1)  # PyTorch runs lgamma
            return x
        with self.graphs() as graphs:
            result = self.compiled(function)(torch.ones(5))
        torch.testing.assert_close(result, function(torch.ones(5)))
        self.assertEqual([len(part.inputs) for part in graphs[0].parts], [1, 1, 1])
        self.assertEqual([len(part.outputs) for part in graphs[0].parts], [1, 1, 1])

    def test_values_belong_to_the_part_that_is_under_way_in_the_program(self):
        def function(x, weights):
            for weight in weights:
                x = torch.lgamma((x @ weight.bfloat16()).square() + 1)  # PyTorch runs lgamma, and digamma for its gradient
            return x
        for large, parts in ((1, 8), (1 << 20, 2)):
            torch._dynamo.reset()
            weights = [torch.randn(8, 8, requires_grad=True) for _ in range(4)]
            with self.graphs() as graphs, mock.patch("heddle.torch.partition._LARGE", large):
                self.compiled(function)(torch.randn(5, 8).bfloat16(), weights).sum().backward()
            forward, backward = graphs
            self.assertEqual([sum(node in forward.placeholders for node in part.inputs) for part in forward.parts], [2, 1, 1, 1])
            self.assertEqual(len(backward.parts), parts)


    def test_values_that_are_read_through_views_are_stored_once(self):
        def function(x, weight):
            a, b, c = (x @ weight).view(5, 3, 8).unbind(1)
            spectra = [torch.view_as_real(torch.fft.fft(one)) for one in (a, b.t(), x.t())]
            return spectra[0].sum(0) + spectra[1].sum(1) + c.sum(0)[:, None], spectra[2]
        x, weight = torch.randn(5, 7), torch.randn(7, 24)
        with self.graphs() as graphs:
            got = self.compiled(function)(x, weight)
        for one, other in zip(got, function(x, weight)):
            torch.testing.assert_close(one, other)
        first, second = graphs[0].parts
        self.assertEqual([node.target for node in first.outputs], [torch.ops.aten.mm.default])
        self.assertIn(first.outputs[0], second.inputs)

    def test_views_that_several_parts_read_are_made_by_pytorch_once(self):
        def function(x, weight):  # PyTorch runs lgamma
            y = x @ weight
            view = y.t()
            z = torch.lgamma(view) * view + torch.lgamma(y.view(-1)).sum()
            return torch.lgamma(z) * view.exp()
        x, weight = torch.rand(5, 7), torch.rand(7, 24)
        with self.graphs() as graphs:
            got = self.compiled(function)(x, weight)
        torch.testing.assert_close(got, function(x, weight))
        nodes = [step.node for step in graphs[0].division.steps if not hasattr(step, "nodes")]
        self.assertCountEqual(nodes, set(nodes))

    def test_pytorch_reads_views_of_what_each_part_makes_for_itself(self):
        def function(x):
            a = torch.arange(12.0).view(3, 4) + 1
            b = torch.lgamma(x + a).sin()
            return torch.lgamma(a.t()), b  # in another part than the sum
        with mock.patch("heddle.torch.partition._LARGE", 1):
            got = self.compiled(function)(torch.ones(3, 4))
        for one, other in zip(got, function(torch.ones(3, 4))):
            torch.testing.assert_close(one, other)

    def test_a_small_part_of_a_large_value_is_stored_alone(self):
        with self.graphs() as graphs:
            self.compiled(lambda x: torch.view_as_real(torch.fft.fft(x.sin()[:, 0])).sin() + x.cos()[:, 3:4])(torch.randn(6, 64))
        self.assertEqual([list(node.meta["val"].shape) for node in graphs[0].parts[0].outputs], [[6]])

    def test_operands_of_attention_are_saved_as_the_operator_reads_them(self):
        def function(x, weight, bias):
            q, k, v = (F.linear(x, weight, bias).view(2, 10, 3, 4, 8).permute(2, 0, 3, 1, 4)).unbind(0)
            return F.scaled_dot_product_attention(q, k, v)
        x, weight, bias = (torch.randn(*shape, requires_grad=True) for shape in ((2, 10, 16), (96, 16), (96,)))
        with self.graphs() as graphs:
            self.compiled(function)(x, weight, bias).square().sum().backward()
        wide = [one.numel() for one in saved(graphs) if one.numel() == 2 * 10 * 96]
        self.assertEqual(len(wide), 1)  # with the bias, and nothing of what it is computed from
        self.assertNotIn(torch.ops.aten.add.Tensor, [node.target for part in graphs[1].parts for node in part.nodes])


    def test_saved_operands_of_attention_add_no_guards_on_extents(self):
        def function(x, weight):
            q, k, v = (x @ weight).view(*x.shape[:2], 3, 4, 8).permute(2, 0, 3, 1, 4).unbind(0)
            return F.scaled_dot_product_attention(q, k[:, :1].expand_as(q), v).square().sum()
        weight = torch.randn(16, 96) / 4
        compiled = self.compiled(function, dynamic=True)
        with torch._dynamo.config.patch(error_on_recompile=True):
            for batch, length in ((2, 10), (3, 7), (5, 33)):
                mine = torch.randn(batch, length, 16, requires_grad=True)
                exact = mine.detach().double().requires_grad_()
                compiled(mine, weight).backward()
                function(exact, weight.double()).backward()
                torch.testing.assert_close(mine.grad.double(), exact.grad, rtol=0, atol=1e-5 * exact.grad.abs().max().item())


def peak_of_allocations(function):
    """Bytes of PyTorch's memory on the CPU that the call needs at a time, beside those that were there."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as taken:
        function()
    found, events = [], list(taken.profiler.kineto_results.experimental_event_tree())
    for event in events:
        events += event.children
        if event.name == "[memory]":
            found.append((event.start_time_ns, event.extra_fields.alloc_size))
    return max(itertools.accumulate(size for _, size in sorted(found)))


class Budget(test_torch_backend.Backend):
    """options={"memory_budget": bytes}, and the figures of explain()."""

    def setUp(self):
        super().setUp()
        self.module, self.x = torch.nn.Sequential(*[Block() for _ in range(4)]), torch.randn(256, 32)

    def told(self, **options):
        torch._dynamo.reset()
        return heddle.torch.explain(self.module, self.x, execution="reference", **options)

    def test_explain_knows_memory_before_the_run(self):
        told = self.told()
        forward, backward = told["graphs"]
        self.assertGreater(forward["peak_bytes"], 0)
        saved = sum(one["bytes"] for one in backward["saved"])
        self.assertGreaterEqual(backward["peak_bytes"], saved)
        self.assertTrue(any(one["line"].startswith("test_torch_memory.py:") for one in backward["saved"]))
        self.assertRegex(str(told), r"(?s)memory: at most .*MB beside parameters.*saved by the forward graph: .* at test_torch_memory.py:")

    def test_peaks_are_those_of_the_steps(self):
        def function(x):
            return torch.cdist((x * 2).exp(), x).sum()  # PyTorch runs cdist
        graph = heddle.torch.explain(function, torch.randn(16, 32))["graphs"][0]
        values = [16 * 32 * 4, 16 * 16 * 4, 4]
        self.assertEqual(graph["peak_bytes"] - graph["scratch_bytes"], max(values[0] + values[1], values[1] + values[2]))

    def test_a_loss_in_chunks_counts_with_its_scratch(self):
        class Loss(torch.nn.Linear):
            def forward(self, x, y):
                return F.cross_entropy(super().forward(x), y)
        with mock.patch("heddle.torch.large_logits.LARGE", 1):
            told = heddle.torch.explain(Loss(32, 900), self.x, torch.randint(900, (256,)), execution="reference")
        self.assertEqual(told["graphs"][0]["scratch_bytes"], 256 * 1024 * 4)  # rows are padded

    def test_a_budget_computes_more_again(self):
        before = self.told()
        peak = max(graph["peak_bytes"] for graph in before["graphs"])
        after = self.told(memory_budget=peak * 15 // 16)
        saved = [sum(one["bytes"] for one in told["graphs"][1]["saved"]) for told in (before, after)]
        self.assertLess(saved[1], saved[0])
        self.check_gradients(self.module, self.x, options={**REFERENCE, "memory_budget": peak * 15 // 16})

    def test_a_budget_that_is_large_changes_nothing(self):
        self.assertEqual(self.told()["graphs"], self.told(memory_budget=1 << 40)["graphs"])

    def test_a_budget_that_cannot_be_kept_is_refused_with_the_least_one(self):
        with self.assertRaises(torch._dynamo.exc.BackendCompilerFailed) as refused:
            self.told(memory_budget=1)
        least = int(re.search(r"Give at least (\d+)", str(refused.exception))[1])
        self.assertTrue(self.told(memory_budget=least))
        for wrong in (0, -1, True, 0.5, "1 GB"):
            with self.assertRaisesRegex(torch._dynamo.exc.BackendCompilerFailed, "is no number of bytes"):
                self.told(memory_budget=wrong)


class Segments(test_torch_backend.Backend):
    """On a CPU graphs stay whole; here they do not."""

    def setUp(self):
        super().setUp()
        from heddle.torch import graph, segments

        self.enterContext(mock.patch.object(graph, "may_divide", lambda _: True))
        for name, value in (("_FEWEST", 1 << 10), ("_CUT", 16)):
            self.enterContext(mock.patch.object(segments, name, value))

    def module(self):
        layers = []
        for _ in range(4):
            layers += [torch.nn.LayerNorm(32), torch.nn.Linear(32, 96), torch.nn.GELU(), torch.nn.Linear(96, 32), torch.nn.Dropout(0)]
        return torch.nn.Sequential(*layers)

    def test_gradients(self):
        self.check_gradients(self.module(), torch.randn(24, 32, requires_grad=True))
        images = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3), torch.nn.BatchNorm2d(16), torch.nn.ReLU(), torch.nn.MaxPool2d(3, 2, 1),
                                     torch.nn.Conv2d(16, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU())
        self.check_gradients(images, torch.randn(4, 3, 17, 17))

    def test_saved_tensors_end_between_segments_of_the_backward_graph(self):
        module = self.module()
        with self.graphs() as graphs:
            self.compiled(module)(torch.randn(24, 32)).square().mean().backward()
        backward = graphs[1]
        self.assertGreater(len(backward.parts), 1)
        arguments = [torch.randn(node.meta["val"].shape) for node in backward.placeholders]
        owners = [weakref.ref(one) for one in arguments]
        alive = []
        for part in backward.compiled_parts():
            run = part._evaluate
            part._evaluate = lambda *given, run=run: (alive.append(sum(one() is not None for one in owners)), run(*given))
        backward(arguments)
        self.assertEqual(alive, sorted(alive, reverse=True))
        self.assertLess(alive[-1], alive[0])

    def test_predicted_peaks_are_those_of_allocations(self):
        module, x = torch.nn.Sequential(*[Block() for _ in range(4)]), torch.randn(250, 32)
        for function in (lambda x: module(x).square().mean(),
                         lambda x: torch.lgamma(module(x).square() + 1).mean()):  # PyTorch runs lgamma
            with self.graphs() as graphs:
                step = self.compiled(function)
                step(x).backward()
            forward, backward = graphs
            self.assertGreater(len(backward.division.steps), 1)
            module.zero_grad()
            losses = []
            peak = peak_of_allocations(lambda: losses.append(step(x)))
            self.assertAlmostEqual(peak, peak_of_compiled(forward).bytes, delta=64)
            saved = sum(node.meta["val"].nbytes for node in saved_by(backward.placeholders))
            self.assertAlmostEqual(saved + peak_of_allocations(lambda: losses.pop().backward()), peak_of_compiled(backward).bytes, delta=64)
            module.zero_grad()

    def test_only_the_part_that_decides_the_peak_is_divided(self):
        def layers(x, count):
            for _ in range(count):
                x = torch.tanh(x @ x)
            return x

        def function(x):
            return layers(torch.view_as_real(torch.fft.fft(layers(x, 6)))[..., 0], 12)
        with self.graphs() as graphs:
            self.compiled(function)(torch.randn(32, 32, requires_grad=True)).square().mean().backward()
        backward, = (graph for graph in graphs if graph.kind == "backward")
        is_part = [hasattr(step, "nodes") for step in backward.division.steps]
        self.assertGreater(is_part.index(False), 1, "all saved tensors are alive when the gradients of the last layers are made")
        self.assertEqual(sum(is_part[len(is_part) - is_part[::-1].index(False):]), 1, "fewer are alive for those of the first layers")

    def test_masks_are_those_of_the_forward_graph(self):
        def function(x):
            for _ in range(6):
                x = F.dropout(torch.tanh(x @ x), 0.5)
            return x
        x = torch.randn(16, 16)
        gradients, parts = [], []
        for divides in (True, False):
            torch._dynamo.reset()
            torch.manual_seed(0)
            leaf = x.clone().requires_grad_()
            with mock.patch("heddle.torch.graph.may_divide", lambda _, divides=divides: divides), self.graphs() as graphs:
                self.compiled(function)(leaf).sum().backward()
            gradients.append(leaf.grad)
            parts.append(len(graphs[1].parts))
        self.assertGreater(parts[0], parts[1])
        self.assertGreater(gradients[0].abs().max(), 0)
        torch.testing.assert_close(*gradients)


if __name__ == "__main__":
    unittest.main()
