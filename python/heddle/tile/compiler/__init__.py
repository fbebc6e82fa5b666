"""From the Python of a kernel to the typed text of the tile IR."""
from heddle.tile.compiler import errors
from heddle.tile.compiler.errors import (
    CompilationError, CompileTimeAssertionFailure, OutOfResources, TileError, UnsupportedLanguageConstruct)
from heddle.tile.compiler.source import ASTSource, compile

__all__ = ["ASTSource", "CompilationError", "CompileTimeAssertionFailure", "OutOfResources", "TileError",
           "UnsupportedLanguageConstruct", "compile", "errors"]
