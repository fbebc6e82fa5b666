#!/usr/bin/env python3
"""Networks of timm, torchvision and transformers as their users call them, with random weights: make(spec) gives a module in
eval mode and example inputs, f32 on the CPU; `published_models.py SPEC FILE.onnx` exports them by PyTorch's exporter.

A spec is NAME@PACKAGE[:BATCH[:SEQ]]. Any name of timm and of torchvision will do; of transformers those of TRANSFORMERS;
NAME@written is one of written_models.py. Rows of gpu_models.py; SUITE has one or a few of each family of networks."""

import pathlib
import sys

import torch
from torch import nn

import written_models


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


def modernbert(batch, seq):
    import transformers as t
    return Result(t.ModernBertModel(t.ModernBertConfig()), "last_hidden_state"), (ids(50000, batch, seq or 512),)


def distilbert(batch, seq):
    import transformers as t
    return Result(t.DistilBertModel(t.DistilBertConfig()), "last_hidden_state"), (ids(30522, batch, seq or 128),)


def clip_text(batch, seq):
    import transformers as t
    return Result(t.CLIPTextModel(t.CLIPTextConfig()), "last_hidden_state"), (ids(49408, batch, seq or 77),)


def dpt(batch, seq):
    """DPT-Large: depth from a picture of 384 pixels a side (seq: of another side)."""
    import transformers as t
    config = t.DPTConfig(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096, image_size=seq or 384,
                         backbone_out_indices=[5, 11, 17, 23], neck_hidden_sizes=[256, 512, 1024, 1024])
    return Result(t.DPTForDepthEstimation(config), "predicted_depth"), (torch.randn(batch, 3, seq or 384, seq or 384),)


def segformer(batch, seq):
    import transformers as t
    return Result(t.SegformerForSemanticSegmentation(t.SegformerConfig()), "logits"), (torch.randn(batch, 3, seq or 512, seq or 512),)


def wav2vec2(batch, seq):
    import transformers as t
    return Result(t.Wav2Vec2Model(t.Wav2Vec2Config()), "last_hidden_state"), (torch.randn(batch, seq or 48000),)


def t5(batch, seq):
    import transformers as t
    config = t.T5Config(num_decoder_layers=6)
    return EncoderDecoder(t.T5Model(config)), (ids(32000, batch, seq or 128), ids(32000, batch, seq or 128))


def whisper(batch, seq):
    from transformers.models.whisper.modeling_whisper import WhisperConfig, WhisperEncoder
    config = WhisperConfig(d_model=512, encoder_layers=6, encoder_attention_heads=8, encoder_ffn_dim=2048)
    return Result(WhisperEncoder(config), "last_hidden_state"), (torch.randn(batch, 80, seq or 3000),)


TRANSFORMERS = {"bert": bert, "clip-text": clip_text, "distilbert": distilbert, "dpt": dpt, "gpt2": gpt2, "llama": llama,
                "modernbert": modernbert, "segformer": segformer, "t5": t5, "wav2vec2": wav2vec2, "whisper-encoder": whisper}
SUITE = [
    "convnext_tiny@torchvision:16", "densenet121@torchvision:16", "efficientnet_v2_s@torchvision:16", "googlenet@torchvision:16",
    "maxvit_t@torchvision:8", "mobilenet_v3_large@torchvision:32", "regnet_y_1_6gf@torchvision:16", "shufflenet_v2_x1_0@torchvision:32",
    "squeezenet1_1@torchvision:32", "swin_v2_t@torchvision:16",
    "beit_base_patch16_224@timm:16", "cait_xxs24_224@timm:8", "coatnet_0_rw_224@timm:16", "convnextv2_tiny@timm:16",
    "efficientformerv2_s1@timm:16", "ghostnet_100@timm:32", "hrnet_w18@timm:8", "levit_192@timm:32", "mixer_b16_224@timm:32",
    "nfnet_l0@timm:16", "poolformer_s24@timm:16", "pvt_v2_b2@timm:16", "repvit_m1@timm:32", "resnest50d@timm:16",
    "resnext50_32x4d@timm:32", "swin_tiny_patch4_window7_224@timm:32", "twins_svt_small@timm:16", "vit_base_patch16_224@timm:32",
    "vit_so400m_patch14_siglip_224@timm:8", "xcit_small_12_p16_224@timm:16",
    "bert@transformers:32:128", "bert@transformers:32:384", "clip-text@transformers:32", "distilbert@transformers:32:128",
    "dpt@transformers:1", "gpt2@transformers:1:512", "gpt2@transformers:16:512", "llama@transformers:1:1024", "modernbert@transformers:8:512",
    "segformer@transformers:4", "t5@transformers:8:128", "wav2vec2@transformers:4", "whisper-encoder@transformers:1",
    "dit@written:4", "unet@written:4",
]


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
    elif package == "torchvision":
        import torchvision
        model = torchvision.models.get_model(name, weights=None, **({"init_weights": True} if name == "googlenet" else {}))
        inputs = (torch.randn(batch, 3, seq or 224, seq or 224),)
    elif package == "written":
        model, inputs = written_models.MODELS[name](batch, seq)
    elif package == "transformers":
        if name not in TRANSFORMERS:
            raise ValueError(f"{name}: of transformers there are {', '.join(TRANSFORMERS)}")
        model, inputs = TRANSFORMERS[name](batch, seq)
    else:
        raise ValueError(f"{spec}: the package is {package}, none of timm, torchvision, transformers and written")
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
