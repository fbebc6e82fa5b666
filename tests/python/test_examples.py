"""The programs of examples/python, named by $HEDDLE_EXAMPLES."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import models

EXAMPLES = pathlib.Path(os.environ["HEDDLE_EXAMPLES"])


class Examples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.model = models.save(models.Mlp().proto, pathlib.Path(cls.folder.name))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_example(self, name, *words):
        done = subprocess.run([sys.executable, EXAMPLES / name, *words], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_run_model(self):
        told = self.run_example("run_model.py", self.model)
        for part in ("y: float32 (4, 5), mean ", "fused ", "verified"):
            self.assertIn(part, told)

    def test_open_shapes(self):
        self.assertEqual(self.run_example("open_shapes.py").count("rows: error"), 4)

    @unittest.skipUnless(os.environ.get("HEDDLE_CUDA_DRIVER"), "there is no GPU or emulator")
    def test_device_arrays(self):
        self.assertEqual(self.run_example("device_arrays.py", self.model).count("the same as from host arrays"), 2)


if __name__ == "__main__":
    unittest.main()
