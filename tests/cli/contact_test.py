"""What a user meets first: names of any kind, output that cannot be written, misspelt words, `heddle inspect`, the lines
about what was guessed and done.

Arguments: the command `heddle`, then those of unittest."""
import json
import os
import pty
import stat
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import bad_input_test
from bad_input_test import Case, linear, model_of, value_info

# A name with what terminals obey, text that changes its direction, bytes that are no UTF-8, and markup. Each stands in
# for as many letters as it has bytes.
HOSTILE = b"\x1b[31m\x07\n</text>&\xe2\x80\xae\xc2\x9b\xff\xc3(\xed\xa0\x80"
STAND_IN = b"H" * len(HOSTILE)


def hostile_model():
    """x -> MatMul -> y, where every name but those of operators is hostile."""
    model = linear()
    name = STAND_IN.decode()
    model.graph.node[0].name = "n" + name
    model.graph.node[0].output[0] = "y" + name
    model.graph.output[0].name = "y" + name
    model.graph.node[0].input[0] = "x" + name
    model.graph.input[0].name = "x" + name
    return model.SerializeToString().replace(STAND_IN, HOSTILE)


class Output(Case):
    def setUp(self):
        super().setUp()
        self.write("m.onnx", linear())

    def command(self, text, **options):
        variables = {**os.environ, "HEDDLE_CACHE_DIR": str(self.cache)}
        return subprocess.run(["bash", "-c", text.replace("heddle", bad_input_test.HEDDLE)], cwd=self.folder, env=variables,
                              capture_output=True, text=True, timeout=120, check=False, **options)

    def test_output_that_cannot_be_written_is_an_error(self):
        for arguments in ["run m.onnx", "explain m.onnx --json", "explain m.onnx", "bench m.onnx --seconds 0.01 --json",
                          "inspect m.onnx", "verify m.onnx", "zoo", "devices", "opt --list", "cache info", "--help",
                          "run --help", "--version"]:
            with self.subTest(arguments):
                done = self.command(f"heddle {arguments} >/dev/full")
                self.assertEqual(done.returncode, 4, done.stderr)
                self.assertIn("HDL401", done.stderr)
                self.assertIn("standard output", done.stderr)

    @unittest.skipUnless(os.geteuid() == 0, "only root may make a device")
    def test_devices_are_written_to_and_stay(self):
        full = self.folder / "full"  # one of our own: a command that puts a file in its place harms nobody
        os.mknod(full, 0o666 | stat.S_IFCHR, os.makedev(1, 7))
        for arguments in (["zoo", "crnn", "-o", "full"], ["explain", "m.onnx", "--svg", "full"],
                          ["inspect", "m.onnx", "--svg", "full"], ["compile", "m.onnx", "-o", "full"]):
            with self.subTest(arguments):
                self.assertEqual(self.heddle(*arguments).returncode, 4)
                self.assertTrue(full.is_char_device())

    def test_no_output_at_all(self):
        self.assertEqual(self.command("heddle run m.onnx >&-").returncode, 4)
        before = (self.folder / "m.onnx").read_bytes()
        self.command("heddle zoo <&- >&- 2>&-")
        self.assertEqual((self.folder / "m.onnx").read_bytes(), before)

    def test_a_reader_that_leaves_is_no_error(self):
        for prefix in ["", "trap '' PIPE; "]:
            done = self.command(prefix + "heddle opt --list | true; echo ${PIPESTATUS[0]}")
            self.assertEqual(done.stderr, "")
            self.assertIn(done.stdout.strip(), ("0", "141"))


