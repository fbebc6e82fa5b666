"""PyTorch's tensors, streams, CUDA graphs and custom operators. On the CPU, and on a GPU where torch has one."""
import subprocess
import sys
import threading
import unittest

try:
    import torch
except ImportError:
    torch = None

import heddle
import heddle.tile as tile
import heddle.tile.language as tl
import heddle.torch
import models

HAS_GPU = torch is not None and torch.cuda.is_available()


def near(testcase, result, expected, tolerance=2e-3):
    testcase.assertIsInstance(result, torch.Tensor)
    testcase.assertTrue(torch.allclose(result.float().cpu(), torch.as_tensor(expected).float(), rtol=tolerance, atol=tolerance))


@tile.jit
def scaled_kernel(y, x, n, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, at < n) * factor, at < n)


@tile.operator
def scaled(x, factor=2.0):
    y = tile.empty_like(x)
    scaled_kernel[(tile.cdiv(x.numel(), 64),)](y, x, x.numel(), factor, BLOCK=64)
    return y


def scale_in_place(x, factor: float) -> None:
    scaled_kernel[(tile.cdiv(x.numel(), 64),)](x, x, x.numel(), factor, BLOCK=64)


@unittest.skipIf(torch is None, "torch is not installed")
class Import(unittest.TestCase):
    def test_either_may_come_first(self):
        for first, second in (("heddle.tile", "torch"), ("torch", "heddle.tile")):
            done = subprocess.run([sys.executable, "-c", f"import {first}, {second}"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)


class Kernels:
    """Kernels as operators; `device` of the tensors, `backend` of torch.compile."""

    operators: dict = {}

    def name(self, of):
        return f"heddle_tests::{of}_{self.device}"

    def operator(self, of, *arguments, **words):
        name = self.name(of)
        if name not in self.operators:
            self.operators[name] = heddle.torch.operator(*arguments, name, **words)
        return self.operators[name]

    def test_kernel_is_an_operator(self):
        operator = self.operator("scaled", scaled)
        x = torch.randn(5, 31, device=self.device)
        self.assertTrue(torch.equal(operator(x, 3.0), x * 3))
        torch.library.opcheck(operator, (x, 3.0))

    def test_compiled_graph_has_no_break(self):
        operator = self.operator("scaled", scaled)
        step = torch.compile(lambda x: torch.relu(operator(x + 1, 0.5)).sum(), fullgraph=True, backend=self.backend, dynamic=True)
        for rows in (4, 9):
            x = torch.randn(rows, 17, device=self.device)
            torch.testing.assert_close(step(x), torch.relu((x + 1) * 0.5).sum())

    def test_launches_like_earlier_ones(self):
        memory = torch.arange(101.0, device=self.device)
        for _ in range(3):
            for x in (memory[:-1], memory[1:], torch.nn.Parameter(memory[:-1]), memory[:0]):
                y = torch.full((100,), torch.nan, device=self.device)
                scaled_kernel[(2,)](y, x, x.numel(), 3.0, BLOCK=64)
                torch.testing.assert_close(y[: x.numel()], x.detach() * 3)
                self.assertTrue(y[x.numel():].isnan().all())

    def test_kernel_that_writes_to_its_argument(self):
        operator = self.operator("scale_", scale_in_place, mutates=["x"])
        x = torch.randn(70, device=self.device)
        torch.library.opcheck(operator, (x.clone(), 2.0))

        def twice(x):
            x = x + 0
            operator(x, 2.0)
            operator(x, 4.0)
            return x - 1

        torch.testing.assert_close(torch.compile(twice, fullgraph=True, backend=self.backend)(x), x * 8 - 1)

    def test_gradient(self):
        operator = self.operator("scaled_with_gradient", scaled)
        torch.library.register_autograd(
            self.name("scaled_with_gradient"), lambda ctx, gradient: (operator(gradient.contiguous(), ctx.factor), None),
            setup_context=lambda ctx, inputs, output: setattr(ctx, "factor", inputs[1]))
        x = torch.randn(40, device=self.device, requires_grad=True)
        operator(x, 3.0).sum().backward()
        torch.testing.assert_close(x.grad, torch.full_like(x, 3.0))

    def test_what_pytorch_does_not_pass(self):
        for function, words, why in ((lambda *x: x[0], {}, "any number"), (scaled, {"mutates": ["z"]}, "no such parameter"),
                                     (scaled, {}, "no name")):
            with self.assertRaises(heddle.InputError) as caught:
                heddle.torch.operator(function, "heddle_tests" + ("::refused" if why != "no name" else ""), **words)
            self.assertIn(why, str(caught.exception))


@unittest.skipUnless(torch, "there is no PyTorch")
class KernelsOnCpu(Kernels, unittest.TestCase):
    device, backend = "cpu", "aot_eager"


@unittest.skipUnless(HAS_GPU, "there is no GPU for PyTorch")
class KernelsOnGpu(Kernels, unittest.TestCase):
    device, backend = "cuda", "inductor"

    def test_launches_in_a_cuda_graph(self):
        x, y = torch.randn(100, device="cuda"), torch.empty(100, device="cuda")
        launch = scaled_kernel[(2,)]
        launch(y, x, 100, 3.0, BLOCK=64)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):  # on a stream that is not the default one
            for factor in (3.0, 5.0):
                launch(y, x, 100, factor, BLOCK=64)
        for _ in range(2):
            x.normal_()
            y.fill_(torch.nan)
            graph.replay()
            torch.testing.assert_close(y, x * 5)


