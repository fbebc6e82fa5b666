"""Records this process with libheddle_profile.so. Needs nothing but the standard library: it also runs where Heddle is not
installed."""
import atexit
import ctypes
import gc
import importlib.abc
import importlib.machinery
import os
import sys
import time

_names = {}  # id of a torch.nn.Module: (id of its parent or None, its name there, the class of the parent)


class Library:
    """libheddle_profile.so; one recording of the process at a time."""

    def __init__(self, path):
        self._calls = calls = ctypes.CDLL(path)
        calls.heddle_profile_start.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_double, ctypes.c_int, ctypes.c_int]
        calls.heddle_profile_why.restype = ctypes.c_char_p
        calls.heddle_profile_modules.argtypes = [ctypes.POINTER(ctypes.c_ulonglong), ctypes.c_size_t]
        calls.heddle_profile_modules.restype = ctypes.c_size_t
        calls.heddle_profile_name_module.argtypes = [ctypes.c_ulonglong, ctypes.c_char_p]
        calls.heddle_profile_stop.restype = ctypes.c_void_p
        calls.heddle_profile_stack.restype = ctypes.c_void_p
        calls.heddle_profile_free.argtypes = [ctypes.c_void_p]
        calls.heddle_profile_say.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
        calls.heddle_profile_ranges.restype = ctypes.c_ulonglong

    def start(self, title, file="", rate=100.0, gpu=2, all_frames=False, operators=False):
        """Raises RuntimeError where it cannot, or where a recording is under way. `operators`: with those of PyTorch."""
        code = self._calls.heddle_profile_start(title.encode(), file.encode(), rate, gpu, all_frames)
        if code == 1:
            raise RuntimeError("this process is being profiled already")
        if code != 0:
            raise RuntimeError(self.why())
        watch_modules()
        if operators:
            _operators.begin(self)

    def say(self, name, value):
        """Adds a fact to the profile."""
        self._calls.heddle_profile_say(name.encode(), value.encode())

    def ranges(self):
        """How many ranges of NVTX this process has pushed so far."""
        return self._calls.heddle_profile_ranges()

    def why(self):
        """Why start() or stop() did not do it."""
        return self._calls.heddle_profile_why().decode(errors="replace")

    def stop(self):
        """The profile in its JSON form; None where no recording is under way, or where it failed."""
        _operators.end()
        self._name_modules()
        return self._take(self._calls.heddle_profile_stop())

    def stack(self, resting):
        """The Python frames of this thread as the profiler sees them, the innermost first: (name, line, file). `resting`: as
        it reads them when the GPU is called, else as when a sample is taken."""
        lines = self._take(self._calls.heddle_profile_stack(int(resting))).splitlines()
        return [(name, int(line), file) for name, line, file in (text.split(":", 2) for text in lines)]

    def _take(self, pointer):
        if not pointer:
            return None
        text = ctypes.string_at(pointer).decode(errors="replace")
        self._calls.heddle_profile_free(pointer)
        return text

    def _name_modules(self):
        count = self._calls.heddle_profile_modules(None, 0)
        if count == 0:
            return
        addresses = (ctypes.c_ulonglong * count)()
        count = min(count, self._calls.heddle_profile_modules(addresses, count))
        name_living_modules()
        for address in addresses[:count]:
            self._calls.heddle_profile_name_module(address, module_name(address).encode())


def module_name(address):
    """"layer3.5.conv2" for the module at that address, its class where it has no parent, "" where nothing is known."""
    parts, seen = [], set()
    while address in _names and address not in seen:
        seen.add(address)
        parent, name, kind = _names[address]
        if parent is None:
            if not parts:
                parts.append(kind)
            break
        parts.append(name)
        address = parent
    return ".".join(reversed(parts))


def _remember(parent, name, child):
    _names.setdefault(id(parent), (None, "", type(parent).__name__))
    if child is not None:
        _names[id(child)] = (id(parent), name, type(child).__name__)