class Names(Case):
    def assert_harmless(self, text):
        for c in text:
            self.assertTrue(c == "\n" or (ord(c) >= 0x20 and not 0x7f <= ord(c) < 0xa0 and ord(c) != 0x202e), repr(c))

    def test_what_terminals_obey_is_escaped(self):
        self.write("m.onnx", hostile_model())
        for arguments in (["inspect", "m.onnx"], ["run", "m.onnx", "--output-dir", "out"], ["verify", "m.onnx"],
                          ["explain", "m.onnx"], ["explain", "m.onnx", "-v"], ["run", "m.onnx", "--shape", "nope=1"],
                          ["run", "m.onnx", "--disable-pass", HOSTILE], [HOSTILE], ["run", "m.onnx", b"--" + HOSTILE],
                          ["run", HOSTILE + b".onnx"], ["zoo", HOSTILE]):
            with self.subTest(arguments):
                done = self.heddle(*arguments)
                self.assertIn(done.returncode, (0, 2, 4))
                self.assert_harmless(done.stdout + done.stderr)
        self.assertIn(r"x\x1b[31m\x07\n</text>&\u{202e}\u{9b}\xff\xc3(\xed\xa0\x80", self.heddle("inspect", "m.onnx").stdout)

    def test_json_and_pictures_stay_valid(self):
        self.write("m.onnx", hostile_model())
        for arguments in (["inspect", "--svg", "a.svg"], ["run"], ["verify"], ["explain", "--svg", "b.svg"]):
            done = self.heddle(arguments[0], "m.onnx", *arguments[1:], "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assert_harmless(done.stdout)
            json.loads(done.stdout)
        for picture in ("a.svg", "b.svg"):
            root = ElementTree.parse(self.folder / picture).getroot()
            self.assertTrue(root.tag.endswith("svg"))
            (self.folder / picture).read_text(encoding="utf-8")
        titles = [title.text for title in ElementTree.parse(self.folder / "a.svg").iter() if title.tag.endswith("title")]
        self.assertTrue(any("x" in title and r"\x1b[31m" in title for title in titles), titles)

    def test_every_output_has_a_file_of_its_own(self):
        stand_ins = {"0ul": b"a\0b", "0esc": b"\x1b[1m", "0raw": b"\xff\xfe"}
        names = ["a/b", "a_b", "a\\b", "..", ".", "-", "c" * 400, "c" * 399 + "d", "é" * 150, "../../up", "plain", *stand_ins]
        nodes = [helper.make_node("Add", ["x", f"c{i}"], [name]) for i, name in enumerate(names)]
        constants = [numpy_helper.from_array(np.float32(i), f"c{i}") for i in range(len(names))]
        model = model_of(nodes, [value_info("x", [1])], [value_info(name, [1]) for name in names], constants)
        data = model.SerializeToString()
        for text, raw in stand_ins.items():
            data = data.replace(bytes([len(text)]) + text.encode(), bytes([len(raw)]) + raw)
        self.write("m.onnx", data if all(len(t) == len(r) for t, r in stand_ins.items()) else self.renamed(model, stand_ins))
        np.save(self.folder / "x.npy", np.zeros(1, np.float32))
        done = self.heddle("run", "m.onnx", "--input", "x=x.npy", "--output-dir", "deep/out", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        outputs = json.loads(done.stdout)["outputs"]
        files = [output["file"] for output in outputs]
        self.assertEqual(len(set(files)), len(names))
        for i, file in enumerate(files):
            self.assertEqual((self.folder / file).resolve().parent, (self.folder / "deep/out").resolve())
            self.assertEqual(np.load(self.folder / file)[0], i, names[i])
        self.assertEqual(len(list((self.folder / "deep/out").iterdir())), len(names))
        by_name = dict(zip(names, files))
        self.assertEqual(by_name["a_b"], "deep/out/a_b.npy")
        self.assertEqual(by_name["a/b"], "deep/out/a_b-2.npy")
        self.assertEqual(by_name["plain"], "deep/out/plain.npy")
        table = self.heddle("run", "m.onnx", "--input", "x=x.npy", "--output-dir", "deep/out").stdout
        self.assertRegex(table, r"(?m)^a/b .*deep/out/a_b-2\.npy$")

    @staticmethod
    def renamed(model, stand_ins):
        """The bytes of a model whose stand-ins are padded to the length of what replaces them."""
        for node, port in zip(model.graph.node, model.graph.output):
            if port.name in stand_ins:
                padded = "~" * (len(stand_ins[port.name]) - 1) + port.name[-1]
                stand_ins[padded] = stand_ins.pop(port.name)
                node.output[0] = port.name = padded
        data = model.SerializeToString()
        for text, raw in stand_ins.items():
            data = data.replace(text.encode(), raw)
        return data


class Words(Case):
    def setUp(self):
        super().setUp()
        self.write("m.onnx", linear())

    def test_the_word_that_was_meant(self):
        np.save(self.folder / "x.npy", np.zeros((2, 8), np.float32))
        self.write("image.onnx", model_of([helper.make_node("Relu", ["image"], ["y"])], [value_info("image", [2, 8])],
                                          [value_info("y", [2, 8])]))
        for arguments, meant in [
                (["rnu", "m.onnx"], "run"), (["inspct", "m.onnx"], "inspect"), (["explan"], "explain"),
                (["kernel", "gem"], "gemm"), (["m.onnx"], "heddle run m.onnx"),
                (["run", "m.onnx", "--tagret", "cuda"], "--target"), (["run", "--tagret", "cuda", "m.onnx"], "--target"),
                (["run", "m.onnx", "--shap=x=2,8"], "--shape"), (["run", "m.onnx", "--output_dir", "d"], "--output-dir"),
                (["bench", "m.onnx", "--second", "1"], "--seconds"), (["run", "m.onnx", "--dims", "batch=4"], "--shape"), (["--json", "run", "m.onnx"], 'behind "heddle run"'),
                (["generate", "folder", "--prompt", "the"], "python3 -m heddle generate"),
                (["run", "image.onnx", "--input", "imgae=x.npy"], "image"),
                (["run", "image.onnx", "--shape", "imag=2,8"], "image"), (["zoo", "resnet5"], "resnet50"),
                (["zoo", "bert"], "bert-base"), (["run", "m.onnx", "--precision", "fp16"], "f16"),
                (["run", "m.onnx", "--precision", "bfloat16"], "bf16"), (["run", "m.onnx", "--target", "gpu"], "cuda"),
                (["run", "m.onnx", "--fusion", "stich"], "stitch"),
                (["run", "m.onnx", "--disable-pass", "canonicalise"], "canonicalize"),
                (["run", "m.onnx", "--stitch-mapping", "wrap"], "warp"),
                (["kernel", "gemm", "--m", "8", "--n", "8", "--k", "8", "--predict", "--dtype", "half"], "f16")]:
            with self.subTest(arguments):
                done = self.heddle(*arguments)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertEqual(done.stdout, "")
                meant_here = meant if " " in meant else f"Did you mean {meant}?"
                self.assertIn(meant_here, done.stderr)

    def test_nothing_is_suggested_where_nothing_is_near(self):
        for arguments in (["xyzzy"], ["run", "m.onnx", "--qwerty"], ["run", "m.onnx", "--shape", "unrelated=1"],
                          ["run", "m.onnx", "--precision", "int8"], ["run", "m.onnx", "-v"], []):
            done = self.heddle(*arguments)
            self.assertEqual(done.returncode, 2)
            self.assertNotIn("Did you mean", done.stderr)
        self.assertIn("a command is missing", self.heddle().stderr)

    def test_what_is_missing_or_no_value(self):
        for arguments, said in [(["run"], "heddle run: MODEL is required"), (["kernel"], "heddle kernel needs a command: attention, conv, b2b, packed, gemm"),
                                (["run", "m.onnx", "--threads", "many"], "--threads = many"),
                                (["profile", "m.onnx", "--svg", "x.svg"], "those that have it: heddle inspect, heddle explain"),
                                (["profile", "m.onnx", "--html"], "--html needs FILE"),
                                (["bench", "m.onnx", "--seconds", "-1"], "--seconds"), (["cache", "info", "x"], '"x"')]:
            with self.subTest(arguments):
                done = self.heddle(*arguments)
                self.assertEqual(done.returncode, 2)
                self.assertIn(said, done.stderr)


class Inspect(Case):
    def inspect(self, *arguments, exit_code=0):
        done = self.heddle("inspect", *arguments, "--json")
        self.assertEqual(done.returncode, exit_code, done.stderr)
        return json.loads(done.stdout)

    def test_a_model_and_its_needs(self):
        nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Relu", ["a"], ["b"]),
                 helper.make_node("Relu", ["b"], ["y"])]
        self.write("m.onnx", model_of(nodes, [value_info("x", ["batch", 8])], [value_info("y", ["batch", 4])],
                                      [numpy_helper.from_array(np.ones((8, 4), np.float32), "w")]))
        # No compiler: nothing is compiled. No cache: nothing is kept.
        report = self.inspect("m.onnx", "--shape", "x=16,8")
        self.assertEqual(self.heddle("inspect", "m.onnx", env={"HEDDLE_CXX": "/bin/false"}).returncode, 0)
        self.assertEqual(report["inputs"][0]["type"], "f32[batch,8]")
        self.assertEqual(report["inputs"][0]["shape"], [16, 8])
        self.assertEqual(report["outputs"][0]["shape"], [16, 4])
        self.assertEqual(report["opsets"], {"ai.onnx": 17})
        self.assertEqual(report["operators"], {"MatMul": 1, "Relu": 2})
        self.assertEqual((report["parameters"], report["parameter_bytes"]), (32, 128))
        self.assertEqual(report["file_bytes"], (self.folder / "m.onnx").stat().st_size)
        self.assertEqual(report["unsupported"], [])
        self.assertEqual(report["estimate"]["port_bytes"], 16 * (8 + 4) * 4)
        self.assertGreaterEqual(report["estimate"]["constant_bytes"], 128)
        self.assertGreater(report["estimate"]["floor_s"], 0)
        self.assertGreater(self.inspect("m.onnx", "--shape", "x=4096,8")["estimate"]["floor_s"], report["estimate"]["floor_s"])
        text = self.heddle("inspect", "m.onnx", "--shape", "x=16,8").stdout
        for said in ["f32[batch,8]", "[16,8]", "ai.onnx 17", "2 Relu", "memory: ", "floor: "]:
            self.assertIn(said, text)

    def test_rows_fit_the_terminal_unless_all_is_asked_for(self):
        formula = "floor(floor(floor(height/2 - 1/2)/2 + 1/2)/2) * floor(floor(floor(width/2 - 1/2)/2 + 1/2)/2)"
        model = model_of([helper.make_node("Relu", ["x"], ["y"])], [value_info("x", ["height", "width"])],
                         [value_info("y", [formula, "width" * 60])])
        self.write("m.onnx", model)
        rows = self.heddle("inspect", "m.onnx").stdout.splitlines()[1:5]
        self.assertLessEqual(max(map(len, rows)), 120, rows)
        self.assertIn("f32[f(height, width),f(width", rows[-1])
        self.assertIn(formula, self.heddle("inspect", "m.onnx", "--full").stdout)
        self.assertEqual(self.inspect("m.onnx")["outputs"][0]["extents"][0], formula)

    def test_extents_without_a_name_have_one_form(self):
        model = model_of([helper.make_node("Relu", ["x"], ["y"])], [value_info("x", [-1, 3, "?", None])],
                         [value_info("y", ["-1", 3, "None", "?"])])
        self.write("m.onnx", model)
        report = self.inspect("m.onnx")
        self.assertEqual([report[side][0]["type"] for side in ("inputs", "outputs")], ["f32[?,3,?,?]"] * 2)
        self.refused(2, "HDL202", "[?,3,?,?]", arguments=["run", "m.onnx", "--shape", "x=1,2,3,4"])

    def test_what_cannot_be_compiled_is_shown_all_the_same(self):
        nodes = [helper.make_node("Frobnicate", ["x"], ["a"], name="frob"),
                 helper.make_node("Gizmo", ["a"], ["b"], name="giz", domain="com.example"),
                 helper.make_node("Relu", ["b"], ["y"], name="known")]
        model = model_of(nodes, [value_info("x", ["n"])], [value_info("y", ["n"])])
        model.opset_import.add(domain="com.example", version=1)
        self.write("m.onnx", model)
        report = self.inspect("m.onnx", "--svg", "m.svg", exit_code=3)
        self.assertNotIn("estimate", report)
        said = " ".join(report["unsupported"])
        for name in ("Frobnicate", "frob", "Gizmo", "giz"):
            self.assertIn(name, said)
        self.assertEqual(report["operators"], {"Frobnicate": 1, "com.example.Gizmo": 1, "Relu": 1})
        picture = ElementTree.parse(self.folder / "m.svg")
        texts = [text.text for text in picture.iter() if text.tag.endswith("text")]
        self.assertEqual(texts.count("not supported"), 2)
        self.assertIn("Relu", texts)
        done = self.heddle("inspect", "m.onnx")
        self.assertIn("not supported", done.stdout)
        last = done.stdout.splitlines()[-1]
        for said in ("a run with these options is refused", "HDL301", "Frobnicate", "Gizmo"):
            self.assertIn(said, last)
        self.assertEqual(done.returncode, self.heddle("run", "m.onnx").returncode)

    def test_shapes_that_do_not_work_and_other_files(self):
        self.write("m.onnx", linear())
        report = self.inspect("m.onnx", "--shape", "x=2,9", exit_code=2)
        self.assertIn("HDL202", report["no_estimate"])
        self.assertEqual(self.heddle("compile", "m.onnx", "-o", "m.plan").returncode, 0)
        plan = self.inspect("m.plan")
        self.assertEqual((plan["format"], plan["inputs"][0]["type"]), ("plan", "f32[2,8]"))
        self.write("m.hir", b"graph g(%x: f32[4]) {\n  %0 = neg(%x) {} : f32[4]\n  return \"y\" = %0\n}\n")
        self.assertEqual(self.inspect("m.hir", "--svg", "h.svg")["operators"], {"neg": 1})
        ElementTree.parse(self.folder / "h.svg")
        self.refused(2, "HDL101", "text.onnx", arguments=["inspect", self.write("text.onnx", b"no model\n" * 9)])
        self.refused(4, "HDL401", "none.onnx", arguments=["inspect", "none.onnx"])
        self.refused(4, "HDL401", "regular file", arguments=["inspect", "."])


@unittest.skipUnless(os.path.exists("/proc/self/schedstat"), "the system does not count the time of waiting")
class BusyMachine(Case):
    """Times that are worth little are called so, by every command that tells times."""

    own_cache = True

    def setUp(self):
        super().setUp()
        self.processor = {min(os.sched_getaffinity(0))}
        for _ in range(2):
            other = subprocess.Popen([sys.executable, "-c", "while True: pass"], preexec_fn=self.share)
            self.addCleanup(other.wait)
            self.addCleanup(other.kill)

    def share(self):
        os.sched_setaffinity(0, self.processor)

    def test_it_is_told(self):
        # A run takes long enough that the others have their turns while it is measured.
        side = [256, 256]
        self.write("m.onnx", model_of([helper.make_node("MatMul", ["x", "w"], ["y"], name="mm")], [value_info("x", side)],
                                      [value_info("y", side)], [numpy_helper.from_array(np.ones(side, np.float32), "w")]))
        self.heddle("run", "m.onnx", "--threads", "1")
        variables = {**os.environ, "HEDDLE_CACHE_DIR": str(self.folder / "cache")}
        for arguments in [("profile", "m.onnx", "--seconds", "0.1"), ("explain", "m.onnx", "--measure"),
                          ("bench", "m.onnx", "--seconds", "0.1")]:
            with self.subTest(arguments):
                # What explain measures may fit between two turns of the others, and waits for none of them then.
                for _ in range(5 if arguments[0] == "explain" else 1):
                    done = subprocess.run([bad_input_test.HEDDLE, *arguments, "--threads", "1"], cwd=self.folder, env=variables,
                                          capture_output=True, text=True, preexec_fn=self.share, timeout=120, check=True)
                    told = done.stdout.count("the machine is busy with other work")
                    if told > 0:
                        break
                self.assertEqual(told, 1, done.stdout)
                self.assertNotIn("of it reached", done.stdout)
                self.assertNotIn("far_from_floor", done.stdout)


class Advice(Case):
    """What explain says to try fits the run."""

    def test_what_the_run_has_is_not_advised(self):
        self.write("m.onnx", linear())
        def tried(*options):
            return next(line for line in self.heddle("explain", "m.onnx", "--target", "cuda", *options).stdout.splitlines()
                        if line.startswith("try "))
        self.assertIn("--precision bf16", tried())
        self.assertRegex(tried("--threads", "1"), r"heddle tune MODEL --target cuda --threads 1\b")
        self.assertNotIn("bf16", tried("--precision", "f16"))
        self.assertIn("--precision f16", tried("--precision", "f16"))
        self.assertNotIn("heddle tune", tried("--untuned"))


class Inputs(Case):
    """Inputs with a default, inputs of text."""

    def run_model(self, *inputs):
        results, done = self.outputs("m.onnx", *(word for one in inputs for word in ("--input", one)))
        return results["y"].tolist(), done

    def test_a_default_holds_unless_data_is_given(self):
        nodes = [helper.make_node("Mul", ["x", "a"], ["y"])]
        model = model_of(nodes, [value_info("x", [2]), value_info("a", [2])], [value_info("y", [2])],
                         [numpy_helper.from_array(np.array([10, 20], np.float32), "a")])
        self.write("m.onnx", model)
        np.save(self.folder / "x.npy", np.array([1, 2], np.float32))
        np.save(self.folder / "a.npy", np.array([3, 4], np.float32))
        for _ in range(2):
            self.assertEqual(self.run_model("x=x.npy")[0], [10, 40])
            self.assertEqual(self.run_model("x=x.npy", "a=a.npy")[0], [3, 8])
        self.assertEqual(self.heddle("verify", "m.onnx", "--input", "a=a.npy").returncode, 0)
        done = self.heddle("inspect", "m.onnx", "--json")
        report = json.loads(done.stdout)
        self.assertEqual([port["name"] for port in report["inputs"]], ["x"])
        self.assertEqual([port["name"] for port in report["optional_inputs"]], ["a"])
        self.assertRegex(self.heddle("inspect", "m.onnx").stdout, r"optional +a +f32\[2\]")
        self.assertEqual(self.heddle("compile", "m.onnx", "-o", "m.plan").returncode, 0)
        self.refused(2, "HDL202", "input a", arguments=["run", "m.plan", "--input", "a=a.npy"])
        self.refused(2, "HDL202", "no input", arguments=["run", "m.onnx", "--input", "b=a.npy"])

    def test_text(self):
        nodes = [helper.make_node("LabelEncoder", ["t"], ["y"], domain="ai.onnx.ml", keys_strings=["\u00e4", "dog"],
                                  values_floats=[3.0, 5.0])]
        model = model_of(nodes, [value_info("t", [3], TensorProto.STRING)], [value_info("y", [3])])
        model.opset_import.add(domain="ai.onnx.ml", version=4)
        self.write("m.onnx", model)
        words = np.array(["dog", "\u00e4", ""])
        np.save(self.folder / "wide.npy", words)
        np.save(self.folder / "bytes.npy", np.char.encode(words, "utf-8"))
        np.save(self.folder / "objects.npy", words.astype(object))
        np.save(self.folder / "big.npy", words.astype(">U3"))
        np.save(self.folder / "other.npy", np.array(["\u00e4", "\u00e4", "dog"]))
        for name in ("wide.npy", "bytes.npy"):
            self.assertEqual(self.run_model("t=" + name)[0][:2], [5, 3], name)
        self.assertEqual(self.run_model("t=other.npy")[0], [3, 3, 5])
        self.refused(2, "HDL202", "objects of Python", 'dtype="U"', arguments=["run", "m.onnx", "--input", "t=objects.npy"])
        self.refused(2, "HDL202", "big-endian", arguments=["run", "m.onnx", "--input", "t=big.npy"])
        self.refused(3, "HDL303", "text", "--input t=", arguments=["run", "m.onnx"])

    def test_paths_that_are_no_utf8(self):
        name, plan = b"m\xff\xc3(.onnx", b"m\xff.plan"
        with open(os.fsencode(self.folder) + b"/" + name, "wb") as file:
            file.write(linear().SerializeToString())
        for arguments in (["inspect", name], ["run", name], ["run", name], ["verify", name], ["explain", name],
                          ["explain", name, "--svg", b"p\xff.svg"], ["compile", name, "-o", plan], ["run", plan]):
            with self.subTest(arguments):
                done = self.heddle(*arguments)
                self.assertEqual(done.returncode, 0, done.stderr)
                if arguments[0] in ("inspect", "run", "verify"):
                    json.loads(self.heddle(*arguments, "--json").stdout)
        self.assertIn(r"m\xff\xc3(.onnx", self.heddle("inspect", name).stdout)
        self.refused(2, "HDL202", arguments=["run", name, "--shape", "nope=1"])


class Guesses(Case):
    own_cache = True

    def test_every_command_that_compiles_says_what_it_took(self):
        free = model_of([helper.make_node("Relu", ["x"], ["y"])], [value_info("x", ["batch", 8])],
                        [value_info("y", ["batch", 8])])
        self.write("free.onnx", free.SerializeToString())
        line = "heddle: batch = 1 (guessed; --shape x=1,8 sets it)"
        for command in (["run"], ["verify"], ["compile", "-o", "free.plan"], ["bench", "--seconds", "0.01"],
                        ["tune", "--seconds", "1"]):
            done = self.heddle(command[0], "free.onnx", *command[1:])
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stderr.splitlines().count(line), 1, f"{command}: {done.stderr}")
            given = self.heddle(command[0], "free.onnx", "--shape", "x=1,8", *command[1:])
            self.assertNotIn("guessed", given.stderr)


