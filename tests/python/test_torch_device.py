"""torch.compile(backend="heddle") on a GPU: f16, training, PyTorch's streams, its allocator and its captures."""
import copy
import sys
import unittest

import test_torch_backend  # it ends the program where there is no torch
import torch
from torch.nn import functional as F

import heddle.torch

if not torch.cuda.is_available():
    sys.exit("skipped: there is no GPU")


class Device(test_torch_backend.Backend):
    class Pictures(torch.nn.Module):
        """Two residual blocks of ResNet-18."""

        class Block(torch.nn.Module):
            def __init__(self, inner, outer):
                super().__init__()
                self.a, self.b = torch.nn.Conv2d(inner, outer, 3, 2, 1, bias=False), torch.nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
                self.skip, self.norms = torch.nn.Conv2d(inner, outer, 1, 2, bias=False), torch.nn.ModuleList(torch.nn.BatchNorm2d(outer) for _ in range(3))

            def forward(self, x):
                return F.relu(self.norms[1](self.b(F.relu(self.norms[0](self.a(x))))) + self.norms[2](self.skip(x)))

        def __init__(self):
            super().__init__()
            self.stem, self.blocks = torch.nn.Conv2d(3, 64, 7, 2, 3), torch.nn.Sequential(self.Block(64, 64), self.Block(64, 128))
            self.out = torch.nn.Linear(128, 10)

        def forward(self, x):
            return self.out(self.blocks(F.max_pool2d(F.relu(self.stem(x)), 3, 2, 1)).mean((2, 3)))

    class Text(torch.nn.Module):
        """Two layers of BERT."""

        def __init__(self, dropout=0.0):
            super().__init__()
            self.table = torch.nn.Embedding(100, 256)
            self.layers = torch.nn.ModuleList(torch.nn.TransformerEncoderLayer(256, 4, 1024, dropout, "gelu", batch_first=True) for _ in range(2))

        def forward(self, tokens):
            x = self.table(tokens)
            for layer in self.layers:
                x = layer(x)
            return F.log_softmax(x @ self.table.weight.t(), -1)

    def setUp(self):
        super().setUp()
        torch.backends.mha.set_fastpath_enabled(False)

    def compiled(self, function, options=(), **words):
        return super().compiled(function, dict(options), **words)

    def test_products_side_by_side_follow_their_weights(self):
        class Heads(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.q, self.k, self.v = (torch.nn.Linear(256, 256) for _ in range(3))

            def forward(self, x):
                q, k, v = (one(x).unflatten(-1, (4, 64)).transpose(1, 2) for one in (self.q, self.k, self.v))
                return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        module, x = Heads().cuda().half().eval(), torch.randn(2, 70, 256, device="cuda").half()
        compiled = self.compiled(module)
        with self.graphs() as graphs, torch.no_grad():
            for change in (lambda: None, lambda: module.k.weight.mul_(2), lambda: module.v.bias.add_(1)):
                change()
                for _ in range(4):
                    torch.testing.assert_close(compiled(x), module(x), rtol=1e-2, atol=1e-2)
        self.assertEqual(len(graphs[0].compiled_parts()[0].model.kernels()), 2)

    def test_inference_in_f16(self):
        for module, x in ((self.Pictures(), torch.randn(4, 3, 96, 96).half()), (self.Text(), torch.randint(0, 100, (3, 70)))):
            for layout in (torch.contiguous_format, torch.channels_last)[:x.dim() - 2]:
                torch._dynamo.reset()
                report = heddle.torch.verify(module.eval().requires_grad_(False).half().cuda(), x.cuda().to(memory_format=layout))
                self.assertTrue(report, str(report))

    def test_training_steps(self):
        for module, x in ((self.Pictures(), torch.randn(4, 3, 64, 64)), (self.Text(), torch.randint(0, 100, (3, 33)))):
            torch._dynamo.reset()
            module, x = module.cuda(), x.cuda()
            self.assertTrue(heddle.torch.verify(module, x))
            other, losses = copy.deepcopy(module), {}
            for name, run, of in (("heddle", self.compiled(module), module), ("eager", other, other)):
                optimiser = torch.optim.SGD(of.parameters(), 0.01)
                losses[name] = []
                for _ in range(4):
                    optimiser.zero_grad()
                    loss = run(x).square().mean()
                    loss.backward()
                    optimiser.step()
                    losses[name].append(loss.item())
            torch.testing.assert_close(torch.tensor(losses["heddle"]), torch.tensor(losses["eager"]), rtol=2e-2, atol=1e-4)

    def test_captures_of_the_caller(self):
        module = self.Text().cuda().half().eval().requires_grad_(False)
        compiled, tokens = self.compiled(module), torch.randint(0, 100, (2, 17), device="cuda")
        dropped, ones = self.compiled(lambda x: F.dropout(x, 0.5, True)), torch.ones(1000, device="cuda")
        side = torch.cuda.Stream()
        with torch.cuda.stream(side), torch.no_grad():
            for _ in range(3):
                compiled(tokens), dropped(ones)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph), torch.no_grad():
            result, mask = compiled(tokens), dropped(ones)
        masks = []
        for _ in range(3):
            tokens.copy_(torch.randint(0, 100, (2, 17)))
            graph.replay()
            torch.testing.assert_close(result, module(tokens), rtol=2e-2, atol=2e-2)
            masks.append(mask.clone())
        self.assertFalse(torch.equal(masks[0], masks[1]) or torch.equal(masks[1], masks[2]))
        self.assertTrue(all(400 < (one != 0).sum() < 600 for one in masks))

    def test_two_streams_at_once(self):
        function = lambda x, w: F.gelu(x @ w).softmax(-1)  # noqa: E731
        compiled, w = self.compiled(function), torch.randn(512, 512, device="cuda") / 20
        streams = [torch.cuda.Stream() for _ in range(2)]
        inputs = [[torch.randn(256, 512, device="cuda") for _ in range(20)] for _ in streams]
        compiled(inputs[0][0], w)
        torch.cuda.synchronize()
        results = [[], []]
        for i in range(20):
            for stream, given, made in zip(streams, inputs, results):
                with torch.cuda.stream(stream):
                    made.append(compiled(given[i] * 1, w))
        torch.cuda.synchronize()
        for given, made in zip(inputs, results):
            for x, got in zip(given, made):
                torch.testing.assert_close(got, function(x, w), rtol=1e-2, atol=1e-4)

    def test_memory_is_pytorchs_and_any_alignment_and_stride_is_taken(self):
        compiled = self.compiled(lambda x: (x * 2 + 1).t())
        store = torch.randn(65, 64, device="cuda").half()
        for x in (store[:64], store.view(-1)[1:4097].view(64, 64), store[:64].t(), store[::2][:32].repeat(2, 1)):
            torch.testing.assert_close(compiled(x), (x * 2 + 1).t())
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        y = compiled(store[:64])
        self.assertGreaterEqual(torch.cuda.memory_allocated(), before + y.numel() * 2)
        del y
        self.assertEqual(torch.cuda.memory_allocated(), before)

    def test_sums_by_index(self):
        """In any order; under deterministic algorithms, all runs have the same bits."""
        def gradient(at, updates):
            return torch.zeros(3000, updates.shape[1], device="cuda").index_add(0, at, updates)
        for width, rows in ((1, 3000), (64, 3000), (769, 3000), (64, 1)):
            at, updates = torch.randint(rows, (20000,), device="cuda"), torch.randn(20000, width, device="cuda")
            want = torch.zeros(3000, width, device="cuda", dtype=torch.float64).index_add(0, at, updates.double())
            torch.testing.assert_close(self.compiled(gradient)(at, updates).double(), want, rtol=1e-4, atol=1e-2)
            try:
                torch.use_deterministic_algorithms(True)
                compiled = self.compiled(gradient)
                results = [compiled(at, updates) for _ in range(3)]
            finally:
                torch.use_deterministic_algorithms(False)
            torch.testing.assert_close(results[0].double(), want, rtol=1e-4, atol=1e-2)
            self.assertTrue(all(torch.equal(results[0], other) for other in results[1:]))

    def test_dropout_trains_and_follows_the_seed(self):
        module, tokens = self.Text(0.3).cuda(), torch.randint(0, 100, (2, 17), device="cuda")
        compiled = self.compiled(module)
        results = []
        for seed in (1, 1, 2):
            torch.manual_seed(seed)
            y = compiled(tokens)
            results.append(torch.autograd.grad(y.square().mean(), [module.table.weight])[0])
        torch.testing.assert_close(results[0], results[1])
        self.assertFalse(torch.allclose(results[0], results[2], atol=1e-7, rtol=1e-3))


if __name__ == "__main__":
    unittest.main()
