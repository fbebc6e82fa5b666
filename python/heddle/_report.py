"""Report: what explain, profile, verify, tune, bench and inspect give."""
import functools
import json
from typing import Any, Callable, Iterator, Mapping, Union

from heddle import _html


class Report(Mapping[str, Any]):
    """What a tool found: a table for people, as the command `heddle` prints it, and a mapping, which is its --json."""

    def __init__(self, text: str, form: Union[str, Callable[[], str]]):
        """`form`: the JSON text, or what makes it when it is first asked for."""
        self._text, self._form = text, form

    @property
    def text(self) -> str:
        """What the command `heddle` prints."""
        return self._text

    @functools.cached_property
    def data(self) -> Mapping[str, Any]:
        """The same in full, as plain dicts and lists."""
        return json.loads(self._form if isinstance(self._form, str) else self._form())

    @property
    def ok(self) -> bool:
        """False where verification failed or a problem could not be measured."""
        return bool(self.data.get("ok", not self.data.get("failed")))

    def __bool__(self) -> bool:
        return self.ok

    def __getitem__(self, name: str) -> Any:
        return self.data[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.data)

    def __len__(self) -> int:
        return len(self.data)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text.rstrip("\n")

    def _repr_html_(self) -> str:
        return _html.text(self.text)
