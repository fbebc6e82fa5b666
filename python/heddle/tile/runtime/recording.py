"""What happens to launches while something other than running kernels is asked for: they are written down, or dropped."""
import contextlib
import threading
from typing import Any, Iterator

from heddle._core import tile as core


class Recorder:
    """Takes launches of the thread that it is active on. This one drops them."""

    def launch(self, kernel: Any, grid: Any, bound: dict, words: dict) -> None:
        """A launch of a JITFunction: the value of each parameter by name, and the options."""


class _Active(threading.local):
    recorder = None


active = _Active()


@contextlib.contextmanager
def recording(recorder: Recorder) -> Iterator[Recorder]:
    """Gives the launches of this thread to a recorder."""
    before, active.recorder = active.recorder, recorder
    core.count_recorders(1)
    try:
        yield recorder
    finally:
        core.count_recorders(-1)
        active.recorder = before
