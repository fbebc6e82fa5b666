"""Optimisers over a table of tensors, compared with torch.optim in float64."""
import copy
import math
import os
import pickle
import sys
import tempfile
import unittest

import numpy as np

try:
    import torch
except ImportError:
    sys.exit("skipped: there is no torch")

import heddle
import heddle.tile.language as tl
import heddle.torch
from heddle.torch import optim
from heddle.torch.optim import kernels

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
EMULATED = "emulator" in os.environ.get("HEDDLE_CUDA_DRIVER", "")


class Module(torch.nn.Module):
    """Parameters of odd sizes, one without elements, a number, and one in another memory format."""

    def __init__(self):
        super().__init__()
        self.filters = torch.nn.Parameter(torch.randn(5, 3, 3, 3).to(memory_format=torch.channels_last))
        self.matrix = torch.nn.Parameter(torch.randn(193, 257))
        self.bias = torch.nn.Parameter(torch.randn(257))
        self.scale = torch.nn.Parameter(torch.randn(()))
        self.empty = torch.nn.Parameter(torch.randn(0, 4))


def pair(dtype=torch.float32):
    """A module, and the same in float64."""
    module = Module().to(DEVICE, dtype)
    return module, copy.deepcopy(module).double()


def groups(module):
    return [{"params": [module.filters, module.matrix], "weight_decay": 0.1, "lr": 3e-3}, {"params": [module.bias, module.scale, module.empty]}]


def set_gradients(module, wide, scale=1.0, strides=False):
    """Without `strides`, the gradient of the filters does not have those of the filters."""
    for parameter, other in zip(module.parameters(), wide.parameters()):
        gradient = torch.randn(parameter.shape, device=DEVICE).to(parameter.dtype)
        parameter.grad = torch.empty_like(parameter).copy_(gradient) if strides else gradient
        other.grad = parameter.grad.double()
        parameter.grad *= scale


def error(module, wide):
    return max((one - other).abs().max().item() for one, other in zip(module.parameters(), wide.parameters()) if one.numel())


CASES = (("AdamW", {}), ("AdamW", {"amsgrad": True, "maximize": True}), ("Adam", {"betas": (0.5, 0.9), "eps": 1e-3}), ("SGD", {}),
         ("SGD", {"momentum": 0.9, "maximize": True}), ("SGD", {"momentum": 0.9, "nesterov": True}))


