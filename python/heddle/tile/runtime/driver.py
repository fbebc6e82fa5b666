"""The device for which kernels are compiled, and what programs ask of it."""
import functools
import os
import platform
import sys
from typing import Any

from heddle.tile.backends.compiler import GPUTarget as Target


@functools.lru_cache(maxsize=None)
def cuda_target(device: int) -> str:
    """The name of what the compiler makes for a GPU: "cuda-sm_90a"."""
    from heddle.tile.runtime.kernel import core

    return core().cuda_target(device)


def _torch_cuda() -> Any:
    """torch.cuda where torch is loaded and has a GPU."""
    torch = sys.modules.get("torch")
    return torch.cuda if torch is not None and torch.cuda.is_available() else None


class _Utils:
    def get_device_properties(self, device: int) -> dict:
        """SMs (of a CPU: its threads), shared memory and registers of one, threads of a warp."""
        cuda = _torch_cuda()
        if cuda is None:
            return {"multiprocessor_count": os.cpu_count() or 1, "max_shared_mem": 1 << 20, "max_num_regs": 1 << 16, "warpSize": 1}
        found = cuda.get_device_properties(device)
        return {"multiprocessor_count": found.multi_processor_count, "warpSize": 32, "max_num_regs": 65536,
                "max_shared_mem": getattr(found, "shared_memory_per_block_optin", 49152)}


class Driver:
    """What is in use: the GPU that torch works on, else the CPU."""

    utils = _Utils()

    def get_current_target(self) -> Target:
        cuda = _torch_cuda()
        if cuda is None:
            return Target("cpu", platform.machine(), 1)
        major, minor = cuda.get_device_capability()
        return Target("cuda", 10 * major + minor, 32)

    def get_current_device(self) -> int:
        cuda = _torch_cuda()
        return 0 if cuda is None else cuda.current_device()

    def set_current_device(self, device: int) -> None:
        cuda = _torch_cuda()
        if cuda is not None:
            cuda.set_device(device)

    def get_active_torch_device(self) -> Any:
        import torch

        return torch.device("cpu" if _torch_cuda() is None else f"cuda:{self.get_current_device()}")

    def get_benchmarker(self) -> Any:
        from heddle.tile.testing import do_bench

        return do_bench


active = Driver()
