"""heddle where the system starts few processes and threads, or none: a result, or HDL404.

usage: limits_test.py HEDDLE
"""
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import unittest

HEDDLE = sys.argv[1]
USER = 61234  # of root's tests, whom the limit does not hold; without a process of its own
MODEL = """graph g(%x: f32[64,96], %w: f32[96,32]) {
  %0 = dot(%x, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}
  %1 = exp(%0)
  return "y" = %1
}
"""


class Limits(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)
        self.path.chmod(0o755)
        (self.path / "m.hir").write_text(MODEL)
        for name in ("home", "tmp"):
            (self.path / name).mkdir()
            if os.geteuid() == 0:
                os.chown(self.path / name, USER, USER)
        (self.path / "home").chmod(0o700)

    def tearDown(self):
        self.folder.cleanup()

    def run_with(self, processes, *words):
        """The finished command of a user who may have as many processes and threads."""
        def limit():
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(USER)
                os.setuid(USER)
            resource.setrlimit(resource.RLIMIT_NPROC, (processes, processes))
        environment = dict(os.environ, HEDDLE_CACHE_DIR=str(self.path / "home/cache"), TMPDIR=str(self.path / "tmp"),
                           HEDDLE_DEVICES=str(self.path / "home"))
        return subprocess.run([HEDDLE, *words], capture_output=True, text=True, timeout=120, cwd=self.path / "home",
                              env=environment, preexec_fn=limit)

    def test_no_thread(self):
        for words in (["inspect", "../m.hir"], ["run", "../m.hir"], ["compile", "../m.hir", "-o", "m.plan"],
                      ["tune", "../m.hir"], ["bench", "../m.hir"], ["profile", "../m.hir"], ["profile", "--", "true"]):
            with self.subTest(words):
                done = self.run_with(1, *words)
                self.assertEqual(done.returncode, 4, done.stderr)
                self.assertIn("HDL404", done.stderr)
                self.assertIn("ulimit -u", done.stderr)

    def test_few_threads(self):
        """Compilers take some processes of their own; a failure leaves no file."""
        if os.geteuid() != 0:
            self.skipTest("this user has other processes")
        ended = set()
        for processes, threads in ((2, 1), (3, 3), (5, 1), (16, 3)):
            with self.subTest(processes=processes, threads=threads):
                done = self.run_with(processes, "run", "../m.hir", "--threads", str(threads), "--no-cache")
                ended.add(done.returncode)
                self.assertIn(done.returncode, (0, 4), done.stderr)
                self.assertTrue(done.returncode == 0 or "HDL404" in done.stderr, done.stderr)
                self.assertEqual(list((self.path / "tmp").iterdir()), [])
        self.assertEqual(ended, {0, 4})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
