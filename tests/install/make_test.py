"""What `make` does beside building: who builds under sudo, and where the demo leads.

usage: make_test.py SOURCE
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv[1])


class Make(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def stand_in(self, name):
        """A program that does nothing but note how it was called."""
        path = self.folder / name
        path.write_text(f'#!/bin/sh\necho "{name} $*" >> {self.folder}/calls\n')
        path.chmod(0o755)
        return path

    def calls(self, *command, cwd=SOURCE):
        variables = {**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}"}
        variables.pop("MAKEFLAGS", None)
        done = subprocess.run([str(word) for word in command], cwd=cwd, env=variables, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return (self.folder / "calls").read_text().splitlines(), done.stdout

    def test_under_sudo_the_user_builds_and_root_installs(self):
        for name in ("sudo", "cmake"):
            self.stand_in(name)
        calls, told = self.calls("make", "install", "SUDO_USER=someone", "JOBS=3")
        self.assertEqual(len(calls), 2, calls)
        self.assertRegex(calls[0], r"^sudo -H -u someone make .*build JOBS=3$")
        self.assertRegex(calls[1], r"^cmake --install ")
        self.assertIn("building as someone", told)

    def test_the_demo_ends_with_what_to_do_with_a_model_of_ones_own(self):
        calls, told = self.calls(SOURCE / "scripts/demo.sh", self.stand_in("heddle"), cwd=self.folder)
        self.assertIn("heddle bench build/demo/bert-base.onnx --target cpu", calls)
        next_steps = [line for line in told.splitlines()[-3:] if line.startswith("  heddle ")]
        self.assertEqual([line.split()[1] for line in next_steps], ["inspect", "run", "bench"], told)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