@unittest.skipUnless(torch, "there is no PyTorch")
class Cpu(unittest.TestCase):
    def setUp(self):
        self.mlp = models.Mlp("rows")
        self.model = heddle.compile(self.mlp.proto, dims={"rows": 4})

    def test_tensors_in_and_out(self):
        x = torch.randn(4, 8)
        y, z = self.model(x)
        for result, expected in zip((y, z), self.mlp.expected(x.numpy())):
            near(self, result, expected)

    def test_parameters_and_views(self):
        x = torch.nn.Parameter(torch.randn(4, 8))
        near(self, self.model(x)[1], x.detach() + 1)
        with self.assertRaises(heddle.InputError) as caught:
            self.model(torch.randn(8, 4).t())
        self.assertIn("x.contiguous()", str(caught.exception))
        with self.assertRaises(heddle.InputError) as caught:
            self.model(torch.randn(4, 8).double())
        self.assertIn("x.to(torch.float32)", str(caught.exception))

    def test_results_are_written_into_tensors(self):
        x, y, z = torch.randn(4, 8), torch.empty(4, 5), torch.empty(4, 8)
        self.assertIs(self.model(x, out=(y, z))[1], z)
        near(self, z, x + 1)

    def test_bfloat16(self):
        model = heddle.compile(models.add(dtype=models.TensorProto.BFLOAT16))
        a, b = torch.randn(3, 5).bfloat16(), torch.randn(3, 5).bfloat16()
        self.assertTrue(torch.equal(model(a, b), a + b))

    def test_custom_operator(self):
        import heddle.torch

        operator = heddle.torch.custom_op(self.model, "heddle_tests::mlp")
        x = torch.randn(4, 8)
        for result, expected in zip(operator(x.t().contiguous().t()), self.mlp.expected(x.numpy())):
            near(self, result, expected)
        torch.library.opcheck(operator, (x,))
        torch.library.opcheck(operator, (torch.randn(6, 8),))
        with self.assertRaises(heddle.InputError):
            heddle.torch.custom_op(self.model, "heddle_tests::mlp")

        def program(value):
            return operator(value * 2)[1] * 3

        compiled = torch.compile(program, backend="aot_eager", fullgraph=True)
        near(self, compiled(x), (x * 2 + 1) * 3)


