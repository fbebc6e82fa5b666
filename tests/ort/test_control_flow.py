"""Sessions whose models have If, Loop and Scan: test_control_flow.py LIBRARY [TEST...]"""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from sessions import SessionCase, main, model_of, normal, session, taken


class ControlFlowTest(SessionCase):
    def test_branches_of_an_if(self):
        # ONNX Runtime hands the result of a branch over in memory of the host, also to a region on a GPU.
        def branch(kind):
            nodes = [helper.make_node("MatMul", ["a", "w"], [f"{kind}_b"]), helper.make_node(kind, [f"{kind}_b"], [f"{kind}_c"]),
                     helper.make_node("Softmax", [f"{kind}_c"], [f"{kind}_d"])]
            return helper.make_graph(nodes, kind, [], [helper.make_tensor_value_info(f"{kind}_d", TensorProto.FLOAT, None)])

        nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]),
                 helper.make_node("If", ["flag"], ["d"], then_branch=branch("Tanh"), else_branch=branch("Neg")),
                 helper.make_node("MatMul", ["d", "w"], ["e"]), helper.make_node("Tanh", ["e"], ["y"])]
        model = model_of(nodes, [("x", np.float32, ["n", 64]), ("flag", bool, [])], [("y", np.float32, ["n", 64])],
                         {"w": normal(64, 64) / 8})
        made = session(model)
        self.assertEqual(taken(made).count("MatMul"), 3)  # not the lone one in front of the If
        for flag in (True, False):
            self.check(made, model, {"x": normal(70, 64), "flag": np.array(flag)}, 1e-4)

    def test_results_of_a_loop(self):
        state = helper.make_tensor_value_info("s", TensorProto.FLOAT, ["n", 64])
        body = helper.make_graph(
            [helper.make_node("MatMul", ["s", "w"], ["p"]), helper.make_node("Add", ["p", "x"], ["q"]),
             helper.make_node("Tanh", ["q"], ["t"]), helper.make_node("Identity", ["go"], ["on"])], "body",
            [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("go", TensorProto.BOOL, []), state],
            [helper.make_tensor_value_info("on", TensorProto.BOOL, []), helper.make_tensor_value_info("t", TensorProto.FLOAT, ["n", 64])])
        nodes = [helper.make_node("Loop", ["turns", "", "x"], ["d"], body=body),
                 helper.make_node("MatMul", ["d", "w"], ["e"]), helper.make_node("Softmax", ["e"], ["y"])]
        model = model_of(nodes, [("x", np.float32, ["n", 64]), ("turns", np.int64, [])], [("y", np.float32, ["n", 64])],
                         {"w": normal(64, 64) / 8})
        model.graph.value_info.append(helper.make_tensor_value_info("d", TensorProto.FLOAT, ["n", 64]))  # its rank is not inferred
        made = session(model)
        self.assertIn("Softmax", taken(made))
        self.assertNotIn("Loop", taken(made))  # its body reads x
        for turns in (0, 3):
            self.check(made, model, {"x": normal(70, 64), "turns": np.array(turns)}, 1e-4)

    def loop(self, inner, results, constants=(), name="body"):
        """A body that makes t from s, and hands its condition on."""
        state = [helper.make_tensor_value_info(result, TensorProto.FLOAT, [6, 8]) for result in ("s", *results)]
        condition = [helper.make_tensor_value_info(each, TensorProto.BOOL, []) for each in ("go", "on")]
        return helper.make_graph(
            [*inner, helper.make_node("Identity", ["go"], ["on"])], name,
            [helper.make_tensor_value_info("i", TensorProto.INT64, []), condition[0], state[0]], [condition[1], *state[1:]],
            [numpy_helper.from_array(value, key) for key, value in dict(constants).items()])

    def test_takes_loops_whose_bodies_capture_constants_only(self):
        cases = {
            "constant of the graph": ("w", {}, True), "constant of the body": ("own", {"own": normal(8, 8) / 3}, True),
            "input of the graph": ("v", {}, False), "result of a node": ("u", {}, False),
        }
        for case, (captured, constants, is_taken) in cases.items():
            inner = [helper.make_node("MatMul", ["s", captured], ["p"]), helper.make_node("Tanh", ["p"], ["t"])]
            nodes = [helper.make_node("Sin", ["v"], ["u"]), helper.make_node("Exp", ["x"], ["a"], "first"),
                     helper.make_node("Loop", ["turns", "", "a"], ["b"], "loop", body=self.loop(inner, ("t",), constants)),
                     helper.make_node("Neg", ["b"], ["z"], "last"), helper.make_node("Cos", ["u"], ["q"])]
            model = model_of(nodes, [("x", np.float32, [6, 8]), ("v", np.float32, [8, 8])],
                             [("z", np.float32, [6, 8]), ("q", np.float32, [8, 8])],
                             {"w": normal(8, 8) / 3, "turns": np.int64(3)})
            with self.subTest(case):
                made = session(model)
                self.assertEqual("Loop" in taken(made), is_taken, taken(made))
                self.assertIn("Tanh" if not is_taken else "Neg", taken(made))
                self.check(made, model, {"x": normal(6, 8), "v": normal(8, 8) / 3})

    def test_takes_a_scan(self):
        def ports(*names):
            return [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 8]) for name in names]

        body = helper.make_graph(
            [helper.make_node("MatMul", ["s", "w"], ["p"]), helper.make_node("Add", ["p", "item"], ["q"]),
             helper.make_node("Tanh", ["q"], ["t"]), helper.make_node("Mul", ["t", "half"], ["slice"])], "body",
            ports("s", "item"), ports("t", "slice"), [numpy_helper.from_array(np.float32(0.5), "half")])
        nodes = [helper.make_node("Exp", ["first"], ["a"]),
                 helper.make_node("Scan", ["a", "x"], ["last", "b"], body=body, num_scan_inputs=1, scan_input_directions=[1]),
                 helper.make_node("Softmax", ["b"], ["y"])]
        model = model_of(nodes, [("first", np.float32, [4, 8]), ("x", np.float32, ["n", 4, 8])],
                         [("last", np.float32, [4, 8]), ("y", np.float32, ["n", 4, 8])], {"w": normal(8, 8) / 3})
        made = session(model)
        self.assertEqual(taken(made), ["Exp", "Scan", "Softmax"])
        for length in (5, 17):
            self.check(made, model, {"first": normal(4, 8), "x": normal(length, 4, 8)})

    def test_loops_in_loops_and_branches_in_loops(self):
        def branch(kind, source, computing):
            nodes = [helper.make_node(kind, [source], [f"{kind}0"])]
            nodes += [helper.make_node("Tanh", [f"{kind}{n}"], [f"{kind}{n + 1}"]) for n in range(computing - 1)]
            return helper.make_graph(nodes, kind, [], [helper.make_tensor_value_info(f"{kind}{computing - 1}", TensorProto.FLOAT, [6, 8])])

        def branches(computing):
            return [helper.make_node("MatMul", ["s", "w"], ["p"]), helper.make_node("Tanh", ["p"], ["r"]),
                    helper.make_node("Equal", ["i", "one"], ["is_one"]),
                    helper.make_node("If", ["is_one"], ["t"], then_branch=branch("Exp", "r", computing),
                                     else_branch=branch("Neg", "r", computing))]

        inner = self.loop([helper.make_node("MatMul", ["s", "w"], ["p"]), helper.make_node("Tanh", ["p"], ["t"])], ("t",), name="inner")
        for renamed in (*inner.node, ):
            renamed.input[:] = [f"inner_{name}" if name in ("s", "p", "go") else name for name in renamed.input]
            renamed.output[:] = [f"inner_{name}" for name in renamed.output]
        for port in (*inner.input, *inner.output):
            port.name = f"inner_{port.name}"
        cases = {"loop": ([helper.make_node("Loop", ["turns", "", "s"], ["r"], body=inner), helper.make_node("Neg", ["r"], ["t"])], True),
                 "small branches": (branches(1), True), "branches with regions": (branches(3), False)}
        for case, (nodes, is_taken) in cases.items():
            model = model_of([helper.make_node("Loop", ["turns", "", "x"], ["a"], body=self.loop(nodes, ("t",))),
                              helper.make_node("Cos", ["a"], ["y"])],
                             [("x", np.float32, [6, 8])], [("y", np.float32, [6, 8])],
                             {"w": normal(8, 8) / 3, "turns": np.int64(3), "one": np.int64(1)})
            with self.subTest(case):
                made = session(model)
                self.assertEqual(taken(made).count("Loop"), int(is_taken), taken(made))
                self.check(made, model, {"x": normal(6, 8)})

    def test_a_loop_that_it_does_not_compile_stays(self):
        inner = [helper.make_node("NonZero", ["s"], ["places"]), helper.make_node("Size", ["places"], ["count"]),
                 helper.make_node("Cast", ["count"], ["scale"], to=TensorProto.FLOAT), helper.make_node("Div", ["s", "scale"], ["p"]),
                 helper.make_node("Tanh", ["p"], ["t"])]
        model = model_of([helper.make_node("Loop", ["turns", "", "x"], ["y"], body=self.loop(inner, ("t",)))],
                         [("x", np.float32, [6, 8])], [("y", np.float32, [6, 8])], {"turns": np.int64(3)})
        made = session(model)
        self.assertEqual(taken(made), ["Cast", "Div", "Size", "Tanh"])  # in the body
        self.check(made, model, {"x": normal(6, 8)})

    def test_a_loop_with_text_in_its_body_stays_alone(self):
        inner = [helper.make_node("Gather", ["words", "i"], ["word"]), helper.make_node("Size", ["word"], ["count"]),
                 helper.make_node("Cast", ["count"], ["one"], to=TensorProto.FLOAT), helper.make_node("Add", ["s", "one"], ["t"])]
        body = self.loop(inner, ("t",), {"words": np.array(["weft", "warp", "reed"], object)})
        nodes = [helper.make_node("Sin", ["x"], ["a"]), helper.make_node("Cos", ["a"], ["b"]),
                 helper.make_node("Loop", ["turns", "", "b"], ["c"], body=body),
                 helper.make_node("Neg", ["c"], ["d"]), helper.make_node("Exp", ["d"], ["y"])]
        model = model_of(nodes, [("x", np.float32, [6, 8])], [("y", np.float32, [6, 8])], {"turns": np.int64(3)})
        model.graph.value_info.append(helper.make_tensor_value_info("c", TensorProto.FLOAT, [6, 8]))
        made = session(model)
        self.assertEqual(taken(made), ["Cos", "Exp", "Neg", "Sin"])
        self.check(made, model, {"x": normal(6, 8)})


if __name__ == "__main__":
    main()
