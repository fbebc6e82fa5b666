"""Sessions of the installed ONNX Runtime with HeddleExecutionProvider: test_session.py LIBRARY [TEST...]"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from sessions import (LIBRARY, RANDOM, TARGET, VERSION, SessionCase, devices, main, memory_in_use, model_of, normal, options, perceptron, plain,
                      session, taken)


class SessionTest(SessionCase):
    def test_exports_two_functions_and_links_nothing_of_onnxruntime(self):
        exported = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True, check=True).stdout
        self.assertEqual(sorted(line.split()[-1] for line in exported.splitlines()), ["CreateEpFactories", "ReleaseEpFactory"])
        self.assertNotIn("onnxruntime", subprocess.run(["ldd", LIBRARY], capture_output=True, text=True, check=True).stdout)

    def test_offers_the_device(self):
        device, = devices()
        self.assertEqual((device.ep_vendor, device.device.type.name), ("Heddle", "CPU" if TARGET == "cpu" else "GPU"))
        self.assertRegex(device.ep_metadata["version"], r"^\d+\.\d+\.\d+$")

    def test_takes_a_whole_model_of_any_batch(self):
        model = perceptron()
        made = session(model, session__disable_cpu_ep_fallback="1")
        self.assertEqual(taken(made), ["Gemm", "Relu", "Softmax"])  # ONNX Runtime has joined the first two
        for batch in (1, 7, 33, 1, 0):
            self.check(made, model, {"x": normal(batch, 48)})

    def test_precision_and_threads(self):
        model = perceptron()
        self.check(session(model, {"precision": "bf16", "threads": "1", "background": "0"}), model, {"x": normal(5, 48)}, 2e-2)

    def test_what_it_does_not_support_stays(self):
        # NonZero has a shape that depends on data, StringConcat is text, If is control flow.
        branch = [helper.make_graph([helper.make_node(kind, ["c"], [f"{kind}_out"])], kind, [],
                                    [helper.make_tensor_value_info(f"{kind}_out", 1, None)]) for kind in ("Exp", "Neg")]
        nodes = [
            helper.make_node("Mul", ["x", "x"], ["a"]), helper.make_node("Sin", ["a"], ["b"]),
            helper.make_node("Greater", ["b", "half"], ["g"]), helper.make_node("NonZero", ["g"], ["places"]),
            helper.make_node("Add", ["b", "x"], ["c"]),
            helper.make_node("If", ["flag"], ["d"], then_branch=branch[0], else_branch=branch[1]),
            helper.make_node("Tanh", ["d"], ["e"]), helper.make_node("Sub", ["e", "x"], ["y"]),
            helper.make_node("StringConcat", ["text", "text"], ["twice"]),
        ]
        model = model_of(nodes, [("x", np.float32, ["n"]), ("flag", bool, []), ("text", TensorProto.STRING, ["t"])],
                         [("y", np.float32, ["n"]), ("places", np.int64, [1, "p"]), ("twice", TensorProto.STRING, ["t"])],
                         {"half": np.float32(0.5)})
        made = session(model)
        kinds = taken(made)
        self.assertTrue({"Mul", "Sin", "Add", "Tanh", "Sub"} <= set(kinds), kinds)
        self.assertFalse({"NonZero", "If", "StringConcat"} & set(kinds), kinds)
        inputs = {"x": normal(37), "flag": np.array(True), "text": np.array(["ab", "c"], object)}
        for actual, expected in zip(made.run(None, inputs), plain(model).run(None, inputs)):
            if expected.dtype == object:
                self.assertEqual(list(actual), list(expected))
            else:
                np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)

    def test_a_shape_that_depends_on_an_input_stays(self):
        # So does what reads the result, since nothing tells its rank.
        nodes = [helper.make_node("Sin", ["x"], ["a"]), helper.make_node("Cos", ["a"], ["b"]),
                 helper.make_node("Reshape", ["b", "shape"], ["c"]), helper.make_node("Neg", ["c"], ["y"])]
        model = model_of(nodes, [("x", np.float32, [4, 6]), ("shape", np.int64, [2])], [("y", np.float32, ["a", "b"])])
        made = session(model)
        self.assertEqual(taken(made), ["Cos", "Sin"])
        for shape in ((24, 1), (3, 8), (3, 8)):
            self.check(made, model, {"x": normal(4, 6), "shape": np.array(shape)})

    def test_leaves_what_it_cannot_gain_with(self):
        lone = model_of([helper.make_node("Relu", ["x"], ["y"])], [("x", np.float32, [8])], [("y", np.float32, [8])])
        self.assertEqual(taken(session(lone)), [])
        self.assertEqual(taken(session(lone, {"regions": "all"})), ["Relu"])

    def test_takes_quantised_regions_that_it_computes_in_integers(self):
        scale = np.float32(0.01)
        dynamic = model_of(
            [helper.make_node("MatMulInteger", ["x", "w"], ["a"]), helper.make_node("Cast", ["a"], ["b"], to=1),
             helper.make_node("Mul", ["b", "s"], ["c"]), helper.make_node("Relu", ["c"], ["y"])],
            [("x", np.uint8, [3, 64])], [("y", np.float32, [3, 16])],
            {"w": RANDOM.integers(-128, 128, (64, 16)).astype(np.int8), "s": scale})
        made = session(dynamic)
        self.assertEqual(taken(made), ["Cast", "MatMulInteger", "Mul", "Relu"])
        self.check(made, dynamic, {"x": RANDOM.integers(0, 256, (3, 64)).astype(np.uint8)})
        # Bytes between all nodes.
        conv = [scale, np.uint8(0), RANDOM.integers(-128, 128, (8, 8, 3, 3)).astype(np.int8), scale, np.int8(0), np.float32(0.1), np.uint8(120)]
        names = ["xs", "xz", "w", "ws", "wz", "ys", "yz"]
        whole = model_of([helper.make_node("QLinearConv", ["x", *names], ["a"], pads=[1] * 4),
                          helper.make_node("QLinearConv", ["a", *names], ["y"], pads=[1] * 4)],
                         [("x", np.uint8, [1, 8, 9, 9])], [("y", np.uint8, [1, 8, 9, 9])], dict(zip(names, conv, strict=True)))
        made = session(whole)
        self.assertEqual(taken(made), ["QLinearConv", "QLinearConv"])
        self.check(made, whole, {"x": RANDOM.integers(0, 256, (1, 8, 9, 9)).astype(np.uint8)})

    def test_leaves_quantised_regions_that_it_would_compute_in_floats(self):
        computed = model_of(
            [helper.make_node("ConvInteger", ["x", "w"], ["a"]), helper.make_node("Cast", ["a"], ["b"], to=1),
             helper.make_node("Relu", ["b"], ["c"]), helper.make_node("Sqrt", ["c"], ["y"])],
            [("x", np.uint8, [1, 4, 9, 9]), ("w", np.uint8, [4, 4, 3, 3])], [("y", np.float32, [1, 4, 7, 7])])
        every = ["Cast", "ConvInteger", "Relu", "Sqrt"]
        self.assertEqual(taken(session(computed)), [] if TARGET == "cpu" else every)
        made = session(computed, {"regions": "all"})
        self.assertEqual(taken(made), every)
        self.check(made, computed, {name: RANDOM.integers(0, 256, shape).astype(np.uint8)
                                    for name, shape in (("x", (1, 4, 9, 9)), ("w", (4, 4, 3, 3)))})

    def test_element_types(self):
        for kind in (np.float64, np.float16, np.int32, np.int64, np.uint8, np.int8):
            model = model_of([helper.make_node("Add", ["x", "z"], ["a"]), helper.make_node("Mul", ["a", "x"], ["y"])],
                             [("x", kind, [5, 3]), ("z", kind, [3])], [("y", kind, [5, 3])])
            made = session(model, {"regions": "all"})
            self.assertEqual(taken(made), ["Add", "Mul"])
            self.check(made, model, {"x": RANDOM.integers(0, 9, (5, 3)).astype(kind), "z": RANDOM.integers(0, 9, 3).astype(kind)})

    def test_an_operator_that_runs_on_the_host(self):
        nodes = [helper.make_node("Sin", ["x"], ["a"]), helper.make_node("Det", ["a"], ["b"]), helper.make_node("Exp", ["b"], ["y"])]
        model = model_of(nodes, [("x", np.float32, ["n", 4, 4])], [("y", np.float32, ["n"])])
        made = session(model)
        self.assertEqual(taken(made), ["Det", "Exp", "Sin"])
        for batch in (3, 2, 3):
            self.check(made, model, {"x": normal(batch, 4, 4)})
        branches = [helper.make_graph([helper.make_node(kind, ["x"], [kind])], kind, [],
                                      [helper.make_tensor_value_info(kind, TensorProto.FLOAT, None)]) for kind in ("Tanh", "Neg")]
        nodes[0].input[0] = "chosen"
        nodes.insert(0, helper.make_node("If", ["flag"], ["chosen"], then_branch=branches[0], else_branch=branches[1]))
        model = model_of(nodes, [("x", np.float32, ["n", 4, 4]), ("flag", bool, [])], [("y", np.float32, ["n"])])
        made = session(model)
        self.assertEqual(taken(made), ["Det", "Exp", "Sin"])
        for flag in (True, False):  # what a branch makes is on the host
            self.check(made, model, {"x": normal(3, 4, 4), "flag": np.array(flag)})

    def test_attributes_of_each_kind(self):
        nodes = [
            helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1], strides=[2, 2], auto_pad="NOTSET", group=1),
            helper.make_node("LeakyRelu", ["a"], ["b"], alpha=0.2),
            helper.make_node("Constant", [], ["k"], value=numpy_helper.from_array(normal(4, 1, 1))),
            helper.make_node("Constant", [], ["l"], value_floats=[0.5]),
            helper.make_node("Mul", ["b", "k"], ["c"]), helper.make_node("Sub", ["c", "l"], ["y"]),
        ]
        model = model_of(nodes, [("x", np.float32, [2, 3, 9, 11])], [("y", np.float32, None)], {"w": normal(4, 3, 3, 3)})
        made = session(model, session__disable_cpu_ep_fallback="1")
        self.check(made, model, {"x": normal(2, 3, 9, 11)})

    def test_external_data(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/model.onnx"
            model = perceptron()
            onnx.save(onnx.ModelProto.FromString(model.SerializeToString()), path, save_as_external_data=True, location="data",
                      size_threshold=0)
            self.check(session(path), model, {"x": normal(9, 48)})

    def test_wrong_options_are_errors(self):
        for given, wanted in (({"precison": "f16"}, "Did you mean precision?"), ({"threads": "many"}, "not a number"),
                              ({"precision": "f15"}, "f15"), ({"cache_folder": ""}, "it is empty")):
            with self.assertRaisesRegex(Exception, f"HDL201(?s:.*){wanted}"):
                session(perceptron(), given)

    def test_an_error_of_a_run_names_the_node(self):
        nodes = [helper.make_node("Sin", ["x"], ["a"]), helper.make_node("Add", ["a", "z"], ["b"], "sum"),
                 helper.make_node("Exp", ["b"], ["y"])]
        model = model_of(nodes, [("x", np.float32, ["n"]), ("z", np.float32, ["m"])], [("y", np.float32, ["k"])])
        made = session(model)
        self.assertEqual(taken(made), ["Add", "Exp", "Sin"])
        with self.assertRaisesRegex(Exception, "HDL103(?s:.*)graph 'graph': node 'sum' (?s:.*)Add"):
            made.run(None, {"x": normal(8), "z": normal(7)})
        self.check(made, model, {"x": normal(8), "z": normal(8)})

    def test_threads_share_a_session_that_is_closed_meanwhile(self):
        model = perceptron()
        made = [session(model)]
        inputs = [{"x": normal(n, 48)} for n in (1, 2, 5, 16)]
        expected = [plain(model).run(None, each)[0] for each in inputs]
        wrong = []

        def work(own):
            for i in range(200):
                each = (i * 7) % len(inputs)
                if np.abs(own.run(None, inputs[each])[0] - expected[each]).max() > 1e-5:
                    wrong.append(each)

        threads = [threading.Thread(target=work, args=(made[0],)) for _ in range(8)]
        for thread in threads:
            thread.start()
        made.clear()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_many_sessions_and_runs_keep_no_memory(self):
        model, inputs = perceptron(), {"x": normal(3, 48)}
        one = session(model)
        expected = one.run(None, inputs)[0]
        many = [session(model) for _ in range(100)]
        for made in many:
            np.testing.assert_array_equal(made.run(None, inputs)[0], expected)
        del made
        many.clear()
        before = memory_in_use()
        for _ in range(20):
            session(model).run(None, inputs)
        for _ in range(10_000):
            one.run(None, inputs)
        self.assertLess(memory_in_use() - before, 8 << 20)

    @unittest.skipIf(VERSION < (1, 25), "skipped: this release takes no events of providers")
    def test_a_profile_has_the_steps(self):
        model = perceptron()
        given = options()
        given.enable_profiling = True
        with tempfile.TemporaryDirectory() as folder:
            given.profile_file_prefix = f"{folder}/profile"
            made = onnxruntime.InferenceSession(model.SerializeToString(), given, enable_fallback=0)
            inputs = {"x": normal(300, 48)}
            for _ in range(3):
                made.run(None, inputs)
            events = json.loads(pathlib.Path(made.end_profiling()).read_text())
        runs = [event for event in events if event["name"] == "model_run"]
        steps = [event for event in events if event["cat"] == "Kernel"]
        self.assertEqual(len(runs), 3)
        self.assertGreaterEqual(len(steps), 3)
        if TARGET == "cpu":
            nodes = {node.split("/")[0] for step in steps for node in step["args"]["nodes"].split(", ")}
            self.assertEqual(nodes, {"product", "relu", "softmax"})
            for step in steps:  # each within a run
                self.assertTrue(any(run["ts"] <= step["ts"] and step["ts"] + step["dur"] <= run["ts"] + run["dur"] + 1 for run in runs))
        made.run(None, inputs)  # without a profile

    def bound(self, made, x, shape):
        """A binding to device memory, with the input and the output in it."""
        place = ("gpu", int(TARGET.split(":")[1]), 0x10DE)
        given = onnxruntime.OrtValue.ortvalue_from_numpy(x, *place)
        result = onnxruntime.OrtValue.ortvalue_from_shape_and_type(shape, np.float32, *place)
        binding = made.io_binding()
        binding.bind_ortvalue_input("x", given)
        binding.bind_ortvalue_output("y", result)
        return binding, given, result

    @unittest.skipIf(TARGET == "cpu" or VERSION < (1, 26), "skipped: there are no graphs")
    def test_later_runs_replay_a_graph(self):
        model, given = perceptron(), options({"graph_capture": "1"})
        given.enable_profiling = True
        with tempfile.TemporaryDirectory() as folder:
            given.profile_file_prefix = f"{folder}/profile"
            made = onnxruntime.InferenceSession(model.SerializeToString(), given, enable_fallback=0)
            sides = []
            for number, batch in (("1", 9), ("2", 4)):
                run_options = onnxruntime.RunOptions()
                run_options.add_run_config_entry("gpu_graph_id", number)
                sides.append((run_options, *self.bound(made, normal(batch, 48), [batch, 32])))
            for _ in range(3):
                for run_options, binding, x, y in sides:
                    value = normal(*x.shape())
                    x.update_inplace(value)
                    made.run_with_iobinding(binding, run_options)
                    np.testing.assert_allclose(y.numpy(), plain(model).run(None, {"x": value})[0], rtol=1e-5, atol=1e-5)
                self.check(session(model), model, {"x": normal(6, 48)})  # uses the memory that others have freed
            events = json.loads(pathlib.Path(made.end_profiling()).read_text())
        # A replay passes by the nodes.
        self.assertEqual(len([event for event in events if event["name"].endswith("kernel_time")]), 2)

    @unittest.skipIf(TARGET == "cpu", "skipped: there are no graphs")
    def test_a_graph_holds_no_step_of_the_host(self):
        nodes = [helper.make_node("Sin", ["x"], ["a"]), helper.make_node("Det", ["a"], ["b"]), helper.make_node("Exp", ["b"], ["y"])]
        model = model_of(nodes, [("x", np.float32, [3, 4, 4])], [("y", np.float32, [3])])
        with self.assertRaisesRegex(Exception, "runs on the host" if VERSION >= (1, 26) else "needs version 1.26"):
            session(model, {"graph_capture": "1"})

    @unittest.skipIf(TARGET == "cpu", "skipped: there is no device memory")
    def test_tensors_in_device_memory(self):
        model, x = perceptron(), normal(9, 48)
        made = session(model)
        binding, _, result = self.bound(made, x, [9, 32])
        for _ in range(3):
            made.run_with_iobinding(binding)
        np.testing.assert_allclose(result.numpy(), plain(model).run(None, {"x": x})[0], rtol=1e-5, atol=1e-5)

    @unittest.skipIf(TARGET != "cpu", "a process that has used a GPU cannot use it after a fork")
    def test_a_forked_process_runs(self):
        made, inputs = session(perceptron()), {"x": normal(600, 48)}
        expected = made.run(None, inputs)[0]
        child = os.fork()
        if child == 0:
            os._exit(0 if np.array_equal(made.run(None, inputs)[0], expected) else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_registers_again(self):
        model, inputs = perceptron(), {"x": normal(3, 48)}
        old = session(model)
        for _ in range(3):
            onnxruntime.unregister_execution_provider_library("heddle")
            self.assertEqual(devices(), [])
            onnxruntime.register_execution_provider_library("heddle", str(LIBRARY))
            self.check(session(model), model, inputs)
            self.check(old, model, inputs)  # made before


LOAD = """
import sys, numpy, onnxruntime
onnxruntime.register_execution_provider_library("heddle", sys.argv[1])
options = onnxruntime.SessionOptions()
options.log_severity_level = 4
options.add_provider_for_devices([d for d in onnxruntime.get_ep_devices() if d.ep_metadata.get("target") == sys.argv[5]],
                                 dict(item.split("=") for item in sys.argv[6:]))