@unittest.skipUnless(HAS_GPU, "there is no GPU for PyTorch")
class Gpu(unittest.TestCase):
    def setUp(self):
        self.mlp = models.Mlp("rows")
        self.model = heddle.compile(self.mlp.proto, target="cuda", dims={"rows": 4})

    def check(self, x, results):
        for result, expected in zip(results, self.mlp.expected(x.cpu().numpy())):
            self.assertEqual(result.device, x.device)
            near(self, result, expected)

    def test_tensors_in_and_out(self):
        for rows in (4, 1, 33):
            x = torch.randn(rows, 8, device="cuda")
            self.check(x, self.model(x))

    def test_the_current_stream(self):
        """Behind a long piece of work on a stream of its own, with no synchronisation between."""
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            x = torch.zeros(4, 8, device="cuda")
            torch.cuda._sleep(20_000_000)
            x += 3
            y, z = self.model(x)
            total = z.sum()
        stream.synchronize()
        self.assertEqual(total.item(), 4 * 8 * 4)

    def test_nothing_is_waited_for(self):
        x = torch.randn(4, 8, device="cuda")
        self.model(x)
        torch.cuda.synchronize()
        torch.cuda._sleep(2_000_000_000)
        end = torch.cuda.Event()
        self.model(x)
        end.record()
        self.assertFalse(end.query(), "the call has waited for the GPU")
        torch.cuda.synchronize()

    def test_capture_into_a_cuda_graph(self):
        x = torch.randn(4, 8, device="cuda")
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self.model(x)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            results = self.model(x + 1)
        for seed in range(3):
            x.copy_(torch.randn(4, 8, generator=torch.Generator().manual_seed(seed)))
            graph.replay()
            torch.cuda.synchronize()
            self.check(x + 1, results)

    def test_eight_threads_on_streams_of_their_own(self):
        failures = []

        def work(seed):
            try:
                stream = torch.cuda.Stream()
                with torch.cuda.stream(stream):
                    for i in range(50):
                        x = torch.randn(1 + (seed + i) % 5, 8, device="cuda")
                        self.check(x, self.model(x))
            except BaseException as failure:  # told by the thread that asserts
                failures.append(failure)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_memory_comes_from_torch(self):
        x = torch.randn(4, 8, device="cuda")
        self.model(x)
        before = torch.cuda.memory_allocated()
        results = self.model(x)
        self.assertGreater(torch.cuda.memory_allocated(), before)
        del results
        self.assertEqual(torch.cuda.memory_allocated(), before)

    def test_misplaced_and_misaligned(self):
        with self.assertRaises(heddle.InputError) as caught:
            heddle.compile(self.mlp.proto, dims={"rows": 4})(torch.randn(4, 8, device="cuda"))
        self.assertIn('x.to("cpu")', str(caught.exception))
        with self.assertRaises(heddle.InputError) as caught:
            self.model(torch.randn(33, device="cuda")[1:].view(4, 8))
        self.assertIn("multiple of 16", str(caught.exception))

    def test_custom_operator(self):
        import heddle.torch

        operator = heddle.torch.custom_op(self.model, "heddle_tests::mlp_cuda")
        x = torch.randn(4, 8, device="cuda")
        self.check(x, operator(x))
        self.check(x, operator(torch.randn(33, device="cuda")[1:].view(4, 8).copy_(x)))  # copied to where it may lie
        torch.library.opcheck(operator, (x,))

    def test_gemm(self):
        a, b = torch.randn(128, 64, device="cuda").half(), torch.randn(96, 64, device="cuda").half()
        bias = torch.randn(96, device="cuda")
        result = heddle.ops.gemm(a, b.t(), epilogue="gelu(x + bias)", operands={"bias": bias})
        expected = torch.nn.functional.gelu(a.float() @ b.float().t() + bias)
        self.assertTrue(torch.allclose(result.float(), expected, rtol=2e-2, atol=2e-2))


if __name__ == "__main__":
    unittest.main()
