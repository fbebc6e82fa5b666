"""explain, kernels, verify, tune, bench, inspect, plans, the command and the typing of the package."""
import ast
import contextlib
import json
import os
import pathlib
import pickle
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock
import xml.etree.ElementTree

import heddle
import models
import numpy as np


@contextlib.contextmanager
def counting(folder):
    """A counter of a package that takes about 10 W, for a while."""
    zone = folder / "intel-rapl:0"
    zone.mkdir()
    (zone / "name").write_text("package-0")
    (zone / "max_energy_range_uj").write_text("1000000000")
    done = threading.Event()

    def count():
        start = time.monotonic()
        while not done.wait(0.005):
            (zone / "next").write_text(f"{int((time.monotonic() - start) * 1e7)}")
            (zone / "next").replace(zone / "energy_uj")

    (zone / "energy_uj").write_text("0")
    thread = threading.Thread(target=count)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


class Tools(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.mlp = models.Mlp()
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = models.save(cls.mlp.proto, pathlib.Path(cls.folder.name))
        cls.model = heddle.compile(cls.path, threads=1)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_explain(self):
        told = self.model.explain()
        self.assertRegex(str(told), r"model\.onnx on cpu-.*\nfused +4 operators -> \d+ kernel")
        self.assertNotIn("\x1b", str(told))
        self.assertRegex(str(told), r"\ntry +.*explain\(verbose=True\) for every decision")
        self.assertNotIn("--", str(told))
        self.assertIn("Groups", str(self.model.explain(verbose=True)))
        self.assertGreater(told["kernels"], 0)
        xml.etree.ElementTree.fromstring(told.svg)
        shown = told._repr_html_()
        self.assertIn("<pre", shown)
        self.assertIn("<svg", shown)

    def test_profile(self):
        told = self.model.profile({"x": np.ones((4, 8), np.float32)}, seconds=0.01)
        self.assertRegex(str(told), r"runs timed +\d+\n")
        data = told.data
        names = {data["strings"][i] for i in data["frames"]["name"]}
        self.assertTrue(any("gemm" in name for name in names), names)
        self.assertGreater(sum(data["nodes"]["values"]["CPU"]), 0)
        self.assertEqual(sum(data["nodes"]["values"]["LAUNCHES"]), len(data["timeline"]["start"]))
        self.assertIn("<iframe", told._repr_html_())
        with tempfile.TemporaryDirectory() as folder:
            for ending, begin in ((".json", b"{"), (".html", b"<!"), (".speedscope.json", b"{"), (".pprof", b"\n"),
                                  (".pftrace", b"\n"), (".folded", b"all")):
                path = pathlib.Path(folder) / ("profile" + ending)
                told.save(path)
                self.assertTrue(path.read_bytes().startswith(begin), ending)
            with self.assertRaises(heddle.InputError):
                told.save(pathlib.Path(folder) / "profile.txt")

    def test_kernels(self):
        kernels = self.model.kernels()
        self.assertGreater(len(kernels), 0)
        for kernel in kernels:
            self.assertIn(kernel.symbol, kernel.text)
            self.assertTrue(kernel.file_name.endswith(".cc"))
        self.assertIn("<details>", kernels._repr_html_())

    def test_explaining_needs_no_gpu_but_runs_do(self):
        self.assertTrue(heddle.inspect(self.path, target="cuda")["estimate"]["target"].startswith("cuda"))

    def test_verify(self):
        for model in (self.path, self.model, self.mlp.proto):
            report = heddle.verify(model)
            self.assertTrue(report)
            self.assertEqual([output["name"] for output in report["outputs"]], ["y", "z"])
            self.assertIn("verified", str(report))
        given = heddle.verify(self.path, {"x": np.zeros((4, 8), np.float32)})
        self.assertEqual(given["outputs"][1]["error"], 0)
        self.assertTrue(heddle.verify(self.model, precision="bf16"))

    def test_tune(self):
        report = heddle.tune(self.path, seconds=5, candidates=2, threads=1)
        self.assertTrue(report)
        self.assertIn("problems", report.data)

    def test_bench(self):
        for model in (self.path, self.model):
            result = heddle.bench(model, seconds=0.05)
            self.assertGreaterEqual(result.runs, 5)
            self.assertLessEqual(result.p10_ms, result.p50_ms)
            self.assertLessEqual(result.p50_ms, result.p90_ms)
            self.assertIsNone(result.device_p50_ms)

    def test_energy(self):
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.dict(os.environ, HEDDLE_POWERCAP=folder):
            self.assertIn("has no RAPL counter", heddle.bench(self.model, seconds=0.01).energy["why_not"])
            with self.assertRaisesRegex(heddle.MachineError, "has no RAPL counter"):
                heddle.tune(self.path, objective="energy")
            with self.assertRaisesRegex(ValueError, "'time' or 'energy', not 'power'"):
                heddle.tune(self.path, objective="power")
            with counting(pathlib.Path(folder)):
                energy = heddle.bench(self.model, seconds=0.05).energy
                rows = heddle.compile(models.save(models.Mlp(rows="rows").proto, pathlib.Path(folder)), shapes={"x": (4, 8)}, threads=1)
                others = heddle.bench(rows, {"x": np.ones((6, 8), np.float32)}, seconds=0.01)
                report = heddle.tune(self.path, objective="energy", seconds=1, candidates=2, threads=1, again=True)
        self.assertEqual(energy["source"], "RAPL of 1 package")
        self.assertIn("other shapes", others.energy["why_not"])
        self.assertGreaterEqual(others.runs, 5)
        self.assertGreater(energy["joules"], 0)
        self.assertGreater(report.data["winner_uj"], 0)

    def test_a_prompt_and_a_notebook_show_tables(self):
        reports = {
            "explain": (self.model.explain(), "kernels", "fused "),
            "profile": (self.model.profile(seconds=0.01), "nodes", "runs timed"),
            "verify": (heddle.verify(self.path), "outputs", "error"),
            "tune": (heddle.tune(self.path, seconds=0, threads=1), "problems", "problem"),
            "bench": (heddle.bench(self.model, seconds=0.01), "p50_ms", "one run, median"),
            "inspect": (heddle.inspect(self.path), "operators", "operators: 4"),
        }
        for name, (report, key, words) in reports.items():
            with self.subTest(name):
                self.assertIsInstance(report, heddle.Report)
                self.assertIn(words, repr(report))
                self.assertEqual(repr(report), str(report).rstrip("\n"))
                self.assertNotIn("{", repr(report))
                self.assertTrue(report._repr_html_().startswith("<"))
                self.assertIn(key, report)
                self.assertEqual(dict(report), report.data)

    def test_reports_name_a_model_that_is_bytes(self):
        model = heddle.compile(self.mlp.proto, threads=1)
        for report in (model.explain(), model.profile(seconds=0.01), heddle.inspect(self.mlp.proto)):
            self.assertTrue(repr(report).startswith("model.onnx"), repr(report))

    def test_inspect(self):
        report = heddle.inspect(models.Mlp("rows").proto)
        self.assertEqual(report["inputs"][0]["extents"], ["rows", "8"])
        self.assertEqual(report["operators"]["Add"], 2)
        self.assertIn("NoSuchOperator", heddle.inspect(models.unsupported())["unsupported"][0])

    def test_plans(self):
        plan = pathlib.Path(self.folder.name) / "model.plan"
        self.model.save(plan)
        x = np.ones((4, 8), np.float32)
        for loaded, made in zip(heddle.compile(plan)(x), self.model(x), strict=True):
            np.testing.assert_array_equal(loaded, made)
        with self.assertRaises(heddle.InputError) as caught:
            heddle.compile(plan).explain()
        self.assertIn("Name the ONNX model", str(caught.exception))

    def test_errors_cross_processes(self):
        with self.assertRaises(heddle.InputError) as caught:
            self.model()
        copy = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((str(copy), copy.code, copy.remedy),
                         (str(caught.exception), caught.exception.code, caught.exception.remedy))


# A library in the place of NVRTC that refuses whatever it is given.
NVRTC = r"""
#include <cstddef>
#include <cstring>
constexpr char kLog[] = "the one that pip installed";
extern "C" {
int nvrtcVersion(int* major, int* minor) { return *major = 13, *minor = 0; }
int nvrtcCreateProgram(void**, const char*, const char*, int, const char* const*, const char* const*) { return 0; }
int nvrtcDestroyProgram(void**) { return 0; }
int nvrtcCompileProgram(void*, int, const char* const*) { return 6; }
int nvrtcGetProgramLogSize(void*, size_t* bytes) { return *bytes = sizeof kLog, 0; }
int nvrtcGetProgramLog(void*, char* text) { return std::memcpy(text, kLog, sizeof kLog), 0; }
int nvrtcGetCUBINSize(void*, size_t*) { return 6; }
int nvrtcGetCUBIN(void*, char*) { return 6; }
const char* nvrtcGetErrorString(int) { return "refused"; }
}
"""


class Package(unittest.TestCase):
    def run_python(self, *words, **variables):
        return subprocess.run([sys.executable, *words], capture_output=True, text=True, env={**os.environ, **variables})

    def test_command(self):
        done = self.run_python("-m", "heddle", "--version")
        self.assertEqual(done.stdout, f"heddle {heddle.__version__}\n")
        failed = self.run_python("-m", "heddle", "run", "/nowhere.onnx")
        self.assertEqual(failed.returncode, 4)
        self.assertIn("/nowhere.onnx", failed.stderr)

    def test_the_command_finds_the_compiler_for_gpus_that_pip_installed(self):
        with tempfile.TemporaryDirectory() as folder:
            library = pathlib.Path(folder) / "nvidia/cu13/lib/libnvrtc.so.13"
            library.parent.mkdir(parents=True)
            subprocess.run(["c++", "-shared", "-fPIC", "-x", "c++", "-", "-o", library], input=NVRTC, text=True, check=True)
            model = models.save(models.Mlp().proto, pathlib.Path(folder))
            path = os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])
            done = self.run_python("-m", "heddle", "compile", model, "--target", "cuda", "--no-cache", "-o", f"{folder}/model.plan",
                                   PYTHONPATH=path, HEDDLE_NVRTC="")
        self.assertIn("the one that pip installed", done.stderr)

    def test_importing_loads_no_library_of_arrays(self):
        loaded = self.run_python("-c", "import heddle, sys; print(sorted({'numpy', 'torch', 'onnx'} & set(sys.modules)))")
        self.assertEqual(loaded.stdout.strip(), "[]", loaded.stderr)

    def test_torch_is_asked_for_when_it_is_needed(self):
        done = self.run_python("-c", "import heddle.torch")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_stubs_name_what_there_is(self):
        folder = pathlib.Path(heddle.__file__).parent
        self.assertTrue((folder / "py.typed").exists())
        from heddle import _core

        for module, path in ((_core, "_core/__init__.pyi"), (_core.tile, "_core/tile/__init__.pyi"), (_core.tile.export, "_core/tile/export.pyi")):
            stubs = ast.parse((folder / path).read_text()).body
            imports = [node for node in stubs if isinstance(node, ast.ImportFrom)]
            names = {node.name for node in stubs if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
            names |= {name.asname for node in imports for name in node.names}
            self.assertEqual({name for name in dir(module) if not name.startswith("_")} - names, set())
            self.assertNotIn("_core", {node.module for node in imports}, "submodules are imported by the package's name")

    def test_everything_public_is_documented(self):
        for name in heddle.__all__:
            thing = getattr(heddle, name)
            self.assertTrue(thing.__doc__, name)
            for member, value in vars(thing).items() if isinstance(thing, type) else ():
                if not member.startswith("_") and (callable(value) or isinstance(value, property)):
                    self.assertTrue(value.__doc__, f"{name}.{member}")


if __name__ == "__main__":
    unittest.main()
