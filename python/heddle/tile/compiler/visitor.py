"""Goes through the syntax tree of a kernel and describes what it does to the builder of the IR (heddle.tile.ir)."""
import ast
import builtins
import functools
import operator
import threading
from types import ModuleType
from typing import Any, Callable

from heddle.tile import ir
from heddle.tile import language as tl
from heddle.tile.compiler.errors import CompilationError, CompileTimeAssertionFailure
from heddle.tile.compiler.statements import Statements
from heddle.tile.compiler.structure import described
from heddle.tile.language import arithmetic, program
from heddle.tile.language.promotion import to_tensor
from heddle.tile.language.types import constexpr, dtype, unwrap, unwrap_all
from heddle.tile.language.values import base_value, slice, tensor, tuple

_DEPTH = 200  # of calls, so that a function that calls itself is found out

_BINARY = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.LShift: operator.lshift,
    ast.RShift: operator.rshift, ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
}
_COMPARISONS = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
}
_UNARY = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert}

_PYTHON = {
    "len": len, "list": list, "range": range, "float": float, "int": int, "bool": bool, "str": str, "isinstance": isinstance,
    "getattr": getattr, "hasattr": hasattr, "tuple": builtins.tuple, "abs": tl.abs, "print": program.device_print,
    "min": program.builtin_min, "max": program.builtin_max, "constexpr": constexpr, "zip": zip, "enumerate": enumerate,
}

_frames = threading.local()


def _stack() -> list:
    if not hasattr(_frames, "stack"):
        _frames.stack = []
    return _frames.stack


def inline(function: Any, arguments: list, keywords: dict) -> Any:
    """A @jit function in the kernel that is being compiled, at the present place."""
    stack = _stack()
    if len(stack) >= _DEPTH:
        raise RecursionError(f"{function.__name__} is called {_DEPTH} calls deep: kernels have no recursion but what is decided when they "
                             "are compiled")
    bound = function.signature.bind(*arguments, **keywords)
    bound.apply_defaults()
    scope = {name: _argument(value) for name, value in bound.arguments.items()}
    visitor = Visitor(function, scope)
    with ir.builder().inlined():
        try:
            return visitor.body()
        except CompilationError as error:
            caller = stack[-1]
            raise CompilationError(caller.source, caller.node, None, error) from error


def _argument(value: Any) -> Any:
    if isinstance(value, (builtins.tuple, list)):
        return tuple([_argument(one) for one in value], getattr(value, "_fields", None))
    return value if isinstance(value, (base_value, constexpr)) else constexpr(value)


