#!/usr/bin/env python3
"""Networks of timm, torchvision and transformers with random weights under torch.compile(backend="heddle"), against float64.

usage: torch_networks.py [--only NAME ...] [--execution reference] [--device cpu] [--evaluation] [--seconds N]

Each network runs once in training mode, without dropout, or with --evaluation in evaluation mode, with gradients. (Batch
normalisation over few elements is ill-conditioned in some networks: errors of eager then say little.) Outputs and gradients
are compared with eager in float64: the error of a tensor, as a norm, may be twice that of eager in float32, or what rounding
of the network's largest values gives.
Prints for each network its graphs, the operators in compiled parts and the kernels, and at the end the operators that PyTorch
ran. Ends with 1 if a network is wrong or has no compiled operator. --seconds stops after so many.
"""
import argparse
import collections
import copy
import sys
import time
import warnings

import torch

import heddle.torch
from heddle.torch.backend import observed
from heddle.torch.verification import _results, _widened

TORCHVISION = {
    "alexnet": 64, "vgg11_bn": 32, "resnet18": 32, "resnext50_32x4d": 32, "densenet121": 32, "mobilenet_v2": 96, "mobilenet_v3_small": 32,
    "shufflenet_v2_x0_5": 96, "squeezenet1_1": 64, "efficientnet_b0": 96, "regnet_y_400mf": 32, "mnasnet0_5": 96, "googlenet": 64,
    "convnext_tiny": 32, "swin_t": 32, "swin_v2_t": 32}
TIMM = {
    "resnetv2_50": 96, "seresnet18": 32, "ecaresnet26t": 96, "resnest14d": 32, "res2net50_26w_4s": 32, "dla34": 32, "hrnet_w18_small": 32,
    "ghostnet_050": 32, "mixnet_s": 32, "rexnet_100": 32, "cspresnet50": 32, "repvgg_a0": 32, "mobileone_s0": 96, "fastvit_t8": 64,
    "edgenext_xx_small": 64, "mobilevit_xxs": 64, "poolformer_s12": 64, "skresnet18": 96, "selecsls42": 32, "ese_vovnet19b_slim": 32,
    "efficientformerv2_s0": 224, "inception_next_atto": 32, "starnet_s1": 32, "mixer_s32_224": 224, "gmlp_ti16_224": 224, "resmlp_12_224": 224, "deit_tiny_patch16_224": 224,
    "cait_xxs24_224": 224, "xcit_nano_12_p16_224": 224, "levit_128s": 224, "pvt_v2_b0": 64, "pit_ti_224": 224, "convit_tiny": 224,
    "visformer_tiny": 224, "tnt_s_legacy_patch16_224": 224, "coatnet_0_rw_224": 224}
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "vocab_size": 101, "max_position_embeddings": 64,
         "num_key_value_heads": 2, "head_dim": 8, "pad_token_id": 0}
