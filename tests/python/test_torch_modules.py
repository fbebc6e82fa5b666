"""torch.compile(backend="heddle") in programs around modules: data-parallel training, autocast, copies, loading, modes, attention."""
import copy
import datetime
import gc
import os
import sys
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


def run_a_rank(rank, ranks, folder):
    """Everything that takes several processes, on every `ranks`-th row of a batch; the ranks save what they found."""
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=ranks,
                                         timeout=datetime.timedelta(seconds=60))
    for name, wrap, finish in (("replicated", replicated, same), ("sharded", sharded, gathered)):
        torch.save(train_a_rank(rank, ranks, wrap, finish), f"{folder}/{name}{rank}")
    torch.save(sum_over_ranks(rank), f"{folder}/sum{rank}")
    torch.save(error_of_a_divided_layer(ranks), f"{folder}/divided{rank}")
    torch.distributed.destroy_process_group()


def second_rank(_child, folder):
    run_a_rank(1, 2, folder)


def train_a_rank(rank, ranks, wrap, finish):
    """Two steps: the gradients, and the kinds of the graphs."""
    from heddle.torch.backend import observed

    torch._dynamo.reset()
    torch.manual_seed(0)
    module, batch = Net(WIDE), torch.randn(8, 6)
    parallel = wrap(module, ranks)
    with observed() as graphs:
        take_steps(torch.compile(parallel, backend=heddle.torch.heddle_backend, options=REFERENCE), module, batch[rank::ranks])
    return {name: finish(parameter.grad) for name, parameter in module.named_parameters()}, [graph.kind for graph in graphs]


def replicated(module, _ranks):
    return torch.nn.parallel.DistributedDataParallel(module, bucket_cap_mb=1)  # several buckets, each of which is a graph


