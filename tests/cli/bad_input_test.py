"""What a user can do wrong, through the command line: every case ends with the right exit code, an error of the one form
on stderr that names what is wrong, nothing on stdout, and within a time limit.

Arguments: the command `heddle`, then those of unittest."""
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HEDDLE = ""
# An error names its number, its kind, the place, and the reason.
ERROR = re.compile(r"heddle: error: (HDL\d{3}) [a-z A-Z-]+: .+: .{4,}", re.DOTALL)


def value_info(name, shape, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def model_of(nodes, inputs, outputs, initializers=(), opset=17):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 8
    return model


def weights():
    return numpy_helper.from_array(np.random.default_rng(1).normal(size=(8, 4)).astype(np.float32), "w")


def linear(initializers=None, opset=17):
    """x f32[2,8] times w f32[8,4]."""
    return model_of([helper.make_node("MatMul", ["x", "w"], ["y"], name="mm")], [value_info("x", [2, 8])],
                    [value_info("y", [2, 4])], [weights()] if initializers is None else initializers, opset)


SHARED_CACHE = None  # of all tests of a program but those with `own_cache`


class Case(unittest.TestCase):
    own_cache = False

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="heddle-test."))
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.cache = self.folder / "cache" if self.own_cache or SHARED_CACHE is None else SHARED_CACHE

    def write(self, name, content):
        data = content.SerializeToString() if isinstance(content, onnx.ModelProto) else content
        (self.folder / name).write_bytes(data)
        return name

    def heddle(self, *arguments, env=None, limit=None, timeout=120):
        variables = {**os.environ, "HEDDLE_CACHE_DIR": str(self.cache), **(env or {})}
        before = (lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))) if limit else None
        return subprocess.run([HEDDLE, *arguments], cwd=self.folder, env=variables, capture_output=True, text=True,
                              errors="replace", timeout=timeout, check=False, preexec_fn=before)

    def refused(self, exit_code, code, *said, arguments, **options):
        """The command fails with this exit code and error number, and its message says each of `said`."""
        done = self.heddle(*arguments, **options)
        self.assertEqual(done.returncode, exit_code, done.stderr)
        self.assertEqual(done.stdout, "")
        found = ERROR.search(done.stderr)
        self.assertIsNotNone(found, done.stderr)
        self.assertEqual(found.group(1), code, done.stderr)
        for text in said:
            self.assertIn(text, done.stderr)
        return done

    def outputs(self, *arguments, **options):
        """Runs a model, which must succeed: name -> array."""
        done = self.heddle("run", *arguments, "--output-dir", "out", **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {path.stem: np.load(path) for path in (self.folder / "out").glob("*.npy")}, done


class Models(Case):
    def test_files_that_are_no_model(self):
        whole = linear().SerializeToString()
        (self.folder / "folder.onnx").mkdir()
        os.mkfifo(self.folder / "pipe.onnx")
        for name, content in [("text.onnx", b"once upon a time\n" * 20), ("empty.onnx", b""), ("zeros.onnx", bytes(999)),
                              ("half.onnx", whole[:len(whole) // 2]), ("one_less.onnx", whole[:-1])]:
            with self.subTest(name):
                self.write(name, content)
                self.refused(2, "HDL101", name, arguments=["run", name])
        for name in ["folder.onnx", "pipe.onnx", "missing.onnx"]:
            for command in ["run", "verify", "explain"]:
                with self.subTest(name=name, command=command):
                    self.refused(4, "HDL401", name, arguments=[command, name], timeout=20)
        self.refused(2, "HDL201", "MODEL", arguments=["run", ""])

    def test_flipped_bits_end_with_an_exit_code(self):
        whole = linear().SerializeToString()
        rng = np.random.default_rng(3)
        for trial in range(60):
            damaged = bytearray(whole)
            for at in rng.integers(0, len(whole), size=1 + trial % 3):
                damaged[at] ^= 1 << int(rng.integers(8))
            self.write("m.onnx", bytes(damaged))
            # Without a compiler: what is tested ends before it.
            done = self.heddle("run", "m.onnx", env={"HEDDLE_CXX": "/bin/false"})
            self.assertIn(done.returncode, (0, 2, 3, 4), (trial, done.stderr))
            self.assertNotIn("HDL501", done.stderr, trial)

    def test_cycles_and_missing_weights(self):
        cycle = model_of([helper.make_node("Add", ["x", "b"], ["a"], name="first"),
                          helper.make_node("Relu", ["a"], ["b"], name="second")], [value_info("x", [2])],
                         [value_info("b", [2])])
        self.write("cycle.onnx", cycle)
        self.refused(2, "HDL101", "first", "second", "cycle", arguments=["run", "cycle.onnx"])
        self.write("none.onnx", linear(initializers=[]))
        self.refused(2, "HDL101", "'w'", "'mm'", arguments=["run", "none.onnx"])

    def external(self, location, **more):
        tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[8, 4], data_location=TensorProto.EXTERNAL)
        for key, value in {"location": location, **more}.items():
            tensor.external_data.add(key=key, value=str(value))
        model = linear(initializers=[tensor])
        return self.write("m.onnx", model)

    def test_external_data(self):
        self.write("w.bin", np.ones((8, 4), np.float32).tobytes())
        os.mkfifo(self.folder / "pipe")
        self.external("w.bin")
        self.assertEqual(self.heddle("run", "m.onnx").returncode, 0)
        for location, more, code, said in [
                ("nowhere.bin", {}, "HDL102", "nowhere.bin"), ("../w.bin", {}, "HDL102", "../w.bin"),
                ("/etc/passwd", {}, "HDL102", "/etc/passwd"), ("a/../../w.bin", {}, "HDL102", "a/../../w.bin"),
                ("w.bin", {"offset": 64}, "HDL102", "w.bin"), ("w.bin", {"offset": 2**63 - 1}, "HDL102", "w.bin"),
                ("w.bin", {"offset": -4}, "HDL101", "offset"), ("w.bin", {"length": 3}, "HDL101", "3 bytes")]:
            with self.subTest(location=location, **more):
                self.external(location, **more)
                self.refused(2, code, "'w'", said, arguments=["run", "m.onnx"])
        self.external("pipe")
        done = self.heddle("run", "m.onnx", timeout=20)
        self.assertIn(done.returncode, (2, 4))
        self.assertIn("pipe", done.stderr)

    def test_unsupported_operators_all_at_once(self):
        nodes = [helper.make_node("Frobnicate", ["x"], ["a"], name="frob"),
                 helper.make_node("Gizmo", ["a"], ["b"], name="giz", domain="com.example"),
                 helper.make_node("Relu", ["b"], ["y"], name="known")]
        model = model_of(nodes, [value_info("x", [2])], [value_info("y", [2])])
        model.opset_import.add(domain="com.example", version=1)
        self.write("m.onnx", model)
        done = self.refused(3, "HDL301", "Frobnicate", "frob", "Gizmo", "giz", arguments=["run", "m.onnx"])
        self.assertNotIn("known", done.stderr)

    def test_names_that_are_not_utf8(self):
        plain = linear().SerializeToString()
        self.write("m.onnx", plain.replace(b"\x01y", b"\x01\xff"))
        for command in (["run"], ["verify"], ["explain"], ["bench", "--seconds", "0.01"]):
            done = self.heddle(*command, "m.onnx", "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            json.loads(done.stdout)
        self.assertEqual(self.heddle("run", "m.onnx", "--output-dir", "out").returncode, 0)

    def test_opsets_out_of_range(self):
        for opset in (6, 99):
            self.write("m.onnx", linear(opset=opset))
            done = self.heddle("run", "m.onnx")
            # An old or new opset may work where its operators did not change; a refusal says which it is.
            self.assertIn(done.returncode, (0, 2, 3), done.stderr)
            if done.returncode:
                self.assertIn(str(opset), done.stderr)


class Data(Case):
    def setUp(self):
        super().setUp()
        self.write("m.onnx", linear())

    def test_npy_files(self):
        x = np.arange(16, dtype=np.float32).reshape(2, 8)
        np.save(self.folder / "x.npy", x)
        whole = (self.folder / "x.npy").read_bytes()
        np.save(self.folder / "fortran.npy", np.asfortranarray(x))
        np.save(self.folder / "swapped.npy", x.astype(">f4"))
        np.save(self.folder / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
        np.save(self.folder / "complex.npy", x.astype(np.complex64))
        np.save(self.folder / "wide.npy", x.astype(np.float64))
        np.save(self.folder / "rank3.npy", x[None])
        self.write("short.npy", whole[:-5])
        self.write("long.npy", whole + b"more")
        self.write("magic.npy", b"X" + whole[1:])
        self.write("empty.npy", b"")
        self.write("endless.npy", whole.replace(b"(2, 8)", b"(9999999999, 9999999999)"))
        for name, said in [("fortran", "Fortran"), ("swapped", ">f4"), ("objects", "|O"), ("complex", "<c8"),
                           ("short", "short.npy"), ("long", "long.npy"), ("magic", "magic.npy"),
                           ("empty", "empty.npy"), ("endless", "endless.npy"), ("wide", "f64"), ("rank3", "[1,2,8]")]:
            with self.subTest(name):
                self.refused(2, "HDL202", said, arguments=["run", "m.onnx", "--input", f"x={name}.npy"])
        os.mkfifo(self.folder / "pipe.npy")
        for name in ["missing.npy", "pipe.npy", "."]:
            self.refused(4, "HDL401", name, arguments=["run", "m.onnx", "--input", f"x={name}"], timeout=20)
        self.refused(2, "HDL202", "nope", "x", arguments=["run", "m.onnx", "--input", "nope=x.npy"])
        self.refused(2, "HDL201", "--input", arguments=["run", "m.onnx", "--input", "x="])

    def test_options(self):
        for arguments, exit_code, code in [
                (["--threads", "-1"], 2, "HDL201"), (["--threads", "5000"], 2, "HDL201"),
                (["--target", "tpu"], 2, "HDL201"), (["--target", "cuda:7"], 4, "HDL406"),
                (["--precision", "int8"], 2, "HDL201"), (["--fusion", "all"], 2, "HDL201"),
                (["--disable-pass", "nope"], 2, "HDL201"), (["--shape", "=1,2"], 2, "HDL201"),
                (["--shape", "x=1,-8"], 2, "HDL201"), (["--shape", "x=99999999999999999999,8"], 2, "HDL201"),
                (["--shape", "x="], 2, "HDL202"), (["--shape", "x=2,8,1"], 2, "HDL202"),
                (["--shape", "nope=1"], 2, "HDL202"), (["--output-dir", "m.onnx"], 4, "HDL401"),
                (["--output-dir", "/proc/nope"], 4, "HDL401")]:
            with self.subTest(arguments):
                self.refused(exit_code, code, arguments=["run", "m.onnx", *arguments])
        for arguments in (["--threads", "0"], ["--threads", "100"]):
            self.assertEqual(self.heddle("run", "m.onnx", *arguments).returncode, 0)
        self.refused(2, "HDL201", "HEDDLE_CPU_ISA", "mmx", arguments=["run", "m.onnx"], env={"HEDDLE_CPU_ISA": "mmx"})

    def test_not_a_number_and_infinity(self):
        unary = ["Relu", "Sigmoid", "Tanh", "Exp", "Log", "Sqrt", "Abs", "Neg", "Floor", "Reciprocal", "IsNaN", "IsInf"]
        nodes = [helper.make_node(op, ["x"], [op]) for op in unary]
        nodes += [helper.make_node(op, ["x", "zero"], [op]) for op in ["Max", "Min", "Div", "Greater", "Add"]]
        nodes += [helper.make_node("Softmax", ["x"], ["Softmax"], axis=1), helper.make_node("MatMul", ["x", "w"], ["MatMul"]),
                  helper.make_node("ReduceSum", ["x", "axes"], ["ReduceSum"], keepdims=0)]
        outputs = [onnx.ValueInfoProto(name=node.output[0]) for node in nodes]
        constants = [weights(), numpy_helper.from_array(np.float32(0), "zero"),
                     numpy_helper.from_array(np.array([1], np.int64), "axes")]
        self.write("m.onnx", model_of(nodes, [value_info("x", [7, 8])], outputs, constants))
        x = np.random.default_rng(5).normal(size=(7, 8)).astype(np.float32)
        x.flat[:12] = [np.nan, np.inf, -np.inf, 0.0, -0.0, 3.4e38, -3.4e38, 1e-40, -1e-40, 88.8, -104, 1]
        x[3, 2], x[4, 5], x[5, 6] = np.nan, np.inf, -np.inf
        x[6, :] = -np.inf
        np.save(self.folder / "x.npy", x)
        w = numpy_helper.to_array(weights())
        with np.errstate(all="ignore"):
            e = np.exp(x - x.max(axis=1, keepdims=True))
            expected = {
                "Relu": np.where(np.isnan(x), x, np.maximum(x, 0)), "Sigmoid": 1 / (1 + np.exp(-x.astype(np.float64))),
                "Tanh": np.tanh(x), "Exp": np.exp(x), "Log": np.log(x), "Sqrt": np.sqrt(x), "Abs": np.abs(x), "Neg": -x,
                "Floor": np.floor(x), "Reciprocal": 1 / x, "IsNaN": np.isnan(x), "IsInf": np.isinf(x),
                "Max": np.maximum(x, 0), "Min": np.minimum(x, 0), "Div": x / np.float32(0), "Greater": x > 0,
                "Add": x, "Softmax": e / e.sum(axis=1, keepdims=True), "MatMul": x @ w, "ReduceSum": x.sum(axis=1)}
        for options in ([], ["--fusion", "none"], ["--threads", "2"]):
            got, _ = self.outputs("m.onnx", "--input", "x=x.npy", *options)
            for name, want in expected.items():
                with self.subTest(name=name, options=options):
                    np.testing.assert_allclose(got[name].astype(np.float64), want.astype(np.float64), rtol=2e-5,
                                               atol=1e-6)

    def test_zero_sizes_and_rank_zero(self):
        nodes = [helper.make_node("Exp", ["x"], ["y"]), helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
                 helper.make_node("MatMul", ["x", "w"], ["product"]),
                 helper.make_node("Concat", ["x", "x"], ["twice"], axis=0)]
        model = model_of(nodes, [value_info("x", ["n", 8])], [onnx.ValueInfoProto(name=n.output[0]) for n in nodes],
                         [weights()])
        self.write("m.onnx", model)
        got, _ = self.outputs("m.onnx", "--shape", "x=0,8")
        self.assertEqual({k: v.shape for k, v in got.items()},
                         {"y": (0, 8), "sum": (), "product": (0, 4), "twice": (0, 8)})
        self.assertEqual(got["sum"], 0)
        self.write("m.onnx", model_of([helper.make_node("Exp", ["x"], ["y"])], [value_info("x", [])],
                                      [value_info("y", [])]))
        np.save(self.folder / "x.npy", np.float32(1))
        got, _ = self.outputs("m.onnx", "--input", "x=x.npy")
        np.testing.assert_allclose(got["y"], np.e, rtol=1e-6)

    def test_shapes_that_real_data_decides(self):
        nodes = [helper.make_node("NonZero", ["x"], ["at"]), helper.make_node("Mul", ["x", "x"], ["y"])]
        self.write("m.onnx", model_of(nodes, [value_info("x", [2, 3])], [
            value_info("at", [2, "n"], TensorProto.INT64), value_info("y", [2, 3])]))
        self.refused(3, "HDL303", "NonZero", "input x", "--input", arguments=["run", "m.onnx"])
        for x in [[[1, 0, 2], [0, 0, 3]], [[0, 0, 0], [0, 4, 0]]]:
            np.save(self.folder / "x.npy", np.float32(x))
            got, _ = self.outputs("m.onnx", "--input", "x=x.npy")
            np.testing.assert_array_equal(got["at"], np.nonzero(np.float32(x)))
            np.testing.assert_array_equal(got["y"], np.square(np.float32(x)))
        self.assertEqual(self.heddle("verify", "m.onnx", "--input", "x=x.npy").returncode, 0)

    def test_more_memory_than_there_is(self):
        nodes = [helper.make_node("Add", ["x", "x"], ["a"]), helper.make_node("MatMul", ["a", "a"], ["y"])]
        self.write("m.onnx", model_of(nodes, [value_info("x", ["n", "n"])], [value_info("y", ["n", "n"])]))
        for command in ("run", "verify", "bench"):
            self.refused(4, "HDL404", "available", "GB",
                         arguments=[command, "m.onnx", "--shape", "x=3000000,3000000"])
        self.refused(2, "HDL202", "'x'", arguments=["run", "m.onnx", "--shape", "x=4000000000,4000000000"])
        limited = 500 << 20
        self.refused(4, "HDL404", "available", arguments=["run", "m.onnx", "--shape", "x=9000,9000"], limit=limited)
        self.assertEqual(self.heddle("run", "m.onnx", "--shape", "x=90,90", limit=limited).returncode, 0)


class Machine(Case):
    own_cache = True

    def setUp(self):
        super().setUp()
        self.write("m.onnx", linear())

    def script(self, name, text):
        path = self.folder / name
        path.write_text("#!/bin/sh\n[ \"$1\" = --version ] && { echo fake; exit 0; }\n" + text)
        path.chmod(0o755)
        return str(path)

    def test_compilers(self):
        for compiler, code in [("/nonsense", "HDL402"), ("g++ -O2", "HDL402"), (str(self.folder), "HDL402"),
                               ("/bin/false", "HDL403"), (self.script("fails", "echo no luck >&2; exit 3\n"), "HDL403"),
                               (self.script("silent", "exit 0\n"), "HDL403"),
                               (self.script("killed", "kill -9 $$\n"), "HDL403")]:
            with self.subTest(compiler):
                self.refused(4, code, compiler, arguments=["run", "m.onnx"], env={"HEDDLE_CXX": compiler})
        self.refused(4, "HDL402", "HEDDLE_CXX", arguments=["run", "m.onnx"], env={"PATH": ""})
        # Nothing of that spoilt the cache.
        self.assertEqual(self.heddle("run", "m.onnx").returncode, 0)

    def test_instruction_sets_give_the_same_results(self):
        x = np.random.default_rng(7).normal(size=(2, 8)).astype(np.float32)
        np.save(self.folder / "x.npy", x)
        expected = x @ numpy_helper.to_array(weights())
        targets = set()
        for isa in ("portable", "avx2", "avx512"):
            got, _ = self.outputs("m.onnx", "--input", "x=x.npy", env={"HEDDLE_CPU_ISA": isa})
            np.testing.assert_allclose(got["y"], expected, rtol=1e-5, atol=1e-6)
            done = self.heddle("compile", "m.onnx", "-o", f"{isa}.plan", env={"HEDDLE_CPU_ISA": isa})
            self.assertEqual(done.returncode, 0, done.stderr)
            targets.add(re.search(r"cpu-[a-z0-9]+", done.stdout).group())
        for isa in ("portable", "avx2"):
            if f"cpu-{isa}" in targets:
                self.assertEqual(self.heddle("run", f"{isa}.plan").returncode, 0)
        if "cpu-avx2" in targets:
            self.refused(4, "HDL406", "avx2.plan", arguments=["run", "avx2.plan"], env={"HEDDLE_CPU_ISA": "portable"})

    def test_caches_that_cannot_be_used(self):
        self.write("file", b"")
        for folder in (str(self.folder / "file"), "/proc/nope", "/dev/full"):
            with self.subTest(folder):
                done = self.heddle("run", "m.onnx", env={"HEDDLE_CACHE_DIR": folder})
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(done.stderr.count("warning"), 1, done.stderr)
                self.assertIn(folder, done.stderr)

    def test_a_full_disk(self):
        disk = self.folder / "disk"
        disk.mkdir()
        if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=0700", "tmpfs", disk],
                                               capture_output=True, check=False).returncode != 0:
            self.skipTest("no file system may be mounted here")
        self.addCleanup(subprocess.run, ["umount", disk], check=False)
        done = self.heddle("run", "m.onnx", env={"HEDDLE_CACHE_DIR": str(disk)})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("full", done.stderr)
        self.refused(4, "HDL401", "m.onnx", "space", arguments=["zoo", "resnet18", "-o", str(disk / "m.onnx")])
        self.assertFalse((disk / "m.onnx").exists())

    def test_devices_and_links_stay_what_they_are(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
            done = self.heddle("compile", "m.onnx", "-o", "pipe", timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertGreater(len(reader.communicate()[0]), 1000)
        self.assertTrue(pipe.is_fifo())
        self.write("real.plan", b"old")
        (self.folder / "link.plan").symlink_to("real.plan")
        self.assertEqual(self.heddle("compile", "m.onnx", "-o", "link.plan").returncode, 0)
        self.assertTrue((self.folder / "link.plan").is_symlink())
        self.assertEqual(self.heddle("run", "real.plan").returncode, 0)
        self.refused(4, "HDL401", "/dev/full", arguments=["compile", "m.onnx", "-o", "/dev/full"])
        self.assertTrue(pathlib.Path("/dev/full").is_char_device())

    def test_plans(self):
        self.assertEqual(self.heddle("compile", "m.onnx", "-o", "m.plan").returncode, 0)
        whole = (self.folder / "m.plan").read_bytes()
        for size in (8, 63, 100, len(whole) // 2, len(whole) - 1):
            with self.subTest(size=size):
                self.write("t.plan", whole[:size])
                self.refused(4, "HDL405", "t.plan", arguments=["run", "t.plan"])
        rng = np.random.default_rng(11)
        for at in rng.integers(8, len(whole), size=25):
            damaged = bytearray(whole)
            damaged[at] ^= 1 << int(rng.integers(8))
            self.write("t.plan", bytes(damaged))
            done = self.heddle("run", "t.plan")
            # Only what lies between the sections is not covered by a checksum.
            self.assertTrue(done.returncode == 0 or "HDL405" in done.stderr, (at, done.stderr))
        self.refused(2, "HDL202", "m.plan", "[3,8]", arguments=["run", "m.plan", "--shape", "x=3,8"])
        for command in ("verify", "explain"):
            self.refused(2, "HDL201", "m.plan", arguments=[command, "m.plan"])

    def test_a_damaged_cache_is_made_again(self):
        expected, _ = self.outputs("m.onnx")
        entries = [path for path in (self.folder / "cache").rglob("*") if path.is_file()]
        self.assertGreater(len(entries), 3)
        for damage in (lambda data: b"", lambda data: data[:len(data) // 2],
                       lambda data: data[:len(data) // 2] + bytes([data[len(data) // 2] ^ 255]) + data[len(data) // 2 + 1:]):
            for path in entries:
                if path.exists() and path.stat().st_size:
                    path.write_bytes(damage(path.read_bytes()))
            got, done = self.outputs("m.onnx")
            self.assertEqual(done.stderr, "")
            np.testing.assert_array_equal(got["y"], expected["y"])

    def test_processes_at_once_and_killed(self):
        variables = {**os.environ, "HEDDLE_CACHE_DIR": str(self.folder / "cache")}
        start = lambda: subprocess.Popen([HEDDLE, "run", "m.onnx"], cwd=self.folder, env=variables, text=True,
                                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for delay in (0.02, 0.1, 0.25):
            with start() as process:
                time.sleep(delay)
                process.send_signal(signal.SIGKILL)
                process.communicate()
        processes = [start() for _ in range(4)]
        results = [(process.communicate(timeout=120), process.returncode) for process in processes]
        self.assertEqual({code for _, code in results}, {0}, results)
        table = lambda out: out.splitlines()[:-1]  # without the times
        self.assertEqual({err for (_, err), _ in results}, {""})
        for (out, _), _ in results:
            self.assertEqual(table(out), table(self.heddle("run", "m.onnx").stdout))


if __name__ == "__main__":
    HEDDLE = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="heddle-test.") as SHARED_CACHE:
        unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
