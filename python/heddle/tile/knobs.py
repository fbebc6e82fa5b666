"""Triton's settings. Those that Heddle has too are set in the environment; the others can be set and read, and change nothing."""
import contextlib
import os
import warnings
from typing import Any, Callable


class Hooks:
    """Functions that Triton calls around launches. Heddle does not, and says so when one is added."""

    def __init__(self, name: str):
        self.name, self.calls = name, []

    def add(self, function: Callable) -> None:
        warnings.warn(f"Heddle does not call the hook {self.name}; a kernel's add_pre_run_hook is called before its launches", stacklevel=2)
        self.calls.append(function)

    def remove(self, function: Callable) -> None:
        self.calls.remove(function)


class Group:
    """Settings by name. `variables`: those that Heddle has, with their variables of the environment."""

    def __init__(self, variables: Any = None, **values: Any):
        self.__dict__.update(values, _variables=variables or {})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        variable = self._variables.get(name)
        value = None if variable is None else os.environ.get(variable)
        return value if variable is None or name == "dir" else value not in (None, "", "0")

    def __setattr__(self, name: str, value: Any) -> None:
        variable = self._variables.get(name)
        if variable is None:
            self.__dict__[name] = value
        elif value is None:
            os.environ.pop(variable, None)
        else:
            os.environ[variable] = str(int(value)) if isinstance(value, bool) else str(value)

    @contextlib.contextmanager
    def scope(self):
        """Settings of a block of the program."""
        before = dict(self.__dict__)
        environment = {variable: os.environ.get(variable) for variable in self._variables.values()}
        try:
            yield self
        finally:
            self.__dict__.clear()
            self.__dict__.update(before)
            for variable, value in environment.items():
                os.environ.pop(variable, None) if value is None else os.environ.update({variable: value})


runtime = Group({"interpret": "HEDDLE_TILE_INTERPRET"}, debug=False,
                **{name: Hooks(name) for name in ("launch_enter_hook", "launch_exit_hook", "kernel_load_start_hook", "kernel_load_end_hook")})
cache = Group({"dir": "HEDDLE_CACHE_DIR"})
autotuning = Group({"print": "HEDDLE_TILE_PRINT_AUTOTUNING"})
compilation, language, build, redis, nvidia, amd, proton = (Group() for _ in range(7))
propagate_env = True