class Terminal(Case):
    """What differs on a terminal."""

    own_cache = True

    def on_terminal(self, *arguments, **variables):
        """What the command writes where stdout and stderr are a terminal."""
        environment = {**os.environ, "HEDDLE_CACHE_DIR": str(self.folder / "cache"), "TERM": "xterm", **variables}
        environment.pop("NO_COLOR", None) if "NO_COLOR" not in variables else None
        ours, theirs = pty.openpty()
        with subprocess.Popen([bad_input_test.HEDDLE, *arguments], cwd=self.folder, env=environment, stdin=theirs,
                              stdout=theirs, stderr=theirs) as process:
            os.close(theirs)
            written = b""
            try:
                while block := os.read(ours, 1 << 16):
                    written += block
            except OSError:  # the terminal is closed
                pass
            os.close(ours)
            process.wait(timeout=60)
        return written.decode()

    def shown(self, written):
        """The lines that stay, as a terminal shows them."""
        lines = []
        for line in written.replace("\r\n", "\n").split("\n"):
            cells = []
            for part in line.split("\r"):
                cells[:len(part)] = part
            lines.append("".join(cells).rstrip())
        return lines

    def test_progress_and_colours(self):
        self.write("m.onnx", linear())
        written = self.on_terminal("run", "m.onnx")
        self.assertRegex(written, r"\r\[#*\.*\] kernels 0 of \d")
        self.assertIn("\x1b[1m", written)
        self.assertNotIn("[#", "\n".join(self.shown(written)))  # nothing of it stays
        for variables in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            written = self.on_terminal("run", "m.onnx", "--no-cache", **variables)
            self.assertNotIn("\x1b", written)
            self.assertIn("\r[", written)
        self.assertRegex(self.on_terminal("zoo", "resnet18"), r"\r\[#*\.*\] weights: [0-9.]+ MB of [0-9.]+ MB")
        failed = self.shown(self.on_terminal("run", "m.onnx", "--shape", "x=2,9"))
        self.assertTrue(failed[0].replace("\x1b[1;31m", "").startswith("heddle: error:"), failed)

    def test_elsewhere_there_are_neither(self):
        self.write("m.onnx", linear())
        done = self.heddle("run", "m.onnx", env={"TERM": "xterm"})
        self.assertEqual(done.stderr, "")
        self.assertNotIn("\x1b", done.stdout)


if __name__ == "__main__":
    bad_input_test.HEDDLE = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="heddle-test.") as bad_input_test.SHARED_CACHE:
        unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
