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


if __name__ == "__main__":
    unittest.main()