TRANSFORMERS = {
    "Bert": SMALL, "Roberta": SMALL, "Electra": {**SMALL, "embedding_size": 16}, "Albert": {**SMALL, "embedding_size": 16},
    "DistilBert": {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64, "vocab_size": 101}, "MPNet": SMALL,
    "DebertaV2": {**SMALL, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
    "GPT2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 101, "n_positions": 64}, "GPTNeoX": SMALL,
    "OPT": {**SMALL, "ffn_dim": 64, "word_embed_proj_dim": 32}, "Bloom": {"hidden_size": 32, "n_layer": 2, "n_head": 4, "vocab_size": 101},
    "Llama": SMALL, "Mistral": SMALL, "Qwen2": SMALL, "Gemma": SMALL, "Phi": SMALL, "Falcon": {name: value for name, value in SMALL.items() if name != "head_dim"},
    "T5": {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "vocab_size": 101},
    "Bart": {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 64,
             "decoder_ffn_dim": 64, "vocab_size": 101, "max_position_embeddings": 64},
    "ViT": {**SMALL, "image_size": 32, "patch_size": 8}, "Segformer": {"hidden_sizes": [8, 16, 16, 16], "depths": [1, 1, 1, 1]},
    "Mamba": {"hidden_size": 32, "num_hidden_layers": 2, "vocab_size": 101, "state_size": 4}}


def made(library: str, name: str):
    """A network and its inputs."""
    torch.manual_seed(0)
    if library == "transformers":
        import transformers

        config = getattr(transformers, name + "Config")(**TRANSFORMERS[name])
        config.use_cache = False
        module = getattr(transformers, name + "Model")(config)
        if name in ("ViT", "Segformer"):
            return module, [torch.randn(2, 3, 32, 32)]
        tokens = torch.randint(3, 100, (2, 12))
        return module, [tokens, None, tokens] if name in ("T5", "Bart") else [tokens]
    if library == "torchvision":
        import torchvision

        words = {"aux_logits": False, "init_weights": True} if name == "googlenet" else {}
        return getattr(torchvision.models, name)(num_classes=10, **words), [torch.randn(2, 3, TORCHVISION[name], TORCHVISION[name])]
    import timm

    return timm.create_model(name, num_classes=10), [torch.randn(2, 3, TIMM[name], TIMM[name])]


def without_dropout(module: torch.nn.Module, training: bool) -> torch.nn.Module:
    for one in module.modules():
        if isinstance(one, torch.nn.modules.dropout._DropoutNd) or type(one).__name__ == "StochasticDepth":  # of torchvision
            one.p = 0.0
        for name in ("drop_prob", "attention_dropout", "dropout_p", "activation_dropout", "dropout"):
            if isinstance(getattr(one, name, None), float):
                setattr(one, name, 0.0)
    return module.train(training)


def check(module: torch.nn.Module, inputs: list, options: dict, ran: collections.Counter) -> str:
    """What there is to say of it; raises AssertionError."""
    wanted, eager = _results(copy.deepcopy(module), _widened(inputs), wide=True), _results(copy.deepcopy(module), inputs)
    torch._dynamo.reset()
    with observed() as graphs:
        got = _results(torch.compile(copy.deepcopy(module), backend=heddle.torch.heddle_backend, options=options), inputs)
    fallbacks = collections.Counter(str(one.node.target) for graph in graphs for one in graph.division.fallbacks)
    ran.update(fallbacks)
    operators = sum(len(part.nodes) for graph in graphs for part in graph.parts)
    kernels = sum(len(part.model.kernels()) for graph in graphs for part in graph.compiled_parts() if part.model)
    assert operators > 0 and (kernels > 0 or "execution" in options), "no operator was compiled"
    largest = {kind: max((one.abs().max().item() for name, one in wanted.items() if name.startswith(kind) and one.numel()), default=0.0)
               for kind in ("output", "gradient")}
    assert set(got) == set(eager), f"results are {sorted(set(got) ^ set(eager))[:3]} otherwise"
    wrong, worst = [], 0.0
    for name, exact in wanted.items():
        error, theirs = (torch.linalg.vector_norm(one[name].double() - exact).item() for one in (got, eager))
        rounding = 1e-6 * largest[name.split()[0]] * exact.numel() ** 0.5
        worst = max(worst, error / max(theirs, rounding, 1e-30))
        if not error <= max(2 * theirs, rounding):
            wrong.append(f"{name}: {error:.1e}, eager's is {theirs:.1e}")
    assert not wrong, f"{len(wrong)} of {len(wanted)} wrong: {'; '.join(wrong[:3])}"
    return (f"{len(graphs)} graphs, {operators} operators in parts, {kernels} kernels, {len(wanted)} tensors, at most {worst:.2f} of eager's error"
            + (f"; PyTorch ran {dict(fallbacks)}" if fallbacks else ""))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--execution", choices=["compiled", "reference"], default="compiled")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--evaluation", action="store_true")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    names = [*(("transformers", name) for name in TRANSFORMERS), *(("torchvision", name) for name in TORCHVISION), *(("timm", name) for name in TIMM)]
    names = [one for one in names if not options.only or one[1] in options.only]
    words = {"execution": "reference"} if options.execution == "reference" else {}
    ran: collections.Counter = collections.Counter()
    failed, start, count = [], time.monotonic(), 0
    for library, name in names:
        if time.monotonic() - start > options.seconds:
            break
        count += 1
        began = time.monotonic()
        try:
            module, inputs = made(library, name)
            module = without_dropout(module, not options.evaluation).to(options.device)
            told = check(module, [one if one is None else one.to(options.device) for one in inputs], words, ran)
        except Exception as error:
            failed.append(name)
            told = f"FAILED: {type(error).__name__}: {str(error)[:600]}"
        print(f"{library} {name} ({time.monotonic() - began:.0f} s): {told}", flush=True)
    print(f"{count - len(failed)} of {count} networks are right" + (f"; wrong: {', '.join(failed)}" if failed else ""))
    print("PyTorch ran " + (", ".join(f"{operator} {times}" for operator, times in ran.most_common()) or "nothing"))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
