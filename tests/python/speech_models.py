"""Writes Whisper models with seeded weights into folders, as optimum and onnx-community lay them out.

    speech_models.py FOLDER [--size tiny|base] [--split] [--endless]

`--split`: decoder_model.onnx and decoder_with_past_model.onnx in place of decoder_model_merged.onnx. `--endless`: the token that
ends a text is suppressed.
"""
import argparse
import dataclasses
import json
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper

from language_models import Writer, tokenizer

FLOAT, INT = TensorProto.FLOAT, TensorProto.INT64
MARKS = ("<|en|>", "<|fr|>", "<|transcribe|>", "<|translate|>", "<|notimestamps|>", "<|startoftranscript|>")


@dataclasses.dataclass
class Size:
    layers: int
    width: int
    heads: int
    words: int
    bands: int = 80
    states: int = 1500
    positions: int = 448

    @property
    def depth(self):
        return self.width // self.heads


SIZES = {"tiny": Size(2, 32, 2, 320), "base": Size(6, 512, 8, 51865)}


class Layers(Writer):
    """Layers that encoder and decoder share. Weights come in one order, so that equal seeds give equal weights."""

    def __init__(self, size, seed):
        super().__init__(seed, "f32")
        self.size = size

    def linear(self, x, inputs, outputs, scale=None):
        product = self.node("MatMul", x, self.constant(self.random_weight(inputs, outputs, scale=scale)))
        return self.node("Add", product, self.constant(self.random_weight(outputs, scale=0.1)))

    def norm(self, x):
        width = self.size.width
        weight, bias = self.real(1 + 0.1 * self.random.standard_normal(width)), self.real(0.1 * self.random.standard_normal(width))
        return self.node("LayerNormalization", x, weight, bias, axis=-1, epsilon=1e-5)

    def gelu(self, x):
        bell = self.node("Erf", self.node("Mul", x, self.real(0.5**0.5)))
        return self.node("Mul", self.node("Mul", x, self.real(0.5)), self.node("Add", bell, self.real(1.0)))

    def heads(self, x):
        s = self.size
        return self.node("Transpose", self.node("Reshape", x, self.constant(np.array([0, -1, s.heads, s.depth]))), perm=[0, 2, 1, 3])

    def attention(self, q, keys, values, mask=None):
        s = self.size
        scores = self.node("MatMul", self.node("Mul", q, self.real(s.depth**-0.5)), self.node("Transpose", keys, perm=[0, 1, 3, 2]))
        weights = self.node("Softmax", self.node("Add", scores, mask) if mask else scores, axis=-1)
        mixed = self.node("Transpose", self.node("MatMul", weights, values), perm=[0, 2, 1, 3])
        return self.linear(self.node("Reshape", mixed, self.constant(np.array([0, -1, s.width]))), s.width, s.width)

    def feed_forward(self, x):
        wide = self.gelu(self.linear(self.norm(x), self.size.width, 4 * self.size.width))
        return self.node("Add", x, self.linear(wide, 4 * self.size.width, self.size.width))


def encoder(size, seed=1):
    w = Layers(size, seed)
    x = w.input("input_features", FLOAT, ["batch", size.bands, 2 * size.states])
    for inputs, stride in ((size.bands, 1), (size.width, 2)):
        weight = w.random_weight(size.width, inputs, 3, scale=(3 * inputs) ** -0.5)
        x = w.gelu(w.node("Conv", x, w.constant(weight), w.constant(w.random_weight(size.width, scale=0.1)), pads=[1, 1], strides=[stride]))
    x = w.node("Add", w.node("Transpose", x, perm=[0, 2, 1]), w.constant(w.random_weight(size.states, size.width, scale=0.5)))
    for _ in range(size.layers):
        normed = w.norm(x)
        q, k, v = (w.heads(w.linear(normed, size.width, size.width)) for _ in range(3))
        x = w.feed_forward(w.node("Add", x, w.attention(q, k, v)))
    w.output("last_hidden_state", w.norm(x), FLOAT, ["batch", size.states, size.width])
    return w.proto("encoder")


def past_names(size, side):
    return [f"past_key_values.{i}.{side}.{part}" for i in range(size.layers) for part in ("key", "value")]


