"""Triton's settings, which Heddle does not have: they can be set, and change nothing."""
import contextlib


class _Knobs:
    def __init__(self, **values):
        self.__dict__.update(values)

    def __getattr__(self, name):
        return None

    @contextlib.contextmanager
    def scope(self):
        before = dict(self.__dict__)
        try:
            yield self
        finally:
            self.__dict__.clear()
            self.__dict__.update(before)


class _Hooks(list):
    add = list.append


runtime = _Knobs(interpret=False, debug=False, launch_enter_hook=_Hooks(), launch_exit_hook=_Hooks(),
                 kernel_load_start_hook=_Hooks(), kernel_load_end_hook=_Hooks())
cache, compilation, language, autotuning, build, nvidia, amd = (_Knobs() for _ in range(7))
propagate_env = True