class Steps(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def test_steps_are_those_of_torch(self):
        for name, words in CASES:
            for max_norm in (None, 1.0):
                with self.subTest(name=name, max_norm=max_norm, **words):
                    module, wide = pair()
                    ours = getattr(optim, name)(groups(module), lr=1e-2, max_norm=max_norm, **words)
                    theirs = getattr(torch.optim, name)(groups(wide), lr=1e-2, **words)
                    for step in range(4):
                        set_gradients(module, wide)
                        if step == 1:
                            module.bias.grad = wide.bias.grad = None
                        if max_norm:
                            norm = torch.nn.utils.clip_grad_norm_(wide.parameters(), max_norm)
                        ours.step()
                        theirs.step()
                        if max_norm:
                            self.assertAlmostEqual(ours.grad_norm.item() / norm.item(), 1, places=6)
                    self.assertLess(error(module, wide), 2e-6)
                    kept, other = ours.state_dict(), theirs.state_dict()
                    self.assertEqual(kept["state"].keys(), other["state"].keys())
                    for i, states in kept["state"].items():
                        self.assertEqual(states.keys(), {key for key, value in other["state"][i].items() if value is not None})

    def test_lion(self):
        module, wide = pair()
        ours = optim.Lion(module.parameters(), lr=1e-2, weight_decay=0.1)
        means = [torch.zeros_like(one) for one in wide.parameters()]
        for _ in range(4):
            set_gradients(module, wide)
            ours.step()
            with torch.no_grad():
                for parameter, mean in zip(wide.parameters(), means):
                    parameter.mul_(1 - 1e-3).sub_((0.9 * mean + 0.1 * parameter.grad).sign(), alpha=1e-2)
                    mean.mul_(0.99).add_(parameter.grad, alpha=0.01)
        self.assertLess(error(module, wide), 2e-6)

    def test_narrow_parameters_have_wide_states(self):
        for dtype in (torch.bfloat16, torch.float16):
            module, wide = pair(dtype)
            ours = optim.AdamW(module.parameters(), lr=1e-2)
            set_gradients(module, wide)
            torch.optim.AdamW(wide.parameters(), lr=1e-2).step()
            ours.step()
            for one, other in zip(module.parameters(), wide.parameters()):
                torch.testing.assert_close(one.double(), other, rtol=torch.finfo(dtype).eps / 2 * 1.001, atol=1e-6)
            again = optim.AdamW(module.parameters(), lr=1e-2)
            again.load_state_dict(ours.state_dict())
            for parameter in module.parameters():
                for name, value in ours.state[parameter].items():
                    self.assertEqual(again.state[parameter][name].dtype, torch.float32)
                    torch.testing.assert_close(again.state[parameter][name], value, rtol=0, atol=0)

    def test_checkpoints_go_both_ways(self):
        for name, words in CASES:
            for first, second in ((optim, torch.optim), (torch.optim, optim)):
                with self.subTest(name=name, first=first.__name__, **words):
                    module, wide = pair()
                    reference = getattr(torch.optim, name)(wide.parameters(), lr=1e-2, **words)
                    optimizer = getattr(first, name)(module.parameters(), lr=1e-2, **words)
                    for step in range(4):
                        if step == 2:
                            loaded = getattr(second, name)(module.parameters(), lr=0.5)
                            loaded.load_state_dict(copy.deepcopy(optimizer.state_dict()))
                            optimizer = loaded
                        set_gradients(module, wide, strides=True)  # which PyTorch's fused kernels want
                        optimizer.step()
                        reference.step()
                    self.assertLess(error(module, wide), 3e-6)

    def test_copies_keep_their_norm(self):
        module, wide = pair()
        ours = optim.AdamW(module.parameters(), max_norm=1.0)
        set_gradients(module, wide)
        ours.step()
        other, ours = pickle.loads(pickle.dumps((module, ours)))
        set_gradients(other, wide)
        ours.step()
        self.assertGreater(ours.grad_norm.item(), 1)

    def test_scaler_unscales_and_skips(self):
        module, wide = pair()
        ours, theirs = optim.AdamW(module.parameters(), lr=1e-2, max_norm=5.0), torch.optim.AdamW(wide.parameters(), lr=1e-2)
        scaler = torch.amp.GradScaler(DEVICE, init_scale=1024.0)
        for step in range(4):
            set_gradients(module, wide, scaler.scale(torch.ones((), device=DEVICE)))
            if step == 1:
                module.matrix.grad[3, 4] = math.inf
                before = copy.deepcopy(module)
            scaler.step(ours)
            scaler.update()
            if step == 1:
                self.assertEqual(error(module, before), 0)
            else:
                torch.nn.utils.clip_grad_norm_(wide.parameters(), 5.0)
                theirs.step()
        self.assertLess(error(module, wide), 2e-6)
        self.assertEqual(ours.state[module.bias]["step"].item(), 3)

    def test_learning_rates_change(self):
        module, wide = pair()
        ours = optim.SGD(module.parameters(), lr=torch.tensor(0.0, device=DEVICE), momentum=0.9)
        theirs = torch.optim.SGD(wide.parameters(), lr=0.0, momentum=0.9)
        for rate in (0.0, 0.1, 0.01):
            ours.param_groups[0]["lr"].fill_(rate)
            theirs.param_groups[0]["lr"] = rate
            set_gradients(module, wide)
            self.assertEqual(ours.step(lambda: 7), 7)
            theirs.step()
        ours.param_groups[0]["lr"] = theirs.param_groups[0]["lr"] = 0.5
        set_gradients(module, wide)
        ours.step()
        theirs.step()
        self.assertLess(error(module, wide), 2e-6)

    def test_parameters_and_states_move(self):
        module, wide = pair()
        ours, theirs = optim.AdamW([module.matrix], lr=1e-2), torch.optim.AdamW([wide.matrix], lr=1e-2)
        for step in range(4):
            if step == 1:
                ours.add_param_group({"params": [module.bias]})
                theirs.add_param_group({"params": [wide.bias]})
            if step == 2:
                module.matrix.data = module.matrix.data.clone()
            if step == 3:  # to an address that is a multiple of 4 only
                memory = torch.empty(module.matrix.numel() + 1, device=DEVICE)
                module.matrix.data = memory[1:].view_as(module.matrix).copy_(module.matrix.data)
            set_gradients(module, wide)
            ours.step()
            theirs.step()
        self.assertLess(error(module, wide), 2e-6)

    def test_norms_are_the_same_each_time(self):
        module, wide = pair()
        set_gradients(module, wide)
        norms = set()
        for _ in range(20):
            ours = optim.SGD(module.parameters(), lr=0.0, max_norm=1.0)
            ours.step()
            norms.add(ours.grad_norm.item())
        self.assertEqual(len(norms), 1)

    def test_with_compiled_modules(self):
        model = torch.nn.Linear(7, 5).to(DEVICE)
        compiled = torch.compile(model, backend=heddle.torch.heddle_backend)
        ours = heddle.torch.optim.SGD(model.parameters(), lr=0.1)
        x = torch.randn(3, 7, device=DEVICE)

        @torch.compile(backend=heddle.torch.heddle_backend)
        def step():
            ours.zero_grad()
            model(x).square().sum().backward()
            ours.step()

        for _ in range(3):
            with torch.no_grad():
                torch.testing.assert_close(compiled(x), model(x))  # weights are packed, and found to have changed
            step()

    @unittest.skipUnless(torch.distributed.is_available(), "there is no torch.distributed")
    def test_shards(self):
        from torch.distributed.tensor import DeviceMesh, Shard, distribute_tensor

        with tempfile.TemporaryDirectory() as folder:
            torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
            try:
                mesh = DeviceMesh(DEVICE, [0])
                values, gradient = torch.randn(2, 6, 5, device=DEVICE)
                shard = torch.nn.Parameter(distribute_tensor(values.clone(), mesh, [Shard(0)]))
                whole = torch.nn.Parameter(values.clone())
                shard.grad, whole.grad = distribute_tensor(gradient, mesh, [Shard(0)]), gradient
                for one in (optim.AdamW([shard], lr=0.1), torch.optim.AdamW([whole], lr=0.1)):
                    one.step()
                torch.testing.assert_close(shard.full_tensor(), whole)
                with self.assertRaisesRegex(heddle.InputError, "shards"):
                    optim.AdamW([shard], max_norm=1.0).step()
            finally:
                torch.distributed.destroy_process_group()

    def test_what_is_refused(self):
        parameter = torch.nn.Parameter(torch.zeros(4, 3, device=DEVICE))

        def stepped(make, gradient, of=parameter):
            of.grad = gradient
            make([of]).step()
        dense = torch.ones(4, 3, device=DEVICE)
        wide = torch.nn.Parameter(torch.zeros(3, dtype=torch.float64, device=DEVICE))
        gaps = torch.nn.Parameter(torch.zeros(4, 6, device=DEVICE)[:, :3])
        for make, gradient, of, why in (
                (lambda one: optim.SGD(one, momentum=0.9, dampening=0.5), dense, parameter, "dampening"),
                (optim.AdamW, dense.to_sparse(), parameter, "sparse"),
                (optim.AdamW, torch.ones_like(wide), wide, "float64"),
                (optim.AdamW, dense, gaps, "gaps"),
                (lambda one: optim.AdamW(one, max_norm=-1.0), dense, parameter, "max_norm is -1.0")):
            with self.subTest(why), self.assertRaisesRegex(heddle.InputError, why):
                stepped(make, gradient, of)

    @unittest.skipUnless(DEVICE == "cuda", "a CUDA graph needs a GPU")
    def test_captured_steps(self):
        module, wide = pair()
        ours = optim.AdamW(module.parameters(), lr=1e-2, max_norm=1.0)
        theirs = torch.optim.AdamW(wide.parameters(), lr=1e-2)
        with self.assertRaisesRegex(heddle.InputError, "before the capture"), torch.cuda.graph(torch.cuda.CUDAGraph()):
            set_gradients(module, wide)
            ours.step()

        def follow():
            torch.nn.utils.clip_grad_norm_(wide.parameters(), 1.0)
            theirs.step()
        set_gradients(module, wide)
        ours.step()
        follow()
        static = [torch.randn_like(one) for one in module.parameters()]
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for parameter, value in zip(module.parameters(), static):
                parameter.grad = value * 2
            ours.step()
        for _ in range(3):
            for value, other in zip(static, wide.parameters()):
                value.normal_()
                other.grad = value.double() * 2
            graph.replay()
            follow()
        set_gradients(module, wide)
        ours.step()
        follow()
        self.assertLess(error(module, wide), 2e-6)


class Kernels(unittest.TestCase):
    @unittest.skipUnless(EMULATED, "there is no GPU or emulator")
    def test_on_an_emulated_gpu(self):
        random = np.random.default_rng(0)
        place = lambda array: heddle.tensor(array, device="cuda:0")  # noqa: E731
        sizes, first, second, rate, decay = (5, 768, 20001, 3 * 2048), 0.9, 0.999, 1e-2, 0.1
        values = [[random.standard_normal(size).astype(np.float32) for size in sizes] for _ in range(3)]
        values.append([abs(random.standard_normal(size)).astype(np.float32) for size in sizes])
        tensors = [[place(one) for one in column] for column in values]
        steps = [place(np.full(1, 3, np.float32)) for _ in sizes]
        numbers = np.array([rate, first, 1 - first, math.log(first), second, 1 - second, math.log(second), 1e-8, decay, 0, 1, 0], np.float32)
        rows = np.zeros((len(sizes), kernels.ROW), np.int64)
        for row, parameter, gradient, mean, square, step, size in zip(rows, *tensors, steps, sizes):
            row[kernels.Column.PARAMETER], row[kernels.Column.GRADIENT] = parameter.data_ptr, gradient.data_ptr
            row[kernels.Column.STEP], row[kernels.Column.NUMBERS], row[kernels.Column.SIZE] = step.data_ptr, rows.size, size
            row[kernels.Column.STATES:kernels.Column.STATES + 2] = mean.data_ptr, square.data_ptr
        words = place(np.concatenate([rows.ravel(), numbers.view(np.int64)]))
        chunks = np.array([(i << 32) + chunk for i, size in enumerate(sizes) for chunk in range(-(-size // 8192))], np.int64)
        count, partials, norm = place(np.zeros(1, np.int32)), place(np.zeros(len(chunks), np.float32)), place(np.zeros(1, np.float32))
        shared = {"GRADIENT": tl.float32, "CHUNK": 8192, "BLOCK": 2048, "ALIGNMENT": 16, "num_warps": 8}
        kernels.norm_kernel[(len(chunks),)](words, place(chunks), partials, 0, len(chunks), count, norm, None, **shared)
        kernel = kernels.update_kernel[(len(chunks),)](
            words, place(chunks), len(sizes), len(chunks), count, None, None, norm, 1.0, SCALARS=kernels.adam_scalars, RULE=kernels.adam,
            STATES=2, COUNTS=True, PARAMETER=tl.float32, **shared)
        self.assertIn("block::load<4>", kernel.text)  # vectors of 16 bytes
        wide = math.sqrt(sum((one.astype(np.float64)**2).sum() for one in values[1]))
        self.assertAlmostEqual(norm.numpy()[0] / wide, 1, places=6)
        for i in range(len(sizes)):
            p, g, mean, square = (column[i].astype(np.float64) for column in values)
            g /= wide
            mean, square = first * mean + (1 - first) * g, second * square + (1 - second) * g * g
            p = p * (1 - rate * decay) - rate / (1 - first**4) * mean / (np.sqrt(square / (1 - second**4)) + 1e-8)
            np.testing.assert_allclose(tensors[0][i].numpy(), p, rtol=1e-6, atol=1e-6)
            np.testing.assert_allclose(tensors[2][i].numpy(), mean, rtol=1e-6, atol=1e-6)
            np.testing.assert_allclose(tensors[3][i].numpy(), square, rtol=1e-6, atol=1e-6)
            self.assertEqual(steps[i].numpy()[0], 4)


if __name__ == "__main__":
    unittest.main()
