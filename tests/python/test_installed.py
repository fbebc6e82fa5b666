"""What pip puts into a wheel: the package is whole, and works without the build folder and the source tree.

usage: test_installed.py CMAKE BUILD_FOLDER
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

CMAKE, BUILD = sys.argv[1], pathlib.Path(sys.argv[2])
SOURCES = pathlib.Path(__file__).parents[2] / "python" / "heddle"

PROGRAM = """
import os
import sys
sys.path.insert(0, sys.argv[1])
import heddle
import heddle.tile.language
import heddle.tile.tools.compile
assert heddle.__file__.startswith(sys.argv[1]), heddle.__file__
assert os.path.exists(heddle.ort_library()), heddle.ort_library()
print(heddle.__version__)
"""


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        subprocess.run([CMAKE, "--install", BUILD, "--component", "python", "--prefix", cls.folder.name], check=True,
                       stdout=subprocess.DEVNULL)
        cls.package = pathlib.Path(cls.folder.name) / "heddle"

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_every_module_and_the_types_are_there(self):
        installed = {path.relative_to(self.package) for path in self.package.rglob("*") if path.is_file()}
        wanted = {path.relative_to(SOURCES) for path in SOURCES.rglob("*.py")}
        wanted |= {pathlib.Path(name) for name in ("_record.py", "py.typed", "libheddle_profile.so", "libheddle_ort.so", "_core/__init__.pyi")}
        self.assertEqual(wanted - installed, set())

    def test_nothing_leads_back_to_the_build_folder(self):
        self.assertEqual([path for path in self.package.rglob("*") if path.is_symlink()], [])
        for path in self.package.glob("*.so"):
            self.assertNotIn(str(BUILD).encode(), path.read_bytes(), path)

    def test_it_is_imported_from_there(self):
        done = subprocess.run([sys.executable, "-I", "-c", PROGRAM, self.folder.name], capture_output=True, text=True, cwd="/")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"^\d+\.\d+\.\d+\n$")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
