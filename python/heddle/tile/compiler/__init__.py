"""From the Python of a kernel to the typed text of the tile IR."""
from heddle.tile.compiler import errors
from heddle.tile.compiler.errors import (
    CompilationError, CompileTimeAssertionFailure, OutOfResources, TileError, UnsupportedLanguageConstruct)

__all__ = ["CompilationError", "CompileTimeAssertionFailure", "OutOfResources", "TileError", "UnsupportedLanguageConstruct", "errors"]