class Visitor(Statements):
    """One function while it is gone through, with the values of its names."""

    def __init__(self, function: Any, scope: dict):
        self.function, self.source, self.scope = function, function.source, scope
        self.globals = function.capture()
        self.annotated: dict[str, Any] = {}
        self.loops = self.unrolled = 0
        self.node: Any = None
        self.unused: Any = None  # the expression whose value nobody takes

    def body(self) -> Any:
        """What the function gives back."""
        stack = _stack()
        stack.append(self)
        try:
            tree = self.source.tree
            self.node = tree
            try:
                returned = self.run(tree.body)
            except CompilationError:
                raise
            except Exception as error:
                raise CompilationError(self.source, self.node, str(error)) from None
            return constexpr(None) if returned is None else returned.value
        finally:
            stack.pop()

    # -- places

    def locate(self, node: Any) -> None:
        self.node = node
        ir.builder().place = (self.source.file, self.source.line_of(node.lineno), node.col_offset + self.source.indentation + 1)

    def visit(self, node: Any) -> Any:
        return self._at(node, super().visit)

    def _at(self, node: Any, visit: Callable) -> Any:
        """What visit(node) gives; its errors and operations have the place of the node."""
        before, place = self.node, ir.builder().place
        if hasattr(node, "lineno"):
            self.locate(node)
        try:
            result = visit(node)
        except CompilationError:
            raise
        except Exception as error:
            cause = error if isinstance(node, ast.Call) else None
            message = str(error) if not isinstance(error, KeyError) else repr(error)
            failed = CompilationError(self.source, node, f"{type(error).__name__}: {message}")
            failed.reason = error
            raise failed from cause
        self.node, ir.builder().place = before, place
        return result

    # -- names

    def visit_Name(self, node: ast.Name) -> Any:
        name = node.id
        if name in self.scope:
            return self.scope[name]
        if name in self.globals:
            value = self.globals[name]
            self._check_global(name, value)
            return value
        if name in _PYTHON:
            return _PYTHON[name]
        raise NameError(f"{name} is not defined")

    def _check_global(self, name: str, value: Any) -> None:
        known = (isinstance(value, (ModuleType, constexpr, dtype, base_value)) or getattr(value, "tile_builtin", False)
                 or getattr(value, "tile_function", False) or str(getattr(value, "__module__", "")).startswith("heddle.tile")
                 or value in (int, float, bool, str) or isinstance(value, type) and hasattr(value, "_fields")
                 or hasattr(type(value), "_fields"))
        if not known:
            raise NameError(f"Cannot access global variable {name} from within a @jit function: it may change after the kernel is compiled. "
                            f"Make it a constant, `{name} = tl.constexpr({value!r})`, or an argument of the kernel. "
                            f"(An annotation, `{name}: tl.constexpr = ...`, is not enough.)")
        if isinstance(value, constexpr):
            self.function.uses_global(name, value)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        value = self.visit(node.value)
        if isinstance(value, constexpr) and node.attr not in ("value", "type"):
            value = value.value
        found = getattr(value, node.attr)
        if isinstance(value, ModuleType) and isinstance(found, (int, float, str)) and not isinstance(found, bool):
            return constexpr(found)
        return found

    # -- constants and collections

    def visit_Constant(self, node: ast.Constant) -> constexpr:
        return constexpr(node.value)

    def visit_Tuple(self, node: Any) -> tuple:
        values = []
        for element in node.elts:
            if isinstance(element, ast.Starred):
                values.extend(_argument(one) for one in unwrap_all(self.visit(element.value)))
            else:
                values.append(_argument(self.visit(element)))
        return tuple(values)

    visit_List = visit_Tuple

    def visit_ListComp(self, node: ast.ListComp) -> tuple:
        if len(node.generators) != 1:
            raise self.unsupported(node, "nested comprehensions are not supported")
        generator, results, before = node.generators[0], [], dict(self.scope)
        over = unwrap(self.visit(generator.iter))
        if isinstance(over, tl.static_range):
            over = over.as_python()
        if not isinstance(over, (tuple, builtins.tuple, list, range)):
            raise NotImplementedError(f"only tuple comprehensions are supported, over what is known when the kernel is compiled, not {described(over)}")
        for item in over:
            if not isinstance(generator.target, ast.Name):
                self.assign(generator.target, item)
            else:
                self.scope[generator.target.id] = _argument(item)
            if all(unwrap(self.visit(condition)) for condition in generator.ifs):
                results.append(_argument(self.visit(node.elt)))
        self.scope = before
        return tuple(results)

    visit_GeneratorExp = visit_ListComp

    def visit_JoinedStr(self, node: ast.JoinedStr) -> constexpr:
        written = []
        for part in node.values:
            if isinstance(part, ast.Constant):
                written.append(str(part.value))
                continue
            value = self.visit(part.value)
            if isinstance(value, base_value):
                raise self.unsupported(node, "Cannot evaluate f-string containing non-constexpr conversion values, found conversion of "
                                             f"type {type(value).__name__}: {value!r}")
            conversion = "" if part.conversion < 0 else "!" + chr(part.conversion)
            form = "" if part.format_spec is None else ":" + unwrap(self.visit(part.format_spec))
            written.append(("{" + conversion + form + "}").format(unwrap(value)))
        return constexpr("".join(written))

    # -- operators

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        """A sum of many terms is as deep on its left side: it is gone through without recursion."""
        inner = []
        while isinstance(node.left, ast.BinOp):
            inner.append(node)
            node = node.left
        value = self._combined(node, self.visit(node.left)) if not inner else self._at(
            node, lambda one: self._combined(one, self.visit(one.left)))
        for outer in reversed(inner[1:]):
            value = self._at(outer, functools.partial(self._combined, left=value))
        return self._combined(inner[0], value) if inner else value

    def _combined(self, node: ast.BinOp, left: Any) -> Any:
        return _known(self._binary(node.op, left, self.visit(node.right)))

    def _binary(self, op: ast.operator, left: Any, right: Any) -> Any:
        compute = _BINARY.get(type(op))
        if compute is None:
            raise NotImplementedError(f"operator {type(op).__name__} is not for kernels; write tl.dot for a matrix product")
        if not isinstance(left, (base_value, constexpr)) and isinstance(right, constexpr):
            left = constexpr(left)
        return compute(left, right)

    def visit_Compare(self, node: ast.Compare) -> Any:
        left, result = self.visit(node.left), None
        for op, comparator in zip(node.ops, node.comparators):
            right = self.visit(comparator)
            one = self._compare(op, left, right)
            result = one if result is None else self._both(result, one)
            left = right
        return result

    def _both(self, a: Any, b: Any) -> Any:
        if isinstance(a, tensor) or isinstance(b, tensor):
            return arithmetic.bit_and(to_tensor(a), to_tensor(b))
        return constexpr(unwrap(a) and unwrap(b))

    def _compare(self, op: ast.cmpop, left: Any, right: Any) -> Any:
        if isinstance(op, (ast.Is, ast.IsNot)):
            return constexpr((unwrap(left) is unwrap(right)) == isinstance(op, ast.Is))
        if isinstance(op, (ast.In, ast.NotIn)):
            values = unwrap(right) if isinstance(unwrap(right), (str, dict)) else unwrap_all(right)
            if isinstance(left, tensor) or any(isinstance(value, base_value) for value in values):
                raise TypeError("`in` is decided when the kernel is compiled, among values that are known then")
            return constexpr((unwrap(left) in values) == isinstance(op, ast.In))
        return _known(_COMPARISONS[type(op)](left, right))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        operand = self.visit(node.operand)
        if isinstance(node.op, ast.Not):
            return arithmetic.logical_not(operand) if isinstance(operand, tensor) else constexpr(not unwrap(operand))
        return _known(_UNARY[type(node.op)](operand))

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        """Stops at what is known to decide; of values that are not known all are computed."""
        stops, value, result = isinstance(node.op, ast.Or), None, None
        for part in node.values:
            value = self.visit(part)
            if not isinstance(value, tensor):
                if bool(unwrap(value)) is stops:
                    return value
                continue
            combine = arithmetic.logical_or if stops else arithmetic.logical_and
            result = value if result is None else combine(result, value)
        return value if result is None else result

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        condition = self.decided(node, self.visit(node.test))
        if not isinstance(condition, tensor):
            return self.visit(node.body if condition else node.orelse)
        regions, values = [], []
        for part in (node.body, node.orelse):
            with ir.builder().region() as region:
                value = self.visit(part)
                is_nothing = isinstance(value, constexpr) and value.value is None
                values.append(value if isinstance(value, tuple) or is_nothing else to_tensor(value))
            regions.append(region)
        if values[0].type != values[1].type:
            raise TypeError(f"Ternary expression with dynamic condition has inconsistent types {values[0].type} and {values[1].type}")
        return self._merge(condition, regions, values[:1], values[1:])[0]

    def visit_NamedExpr(self, node: ast.NamedExpr) -> Any:
        self.assign(node.target, self.visit(node.value))
        return self.scope[node.target.id]

    # -- subscripts

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        value, index = self.visit(node.value), self.visit(node.slice)
        if isinstance(value, base_value):
            return value[index]
        return _known(unwrap(value)[builtins.tuple(unwrap_all(index)) if isinstance(index, tuple) else unwrap(index)])

    def visit_Slice(self, node: ast.Slice) -> slice:
        return slice(*(None if part is None else self.visit(part) for part in (node.lower, node.upper, node.step)))

    # -- calls

    def arguments_of(self, node: ast.Call) -> builtins.tuple:
        arguments, keywords = [], {}
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                arguments.extend(unwrap(self.visit(argument.value)))
            else:
                arguments.append(self.visit(argument))
        for keyword in node.keywords:
            if keyword.arg is None:
                raise self.unsupported(node, "`**` in calls is not supported")
            keywords[keyword.arg] = self.visit(keyword.value)
        return arguments, keywords

    def visit_Call(self, node: ast.Call) -> Any:
        function = unwrap(self.visit(node.func))
        if function is tl.static_assert:
            return self._static_assert(node)
        if node is self.unused and getattr(function, "must_use_result", False):
            reason = function.must_use_result
            raise CompilationError(self.source, node, f"The result of {ast.unparse(node.func)} is not being used."
                                                      + (f" {reason}" if isinstance(reason, str) else ""))
        arguments, keywords = self.arguments_of(node)
        self.locate(node)
        if hasattr(function, "inline"):
            return inline(function.inlined, arguments, keywords)
        if getattr(function, "tile_builtin", False) or isinstance(getattr(function, "__self__", None), base_value):
            return _plain_tuple(function(*arguments, **keywords))
        if function in (isinstance, hasattr, getattr):
            return self._ask(function, arguments)
        if isinstance(function, type) and issubclass(function, (base_value, constexpr)):
            return function(*arguments, **keywords)
        if isinstance(function, type) and hasattr(function, "_fields"):
            return tuple(function(*arguments, **keywords), function._fields)
        return self._python(function, arguments, keywords)

    def _python(self, function: Any, arguments: list, keywords: dict) -> Any:
        """A function of Python's, of values that are known."""
        plain = [_python_value(one) for one in arguments]
        words = {name: _python_value(value) for name, value in keywords.items()}
        if function is int or function is float or function is bool:
            if any(isinstance(one, tensor) for one in plain):
                raise TypeError(f"{function.__name__}() of a {plain[0]!r}, which is not known when the kernel is compiled; cast it with .to()")
        return _known(function(*plain, **words))

    def _ask(self, function: Any, arguments: list) -> Any:
        subject, *rest = arguments
        if function is isinstance:
            classes = unwrap_all(rest[0])
            return constexpr(any(isinstance(subject, one) or isinstance(unwrap(subject), one) for one in classes))
        subject = subject if isinstance(subject, base_value) else unwrap(subject)
        return _known(function(subject, *map(unwrap, rest)))

    def _static_assert(self, node: ast.Call) -> constexpr:
        if not 1 <= len(node.args) <= 2 or node.keywords and [word.arg for word in node.keywords] != ["msg"]:
            raise TypeError("`static_assert` requires one or two positional arguments only")
        holds = unwrap(self.visit(node.args[0]))
        if not isinstance(holds, bool):
            raise NotImplementedError("Assertion condition could not be determined at compile-time. Make sure that it depends only on "
                                      f"`constexpr` values; it is {described(holds)}")
        if not holds:
            message = [*node.args[1:], *(word.value for word in node.keywords)]
            raise CompileTimeAssertionFailure(self.source, node, str(unwrap(self.visit(message[0]))) if message else "")
        return constexpr(None)


def _python_value(value: Any) -> Any:
    """An argument of a function of Python's."""
    value = unwrap(value)
    if isinstance(value, tuple) and all(not isinstance(one, base_value) for one in value.values):
        return builtins.tuple(map(unwrap, value.values))
    return value


def _plain_tuple(value: Any) -> Any:
    return _argument(value) if isinstance(value, (builtins.tuple, list)) or value is None else value


def _known(value: Any) -> Any:
    """What an operation gave, as a value of the kernel."""
    if isinstance(value, (base_value, constexpr)) or hasattr(value, "inline"):
        return value
    if isinstance(value, (builtins.tuple, list, zip, enumerate)):
        return tuple([_known(one) for one in value], getattr(value, "_fields", None))
    return constexpr(value)


