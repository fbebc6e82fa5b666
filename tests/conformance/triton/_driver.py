"""The CPU as the device that is in use, whatever there is."""
import torch

from heddle.tile.runtime import driver
from heddle.tile.runtime.driver import Target


class _Cpu(driver.Driver):
    def get_current_target(self):
        return Target("cpu", "x86_64", 1)

    def get_device_interface(self):
        return torch.cpu

    def get_active_torch_device(self):
        return torch.device("cpu")


active = _Cpu()
