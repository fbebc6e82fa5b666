"""profile(): what this process does, by the lines of Python that do it."""
import contextlib
import os
import pathlib
from typing import Iterator, Optional

from heddle import _core
from heddle._errors import make
from heddle._profile import Profile
from heddle._record import Library

_LIBRARY = pathlib.Path(__file__).with_name("libheddle_profile.so")
_library: Optional[Library] = None


class Recording:
    """What `with heddle.profile() as recording:` records. `profile` is there when the block has ended."""

    def __init__(self) -> None:
        self._profile: Optional[Profile] = None
        self._failure: Optional[str] = None

    @property
    def profile(self) -> Profile:
        """Raises heddle.InputError within the block, heddle.InternalError where the recording could not be finished."""
        if self._failure is not None:
            text = f"Recording.profile: the recording could not be finished: {self._failure}"
            raise make(501, "Recording.profile", self._failure, "", text)
        if self._profile is None:
            why, remedy = "the recording has not ended", "Take it behind the with block"
            raise make(201, "Recording.profile", why, remedy, f"Recording.profile: {why}. {remedy}")
        return self._profile

    def _end(self) -> None:
        form = _library.stop()
        if form is None:
            self._failure = _library.why() or "it was ended by somebody else"
        else:
            self._profile = Profile(_core.profile_text(form), form)

    def __repr__(self) -> str:
        return "heddle.Recording that has not ended" if self._profile is None else repr(self._profile)

    def _repr_html_(self) -> Optional[str]:
        return None if self._profile is None else self._profile._repr_html_()


@contextlib.contextmanager
def _nvtx_tells(gpu: bool) -> Iterator[None]:
    """NVTX looks for who takes it over when it is first used."""
    name = "NVTX_INJECTION64_PATH"
    if not gpu or name in os.environ:
        yield
        return
    os.environ[name] = str(_LIBRARY)
    try:
        yield
    finally:
        os.environ.pop(name, None)


@contextlib.contextmanager
def profile(title: str = "heddle.profile()", *, rate: float = 100, gpu: bool = True,
            all_frames: bool = False, operators: bool = False) -> Iterator[Recording]:
    """Records what this process does within a with block: all threads, by the lines of Python that do it.

    CPU time is sampled `rate` times a second of it. What GPUs do is recorded by CUPTI unless `gpu` is False: kernels,
    copies, waiting, each below the line that asked for it. Where CUPTI is missing or taken, a fact of the profile says
    so. CUDA graphs that were captured before are known by their kernels' names alone. `all_frames` shows frames that
    only pass calls on. `operators` shows PyTorch's operators, those of backward() below the lines of the forward pass
    whose gradient they compute; not beside torch.profiler. Ranges of NVTX are rows where this process uses NVTX for the
    first time within the block. Raises heddle.InputError where this process is being profiled already.
    """
    global _library
    if not rate > 0:
        why, remedy = f"{rate} samples a second", "Give a rate above 0"
        raise make(201, "rate", why, remedy, f"rate: {why}. {remedy}")
    _library = _library or Library(str(_LIBRARY))
    with _nvtx_tells(gpu):
        try:
            _library.start(title, rate=rate, gpu=2 if gpu else 0, all_frames=all_frames, operators=operators)
        except RuntimeError as reason:
            remedy = "End the other recording first: heddle.profile() and `heddle profile` record a process once"
            raise make(201, "heddle.profile", str(reason), remedy, f"heddle.profile: {reason}. {remedy}") from None
        recording = Recording()
        try:
            yield recording
        finally:
            recording._end()
