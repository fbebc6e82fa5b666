#!/usr/bin/env python3
"""Networks of timm and transformers as their users call them, with random weights: make(spec) gives a module in eval mode and
example inputs, f32 on the CPU; `published_models.py SPEC FILE.onnx` exports them by PyTorch's exporter.

A spec is NAME@PACKAGE[:BATCH[:SEQ]]. Any name of timm will do; of transformers those of TRANSFORMERS. Rows of gpu_models.py."""

import pathlib
import sys

import torch
from torch import nn


class Result(nn.Module):
    """A network of transformers with one tensor as its result and no cache."""

    def __init__(self, network, field, **arguments):
        super().__init__()
        self.network, self.field, self.arguments = network, field, arguments

    def forward(self, *inputs):
        return getattr(self.network(*inputs, **self.arguments), self.field)


class EncoderDecoder(nn.Module):
    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, source, target):
        return self.network(input_ids=source, decoder_input_ids=target, use_cache=False).last_hidden_state


def ids(vocabulary, batch, seq):
    return torch.randint(0, vocabulary, (batch, seq))


def gpt2(batch, seq):
    import transformers as t
    return Result(t.GPT2LMHeadModel(t.GPT2Config()), "logits", use_cache=False), (ids(50257, batch, seq or 512),)


def llama(batch, seq):
    """Eight layers of Llama 3.2 1B's."""
    import transformers as t
    config = t.LlamaConfig(vocab_size=32000, hidden_size=2048, intermediate_size=8192, num_hidden_layers=8,
                           num_attention_heads=32, num_key_value_heads=8, max_position_embeddings=8192)
    return Result(t.LlamaForCausalLM(config), "logits", use_cache=False), (ids(32000, batch, seq or 1024),)


def bert(batch, seq):
    import transformers as t
    return Result(t.BertModel(t.BertConfig(), add_pooling_layer=False), "last_hidden_state"), (ids(30522, batch, seq or 128),)


def t5(batch, seq):
    import transformers as t
    config = t.T5Config(num_decoder_layers=6)
    return EncoderDecoder(t.T5Model(config)), (ids(32000, batch, seq or 128), ids(32000, batch, seq or 128))


def whisper(batch, seq):
    from transformers.models.whisper.modeling_whisper import WhisperConfig, WhisperEncoder
    config = WhisperConfig(d_model=512, encoder_layers=6, encoder_attention_heads=8, encoder_ffn_dim=2048)
    return Result(WhisperEncoder(config), "last_hidden_state"), (torch.randn(batch, 80, seq or 3000),)


TRANSFORMERS = {"gpt2": gpt2, "llama": llama, "bert": bert, "t5": t5, "whisper-encoder": whisper}


def is_published(spec):
    return "@" in spec


def make(spec):
    name, *sizes = spec.split(":")
    name, package = name.split("@")
    batch, seq = ([int(size) for size in sizes] + [1, 0][len(sizes):])[:2]
    if package == "timm":
        import timm
        model = timm.create_model(name, pretrained=False)
        inputs = (torch.randn(batch, *model.default_cfg["input_size"]),)
    elif package == "transformers":
        if name not in TRANSFORMERS:
            raise ValueError(f"{name}: of transformers there are {', '.join(TRANSFORMERS)}")
        model, inputs = TRANSFORMERS[name](batch, seq)
    else:
        raise ValueError(f"{spec}: the package is {package}, not timm or transformers")
    return model.eval(), inputs


def export(spec, path):
    model, inputs = make(spec)
    with torch.inference_mode():
        try:
            torch.onnx.export(model, inputs, str(path), dynamo=True, external_data=True)
        except torch.onnx.OnnxExporterError:  # the exporter by tracing takes some of what that by capture does not
            torch.onnx.export(model, inputs, str(path), dynamo=False, opset_version=17)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    export(sys.argv[1], pathlib.Path(sys.argv[2]))
