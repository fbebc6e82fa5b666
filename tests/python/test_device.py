"""Models on arrays of a GPU: the emulated one, or that of this machine."""
import ctypes
import gc
import os
import threading
import unittest

import heddle
import models
import numpy as np
from exchange import Exchanged, Managed, Versioned


def random(shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def on_gpu(array, stream=0):
    return heddle.tensor(array, device="cuda", stream=stream)


class Stream:
    """A stream of the driver, as torch and CuPy would have one."""

    def __init__(self):
        self.driver = ctypes.CDLL(os.environ.get("HEDDLE_CUDA_DRIVER", "libcuda.so.1"))
        handle = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(handle), 1)
        self.ptr = handle.value

    def call(self, name, *arguments):
        result = getattr(self.driver, name)(*arguments)
        assert result == 0, f"{name}: {result}"

    def synchronize(self):
        self.call("cuStreamSynchronize", ctypes.c_void_p(self.ptr))


class Device(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.mlp = models.Mlp("rows")
        cls.model = heddle.compile(cls.mlp.proto, target="cuda", dims={"rows": 4})
        on_gpu(random((1,)))  # makes the device's context that of this thread, for Stream

    def check(self, results, x):
        for result, expected in zip(results, self.mlp.expected(x), strict=True):
            np.testing.assert_allclose(result, expected, rtol=2e-3, atol=2e-3)


class Calls(Device):
    def test_host_arrays(self):
        x = random((4, 8))
        self.check(self.model(x), x)

    def test_device_arrays(self):
        self.assertEqual(self.model.device, "cuda:0")
        for rows in (4, 1, 7):
            x = random((rows, 8), rows)
            y, z = self.model(on_gpu(x))
            self.assertEqual((type(y), y.device, y.shape), (heddle.Tensor, "cuda:0", (rows, 5)))
            self.check((y.numpy(), z.numpy()), x)

    def test_outputs_workspace_and_stream_of_the_caller(self):
        stream = Stream()
        x = random((4, 8))
        given = on_gpu(x, stream)
        y, z = (heddle.empty(shape, "f32", device="cuda", stream=stream) for shape in self.model.output_shapes((4, 8)))
        workspace = heddle.empty((max(self.model.workspace_bytes((4, 8)), 1),), "u8", device="cuda", stream=stream)
        results = self.model(given, out=(y, z), workspace=workspace, stream=stream)
        self.assertIs(results[0], y)
        self.check((y.numpy(), z.numpy()), x)

    def test_no_elements(self):
        y, z = self.model(on_gpu(np.zeros((0, 8), np.float32)))
        self.assertEqual((y.shape, z.shape), ((0, 5), (0, 8)))

    def test_memory_is_used_again_in_order(self):
        """Results of one call are let go while the next is made from them."""
        add = heddle.compile(models.add((64,)), target="cuda")
        total, one = on_gpu(np.zeros(64, np.float32)), on_gpu(np.ones(64, np.float32))
        for _ in range(20):
            total = add(total, one)
            gc.collect()
        np.testing.assert_array_equal(total.numpy(), np.full(64, 20, np.float32))

    def test_several_kernels(self):
        proto, expected = models.layer_norm()
        x = random((6, 96))
        result = heddle.compile(proto, target="cuda")(on_gpu(x)).numpy()
        np.testing.assert_allclose(result, expected(x), rtol=1e-4, atol=1e-4)

    def test_eight_threads(self):
        failures = []

        def work(seed):
            try:
                on_gpu(random((1,)))  # makes the device's context that of this thread, for Stream
                stream = Stream()
                for i in range(4):
                    x = random((1 + (seed + i) % 3, 8), 10 * seed + i)
                    y, z = self.model(on_gpu(x, stream), stream=stream)
                    self.check((y.numpy(), z.numpy()), x)
            except BaseException as failure:  # told by the thread that asserts
                failures.append(failure)

        for rows in (1, 2, 3):
            self.model(on_gpu(random((rows, 8))))
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])


