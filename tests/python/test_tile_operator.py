"""Kernels of the tile language as operators of models. On the target in HEDDLE_TEST_TARGET, by default the CPU."""
import os
import pathlib
import tempfile
import unittest

import numpy as np
from onnx import TensorProto, helper

import heddle
import heddle.tile as tile
import heddle.tile.language as tl

TARGET = os.environ.get("HEDDLE_TEST_TARGET", "cpu")


@tile.jit
def leaky_kernel(y, x, n, slope, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + at, at < n)
    tl.store(y + at, tl.where(values > 0, values, values * slope), at < n)


@tile.operator
def leaky(x, slope=0.5):
    y = tile.empty_like(x)
    leaky_kernel[lambda words: (tile.cdiv(words["n"], words["BLOCK"]),)](y, x, x.numel() if hasattr(x, "numel") else x.size, slope, BLOCK=64)
    return y


@tile.jit
def sums_kernel(sums, x, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    tl.store(sums + row, tl.sum(tl.load(x + row * n + at, at < n, other=0.0), axis=0))


@tile.jit
def subtract_kernel(y, largest, x, sums, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    centred = tl.load(x + row * n + at, at < n, other=-float("inf")) - tl.load(sums + row) / n
    tl.store(y + row * n + at, centred, at < n)
    tl.store(largest + row, tl.max(centred, axis=0))


@tile.operator
def centre(x, bias=None):
    """Rows less their mean, and the largest element of each; two kernels, with the sums between them."""
    rows, n = x.shape
    sums, y, largest = tile.empty((rows,), like=x), tile.empty_like(x), tile.empty((rows,), tl.float32, like=x)
    sums_kernel[(rows,)](sums, x, n, BLOCK=tile.next_power_of_2(n))
    subtract_kernel[(rows,)](y, largest, x, sums, n, BLOCK=tile.next_power_of_2(n))
    return y, largest


@tile.jit
def row_sums_kernel(y, x, rows, n, BLOCK: tl.constexpr):
    """Sums of rows, piece by piece."""
    row = tl.program_id(0)
    total = 0.0
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.sum(tl.load(x + row * n + at, at < n, other=0.0).to(tl.float32), axis=0)
    tl.store(y + row, total)


@tile.operator
def row_sums(x):
    y = tile.empty((x.shape[0],), tl.float32, like=x)
    row_sums_kernel[(x.shape[0],)](y, x, *x.shape, BLOCK=16)
    return y


@tile.jit
def add_twice_kernel(y, x, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at))
    tl.debug_barrier()
    tl.store(y + at, tl.load(y + at) + tl.load(x + at))


@tile.operator
def add_twice(x):
    y = tile.empty_like(x)
    add_twice_kernel[(1,)](y, x, BLOCK=x.shape[0] * x.shape[1])
    return y


@tile.jit
def product_kernel(d, a, b, m, n, k, TILE: tl.constexpr, DEPTH: tl.constexpr):
    rows, columns = tl.program_id(0) * TILE + tl.arange(0, TILE), tl.program_id(1) * TILE + tl.arange(0, TILE)
    sums = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, k, DEPTH):
        at = start + tl.arange(0, DEPTH)
        a_tile = tl.load(a + rows[:, None] * k + at[None, :], (rows[:, None] < m) & (at[None, :] < k), 0.0)
        b_tile = tl.load(b + at[:, None] * n + columns[None, :], (at[:, None] < k) & (columns[None, :] < n), 0.0)
        sums = tl.dot(a_tile, b_tile, sums)
    tl.store(d + rows[:, None] * n + columns[None, :], sums, (rows[:, None] < m) & (columns[None, :] < n))


@tile.operator
def product(a, b):
    (m, k), n = a.shape, b.shape[1]
    d = tile.empty((m, n), like=a)
    product_kernel[(tile.cdiv(m, 128), tile.cdiv(n, 128))](d, a, b, m, n, k, TILE=128, DEPTH=64)
    return d


@tile.jit
def in_place_kernel(x, BLOCK: tl.constexpr):
    at = x + tl.arange(0, BLOCK)
    tl.store(at, tl.load(at) * 2)


def model(nodes, inputs, outputs):
    ports = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in given] for given in (inputs, outputs)]
    graph = helper.make_graph(nodes, "tests", *ports)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("acme", 1)], ir_version=9)


def chain(shape=(6, 10), slope=0.25):
    """z = |leaky(-x)|: the operator between two elementwise neighbours."""
    nodes = [helper.make_node("Neg", ["x"], ["a"]), helper.make_node("Leaky", ["a"], ["b"], domain="acme", slope=slope, name="leak"),
             helper.make_node("Abs", ["b"], ["z"])]
    return model(nodes, [("x", shape)], [("z", shape)])


