"""Which argument of a launch is of a kind that the kernel has no use for, where it cannot be compiled."""
import ast
from typing import Any, Dict, Iterator, List, Optional, Set

from heddle.tile.compiler.errors import ArgumentError, CompilationError
from heddle.tile.language.memory import NoPointer
from heddle.tile.language.promotion import PointerOperand


def explained(error: CompilationError, function: Any, facts: Dict[str, tuple]) -> CompilationError:
    """The error of a kernel with these facts of its arguments: an ArgumentError where one of them is of the wrong kind, else as it is."""
    frames = [error]
    while isinstance(frames[-1].inner, CompilationError):
        frames.append(frames[-1].inner)
    failed = frames[-1]
    wants_pointer = isinstance(failed.reason, NoPointer)
    if not (wants_pointer or isinstance(failed.reason, TypeError)) or not isinstance(failed.node, ast.AST):
        return error
    node = failed.node.args[0] if wants_pointer and isinstance(failed.node, ast.Call) and failed.node.args else failed.node
    names = _parameters_behind(frames, node)
    is_wrong = _is_no_pointer if wants_pointer else _is_pointer if isinstance(failed.reason, PointerOperand) else _is_no_number
    wrong = [parameter.name for parameter in function.params
             if parameter.name in names and not parameter.is_constexpr and is_wrong(facts[parameter.name])]
    if not wrong:
        return error
    given = _told(facts[wrong[0]])
    use = "a pointer" if wants_pointer else "a number"
    others = f" (or {', '.join(wrong[1:])})" if len(wrong) > 1 else ""
    remedy = "If it is data, give an array of NumPy or another library" if facts[wrong[0]][0] == "tuple" else ""
    return ArgumentError(f"{wrong[0]}{others} of {function.__name__}()", f"{given} is given, and the kernel uses it as {use}", remedy, error)


def _is_no_pointer(facts: tuple) -> bool:
    return facts[0] not in ("pointer", "descriptor")


def _is_pointer(facts: tuple) -> bool:
    return not _is_no_pointer(facts)


def _is_no_number(facts: tuple) -> bool:
    return facts[0] == "tuple" or facts[0] == "known" and not isinstance(facts[1], (bool, int, float))


def _told(facts: tuple) -> str:
    if facts[0] == "known":
        return f"{facts[1]!r}"
    if facts[0] == "number":
        return f"a number ({facts[1]})"
    return {"pointer": f"an array ({facts[1]})", "tuple": "a tuple or a list"}.get(facts[0], "a descriptor")


def _parameters_behind(frames: List[CompilationError], node: ast.AST) -> Set[str]:
    """The kernel's parameters that an expression of the innermost frame may be made of."""
    for level in range(len(frames) - 1, -1, -1):
        function = frames[level].source.tree
        names = _names_behind(function, node)
        parameters = [argument.arg for argument in function.args.args]
        if level == 0:
            return names & set(parameters)
        call = frames[level - 1].node
        if not isinstance(call, ast.Call):
            return set()
        passed = {**dict(zip(parameters, call.args)), **{word.arg: word.value for word in call.keywords if word.arg}}
        node = ast.Tuple([value for name, value in passed.items() if name in names])
    return set()


def _names_behind(function: ast.FunctionDef, node: ast.AST) -> Set[str]:
    """The names that an expression reads, with those that these are assigned from."""
    sources: Dict[str, List[ast.AST]] = {}
    for statement in ast.walk(function):
        value = _assigned(statement)
        if value is not None:
            for name in _targets(statement):
                sources.setdefault(name, []).append(value)
    found: Set[str] = set()
    open_nodes = [node]
    while open_nodes:
        for one in ast.walk(open_nodes.pop()):
            if isinstance(one, ast.Name) and one.id not in found:
                found.add(one.id)
                open_nodes += sources.get(one.id, [])
    return found


def _assigned(statement: ast.AST) -> Optional[ast.AST]:
    if isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr)):
        return statement.value
    return statement.iter if isinstance(statement, ast.For) else None


def _targets(statement: Any) -> Iterator[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    for target in targets:
        yield from (one.id for one in ast.walk(target) if isinstance(one, ast.Name))
