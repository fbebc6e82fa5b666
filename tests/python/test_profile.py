"""Profiles of Python programs: heddle.profile() in this process, and `heddle profile -- PROGRAM` around others."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import textwrap
import unittest
from unittest import mock

import heddle
from heddle._record import Library

BUSY = """
def busy(n):
    total = 0
    for i in range(n):
        total += i * i
    return total
"""


def busy(n):
    total = 0
    for i in range(n):
        total += i * i
    return total


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


class InThisProcess(unittest.TestCase):
    def test_a_block(self):
        with heddle.profile("a block", rate=1000) as recording:
            with self.assertRaises(heddle.InputError):
                recording.profile
            with self.assertRaises(heddle.InputError) as caught:
                with heddle.profile():
                    pass
            self.assertIn("already", str(caught.exception))
            busy(3000000)
        rows = Rows(recording.profile.data)
        self.assertEqual(rows.form["title"], "a block")
        self.assertGreater(rows.total("busy"), 0.5 * rows.total("all"))
        self.assertIn("busy", recording.profile)
        self.assertIn("busy", recording.profile.html)

    def test_what_could_not_be_finished_says_why(self):
        stop = Library.stop
        with mock.patch.object(Library, "why", lambda _: "the disk is full"):
            with mock.patch.object(Library, "stop", lambda library: None if stop(library) else ""):
                with heddle.profile() as recording:
                    pass
        with self.assertRaises(heddle.InternalError) as caught:
            recording.profile
        self.assertIn("the disk is full", str(caught.exception))

    def test_an_exception_ends_it(self):
        with self.assertRaises(ZeroDivisionError):
            with heddle.profile():
                1 / 0
        with heddle.profile() as recording:
            pass
        self.assertEqual(recording.profile.data["format"], "heddle-profile")
        with self.assertRaises(heddle.InputError):
            with heddle.profile(rate=0):
                pass


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


class Programs(Profiled):
    def test_status_output_and_lines(self):
        script = self.write("train.py", BUSY + textwrap.dedent("""
            import sys
            def hot():
                return busy(4000000)
            def cold():
                return busy(1000000)
            print(hot() + cold(), sys.argv[1:])
            sys.exit(7)
            """))
        done, rows = self.run_profiled(sys.executable, script, "--", "x y", status=7)
        self.assertEqual(done.stdout.splitlines()[0], f"{busy(4000000) + busy(1000000)} ['--', 'x y']")
        self.assertGreater(rows.total("hot"), 1.5 * rows.total("cold"))
        self.assertGreater(rows.total("cold"), 0)
        self.assertIn(["exit status", "7"], rows.form["facts"])
        self.assertIn(["busy", "hot", "<module>"], rows.paths("busy"))
        lines = {rows.lines[node] for node, name in enumerate(rows.names) if name == "busy"}
        self.assertTrue(lines <= {4, 5}, lines)
        sources = {rows.form["strings"][source["file"]]: source["text"] for source in rows.form["sources"]}
        self.assertEqual(sources["train.py"], script.read_text())

    def test_threads_children_and_forks(self):
        script = self.write("many.py", BUSY + textwrap.dedent("""
            import os, subprocess, sys, threading
            def in_thread():
                busy(2000000)
            def in_fork():
                busy(2000000)
            if sys.argv[1:]:
                def in_child():
                    busy(2000000)
                in_child()
                sys.exit()
            thread = threading.Thread(target=in_thread)
            thread.start()
            thread.join()
            subprocess.run([sys.executable, __file__, "child"], check=True)
            child = os.fork()
            if child == 0:
                in_fork()
                sys.exit()
            os.waitpid(child, 0)
            """))
        _, rows = self.run_profiled(sys.executable, script)
        for name in ("in_thread", "in_child", "in_fork"):
            self.assertGreater(rows.total(name), 0, name)
        self.assertIn(["busy", "in_thread"], rows.paths("busy"))  # no frame of threading
        self.assertEqual(sum(name == "process" for name, _ in rows.form["facts"]), 3)

    def test_code_that_is_gone_when_samples_are_read(self):
        script = self.write("made.py", """
            for k in range(60):
                names = {}
                exec(compile("\\n" * k + f"def made{k}():\\n  s = 0\\n  for i in range(150000):\\n    s += i * i\\nmade{k}()", "<made>",
                             "exec"), names)
                del names
                others = [compile("1", "<other>", "eval") for _ in range(500)]  # where it was
            """)
        _, rows = self.run_profiled(sys.executable, script)
        made = [node for node, name in enumerate(rows.names) if name.startswith("made")]
        self.assertGreater(sum(rows.values["CPU"][node] for node in made), 0.5 * rows.total("<module>"))
        for node in made:
            k = int(rows.names[node][4:])
            self.assertIn(rows.lines[node], range(k + 1, k + 5))
            self.assertEqual(rows.lines[rows.parents[node]], k + 5)

    def test_deep_recursion_and_timers_of_the_program(self):
        script = self.write("deep.py", BUSY + textwrap.dedent("""
            import signal, time
            def down(n):
                return busy(3000000) if n == 0 else down(n - 1)
            hits = []
            signal.signal(signal.SIGPROF, lambda *_: hits.append(1))
            signal.setitimer(signal.ITIMER_PROF, 0.02, 0.02)
            down(300)
            signal.setitimer(signal.ITIMER_PROF, 0)
            print("hit" if hits else "not hit")
            """))
        done, rows = self.run_profiled(sys.executable, script)
        self.assertEqual(done.stdout.splitlines()[0], "hit")
        self.assertIn(["busy"] + ["down"] * 301 + ["<module>"], rows.paths("busy"))
        self.assertGreater(rows.total("busy"), 0.5 * rows.total("all"))

    def test_programs_that_become_others_and_that_leave_at_once(self):
        script = self.write("becomes.py", BUSY + textwrap.dedent("""
            import multiprocessing, os, sys
            def before(): busy(1500000)
            def after(): busy(1500000)
            def in_worker(): busy(1500000)
            if sys.argv[1:]:
                after()
                os._exit(5)
            worker = multiprocessing.get_context("fork").Process(target=in_worker)
            worker.start()
            worker.join()
            before()
            os.execv(sys.executable, [sys.executable, __file__, "again"])
            """))
        _, rows = self.run_profiled(sys.executable, script, status=5)
        for name in ("in_worker", "before", "after"):
            self.assertGreater(rows.total(name), 0, name)

    def test_signals_are_those_of_the_caller(self):
        script = self.write("signals.py", "import signal\nprint(signal.getsignal(2) == signal.SIG_IGN, signal.pthread_sigmask(0, []))\n")
        for ignore, expected in ("", "False set()"), ('trap "" INT; ', "True set()"):
            command = f'{ignore}exec "$0" -m heddle profile -- "$0" "$1"'
            done = subprocess.run(["sh", "-c", command, sys.executable, script], capture_output=True, text=True, timeout=120)
            self.assertEqual(done.stdout.splitlines()[:1], [expected], done.stderr)

    def test_the_header_names_the_heaviest_of_many_processes(self):
        script = self.write("crowd.py", BUSY + textwrap.dedent("""
            import os
            for _ in range(11):
                child = os.fork()
                if child == 0:
                    busy(10000)
                    os._exit(0)
                os.waitpid(child, 0)
            busy(1000000)
            """))
        _, rows = self.run_profiled(sys.executable, script)
        self.assertEqual(sum(name == "process" for name, _ in rows.form["facts"]), 8)
        self.assertIn(["other processes", "4"], rows.form["facts"])

    def test_of_a_killed_program_most_is_kept(self):
        script = self.write("killed.py", BUSY + textwrap.dedent("""
            import os, signal, time
            begin = time.monotonic()
            while time.monotonic() < begin + 2:
                busy(100000)
            os.kill(os.getpid(), signal.SIGKILL)
            """))
        _, rows = self.run_profiled(sys.executable, script, status=128 + signal.SIGKILL)
        self.assertGreater(rows.total("busy"), 0)

    def test_ranks(self):
        script = self.write("ranks.py", BUSY + textwrap.dedent("""
            import os, subprocess, sys
            if "RANK" in os.environ:
                busy(1000000 * (1 + 3 * int(os.environ["RANK"])))
                sys.exit()
            ranks = [subprocess.Popen([sys.executable, __file__], env={**os.environ, "RANK": str(rank)}) for rank in range(2)]
            for rank in ranks:
                rank.wait()
            """))
        _, rows = self.run_profiled(sys.executable, script)
        processes = {value for name, value in rows.form["facts"] if name == "process"}
        self.assertTrue({"rank 0", "rank 1"} <= processes, processes)

    def test_a_part_that_cannot_be_read_is_left_out(self):
        script = self.write("torn.py", BUSY + textwrap.dedent("""
            import os, sys
            open(os.environ["HEDDLE_PROFILE_FILE"] + ".torn", "w").write("{")
            busy(1000000)
            sys.exit(3)
            """))
        _, rows = self.run_profiled(sys.executable, script, status=3)
        self.assertGreater(rows.total("busy"), 0)
        self.assertIn("torn", dict(rows.form["facts"])["left out, a process"])

    def test_modules_and_phases_of_torch(self):
        self.write_modules()
        self.write("torch/autograd/__init__.py", BUSY + textwrap.dedent("""
            def backward():
                busy(1000000)
            """))
        script = self.write("train.py", BUSY + textwrap.dedent("""
            import torch.autograd
            from torch import nn
            class Layer(nn.Module):
                def forward(self, n):
                    return busy(n)
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.layer1 = Layer()
                    self.layer2 = Layer()
                def forward(self):
                    return self.layer1(2000000) + self.layer2(1000000)
            def main():
                net = Net()  # gone when the program ends
                net()
                torch.autograd.backward()
            main()
            """))
        _, rows = self.run_profiled(sys.executable, script, PYTHONPATH=os.pathsep.join([str(self.path), os.environ.get("PYTHONPATH", "")]))
        modules = {rows.names[node] for node in range(len(rows.names)) if rows.kinds[node] == "module"}
        self.assertEqual(modules, {"Net", "layer1", "layer2"})
        self.assertTrue(any(path[:2] == ["Layer.forward", "layer1"] and "Net" in path for path in rows.paths("Layer.forward")))
        self.assertTrue(any("backward" in path for path in rows.paths("busy")))
        self.assertTrue(all(path[1] == "forward" for path in rows.paths("Net")))
        self.assertEqual(len(rows.paths("forward")), 1)  # a module within another begins none
        self.assertFalse(any(name.endswith("_call_impl") for name in rows.names))
        _, rows = self.run_profiled(sys.executable, script, options=["--all-frames"],
                                    PYTHONPATH=os.pathsep.join([str(self.path), os.environ.get("PYTHONPATH", "")]))
        self.assertTrue(any(name.endswith("_call_impl") for name in rows.names))

    def test_sitecustomize_of_the_environment_runs_too(self):
        self.write("own/sitecustomize.py", "import builtins\nbuiltins.from_own_sitecustomize = 41\n")
        script = self.write("uses.py", "print(from_own_sitecustomize + 1)\n")
        path = os.pathsep.join([str(self.path / "own"), os.environ.get("PYTHONPATH", "")])
        done, _ = self.run_profiled(sys.executable, "-W", "error", "-X", "warn_default_encoding", script, PYTHONPATH=path)
        self.assertEqual(done.stdout.splitlines()[0], "42")
        self.assertEqual(done.stderr, "")

    def test_what_cannot_be_profiled(self):
        done, rows = self.run_profiled("/nonexistent/program", status=4)
        self.assertIn("cannot be started", done.stderr)
        done, rows = self.run_profiled("true", status=2)
        self.assertIn("no process of it left a profile", done.stderr)
        self.assertIsNone(rows)
        done, _ = self.run_profiled("true", options=["model.onnx"], status=2)
        self.assertIn("either a model or a program", done.stderr)


def gpus_of_torch():
    try:
        import torch
        return torch.cuda.device_count()
    except ImportError:
        return 0


@unittest.skipUnless(os.environ.get("HEDDLE_CUDA_DRIVER"), "needs a GPU or the emulator")
class OnADevice(Profiled):
    def test_kernels_hang_below_the_lines_that_launch_them(self):
        script = self.write("launch.py", """
            import numpy as np
            import heddle
            import heddle.tile as triton
            import heddle.tile.language as tl

            @triton.jit
            def add_kernel(x, out, n, B: tl.constexpr):
                at = tl.program_id(0) * B + tl.arange(0, B)
                tl.store(out + at, tl.load(x + at, at < n) + 1, at < n)

            def twice(x, out):
                add_kernel[(4,)](x, out, 1000, B=256)
                add_kernel[(4,)](x, out, 1000, B=256)

            x = heddle.tensor(np.ones(1000, np.float32), device="cuda:0")
            out = heddle.tensor(np.zeros(1000, np.float32), device="cuda:0")
            twice(x, out)
            for _ in range(3):
                add_kernel[(4,)](x, out, 1000, B=256)
            print(out.numpy()[0])
            """)
        done, rows = self.run_profiled(sys.executable, script)
        self.assertEqual(done.stdout.splitlines()[0], "2.0")
        launches = {}
        for node, count in enumerate(rows.values["LAUNCHES"]):
            if count:
                caller = rows.parents[node]
                key = (rows.names[caller], rows.lines[caller])
                launches[key] = launches.get(key, 0) + count
        self.assertEqual(launches, {("twice", 13): 1, ("twice", 14): 1, ("<module>", 20): 3})
        self.assertEqual(sum(rows.values["GXCOPY:H2D:B"]), 8000)
        self.assertEqual(sum(rows.values["GXCOPY:D2H:B"]), 4000)
        _, rows = self.run_profiled(sys.executable, script, options=["--no-gpu"])
        self.assertNotIn("LAUNCHES", rows.values)

    def test_modules_that_one_line_calls_are_told_apart(self):
        self.write_modules()
        script = self.write("net.py", """
            import numpy as np
            import heddle
            import heddle.tile as triton
            import heddle.tile.language as tl
            from torch import nn

            @triton.jit
            def fill(out, value, B: tl.constexpr):
                tl.store(out + tl.arange(0, B), tl.full([B], value, tl.float32))

            class Layer(nn.Module):
                def forward(self, out):
                    fill[(1,)](out, 1.0, B=16)

            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.first, self.second = Layer(), Layer()
                def forward(self, out):
                    for layer in (self.first, self.second, self.second):
                        layer(out)

            net = Net()
            for _ in range(2):
                net(heddle.tensor(np.zeros(16, np.float32), device="cuda:0"))
            """)
        _, rows = self.run_profiled(sys.executable, script,
                                    PYTHONPATH=os.pathsep.join([str(self.path), os.environ.get("PYTHONPATH", "")]))
        self.assertEqual(rows.total("first", "LAUNCHES"), 2)
        self.assertEqual(rows.total("second", "LAUNCHES"), 4)

    @unittest.skipIf("emulator" not in os.environ.get("HEDDLE_CUDA_DRIVER", ""), "on a GPU a thread needs a context")
    def test_threads_of_backward_work_for_the_line_that_called_it(self):
        self.write_modules()
        self.write("torch/autograd/__init__.py", """
            def backward(work):
                work()
            """)
        # One thread for all, as autograd has one for a device.
        source = self.write("engine.cc", """
            #include <condition_variable>
            #include <mutex>
            #include <thread>
            std::mutex& mutex = *new std::mutex;  // the thread waits beyond the end of main()
            std::condition_variable& changed = *new std::condition_variable;
            void (*work)(unsigned long) = nullptr;
            unsigned long value;
            void serve() {
              for (std::unique_lock lock(mutex);;) {
                changed.wait(lock, [] { return work != nullptr; });
                work(value);
                work = nullptr;
                changed.notify_all();
              }
            }
            extern "C" void run(void (*function)(unsigned long), unsigned long argument) {
              static std::thread* thread = new std::thread(serve);
              std::unique_lock lock(mutex);
              work = function, value = argument;
              changed.notify_all();
              changed.wait(lock, [] { return work == nullptr; });
            }
            """)
        subprocess.run([os.environ.get("HEDDLE_CXX", "c++"), "-std=c++17", "-shared", "-fPIC", "-pthread", source, "-o",
                        self.path / "engine.so"], check=True)
        script = self.write("threads.py", """
            import ctypes
            import os
            import numpy as np
            import heddle
            import torch.autograd

            engine = ctypes.CDLL(os.path.join(os.path.dirname(__file__), "engine.so"))
            cuda = ctypes.CDLL(os.environ["HEDDLE_CUDA_DRIVER"])
            keep = heddle.tensor(np.zeros(16, np.float32), device="cuda:0")

            class Memory:
                def __init__(self, size):
                    self.address = ctypes.c_uint64()
                    assert cuda.cuMemAlloc_v2(ctypes.byref(self.address), ctypes.c_size_t(size)) == 0
                def free_in_a_thread(self):
                    engine.run(ctypes.cast(cuda.cuMemFree_v2, ctypes.c_void_p), self.address)

            def step(size):
                torch.autograd.backward(Memory(size).free_in_a_thread)

            for _ in range(3):
                step(1 << 20)
            torch.autograd.backward(Memory(1 << 21).free_in_a_thread)
            torch.autograd.backward(Memory(1 << 22).free_in_a_thread)
            Memory(1 << 23).free_in_a_thread()
            """)
        _, rows = self.run_profiled(sys.executable, script,
                                    PYTHONPATH=os.pathsep.join([str(self.path), os.environ.get("PYTHONPATH", "")]))
        freed = {}
        for node, size in enumerate(rows.values["GMEM:free"]):
            if size >= 1 << 20:
                above = rows.parents[node]
                while above and rows.names[above] != "backward":
                    above = rows.parents[above]
                caller = rows.parents[above]
                key = (rows.names[caller], rows.lines[caller]) if above else None
                freed[key] = freed.get(key, 0) + size
        self.assertEqual(freed, {("step", 20): 3 << 20, ("<module>", 24): 1 << 21, ("<module>", 25): 1 << 22, None: 1 << 23})

    @unittest.skipIf(gpus_of_torch() < 2, "needs PyTorch and two GPUs")
    def test_ranks_that_differ(self):
        script = self.write("ranks.py", """
            import os
            import torch
            import torch.distributed
            from torch import nn

            rank = int(os.environ["LOCAL_RANK"])
            torch.cuda.set_device(rank)
            torch.distributed.init_process_group("nccl")

            def uneven(x):
                for _ in range(3 + 17 * rank):
                    x = torch.nn.functional.normalize(x @ x.T @ x)
                return x

            net = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(2048, 2048), nn.Linear(2048, 2048)).cuda())
            optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
            data = torch.randn(2048, 2048, device="cuda")
            for _ in range(10):
                optimizer.zero_grad()
                net(uneven(data)).sum().backward()
                optimizer.step()
            torch.cuda.synchronize()
            torch.distributed.destroy_process_group()
            """)
        _, rows = self.run_profiled(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", script)
        processes = {value for name, value in rows.form["facts"] if name == "process"}
        self.assertTrue({"rank 0", "rank 1"} <= processes, processes)
        advice = {each["rule"]: each for each in rows.form["advice"]}
        self.assertTrue(any("nccl" in name for name in rows.names))
        self.assertIn("rank 1", advice["load_imbalance"]["evidence"])
        self.assertIn("uneven", rows.path(advice["load_imbalance"]["node"]))


if __name__ == "__main__":
    on_device = bool(os.environ.get("HEDDLE_CUDA_DRIVER"))  # the rest is the same there
    unittest.main(defaultTest="OnADevice" if on_device else None)
