"""The tokenizer of CLIP from a folder: tokenizer.json, or vocab.json and merges.txt."""
import json
import pathlib

import tokenizers
from tokenizers import Regex, models, normalizers, pre_tokenizers

WORDS = r"'s|'t|'re|'ve|'m|'ll|'d|\p{L}+|\p{N}|[^\s\p{L}\p{N}]+"
BEGIN, END = "<|startoftext|>", "<|endoftext|>"


class Tokenizer:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.words = self._read()
        self.words.no_padding()
        self.words.no_truncation()
        settings = self._settings("tokenizer_config.json")
        self.length = min(settings.get("model_max_length", 77), 77)
        self.begin, self.end = self._number(BEGIN), self._number(END)
        pad = {**settings, **self._settings("special_tokens_map.json")}.get("pad_token", END)
        self.pad = self._number(pad["content"] if isinstance(pad, dict) else pad)

    def __call__(self, text):
        """The numbers of a text's tokens, as many as the encoder takes, and how many did not fit."""
        numbers = self.words.encode(text, add_special_tokens=False).ids
        kept = numbers[: self.length - 2]
        padding = [self.pad] * (self.length - 2 - len(kept))
        return [self.begin, *kept, self.end, *padding], len(numbers) - len(kept)

    def _read(self):
        whole = self.folder / "tokenizer.json"
        try:
            return tokenizers.Tokenizer.from_file(str(whole)) if whole.exists() else self._of_vocabulary()
        except Exception as error:  # the library has no class of its own
            raise ValueError(f"{self.folder}: the tokenizer cannot be read: {error}") from None

    def _of_vocabulary(self):
        model = models.BPE.from_file(str(self.folder / "vocab.json"), str(self.folder / "merges.txt"),
                                     end_of_word_suffix="</w>", continuing_subword_prefix="", unk_token=END)
        words = tokenizers.Tokenizer(model)
        words.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
        words.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(WORDS), behavior="removed", invert=True),
                                                       pre_tokenizers.ByteLevel(add_prefix_space=False)])
        return words

    def _settings(self, name):
        path = self.folder / name
        return json.loads(path.read_text()) if path.exists() else {}

    def _number(self, token):
        number = self.words.token_to_id(token)
        if number is None:
            raise ValueError(f"{self.folder}: the vocabulary has no token {token}")
        return number
