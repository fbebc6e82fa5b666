"""Ctrl-C while something is compiled, runs or waits: KeyboardInterrupt within a second, and nothing half-made is left."""
import os
import pathlib
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import heddle
import heddle.tile as triton
import models
import numpy as np

from tile_kernels import module_of

SLOW_COMPILER = '''#!/bin/sh
if [ "$1" = --version ]; then echo "a compiler that takes for ever 1.0"; exit; fi
sleep 60 &
echo $! >> "{pids}"
wait
'''

KERNELS = '''
@triton.jit
def turns(Z, n):
    sum = 0.0
    for i in range(n):
        for k in range(100000):
            sum = sum * 0.5 + tl.load(Z)
    tl.store(Z + tl.program_id(0), sum)

@triton.jit
def unrolled(Z):
    sum = 0.0
    for i in tl.static_range(300):
        sum = tl.sin(sum) * tl.cos(sum + i) / tl.load(Z + i)
    tl.store(Z, sum)

@triton.autotune(configs=[triton.Config({"N": 4}), triton.Config({"N": 8}), triton.Config({"N": 16})], key=[])
@triton.jit
def tuned(Z, N: tl.constexpr):
    tl.store(Z + tl.arange(0, N), 1.0)
'''


def is_running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


class Interrupted(unittest.TestCase):
    def setUp(self):
        self.before = signal.signal(signal.SIGINT, signal.default_int_handler)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.pids, self.cache = self.folder / "pids", self.folder / "cache"
        for name in ("HEDDLE_CXX", "HEDDLE_CACHE_DIR"):
            self.addCleanup(self.reset, name, os.environ.get(name))

    def tearDown(self):
        signal.signal(signal.SIGINT, self.before)

    @staticmethod
    def reset(name, value):
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value

    def use_slow_compiler(self):
        compiler = self.folder / "slow-c++"
        compiler.write_text(SLOW_COMPILER.format(pids=self.pids))
        compiler.chmod(compiler.stat().st_mode | stat.S_IXUSR)
        os.environ["HEDDLE_CXX"], os.environ["HEDDLE_CACHE_DIR"] = str(compiler), str(self.cache)

    def interrupt(self, call, when):
        """Calls it, and sends SIGINT as soon as when() holds."""
        sent = []

        def send():
            until = time.monotonic() + 60
            while not when() and time.monotonic() < until:
                time.sleep(0.01)
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=send)
        thread.start()
        try:
            with self.assertRaises(KeyboardInterrupt):
                call()
                time.sleep(5)  # it ended before
                self.fail("it was done before it could be interrupted")
            # On a machine that others keep busy everything takes longer.
            self.assertLess(time.monotonic() - sent[0], max(1, os.getloadavg()[0] / os.cpu_count()))
        finally:
            thread.join()

    def after(self, seconds):
        start = time.monotonic()
        return lambda: time.monotonic() > start + seconds

    def check_nothing_is_left(self):
        # Other threads than the one that was interrupted end the compilers and remove their files.
        until = time.monotonic() + 5
        while (self.compilers() or self.files()) and time.monotonic() < until:
            time.sleep(0.01)
        self.assertEqual(self.compilers(), [], "compilers were left behind")
        self.assertEqual(self.files(), [])

    def compilers(self):
        return [pid for pid in self.pids.read_text().split() if is_running(pid)]

    def files(self):
        # os.walk() passes over folders that others remove meanwhile.
        paths = [pathlib.Path(folder, name).relative_to(self.cache) for folder, _, names in os.walk(self.cache) for name in names]
        # Locks, unpacked headers and the processor's clock stay: they are whole, and the next process uses them.
        return [path for path in paths if "lock" not in path.parts and path.parts[0] != "clock" and not path.parts[0].startswith("headers-")]


