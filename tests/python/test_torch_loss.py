"""heddle.torch.linear_cross_entropy, and graphs that get it, against PyTorch's operators in float64."""
import unittest
from unittest import mock

from drawing import draw
import test_torch_backend  # it ends the program where there is no torch
import torch
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import heddle
import heddle.torch

BOUNDS = {torch.float64: 1e-11, torch.float32: 2e-6, torch.bfloat16: 2e-2, torch.float16: 3e-3}


def reference(x, weight, target, bias=None, soft_cap=0.0, **words):
    logits = F.linear(*(None if one is None else one.double() for one in (x, weight, bias))).flatten(0, -2)
    if soft_cap:
        logits = soft_cap * torch.tanh(logits / soft_cap)
    loss = F.cross_entropy(logits, target.flatten(), **words)
    return loss.reshape(target.shape) if words.get("reduction") == "none" else loss


class LinearCrossEntropy(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def check(self, lead, features, classes, dtype=torch.float32, with_bias=False, needs=(True, True, True), ignored=0.2, **words):
        budget = words.pop("memory_budget", None)
        made = [torch.randn(*lead, features), torch.randn(classes, features) / features ** 0.5, torch.randn(classes) if with_bias else None]
        operands = [None if one is None else one.to(dtype) for one in made]
        mine, exact = ([None if one is None else one.detach().clone().requires_grad_(learns) for one, learns in zip(operands, needs)]
                       for _ in range(2))
        target = torch.randint(0, classes, lead)
        target[torch.rand(lead) < ignored] = words.get("ignore_index", -100)
        got = heddle.torch.linear_cross_entropy(mine[0], mine[1], target, mine[2], memory_budget=budget, **words)
        want = reference(exact[0], exact[1], target, exact[2], **words)
        bound = BOUNDS[dtype]
        torch.testing.assert_close(got.double(), want, rtol=4 * bound, atol=4 * bound, equal_nan=True)
        gradient = torch.randn(want.shape)
        leaves, others = ([one for one in tensors if one is not None and one.requires_grad] for tensors in (mine, exact))
        for a, b in zip(torch.autograd.grad(got, leaves, gradient.to(got)), torch.autograd.grad(want, others, gradient.double())):
            self.assertEqual(a.dtype, dtype)
            torch.testing.assert_close(a.double(), b.double(), rtol=0, atol=4 * bound * max([1e-30, *b.abs().flatten().tolist()]), equal_nan=True)

    def test_reductions_types_and_odd_shapes(self):
        for reduction in draw(("mean", "sum", "none")):
            for dtype in BOUNDS:
                self.check((5, 7), 33, 301, dtype, reduction=reduction)
            self.check((13,), 5, 3, reduction=reduction, with_bias=True, label_smoothing=0.1)
            self.check((3, 2, 5), 8, 1027, reduction=reduction, with_bias=True, soft_cap=1.5, label_smoothing=0.2)
            self.check((1,), 1, 1, reduction=reduction, ignored=0)

    def test_gradients_are_multiplied_unless_by_one(self):
        from heddle.torch.loss import scale_kernel

        for factor in (1.0, -2.5):
            for dtype in (torch.float32, torch.bfloat16):
                x = torch.randn(3001).to(dtype)
                wanted = (x.float() * factor).to(dtype)
                scale_kernel[(3,)](x, torch.tensor(factor), x.numel(), BLOCK=1024)
                torch.testing.assert_close(x, wanted, rtol=0, atol=0)
        weight, x, target = torch.randn(7, 4, requires_grad=True), torch.randn(5, 4), torch.randint(0, 7, (5,))
        loss = heddle.torch.linear_cross_entropy(x, weight, target)
        for factor in (1.0, 3.0):
            got, = torch.autograd.grad(loss, weight, torch.tensor(factor), retain_graph=True)
            want, = torch.autograd.grad(F.cross_entropy(x @ weight.t(), target), weight, torch.tensor(factor))
            torch.testing.assert_close(got, want)

    def test_chunks(self):
        for dtype, budget in ((torch.float32, 0), (torch.bfloat16, 0), (torch.bfloat16, 1 << 20), (torch.float16, 1 << 20)):
            self.check((2500,), 24, 200, dtype, with_bias=True, memory_budget=budget)
        self.check((2500,), 24, 200, reduction="none", memory_budget=0)

    def test_a_budget_decides_on_chunks_and_on_the_type_of_sums(self):
        from heddle.torch.loss import Chunks

        weight = torch.empty(128256, 4096, device="meta", dtype=torch.bfloat16)
        chunks = Chunks(4096, weight, torch.bfloat16, 1_000_000_000)
        self.assertEqual((chunks.rows, len(chunks.starts), chunks.are_sums_wide), (2048, 2, False))
        chunks = Chunks(4096, weight, torch.bfloat16, 3_000_000_000)
        self.assertEqual((chunks.rows, len(chunks.starts), chunks.are_sums_wide), (4096, 1, False))
        small = Chunks(8192, torch.empty(32000, 768, device="meta"), torch.bfloat16, 300_000_000)
        self.assertTrue(small.are_sums_wide)
        self.assertGreater(len(small.starts), 1)
        self.assertEqual(Chunks(10_000, weight, torch.bfloat16, 0).rows, 1024)

    def test_ignored_rows(self):
        self.check((40,), 6, 11, ignore_index=4)
        self.check((40,), 6, 11, ignore_index=-1, label_smoothing=0.1, reduction="sum")
        for reduction in ("mean", "sum", "none"):
            self.check((40,), 6, 11, ignored=1.1, reduction=reduction)
        self.check((0,), 6, 11, reduction="sum")

    def test_gradients_of_some_operands(self):
        for needs in ((True, False, False), (False, True, False), (False, False, True), (True, False, True)):
            for reduction in ("mean", "none"):
                self.check((37,), 9, 50, with_bias=True, needs=needs, reduction=reduction)
        x, weight, target = torch.randn(5, 3), torch.randn(4, 3), torch.randint(4, (5,))
        self.assertFalse(heddle.torch.linear_cross_entropy(x, weight, target).requires_grad)

    def test_a_backward_pass_may_be_repeated_and_allocates_no_gradients(self):
        x, weight, target = torch.randn(40, 24, requires_grad=True), torch.randn(301, 24, requires_grad=True), torch.randint(301, (40,))
        loss = heddle.torch.linear_cross_entropy(x, weight, target)
        exact = torch.autograd.grad(reference(x, weight, target), (x, weight))
        made_then = []

        class Allocations(TorchDispatchMode):
            def __torch_dispatch__(self, operator, types, arguments=(), words=None):
                made = operator(*arguments, **(words or {}))
                known = {one.data_ptr() for one in tree_leaves(arguments) if isinstance(one, torch.Tensor)}
                made_then.extend(one for one in tree_leaves(made) if isinstance(one, torch.Tensor) and one.numel() > 1 and one.data_ptr() not in known)
                return made

        with Allocations():
            first = torch.autograd.grad(loss, (x, weight), torch.tensor(2.0), retain_graph=True)
        self.assertEqual(made_then, [])
        second = torch.autograd.grad(loss, (x, weight), torch.tensor(3.0))
        for one, other, right in zip(first, second, exact):
            torch.testing.assert_close(one, 2 * right.float(), rtol=1e-5, atol=1e-6)
            torch.testing.assert_close(other, 3 * right.float(), rtol=1e-5, atol=1e-6)

    def test_operands_of_any_strides(self):
        x, weight = torch.randn(6, 20)[:, ::2].requires_grad_(), torch.randn(10, 15).t().requires_grad_()
        target = torch.arange(12)[::2]
        got = heddle.torch.linear_cross_entropy(x, weight, target)
        want = reference(x, weight, target)
        torch.testing.assert_close(got.double(), want)
        for a, b in zip(torch.autograd.grad(got, (x, weight)), torch.autograd.grad(want, (x, weight))):
            torch.testing.assert_close(a, b)

    def test_large_and_infinite_logits(self):
        x, weight, target = 1e4 * torch.randn(8, 16), torch.randn(700, 16), torch.randint(700, (8,))
        torch.testing.assert_close(heddle.torch.linear_cross_entropy(x, weight, target).double(), reference(x, weight, target))
        bias = torch.zeros(700)
        bias[1:600] = -torch.inf
        target = torch.tensor([0, 600, 699, 0, 650, 0, 699, 611])
        torch.testing.assert_close(heddle.torch.linear_cross_entropy(x, weight, target, bias).double(), reference(x, weight, target, bias))

    def test_autocast(self):
        x, weight, target = torch.randn(9, 16), torch.randn(40, 16, requires_grad=True), torch.randint(40, (9,))
        with torch.autocast("cpu", torch.bfloat16):
            loss = heddle.torch.linear_cross_entropy(x, weight, target)
        loss.backward()
        self.assertEqual((loss.dtype, weight.grad.dtype), (torch.float32, torch.float32))
        torch.testing.assert_close(loss.double(), reference(x, weight, target), rtol=2e-2, atol=2e-2)

    def test_errors(self):
        x, weight, target = torch.randn(5, 3), torch.randn(4, 3), torch.randint(4, (5,))
        wrong = [((x, weight.t(), target), "weight"), ((x, weight, target[:4]), "classes of the shape"), ((x, weight, target.float()), "target"),
                 ((x, weight, target, torch.zeros(5)), "bias"), ((x, weight, target + 4), "no class of 4"), ((x, weight, target - 9), "no class of 4")]
        for operands, said in wrong:
            with self.assertRaisesRegex(heddle.InputError, said):
                heddle.torch.linear_cross_entropy(*operands)
        with self.assertRaisesRegex(heddle.InputError, "reduction"):
            heddle.torch.linear_cross_entropy(x, weight, target, reduction="median")

    def test_there_are_no_second_derivatives(self):
        x, weight, target = torch.randn(5, 3, requires_grad=True), torch.randn(4, 3), torch.randint(4, (5,))
        for reduction in ("mean", "none"):
            loss = heddle.torch.linear_cross_entropy(x, weight, target, reduction=reduction).square().sum()
            gradient, = torch.autograd.grad(loss, x, create_graph=True)
            with self.assertRaisesRegex(RuntimeError, "once_differentiable"):
                gradient.sum().backward()

    def test_operators_keep_their_contracts(self):
        from heddle.torch.loss import BACKWARD, BY_ROW, SUM

        x, weight, bias = (torch.randn(*shape, requires_grad=True) for shape in ((6, 5), (9, 5), (9,)))
        target, numbers = torch.randint(9, (6,)), (-100, 0.1, 2.0, 0)
        torch.library.opcheck(SUM, (x, weight, target, bias, *numbers, True, [True, True, True]))
        torch.library.opcheck(BY_ROW, (x, weight, target, bias, *numbers))
        torch.library.opcheck(BACKWARD, (torch.randn(6), x.detach(), weight.detach(), target, bias.detach(), *numbers, [True, False, True]))


class LargeLogits(test_torch_backend.Backend):
    """cross_entropy(linear(...)) in compiled programs."""

    def setUp(self):
        super().setUp()
        from heddle.torch import large_logits

        self.enterContext(mock.patch.object(large_logits, "LARGE", 1 << 10))
        self.hidden, self.layer = torch.randn(4, 9, 16, requires_grad=True), torch.nn.Linear(16, 99)
        self.labels = torch.randint(99, (4, 9))

    def has_operator(self, function):
        """Whether the compiled function has the operator; its result and gradients are those of eager."""
        leaves = [self.hidden, *self.layer.parameters()]
        with self.graphs() as graphs:
            got = self.compiled(function)(self.hidden, self.labels)
        want = function(self.hidden, self.labels)
        torch.testing.assert_close(got, want)
        total = [sum(one.sum() for one in torch.utils._pytree.tree_leaves(result)) for result in (got, want)]
        for a, b in zip(*(torch.autograd.grad(one, leaves) for one in total)):
            torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-5 if b.dtype == torch.float32 and not torch.is_autocast_enabled("cpu") else 1e-2)
        self.assertFalse([one.node for graph in graphs for one in graph.division.fallbacks])
        return "heddle.linear_cross_entropy" in " ".join(str(node.target) for graph in graphs for node in graph._graph.nodes)

    def test_losses_of_models(self):
        self.assertTrue(self.has_operator(lambda x, y: F.cross_entropy(self.layer(x).view(-1, 99), y.view(-1))))
        torch._dynamo.reset()
        self.assertTrue(self.has_operator(lambda x, y: F.cross_entropy(
            self.layer(x)[..., :-1, :].contiguous().float().view(-1, 99), y[..., 1:].reshape(-1), ignore_index=3, label_smoothing=0.1)))
        torch._dynamo.reset()
        self.assertTrue(self.has_operator(lambda x, y: F.cross_entropy(self.layer(x).flatten(0, 1), y.flatten(), reduction="none")))

    def test_autocast(self):
        def function(x, y):
            with torch.autocast("cpu", torch.bfloat16):
                return F.cross_entropy(self.layer(x).float().view(-1, 99), y.view(-1), reduction="sum")
        with self.graphs() as graphs:
            got = self.compiled(function)(self.hidden, self.labels)
        self.assertIn("linear_cross_entropy", str(graphs[0]._graph))
        torch.testing.assert_close(got, function(self.hidden, self.labels), rtol=1e-3, atol=1e-2)

    def test_what_stays(self):
        def reads_logits(x, y):
            logits = self.layer(x)
            return F.cross_entropy(logits.view(-1, 99), y.view(-1)), logits

        def weighs(x, y):
            return F.cross_entropy(self.layer(x).view(-1, 99), y.view(-1), weight=torch.ones(99))

        def turns(x, y):
            return F.cross_entropy(self.layer(x).transpose(1, 2).reshape(-1, 9), y.flatten()[:1].expand(396) % 9)

        def probabilities(x, y):
            return F.cross_entropy(self.layer(x).view(-1, 99), F.one_hot(y.view(-1), 99).float())
        for function in (reads_logits, weighs, turns, probabilities):
            torch._dynamo.reset()
            self.assertFalse(self.has_operator(function), function.__name__)


if __name__ == "__main__":
    unittest.main()
