"""What a call on arrays of a GPU asks of the driver, counted by one whose functions do nothing ($HEDDLE_CUDA_DRIVER)."""
import ctypes
import os
import unittest

import heddle
import models
import numpy as np

DRIVER = ctypes.CDLL(os.environ["HEDDLE_CUDA_DRIVER"])
TELL = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_uint64)


def counts():
    found = {}
    DRIVER.heddle_stub_counts(TELL(lambda name, calls: found.__setitem__(name.decode(), calls)))
    return found


def calls_of(work, times):
    before = counts()
    for _ in range(times):
        work()  # what it returns goes at once, and its memory is there for the next time
    return {name: calls - before.get(name, 0) for name, calls in counts().items() if calls != before.get(name, 0)}


class Calls(unittest.TestCase):
    def test_a_run_is_one_launch(self):
        """No copy, no allocation, no synchronisation: also where the results are new arrays."""
        mlp = models.Mlp()
        model = heddle.compile(mlp.proto, target="cuda")
        x = heddle.tensor(np.ones((4, 8), np.float32), device="cuda")
        expected = {"cuCtxSetCurrent": 10, "cuStreamIsCapturing": 10, "cuGraphLaunch": 10}
        out = [heddle.empty(port.shape, port.dtype, device="cuda") for port in model.outputs]
        for name, work in (("new", lambda: model(x)), ("given", lambda: model(x, out=out))):
            with self.subTest(name):
                for _ in range(8):  # until the results lie where some did before
                    work()
                self.assertEqual(calls_of(work, 10), expected)


class PartsOfOutputs(unittest.TestCase):
    """One row of an output, and what an output appends to an input."""

    @classmethod
    def setUpClass(cls):
        random = np.random.default_rng(3)
        cls.w = random.standard_normal((4, 6), dtype=np.float32)
        nodes = [models.helper.make_node("MatMul", ["x", "w"], ["logits"]),
                 models.helper.make_node("Reshape", ["x", "shape"], ["new"]),
                 models.helper.make_node("Concat", ["past.k", "new"], ["present.k"], axis=2)]
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
                              ({"appended": {"logits": "past.k"}}, "does not append rows"), ({"appended": {"present.*": "pasd.*"}}, "Did you mean past.k")):
            with self.subTest(part), self.assertRaises(heddle.InputError) as caught:
                self.compiled(**options)
            self.assertIn(part, str(caught.exception))
        model = self.compiled(rows={"logits": "row"})
        with self.assertRaisesRegex(heddle.InputError, "row"):
            model(np.ones((2, 5, 4), np.float32), np.ones((2, 1, 3, 4), np.float32), np.zeros(3, np.int64))


if __name__ == "__main__":
    unittest.main()
