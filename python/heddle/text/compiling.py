"""Compiles models and the graphs between them for one device, and makes arrays there."""
from typing import Any, Callable, Dict, Optional

import numpy as np

from heddle import _core
from heddle._model import Model, compile

_NUMPY = {"f32": np.float32, "f16": np.float16, "f64": np.float64, "i64": np.int64, "i32": np.int32, "bool": np.bool_}


class Compiler:
    """`target`, `precision`, `threads` and `progress` are those of heddle.compile(); `precision` is for models."""

    def __init__(self, target: str, precision: str, threads: int, progress: Optional[Callable[[str, float], None]]):
        self.target, self._precision = target, precision
        self._options = {"target": target, "threads": threads, "progress": progress}
        self._graphs: Dict[str, Model] = {}

    def model(self, path: Any, **options: Any) -> Model:
        """A model of a file."""
        # Better kernels that replace others between two runs would change tokens by their rounding.
        return compile(str(path), precision=self._precision, background=False, **self._options, **options)

    def graph(self, text: str, **options: Any) -> Model:
        """A model of textual IR. The same text has the same options."""
        if text not in self._graphs:
            self._graphs[text] = compile(text.encode(), background=False, **self._options, **options)
        return self._graphs[text]

    def array(self, values: Any, dtype: str) -> Any:
        """A tensor on the device. Values of bf16, a type that NumPy lacks, are zeros or another such tensor's numpy()."""
        if dtype == "bf16":
            given = np.asarray(values)
            return _core.tensor(given.view(np.uint16) if given.itemsize == 2 else given.astype(np.uint16), "bf16", device=self.target)
        return _core.tensor(np.array(values, _NUMPY[dtype], order="C"), device=self.target)
