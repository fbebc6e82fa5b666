"""Profile: what Model.profile() and heddle.profile() give."""
import html
import os
import pathlib
from typing import Union

from heddle import _core
from heddle._errors import make
from heddle._report import Report

_FORMS = {".html": "html", ".pftrace": "trace", ".speedscope.json": "speedscope", ".pprof": "pprof", ".folded": "folded"}


class Profile(Report):
    """Which parts of a model or a program take the time; a notebook shows the page of it.

    As a mapping it is its JSON form (docs/reference/profile-json.md): the calling-context tree with its values, the
    roofline and the header.
    """

    _form: str

    @property
    def html(self) -> str:
        """One page with tables, flame graphs and the roofline, which works offline."""
        return _core.profile_in_form(self._form, "html").decode()

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes it in the form that the name ends with.

        .json: its own, which `heddle profile show`, `diff` and `merge` read; .html: the page; .pftrace: for
        ui.perfetto.dev; .speedscope.json, .pprof, and .folded for flame-graph scripts. Raises heddle.InputError for
        another ending.
        """
        name = os.fspath(path)
        for ending, form in _FORMS.items():
            if name.endswith(ending):
                pathlib.Path(name).write_bytes(_core.profile_in_form(self._form, form))
                return
        if not name.endswith(".json"):
            why, remedy = f"{name} ends like no form of a profile", f"End it in .json, {', '.join(_FORMS)}"
            raise make(201, "path", why, remedy, f"path: {why}. {remedy}")
        pathlib.Path(name).write_text(self._form)

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{html.escape(self.html)}" style="width:100%;height:640px;border:0"></iframe>'
