"""What Triton's tests ask of their helpers: names of types, random arrays, kinds of devices."""
import contextlib

import numpy as np
import pytest
import torch

from heddle.tile import language as tl
from heddle.tile.language.types import BY_NAME
from heddle.tile.runtime.arrays import Reinterpreted, reinterpret

int_dtypes = [f"int{bits}" for bits in (8, 16, 32, 64)]
uint_dtypes = [f"u{name}" for name in int_dtypes]
integral_dtypes = int_dtypes + uint_dtypes
float_dtypes = ["float16", "float32", "float64"]
float_dtypes_with_bfloat16 = [*float_dtypes, "bfloat16"]
dtypes = integral_dtypes + float_dtypes
dtypes_with_bfloat16 = [*dtypes, "bfloat16"]
torch_float8_dtypes = ["float8_e4m3fn", "float8_e5m2"]
torch_dtypes = ["bool", *int_dtypes, "uint8", *float_dtypes, "bfloat16"]
tma_dtypes = sorted(set(dtypes_with_bfloat16) - {"int64", "uint64", "float64"})


def _never():
    return False


is_interpreter = is_cuda = is_hip = is_xpu = is_ampere_or_newer = is_blackwell = is_blackwell_ultra = is_hopper_or_newer = _never
is_hopper = is_sm12x = is_hip_cdna = is_hip_cdna2 = is_hip_cdna3 = is_hip_cdna4 = is_hip_cdna3_or_newer = is_hip_rdna = _never
is_hip_rdna3 = is_hip_rdna4 = is_hip_gfx1250 = _never


def is_cpu():
    return True


def supports_tma(byval_only=False):
    return True


supports_ws = supports_tma


def tma_skip_msg(byval_only=False):
    return "windows into memory are on all devices"


requires_tma = pytest.mark.skipif(False, reason="")


def get_current_target():
    from triton import _driver

    return _driver.active.get_current_target()


def get_hip_lds_size():
    return 65536


def numpy_random(shape, dtype_str, rs=None, low=None, high=None):
    shape = (shape,) if isinstance(shape, int) else shape
    rs = np.random.RandomState(17) if rs is None else rs
    if dtype_str in integral_dtypes:
        limits = np.iinfo(dtype_str)
        low, high = limits.min if low is None else max(low, limits.min), limits.max if high is None else min(high, limits.max)
        made = rs.randint(low, high, shape, dtype=dtype_str)
        made[made == 0] = 1
        return made
    if "float8" in dtype_str:
        return rs.randint(20, 40, shape, dtype=np.int8)
    if dtype_str == "bfloat16":
        return (rs.normal(0, 1, shape).astype("float32").view("uint32") & np.uint32(0xFFFF0000)).view("float32")
    if dtype_str in ("bool", "int1", "bool_"):
        return rs.normal(0, 1, shape) > 0
    return rs.normal(0, 1, shape).astype(dtype_str)


def to_triton(x, device, dst_type=None):
    name = x.dtype.name
    if name in uint_dtypes:
        return reinterpret(torch.tensor(x.astype(name[1:]), device=device), getattr(tl, name))
    made = torch.tensor(x, device=device)
    if dst_type and "float8" in dst_type:
        return reinterpret(made, getattr(tl, dst_type))
    return made.bfloat16() if name == "float32" and dst_type == "bfloat16" else made


def str_to_triton_dtype(name):
    return BY_NAME[name]


def torch_dtype_name(dtype):
    return dtype.name if isinstance(dtype, tl.dtype) else str(dtype).partition(".")[2]


def to_numpy(x):
    if isinstance(x, Reinterpreted):
        return x.base.cpu().numpy().astype(torch_dtype_name(x.dtype))
    return x.cpu().float().numpy() if x.dtype is torch.bfloat16 else x.cpu().numpy()


def unwrap_tensor(x):
    return x.base if isinstance(x, Reinterpreted) else x


def default_alloc_fn(size, align, stream):
    return torch.empty(size, dtype=torch.int8)


def _fresh_knobs_impl(skipped_attr=None):
    from triton import knobs

    return (lambda: knobs), (lambda: None)


@contextlib.contextmanager
def expect_pattern(*arguments):
    yield
