"""Profiles of Python programs: heddle.profile() in this process, and `heddle profile -- PROGRAM` around others."""
import ctypes
import os
import signal
import subprocess
import sys
import textwrap
import unittest
from unittest import mock

import heddle
from heddle._record import Library
from profiled import Profiled, Rows

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


class InThisProcess(unittest.TestCase):
    def test_a_block(self):
        with heddle.profile("a block", rate=1000) as recording:
            with self.assertRaises(heddle.InputError):
                recording.profile
            self.assertIn("has not ended", repr(recording))
            self.assertIsNone(recording._repr_html_())
            with self.assertRaises(heddle.InputError) as caught:
                with heddle.profile():
                    pass
            self.assertIn("already", str(caught.exception))
            busy(3000000)
        rows = Rows(recording.profile.data)
        self.assertEqual(rows.form["title"], "a block")
        self.assertGreater(rows.total("busy"), 0.5 * rows.total("all"))
        self.assertIn("busy", str(recording.profile))
        self.assertIn("busy", repr(recording))
        self.assertIn("busy", recording._repr_html_())
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


def has_driver():
    try:
        ctypes.CDLL("libcuda.so.1")
        return True
    except OSError:
        return False


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
                others = [compile("1", "<other>", "eval") for _ in range(k % 3 * 250)]  # where it was, or the next is there
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

    @unittest.skipIf(has_driver(), "needs a machine without an NVIDIA driver")
    def test_cupti_without_a_driver(self):
        # CUPTI's first call crashes there, also where PyTorch has loaded it.
        library = self.build("libcupti.so.13", """
            #include <cstdlib>
            extern "C" int cuptiGetVersion(unsigned*) { std::abort(); }
            """)
        script = self.write("cupti.py", f"""
            import ctypes
            import heddle

            ctypes.CDLL({str(library)!r})
            with heddle.profile() as recording:
                pass
            print(dict(recording.profile.data["facts"])["GPU"])
            """)
        done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("there is no NVIDIA driver", done.stdout)

    def test_what_cannot_be_profiled(self):
        done, rows = self.run_profiled("/nonexistent/program", status=4)
        self.assertIn("cannot be started", done.stderr)
        for program, status in ((["true"], 0), (["false"], 1), (["sh", "-c", "exit 77"], 77)):
            done, rows = self.run_profiled(*program, status=status)
            self.assertIn("heddle: warning: ", done.stderr)
            self.assertIn("no process of it left a profile", done.stderr)
            self.assertIsNone(rows)
        # It removes what it was to leave its profile in.
        for status in (0, 7):
            script = self.write("removes.py", f"""
                import os
                import shutil
                import sys

                shutil.rmtree(os.path.dirname(os.environ["HEDDLE_PROFILE_FILE"]))
                sys.exit({status})
                """)
            done, rows = self.run_profiled(sys.executable, script, status=status)
            self.assertIn("no process of it left a profile that can be read", done.stderr)
            self.assertNotIn("HDL501", done.stderr)
            self.assertIsNone(rows)
        done, _ = self.run_profiled("true", options=["model.onnx"], status=2)
        self.assertIn("either a model or a program", done.stderr)


if __name__ == "__main__":
    unittest.main()