def expected_chain(x, slope=0.25):
    return np.abs(np.where(-x > 0, -x, -x * slope))


def compile(proto, **options):
    return heddle.compile(proto, target=TARGET, **options)


class Operators(unittest.TestCase):
    def setUp(self):
        self.random = np.random.default_rng(7)

    def rows(self, *shape):
        return self.random.standard_normal(shape, dtype=np.float32)

    def test_attributes_and_neighbours(self):
        compiled = compile(chain(), kernels={"acme::Leaky": leaky})
        x = self.rows(6, 10)
        np.testing.assert_allclose(compiled(x), expected_chain(x), rtol=1e-6)
        self.assertIn("tile leaky_kernel", str(compiled.explain()))
        self.assertTrue(any("leaky_kernel" in kernel.symbol for kernel in compiled.kernels()))

    def test_several_kernels_and_results(self):
        nodes = [helper.make_node("Centre", ["x", ""], ["y", "largest"], domain="acme")]
        shapes = [("y", (5, 37)), ("largest", (5,))]
        compiled = compile(model(nodes, [("x", (5, 37))], shapes), kernels={"acme::Centre": centre})
        x = self.rows(5, 37)
        y, largest = compiled(x)
        wanted = x - x.mean(1, keepdims=True)
        np.testing.assert_allclose(y, wanted, atol=1e-6)
        np.testing.assert_allclose(largest, wanted.max(1), atol=1e-6)
        self.assertTrue(heddle.verify(compiled))

    def test_plan_file_needs_no_operator(self):
        compiled = compile(chain(), kernels={"acme::Leaky": leaky})
        x = self.rows(6, 10)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "chain.plan"
            compiled.save(path)
            np.testing.assert_array_equal(heddle.compile(path, target=TARGET)(x), compiled(x))

    def test_other_shapes(self):
        compiled = compile(chain(("rows", 10)), kernels={"acme::Leaky": leaky}, dims={"rows": 4})
        for rows in (4, 7, 1):
            x = self.rows(rows, 10)
            np.testing.assert_allclose(compiled(x), expected_chain(x), rtol=1e-6)

    def test_other_kernel_is_another_plan(self):
        @tile.operator
        def doubled(x, slope):
            y = tile.empty_like(x)
            leaky_kernel[(1,)](y, x, 60, slope * 2, BLOCK=64)
            return y

        x = self.rows(6, 10)
        for operator, slope in ((leaky, 0.25), (doubled, 0.5), (leaky, 0.25)):
            compiled = compile(chain(), kernels={"acme::Leaky": operator})
            np.testing.assert_allclose(compiled(x), expected_chain(x, slope), rtol=1e-6)
        self.assertTrue(compiled.from_cache)

    def test_precision(self):
        compiled = compile(chain(), kernels={"acme::Leaky": leaky}, precision="bf16")
        x = self.rows(6, 10)
        np.testing.assert_allclose(compiled(x), expected_chain(x), rtol=2e-2)

    def test_operator_runs_on_arrays(self):
        x = self.rows(3, 11)
        if TARGET == "cpu":
            np.testing.assert_allclose(leaky(x), np.where(x > 0, x, x * 0.5), rtol=1e-6)


