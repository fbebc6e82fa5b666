"""What the tests of profiles of Python programs share."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest


class Rows:
    """The rows of a profile by name: what they cost with what is below them, and who called."""

    def __init__(self, form):
        self.form = form
        strings, frames, nodes = form["strings"], form["frames"], form["nodes"]
        self.parents = nodes["parent"]
        self.names = [strings[frames["name"][frame]] for frame in nodes["frame"]]
        self.kinds = [frames["kind"][frame] for frame in nodes["frame"]]
        self.lines = [frames["line"][frame] for frame in nodes["frame"]]
        self.values = nodes["values"]

    def total(self, name, metric="CPU"):
        inclusive = list(self.values.get(metric, [0] * len(self.names)))
        for node in range(len(inclusive) - 1, 0, -1):
            inclusive[self.parents[node]] += inclusive[node]
        return sum(v for node, v in enumerate(inclusive) if self.names[node] == name and name not in self.path(node)[1:])

    def path(self, node):
        """Names from a node to the root."""
        names = []
        while node > 0:
            names.append(self.names[node])
            node = self.parents[node]
        return names

    def paths(self, name):
        return [self.path(node) for node in range(len(self.names)) if self.names[node] == name]


class Profiled(unittest.TestCase):
    """Runs programs under `heddle profile` in a folder of its own."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)

    def write(self, name, text):
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    def run_profiled(self, *command, options=(), status=0, **environment):
        """The finished command, and the rows of its profile."""
        output = self.path / "profile.json"
        done = subprocess.run([sys.executable, "-m", "heddle", "profile", "--rate", "1000", *options, "-o", output, "--", *command],
                              capture_output=True, text=True, cwd=self.path, env={**os.environ, **environment}, timeout=120)
        self.assertEqual(done.returncode, status, done.stderr)
        return done, Rows(json.loads(output.read_text())) if output.exists() else None


    def build(self, name, text):
        """A shared library of a text in C++."""
        source, library = self.write(f"{name}.cc", text), self.path / name
        subprocess.run([os.environ.get("HEDDLE_CXX", "c++"), "-std=c++17", "-shared", "-fPIC", "-pthread", f"-Wl,-soname,{name}", source, "-o",
                        library], check=True)
        return library

    def write_modules(self):
        """As PyTorch calls modules; the rest of it is not needed."""
        self.write("torch/__init__.py", "")
        self.write("torch/nn/__init__.py", "from torch.nn.modules.module import Module\n")
        self.write("torch/nn/modules/__init__.py", "")
        self.write("torch/nn/modules/module.py", """
            _hooks = []
            def register_module_module_registration_hook(hook):
                _hooks.append(hook)
            class Module:
                def __init__(self):
                    self.__dict__["_modules"] = {}
                def __setattr__(self, name, value):
                    if isinstance(value, Module):
                        for hook in _hooks:
                            hook(self, name, value)
                        self._modules[name] = value
                    object.__setattr__(self, name, value)
                def __call__(self, *args):
                    return self._wrapped_call_impl(*args)
                def _wrapped_call_impl(self, *args):
                    return self._call_impl(*args)
                def _call_impl(self, *args):
                    def inner():
                        return self.forward(*args)
                    return inner()
            """)

    def write_nvtx(self):
        """A module that calls NVTX as a program does: the first use looks for who takes it over."""
        self.write("nvtx.py", """
            import ctypes
            import os

            NAMES = {(1, 9): (ctypes.c_int, ctypes.c_char_p), (1, 11): (ctypes.c_int,),
                     (5, 4): (ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p), (5, 5): (ctypes.c_int, ctypes.c_void_p),
                     (5, 10): (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p), (5, 12): (ctypes.c_void_p, ctypes.c_char_p)}
            variables = {module: (ctypes.c_void_p * 16)() for module in (1, 5)}
            tables = {module: (ctypes.c_void_p * 17)(0, *[ctypes.addressof(all) + 8 * i for i in range(1, 16)], 0)
                      for module, all in variables.items()}

            @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint32, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_uint32))
            def functions(module, table, count):
                if module not in tables:
                    return 0
                table[0], count[0] = ctypes.addressof(tables[module]), 16
                return 1

            class Callbacks(ctypes.Structure):
                _fields_ = [("bytes", ctypes.c_size_t), ("functions", type(functions))]

            class Attributes(ctypes.Structure):
                _fields_ = [("head", ctypes.c_uint64 * 4), ("message_type", ctypes.c_int32), ("message", ctypes.c_void_p)]

            callbacks = Callbacks(16, functions)

            @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)
            def export_table(table):
                return ctypes.addressof(callbacks) if table == 1 else None

            library = ctypes.CDLL(os.environ["NVTX_INJECTION64_PATH"])
            assert library.InitializeInjectionNvtx2(export_table) == 1
            call = {key: ctypes.CFUNCTYPE(*types)(variables[key[0]][key[1]]) for key, types in NAMES.items()}
            address_of = {key: variables[key[0]][key[1]] for key in NAMES}

            def push(text):
                return call[1, 9](text.encode())

            def pop():
                return call[1, 11]()

            domain = call[5, 12](b"a library")

            def push_registered(text):
                attributes = Attributes(message_type=3, message=call[5, 10](domain, text.encode()))
                return call[5, 4](domain, ctypes.addressof(attributes))

            def pop_registered():
                return call[5, 5](domain)
            """)
