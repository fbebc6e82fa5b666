"""Profiles of Python programs that use a GPU, emulated or real."""
import os
import sys
import unittest

from profiled import Profiled

if not os.environ.get("HEDDLE_CUDA_DRIVER"):
    sys.exit("skipped: there is no GPU or emulator")


def gpus_of_torch():
    try:
        import torch
        return torch.cuda.device_count()
    except ImportError:
        return 0


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
        self.build("engine.so", """
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

    def test_ranges_and_operators(self):
        self.write_modules()
        self.write_nvtx()
        script = self.write("ranges.py", """
            import numpy as np
            import heddle
            import heddle.tile as triton
            import heddle.tile.language as tl
            import nvtx
            from torch import nn

            @triton.jit
            def fill(out, value, B: tl.constexpr):
                tl.store(out + tl.arange(0, B), tl.full([B], value, tl.float32))

            out = heddle.tensor(np.zeros(16, np.float32), device="cuda:0")

            class Layer(nn.Module):
                def forward(self, step):
                    assert nvtx.push(f"aten::linear, seq = {step}, op_id = 5") == 2
                    nvtx.push(f"aten::addmm, seq = {step + 1}")
                    fill[(1,)](out, 1.0, B=16)
                    nvtx.pop()
                    nvtx.pop()

            layer = Layer()
            for step in range(40):
                nvtx.push(f"step {step}")
                nvtx.push_registered("a phase")
                layer(step)
                assert nvtx.pop_registered() == 1
                assert nvtx.pop() == 0
            assert nvtx.pop() == -1
            fill[(1,)](out, 1.0, B=16)
            """)
        _, rows = self.run_profiled(sys.executable, script,
                                    PYTHONPATH=os.pathsep.join([str(self.path), os.environ.get("PYTHONPATH", "")]))
        launched = [(rows.path(node), count) for node, count in enumerate(rows.values["LAUNCHES"]) if count]
        self.assertEqual(sum(count for path, count in launched if "aten::addmm" not in path), 1)
        of_steps = [(path, count) for path, count in launched if "aten::addmm" in path]
        self.assertEqual(sum(count for _, count in of_steps), 40)
        self.assertEqual(dict((path[-1], count) for path, count in of_steps)["step #"], 8)  # the first 32 have rows of their own
        for path, _ in of_steps:
            self.assertEqual(path[1:3], ["aten::addmm", "aten::linear"])
            self.assertTrue(path[3].endswith("forward"), path)
            self.assertEqual(path[-2], "a phase")

    @unittest.skipIf("emulator" not in os.environ.get("HEDDLE_CUDA_DRIVER", ""), "on a GPU a thread needs a context")
    def test_backward_stands_below_the_forward_lines(self):
        self.write_modules()
        self.write_nvtx()
        self.write("torch/autograd/__init__.py", """
            def backward(work):
                work()
            """)
        self.build("engine.so", """
            #include <string>
            #include <thread>
            extern "C" void run(void (*push)(const char*), void (*pop)(), long long sequence, void (*work)(unsigned long),
                                unsigned long in_function, unsigned long behind_it) {
              std::thread([=] {
                push("autograd::engine::evaluate_function: AddmmBackward0, op_id = 8");
                push(("AddmmBackward0, seq = " + std::to_string(sequence)).c_str());
                work(in_function);
                pop();
                work(behind_it);
                pop();
              }).join();
            }
            """)
        script = self.write("backward.py", """
            import ctypes
            import os
            import numpy as np
            import heddle
            import nvtx
            import torch.autograd
            from torch import nn

            engine = ctypes.CDLL(os.path.join(os.path.dirname(__file__), "engine.so"))
            cuda = ctypes.CDLL(os.environ["HEDDLE_CUDA_DRIVER"])
            keep = heddle.tensor(np.zeros(16, np.float32), device="cuda:0")

            def allocated(size):
                address = ctypes.c_uint64()
                assert cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)) == 0
                return address

            class Layer(nn.Module):
                def forward(self, sequence):
                    nvtx.push(f"aten::addmm, seq = {sequence}")
                    self.addresses = allocated(1 << 20), allocated(1 << 20)
                    nvtx.pop()

            def step(layers, sequence):
                for i, layer in enumerate(layers):
                    layer(sequence + i)
                def work():
                    for i, layer in enumerate(layers):
                        engine.run(ctypes.c_void_p(nvtx.address_of[1, 9]), ctypes.c_void_p(nvtx.address_of[1, 11]), ctypes.c_longlong(sequence + i),
                                   ctypes.cast(cuda.cuMemFree_v2, ctypes.c_void_p), *layer.addresses)
                torch.autograd.backward(work)

            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.first, self.second = Layer(), Layer()

            net = Net()
            for sequence in 0, 2, 1 << 40:
                step([net.first, net.second], sequence)
            """)
        _, rows = self.run_profiled(sys.executable, script,
                                    PYTHONPATH=os.pathsep.join([str(self.path), os.environ.get("PYTHONPATH", "")]))
        modules = {}
        for node, size in enumerate(rows.values["GMEM:free"]):
            if size < 1 << 20:
                continue
            path = rows.path(node)
            self.assertEqual(path[1:3], ["AddmmBackward0", "allocated"])
            self.assertIn("backward", path)
            module = next(name for name in path if name in ("first", "second"))
            modules[module] = modules.get(module, 0) + size
        self.assertEqual(modules, {"first": 6 << 20, "second": 6 << 20})

    @unittest.skipIf(gpus_of_torch() < 1, "needs PyTorch and a GPU")
    def test_operators_of_pytorch(self):
        script = self.write("train.py", """
            import torch
            from torch import nn

            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.first, self.second = nn.Linear(64, 64), nn.Linear(64, 64)
                def forward(self, x):
                    return self.second(self.first(x).relu())

            net, x = Net().cuda(), torch.randn(64, 64, device="cuda")
            for step in range(3):
                torch.cuda.nvtx.range_push("a step")
                net(x).sum().backward()
                torch.cuda.nvtx.range_pop()
            """)
        _, rows = self.run_profiled(sys.executable, script, options=["--operators"])
        launched = [rows.path(node) for node, count in enumerate(rows.values["LAUNCHES"]) if count]
        self.assertTrue(any("aten::addmm" in path and path[-1] == "a step" for path in launched), launched)
        backward = [path for path in launched if "AddmmBackward0" in path]
        self.assertTrue(backward, launched)
        for path in backward:
            self.assertIn("backward", path)
            self.assertTrue("first" in path or "second" in path, path)

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
    unittest.main()
