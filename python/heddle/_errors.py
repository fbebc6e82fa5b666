"""The exceptions of heddle. All are heddle.Error; their classes are the families of docs/errors."""
import os
from typing import Any, Optional


class Error(Exception):
    """What went wrong, where, and what to do.

    `code` is the number of a page in docs/errors (202), `where` names the file, node or argument, `why` the rule that
    was broken, `remedy` what to do ("" where nothing is known). str() has all of it.
    """

    code: int
    where: str
    why: str
    remedy: str

    def __init__(self, message: str, code: int = 501, where: str = "", why: str = "", remedy: str = ""):
        super().__init__(message)
        self.code, self.where, self.why, self.remedy = code, where, why, remedy

    def __str__(self) -> str:  # OSError would write its own
        return str(self.args[0])

    def __reduce__(self) -> Any:  # what crosses processes keeps its parts
        return type(self), (str(self), self.code, self.where, self.why, self.remedy)


class ModelError(Error):
    """1xx: a file that is no model, or breaks the rules of its operators."""


class InputError(Error, ValueError):
    """2xx: an argument or an array that the caller passed."""


class UnsupportedError(Error, NotImplementedError):
    """3xx: valid, but Heddle cannot do it."""


class MachineError(Error, RuntimeError):
    """4xx: files, compilers, memory or devices."""


class FileError(MachineError, OSError):
    """401 with the system's reason: `errno`, `strerror` and `filename` are those of an OSError."""

    def __init__(self, message: str, code: int = 401, where: str = "", why: str = "", remedy: str = "", number: int = 0):
        super().__init__(message, code, where, why, remedy)
        self.errno, self.strerror, self.filename = number, os.strerror(number), where

    def __reduce__(self) -> Any:
        return type(self), (str(self), self.code, self.where, self.why, self.remedy, self.errno)


class MissingFileError(FileError, FileNotFoundError):
    """There is no such file."""


class ForbiddenFileError(FileError, PermissionError):
    """The system does not let this user read or write the file."""


class InternalError(Error, RuntimeError):
    """5xx: a fault of Heddle."""


_FAMILIES = {1: ModelError, 2: InputError, 3: UnsupportedError, 4: MachineError}
_OF_FILES = {FileNotFoundError: MissingFileError, PermissionError: ForbiddenFileError}


def make(code: int, where: str, why: str, remedy: str, message: str, number: Optional[int] = None) -> Error:
    """The exception for an error of the library; `number`: the errno of a file that could not be read or written."""
    if number is not None:
        return _OF_FILES.get(type(OSError(number, "")), FileError)(message, code, where, why, remedy, number)
    return _FAMILIES.get(code // 100, InternalError)(message, code, where, why, remedy)
