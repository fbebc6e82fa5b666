"""The CPU as the device that is in use."""
from heddle.tile.runtime.driver import Target


class _Utils:
    def get_device_properties(self, device):
        return {"max_shared_mem": 1 << 30, "multiprocessor_count": 8}


class _Active:
    utils = _Utils()

    def get_current_target(self):
        return Target("cpu", "x86_64", 1)

    def get_current_device(self):
        return 0

    def get_active_torch_device(self):
        import torch

        return torch.device("cpu")

    def get_benchmarker(self):
        from heddle.tile.testing import do_bench

        return do_bench

    def get_device_interface(self):
        import torch

        return torch.cpu

    def set_current_device(self, device):
        pass


active = _Active()
