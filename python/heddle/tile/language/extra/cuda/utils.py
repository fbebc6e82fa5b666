"""What a program knows of the GPU that it runs on."""
from heddle.tile import ir
from heddle.tile.language import types as t
from heddle.tile.language.program import inline_asm_elementwise
from heddle.tile.language.shaping import builtin
from heddle.tile.language.types import constexpr


@builtin
def globaltimer():
    """Nanoseconds of the GPU's clock, as int64; on GPUs only."""
    return inline_asm_elementwise("mov.u64 $0, %globaltimer;", "=l", [], t.int64, False, 1)


@builtin
def smid():
    """The number of the SM that the program runs on, as int32; on GPUs only."""
    return inline_asm_elementwise("mov.u32 $0, %smid;", "=r", [], t.int32, False, 1)


@builtin
def num_warps():
    """How many warps the program has."""
    return constexpr(ir.builder().options.num_warps)


@builtin
def num_threads():
    """How many threads the program has."""
    return constexpr(ir.builder().options.num_warps * 32)
