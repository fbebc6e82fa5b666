"""Text to tokens and back, and the templates of conversations."""
import datetime
import json
from typing import Any, List, Mapping, Optional, Sequence, Tuple

from heddle import _errors
from heddle._options import refuse
from heddle.text.folder import Folder, missing


def _imported(package: str, purpose: str) -> Any:
    try:
        return __import__(package)
    except ImportError as reason:
        why = f"{purpose} needs the package {package}, which is not installed ({reason})"
        remedy = "Run `pip install 'heddle[text]'`"
        raise _errors.make(301, "heddle.text", why, remedy, f"heddle.text: {why}. {remedy}") from None


def _word(token: Any) -> Optional[str]:
    """The text of a special token, which files hold as a string or as an object."""
    return token.get("content") if isinstance(token, Mapping) else token


class Tokenizer:
    """The tokenizer of a folder (tokenizer.json)."""

    def __init__(self, folder: Folder):
        path = folder.path / "tokenizer.json"
        if not path.is_file():
            missing(path, "Copy tokenizer.json of the model into the folder; "
                          "transformers' AutoTokenizer writes it by save_pretrained()")
        library = _imported("tokenizers", "tokenizer.json")
        try:
            self._tokenizer = library.Tokenizer.from_file(str(path))
        except Exception as reason:  # the library raises plain Exception
            refuse(str(path), f"the tokenizer cannot be read: {reason}", "Copy it again, or update the package tokenizers")
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._path = path
        self._config = folder.json("tokenizer_config.json")
        self._template = _template(folder, self._config)

    @property
    def words(self) -> int:
        """One more than the largest number of a token. Special tokens do not count: some are for inputs that a text model lacks."""
        special = {number for number, token in self._tokenizer.get_added_tokens_decoder().items() if token.special}
        return 1 + max((number for number in self._tokenizer.get_vocab(with_added_tokens=True).values() if number not in special), default=-1)

    def require_fit(self, words: int, model: str) -> None:
        """Refuses a tokenizer with tokens that a model of so many words does not have."""
        if self.words > words:
            refuse(str(self._path), f"the tokenizer has tokens up to number {self.words - 1}, and {model} has logits for {words}",
                   "Use the tokenizer.json that belongs to the model")

    def number(self, token: str) -> Optional[int]:
        """The number of a token, None if there is none."""
        return self._tokenizer.token_to_id(token)

    def end(self) -> Optional[int]:
        """The token that ends a text according to tokenizer_config.json."""
        word = _word(self._config.get("eos_token"))
        return None if word is None else self.number(word)

    def encode(self, text: str, *, special: bool = True) -> List[int]:
        """Tokens of a text; `special`: with those that the tokenizer adds, such as the one that begins a text."""
        try:
            text.encode()
        except UnicodeEncodeError:  # a lone surrogate, as the command line makes of bytes that are not UTF-8
            refuse("prompt", "it is not UTF-8", "Convert it to UTF-8")
        return self._tokenizer.encode(text, add_special_tokens=special).ids

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of tokens, without special ones."""
        return self._tokenizer.decode(list(tokens), skip_special_tokens=True)

    def conversation(self, messages: Sequence[Mapping[str, str]]) -> List[int]:
        """Tokens of a conversation in the model's template, up to where the assistant answers."""
        if self._template is None:
            refuse("chat", f"{self._path.parent} has no chat template", "Leave out the option, or use a model that was trained on conversations")
        _imported("jinja2", "a chat template")
        from jinja2 import TemplateError
        from jinja2.ext import Extension
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        class Generation(Extension):
            """Templates mark the assistant's part for training by {% generation %}, which changes nothing in a text."""
            tags = {"generation"}

            def parse(self, parser: Any) -> Any:
                next(parser.stream)
                return parser.parse_statements(("name:endgeneration",), drop_needle=True)

        def raise_exception(why: str) -> None:
            raise TemplateError(why)

        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", Generation])
        # jinja2's own escapes characters for HTML.
        environment.filters["tojson"] = lambda value, indent=None: json.dumps(value, ensure_ascii=False, indent=indent)
        environment.globals["raise_exception"] = raise_exception
        environment.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
        tokens = {name: _word(self._config.get(name)) or "" for name in ("bos_token", "eos_token", "unk_token", "pad_token")}
        try:
            text = environment.from_string(self._template).render(messages=list(messages), add_generation_prompt=True, **tokens)
        except Exception as reason:  # whatever the template's own operations raise
            refuse("chat", f"the chat template of {self._path.parent} fails: {reason}", "Give the prompt without the option")
        return self.encode(text, special=False)


def _template(folder: Folder, config: Mapping[str, Any]) -> Optional[str]:
    """The chat template, which is a file of its own or an entry of the tokenizer's configuration."""
    whole = folder.text("chat_template.jinja") or folder.json("chat_template.json").get("chat_template") or config.get("chat_template")
    if isinstance(whole, list):  # several by name
        by_name = {one.get("name"): one.get("template") for one in whole}
        return by_name.get("default")
    return whole


class TextStream:
    """Text of tokens as they come. Holds back what is not a whole character yet, and what may begin a stop word."""

    def __init__(self, tokenizer: Tokenizer, stops: Sequence[str]):
        self._tokenizer, self._stops = tokenizer, stops
        self._tokens: List[int] = []
        self._from = self._read = 0  # tokens before `_from` are settled; those up to `_read` were decoded
        self._held = ""

    def add(self, token: int) -> Tuple[str, bool]:
        """New text, and whether a stop word ended it."""
        self._tokens.append(token)
        return self._release(self._new_text(is_last=False), is_last=False)

    def end(self) -> str:
        """What was held back."""
        return self._release(self._new_text(is_last=True), is_last=True)[0]

    def _new_text(self, is_last: bool) -> str:
        # Decoded with some earlier tokens, since the text of a token depends on those before it (spaces).
        before = self._tokenizer.decode(self._tokens[self._from:self._read])
        text = self._tokenizer.decode(self._tokens[self._from:])
        if len(text) <= len(before) or (text.endswith("\ufffd") and not is_last):
            return ""
        self._from, self._read = self._read, len(self._tokens)
        return text[len(before):]

    def _release(self, text: str, is_last: bool) -> Tuple[str, bool]:
        self._held += text
        found = [at for at in map(self._held.find, self._stops) if at >= 0]
        if found:
            text, self._held = self._held[:min(found)], ""
            return text, True
        kept = 0 if is_last else max((_overlap(self._held, stop) for stop in self._stops), default=0)
        cut = len(self._held) - kept
        text, self._held = self._held[:cut], self._held[cut:]
        return text, False


def _overlap(text: str, word: str) -> int:
    """The length of the longest end of `text` that begins `word`."""
    return next((n for n in range(min(len(text), len(word) - 1), 0, -1) if text.endswith(word[:n])), 0)
