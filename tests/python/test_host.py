"""Models on host arrays: what comes out, what is refused and how, and that memory is shared."""
import array
import gc
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest
import weakref

import heddle
import models
import numpy as np
from onnx import TensorProto, helper, numpy_helper

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None


def random(shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


class Host(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.mlp = models.Mlp()
        cls.model = heddle.compile(cls.mlp.proto, threads=2)
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = models.save(cls.mlp.proto, pathlib.Path(cls.folder.name))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def check(self, results, x):
        for result, expected in zip(results, self.mlp.expected(x), strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


class Calls(Host):
    def test_sources_of_a_model(self):
        x = random((4, 8))
        for source in (self.path, str(self.path), self.path.read_bytes(), self.mlp.proto):
            with self.subTest(type(source)):
                self.check(heddle.compile(source)(x), x)

    def test_by_position_and_by_name(self):
        x = random((4, 8))
        self.check(self.model(x), x)
        self.check(self.model(x=x), x)
        results = self.model.run({"x": x})
        self.assertEqual(list(results), ["y", "z"])
        self.check(results.values(), x)

    def test_one_output_comes_alone(self):
        add = heddle.compile(models.add())
        a, b = random((3, 5), 1), random((3, 5), 2)
        np.testing.assert_array_equal(add(a, b=b), a + b)

    def test_other_shapes_are_compiled_when_they_occur(self):
        mlp = models.Mlp("rows")
        model = heddle.compile(mlp.proto, dims={"rows": 3})
        self.assertEqual(model.inputs[0].shape, (3, 8))
        for rows in (3, 1, 7):
            x = random((rows, 8), rows)
            for result, expected in zip(model(x), mlp.expected(x), strict=True):
                np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)
        self.assertEqual(model.output_shapes((5, 8)), [(5, 5), (5, 8)])

    def test_ports(self):
        self.assertEqual(self.model.inputs, [("x", "f32", (4, 8), "")])
        self.assertEqual([port.name for port in self.model.outputs], ["y", "z"])
        self.assertEqual((self.model.device, self.model.threads), ("cpu", 2))
        self.assertIn("x: f32[4, 8]", repr(self.model))

    def test_whatever_has_a_buffer(self):
        add = heddle.compile(models.add((4,)))
        a = array.array("f", [1, 2, 3, 4])
        np.testing.assert_array_equal(add(a, memoryview(a)), [2, 4, 6, 8])
        scalars = heddle.compile(models.add(()))
        self.assertEqual(scalars(np.float32(2), np.float32(3)), 5)

    def test_memory_of_any_alignment(self):
        x = random((4 * 8 + 1,))[1:].reshape(4, 8)
        self.check(self.model(x), x)

    def test_no_elements(self):
        add = heddle.compile(models.add((0, 3)))
        self.assertEqual(add(np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32)).shape, (0, 3))

    def test_text(self):
        words, y = heddle.compile(models.text())(np.ones(2, np.float32))
        self.assertEqual(words.tolist(), ["warp", "weft"])
        np.testing.assert_array_equal(y, [-1, -1])

    def test_dtypes(self):
        for name in ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8"):
            with self.subTest(name):
                onnx_type = getattr(TensorProto, {"float64": "DOUBLE", "float32": "FLOAT"}.get(name, name.upper()))
                a, b = (np.arange(15).reshape(3, 5).astype(name) for _ in range(2))
                result = heddle.compile(models.add(dtype=onnx_type))(a, b)
                self.assertEqual(result.dtype, a.dtype)
                np.testing.assert_array_equal(result, a + b)

    @unittest.skipUnless(ml_dtypes, "ml_dtypes is not installed")
    def test_dtypes_that_numpy_lacks(self):
        model = heddle.compile(models.add(dtype=TensorProto.BFLOAT16))
        a, b = (random((3, 5), seed).astype(ml_dtypes.bfloat16) for seed in (1, 2))
        result = model(a, b)
        self.assertEqual(result.dtype, ml_dtypes.bfloat16)
        np.testing.assert_array_equal(result, (a.astype(np.float32) + b.astype(np.float32)).astype(ml_dtypes.bfloat16))

    def test_bits_of_a_type_that_numpy_lacks(self):
        model = heddle.compile(models.add(dtype=TensorProto.BFLOAT16))
        bits = np.full((3, 5), 0x3F80, np.uint16)  # 1.0
        one = heddle.tensor(bits, "bf16")
        result = model(one, one)
        self.assertIsInstance(result, heddle.Tensor)
        self.assertEqual((result.dtype, result.shape), ("bf16", (3, 5)))
        self.assertTrue((np.asarray(result) == 0x4000).all())  # 2.0


class Inputs(unittest.TestCase):
    """Inputs with a default, inputs of text, and where a model may lie."""

    def test_a_default_holds_unless_an_array_is_given(self):
        nodes = [helper.make_node("Mul", ["x", "a"], ["y"])]
        ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "a", "y")]
        graph = helper.make_graph(nodes, "g", ports[:2], ports[2:],
                                  [numpy_helper.from_array(np.array([10, 20], np.float32), "a")])
        proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        x, a = np.array([1, 2], np.float32), np.array([3, 4], np.float32)
        for shapes in ({}, {"a": (2,)}):
            model = heddle.compile(proto, threads=1, shapes=shapes)
            self.assertEqual([port.name for port in model.inputs], ["x", *shapes])
            self.assertEqual([port.name for port in model.optional_inputs], [] if shapes else ["a"])
            for _ in range(2):
                np.testing.assert_array_equal(model(x), [10, 40])
                np.testing.assert_array_equal(model(x, a=a), [3, 8])
                np.testing.assert_array_equal(model.run({"a": a, "x": x})["y"], [3, 8])
            with self.assertRaisesRegex(heddle.InputError, "no such input"):
                model(x, b=a)
            with self.assertRaisesRegex(heddle.InputError, "input x: it is missing"):
                model(a=a)

    def test_text(self):
        nodes = [helper.make_node("LabelEncoder", ["t"], ["y"], domain="ai.onnx.ml", keys_strings=["\u00e4", "dog"],
                                  values_floats=[3.0, 5.0])]
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("t", TensorProto.STRING, [2])],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])])
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 4)]
        proto = helper.make_model(graph, opset_imports=opsets, ir_version=8)
        words = np.array(["dog", "\u00e4"])
        model = heddle.compile(proto, threads=1, values={"t": words})
        self.assertEqual(model.inputs[0].dtype, "string")
        for text in (words, words.astype(object), np.char.encode(words, "utf-8"), ["dog", "\u00e4"]):
            np.testing.assert_array_equal(model(text), [5, 3])
        np.testing.assert_array_equal(model(words[::-1]), [3, 5])
        with self.assertRaisesRegex(heddle.InputError, "text is expected"):
            model(np.array(["dog", 3], object))
        with self.assertRaisesRegex(heddle.InputError, "the model takes text"):
            model(np.zeros(2, np.float32))

    def test_a_path_that_is_no_utf8(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.fsdecode(os.fsencode(folder) + b"/m\xff.onnx")
            mlp = models.Mlp()
            pathlib.Path(path).write_bytes(mlp.proto.SerializeToString())
            for given in (path, pathlib.Path(path)):
                model = heddle.compile(given, threads=1)
                self.assertIn("kernels", str(model.explain()))
                self.assertIn("m\\xff.onnx", str(heddle.inspect(given)))
                model.save(path + ".plan")
                heddle.compile(path + ".plan", threads=1)
            with self.assertRaisesRegex(heddle.Error, r"n\\xff.onnx"):
                heddle.compile(os.path.join(folder, "n" + os.path.basename(path)[1:]))
            done = subprocess.run([sys.executable, "-m", "heddle", "inspect", os.fsencode(path)], capture_output=True)
            self.assertEqual(done.returncode, 0, done.stderr)


class Memory(Host):
    def test_inputs_are_not_copied(self):
        """A value written behind the call that lent the memory shows in the next one, and nothing keeps the array."""
        x = random((4, 8))
        self.model(x)
        x[:] = 2
        self.check(self.model(x), x)
        gone = weakref.ref(x.base if x.base is not None else x)
        del x
        gc.collect()
        self.assertIsNone(gone())

    def test_results_are_whole_after_later_calls(self):
        x = random((4, 8))
        first = self.model(x)
        copies = [result.copy() for result in first]
        for seed in range(5):
            self.model(random((4, 8), seed + 1))
        for result, copy in zip(first, copies):
            np.testing.assert_array_equal(result, copy)
            self.assertTrue(result.flags.writeable)

    def test_results_outlive_the_model(self):
        model = heddle.compile(self.mlp.proto)
        x = random((4, 8))
        results = model(x)
        del model
        gc.collect()
        self.check(results, x)

    def test_outputs_of_the_caller(self):
        x = random((4, 8))
        y, z = np.full((4, 5), np.nan, np.float32), np.full((4, 8), np.nan, np.float32)
        results = self.model(x, out=(y, z))
        self.assertIs(results[0], y)
        self.check((y, z), x)
        y[:], z[:] = np.nan, np.nan
        self.model.run({"x": x}, out={"z": z, "y": y})
        self.check((y, z), x)

    def test_results_of_other_libraries_kinds(self):
        x = random((4, 8))
        y, z = self.model(heddle.tensor(x))
        self.assertIsInstance(y, heddle.Tensor)
        self.check((np.from_dlpack(y), z.numpy()), x)

    def test_a_class_with_dlpack_only(self):
        class Lent:
            def __init__(self, of):
                self.of = of

            def __dlpack__(self, **words):
                return self.of.__dlpack__(**words)

            def __dlpack_device__(self):
                return self.of.__dlpack_device__()

        x = random((4, 8))
        y, z = self.model(Lent(x))
        self.check((y.numpy(), z.numpy()), x)


class InPlace(unittest.TestCase):
    """A cache [3, 7] whose rows get a new element at a position of each row's own."""

    def setUp(self):
        self.proto = models.cache_step()

    def check_steps(self, model):
        self.assertEqual([(port.name, port.alias) for port in model.outputs], [("present", "past"), ("sum", "")])
        cache, wanted = random((3, 7)), random((3, 7))
        for step in range(3):
            x, at = random((3, 1), step + 1), np.array([[step], [6], [2 * step]])
            np.put_along_axis(wanted, at, x, axis=1)
            results = model.run({"past": cache, "x": x, "at": at}, out={"present": cache})
            self.assertIs(results["present"], cache)
            np.testing.assert_array_equal(cache, wanted)
            np.testing.assert_allclose(results["sum"], wanted.sum(axis=1), rtol=1e-5)

    def test_steps_in_one_array(self):
        self.check_steps(heddle.compile(self.proto, alias={"present": "past"}))
        self.check_steps(heddle.compile(self.proto, alias="auto"))

    def test_without_out_the_input_stays(self):
        model = heddle.compile(self.proto, alias="auto")
        past, x, at = random((3, 7)), random((3, 1), 1), np.array([[0], [5], [6]])
        wanted = past.copy()
        np.put_along_axis(wanted, at, x, axis=1)
        present, _ = model(past, x, at)
        np.testing.assert_array_equal(present, wanted)
        np.testing.assert_array_equal(past, random((3, 7)))

    def test_who_reads_the_old_value_gets_it(self):
        for name, (proto, alias, makers) in models.old_values().items():
            with self.subTest(name):
                model, apart = heddle.compile(proto, alias=alias), heddle.compile(proto)
                inputs = {port.name: make(np.random.default_rng(i)) for i, (port, make) in enumerate(zip(model.inputs, makers))}
                wanted = apart.run(inputs)
                inputs = {key: value.copy() for key, value in inputs.items()}
                results = model.run(inputs, out={output: inputs[given] for output, given in alias.items()})
                for output, value in wanted.items():
                    np.testing.assert_array_equal(results[output], value, err_msg=output)

    def test_other_shapes_and_threads_have_caches_of_their_own(self):
        model = heddle.compile(models.cache_step("rows", "columns"), shapes={"past": (3, 7)}, alias="auto")
        wrong = []

        def steps(rows, columns):
            cache = random((rows, columns), rows)
            wanted, address = cache.copy(), cache.ctypes.data
            for step in range(20):
                x, at = random((rows, 1), step), np.full((rows, 1), step % columns)
                np.put_along_axis(wanted, at, x, axis=1)
                present = model.run({"past": cache, "x": x, "at": at}, out={"present": cache})["present"]
                if present.ctypes.data != address or not np.array_equal(cache, wanted):
                    wrong.append((rows, columns, step))

        threads = [threading.Thread(target=steps, args=shape) for shape in ((3, 7), (5, 9), (3, 7), (2, 30))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_refusals(self):
        for alias, part in (({"present": "pasd"}, "Did you mean past?"), ({"sum": "past"}, "does not fit"), (3, "no mapping")):
            with self.assertRaises(heddle.InputError) as caught:
                heddle.compile(self.proto, alias=alias)
            self.assertIn(part, str(caught.exception))
        model = heddle.compile(self.proto)
        cache = random((3, 7))
        with self.assertRaises(heddle.InputError) as caught:
            model(cache, random((3, 1)), np.zeros((3, 1), np.int64), out=(cache, None))
        self.assertIn("memory of its own", str(caught.exception))


class Refusals(Host):
    def refusal(self, *arrays, cls=heddle.InputError, model=None, **named):
        with self.assertRaises(cls) as caught:
            (model or self.model)(*arrays, **named)
        return caught.exception

    def test_what_a_user_is_told(self):
        x = random((4, 8))
        cases = {
            "dtype": (self.refusal(x.astype(np.float64)), "input x", "f64", "f32", "astype(numpy.float32)"),
            "strides": (self.refusal(random((8, 4)).T), "input x", "strides are [1,4]", "numpy.ascontiguousarray"),
            "missing": (self.refusal(), "input x", "missing", "inputs are x"),
            "unknown": (self.refusal(x, y=x), "input y", "no such input", "inputs are x"),
            "twice": (self.refusal(x, x=x), "input x", "twice"),
            "many": (self.refusal(x, x), "2 are given", "has 1"),
            "list": (self.refusal([[1.0]]), "input x", "a list is no array", "numpy.asarray"),
            "out shape": (self.refusal(x, out=(np.zeros((4, 4), np.float32), np.zeros((4, 8), np.float32))), "output y",
                          "[4,4]", "[4,5]"),
            "out count": (self.refusal(x, out=np.zeros((4, 5), np.float32)), "out", "1 arrays", "2 outputs"),
            "out dtype": (self.refusal(x, out=(np.zeros((4, 5)), np.zeros((4, 8), np.float32))), "output y", "f64"),
            "overlap": (self.refusal(x, out=(np.zeros((4, 5), np.float32), x)), "output z", "memory of its own"),
        }
        for name, (error, *parts) in cases.items():
            with self.subTest(name):
                for part in parts:
                    self.assertIn(part, str(error))
                self.assertIn(error.code, (201, 202))

    def test_read_only_output(self):
        y, z = np.zeros((4, 5), np.float32), np.zeros((4, 8), np.float32)
        z.flags.writeable = False
        self.assertIn("read-only", str(self.refusal(random((4, 8)), out=(y, z))))

    def test_a_type_that_nobody_has(self):
        error = self.refusal(np.zeros((4, 8), np.complex64), cls=heddle.UnsupportedError)
        self.assertIn("complex64", str(error))

    def test_shape(self):
        error = self.refusal(random((4, 7)), cls=heddle.Error)
        self.assertIn("[4,7]", str(error))

    def test_families_and_parts(self):
        with self.assertRaises(heddle.MachineError) as caught:
            heddle.compile("/nowhere/model.onnx")
        self.assertEqual(caught.exception.code, 401)
        self.assertIn("/nowhere/model.onnx", caught.exception.where)
        with self.assertRaises(heddle.ModelError):
            heddle.compile(b"\x08\x09 no model at all")
        with self.assertRaises(heddle.UnsupportedError) as caught:
            heddle.compile(models.unsupported())
        self.assertIn("NoSuchOperator", str(caught.exception))
        with self.assertRaises(heddle.InputError) as caught:
            heddle.compile(self.path, precision="half")
        self.assertIn("f16", caught.exception.remedy)
        for error in (heddle.ModelError, heddle.InputError, heddle.UnsupportedError, heddle.MachineError, heddle.InternalError):
            self.assertTrue(issubclass(error, heddle.Error))
        self.assertTrue(issubclass(heddle.InputError, ValueError))

    def test_options(self):
        for options, part in (({"presicion": "f16"}, "presicion"), ({"threads": "two"}, "threads"),
                              ({"dims": {"rows": "x"}}, "rows"), ({"dims": {"nothing": 3}}, "nothing")):
            with self.subTest(options), self.assertRaises(heddle.InputError) as caught:
                heddle.compile(self.path, **options)
            self.assertIn(part, str(caught.exception))
        with self.assertRaises(heddle.InputError):
            heddle.compile(42)


class Threads(Host):
    def test_eight_threads_and_new_shapes(self):
        mlp = models.Mlp("rows")
        model = heddle.compile(mlp.proto, dims={"rows": 4}, threads=2)
        failures = []

        def work(seed):
            try:
                for i in range(20):
                    x = random((1 + (seed + i) % 5, 8), 100 * seed + i)
                    for result, expected in zip(model(x), mlp.expected(x), strict=True):
                        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)
            except BaseException as failure:  # told by the thread that asserts
                failures.append(failure)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_others_run_while_a_model_compiles(self):
        """A thread that counts gets on between the first call of `progress` and the last."""
        counts = []
        stop = threading.Event()
        count = 0

        def work():
            nonlocal count
            while not stop.wait(0.001):
                count += 1

        thread = threading.Thread(target=work)
        thread.start()
        try:
            proto, _ = models.layer_norm(7, 333)
            heddle.compile(proto, cache=False, progress=lambda stage, share: counts.append((count, stage, share)))
        finally:
            stop.set()
            thread.join()
        self.assertGreater(len(counts), 1)
        self.assertGreater(counts[-1][0], counts[0][0])
        self.assertTrue(all(0 <= share <= 1 for _, _, share in counts))

    def test_what_progress_raises_comes_out(self):
        def progress(stage, share):
            raise KeyError(stage)

        with self.assertRaises(KeyError):
            heddle.compile(self.path, cache=False, progress=progress)


class PartsOfOutputs(unittest.TestCase):
    """One row of an output, and what an output appends to an input."""

    @classmethod
    def setUpClass(cls):
        random = np.random.default_rng(3)
        cls.w = random.standard_normal((4, 6), dtype=np.float32)
        nodes = [helper.make_node("MatMul", ["x", "w"], ["logits"]),
                 helper.make_node("Reshape", ["x", "shape"], ["new"]),
                 helper.make_node("Concat", ["past.k", "new"], ["present.k"], axis=2)]
        cls.proto = models._model(nodes, [models._value("x", ["batch", "tokens", 4]), models._value("past.k", ["batch", 1, "past", 4])],
                                  [models._value("logits", ["batch", "tokens", 6]), models._value("present.k", ["batch", 1, "all", 4])],
                                  [("w", cls.w), ("shape", np.array([0, 1, -1, 4]))])

    def compiled(self, **options):
        return heddle.compile(self.proto, shapes={"x": (2, 5, 4), "past.k": (2, 1, 3, 4)}, threads=1, **options)

    def test_one_row_for_each_element_of_the_batch(self):
        model = self.compiled(rows={"logits": "row"}, appended={"present.*": "past.*"})
        self.assertEqual([(port.name, port.dtype, port.shape) for port in model.inputs][-1], ("row", "i64", (2,)))
        random = np.random.default_rng(4)
        for batch, tokens, past in ((2, 5, 3), (3, 7, 2), (1, 4, 1), (2, 1, 9)):
            x = random.standard_normal((batch, tokens, 4), dtype=np.float32)
            row = random.integers(-2, tokens + 2, batch)
            logits, fresh = model(x, np.zeros((batch, 1, past, 4), np.float32), row)
            expected = (x @ self.w)[np.arange(batch), np.clip(row, 0, tokens - 1)][:, None]
            np.testing.assert_allclose(logits, expected, rtol=1e-5, atol=1e-5)
            np.testing.assert_array_equal(fresh, x[:, None])

    def test_wrong_names_and_shapes_are_told(self):
        for options, part in (({"rows": {"logit": "row"}}, "Did you mean logits"), ({"rows": {"logits": "x"}}, "the model has an input of this name"),
                              ({"appended": {"logits": "past.k"}}, "does not append rows"), ({"appended": {"present.*": "pasd.*"}}, "Did you mean past.k"),
                              ({"appended": {"present.*": "past.k"}}, "do not have one * each"),
                              ({"appended": {"present.*": "past.*", "present.k": "past.k"}}, "two entries of appended name it")):
            with self.subTest(part), self.assertRaises(heddle.InputError) as caught:
                self.compiled(**options)
            self.assertIn(part, str(caught.exception))
        model = self.compiled(rows={"logits": "row"})
        with self.assertRaisesRegex(heddle.InputError, "row"):
            model(np.ones((2, 5, 4), np.float32), np.ones((2, 1, 3, 4), np.float32), np.zeros(3, np.int64))


if __name__ == "__main__":
    unittest.main()
