"""PyTorch's tensors, streams, CUDA graphs and custom operators. On the CPU, and on a GPU where torch has one."""
import threading
import unittest

try:
    import torch
except ImportError:
    torch = None

import heddle
import models

HAS_GPU = torch is not None and torch.cuda.is_available()


def near(testcase, result, expected, tolerance=2e-3):
    testcase.assertIsInstance(result, torch.Tensor)
    testcase.assertTrue(torch.allclose(result.float().cpu(), torch.as_tensor(expected).float(), rtol=tolerance, atol=tolerance))


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