session = onnxruntime.InferenceSession(sys.argv[2], options, enable_fallback=0)
numpy.save(sys.argv[4], session.run(None, {"x": numpy.load(sys.argv[3])})[0])
"""


class ContextTest(unittest.TestCase):
    """Models that hold plans (EPContext)."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.x = normal(6, 48)

    def make(self, embedded):
        model = perceptron()
        model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 6
        path, context = f"{self.folder.name}/model.onnx", f"{self.folder.name}/out/model_ctx.onnx"
        os.makedirs(os.path.dirname(context), exist_ok=True)
        onnx.save(model, path)
        made = session(path, ep__context_enable="1", ep__context_file_path=context, ep__context_embed_mode=embedded)
        np.save(f"{self.folder.name}/x.npy", self.x)
        self.expected = made.run(None, {"x": self.x})[0]
        return pathlib.Path(context).parent

    def load(self, model, *provider, compiler=False, isa=""):
        """Loads a model in a process of its own, with an empty cache; returns its results, or what it said."""
        model, out = pathlib.Path(model), f"{self.folder.name}/y.npy"
        environment = dict(os.environ, HEDDLE_CACHE_DIR=f"{self.folder.name}/empty", HEDDLE_CPU_ISA=isa)
        if not compiler:
            environment["HEDDLE_CXX"] = "/nonexistent"
        path = model / "model_ctx.onnx" if model.is_dir() else model
        done = subprocess.run([sys.executable, "-c", LOAD, LIBRARY, path, f"{self.folder.name}/x.npy", out, TARGET, *provider],
                              capture_output=True, text=True, env=environment)
        return np.load(out) if done.returncode == 0 else done.stderr

    def test_loads_in_another_folder_without_compiler(self):
        for embedded in ("0", "1"):
            made = self.make(embedded)
            moved = pathlib.Path(self.folder.name) / f"moved{embedded}"
            shutil.move(made, moved)
            self.assertEqual(len(list(moved.glob("*.plan"))), 1 - int(embedded))
            node, = onnx.load(moved / "model_ctx.onnx").graph.node
            self.assertEqual(node.op_type, "EPContext")
            np.testing.assert_array_equal(self.load(moved), self.expected)

    def test_refuses_damaged_and_foreign_plans(self):
        folder = self.make("0")
        plan, = folder.glob("*.plan")
        content = plan.read_bytes()
        plan.write_bytes(content[:-100] + bytes(100))
        self.assertIn("HDL405", self.load(folder))
        plan.write_bytes(b"no plan")
        self.assertIn("HDL405", self.load(folder))
        plan.write_bytes(content)
        plan.chmod(0o666)
        self.assertIn("HDL401", self.load(folder))
        plan.unlink()
        self.assertIn("HDL102", self.load(folder))
        model = onnx.load(folder / "model_ctx.onnx")
        for attribute in model.graph.node[0].attribute:
            if attribute.name == "ep_cache_context":
                attribute.s = b"../out/" + attribute.s
        onnx.save(model, folder / "model_ctx.onnx")
        self.assertIn("beside the model", self.load(folder))

    def test_the_cache_is_in_the_folder_of_the_option(self):
        folder = self.make("1")
        made = self.load(folder.parent / "model.onnx", f"cache_folder={self.folder.name}/chosen", compiler=True)
        np.testing.assert_allclose(made, self.expected, rtol=1e-5, atol=1e-6)
        self.assertTrue(list(pathlib.Path(self.folder.name, "chosen/plan").iterdir()))
        self.assertFalse(pathlib.Path(self.folder.name, "empty").exists())

    @unittest.skipIf(TARGET != "cpu" or os.environ.get("HEDDLE_CPU_ISA") == "avx2", "skipped: there is one kind of CPU")
    def test_refuses_a_plan_of_another_machine(self):
        folder = self.make("1")
        with open("/proc/cpuinfo") as file:
            if "avx512f" not in file.read():
                self.skipTest("skipped: there is no CPU that this one is not")
        self.assertRegex(self.load(folder, isa="avx2"), "HDL406(?s:.*)this machine is cpu-avx2")

    def test_refuses_other_shapes(self):
        folder = self.make("1")
        np.save(f"{self.folder.name}/x.npy", normal(7, 48))
        self.assertIsInstance(self.load(folder), str)


if __name__ == "__main__":
    main()
