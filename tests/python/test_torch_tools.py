"""torch.compile(backend="heddle") and tools: AOTAutograd's cache, PyTorch's accuracy minifier, profiles."""
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest
from unittest import mock

import test_torch_backend  # it ends the program where there is no torch
import torch
from test_torch_backend import REFERENCE
from torch.nn import functional as F

import heddle.torch
from heddle.torch.part import line_of

ALL = os.environ.get("HEDDLE_ALL_INSTANCES") == "1"


class WarmStart(test_torch_backend.Backend):
    """A later process finds the traced graphs; so does this one after torch._dynamo.reset()."""

    def setUp(self):
        super().setUp()
        from torch._inductor.utils import fresh_cache

        self.enterContext(fresh_cache())
        torch._dynamo.utils.counters.clear()

    def hits(self):
        return torch._dynamo.utils.counters["aot_autograd"]["autograd_cache_hit"]

    def twice(self, run):
        """Results of a run that stores its graphs, and of one that loads them; the loaded graphs."""
        first = run()
        self.assertEqual(self.hits(), 0)
        torch._dynamo.reset()
        with self.graphs() as graphs:
            second = run()
        self.assertGreater(self.hits(), 0)
        return first, second, graphs

    def test_training_with_dropout_and_statistics(self):
        def run():
            torch.manual_seed(0)
            module = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Dropout(0.3))
            for _ in range(2):
                self.compiled(module)(torch.randn(2, 3, 8, 8)).square().mean().backward()
            return [*(one.grad for one in module.parameters()), *module.buffers()]
        first, second, graphs = self.twice(run)
        for a, b in zip(first, second, strict=True):
            torch.testing.assert_close(b, a, rtol=0, atol=0)
        self.assertEqual([graph.kind for graph in graphs], ["forward", "backward"])
        self.assertTrue(all(graph.parts for graph in graphs))

    def test_weights_are_constants_and_lines_are_known(self):
        module, x = torch.nn.Linear(8, 8), torch.randn(3, 8)

        def function(x):
            return torch.cdist(module(x), x)

        def run():
            with torch.no_grad():
                return self.compiled(function, {})(x)
        first, second, graphs = self.twice(run)
        torch.testing.assert_close(second, first)
        self.assertTrue(graphs[0]._weights)
        self.assertRegex(line_of(graphs[0].division.fallbacks[0].node), r"test_torch_tools.py:\d+")

    def test_open_extents(self):
        def run():
            compiled = self.compiled(lambda x: torch.softmax(x, 0) * x.shape[0], dynamic=True)
            return [compiled(torch.arange(float(rows))) for rows in (3, 5)]
        first, second, _ = self.twice(run)
        torch.testing.assert_close(second, first)

    def test_another_pytorch_makes_entries_of_its_own(self):
        for version, hits in (("a", 0), ("b", 0), ("a", 1)):
            torch._dynamo.reset()
            with mock.patch.object(torch, "__version__", f"2.99.0+{version}"), mock.patch.object(torch.version, "git_version", "0"):
                self.compiled(torch.tanh)(torch.randn(3))
            self.assertEqual(self.hits(), hits)

    def test_options_of_the_later_run_hold(self):
        def function(x):
            return torch.cdist(x, x)
        self.compiled(function)(torch.randn(3, 4))
        torch._dynamo.reset()
        with self.assertRaises(torch._dynamo.exc.BackendCompilerFailed):
            self.compiled(function, {**REFERENCE, "fallback": "error"})(torch.randn(3, 4))

    def test_graphs_with_tensors_of_their_own_are_not_stored(self):
        table = torch.randn(4)
        for _ in range(2):
            torch._dynamo.reset()
            x = torch.randn(4)
            got = self.compiled(lambda x: x + torch.tensor([1.0, 2.0, 3.0, 4.0]) * table)(x)
            torch.testing.assert_close(got, x + torch.arange(1.0, 5.0) * table)


class Minifier(unittest.TestCase):
    BACKEND = """
        import torch
        from heddle.torch import heddle_backend
        from heddle.torch.lowering import TABLE
        TABLE[torch.ops.aten.tanh.default] = lambda context, x: context.unary("sin", x)
        def wrong(module, inputs, **words):
            return heddle_backend(module, inputs, options={"execution": "reference"})
        """
    PROGRAM = """
        import torch
        def function(x):
            return torch.tanh(x.exp() + 1) * 2
        torch.compile(function, backend="wrong_heddle")(torch.randn(5, 3))
        """

    def test_a_wrong_operator_becomes_a_script_that_shows_it(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "wrong_heddle.py").write_text(textwrap.dedent(self.BACKEND))
            (folder / "program.py").write_text(textwrap.dedent(self.PROGRAM))
            about = folder / "wrong_heddle-1.dist-info"
            about.mkdir()
            (about / "METADATA").write_text("Metadata-Version: 2.1\nName: wrong-heddle\nVersion: 1\n")
            (about / "entry_points.txt").write_text("[torch_dynamo_backends]\nwrong_heddle = wrong_heddle:wrong\n")
            path = os.pathsep.join([name, os.environ.get("PYTHONPATH", "")])
            environment = {**os.environ, "PYTHONPATH": path, "TORCHDYNAMO_REPRO_AFTER": "dynamo", "TORCHDYNAMO_REPRO_LEVEL": "4",
                           "TORCH_COMPILE_DEBUG_DIR": name}
            run = lambda *words: subprocess.run([sys.executable, *words], env=environment, cwd=name, text=True,  # noqa: E731
                                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
            told = run("program.py")
            self.assertIn("Bad accuracy detected", told.stdout)
            launcher, = folder.rglob("minifier_launcher.py")
            if ALL:
                told = run(str(launcher))
                self.assertEqual(told.returncode, 0, told.stdout)
                launcher, = folder.rglob("repro.py")
                self.assertNotIn(".exp(", launcher.read_text())  # the wrong operator alone is left
                told = run(str(launcher), "run")
                self.assertIn("AccuracyError", told.stdout)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.out = torch.nn.Linear(64, 64)

    def forward(self, x):
        y = F.softmax(self.out(x), -1)
        return torch.tanh(y * 2)


class Profiles(test_torch_backend.Backend):
    def test_rows_are_lines_of_the_module(self):
        first = Net.forward.__code__.co_firstlineno
        profiles = heddle.torch.profile(Net(), torch.randn(128, 64), seconds=0.05)
        self.assertEqual(list(profiles), ["graph 1 (forward), part 1", "graph 2 (backward), part 1"])
        for profile in profiles.values():
            for line in (first + 1, first + 2):
                self.assertIn(f"test_torch_tools.py:{line}", profile.data["strings"])

    def test_graphs_with_packed_weights_are_reported(self):
        with torch.no_grad():
            profile, = heddle.torch.profile(Net(), torch.randn(128, 64), seconds=0.05).values()
            told = heddle.torch.explain(Net(), torch.randn(128, 64))["graphs"]
        self.assertIn(f"test_torch_tools.py:{Net.forward.__code__.co_firstlineno + 1}", profile.data["strings"])
        self.assertEqual([(graph["kind"], len(graph["parts"])) for graph in told], [("inference", 1)])
        self.assertGreater(told[0]["parts"][0]["kernels"], 0)

    def test_the_reference_evaluator_has_no_profile(self):
        with self.assertRaisesRegex(heddle.InputError, "reference evaluator"):
            heddle.torch.profile(Net(), torch.randn(2, 64), **REFERENCE)


if __name__ == "__main__":
    unittest.main()
