"""The text of a @jit function."""
import ast
import functools
import inspect
import re
import textwrap
from typing import Callable


class Source:
    """A function's text without its decorators, where it stands, and its syntax tree."""

    def __init__(self, function: Callable):
        try:
            lines, first = inspect.getsourcelines(function)
        except (OSError, TypeError) as error:
            raise ValueError(f"the text of {function.__qualname__} is not to be found: a @jit function stands in a Python file, since it is "
                             "compiled from its text") from error
        raw = "".join(lines)
        self.file, self.name = function.__code__.co_filename, function.__name__
        text = textwrap.dedent(raw)
        found = re.search(r"^def\s+\w+\s*\(", text, re.MULTILINE)
        if found is None:
            raise ValueError(f"{function.__qualname__} is no function defined by `def`")
        self.first_line = first + text[: found.start()].count("\n")
        self.indentation = len(lines[0]) - len(lines[0].lstrip())
        self._set(text[found.start() :])

    def _set(self, text: str) -> None:
        self.text = text
        self.__dict__.pop("tree", None)

    def replaced(self, text: str) -> "Source":
        """The same place with another text."""
        made = object.__new__(Source)
        made.__dict__.update({name: value for name, value in self.__dict__.items() if name != "tree"})
        made._set(text)
        return made

    @functools.cached_property
    def tree(self) -> ast.FunctionDef:
        return ast.parse(self.text).body[0]

    def line_of(self, line: int) -> int:
        """A line of the text, counted in the file."""
        return self.first_line + line - 1