class Neighbours(unittest.TestCase):
    """Elementwise nodes become part of the kernels, where these allow it."""

    def setUp(self):
        self.random = np.random.default_rng(11)

    def built(self, nodes, inputs, outputs, **options):
        proto = model([helper.make_node(op, ins, outs, domain="acme" if op[0] == "_" else "", name=outs[0], **attributes)
                       for op, ins, outs, attributes in nodes], inputs, outputs)
        for node in proto.graph.node:
            node.op_type = node.op_type.lstrip("_")
        kernels = {"acme::Leaky": leaky, "acme::RowSums": row_sums, "acme::AddTwice": add_twice}
        return compile(proto, kernels=kernels, **options)

    def check(self, compiled, inputs, expected, kernels, tolerance=2e-6):
        np.testing.assert_allclose(compiled(**inputs), expected, rtol=tolerance, atol=tolerance)
        explained = str(compiled.explain(verbose=True))
        self.assertIn(f" {kernels} kernels (", explained)
        self.assertTrue(heddle.verify(compiled))
        return explained

    def of(self, *shape):
        return self.random.standard_normal(shape, dtype=np.float32)

    def test_rows_columns_and_whole_tensors(self):
        shapes = [("x", (7, 19)), ("bias", (19,)), ("scale", (7, 1)), ("residual", (7, 19))]
        values = {name: self.of(*shape) for name, shape in shapes}
        nodes = [("Add", ["x", "bias"], ["a"], {}), ("Tanh", ["a"], ["b"], {}), ("_Leaky", ["b"], ["c"], {"slope": 0.5}),
                 ("Mul", ["c", "scale"], ["d"], {}), ("Add", ["d", "residual"], ["e"], {}), ("Exp", ["e"], ["f"], {}),
                 ("Max", ["f", "bias"], ["z"], {})]
        t = np.tanh(values["x"] + values["bias"])
        expected = np.maximum(np.exp(np.where(t > 0, t, t * 0.5) * values["scale"] + values["residual"]), values["bias"])
        self.check(self.built(nodes, shapes, [("z", (7, 19))]), values, expected, 1)
        apart = self.built(nodes, shapes, [("z", (7, 19))], fusion="none")
        np.testing.assert_allclose(apart(**values), expected, rtol=2e-6, atol=2e-6)

    def test_selections_and_comparisons(self):
        nodes = [("Neg", ["x"], ["a"], {}), ("_Leaky", ["a"], ["b"], {"slope": 0.5}), ("Greater", ["y", "x"], ["more"], {}),
                 ("Where", ["more", "b", "y"], ["z"], {})]
        shapes = [("x", (5, 13)), ("y", (5, 13))]
        values = {name: self.of(*shape) for name, shape in shapes}
        x, y = values["x"], values["y"]
        compiled = self.built(nodes, shapes, [("z", (5, 13))])
        np.testing.assert_allclose(compiled(**values), np.where(y > x, np.where(-x > 0, -x, -x / 2), y), rtol=1e-6)
        self.assertTrue(heddle.verify(compiled))

    def test_functions_that_graphs_and_kernels_share(self):
        nodes = [("Round", ["x"], ["a"], {}), ("_Leaky", ["a"], ["b"], {"slope": 0.5}), ("Sinh", ["b"], ["c"], {}), ("Atan", ["c"], ["z"], {})]
        x = 2 * self.of(5, 13)
        x[0, :4] = 0.5, 1.5, 2.5, -3.5  # to the even neighbour
        a = np.round(x)
        self.check(self.built(nodes, [("x", (5, 13))], [("z", (5, 13))]), {"x": x}, np.arctan(np.sinh(np.where(a > 0, a, a / 2))), 1)

    def test_types_around_a_kernel(self):
        nodes = [("Sqrt", ["x"], ["a"], {}), ("_Leaky", ["a"], ["b"], {"slope": 0.5}), ("Neg", ["b"], ["z"], {})]
        compiled = self.built(nodes, [("x", (4, 9))], [("z", (4, 9))], precision="f16")
        x = np.abs(self.of(4, 9))
        self.check(compiled, {"x": x}, -np.sqrt(x), 1, tolerance=2e-3)

    def test_value_that_others_read_stays(self):
        nodes = [("Sin", ["x"], ["a"], {}), ("_Leaky", ["a"], ["b"], {"slope": 0.5}), ("Exp", ["b"], ["c"], {}), ("Add", ["c", "a"], ["d"], {}),
                 ("Mul", ["d", "b"], ["z"], {})]
        x = self.of(5, 11)
        b = np.where(np.sin(x) > 0, np.sin(x), np.sin(x) * 0.5)
        compiled = self.built(nodes, [("x", (5, 11))], [("z", (5, 11))])
        self.check(compiled, {"x": x}, (np.exp(b) + np.sin(x)) * b, 3)

    def test_nodes_between_two_kernels_belong_to_one(self):
        nodes = [("_Leaky", ["x"], ["a"], {"slope": 0.5}), ("Sin", ["a"], ["b"], {}), ("Tanh", ["b"], ["c"], {}), ("_Leaky", ["c"], ["d"], {"slope": 0.25}),
                 ("Abs", ["d"], ["z"], {})]
        x = self.of(3, 21)
        c = np.tanh(np.sin(np.where(x > 0, x, x * 0.5)))
        self.check(self.built(nodes, [("x", (3, 21))], [("z", (3, 21))]), {"x": x}, np.abs(np.where(c > 0, c, c * 0.25)), 2)

    def test_operand_in_a_loop_is_not_computed_again(self):
        nodes = [("Exp", ["x"], ["a"], {}), ("_RowSums", ["a"], ["b"], {}), ("Log", ["b"], ["z"], {})]
        x = self.of(6, 45)
        told = self.check(self.built(nodes, [("x", (6, 45))], [("z", (6,))]), {"x": x}, np.log(np.exp(x).sum(1)), 2)
        self.assertIn("in a loop", told)

    def test_result_that_the_kernel_reads(self):
        nodes = [("_AddTwice", ["x"], ["a"], {}), ("Neg", ["a"], ["z"], {})]
        x = self.of(4, 16)
        told = self.check(self.built(nodes, [("x", (4, 16))], [("z", (4, 16))]), {"x": x}, -2 * x, 2)
        self.assertIn("read the result again", told)