def name_living_modules():
    """Modules that were made before the recording began."""
    torch = sys.modules.get("torch.nn.modules.module")
    if torch is None:
        return
    for module in [one for one in gc.get_objects() if issubclass(type(one), torch.Module)]:
        _names.setdefault(id(module), (None, "", type(module).__name__))
        for name, child in module._modules.items():
            _remember(module, name, child)


class _After(importlib.abc.MetaPathFinder):
    """Calls `then` with a module when that has been imported."""

    def __init__(self, name, then):
        self._name, self._then = name, then

    def find_spec(self, name, path, target=None):
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def exec_module(module):
                load(module)
                self._then(module)

            spec.loader.exec_module = exec_module
        return spec


def _when_imported(name, then):
    """Calls `then` with a module, now or when it has been imported."""
    if name in sys.modules:
        then(sys.modules[name])
    else:
        sys.meta_path.insert(0, _After(name, then))


class _Operators:
    """What PyTorch calls what it does, as ranges of NVTX: what torch.autograd.profiler.emit_nvtx() does, which waits for
    the GPU besides. PyTorch tells them in the thread that begins, and in those of its backward()."""

    def __init__(self):
        self._library, self._told, self._before = None, False, 0

    def begin(self, library):
        self._library, self._told, self._before = library, False, library.ranges()
        _when_imported("torch", self._enable)

    def _enable(self, _):
        if self._library is None:
            return
        try:
            from torch._C._profiler import _ExperimentalConfig
            from torch.autograd import ProfilerConfig, ProfilerState, _enable_profiler

            _enable_profiler(ProfilerConfig(ProfilerState.NVTX, False, False, False, False, False, _ExperimentalConfig()), set())
            self._told = True
        except Exception as problem:
            self._library.say("operators", f"PyTorch does not tell them: {problem}")

    def end(self):
        library, self._library = self._library, None
        if library is None or not self._told:
            return
        try:
            from torch.autograd import _disable_profiler

            _disable_profiler()
        except Exception as problem:
            library.say("operators", f"PyTorch goes on telling them: {problem}")
        if library.ranges() == self._before:
            library.say("operators", "none came: this process used NVTX before the recording began. Use heddle profile -- PROGRAM")


_operators = _Operators()


def _register(torch):
    register = getattr(torch, "register_module_module_registration_hook", None)
    if register is not None:
        register(lambda parent, name, child: _remember(parent, name, child))


_watching = False


def watch_modules():
    """Once in a process."""
    global _watching
    if _watching:
        return
    _watching = True
    # Modules are seen being put together: a model may be gone when the recording ends.
    _when_imported("torch.nn.modules.module", _register)


def begin_from_environment():
    """Records this process until it ends, and each child of a fork, as `heddle profile` says by the environment."""
    environment = os.environ
    library = Library(environment["HEDDLE_PROFILE_LIBRARY"])
    gpu = int(environment.get("HEDDLE_PROFILE_GPU") == "1")

    def start():
        title = " ".join(getattr(sys, "orig_argv", None) or ["python"])
        # A program that execve() starts has the same process.
        file = f"{environment['HEDDLE_PROFILE_FILE']}.{os.getpid()}.{time.monotonic_ns()}"
        library.start(title, file, float(environment["HEDDLE_PROFILE_RATE"]), gpu,
                      environment.get("HEDDLE_PROFILE_ALL_FRAMES") == "1", environment.get("HEDDLE_PROFILE_OPERATORS") == "1")

    def in_child():
        nonlocal gpu
        gpu = 0  # CUDA does not survive a fork
        start()

    leave = os._exit

    def stop_and_leave(status):
        library.stop()  # children of multiprocessing leave like this, without atexit
        leave(status)

    start()
    os._exit = stop_and_leave
    atexit.register(library.stop)
    os.register_at_fork(after_in_child=in_child)
    sys.addaudithook(lambda event, _: library.stop() if event == "os.exec" else None)