class DecoderLayers(Layers):
    """The decoder's nodes on the first tokens, or after earlier ones (`has_past`). Both draw the same weights."""

    def run(self, has_past):
        s = self.size
        table = self.random_weight(s.words, s.width, scale=1)
        places = self.constant(self.random_weight(s.positions, s.width, scale=0.3))
        one, zero, flat = self.constant(np.int64(1)), self.constant(np.int64(0)), self.constant(np.array([], np.int64))
        scalar = lambda x: self.node("Reshape", x, flat)
        fresh = scalar(self.extent("input_ids", 1))
        past = scalar(self.extent("past_key_values.0.decoder.key", 2)) if has_past else zero
        at = self.node("Range", past, self.node("Add", past, fresh), one)
        x = self.node("Add", self.node("Gather", self.constant(table), "input_ids"), self.node("Gather", places, at))
        row = self.node("Unsqueeze", at, self.constant(np.array([1])))
        column = self.node("Range", zero, self.node("Add", past, fresh), one)
        mask = self.node("Where", self.node("Greater", column, row), self.real(-1e30), self.real(0.0))
        presents = {}
        for i in range(s.layers):
            normed = self.norm(x)
            q, *own = (self.heads(self.linear(normed, s.width, s.width)) for _ in range(3))
            pasts = [f"past_key_values.{i}.decoder.{part}" for part in ("key", "value")]
            if has_past:
                own = [self.node("Concat", a, b, axis=2) for a, b in zip(pasts, own)]
            x = self.node("Add", x, self.attention(q, *own, mask))
            normed = self.norm(x)
            q = self.heads(self.linear(normed, s.width, s.width))
            if has_past:
                cross = [name.replace("decoder", "encoder") for name in pasts]
                for _ in cross:  # weights that this branch does not need
                    self.random_weight(s.width, s.width), self.random_weight(s.width)
            else:
                cross = [self.heads(self.linear("encoder_hidden_states", s.width, s.width)) for _ in range(2)]
            x = self.feed_forward(self.node("Add", x, self.attention(q, *cross)))
            presents.update(zip([name.replace("past_key_values", "present") for name in pasts], own))
            presents.update(zip([name.replace("past_key_values", "present").replace("decoder", "encoder") for name in pasts], cross))
        head = self.constant(self.random_weight(s.width, s.words))
        return {"logits": self.node("MatMul", self.norm(x), head), **presents}

    def shape_of(self, name, of_past=False):
        s = self.size
        if name == "logits":
            return ["batch", "tokens", s.words]
        length = "states" if ".encoder." in name else ("past_tokens" if of_past else "all_tokens")
        return ["batch", s.heads, length, s.depth]


def decoder(size, has_past, seed=2):
    w = DecoderLayers(size, seed)
    w.input("input_ids", INT, ["batch", "tokens"])
    if has_past:
        for name in (*past_names(size, "decoder"), *past_names(size, "encoder")):
            w.input(name, FLOAT, w.shape_of(name, of_past=True))
    else:
        w.input("encoder_hidden_states", FLOAT, ["batch", "states", size.width])
    for name, value in w.run(has_past).items():
        if not has_past or ".encoder." not in name:
            w.output(name, value, FLOAT, w.shape_of(name))
    return w.proto("decoder")


def merged_decoder(size, seed=2):
    w = DecoderLayers(size, seed)
    start = w.random.bit_generator.state
    w.input("input_ids", INT, ["batch", "tokens"])
    w.input("encoder_hidden_states", FLOAT, ["batch", "states", size.width])
    for name in (*past_names(size, "decoder"), *past_names(size, "encoder")):
        w.input(name, FLOAT, w.shape_of(name, of_past=True))
    w.input("use_cache_branch", TensorProto.BOOL, [1])
    branches, names = {}, []
    for branch, has_past in (("then_branch", True), ("else_branch", False)):
        w.random.bit_generator.state = start
        first = len(w.nodes)
        results = w.run(has_past)
        names = list(results)
        outputs = [helper.make_node("Identity", [value], [f"{branch}.{name}"]) for name, value in results.items()]
        # Values of the other branch have other names: they count on.
        values = [helper.make_tensor_value_info(f"{branch}.{name}", FLOAT, w.shape_of(name)) for name in names]
        branches[branch] = helper.make_graph(w.nodes[first:] + outputs, branch, [], values)
    w.nodes = [helper.make_node("If", ["use_cache_branch"], names, **branches)]
    w.outputs = [helper.make_tensor_value_info(name, FLOAT, w.shape_of(name)) for name in names]
    return w.proto("merged")


def write(folder, size, split=False, endless=False):
    """Writes the folder of a model and returns it; `endless`: the text never ends by itself."""
    folder = pathlib.Path(folder)
    (folder / "onnx").mkdir(parents=True, exist_ok=True)
    models = {"encoder_model": encoder(size)}
    models |= {"decoder_model": decoder(size, False), "decoder_with_past_model": decoder(size, True)} if split else \
        {"decoder_model_merged": merged_decoder(size)}
    for name, proto in models.items():
        onnx.save(proto, folder / f"onnx/{name}.onnx")
    words = tokenizer()
    words.add_special_tokens(list(MARKS))
    words.save(str(folder / "tokenizer.json"))
    number = words.token_to_id
    end = number("<|end|>")
    files = {"config.json": {"model_type": "whisper", "is_encoder_decoder": True, "max_target_positions": size.positions, "eos_token_id": end},
             "generation_config.json": {"eos_token_id": end, "decoder_start_token_id": number("<|startoftranscript|>"),
                                        "lang_to_id": {word: number(word) for word in MARKS[:2]},
                                        "task_to_id": {word.strip("<|>"): number(word) for word in MARKS[2:4]},
                                        "no_timestamps_token_id": number("<|notimestamps|>"), "suppress_tokens": [1, 2, end] if endless else [1, 2],
                                        "begin_suppress_tokens": [3, end]},
             "preprocessor_config.json": {"feature_size": size.bands, "sampling_rate": 16000, "n_fft": 400, "hop_length": 160, "chunk_length": 30}}
    for file, content in files.items():
        (folder / file).write_text(json.dumps(content))
    return folder


if __name__ == "__main__":
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--size", choices=SIZES, default="base")
    parser.add_argument("--split", action="store_true")
    parser.add_argument("--endless", action="store_true")
    given = parser.parse_args()
    write(given.folder, SIZES[given.size], given.split, given.endless)