class Exchange(Device):
    """Arrays with the C interface of DLPack."""

    def setUp(self):
        Exchanged.stream = Stream().ptr
        Exchanged.allocated.clear()

    def tearDown(self):
        Exchanged.stream = 0

    def test_results_are_of_the_library_and_of_its_allocator(self):
        x = random((4, 8))
        y, z = self.model(Exchanged(on_gpu(x, Exchanged.stream)))
        self.assertIsInstance(y, Exchanged)
        self.assertEqual(Exchanged.allocated[:2], [[4, 5], [4, 8]])
        again = heddle.compile(models.add((4, 5)), target="cuda")(y, y)
        self.assertIsInstance(again, Exchanged)

    def test_on_its_stream(self):
        """The run is behind what the library has put onto its stream, and the result is there behind the run."""
        stream = Exchanged.stream
        x = random((4, 8))
        y, z = (heddle.empty(shape, "f32", device="cuda", stream=stream) for shape in ((4, 5), (4, 8)))
        self.model(Exchanged(on_gpu(x, stream)), out=(y, z))
        self.check((y.numpy(), z.numpy()), x)

    def test_host(self):
        x = random((4, 8))
        y, z = heddle.compile(self.mlp.proto, dims={"rows": 4})(Exchanged(heddle.tensor(x)))
        self.assertIsInstance(y, Exchanged)
        self.check((np.from_dlpack(y.tensor), np.from_dlpack(z.tensor)), x)

    def test_strides_and_offsets(self):
        memory = on_gpu(random((8, 8)), Exchanged.stream)
        with self.assertRaises(heddle.InputError) as caught:
            self.model(Exchanged(memory, (4, 8), (1, 4)))
        self.assertIn("strides are [1,4]", str(caught.exception))
        with self.assertRaises(heddle.InputError) as caught:
            self.model(Exchanged(memory, (4, 8), (8, 1), offset=4))
        self.assertIn("multiple of 16", str(caught.exception))
        self.model(Exchanged(memory, (4, 8), (8, 1), offset=128))
        self.model(Exchanged(memory, (1, 8), (7, 1)))  # the stride of one row says nothing


