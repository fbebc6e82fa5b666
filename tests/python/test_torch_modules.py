"""torch.compile(backend="heddle") in programs around modules: data-parallel training, autocast, copies, loading, modes."""
import copy
import gc
import tempfile
import unittest
from unittest import mock

import test_torch_backend  # it ends the program where there is no torch
import torch
from test_torch_backend import REFERENCE
from torch.nn import functional as F

import heddle.torch


class Net(torch.nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.first, self.norm, self.second = torch.nn.Linear(6, width), torch.nn.LayerNorm(width), torch.nn.Linear(width, width)

    def forward(self, x):
        return self.second(F.gelu(self.norm(self.first(x))))


WIDE = 520  # more parameters than the first bucket of DistributedDataParallel takes


def train_a_rank(rank, ranks, folder):
    """Two steps on every `ranks`-th row of a batch; the first rank saves its gradients and the kinds of its graphs."""
    from torch.nn.parallel import DistributedDataParallel

    from heddle.torch.backend import observed

    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=ranks)
    torch.manual_seed(0)
    module, batch = Net(WIDE), torch.randn(8, 6)
    parallel = DistributedDataParallel(module, bucket_cap_mb=1)  # several buckets, each of which is a graph
    with observed() as graphs:
        take_steps(torch.compile(parallel, backend=heddle.torch.heddle_backend, options=REFERENCE), module, batch[rank::ranks])
    if rank == 0:
        gradients = {name: parameter.grad for name, parameter in module.named_parameters()}
        torch.save((gradients, [graph.kind for graph in graphs]), f"{folder}/gradients")
    torch.distributed.destroy_process_group()


def take_steps(run, module, batch):
    optimiser = torch.optim.SGD(module.parameters(), 0.1)
    for _ in range(2):
        optimiser.zero_grad()
        run(batch).square().mean().backward()
        optimiser.step()


class Modules(test_torch_backend.Backend):
    def test_gradients_of_two_processes_are_those_of_one(self):
        with tempfile.TemporaryDirectory() as folder:
            torch.multiprocessing.spawn(train_a_rank, (2, folder), 2)
            gradients, kinds = torch.load(f"{folder}/gradients")
        torch.manual_seed(0)
        module, batch = Net(WIDE), torch.randn(8, 6)
        take_steps(module, module, batch)
        for name, parameter in module.named_parameters():
            torch.testing.assert_close(gradients[name], parameter.grad, msg=lambda why: f"{name}: {why}")  # noqa: B023
        self.assertEqual({kind: kinds.count(kind) for kind in kinds}, {"forward": 2, "backward": 2})

    def test_autocast_trains_in_bf16(self):
        module, x = Net(), torch.randn(5, 6)
        other = copy.deepcopy(module)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            got, want = self.compiled(module)(x), other(x)
        self.assertEqual(got.dtype, torch.bfloat16)
        torch.testing.assert_close(got, want, rtol=3e-2, atol=3e-2)
        for run in (got, want):
            run.float().square().mean().backward()
        for a, b in zip(module.parameters(), other.parameters()):
            self.assertEqual(a.grad.dtype, torch.float32)
            torch.testing.assert_close(a.grad, b.grad, rtol=5e-2, atol=3e-2)

    def test_copies_have_weights_of_their_own_and_states_are_those_of_the_module(self):
        module, x = Net(), torch.randn(5, 6)
        compiled = self.compiled(module, {})
        with torch.no_grad():
            compiled(x)
            twin = copy.deepcopy(compiled)
            twin.first.weight.zero_()
            torch.testing.assert_close(compiled(x), module(x))
            torch.testing.assert_close(twin(x), module.second(F.gelu(module.norm(module.first.bias))).expand(5, 16))
            twin.load_state_dict({"_orig_mod." + name: value for name, value in module.state_dict().items()})
            torch.testing.assert_close(twin(x), module(x))

    def test_packed_weights_end_with_their_module(self):
        with self.graphs() as graphs, torch.no_grad():
            for packs in (True, False, False):  # later modules have other weights
                module, x = Net(), torch.randn(5, 6)
                torch.testing.assert_close(self.compiled(module, {})(x), module(x))
                self.assertEqual(len(graphs[0]._weights.packed.programs), packs)
                del module
                gc.collect()
                self.assertFalse(graphs[0]._weights.packed.programs)
        self.assertEqual(len(graphs), 1)

    def test_modes(self):
        x = torch.randn(2, 6)
        for mode, tunes in (("default", False), ("reduce-overhead", False), ("max-autotune", True), ("max-autotune-no-cudagraphs", True)):
            torch._dynamo.reset()
            with mock.patch("heddle.torch.part.tune") as tuned, torch.no_grad():
                module = Net()
                compiled = torch.compile(module, backend=heddle.torch.heddle_backend, mode=mode)
                torch.testing.assert_close(compiled(x), module(x))
            self.assertEqual(tuned.called, tunes, mode)


if __name__ == "__main__":
    unittest.main()
