"""Tensors as arguments of a kernel, with the shape of the blocks that it loads and stores."""
import dataclasses
from typing import Any, Sequence


@dataclasses.dataclass
class TensorDescriptor:
    """An array with its extents, its strides in elements, and the shape of a block.

    The array and all strides but the last, which is 1, are multiples of 16 bytes. What a block has outside of the tensor is
    zero, or NaN with padding="nan".
    """

    base: Any
    shape: Sequence[int]
    strides: Sequence[int]
    block_shape: Sequence[int]
    padding: str = "zero"
    round_f32_to_tf32: bool = False

    def __post_init__(self):
        from heddle.tile.runtime.arrays import address_of, type_of

        rank = len(self.shape)
        if not 1 <= rank <= 5:
            raise ValueError(f"a descriptor has 1 to 5 dimensions, not {rank}")
        for name in ("strides", "block_shape"):
            if len(getattr(self, name)) != rank:
                raise ValueError(f"rank mismatch: {name} has {len(getattr(self, name))} values for {rank} dimensions")
        if address_of(self.base) % 16:
            raise ValueError("base must be 16-byte aligned")
        element = type_of(self.base)
        for stride in self.strides[:-1]:
            if stride * element.itemsize % 16:
                raise ValueError(f"strides must be 16-byte aligned, and {stride} elements of {element} are "
                                 f"{stride * element.itemsize} bytes")
        if self.strides[-1] != 1:
            raise ValueError(f"Last dimension must be contiguous, its stride is {self.strides[-1]}")
        if any(extent <= 0 for extent in self.shape):
            raise ValueError(f"shape must be positive, not {list(self.shape)}")
        if self.padding not in ("zero", "nan"):
            raise ValueError(f"Illegal value for padding: {self.padding!r}; there are 'zero' and 'nan'")
        if self.padding == "nan" and not element.is_floating():
            raise ValueError("Padding option `nan` is only supported for floating point tensors")
        if self.round_f32_to_tf32 and not element.is_fp32():
            raise ValueError("round_f32_to_tf32 is only supported for float32 tensors")

    @staticmethod
    def from_tensor(tensor: Any, block_shape: Sequence[int], padding: str = "zero", round_f32_to_tf32: bool = False):
        """Of an array with its own extents and strides."""
        if hasattr(tensor, "stride"):
            strides = list(tensor.stride())
        else:
            strides = [stride // tensor.dtype.itemsize for stride in tensor.strides]
        return TensorDescriptor(tensor, list(tensor.shape), strides, list(block_shape), padding, round_f32_to_tf32)