class Overlaps(unittest.TestCase):
    """What a run writes overlaps nothing else."""

    def test_outputs_and_inputs(self):
        for shape in ((4,), (16, 64)):
            model, apart = (heddle.compile(models.add(shape), target=target) for target in ("cuda", "cpu"))
            a, b = (random(shape, seed) for seed in (1, 2))
            x, y = on_gpu(a), on_gpu(b)
            for out, name, given in ((y, "input b", b), (x, "input a", a)):
                for call in (lambda: model(x, y, out=out), lambda: apart(a, b, out=given)):
                    with self.assertRaises(heddle.InputError) as caught:
                        call()
                    for part in ("output c", f"is that of {name}", "memory of its own"):
                        self.assertIn(part, str(caught.exception))
            np.testing.assert_array_equal(y.numpy(), b)
            np.testing.assert_array_equal(model(x, x).numpy(), a + a)

    def test_parts_of_memory(self):
        model = heddle.compile(models.add((4, 8)), target="cuda")
        memory = on_gpu(random((16, 8)))
        part = lambda row: Exchanged(memory, (4, 8), (8, 1), offset=32 * row)
        for rows in ((0, 4, 2), (0, 4, 7), (4, 8, 1), (0, 0, 3)):
            with self.subTest(rows), self.assertRaisesRegex(heddle.InputError, "output c: its memory is that of input"):
                model(part(rows[0]), part(rows[1]), out=part(rows[2]))
        wanted = memory.numpy()
        model(part(0), part(2), out=part(8))
        np.testing.assert_array_equal(memory.numpy()[8:12], wanted[:4] + wanted[2:6])

    def test_workspaces(self):
        model = heddle.compile(models.layer_norm(4, 70000)[0], target="cuda")
        if model.workspace_bytes() == 0:
            self.skipTest("this model needs none")
        memory = heddle.empty((model.workspace_bytes() // 4 + 2 * 4 * 70000,), "f32", device="cuda")
        x, y = on_gpu(random((4, 70000))), Exchanged(memory, (4, 70000), (70000, 1))
        with self.assertRaisesRegex(heddle.InputError, "its memory is that of"):
            model(x, out=y, workspace=memory)

    def test_aliases_are_allowed(self):
        model = heddle.compile(models.cache_step(), target="cuda", alias="auto")
        cache, x, at = on_gpu(random((3, 7))), on_gpu(random((3, 1), 1)), on_gpu(np.array([[0], [3], [6]]))
        wanted = cache.numpy().copy()
        np.put_along_axis(wanted, np.array([[0], [3], [6]]), random((3, 1), 1), axis=1)
        model.run({"past": cache, "x": x, "at": at}, out={"present": cache})
        np.testing.assert_array_equal(cache.numpy(), wanted)


class Lent(unittest.TestCase):
    """heddle.Tensor.__dlpack__ and arrays that others lend."""

    def test_copies(self):
        values = np.array([1, 2, 3, 4], np.float32)
        tensor, stream = on_gpu(values), Stream()
        for words in ({}, {"stream": 1}, {"stream": stream.ptr}, {"stream": -1}):
            copy = tensor.__dlpack__(max_version=(1, 1), copy=True, **words)
            lent = Managed.of(copy)
            self.assertEqual((lent.flags, lent.tensor.device.type), (2, 2))
            self.assertNotEqual(lent.tensor.data, tensor.data_ptr)
            self.assertEqual(Managed.of(tensor.__dlpack__(max_version=(1, 1), **words)).tensor.data, tensor.data_ptr)
            stream.synchronize()
            shown = np.zeros(4, np.float32)
            stream.call("cuMemcpyDtoH_v2", shown.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint64(lent.tensor.data), ctypes.c_size_t(16))
            np.testing.assert_array_equal(shown, values)

    def test_other_devices(self):
        values = np.array([1, 2, 3, 4], np.int32)
        tensor = on_gpu(values)
        np.testing.assert_array_equal(np.from_dlpack(tensor, device="cpu"), values)
        np.testing.assert_array_equal(np.from_dlpack(tensor, device="cpu", copy=True), values)
        for words in ({"dl_device": (1, 0), "copy": False}, {"dl_device": (3, 0)}):
            with self.assertRaises(BufferError):
                tensor.__dlpack__(**words)
        there = Managed.of(heddle.tensor(values).__dlpack__(max_version=(1, 1), dl_device=(2, 0)))
        self.assertEqual((there.flags, there.tensor.device.type, there.tensor.device.id), (2, 2, 0))

    def test_read_only_out(self):
        model = heddle.compile(models.add((4,)), target="cuda")
        x, out = on_gpu(random((4,))), on_gpu(random((4,), 1))
        before = out.numpy()
        for given in (Versioned(out, read_only=True), Exchanged(out, read_only=True)):
            with self.assertRaisesRegex(heddle.InputError, "output c: its memory is read-only"):
                model(x, x, out=given)
        np.testing.assert_array_equal(out.numpy(), before)
        model(Versioned(x, read_only=True), x, out=Versioned(out))
        np.testing.assert_array_equal(out.numpy(), x.numpy() * 2)
        a, b = (on_gpu(random((16, 16), seed).astype(np.float16)) for seed in (1, 2))
        product = heddle.empty((16, 16), "f16", device="cuda")
        with self.assertRaisesRegex(heddle.InputError, "out: its memory is read-only"):
            heddle.ops.gemm(a, b, out=Versioned(product, read_only=True))


class Refusals(Device):
    def refusal(self, model, *arrays, **named):
        with self.assertRaises(heddle.InputError) as caught:
            model(*arrays, **named)
        return str(caught.exception)

    def test_places(self):
        add = heddle.compile(models.add((4,)), target="cuda")
        x = random((4,))
        text = self.refusal(add, on_gpu(x), x)
        for part in ("input b", "host memory", "cuda:0", "heddle.tensor"):
            self.assertIn(part, text)
        text = self.refusal(heddle.compile(models.add((4,))), on_gpu(x), on_gpu(x))
        for part in ("input a", "cuda:0", "runs on the CPU"):
            self.assertIn(part, text)
        self.assertIn("output c", self.refusal(add, on_gpu(x), on_gpu(x), out=x))

    def test_workspace(self):
        proto, _ = models.layer_norm(4, 70000)
        model = heddle.compile(proto, target="cuda")
        if model.workspace_bytes() == 0:
            self.skipTest("this model needs none")
        small = heddle.empty((1,), "u8", device="cuda")
        self.assertIn("workspace", self.refusal(model, on_gpu(random((4, 70000))), workspace=small))

    def test_stream(self):
        self.assertIn("stream", self.refusal(self.model, on_gpu(random((4, 8))), stream="fast"))


class Caches(unittest.TestCase):
    """New rows of two caches are computed and written by one kernel."""

    def check(self, by_mask, columns, of_old_keys=False):
        draw = np.random.default_rng(columns)
        random = lambda *shape: draw.standard_normal(shape, dtype=np.float32)
        model = heddle.compile(models.attention_step(by_mask, columns, of_old_keys), target="cuda", alias={"present_*": "past_*"})
        caches = {name: random(2, 3, 7, columns) for name in ("past_k", "past_v")}
        wanted = {name: value.copy() for name, value in caches.items()}
        for step, at in enumerate(([0, 6], [3, 3], [5, -1], [-7, 2], [6, 7])):
            if not by_mask and at[1] == 7:
                continue  # an index that ScatterElements must not have
            k, v, q = random(2, 3, 1, columns), random(2, 3, 1, columns), random(2, 9, 1, columns)
            old = wanted["past_k"][:, :, 2].copy()
            for i, row in enumerate(at):
                if not by_mask or 0 <= row < 7:
                    wanted["past_k"][i, :, row], wanted["past_v"][i, :, row] = np.exp(k[i, :, 0]), v[i, :, 0] + (old if of_old_keys else v[:, :, 0])[i]
            results = model.run(caches | {"k": k, "v": v, "q": q, "at": np.array(at)},
                                out={"present_k": caches["past_k"], "present_v": caches["past_v"]})
            for name in caches:
                np.testing.assert_allclose(caches[name], wanted[name], rtol=1e-5, atol=1e-6, err_msg=f"{name}, step {step}")
            np.testing.assert_allclose(results["o"], np.exp(q), rtol=1e-5)

    def test_rows_that_indices_say(self):
        for columns in (8, 5, 1):
            self.check(False, columns)

    def test_rows_made_of_the_other_cache(self):
        for by_mask in (False, True):
            self.check(by_mask, 8, of_old_keys=True)

    def test_rows_that_a_comparison_finds(self):
        for columns in (8, 5, 1):
            self.check(True, columns)


class Gemm(unittest.TestCase):
    def check(self, result, expected, tolerance=2e-2):
        np.testing.assert_allclose(result.numpy().astype(np.float32), expected, rtol=tolerance, atol=tolerance)

    def test_a_product_with_an_epilogue(self):
        a, b = (random(shape, seed).astype(np.float16) for seed, shape in ((1, (48, 64)), (2, (64, 32))))
        bias, residual = random((32,), 3).astype(np.float32), random((48, 32), 4).astype(np.float16)
        product = a.astype(np.float32) @ b.astype(np.float32)
        self.check(heddle.ops.gemm(on_gpu(a), on_gpu(b)), product)
        result = heddle.ops.gemm(on_gpu(a), on_gpu(b), epilogue="max(x + bias, 0) + residual", out_dtype="f16",
                                 operands={"bias": on_gpu(bias), "residual": on_gpu(residual)})
        self.assertEqual((result.dtype, result.shape), ("f16", (48, 32)))
        self.check(result, np.maximum(product + bias, 0) + residual)

    def test_a_batch_into_memory_of_the_caller(self):
        a, b = (random(shape, seed).astype(np.float16) for seed, shape in ((1, (3, 16, 32)), (2, (3, 32, 16))))
        out = heddle.empty((3, 16, 16), "f16", device="cuda")
        self.assertIs(heddle.ops.gemm(on_gpu(a), on_gpu(b), out=out), out)
        self.check(out, a.astype(np.float32) @ b.astype(np.float32))

    def test_refusals(self):
        a, b = on_gpu(random((4, 8)).astype(np.float16)), on_gpu(random((4, 8)).astype(np.float16))
        cases = (lambda: heddle.ops.gemm(a, b), "8 columns"), (lambda: heddle.ops.gemm(a, random((8, 4))), "host memory"), (
            lambda: heddle.ops.gemm(a, on_gpu(random((8, 4)))), "f32")
        for call, part in cases:
            with self.subTest(part), self.assertRaises(heddle.InputError) as caught:
                call()
            self.assertIn(part, str(caught.exception))


class Attention(unittest.TestCase):
    def expected(self, q, k, v, hidden=None):
        q, k, v = (x.astype(np.float64) for x in (q, np.repeat(k, q.shape[1] // k.shape[1], 1), np.repeat(v, q.shape[1] // v.shape[1], 1)))
        scores = q @ k.swapaxes(2, 3) / np.sqrt(q.shape[3])
        if hidden is not None:
            scores = np.where(hidden, -np.inf, scores)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return weights / weights.sum(-1, keepdims=True) @ v

    def test_heads_that_share_keys(self):
        q, k, v = (random(shape, seed).astype(np.float16) for seed, shape in enumerate(((2, 4, 9, 32), (2, 2, 20, 32), (2, 2, 20, 32))))
        result = heddle.ops.attention(on_gpu(q), on_gpu(k), on_gpu(v))
        np.testing.assert_allclose(result.numpy().astype(np.float64), self.expected(q, k, v), atol=3e-3)
        out, lengths = heddle.empty((2, 4, 9, 32), "f16", device="cuda"), np.array([20, 13], np.int32)
        self.assertIs(heddle.ops.attention(on_gpu(q), on_gpu(k), on_gpu(v), causal=True, lengths=on_gpu(lengths), out=out), out)
        own = np.arange(9)[None, None, :, None] + lengths[:, None, None, None] - 9
        np.testing.assert_allclose(out.numpy().astype(np.float64), self.expected(q, k, v, np.arange(20) > own), atol=3e-3)

    def test_keys_in_pages(self):
        q, k, v = (random(shape, seed).astype(np.float16) for seed, shape in enumerate(((2, 4, 9, 32), (8, 2, 16, 32), (8, 2, 16, 32))))
        table, lengths = np.array([[5, 0, 3], [1, 6, -1]], np.int32), np.array([40, 17], np.int32)
        result = heddle.ops.attention(on_gpu(q), on_gpu(k), on_gpu(v), lengths=on_gpu(lengths), page_table=on_gpu(table))
        k, v = (pool[table].swapaxes(1, 2).reshape(2, 2, 48, 32) for pool in (k, v))
        hidden = np.arange(48)[None, None, None, :] >= lengths[:, None, None, None]
        np.testing.assert_allclose(result.numpy().astype(np.float64), self.expected(q, k, v, hidden), atol=3e-3)

    def test_refusals(self):
        q, k = on_gpu(random((2, 4, 9, 32)).astype(np.float16)), on_gpu(random((2, 3, 20, 32)).astype(np.float16))
        for call, part in ((lambda: heddle.ops.attention(q, k, k), "3 heads"), (lambda: heddle.ops.attention(q, q, k), "v: its shape"),
                           (lambda: heddle.ops.attention(q, q, q, bias=on_gpu(random((5, 9)))), "bias: its shape"),
                           (lambda: heddle.ops.attention(q, q, q, page_table=on_gpu(np.zeros((3, 2), np.int32))), "page_table: its shape"),
                           (lambda: heddle.ops.attention(q, q, q, page_table=on_gpu(np.zeros((2, 2), np.int32))), "multiple of 16 keys")):
            with self.subTest(part), self.assertRaises(heddle.InputError) as caught:
                call()
            self.assertIn(part, str(caught.exception))


if __name__ == "__main__":
    unittest.main()
