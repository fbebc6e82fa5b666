"""The notebooks of examples/python/notebooks, cell by cell as Jupyter runs them; $HEDDLE_EXAMPLES is examples/python."""
import ast
import contextlib
import io
import json
import linecache
import os
import pathlib
import types
import unittest

FOLDER = pathlib.Path(os.environ["HEDDLE_EXAMPLES"]) / "notebooks"


class Notebook:
    """Runs the cells of a file in one module. A cell's text is where `inspect` finds it, as in IPython."""

    def __init__(self, path):
        self.content = json.loads(path.read_text())
        self.module = types.ModuleType(path.stem)

    def cells(self):
        return [cell for cell in self.content["cells"] if cell["cell_type"] == "code"]

    def run(self, number, cell):
        """What a notebook shows of a cell: what was printed, and its last expression."""
        text, name = "".join(cell["source"]), f"<{self.module.__name__} {number}>"
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        tree = ast.parse(text, name)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(tree, name, "exec"), self.module.__dict__)
            value = None if last is None else eval(compile(ast.Expression(last.value), name, "eval"), self.module.__dict__)
        show = getattr(value, "_repr_html_", value.__repr__)
        return printed.getvalue() + ("" if value is None else show())


class Notebooks(unittest.TestCase):
    def test_cells(self):
        expected = {"models": ["", "", "64, 128", "fused", "extern", "", "(7, 128)"],
                    "tile_kernels": ["", "e-0", "kernel @softmax", "extern", "store", "BLOCK", "microseconds"]}
        self.assertEqual({path.stem for path in FOLDER.glob("*.ipynb")}, set(expected))
        for stem, parts in expected.items():
            notebook = Notebook(FOLDER / f"{stem}.ipynb")
            self.assertEqual(len(notebook.cells()), len(parts))
            for number, (cell, part) in enumerate(zip(notebook.cells(), parts)):
                with self.subTest(stem, cell=number):
                    self.assertIn(part, notebook.run(number, cell))
                    self.assertEqual(cell["outputs"], [], "notebooks are kept without results")


if __name__ == "__main__":
    unittest.main()
