"""The programs of examples/python/tile, in the folder that $HEDDLE_EXAMPLES names: each checks its own results."""
import contextlib
import io
import os
import pathlib
import runpy
import unittest

TUTORIALS = pathlib.Path(os.environ["HEDDLE_EXAMPLES"]) / "tile"


class Tutorials(unittest.TestCase):
    def test_all(self):
        names = sorted(path.name for path in TUTORIALS.glob("*.py"))
        self.assertGreater(len(names), 7)
        for name in names:
            told = io.StringIO()
            with self.subTest(name), contextlib.redirect_stdout(told):
                runpy.run_path(str(TUTORIALS / name), run_name="__main__")
                self.assertTrue(told.getvalue())


if __name__ == "__main__":
    unittest.main()