def sharded(module, ranks):
    """By FSDP2, a layer and the rest of the module."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (ranks,))
    fully_shard(module.second, mesh=mesh)
    return fully_shard(module, mesh=mesh)


def same(gradient):
    return gradient


def gathered(gradient):
    return gradient.full_tensor()


def sum_over_ranks(rank):
    """A collective between two parts of one graph: its result, the parts, and the operators that PyTorch runs."""
    from torch.distributed._functional_collectives import all_reduce

    from heddle.torch.backend import observed

    x = torch.arange(6.0) + rank
    with observed() as graphs:
        function = lambda x: torch.tanh(all_reduce(x * 2, "sum", torch.distributed.group.WORLD) / 10)  # noqa: E731
        y = torch.compile(function, backend=heddle.torch.heddle_backend, options=REFERENCE, fullgraph=True)(x)
    graph, = graphs
    return y, len(graph.parts), [str(one.node.target) for one in graph.division.fallbacks]


def error_of_a_divided_layer(ranks):
    """Of the gradients of examples/python/tensor_parallel.py."""
    from torch.distributed.device_mesh import init_device_mesh

    sys.path.insert(0, os.environ.get("HEDDLE_EXAMPLES", os.path.join(os.path.dirname(__file__), "../../examples/python")))
    import tensor_parallel

    torch._dynamo.reset()
    step, error = tensor_parallel.train(init_device_mesh("cpu", (ranks,)), 24, 7, options=REFERENCE)
    step()
    return error


def take_steps(run, module, batch):
    optimiser = torch.optim.SGD(module.parameters(), 0.1)
    for _ in range(2):
        optimiser.zero_grad()
        run(batch).square().mean().backward()
        optimiser.step()


class Attention(test_torch_backend.Backend):
    """In graphs without gradients it is one operator of Heddle, which takes every mask."""

    def inputs(self, heads=4, shared=4, dtype=torch.float32):
        return [torch.randn(2, 5, one, 8, dtype=dtype).transpose(1, 2) for one in (heads, shared, shared)]

    def test_masks(self):
        seen = torch.rand(2, 1, 5, 5) > 0.4
        seen[1, 0, 3] = False  # a row of zeros in eager
        added = torch.randn(5, 5).masked_fill(~seen[0, 0], -torch.inf)
        for mask in (seen, added, seen[:1, :, :1], torch.zeros(5, 5, dtype=torch.bool)):
            with self.subTest(mask.shape), torch.no_grad(), self.graphs() as graphs:
                self.check(lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m), *self.inputs(), mask)
            self.assertEqual([str(node.target) for node in graphs[0].parts[0].nodes], ["heddle.attention.default"])

    def test_forms(self):
        attend = F.scaled_dot_product_attention
        with torch.no_grad():
            self.check(lambda q, k, v: attend(q, k, v, is_causal=True, scale=0.3), *self.inputs())
            self.check(lambda q, k, v: attend(q, k, v, enable_gqa=True).mean(1), *self.inputs(4, 2))
            self.check(lambda q, k, v: attend(query=q, key=k, value=v, dropout_p=0.0), *self.inputs())
            for queries, keys in ((0, 5), (3, 0)):
                q, k, v = (torch.randn(2, 2, one, 8) for one in (queries, keys, keys))
                self.check(lambda q, k, v, m: attend(q, k, v, m).sum(-1), q, k, v, torch.rand(queries, keys) > 0.5)
            # This one is taken apart by PyTorch.
            self.check(lambda q, k, v: attend(q, k[:1], v[:1], torch.ones(5, 5, dtype=torch.bool)).exp(), *self.inputs())

    def test_any_number_of_dimensions(self):
        attend = F.scaled_dot_product_attention
        wide = [one.unflatten(0, (2, 1)).expand(2, 3, 4, 5, 8) for one in self.inputs()]  # windows, as of Twins
        masks = [None, torch.rand(5, 5) > 0.4, torch.rand(3, 1, 5, 5) > 0.4, torch.rand(2, 1, 4, 1, 5) > 0.4]
        short = [one[0] for one in self.inputs()]

        def run(q, k, v, q3, k3, v3):
            return [*(attend(q, k, v, mask).exp() for mask in masks), attend(q3, k3, v3).exp(), attend(q3, k3, v3, masks[2][0]),
                    attend(q, k, v, is_causal=True).transpose(2, 3).flatten(3)]
        with torch.no_grad(), self.graphs() as graphs:
            self.check(run, *wide, *short)
        kinds = [str(node.target) for node in graphs[0].parts[0].nodes]
        self.assertEqual(kinds.count("heddle.attention.default"), len(masks) + 3)

    def test_types(self):
        with torch.no_grad():
            self.check(lambda q, k, v: F.scaled_dot_product_attention(q, k, v).exp(), *self.inputs(dtype=torch.bfloat16), tolerance=4e-2)
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            self.check(lambda q, k, v: F.scaled_dot_product_attention(q, k, v).exp(), *self.inputs(), tolerance=4e-2)

    def test_gradients_of_rows_that_see_nothing(self):
        class Masked(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.qkv = torch.nn.Linear(8, 24)

            def forward(self, x, seen):
                q, k, v = (one.unflatten(-1, (2, 4)).transpose(1, 2) for one in self.qkv(x).chunk(3, -1))
                return F.scaled_dot_product_attention(q, k, v, seen)
        seen = torch.rand(5, 5) > 0.4
        seen[2] = False
        module, x = Masked(), torch.randn(2, 5, 8)
        got = torch.autograd.grad(self.compiled(module)(x, seen).square().sum(), list(module.parameters()))
        want = torch.autograd.grad(module(x, seen).square().sum(), list(module.parameters()))
        for a, b in zip(want, got):
            torch.testing.assert_close(b, a)


class Whole(test_torch_backend.Backend):
    """What graphs without gradients keep together."""

    def test_matrices_that_a_gpu_multiplies_side_by_side(self):
        """Queries, keys and values, with their biases; not a gated product, whose copies would be most of a model."""
        from heddle.torch.weights import side_by_side

        class Layer(torch.nn.Module):
            def __init__(self, bias):
                super().__init__()
                self.q, self.k, self.v, self.o = (torch.nn.Linear(16, n, bias=bias) for n in (16, 8, 8, 16))
                self.gate, self.up, self.down = torch.nn.Linear(16, 24), torch.nn.Linear(16, 24), torch.nn.Linear(24, 16)

            def forward(self, x):
                q, k, v = (one(x).unflatten(-1, (-1, 8)).transpose(1, 2) for one in (self.q, self.k, self.v))
                y = F.scaled_dot_product_attention(q, k, v, enable_gqa=True).transpose(1, 2).flatten(2)
                x = x + self.o(y)
                return x + self.down(F.silu(self.gate(x)) * self.up(x))
        for bias in (True, False):
            torch._dynamo.reset()
            module, x = Layer(bias).eval(), torch.randn(2, 5, 16)
            with self.graphs() as graphs, torch.no_grad():
                compiled = self.compiled(module, dynamic=True)
                torch.testing.assert_close(compiled(x), module(x), rtol=1e-4, atol=1e-5)
            part, = graphs[0].parts
            found = side_by_side(part, part.inputs)
            shapes = sorted(tuple(node.meta["val"].shape) for node in found)
            self.assertEqual(shapes, sorted([(8, 16), (8, 16), (16, 16), *([(8,), (8,), (16,)] if bias else [])]))
            self.assertEqual(side_by_side(part, [node for node in part.inputs if node not in found]), set())

    def test_normalisations_and_activations_stay_whole_where_nothing_is_trained(self):
        nn = torch.nn
        cases = [(nn.BatchNorm2d(5), (3, 5, 4, 6)), (nn.BatchNorm1d(5), (3, 5)), (nn.BatchNorm3d(4, affine=False), (2, 4, 3, 2, 3)),
                 (nn.LayerNorm((4, 6)), (3, 5, 4, 6)), (nn.LayerNorm(7, bias=False), (2, 3, 7)),
                 (nn.LayerNorm(7, elementwise_affine=False), (3, 7)), (nn.GELU(), (9, 5)), (nn.GELU("tanh"), (9, 5)), (nn.SiLU(), (9, 5)),
                 (nn.Hardswish(), (9, 5))]
        modules = nn.ModuleList(module for module, _ in cases).eval()
        for parameter in modules.parameters():
            nn.init.normal_(parameter)
        for module in modules[:3]:
            module.running_mean.normal_(), module.running_var.uniform_(0.2, 3)

        def run(*inputs):
            return [module(x) * 2 for module, x in zip(modules, inputs)]
        for dtype, tolerance in ((torch.float32, 1e-5), (torch.bfloat16, 4e-2), (torch.float16, 5e-3)):
            torch._dynamo.reset()
            modules.to(dtype)
            with self.subTest(dtype=dtype), torch.no_grad(), self.graphs() as graphs:
                self.check(run, *((4 * torch.randn(shape)).to(dtype) for _, shape in cases), tolerance=tolerance)
                part, = graphs[0].parts
                self.assertLessEqual(len(part.nodes), 3 * len(cases))  # an operator, its first result, the product
                self.assertEqual(graphs[0].division.fallbacks, [])

    def test_short_products_of_one_value_that_a_gpu_multiplies_side_by_side(self):
        """What blocks make of one condition, each for itself; not two products, nor those of many rows."""
        from heddle.torch.weights import side_by_side

        class Blocks(torch.nn.Module):
            def __init__(self, count):
                super().__init__()
                self.layers = torch.nn.ModuleList(torch.nn.Linear(16, 32) for _ in range(count))

            def forward(self, x, condition):
                for layer in self.layers:
                    scale, shift = layer(F.silu(condition)).chunk(2, -1)
                    x = torch.tanh(x * scale + shift)
                return x
        for count, rows in ((5, 3), (2, 3), (5, 300)):
            torch._dynamo.reset()
            module = Blocks(count).eval()
            with self.graphs() as graphs, torch.no_grad():
                self.check(module, torch.randn(rows, 16), torch.randn(rows, 16))
            part, = graphs[0].parts
            self.assertEqual(len(side_by_side(part, part.inputs)), 10 if (count, rows) == (5, 3) else 0)


class Sums(test_torch_backend.Backend):
    def functions(self):
        """Of indices and updates, by name."""
        rows = lambda at, u: torch.zeros(50, u.shape[1], dtype=u.dtype)
        return {"index_add": lambda at, u: rows(at, u).index_add(0, at, u),
                "index_put": lambda at, u: rows(at, u).index_put((at,), u, accumulate=True),
                "scatter_add": lambda at, u: rows(at, u).scatter_add(0, at[:, None].expand(*u.shape), u),
                "embedding": lambda at, u: torch.ops.aten.embedding_dense_backward(u, at, 50, 7, False)}

    def test_sums_by_index_are_those_in_float64(self):
        """Also of 16-bit numbers, of which eager rounds every sum."""
        at, u = torch.randint(50, (1000,)), torch.randn(1000, 5)
        for name, function in self.functions().items():
            for dtype in (torch.float32, torch.bfloat16, torch.float16):
                with self.subTest(name, dtype=dtype):
                    updates = u.to(dtype)
                    got = self.compiled(function)(at, updates)
                    torch.testing.assert_close(got, function(at, updates.double()).to(dtype))

    def test_sums_are_in_any_order_unless_algorithms_are_to_be_deterministic(self):
        from heddle._hir import Writer

        texts, text = [], Writer.text

        def noted(writer, *arguments):
            texts.append(text(writer, *arguments))
            return texts[-1]
        at, u = torch.randint(50, (20,)), torch.randn(20, 5)
        with mock.patch.object(Writer, "text", noted):
            for name, function in self.functions().items():
                compiled = self.compiled(function)
                for deterministic in (False, True):  # a change compiles the graph again
                    with self.subTest(name, deterministic=deterministic):
                        try:
                            torch.use_deterministic_algorithms(deterministic)
                            texts.clear()
                            compiled(at, u)
                        finally:
                            torch.use_deterministic_algorithms(False)
                        self.assertEqual(["unordered = 1" in one for one in texts], [not deterministic])


class Numbers(test_torch_backend.Backend):
    def test_numbers_that_a_module_writes(self):
        def write(x):
            marks = x.new_zeros(x.shape)
            marks[1:3, :2], marks[0] = 3, 0.5
            return x * marks + torch.tensor(2), marks.to(torch.int64) + torch.tensor(True)
        with torch.no_grad(), self.graphs() as graphs:
            self.check(write, torch.randn(4, 6))
        nodes = graphs[0].parts[0].nodes
        self.assertIn(torch.ops.aten.full.default, [node.target for node in nodes])
        self.assertNotIn(torch.ops.aten.lift_fresh_copy.default, [node.target for node in nodes])


class Writes(test_torch_backend.Backend):
    """Inputs that a graph changes: what is computed for several of them is copied at once."""

    def test_inputs_of_several_types_and_strides(self):
        def function(x, y, z, count):
            x.mul_(2)
            y.add_(x[0])
            z.copy_(x @ x)
            count.add_(1)
            return x.sum() + z.sum()
        self.check(function, torch.randn(3, 3), torch.randn(3), torch.randn(3, 3).t(), torch.tensor(7))

    def test_inputs_that_are_copied_beside_computed_ones(self):
        def function(x, y):
            old = x + 0
            x.copy_(y)
            y.copy_(old * 2)
            return x + y
        self.check(function, torch.randn(3, 3), torch.randn(3, 3))


class Processes(test_torch_backend.Backend):
    """This process is the first rank of two."""

    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            context = torch.multiprocessing.start_processes(second_rank, (folder,), 1, join=False)
            run_a_rank(0, 2, folder)
            while not context.join():
                pass
            cls.found = {name: [torch.load(f"{folder}/{name}{rank}") for rank in range(2)]
                         for name in ("replicated", "sharded", "sum", "divided")}

    def check_gradients_of(self, name, kinds):
        torch.manual_seed(0)
        module, batch = Net(WIDE), torch.randn(8, 6)
        take_steps(module, module, batch)
        for gradients, found in self.found[name]:
            for path, parameter in module.named_parameters():
                torch.testing.assert_close(gradients[path], parameter.grad, msg=lambda why: f"{path}: {why}")  # noqa: B023
            self.assertEqual({kind: found.count(kind) for kind in found}, kinds)

    def test_gradients_of_two_processes_are_those_of_one(self):
        self.check_gradients_of("replicated", {"forward": 2, "backward": 2})

    def test_gradients_of_sharded_parameters_are_those_of_one_process(self):
        self.check_gradients_of("sharded", {"forward": 1, "backward": 1})

    def test_gradients_of_divided_matrices_are_those_of_one_process(self):
        for error in self.found["divided"]:
            self.assertLess(error, 1e-5)

    def test_collectives_run_between_parts(self):
        for result, parts, fallbacks in self.found["sum"]:
            torch.testing.assert_close(result, torch.tanh((4 * torch.arange(6.0) + 2) / 10))
            self.assertEqual(parts, 2)
            self.assertEqual(fallbacks, ["_c10d_functional.all_reduce.default", "_c10d_functional.wait_tensor.default"])


class Modules(test_torch_backend.Backend):
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
