"""heddle profile: what a run's time is divided into, the files that it writes, stored profiles, and what it refuses.

usage: profile_test.py HEDDLE
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HEDDLE = sys.argv[1]


def heddle(*arguments, code=0):
    """stdout; stderr of a command that fails with `code`."""
    done = subprocess.run([HEDDLE, *map(str, arguments)], capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stderr
    return done.stderr if code else done.stdout


def model():
    """Two layers with names of modules: relu(x a) b, and a softmax."""
    weights = [numpy_helper.from_array(np.ones(shape, np.float32), name) for name, shape in (("a", (64, 96)), ("b", (96, 32)))]
    nodes = [helper.make_node("MatMul", ["x", "a"], ["p"], name="/net/fc1/MatMul"),
             helper.make_node("Relu", ["p"], ["q"], name="/net/act/Relu"),
             helper.make_node("MatMul", ["q", "b"], ["r"], name="/net/fc2/MatMul"),
             helper.make_node("Softmax", ["r"], ["y"], name="/head/Softmax")]
    port = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    graph = helper.make_graph(nodes, "g", [port("x", [128, 64])], [port("y", [128, 32])], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


class Profile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        onnx.save(model(), cls.path / "m.onnx")
        cls.files = {form: cls.path / f"p.{form}" for form in ("json", "html", "trace", "speedscope", "pprof", "folded")}
        cls.text = heddle("profile", cls.path / "m.onnx", "--seconds", "0.05", "-o", cls.files["json"],
                          *(word for form in list(cls.files)[1:] for word in (f"--{form}", cls.files[form])))
        cls.data = json.loads(cls.files["json"].read_text())

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def names(self, kind):
        frames, strings = self.data["frames"], self.data["strings"]
        return {strings[name] for name, of in zip(frames["name"], frames["kind"]) if of == kind}

    def test_modules_and_nodes_of_the_model(self):
        self.assertLessEqual({"net", "fc1", "fc2", "head"}, self.names("module"))
        self.assertLessEqual({"MatMul", "Softmax"}, self.names("node"))
        self.assertIn("net/fc1/MatMul", self.text)

    def test_rows_sum_to_the_run(self):
        total = sum(self.data["nodes"]["values"]["CPU"])
        self.assertIn(f"{total * 1e-6:.3f} ms", dict(self.data["facts"])["time of a run"])
        self.assertEqual(sum(self.data["nodes"]["values"]["LAUNCHES"]), len(self.data["timeline"]["start"]))
        folded = sum(int(line.rsplit(" ", 1)[1]) for line in self.files["folded"].read_text().splitlines())
        self.assertEqual(folded, total)
        weights = json.loads(self.files["speedscope"].read_text())["profiles"][0]["weights"]
        self.assertEqual(sum(weights), total)

    def test_files(self):
        for form, file in self.files.items():
            self.assertGreater(file.stat().st_size, 100, form)
        self.assertTrue("m.onnx on cpu" in self.files["html"].read_text().partition("</title>")[0])

    def test_stored_profiles(self):
        stored = self.files["json"]
        self.assertEqual(heddle("profile", "show", stored) + f"page: {self.files['html']}\n", self.text)
        merged = json.loads(heddle("profile", "merge", stored, stored, "--json"))
        self.assertEqual(sum(merged["nodes"]["values"]["CPU"]), 2 * sum(self.data["nodes"]["values"]["CPU"]))
        self.assertIn("(+0.0%)", heddle("profile", "diff", stored, stored, "--html", self.path / "d.html"))
        difference = json.loads(heddle("profile", "diff", stored, stored, "--json"))
        self.assertEqual(difference["nodes"]["before"]["CPU"], difference["nodes"]["values"]["CPU"])

    def changed(self, name, **fields):
        (self.path / name).write_text(json.dumps(dict(self.data, **fields)))
        return self.path / name

    def test_what_became_slower(self):
        nodes = self.data["nodes"]
        slower = self.changed("slower.json", nodes=dict(nodes, values=dict(nodes["values"], CPU=[2 * t for t in nodes["values"]["CPU"]])))
        text = heddle("profile", "diff", self.files["json"], slower)
        self.assertIn("(+100.0%)", text)
        self.assertRegex(text, r"(?m)^\+\S.*kernel .*Softmax")

    def test_times_of_a_busy_machine_are_not_beside_their_floors(self):
        facts = [fact for fact in self.data["facts"] if fact[0] != "busy machine"]
        for more in ([], [["busy machine", "half of the time"]]):
            text = heddle("profile", "show", self.changed("facts.json", facts=facts + more))
            self.assertEqual("above its floor" in text, not more, text)

    def chain(self, name, length, **fields):
        """A profile of nodes one below the other."""
        data = dict(self.data, nodes={"parent": [*range(-1, length - 1)], "frame": [i % 2 for i in range(length)],
                                      "values": {"CPU": [7] * length}}, **fields)
        for table in ("roofline", "timeline", "advice"):
            data.pop(table, None)
        (self.path / name).write_text(json.dumps(data))
        return self.path / name

    def test_deep_trees(self):
        for length in (1500, 60000):
            deep = self.chain("deep.json", length)
            text = heddle("profile", "show", deep, "--html", self.path / "deep.html", "--trace", self.path / "deep.trace")
            self.assertIn("calls between)", text)
            merged = json.loads(heddle("profile", "merge", deep, deep, "--json"))
            self.assertEqual(sum(merged["nodes"]["values"]["CPU"]), 14 * length)
            self.assertIn("(+0.0%)", heddle("profile", "diff", deep, deep))
        for form in ("folded", "speedscope", "pprof"):
            self.assertIn("nested so deep", heddle("profile", "show", deep, f"--{form}", self.path / "f", code=2))

    def test_nothing_counted(self):
        empty = self.chain("empty.json", 3, metrics=[])
        forms = [word for form in ("folded", "speedscope", "pprof", "trace", "html") for word in
                 (f"--{form}", self.path / f"empty.{form}")]
        self.assertIn("nothing was counted", heddle("profile", "show", empty, *forms))
        self.assertIn("nothing was counted", heddle("profile", "merge", empty, empty, *forms))
        self.assertIn("nothing was counted", heddle("profile", "diff", empty, empty))
        self.assertEqual((self.path / "empty.folded").read_text(), "")

    def test_refusals(self):
        cases = {
            ("profile",): "MODEL, -- PROGRAM, show, diff or merge is required",
            ("profile", "show", self.path / "m.onnx"): "it is no JSON",
            ("profile", "diff", self.files["json"], self.files["speedscope"]): "format: it is missing",
            ("profile", self.path / "none.onnx"): "none.onnx",
            ("profile", self.path / "m.onnx", "--html", "/nowhere/p.html"): "/nowhere",
        }
        for words, part in cases.items():
            with self.subTest(words):
                code = 4 if part in ("none.onnx", "/nowhere") else 2
                self.assertIn(part, heddle(*words, code=code))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
