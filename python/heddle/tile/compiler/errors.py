"""What goes wrong while a kernel is compiled."""
from typing import Any, Optional

from heddle._errors import InputError, MachineError

_EXCERPT = 12  # lines of the function in front of the place


class TileError(InputError):
    """Any error of a kernel."""

    def __init__(self, message: str, where: str = "", why: str = "", remedy: str = ""):
        super().__init__(message, 201, where, why, remedy)

    def __reduce__(self):
        return type(self), (str(self), self.where, self.why, self.remedy)


class CompilationError(TileError):
    """A kernel that cannot be compiled: the place, the lines up to it with a mark under the expression, and why.

    An error in a function that the kernel calls names each call on the way; `__cause__` is the error inside.
    """

    def __init__(self, source: Any, node: Any, error_message: Optional[str] = None, inner: Optional[Exception] = None):
        self.source, self.node, self.error_message, self.inner = source, node, error_message, inner
        self.reason: Optional[Exception] = None  # what was raised at the node
        # The place as a debugger names it, and as it is counted inside of the function.
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        where = f"{source.file}:{source.line_of(line)}:{column + source.indentation + 1}" if source is not None else ""
        super().__init__(self._text(where, line, column), where, error_message or "")

    def __reduce__(self):
        return _restore, (type(self), str(self), self.where, self.why)

    def _text(self, where: str, line: int, column: int) -> str:
        if self.source is None:
            return self.error_message or ""
        head = f"{where}: in {self.source.name}, at {line}:{column}:"
        lines = self.source.text.split("\n")[:line][-_EXCERPT:]
        written = [head, *lines, " " * column + self._mark(line)]
        if self.error_message:
            written.append(self.error_message)
        if self.inner is not None:
            written.append(f"called function: {self.inner}")
        return "\n".join(written)

    def _mark(self, line: int) -> str:
        """As long as the expression, where it ends on its line."""
        end = getattr(self.node, "end_col_offset", None)
        if end is None or getattr(self.node, "end_lineno", None) != line:
            return "^"
        return "^" + "~" * max(0, end - self.node.col_offset - 1)


def _restore(cls, text, where, why):
    error = cls.__new__(cls)
    TileError.__init__(error, text, where, why)
    error.source = error.node = error.inner = error.reason = None
    error.error_message = why
    return error


class ArgumentError(CompilationError, TypeError):
    """An argument of a launch that the kernel does not take: `where` names it, `why` says what it is."""

    def __init__(self, name: str, why: str, remedy: str = "", inner: Optional[CompilationError] = None):
        self.source, self.node, self.error_message, self.inner, self.reason = None, None, why, inner, None
        where = f"argument {name}"
        text = f"{where}: {why}" + (f". {remedy}" if remedy else "")
        TileError.__init__(self, text if inner is None else f"{text}\n{inner}", where, why, remedy)


class CompileTimeAssertionFailure(CompilationError):
    """A static_assert that does not hold."""


class UnsupportedLanguageConstruct(CompilationError):
    """Python that kernels do not have."""


class OutOfResources(MachineError):
    """A kernel that needs more of something than the device has."""

    def __init__(self, required: int, limit: int, name: str, where: str = ""):
        self.required, self.limit, self.name = required, limit, name
        super().__init__((f"{where}: " if where else "") + f"out of resource: {name}, Required: {required}, Hardware limit: {limit}. "
                         "Reducing block sizes or `num_stages` may help.", 404, where, name, "Reduce block sizes or num_stages")

    def __reduce__(self):
        return type(self), (self.required, self.limit, self.name, self.where)
