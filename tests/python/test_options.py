"""Options: their types, misspelt ones, and errors that name them in the words of Python."""
import errno
import inspect
import os
import pathlib
import pickle
import tempfile
import typing
import unittest

os.environ["HEDDLE_CUDA_DRIVER"] = "libno_such_driver.so"

import heddle
import models
import numpy as np
import onnx
from onnx import TensorProto, helper

TAKE_OPTIONS = (heddle.compile, heddle.verify, heddle.tune, heddle.inspect, heddle.bench)


class Options(unittest.TestCase):
    def test_type_checkers_know_the_options(self):
        for name in heddle.__all__:
            function = getattr(heddle, name)
            words = [p for p in inspect.signature(function).parameters.values() if p.kind == p.VAR_KEYWORD] if inspect.isfunction(function) else []
            self.assertEqual([p.annotation for p in words], [typing.Unpack[heddle.Options]] if function in TAKE_OPTIONS else [], name)
        for option in heddle.Options.__annotations__:
            self.assertIn(option, heddle.compile.__doc__)

    def test_a_misspelt_option_says_which_was_meant(self):
        for function in TAKE_OPTIONS:
            with self.subTest(function.__name__), self.assertRaises(heddle.InputError) as caught:
                function(models.add(), presicion="f16")
            self.assertIn(f"heddle.{function.__name__}: there is no option presicion. Did you mean precision?", str(caught.exception))
        model = heddle.compile(models._model([helper.make_node("Relu", ["picture"], ["scores"])], [models._value("picture", [4])],
                                             [models._value("scores", [4])]), threads=1)
        x = np.ones(4, np.float32)
        with self.assertRaisesRegex(heddle.InputError, r"Did you mean scores\?"):
            model.run({"picture": x}, out={"score": x})
        with self.assertRaisesRegex(heddle.InputError, r"Did you mean picture\?"):
            model(x, pictures=x)
        with self.assertRaisesRegex(heddle.InputError, "nodes, bytes, depth and seconds"):
            heddle.compile(models.add(), limits={"node": 1})

    def test_files_raise_what_python_raises(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.onnx")
            for function in TAKE_OPTIONS:
                for given in (path, pathlib.Path(path)):
                    with self.subTest(function.__name__), self.assertRaises(FileNotFoundError) as caught:
                        function(given)
                    error = caught.exception
                    self.assertIsInstance(error, heddle.MachineError)
                    self.assertEqual((error.code, error.errno, error.filename), (401, errno.ENOENT, path))
                    self.assertIn("HDL401", str(error))
                    copy = pickle.loads(pickle.dumps(error))
                    self.assertEqual((type(copy), str(copy), copy.errno), (type(error), str(error), errno.ENOENT))
        from heddle import _errors  # root may read everything

        made = _errors.make(401, "m.onnx", "reading failed", "", "HDL401: m.onnx", errno.EACCES)
        self.assertIsInstance(made, heddle.ForbiddenFileError)
        self.assertIsInstance(made, PermissionError)
        self.assertIs(type(_errors.make(401, "m.onnx", "reading failed", "", "HDL401", errno.EIO)), heddle.FileError)


class Constants(unittest.TestCase):
    def test_inputs_become_constants_that_kernels_have_packed(self):
        rng = np.random.default_rng(0)
        x, w = rng.standard_normal((5, 33), np.float32), rng.standard_normal((33, 17), np.float32)
        text = b"""graph g(%x: f32[5,33], %w: f32[33,17]) {
  %0 = dot(%x, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : f32[5,17]
  return "y" = %0
}
"""
        model = heddle.compile(text, constants={"w": w}, threads=1)
        self.assertEqual([port.name for port in model.inputs], ["x"])
        np.testing.assert_allclose(model(x), x.astype(np.float64) @ w, rtol=1e-5, atol=1e-5)
        with tempfile.TemporaryDirectory() as folder:
            model.save(folder + "/m.plan")
            del w
            np.testing.assert_array_equal(heddle.compile(folder + "/m.plan")(x), model(x))
        with self.assertRaisesRegex(heddle.InputError, r"Did you mean w\?"):
            heddle.compile(text, constants={"W": x})
        with self.assertRaisesRegex(heddle.InputError, r"its constant is f32\[5,33\], the graph says f32\[33,17\]"):
            heddle.compile(text, constants={"w": x})

    def test_of_an_onnx_model_at_every_shape(self):
        proto = models._model([helper.make_node("MatMul", ["x", "w"], ["y"])],
                              [models._value("x", ["n", 8]), models._value("w", [8, 3])], [models._value("y", ["n", 3])])
        rng = np.random.default_rng(0)
        w = rng.standard_normal((8, 3), np.float32)
        model = heddle.compile(proto, constants={"w": w}, shapes={"x": (2, 8)}, threads=1)
        for rows in (2, 5):
            x = rng.standard_normal((rows, 8), np.float32)
            np.testing.assert_allclose(model(x), x @ w, rtol=1e-5, atol=1e-6)


def of_unknown_rank():
    proto = models.add()
    proto.graph.input[0].type.tensor_type.ClearField("shape")
    return proto


def with_a_guess_that_fails():
    """No number of steps fits two tables of different lengths."""
    nodes = [helper.make_node("Add", ["x", "a"], ["p"]), helper.make_node("Add", ["p", "b"], ["y"])]
    return models._model(nodes, [models._value("x", ["batch", "steps"])], [models._value("y", ["batch", "steps"])],
                         [("a", np.ones(21, np.float32)), ("b", np.ones(34, np.float32))])


def reshaped_by_an_input():
    return models._model([helper.make_node("Reshape", ["x", "to"], ["y"])], [models._value("x", [4]), models._value("to", [2], TensorProto.INT64)],
                         [models._value("y", ["a", "b"])])


class Messages(unittest.TestCase):
    def refusal(self, part, model, **options):
        with self.assertRaises(heddle.Error) as caught:
            heddle.compile(model, **options)
        text = str(caught.exception)
        self.assertIn(part, text)
        self.assertNotRegex(text, r"(^|[\s(`])--[a-z]")
        self.assertNotIn("CompileOptions", text)

    def test_name_keywords(self):
        self.refusal('shapes={"a": ...}', of_unknown_rank())
        self.refusal('guessed; shapes={"x": (1, ', with_a_guess_that_fails())
        self.refusal('values={"to": ...}', reshaped_by_an_input())
        self.refusal('limits={"nodes": ...}', models.Mlp().proto, limits={"nodes": 1}, cache=False)
        self.refusal("`shapes` or `dims`", models.outer(), dims={"rows": 1 << 28, "columns": 1 << 28})
        self.refusal('target="cpu"', models.add(), target="cuda")

    def test_links_to_data(self):
        with tempfile.TemporaryDirectory() as folder:
            inside = pathlib.Path(folder) / "model"
            inside.mkdir()
            proto = models.Mlp().proto
            onnx.save(proto, inside / "model.onnx", save_as_external_data=True, location="data", size_threshold=0)
            (inside / "data").rename(pathlib.Path(folder) / "data")
            (inside / "data").symlink_to(pathlib.Path(folder) / "data")
            self.refusal("external_data_links=True", inside / "model.onnx")


if __name__ == "__main__":
    unittest.main()
