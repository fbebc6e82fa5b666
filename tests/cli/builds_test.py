"""What another build of the command compiled is not used, since that build may have computed constants differently.

usage: builds_test.py HEDDLE
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HEDDLE = pathlib.Path(sys.argv[1])
NOTE = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0"  # of 20 bytes, the linker's hash of the build
VERSION_AT = 8                                 # in a plan file, behind the magic number
MODEL = """graph g(%x: f32[4]) {
  %0 = neg(%x) {} : f32[4]
  return "y" = %0
}
"""


class Builds(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.folder / "m.hir").write_text(MODEL)

    def heddle(self, *arguments, command=HEDDLE):
        return subprocess.run([command, *arguments], cwd=self.folder, capture_output=True, text=True,
                              env=dict(os.environ, HEDDLE_CACHE_DIR=str(self.folder / "cache")))

    def other_build(self):
        image = bytearray(HEDDLE.read_bytes())
        image[image.index(NOTE) + len(NOTE)] ^= 1
        other = self.folder / "heddle"
        other.write_bytes(image)
        other.chmod(0o755)
        return other

    def test_cached_plans_belong_to_a_build(self):
        other = self.other_build()
        for command in (HEDDLE, other):
            with self.subTest(command):
                self.assertIn("compiled in", self.heddle("run", "m.hir", command=command).stdout)
                self.assertIn("loaded from the cache", self.heddle("run", "m.hir", command=command).stdout)

    def test_plan_files_of_the_version_before_are_refused(self):
        self.assertEqual(self.heddle("compile", "m.hir", "-o", "m.plan").returncode, 0)
        plan = self.folder / "m.plan"
        image = bytearray(plan.read_bytes())
        image[VERSION_AT] -= 1
        plan.write_bytes(image)
        done = self.heddle("run", "m.plan")
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("another version of Heddle", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
