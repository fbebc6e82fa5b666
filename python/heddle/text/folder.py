"""The files of a model's folder, as optimum and onnx-community lay them out."""
import errno
import json
import pathlib
from typing import Any, List, NamedTuple, NoReturn, Optional, Sequence, Union

from heddle import _errors
from heddle._options import did_you_mean, refuse

# Suffixes of the file names by the names that transformers.js has for them, in the order of preference.
VARIANTS = {"fp32": "", "fp16": "_fp16", "q4f16": "_q4f16", "q4": "_q4", "q8": "_quantized", "int8": "_int8", "uint8": "_uint8",
            "bnb4": "_bnb4"}


def missing(path: pathlib.Path, remedy: str) -> NoReturn:
    """Raises heddle.MissingFileError."""
    why = "there is no such file"
    raise _errors.make(401, str(path), why, remedy, f"{path}: {why}. {remedy}", errno.ENOENT)


class Folder:
    """A folder with config.json, a tokenizer and ONNX files, which lie in it or in its folder `onnx`."""

    def __init__(self, path: Union[str, "pathlib.Path"]):
        self.path = pathlib.Path(path)
        if not self.path.is_dir():
            missing(self.path, "Give the folder of a model: config.json, tokenizer.json and ONNX files, or a folder onnx with them")
        self.config = self.json("config.json", needed=True)
        self.generation = self.json("generation_config.json")

    def json(self, name: str, *, needed: bool = False) -> dict:
        """The object in a JSON file; empty if the file is absent and not needed."""
        path = self.path / name
        if not path.is_file():
            if needed:
                missing(path, f"Copy {name} of the model into the folder")
            return {}
        try:
            read = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as reason:
            refuse(str(path), f"the file cannot be read as JSON: {reason}", "Copy it again")
        if not isinstance(read, dict):
            refuse(str(path), "the file holds no JSON object", "Copy it again")
        return read

    def text(self, name: str) -> Optional[str]:
        """The content of a file, None if it is absent."""
        path = self.path / name
        if not path.is_file():
            return None
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, ValueError) as reason:
            refuse(str(path), f"the file cannot be read as text: {reason}", "Copy it again")

    @property
    def family(self) -> str:
        """The architecture as config.json names it."""
        return str(self.config.get("model_type", "unknown"))

    def model(self, stems: Sequence[str], variant: Optional[str]) -> pathlib.Path:
        """The ONNX file with one of these names, in the order of preference, and the suffix of the variant."""
        found = self.find(stems, variant)
        if found is None:
            there = ", ".join(sorted(path.name for folder in self._folders() for path in folder.glob("*.onnx"))) or "none"
            suffixes = list(VARIANTS.values()) if variant is None else [self._suffix(variant)]
            names = " or ".join(f"{stem}{suffixes[0]}.onnx" for stem in stems)
            missing(self.path / names.split(" ")[0], f"The folder needs {names}, in it or in its folder onnx; it has: {there}. "
                                                     "The option variant picks others: " + ", ".join(VARIANTS))
        return found

    def find(self, stems: Sequence[str], variant: Optional[str]) -> Optional[pathlib.Path]:
        """The same, or None."""
        for suffix in list(VARIANTS.values()) if variant is None else [self._suffix(variant)]:
            for stem in stems:
                for folder in self._folders():
                    path = folder / f"{stem}{suffix}.onnx"
                    if path.is_file():
                        return path
        return None

    def _folders(self) -> List[pathlib.Path]:
        return [self.path / "onnx", self.path]

    @staticmethod
    def _suffix(variant: str) -> str:
        if variant not in VARIANTS:
            refuse("variant", f"there is no variant {variant}", f"{did_you_mean(variant, VARIANTS)}The variants are {', '.join(VARIANTS)}")
        return VARIANTS[variant]


class Declared(NamedTuple):
    """An input or output as the file declares it: extents are numbers or names."""

    name: str
    dtype: str
    extents: Sequence[Union[int, str]]


def declared(ports: Sequence[Any]) -> List[Declared]:
    """The ports that heddle.inspect() lists."""
    def extent(text: Any) -> Union[int, str]:
        return int(text) if str(text).isdigit() else str(text)

    return [Declared(port["name"], port["type"].split("[")[0], [extent(one) for one in port.get("extents", [])]) for port in ports]
