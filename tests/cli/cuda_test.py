"""`--target cuda` through the command line, without a GPU: on the emulator, and where there is no GPU at all.

Arguments: the command `heddle`, the emulator, the stand-in for NVML, then those of unittest."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HEDDLE = EMULATOR = NVML = ""


def model():
    """A matrix product, an activation, a normalisation and a loop over time."""
    rng = np.random.default_rng(1)
    tensor = lambda name, *shape: numpy_helper.from_array(rng.normal(size=shape).astype(np.float32), name)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"], name="product"), helper.make_node("Relu", ["a"], ["b"]),
             helper.make_node("Softmax", ["b"], ["c"], axis=-1), helper.make_node("LSTM", ["c", "i", "r"], ["", "h"], hidden_size=3)]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 2, 8])],
                              [helper.make_tensor_value_info("h", TensorProto.FLOAT, [1, 2, 3]), helper.make_tensor_value_info("c", TensorProto.FLOAT, [4, 2, 5])],
                              [tensor("w", 8, 5), tensor("i", 1, 12, 5), tensor("r", 1, 12, 3)])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    made.ir_version = 8
    return made


class Cuda(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cache = tempfile.TemporaryDirectory(prefix="heddle-test.")
        cls.addClassCleanup(cache.cleanup)
        cls.cache = pathlib.Path(cache.name)

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="heddle-test."))
        self.addCleanup(shutil.rmtree, self.folder, True)
        onnx.save(model(), self.folder / "m.onnx")

    def heddle(self, *arguments, driver=None, **variables):
        environment = {**os.environ, "HEDDLE_CACHE_DIR": str(self.cache), "HEDDLE_EMULATED_SMS": "4", **variables}
        environment["HEDDLE_CUDA_DRIVER"] = EMULATOR if driver is None else driver
        return subprocess.run([HEDDLE, *arguments], cwd=self.folder, env=environment, capture_output=True, text=True, timeout=300, check=False)

    def done(self, *arguments, **options):
        result = self.heddle(*arguments, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def refused(self, code, *said, arguments, **options):
        result = self.heddle(*arguments, **options)
        self.assertEqual(result.returncode, 4 if code.startswith("HDL4") else 2, result.stderr)
        self.assertEqual(result.stdout, "")
        for text in (code, *said):
            self.assertIn(text, result.stderr)

    def test_run_verify_bench_and_profile(self):
        self.done("run", "m.onnx", "--target", "cuda", "--seed", "4", "--output-dir", "gpu")
        self.done("run", "m.onnx", "--target", "cpu", "--seed", "4", "--output-dir", "cpu")
        for name in ["h", "c"]:
            np.testing.assert_allclose(np.load(self.folder / f"gpu/{name}.npy"), np.load(self.folder / f"cpu/{name}.npy"), rtol=1e-4, atol=1e-6)
        for precision in ["f32", "tf32", "f16", "bf16"]:
            report = json.loads(self.done("verify", "m.onnx", "--target", "cuda:0", "--precision", precision, "--json"))
            self.assertTrue(report["ok"], precision)
        figures = json.loads(self.done("bench", "m.onnx", "--target", "cuda", "--seconds", "0.1", "--json"))
        self.assertGreater(figures["device_p50_ms"], 0)
        self.assertGreater(figures["device_bytes"], 0)
        profile = json.loads(self.done("profile", "m.onnx", "--target", "cuda", "--json"))
        self.assertIn("product", profile["strings"])
        self.assertGreater(sum(profile["nodes"]["values"]["GKER"]), 0)
        self.assertNotIn("CPU", profile["nodes"]["values"])
        self.assertIn("events between steps: no CUPTI", dict(profile["facts"])["timed by"])

    def test_energy(self):
        missing = json.loads(self.done("bench", "m.onnx", "--target", "cuda", "--seconds", "0.1", "--json"))["energy"]
        self.assertEqual(missing, {"why_not": "an emulated GPU has no energy counter"})
        energy = json.loads(self.done("bench", "m.onnx", "--target", "cuda", "--seconds", "0.1", "--json", HEDDLE_NVML=NVML))["energy"]
        self.assertEqual(energy["source"], "NVML")
        self.assertGreater(energy["runs"], 0)
        self.assertAlmostEqual(energy["watts"], 250, delta=50)
        self.assertAlmostEqual(energy["joules"], energy["watts"] * energy["seconds"] / energy["runs"], places=9)
        facts = dict(json.loads(self.done("profile", "m.onnx", "--target", "cuda", "--seconds", "0.1", "--json", HEDDLE_NVML=NVML))["facts"])
        self.assertGreater(float(facts["joules of a run"]), 0)
        self.assertRegex(facts["energy"], r" W in \d.* s, NVML, updated every .* ms")

    def test_tune_by_energy(self):
        tune = ("tune", "m.onnx", "--target", "cuda", "--objective", "energy", "--candidates", "2", "--seconds", "1", "--json")
        self.refused("HDL406", "an emulated GPU has no energy counter", arguments=tune)
        report = json.loads(self.done(*tune, HEDDLE_NVML=NVML))
        self.assertEqual(report["objective"], "energy")
        self.assertGreater(report["winner_uj"], 0)
        self.assertGreaterEqual(report["pick_uj"], report["winner_uj"])
        self.assertEqual(json.loads(self.done(*tune, HEDDLE_NVML=NVML))["problems"][0]["state"], "known")
        by_time = json.loads(self.done("tune", "m.onnx", "--target", "cuda", "--candidates", "2", "--seconds", "1", "--json"))["problems"][0]
        self.assertEqual((by_time["state"], by_time["winner_uj"]), ("measured", 0))

    def test_profile_by_records_of_the_device(self):
        cupti = str(pathlib.Path(EMULATOR).with_name("libheddle_cupti_emulator.so"))
        profile = json.loads(self.done("profile", "m.onnx", "--target", "cuda", "--json", HEDDLE_CUPTI=cupti))
        facts, values, timeline = dict(profile["facts"]), profile["nodes"]["values"], profile["timeline"]
        self.assertEqual(facts["timed by"], "the device's records")
        self.assertRegex(facts["GPU recorded by"], r"^CUPTI 13\.0\.1, \d+ records$")
        self.assertNotIn("GPU records lost by CUPTI", facts)
        # Rows and the root's gaps sum to the run.
        self.assertEqual(facts["time of a run"], f"{sum(values['GBUSY']) / 1e6:.3f} ms")
        self.assertGreater(values["GBUSY"][0], 0)
        for busy, recorded in zip(values["GBUSY"][1:], values["GKER"][1:]):
            self.assertLessEqual(busy, recorded + 1)
        # One run as it was: a slice for each launch, in order, those of a track behind one another.
        self.assertEqual(len(timeline["start"]), sum(values["LAUNCHES"]))
        self.assertEqual(facts["kernels of a run"], str(sum(values["LAUNCHES"])))
        self.assertEqual(timeline["start"], sorted(timeline["start"]))
        ends = {}
        for track, start, duration in zip(timeline["track"], timeline["start"], timeline["duration"]):
            self.assertGreaterEqual(start, ends.get(track, 0))
            ends[track] = start + duration
        # The same again: the stand-in's times are made up of sizes.
        again = json.loads(self.done("profile", "m.onnx", "--target", "cuda", "--json", HEDDLE_CUPTI=cupti))
        self.assertEqual(again["nodes"], profile["nodes"])
        profile = json.loads(self.done("profile", "m.onnx", "--target", "cuda", "--json", HEDDLE_CUPTI=cupti, HEDDLE_EMULATED_CUPTI="lost:50"))
        self.assertGreater(int(dict(profile["facts"])["GPU records lost by CUPTI"]), 0)
        self.assertLess(int(dict(profile["facts"])["runs timed"]), 50)
        for fault, why in [("held", "uses CUPTI in this process already"), ("denied", "may not profile"), ("zero:2", "no run has all")]:
            profile = json.loads(self.done("profile", "m.onnx", "--target", "cuda", "--json", HEDDLE_CUPTI=cupti, HEDDLE_EMULATED_CUPTI=fault))
            self.assertIn(why, dict(profile["facts"])["timed by"])
            self.assertGreater(sum(profile["nodes"]["values"]["GKER"]), 0)

    def test_convolutions_of_every_form(self):
        for options in ["--length 9 --window 4 --stride 2 --transposed --padding 1 --type f32", "--depth 3 --height 4 --width 5 --window 2 --dilation 2",
                        "--height 5 --width 7 --groups 4 --stride 2 --transposed --type bf16"]:
            report = json.loads(self.done("kernel", "conv", *options.split(), "--channels", "4", "--filters", "4", "--candidates", "1", "--verify", "--json"))
            self.assertGreater(report["error"], 0, options)
            self.assertLess(report["error"], 1, options)

    def test_products_with_packed_weights(self):
        for options in ["--m 3 --n 65 --k 130", "--m 17 --n 40 --k 96 --bits 8 --block 16 --zeros --type bf16", "--m 2 --n 33 --k 251 --bits 2 --type f32"]:
            report = json.loads(self.done("kernel", "packed", *options.split(), "--candidates", "2", "--verify", "--json"))
            self.assertGreater(report["error"], 0, options)
            self.assertLess(report["error"], 1, options)

    def test_plans_hold_for_the_gpu_that_they_were_made_for(self):
        self.done("compile", "m.onnx", "--target", "cuda", "-o", "m.plan")
        outputs = lambda *arguments: json.loads(self.done("run", *arguments, "--seed", "2", "--json"))["outputs"]
        expected = outputs("m.onnx", "--target", "cuda")
        self.assertEqual(outputs("m.plan"), expected)
        self.assertEqual(outputs("m.plan", "--target", "cuda:0"), expected)
        self.refused("HDL406", "it was made for cuda-emulated_sm_90a", arguments=["run", "m.plan"], HEDDLE_EMULATED_SM="80")
        self.refused("HDL406", "it was made for cuda-emulated_sm_90a", arguments=["run", "m.plan"], HEDDLE_EMULATED_SMS="3")
        self.refused("HDL406", "driver", arguments=["run", "m.plan"], driver="/nonsense")
        whole = (self.folder / "m.plan").read_bytes()
        (self.folder / "m.plan").write_bytes(whole[:len(whole) // 2])
        self.refused("HDL405", "m.plan", arguments=["run", "m.plan"])

    def test_second_loads_come_from_the_cache(self):
        self.cache = self.folder / "cache"
        self.done("run", "m.onnx", "--target", "cuda")
        # Without a compiler a plan that is not in the cache cannot be made.
        self.done("run", "m.onnx", "--target", "cuda", HEDDLE_CXX="/bin/false")
        # Another target, another plan.
        self.assertIn("emulated_sm_80", self.done("explain", "m.onnx", "--target", "cuda", HEDDLE_EMULATED_SM="80"))

    def test_targets(self):
        self.refused("HDL406", "cuda:1", "no such GPU", arguments=["run", "m.onnx", "--target", "cuda:1"])
        for target in ["cuda:", "cuda:x", "cuda:-1", "cuda:1x", "gpu"]:
            self.refused("HDL201", target, arguments=["run", "m.onnx", "--target", target])

    def test_machines_without_a_gpu(self):
        for command in ["run", "verify", "bench"]:
            self.refused("HDL406", "/nonsense", arguments=[command, "m.onnx", "--target", "cuda"], driver="/nonsense")
        self.assertIn("cuda-sm_90a-sms132", self.done("explain", "m.onnx", "-v", "--target", "cuda", driver="/nonsense"))
        self.refused("HDL406", "12.0", arguments=["run", "m.onnx", "--target", "cuda"], HEDDLE_EMULATED_FAULT="old_driver")
        for fault in ["no_device", "init"]:
            self.refused("HDL406", arguments=["run", "m.onnx", "--target", "cuda"], HEDDLE_EMULATED_FAULT=fault)
        self.done("run", "m.onnx", HEDDLE_EMULATED_FAULT="no_device")

    def test_memory(self):
        self.refused("HDL404", "bytes", arguments=["run", "m.onnx", "--target", "cuda"], HEDDLE_EMULATED_MEMORY="1000")

    def test_explain(self):
        report = json.loads(self.done("explain", "m.onnx", "--target", "cuda", "--json"))
        self.assertTrue(report["target"].startswith("cuda-emulated"))


if __name__ == "__main__":
    HEDDLE, EMULATOR, NVML = (os.path.abspath(sys.argv.pop(1)) for _ in range(3))
    unittest.main()