@tile.jit
def shifted_kernel(y, x, n, shift, BLOCK: tl.constexpr):
    at = x + tl.arange(0, BLOCK)
    for start in range(0, n, BLOCK):
        tl.store(y + start + tl.arange(0, BLOCK), tl.load(at + shift, start + tl.arange(0, BLOCK) < n))
        at += BLOCK


class Checked(unittest.TestCase):
    """Kernels that are compiled with checks of their accesses."""

    def launch(self, n, shift, size):
        x, y = np.arange(20, dtype=np.float32), np.full(size, 77, np.float32)
        if TARGET != "cpu":
            x, y = (heddle.tensor(array, device="cuda:0") for array in (x, y))
        shifted_kernel[(1,)](y, x, n, shift, BLOCK=8, checked=True)
        return y if TARGET == "cpu" else y.numpy()

    def test_accesses_inside(self):
        np.testing.assert_array_equal(self.launch(20, 0, 24)[:20], np.arange(20))

    @unittest.skipIf(TARGET == "cuda", "assertions of a GPU are errors of its driver")
    def test_accesses_outside_are_named(self):
        for n, shift, size, what in ((20, 1, 24, "`load` reaches outside of x"), (20, -1, 24, "`load` reaches outside of x"),
                                     (20, 0, 20, "`store` reaches outside of y")):
            with self.assertRaises(heddle.InputError) as caught:
                self.launch(n, shift, size)
            self.assertIn(what, str(caught.exception))
            self.assertRegex(str(caught.exception), r"test_tile_operator\.py:\d+: .*in program \(0, 0, 0\), element [034]")


class Products(unittest.TestCase):
    def test_product_with_a_neighbour(self):
        """On a GPU with tensor maps, which the plan makes for the operands' memory."""
        random, m, n, k = np.random.default_rng(3), 130, 144, 80
        ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT16, shape) for name, shape in (("a", (m, k)), ("b", (k, n)), ("z", (m, n)))]
        nodes = [helper.make_node("Product", ["a", "b"], ["d"], domain="acme"), helper.make_node("Neg", ["d"], ["z"])]
        proto = helper.make_model(helper.make_graph(nodes, "tests", ports[:2], ports[2:]), ir_version=9,
                                  opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("acme", 1)])
        compiled = compile(proto, kernels={"acme::Product": product})
        a, b = (random.standard_normal(shape).astype(np.float16) for shape in ((m, k), (k, n)))
        np.testing.assert_allclose(compiled(a, b), -(a.astype(np.float64) @ b), atol=0.03, rtol=1e-3)
        self.assertEqual(len(compiled.kernels()), 1)
        if TARGET == "cuda":
            self.assertIn("TensorMap", str(compiled.kernels()[0]))


class Errors(unittest.TestCase):
    def refused(self, *words, **kernels):
        with self.assertRaises(heddle.InputError) as caught:
            compile(chain(), kernels={f"acme::{name}": one for name, one in kernels.items()})
        for word in words:
            self.assertIn(word, str(caught.exception))

    def test_unknown_operator_names_the_option(self):
        with self.assertRaises(heddle.UnsupportedError) as caught:
            compile(chain())
        self.assertIn("kernels=", str(caught.exception))

    def test_what_is_given(self):
        self.refused("no operator", "heddle.tile.operator", Leaky=leaky_kernel)
        with self.assertRaises(heddle.InputError):
            compile(chain(), kernels={"Leaky": leaky})

    def test_exceptions_name_node_and_line(self):
        self.refused("node 'leak' (acme::Leaky", "slope", Leaky=lambda x: x)
        self.refused("result 0", "input 0", Leaky=lambda x, slope: x)
        self.refused("written by no kernel", Leaky=lambda x, slope: tile.empty_like(x))

    def test_inputs_are_not_written(self):
        @tile.operator
        def in_place(x, slope):
            y = tile.empty_like(x)
            leaky_kernel[(1,)](y, x, 60, slope, BLOCK=64)
            in_place_kernel[(1,)](x, BLOCK=32)
            return y

        self.refused("in_place_kernel", "%x", "input 0", Leaky=in_place)

    def test_reports_of_kernels(self):
        @tile.jit
        def loud_kernel(y, x):
            tl.device_print("x", tl.load(x))
            tl.store(y, tl.load(x))

        @tile.operator
        def loud(x, slope):
            y = tile.empty_like(x)
            loud_kernel[(1,)](y, x)
            return y

        with self.assertRaises(heddle.UnsupportedError) as caught:
            compile(chain(), kernels={"acme::Leaky": loud})
        self.assertIn("test_tile_operator.py:", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
