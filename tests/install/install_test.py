"""An installed Heddle: it is whole without the build, it can be moved, CMake and pkg-config find it, its examples build
against it and run, and libheddle.so exports its public interface and nothing else.

usage: install_test.py CMAKE BUILD SOURCE MODEL CACHE
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

CMAKE, BUILD, SOURCE, MODEL, CACHE = sys.argv[1:6]
SOURCE = pathlib.Path(SOURCE)
VERSION = re.search(r"project\(heddle VERSION (\S+)", (SOURCE / "CMakeLists.txt").read_text()).group(1)
MINOR = VERSION.rsplit(".", 1)[0]
OUTPUT = r"output: .* -?[0-9.]+ -?[0-9.]+ "
# A name that is no part of the interface even inside of a class that is.
PRIVATE = re.compile(r"\bImpl\b|\bdetail\b|\(anonymous namespace\)")


def run(*command, **environment):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          env={**os.environ, "HEDDLE_CACHE_DIR": CACHE, **environment})
    if done.returncode != 0:
        raise AssertionError(f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def exported(library, *options):
    lines = run("nm", "-D", "--defined-only", *options, library).splitlines()
    return [line.split(" ", 2)[2] for line in lines if " A " not in line]


def words(text):
    return set(re.findall(r"\w+", text))


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.work = pathlib.Path(cls.folder.name)
        run(CMAKE, "--install", BUILD, "--prefix", cls.work / "first")
        cls.prefix = cls.work / "moved"
        (cls.work / "first").rename(cls.prefix)
        cls.library = next(cls.prefix.rglob("libheddle.so"))
        cls.pkgconfig = {"PKG_CONFIG_PATH": str(next(cls.prefix.rglob("heddle.pc")).parent)}
        cls.headers = "".join(path.read_text() for path in (cls.prefix / "include/heddle").iterdir())

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def configure(self, source, *options):
        build = pathlib.Path(tempfile.mkdtemp(dir=self.work))
        run(CMAKE, "-G", "Ninja", "-S", source, "-B", build, *options)
        return build

    def project(self, text):
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.work))
        (folder / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\n" + text)
        return folder

    def test_command(self):
        heddle = self.prefix / "bin/heddle"
        self.assertEqual(run(heddle, "--version"), f"heddle {VERSION}\n")
        # Named as a shell finds it: the cache must know which build this is.
        self.assertIn("output", run("heddle", "run", MODEL, PATH=f"{heddle.parent}:{os.environ['PATH']}"))

    def test_library_is_named_after_its_version(self):
        self.assertEqual(self.library.resolve().name, f"libheddle.so.{VERSION}")
        dynamic = run("readelf", "-d", self.library)
        self.assertIn(f"Library soname: [libheddle.so.{MINOR}]", dynamic)
        self.assertNotRegex(dynamic, "RPATH|RUNPATH")

    def test_nothing_names_the_folders_that_it_was_made_in(self):
        for path in [*self.prefix.rglob("*.cmake"), *self.prefix.rglob("*.pc")]:
            for folder in (str(SOURCE), BUILD, str(self.work)):
                self.assertNotIn(folder, path.read_text(), path)

    def test_library_exports_what_the_headers_declare(self):
        known = words(self.headers)
        for name in exported(self.library, "--demangle"):
            with self.subTest(name):
                self.assertRegex(name, r"^((typeinfo|typeinfo name|vtable) for )?heddle(::|_)")
                self.assertNotRegex(name, PRIVATE)
                # Without parameters, tags of the ABI and versions ("@@HEDDLE_0").
                declared = words(re.sub(r"\(.*|\[abi.*|@.*", "", name)) - {"typeinfo", "for", "vtable", "name"}
                self.assertEqual(declared - known, set())
        self.assertEqual(set(re.findall(r"\bheddle_\w+(?=\()", self.headers)),
                         {name.split("@")[0] for name in exported(self.library) if name.startswith("heddle_")})

    def test_public_headers_mark_what_they_export(self):
        """Functions at the level of a namespace: all but inline ones and templates."""
        for path in (self.prefix / "include/heddle").glob("*.h"):
            for line in re.findall(r"^(?:const )?[a-z][\w:<>]*[*&]? \w+\([^{;]*;", path.read_text(), re.MULTILINE):
                self.fail(f"{path.name}: not marked with HEDDLE_API: {line}")

    def test_whole_interface_links(self):
        flags = run("pkg-config", "--cflags", "--libs", "heddle", **self.pkgconfig).split()
        program = self.work / "whole_api"
        run("c++", "-std=c++20", SOURCE / "tests/install/whole_api.cc", "-o", program, *flags,
            f"-Wl,-rpath,{self.library.parent}")
        self.assertRegex(run(program), rf"heddle {re.escape(VERSION)}: \d+")

    def test_examples_by_cmake(self):
        for language in ("c", "cpp"):
            with self.subTest(language):
                source = self.work / f"example_{language}"
                shutil.copytree(SOURCE / "examples" / language, source)
                build = self.configure(source, f"-DCMAKE_PREFIX_PATH={self.prefix}")
                run(CMAKE, "--build", build)
                self.assertRegex(run(build / f"{language}_run_model", MODEL), OUTPUT)
                if language == "cpp":
                    self.assertRegex(run(build / "cpp_softmax_rows"), "output: .* off by")

    def test_headers_of_kernels_are_whole(self):
        """The CUDA examples compile against them: by nvcc where there is one, else by what the emulator takes for CUDA."""
        headers = self.prefix / "include/heddle-tile"
        nvcc = shutil.which("nvcc", path=os.environ["PATH"] + ":/usr/local/cuda/bin")
        as_cuda = [nvcc, "-arch=sm_80", "-ptx", "-o", self.work / "example.ptx"]
        emulated = ["c++", "-w", "-fsyntax-only", "-include", headers / "tile/arch/emulated/cuda.h", "-x", "c++"]
        for example in ("gemm_functor.cu", "tile_kernels.cu"):
            with self.subTest(example):
                run(*(as_cuda if nvcc else emulated), "-std=c++20", "-I", headers, SOURCE / "examples/cuda" / example)

    def test_examples_by_pkg_config(self):
        self.assertEqual(run("pkg-config", "--modversion", "heddle", **self.pkgconfig).strip(), VERSION)
        flags = run("pkg-config", "--cflags", "--libs", "heddle", **self.pkgconfig).split()
        for compiler, source in (("cc -std=c99", "c/run_model.c"), ("c++ -std=c++20", "cpp/run_model.cc")):
            with self.subTest(compiler):
                program = self.work / source.replace("/", "_").split(".")[0]
                run(*compiler.split(), SOURCE / "examples" / source, "-o", program, *flags)
                self.assertRegex(run(program, MODEL, LD_LIBRARY_PATH=str(self.library.parent)), OUTPUT)

    def test_versions_of_the_package(self):
        source = self.project("project(versions LANGUAGES NONE)\n"
                              "find_package(Heddle ${WANTED} QUIET)\n"
                              "file(WRITE ${CMAKE_BINARY_DIR}/found ${Heddle_FOUND})\n")
        next_minor = f"{MINOR.split('.')[0]}.{int(MINOR.split('.')[1]) + 1}"
        for wanted, found in ((MINOR, "1"), (VERSION, "1"), (next_minor, "0"), ("0.0", "0")):
            with self.subTest(wanted):
                build = self.configure(source, f"-DCMAKE_PREFIX_PATH={self.prefix}", f"-DWANTED={wanted}")
                self.assertEqual((build / "found").read_text(), found)

    def test_as_a_subdirectory(self):
        """The library is there under the same name; its flags, tests and examples stay away from the program."""
        source = self.project("project(program LANGUAGES CXX)\n"
                              f"add_subdirectory({SOURCE} heddle)\n"
                              "add_executable(program program.cc)\n"
                              "target_link_libraries(program PRIVATE Heddle::heddle)\n"
                              "foreach(TARGET base_tests c_run_model)\n"
                              "  if(TARGET ${TARGET})\n"
                              '    message(FATAL_ERROR "${TARGET} is built, too")\n'
                              "  endif()\n"
                              "endforeach()\n")
        shutil.copy(SOURCE / "examples/cpp/run_model.cc", source / "program.cc")
        build = self.configure(source)
        command = next(line for line in run("ninja", "-C", build, "-t", "compdb").split("}") if "/program.cc.o" in line)
        self.assertNotRegex(command, r"-Werror|-Wall|-fvisibility|-fPIC")
        self.assertIn(f"-I{SOURCE / 'include'}", command.replace("-isystem ", "-I"))

    def test_destdir(self):
        run(CMAKE, "--install", BUILD, "--prefix", "/usr", DESTDIR=str(self.work / "root"))
        self.assertTrue((self.work / "root/usr/bin/heddle").exists())
        self.assertEqual([path.name for path in (self.work / "root").iterdir()], ["usr"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