class Compilation(Interrupted):
    def test_of_a_model(self):
        self.use_slow_compiler()
        self.interrupt(lambda: heddle.compile(models.Mlp().proto), self.pids.exists)
        self.check_nothing_is_left()

    def test_of_another_shape(self):
        model = heddle.compile(models.Mlp("rows").proto, dims={"rows": 2}, threads=1)
        self.use_slow_compiler()
        self.interrupt(lambda: model(np.ones((70, 8), np.float32)), self.pids.exists)
        self.check_nothing_is_left()
        np.testing.assert_array_equal(model(np.ones((2, 8), np.float32))[1], np.full((2, 8), 2))

    def test_of_a_kernel(self):
        self.use_slow_compiler()
        kernel = module_of(KERNELS).turns
        self.interrupt(lambda: kernel[(1,)](np.zeros(1, np.float32), 0), self.pids.exists)
        self.check_nothing_is_left()

    def test_of_a_kernel_by_nvrtc(self):
        """Which knows nothing of signals, and whose phases may take longer than a second."""
        os.environ["HEDDLE_CACHE_DIR"] = str(self.cache)
        module = module_of(KERNELS)
        types = {"Z": "*fp32", "n": "i32"}
        compiled = lambda kernel, types: triton.compile(triton.compiler.ASTSource(kernel, types), target="cuda-sm_90a")
        try:
            compiled(module.turns, types)
        except heddle.MachineError as error:
            self.skipTest(str(error))
        self.interrupt(lambda: compiled(module.unrolled, {"Z": "*fp32"}), self.after(0.1))

    def test_of_configurations(self):
        self.use_slow_compiler()
        kernel = module_of(KERNELS).tuned
        self.interrupt(lambda: kernel[(1,)](np.zeros(16, np.float32)), lambda: self.pids.exists() and self.pids.read_text().count("\n") > 1)
        self.check_nothing_is_left()

    def test_that_another_process_does(self):
        self.use_slow_compiler()
        program = "import heddle, models; heddle.compile(models.Mlp().proto)"
        path = os.pathsep.join([os.path.dirname(__file__), *sys.path])
        with subprocess.Popen([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": path}, stderr=subprocess.DEVNULL) as other:
            until = time.monotonic() + 60
            while not self.pids.exists() and time.monotonic() < until:
                time.sleep(0.01)
            self.interrupt(lambda: heddle.compile(models.Mlp().proto), self.after(0.3))
            self.assertEqual(self.pids.read_text().count("\n"), len(self.pids.read_text().split()))
            other.send_signal(signal.SIGINT)
        self.check_nothing_is_left()

    def test_in_progress(self):
        """What the function raises ends the compilation."""
        self.use_slow_compiler()

        def progress(stage, share):
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            heddle.compile(models.Mlp().proto, progress=progress)
        self.assertFalse(self.pids.exists())

    def test_in_an_operator(self):
        def stops(x):
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            heddle.compile(models.custom("acme", "Stops"), kernels={"acme::Stops": stops}, cache=False)


class Runs(Interrupted):
    def test_many_steps(self):
        model = heddle.compile(models.turns(), threads=1)
        np.testing.assert_array_equal(model(np.int64(3), np.zeros(4, np.float32)), np.full(4, 3))
        self.interrupt(lambda: model(np.int64(10**12), np.zeros(4, np.float32)), self.after(0.2))
        np.testing.assert_array_equal(model(np.int64(5), np.zeros(4, np.float32)), np.full(4, 5))

    def test_one_large_step(self):
        size = 6144
        for threads in (1, 2):
            model = heddle.compile(models.product(size), threads=threads)
            x = np.ones((size, size), np.float32)
            self.interrupt(lambda: model(x, x), self.after(0.1))

    def test_a_kernel(self):
        kernel, z = module_of(KERNELS).turns, np.ones(64, np.float32)
        kernel[(64,)](z, 0)
        z[:] = 1
        for _ in range(2):  # in Python, and as a launch like an earlier one
            self.interrupt(lambda: kernel[(64,)](z, 160), self.after(0.1))

    def test_handlers_that_raise_nothing(self):
        """They are called in time, and the run goes on."""
        model = heddle.compile(models.turns(), threads=1)
        called = []
        signal.signal(signal.SIGINT, lambda number, frame: called.append(time.monotonic()))
        start = time.monotonic()
        threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        trips = 1000
        while not called or time.monotonic() < start + 0.5:
            np.testing.assert_array_equal(model(np.int64(trips), np.zeros(4, np.float32)), np.full(4, trips))
            trips = min(2 * trips, 10**6)
        self.assertLess(called[0] - start, 1)

    def test_waiting(self):
        """For what is compiled in the background."""
        model = heddle.compile(models.Mlp("rows").proto, dims={"rows": (1, 64)}, threads=1)
        self.interrupt(lambda: [model.wait(), time.sleep(5)], self.after(0.1))


if __name__ == "__main__":
    unittest.main()
