"""The exceptions of heddle. All are heddle.Error; their classes are the families of docs/errors."""


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

    def __reduce__(self):  # what crosses processes keeps its parts
        return type(self), (str(self), self.code, self.where, self.why, self.remedy)


class ModelError(Error):
    """1xx: a file that is no model, or breaks the rules of its operators."""


class InputError(Error, ValueError):
    """2xx: an argument or an array that the caller passed."""


class UnsupportedError(Error, NotImplementedError):
    """3xx: valid, but Heddle cannot do it."""


class MachineError(Error, RuntimeError):
    """4xx: files, compilers, memory or devices."""


class InternalError(Error, RuntimeError):
    """5xx: a fault of Heddle."""


_FAMILIES = {1: ModelError, 2: InputError, 3: UnsupportedError, 4: MachineError}


def make(code: int, where: str, why: str, remedy: str, message: str) -> Error:
    """The exception for an error of the library."""
    return _FAMILIES.get(code // 100, InternalError)(message, code, where, why, remedy)
