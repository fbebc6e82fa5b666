"""What a kernel is compiled for, and what is known of its arguments."""
import enum
from typing import Any, NamedTuple, Sequence


class GPUTarget(NamedTuple):
    """A kind of device: "cpu" or "cuda", and of the latter its compute capability as 90."""

    backend: str
    arch: Any
    warp_size: int

    @property
    def compiler_name(self) -> str:
        """As kernels are compiled for it: "cpu", "cuda-sm_90a"."""
        if self.backend != "cuda":
            return self.backend
        return f"cuda-sm_{self.arch}" + ("a" if self.arch >= 90 else "")


class Language(enum.Enum):
    """What a kernel is written in."""

    TRITON = 0
    GLUON = 1


class AttrsDescriptor:
    """Facts of arguments by their numbers, as programs that generate kernels write them: multiples of 16, and those that are 1."""

    def __init__(self, params: Any = None, hints: Any = None, divisible_by_16: Sequence[int] = (), equal_to_1: Sequence[int] = ()):
        self.arg_properties = {"tt.divisibility": tuple(divisible_by_16), "tt.equal_to": tuple(equal_to_1)}

    @property
    def divisible_by_16(self) -> tuple:
        return self.arg_properties["tt.divisibility"]

    @property
    def equal_to_1(self) -> tuple:
        return self.arg_properties["tt.equal_to"]

    @classmethod
    def from_dict(cls, data: dict) -> "AttrsDescriptor":
        properties = data.get("arg_properties", {})
        return cls(divisible_by_16=properties.get("tt.divisibility", ()), equal_to_1=properties.get("tt.equal_to", ()))

    def to_dict(self) -> dict:
        return {"arg_properties": {name: list(numbers) for name, numbers in self.arg_properties.items()}, "cls": type(self).__name__}

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, AttrsDescriptor) and self.arg_properties == other.arg_properties

    def __hash__(self) -> int:
        return hash(tuple(self.arg_properties.items()))


__all__ = ["AttrsDescriptor", "GPUTarget", "Language"]
