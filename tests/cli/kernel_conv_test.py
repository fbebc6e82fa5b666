"""`heddle kernel conv`: convolutions of every form on the CPU against float64, what is predicted for a GPU, and sizes that
make no convolution.

Arguments: the command `heddle`, then those of unittest."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HEDDLE = ""


def run(*arguments, cache="/nonsense"):
    return subprocess.run([HEDDLE, "kernel", "conv", *map(str, arguments)], env={**os.environ, "HEDDLE_CACHE_DIR": str(cache)},
                          capture_output=True, text=True, timeout=120, check=False)


class Verified(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="heddle-test."))
        self.addCleanup(shutil.rmtree, self.folder, True)

    def test_every_form_agrees_with_float64(self):
        for options, result in [
                ("--height 7 --width 9 --channels 5 --filters 6", [7, 9]),
                ("--length 29 --channels 5 --filters 6 --window 5 --dilation 2", [29]),
                ("--length 29 --channels 5 --filters 6 --window 4 --stride 3 --transposed", [87]),
                ("--depth 3 --height 5 --width 7 --channels 6 --filters 4 --groups 2 --window 3,2,1 --stride 1,2,1 --padding 1,0,1,2,1,0",
                 [4, 3, 8]),
                ("--depth 2 --height 3 --width 5 --channels 8 --filters 3 --window 2 --stride 2 --transposed --padding 0", [4, 6, 10]),
                # Phases that see no tap: the result is made by more than one kernel.
                ("--height 7 --width 9 --channels 5 --filters 8 --dilation 2 --stride 2 --transposed", [14, 18]),
                # A kernel for each phase.
                ("--batch 2 --height 5 --width 7 --channels 16 --filters 16 --groups 16 --stride 2 --transposed --padding 1 --output-padding 1,0",
                 [10, 13])]:
            with self.subTest(options):
                kind = "f16" if "--groups" in options else "f32"
                done = run(*options.split(), "--type", kind, "--target", "cpu", "--candidates", 1, "--verify", "--json", cache=self.folder)
                self.assertEqual(done.returncode, 0, done.stderr)
                report = json.loads(done.stdout)
                self.assertEqual(report["result"], result)
                self.assertGreater(report["error"], 0, "a result of zeros agrees with anything")
                self.assertLess(report["error"], 1)
                self.assertGreater(report["us"], 0)
                self.assertGreater(report["floor_us"], 0)


class Predicted(unittest.TestCase):
    def predicted(self, options):
        done = run(*options.split(), "--predict", "--json", "--candidates", 3)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_candidates_of_every_form(self):
        # Kernels: those of a transposed depthwise convolution are one for each phase, and one that joins them.
        for options, kernels in [("--length 29 --window 5 --dilation 2", 1), ("--height 28 --window 4 --stride 2 --transposed", 1),
                                 ("--depth 3 --height 5 --window 3,2,2 --padding 1", 1),
                                 ("--height 14 --groups 32 --stride 2 --transposed", 5)]:
            for sm in (90, 80):
                with self.subTest(options, sm=sm):
                    found = self.predicted(f"--channels 32 --filters 32 {options} --sm {sm}")["candidates"]
                    self.assertTrue(found)
                    for candidate in found:
                        self.assertGreater(candidate["predicted_us"], 0)
                        self.assertEqual(candidate["kernels"], kernels)

    def test_kernels_far_from_their_floor_are_named(self):
        far = "--batch 32 --depth 16 --height 56 --channels 64 --filters 64"
        self.assertRegex(self.predicted(far)["far_from_floor"][0], r"^conv 16x56x56 .*: \d+\.\d times its floor: \w")
        self.assertRegex(run(*far.split(), "--predict").stdout.splitlines()[0], r"times its floor: ")
        self.assertEqual(self.predicted("--batch 32 --height 56 --channels 64 --filters 64")["far_from_floor"], [])


class Refused(unittest.TestCase):
    def test_impossible_sizes_name_their_option(self):
        for options, said in [
                ("--groups 3", "--groups 3: it does not divide 8 channels and 4 filters"),
                ("--window 9 --padding 0", "--window 9: it spans 9 elements in dimension 0, the padded image has 2"),
                ("--window 2 --dilation 1,7 --padding 0,2", "in dimension 1, the padded image has 6"),
                ("--window 3 --padding 3 --transposed", "--padding 3: it leaves nothing of the result's 4 elements in dimension 0"),
                ("--window 2,2,2", "--window 2,2,2: it has 3 numbers, the image 2 dimensions"),
                ("--padding 1,2,3", "--padding 1,2,3"), ("--dilation x", "--dilation x: it is no list of numbers"),
                ("--stride 1,0", "--stride 0: it has to be at least 1"), ("--padding -1", "--padding -1: it has to be at least 0"),
                ("--batch 0", "--batch 0: it has to be at least 1"), ("--width 3000000000", "--width 3000000000: it has to be at most"),
                ("--transposed --padding 0 --output-padding 1", "--output-padding 1: it has to be less than the stride or the dilation"),
                ("--target cpu --compile-only", "--compile-only")]:
            with self.subTest(options):
                done = run("--height", 2, "--channels", 8, "--filters", 4, "--predict", *options.split())
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn("HDL201", done.stderr)
                self.assertIn(said, done.stderr)
                self.assertEqual(done.stdout, "")
        for options, said in [("--output-padding 1", "--padding"), ("--length 3", "--length"), ("--length 0", "--length")]:
            with self.subTest(options):
                done = run("--height", 2, "--channels", 8, "--filters", 4, *options.split())
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(said, done.stderr)


if __name__ == "__main__":
    HEDDLE = sys.argv.pop(1)
    unittest.main()
