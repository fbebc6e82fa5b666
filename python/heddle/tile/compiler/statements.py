"""Statements of a kernel: assignments, branches, loops and returns."""
import ast
import builtins
from typing import Any, Optional

from heddle.tile import ir
from heddle.tile import language as tl
from heddle.tile.compiler.errors import UnsupportedLanguageConstruct
from heddle.tile.compiler.structure import assigned_names, constant_of, described, flatten, has_return, is_value, rebuild, same
from heddle.tile.language.promotion import cast, is_number, number_type, promote_integers, to_tensor
from heddle.tile.language.types import constexpr, unwrap
from heddle.tile.language.values import tensor, tuple, unwrap_tuple


class Returned:
    """What a function gave back."""

    def __init__(self, value: Any):
        self.value = value


class Statements(ast.NodeVisitor):
    """The half of the visitor that goes through statements. `scope` has the values of the names that are known here."""

    scope: dict
    loops: int  # that are open here, in this function
    unrolled: int

    # -- sequences

    def run(self, statements: list) -> Optional[Returned]:
        """Goes through statements; gives what they return, if they do."""
        for i, statement in enumerate(statements):
            if isinstance(statement, ast.If) and has_return(statement):
                return self.returning_if(statement, statements[i + 1 :])
            returned = self.visit(statement)
            if isinstance(returned, Returned):
                return returned
        return None

    def visit_Return(self, node: ast.Return) -> Returned:
        if self.loops:
            raise self.unsupported(node, "Cannot have `return` statements inside `while` or `for` statements")
        value = constexpr(None) if node.value is None else self.visit(node.value)
        return Returned(value if is_value(value) or callable(value) else constexpr(value))

    def visit_Pass(self, node: ast.Pass) -> None:
        pass

    def visit_Expr(self, node: ast.Expr) -> None:
        self.unused = node.value
        value = self.visit(node.value)
        # A promise about a variable holds from here on, whether or not anybody takes its result.
        if isinstance(node.value, ast.Call) and node.value.args and isinstance(node.value.args[0], ast.Name):
            name = node.value.args[0].id
            if name in self.scope and getattr(unwrap(self.visit(node.value.func)), "is_promise", False):
                self.scope[name] = value

    def visit_Assert(self, node: ast.Assert) -> None:
        message = "" if node.msg is None else unwrap(self.visit(node.msg))
        tl.device_assert(self.visit(node.test), message)

    # -- assignments

    def settled(self, value: Any) -> Any:
        """What a variable holds: numbers become tensors."""
        if isinstance(value, tuple):
            return tuple([self.settled(one) for one in value.values], value.fields)
        plain = unwrap(value)
        return to_tensor(plain) if is_number(plain) else value

    def assign(self, target: ast.AST, value: Any) -> None:
        if isinstance(target, ast.Name):
            if self.annotated.pop(target.id, None) is constexpr:
                self.scope[target.id] = constant_of(value)
            else:
                self.scope[target.id] = self.settled(value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            values = unwrap(value)
            if not isinstance(values, (tuple, builtins.tuple, list)):
                raise TypeError(f"a {described(value)} cannot be unpacked into {len(target.elts)} names")
            values = unwrap_tuple(values)
            if len(values) != len(target.elts):
                raise ValueError(f"{len(values)} values cannot be unpacked into {len(target.elts)} names")
            for inner, one in zip(target.elts, values):
                self.assign(inner, one)
        elif isinstance(target, ast.Subscript):
            raise NotImplementedError("__setitem__ is not supported: tiles do not change; make a new one, with tl.where for a part of it")
        else:
            raise self.unsupported(target, f"nothing is assigned to a {type(target).__name__}: only to names and tuples of them")

    def visit_Assign(self, node: ast.Assign) -> None:
        if len(node.targets) != 1:
            raise self.unsupported(node, "simultaneous multiple assignment is not supported; write one assignment a line")
        self.assign(node.targets[0], self.visit(node.value))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        annotation = unwrap(self.visit(node.annotation))
        if not isinstance(node.target, ast.Name):
            raise self.unsupported(node, "only names are annotated")
        name = node.target.id
        if node.value is None:
            self.annotated[name] = annotation
            return
        value = self.visit(node.value)
        if annotation is not constexpr:
            self.assign(node.target, value)
            return
        if name in self.scope and not self.unrolled:
            raise ValueError(f"{name} is already defined. constexpr cannot be reassigned.")
        self.scope[name] = constant_of(value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if not isinstance(node.target, ast.Name):
            self.assign(node.target, None)
        load = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
        self.assign(node.target, self.visit(ast.copy_location(ast.BinOp(load, node.op, node.value), node)))

    # -- branches

    def decided(self, node: ast.AST, condition: Any) -> Any:
        """The condition as an i1 scalar, or as what it is known to be."""
        if isinstance(condition, tensor):
            if condition.type.numel != 1:
                raise self.unsupported(node, f"Boolean value of Tensor with more than one value is ambiguous: the condition is a "
                                             f"{condition!r}; use tl.where, or reduce it to a scalar")
            return cast(condition.item(), tl.int1)
        known = unwrap(condition)
        if type(known) not in (bool, int, type(None)):
            raise self.unsupported(node, "`if` conditionals can only accept values of type {bool, int, NoneType}, not objects of type "
                                         f"{type(known).__name__}")
        return bool(known)

    def visit_If(self, node: ast.If) -> Optional[Returned]:
        condition = self.decided(node, self.visit(node.test))
        if not isinstance(condition, tensor):
            return self.run(node.body if condition else node.orelse)
        before, regions, after = self.scope, [], []
        for body in (node.body, node.orelse):
            self.scope = dict(before)
            with ir.builder().region() as region:
                self.run(body)
            regions.append(region)
            after.append(self.scope)
        self.scope = dict(before)
        names = self._merged_names(before, *after)
        values = [[scope[name] for name in names] for scope in after]
        for name, value in zip(names, self._merge(condition, regions, *values)):
            self.scope[name] = value
        return None

    def _merged_names(self, before: dict, then: dict, otherwise: dict) -> list:
        names = []
        for name, value in before.items():
            if then[name] is value and otherwise[name] is value:
                continue
            for scope, block in ((then, "then"), (otherwise, "else")):
                if not same(scope[name], value):
                    raise TypeError(f"initial value for `{name}` is of type {described(value)}, but the {block} block redefines it as "
                                    f"{described(scope[name])}")
            names.append(name)
        for name in then:
            if name not in before and name in otherwise:
                if not same(then[name], otherwise[name]):
                    raise TypeError(f"Mismatched type for {name} between then block ({described(then[name])}) and else block "
                                    f"({described(otherwise[name])})")
                names.append(name)
        return names

    def _merge(self, condition: tensor, regions: list, then: list, otherwise: list) -> list:
        """Ends the regions of a branch with values of one shape, and gives those that come out of it."""
        parts = [[part for value in values for part in flatten(value)] for values in (then, otherwise)]
        for region, own in zip(regions, parts):
            ir.builder().terminate(region, "yield", [part.handle for part in own])
        handles = ir.builder().emit("if", [condition.handle], [part.type.ir for part in parts[0]], {}, regions)
        results = iter([tensor(handle, part.type) for handle, part in zip(handles, parts[0])])
        return [rebuild(value, results) for value in then]

    def returning_if(self, node: ast.If, rest: list) -> Optional[Returned]:
        """A branch that returns in some of its ways: what follows it belongs to the ways that do not."""
        if self.loops:
            raise self.unsupported(node, "Cannot have `return` statements inside `while` or `for` statements")
        self.locate(node)
        condition = self.decided(node, self.visit(node.test))
        if not isinstance(condition, tensor):
            return self.run([*(node.body if condition else node.orelse), *rest])
        before, regions, results = self.scope, [], []
        for body in (node.body, node.orelse):
            self.scope = dict(before)
            with ir.builder().region() as region:
                returned = self.run([*body, *rest])
            regions.append(region)
            results.append(constexpr(None) if returned is None else returned.value)
        results = self._common_returns(*results)
        return Returned(self._merge(condition, regions, [results[0]], [results[1]])[0])

    def _common_returns(self, a: Any, b: Any) -> list:
        """Numbers among what is returned become tensors where the ways differ. They are made in front of the branch."""
        if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
            pairs = [self._common_returns(x, y) for x, y in zip(a.values, b.values)]
            return [tuple([pair[i] for pair in pairs], one.fields) for i, one in enumerate((a, b))]
        if same(a, b):
            return [a, b]
        types = [one.type if isinstance(one, tensor) else number_type(unwrap(one)) if is_number(unwrap(one)) else None
                 for one in (a, b)]
        if None in types or types[0] != types[1]:
            raise TypeError(f"Return type mismatch: {described(a)} and {described(b)}: all ways through a function give back the same "
                            "types")
        return [to_tensor(a), to_tensor(b)]

    # -- loops

    def visit_For(self, node: ast.For) -> Optional[Returned]:
        if node.orelse:
            raise self.unsupported(node, "`else` of a loop is not supported")
        over = self._range_of(node.iter)
        if isinstance(over, tl.range):
            return self._dynamic_for(node, over)
        self.unrolled += 1
        for item in over:
            self.bind_target(node, item if is_value(item) else constexpr(item))
            if self.run(node.body) is not None:
                raise self.unsupported(node, "Cannot have `return` statements inside `while` or `for` statements")
        self.unrolled -= 1
        return None

    def bind_target(self, node: ast.For, value: Any) -> None:
        if isinstance(node.target, ast.Name):
            self.scope[node.target.id] = value
        else:
            self.assign(node.target, value)

    def _range_of(self, node: ast.AST) -> Any:
        """What a loop goes over: a tl.range, or an iterable that is known."""
        if isinstance(node, ast.Call):
            function = unwrap(self.visit(node.func))
            if function in (range, tl.range, tl.static_range):
                arguments, keywords = self.arguments_of(node)
                if function is range:
                    if not 1 <= len(arguments) <= 3 or keywords:
                        raise TypeError("range takes one to three bounds")
                    return tl.range(*arguments)
                made = function(*arguments, **keywords)
                return made.as_python() if function is tl.static_range else made
        value = self.visit(node)
        if isinstance(value, tl.range):
            return value
        if isinstance(value, tl.static_range):
            return value.as_python()
        if isinstance(unwrap(value), (tuple, builtins.tuple, list, range)):
            return unwrap(value)
        raise RuntimeError(f"Only `range`, `tl.range`, `tl.static_range` and tuples are iterated over, not {described(value)}")

    def _bounds(self, over: tl.range) -> tuple:
        bounds = [to_tensor(bound) for bound in (over.start, over.end, over.step)]
        for name, bound in zip(("lower bound", "upper bound", "step"), bounds):
            if not bound.type.scalar.is_int():
                raise TypeError(f"For loop bounds and step must all be ints, are ({', '.join(str(one.type.scalar) for one in bounds)})")
            if bound.type.is_block():
                raise TypeError(f"For {name} must be a scalar, got {bound!r}")
        type = promote_integers(promote_integers(bounds[0].type, bounds[1].type), bounds[2].type)
        type = tl.int32 if type.is_bool() else type
        return [cast(bound, type) for bound in bounds]

    def _dynamic_for(self, node: ast.For, over: tl.range) -> None:
        if not isinstance(node.target, ast.Name):
            raise self.unsupported(node.target, "the variable of a loop is one name")
        step, back = unwrap(over.step), None
        if isinstance(step, int) and step == 0:
            raise ValueError("the step of a loop is not 0")
        if isinstance(step, int) and step < 0:  # the IR counts up: from the end to the start
            back = (over.start, over.end)
            over.start, over.end, over.step = over.end, over.start, constexpr(-step)
        bounds = self._bounds(over)
        before = self.scope
        carried = self._carried(node.body, before, {node.target.id})
        index, arguments = ir.Value(bounds[0].type.ir), self._arguments(carried)
        with ir.builder().region([index, *(part.handle for part in arguments)]) as region:
            value = tensor(index, bounds[0].type)
            if back:
                value = cast(to_tensor(back[0]), value.type) - (value - cast(to_tensor(back[1]), value.type))
            self.scope = {**before, **self._entered(carried, arguments), node.target.id: value}
            self.loop_body(node)
            yields = self._looped(carried, before, node.target.id)
        ir.builder().terminate(region, "yield", [part.handle for part in yields])
        inits = [part.handle for name in carried for part in flatten(before[name])]
        handles = ir.builder().emit("for", [*(bound.handle for bound in bounds), *inits], [part.type.ir for part in arguments],
                                    over.wishes, [region])
        self.scope = {**before, **self._left(carried, before, handles)}

    def loop_body(self, node: Any) -> None:
        self.loops += 1
        self.run(node.body)
        self.loops -= 1

    def visit_While(self, node: ast.While) -> None:
        if node.orelse:
            raise self.unsupported(node, "`else` of a loop is not supported")
        before = self.scope
        carried = self._carried([ast.Expr(node.test), *node.body], before, set())
        inits = [part.handle for name in carried for part in flatten(before[name])]
        regions = []
        arguments = self._arguments(carried)
        with ir.builder().region([part.handle for part in arguments]) as region:
            self.scope = {**before, **self._entered(carried, arguments)}
            condition = self.visit(node.test)
            condition = condition.condition if isinstance(condition, tl.condition) else condition
            condition = self.decided(node, condition) if isinstance(condition, tensor) else to_tensor(bool(unwrap(condition)))
        ir.builder().terminate(region, "condition", [condition.handle, *(part.handle for part in arguments)])
        regions.append(region)
        types = [part.type.ir for part in arguments]
        arguments = self._arguments(carried)
        with ir.builder().region([part.handle for part in arguments]) as region:
            self.scope = {**before, **self._entered(carried, arguments)}
            self.loop_body(node)
            yields = self._looped(carried, before)
        ir.builder().terminate(region, "yield", [part.handle for part in yields])
        regions.append(region)
        handles = ir.builder().emit("while", inits, types, {}, regions)
        self.scope = {**before, **self._left(carried, before, handles)}

    # What a loop carries: {name: value in front of it}.

    def _carried(self, body: list, before: dict, targets: set) -> dict:
        names = [name for name in assigned_names(body) if name in before and name not in targets]
        return {name: before[name] for name in names if flatten(before[name])}

    def _arguments(self, carried: dict) -> list:
        return [tensor(ir.Value(part.type.ir), part.type) for value in carried.values() for part in flatten(value)]

    def _entered(self, carried: dict, arguments: list) -> dict:
        parts = iter(arguments)
        return {name: rebuild(value, parts) for name, value in carried.items()}

    def _looped(self, carried: dict, before: dict, variable: str = "") -> list:
        """The values at the end of the body, which are of the types that they had at its start."""
        for name, value in before.items():
            now = self.scope[name]
            if now is value or name == variable or same(now, value):
                continue
            if name not in carried:
                raise TypeError(f"cannot reassign constexpr {name} in the loop: it is {described(value)} in front of it and "
                                f"{described(now)} at its end")
            raise TypeError(f"Loop-carried variable {name} has initial type {described(value)} but is re-assigned to {described(now)} in "
                            "loop! Please make sure that the type stays consistent.")
        return [part for name in carried for part in flatten(self.scope[name])]

    def _left(self, carried: dict, before: dict, handles: list) -> dict:
        parts = iter([tensor(handle, part.type) for handle, part in
                      zip(handles, (part for name in carried for part in flatten(before[name])))])
        return {name: rebuild(value, parts) for name, value in carried.items()}

    # -- what kernels do not have

    def unsupported(self, node: ast.AST, message: str) -> UnsupportedLanguageConstruct:
        return UnsupportedLanguageConstruct(self.source, node, message)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        raise self.unsupported(node, "nested function definitions are not allowed inside of a @jit function; define it at the level of "
                                     "the module and decorate it with @jit")

    visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = visit_FunctionDef

    def generic_visit(self, node: ast.AST) -> None:
        raise self.unsupported(node, f"unsupported AST node type: {type(node).__name__}; kernels have no such statement or expression")
