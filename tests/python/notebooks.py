"""Not a test: runs the notebooks of examples/python/notebooks, cell by cell as Jupyter runs them; $HEDDLE_EXAMPLES is examples/python.

Readers on the web see the outputs that the files hold: they have to be those of today, figures aside. A test that is called with
`--store` writes them anew.
"""
import ast
import contextlib
import io
import json
import linecache
import os
import pathlib
import re
import sys
import types
import unittest

import heddle

FOLDER = pathlib.Path(os.environ["HEDDLE_EXAMPLES"]) / "notebooks"
MACHINE = "heddle_target"  # in the metadata: what kernels the outputs show depends on it


class Notebook:
    """Runs the cells of a file in one module. A cell's text is where `inspect` finds it, as in IPython."""

    def __init__(self, path):
        self.path = path
        self.content = json.loads(path.read_text())
        self.module = types.ModuleType(path.stem)

    def cells(self):
        return [cell for cell in self.content["cells"] if cell["cell_type"] == "code"]

    def run(self, number, cell):
        """The outputs that a notebook keeps of a cell: what was printed, and its last expression."""
        text, name = "".join(cell["source"]), f"<{self.module.__name__} {number}>"
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        tree = ast.parse(text, name)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(tree, name, "exec"), self.module.__dict__)
            value = None if last is None else eval(compile(ast.Expression(last.value), name, "eval"), self.module.__dict__)
        outputs = []
        if printed.getvalue():
            outputs.append({"output_type": "stream", "name": "stdout", "text": lines(printed.getvalue())})
        if value is not None:
            html = value._repr_html_() if hasattr(value, "_repr_html_") else None
            data = {"text/plain": lines(repr(value)), **({"text/html": lines(html)} if html else {})}
            outputs.append({"output_type": "execute_result", "execution_count": number + 1, "metadata": {}, "data": data})
        return outputs

    def store(self, outputs):
        for number, (cell, of_cell) in enumerate(zip(self.cells(), outputs, strict=True)):
            cell["execution_count"], cell["outputs"] = number + 1, of_cell
        self.content["metadata"][MACHINE] = machine()
        self.path.write_text(json.dumps(self.content, indent=1, ensure_ascii=False) + "\n")


def lines(text):
    return text.splitlines(keepends=True)


def machine():
    model = b'graph g(%x: f32[4]) {\n  %0 = neg(%x) : f32[4]\n  return "y" = %0\n}\n'
    return heddle.inspect(model)["estimate"]["target"].split(" ")[0]


def texts(outputs):
    """By output: its kinds of text, each in one piece."""
    return [{"text": "".join(o["text"])} if o["output_type"] == "stream" else {kind: "".join(text) for kind, text in o["data"].items()}
            for o in outputs]


def masked(text):
    """Without figures, their units, the room that tables and pictures make for them, and the note that the machine was busy."""
    text = re.sub(r"\n?note: [^\n]* while times were measured, [^\n]*", "", text)
    text = re.sub(r"<svg.*?</svg>", lambda svg: "\n".join(re.findall(r"<text[^>]*>([^<]*)</text>", svg[0])), text, flags=re.DOTALL)
    text = re.sub(r"\b[0-9a-f]{16}\b|_[0-9a-f]{16}\b|\d+(\.\d+)?(e[+-]?\d+)?", "#", text)
    return re.sub(r"[ -]+", " ", re.sub(r"# ?(ns|us|ms|s|B|KB|MB|GB|%)(?=\W|$)", "#", text))


class Notebooks(unittest.TestCase):
    """Of those whose stems are keys of `expected`: what has to be in the outputs of each cell."""

    maxDiff = None
    expected: dict

    def test_cells(self):
        for stem, parts in self.expected.items():
            notebook = Notebook(FOLDER / f"{stem}.ipynb")
            self.assertEqual(len(notebook.cells()), len(parts))
            for number, (cell, part) in enumerate(zip(notebook.cells(), parts)):
                with self.subTest(stem, cell=number):
                    fresh, stored = texts(notebook.run(number, cell)), texts(cell["outputs"])
                    self.assertIn(part, json.dumps(fresh))
                    self.assertEqual([list(o) for o in fresh], [list(o) for o in stored], "--store")
                    self.assertNotIn(os.sep + "tmp", json.dumps(stored), "a path of the machine that stored it")
                    if notebook.content["metadata"][MACHINE] != machine():
                        continue
                    for new, old in zip(fresh, stored):
                        for kind in new:
                            self.assertEqual(masked(new[kind]), masked(old[kind]), "--store")


def main(expected):
    """Runs the test, or, with `--store`, writes the outputs of these notebooks."""
    if sys.argv[1:] != ["--store"]:
        unittest.main()
    for stem in expected:
        notebook = Notebook(FOLDER / f"{stem}.ipynb")
        notebook.store([notebook.run(number, cell) for number, cell in enumerate(notebook.cells())])
