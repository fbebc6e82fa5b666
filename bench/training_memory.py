#!/usr/bin/env python3
"""Memory of a training step of ten networks under torch.compile(backend="heddle") beside Inductor's partition of the same graphs.

usage: training_memory.py [--heddle COMMAND] [--only NAME ...]

Nothing is computed and no GPU is needed: graphs are traced on the CPU under autocast to bf16, and their results are zeros. Prints for
each network what the forward graphs save for the backward graphs, and the predicted peak beside parameters and inputs, in MiB.
With --heddle the command `heddle` compiles the parts of the graphs for an H200, and the peak counts the scratch memory of their
plans; without, it is a guess. Inductor's peak is that of its graphs if each value exists from its operator to its last reader
and kernels keep in registers what Heddle's would. Attention is cuDNN's, unless its mask has a gradient. Needs torchvision and
transformers.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings

import torch
from torch import nn
from torch.nn import functional as F

import heddle.torch.graph
import heddle.torch.loss
from heddle.torch import memory, part, segments
from heddle.torch.backend import fresh_backend, observed
from heddle.torch.shapes import bytes_of, inverse, restrided


class Crnn(nn.Module):
    def __init__(self):
        super().__init__()
        layers = [(1, 64, (2, 2)), (64, 128, (2, 2)), (128, 256, (2, 1)), (256, 256, (2, 1)), (256, 512, (2, 1))]
        self.images = nn.Sequential(*[one for before, width, pool in layers for one in (
            nn.Conv2d(before, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(pool))])
        self.columns, self.out = nn.LSTM(512, 256, 2, bidirectional=True, batch_first=True), nn.Linear(512, 40)

    def forward(self, x):
        return self.out(self.columns(self.images(x).squeeze(2).transpose(1, 2))[0])


def image(name, batch=64):
    import torchvision

    def step(module, x, y):
        return F.cross_entropy(module(x), y)
    return lambda: (getattr(torchvision.models, name)(weights=None).to(memory_format=torch.channels_last),
                    (torch.randn(batch, 3, 224, 224).contiguous(memory_format=torch.channels_last), torch.randint(1000, (batch,))), step)


def language(kind, head, batch, length, **words):
    def make():
        import transformers

        config = getattr(transformers, kind + "Config")(**words)
        module = getattr(transformers, kind + head)(config)
        module.loss_type = "ForMaskedLM" if kind == "Bert" else "ForCausalLM"  # else a warning breaks the graph
        return module, (torch.randint(config.vocab_size, (batch, length)),), lambda module, x: module(input_ids=x, labels=x).loss
    return make


def lines():
    def step(module, x, y):
        return F.cross_entropy(module(x).flatten(0, 1), y.flatten())
    return Crnn(), (torch.randn(64, 1, 32, 256), torch.randint(40, (64, 64))), step


NETWORKS = {
    "resnet50": image("resnet50"), "vit_b_16": image("vit_b_16"), "swin_t": image("swin_t"), "convnext_tiny": image("convnext_tiny"),
    "mobilenet_v3_large": image("mobilenet_v3_large"), "bert-base": language("Bert", "ForMaskedLM", 32, 128),
    "gpt2": language("GPT2", "LMHeadModel", 8, 1024), "t5-small": language("T5", "ForConditionalGeneration", 16, 256, decoder_start_token_id=0),
    "llama-8l": language("Llama", "ForCausalLM", 2, 2048, num_hidden_layers=8, hidden_size=2048, intermediate_size=8192, num_attention_heads=32,
                         num_key_value_heads=8, vocab_size=32000),
    "crnn": lines}


def zeros(node):
    value = node.meta.get("val") if isinstance(node, torch.fx.Node) else node
    return torch.zeros((), dtype=value.dtype).expand(value.shape) if isinstance(value, torch.Tensor) else value


class Inductor:
    """AOTAutograd with Inductor's decompositions, passes and partition; graphs are counted and return zeros."""

    def __init__(self):
        self.saved, self.peaks = 0, []

    def compiled(self, kind, graph, _inputs):
        symbols = {}
        placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
        kept = memory.kept_by_caller(placeholders, kind)
        if kind == "backward":
            self.saved += sum(bytes_of(node, symbols) for node in memory.saved_by(placeholders))
        nodes = [node for node in graph.graph.nodes if node.op == "call_function" and memory.is_tensor(node)]
        results = graph.graph.output_node().args[0]
        outputs = [node for node in graph.graph.output_node().all_input_nodes if node.op == "call_function"]
        whole = memory.Part(nodes, [node for node in placeholders if memory.is_tensor(node) and node.users], outputs)
        self.peaks.append(segments.least_peak(whole, lambda node: bytes_of(node, symbols), kept))

        def run(arguments):
            arguments.clear()
            return [restrided(zeros(node), node.meta["val"].stride()) if isinstance(node, torch.fx.Node) and memory.is_tensor(node) else node
                    for node in results]
        run._boxed_call = True
        return run

    def backend(self, module, inputs):
        from functools import partial

        from torch._dynamo.backends.common import aot_autograd
        from torch._functorch.partitioners import min_cut_rematerialization_partition
        from torch._inductor.decomposition import select_decomp_table
        from torch._inductor.fx_passes.joint_graph import joint_graph_passes
        from torch._inductor.virtualized import V

        def partitioned(joint, *arguments, **words):
            with V.set_fake_mode(torch._guards.detect_fake_mode(arguments[0])):
                return min_cut_rematerialization_partition(joint_graph_passes(joint) or joint, *arguments, **words)
        forward, backward = (partial(self.compiled, kind) for kind in ("forward", "backward"))
        return aot_autograd(fw_compiler=forward, bw_compiler=backward, inference_compiler=forward, decompositions=select_decomp_table(),
                            partition_fn=partitioned, keep_inference_input_mutations=True)(module, inputs)


def run(make, backend, **options):
    torch._dynamo.reset()
    torch.manual_seed(0)
    module, inputs, loss = make()

    def step():
        with torch.autocast("cpu", torch.bfloat16):
            return loss(module.train(), *inputs)
    torch.compile(step, backend=backend, dynamic=False, **options)().backward()


pytorchs_attention = F.scaled_dot_product_attention


def attention(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """F.scaled_dot_product_attention as cuDNN's operator, which has no gradient of the mask."""
    if attn_mask is not None and attn_mask.requires_grad:
        return pytorchs_attention(q, k, v, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
    if enable_gqa:
        k, v = (one.repeat_interleave(q.shape[-3] // one.shape[-3], -3) for one in (k, v))
    if attn_mask is not None and not attn_mask.is_floating_point():
        attn_mask = torch.where(attn_mask, 0.0, float("-inf"))
    q, k, v, attn_mask = (one if one is None else one.to(torch.bfloat16) for one in (q, k, v, attn_mask))
    return torch.ops.aten._scaled_dot_product_cudnn_attention(q, k, v, attn_mask, True, dropout_p, is_causal, False, scale=scale)[0]


def is_attention(node):
    return "scaled_dot_product_cudnn" in str(node.target)


def computes_nothing():
    """Compiled parts, attention and the loss in chunks return zeros, and graphs are divided as on a GPU."""
    def evaluate(self, values, inputs, outputs):
        for at, layout, dtype in zip(outputs, self._outputs, self._dtypes):
            made = torch.zeros((), dtype=dtype).expand(layout.in_memory)
            values[at] = restrided(made.permute(inverse(layout.order)), layout.strides)
    graph, run_operator, why_not = heddle.torch.graph, heddle.torch.graph._Operator.__call__, heddle.torch.graph.why_not

    def operate(self, values):
        if not is_attention(self._node):
            return run_operator(self, values)
        values[self._slot] = tuple(torch.zeros((), dtype=one.dtype).expand(one.shape) if isinstance(one, torch.Tensor) else one
                                   for one in self._node.meta["val"])
    part.CompiledPart._evaluate, graph._Operator.__call__ = evaluate, operate
    graph.may_divide = lambda device: True
    graph.why_not = lambda node, *rest: "cuDNN computes it" if is_attention(node) else why_not(node, *rest)
    F.scaled_dot_product_attention = attention
    heddle.torch.loss._computed = lambda x, weight, target, bias, scales, numbers, wanted: [
        x.new_zeros(len(x), dtype=torch.float32), *(one.zero_() for one in heddle.torch.loss._empty_gradients(x, weight, bias, wanted))]


def scratch_of(one, graph, command):
    """Bytes that the plan of a part needs on an H200 beside its inputs and outputs."""
    with tempfile.NamedTemporaryFile("w", suffix=".hir") as file:
        file.write(part.lower_part(one, graph.examples)[0])
        file.flush()
        words = [command, "explain", file.name, "--target", "cuda", "--no-cache", "--json"]
        told = subprocess.run(words, env={**os.environ, "HEDDLE_CUDA_DRIVER": ""}, stdout=subprocess.PIPE, check=True)
    return json.loads(told.stdout)["arena_bytes"]


def peak_of(graph, command):
    if command is None:
        return memory.estimated_peak(graph._graph, graph.kind, graph.division, graph.examples)
    return memory.peak_with(graph, lambda one: scratch_of(one, graph, command)).bytes


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heddle", metavar="COMMAND")
    parser.add_argument("--only", nargs="*", default=list(NETWORKS))
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    computes_nothing()
    ratios = []
    print(f"{'network':20} {'saved':>7} {'Inductor':>9} {'ratio':>6} {'peak':>7} {'Inductor':>9} {'ratio':>6}")
    for name in options.only:
        with torch._functorch.config.patch(enable_autograd_cache=False):
            with observed() as graphs:
                run(NETWORKS[name], fresh_backend(), options={"execution": "reference"})
            saved = sum(bytes_of(node, graph.examples) for graph in graphs if graph.kind == "backward" for node in memory.saved_by(graph.placeholders))
            peak = max(peak_of(graph, options.heddle) for graph in graphs)
            inductor = Inductor()
            run(NETWORKS[name], inductor.backend)
        ratios.append(peak / max(inductor.peaks))
        numbers = [saved, inductor.saved, peak, max(inductor.peaks)]
        mine, theirs, peak, other = (one / (1 << 20) for one in numbers)
        print(f"{name:20} {mine:7.0f} {theirs:9.0f} {mine / theirs:6.2f} {peak:7.0f} {other:9.0f} {peak / other:6.2f}", flush=True)
    print(f"mean of the peaks' ratios {sum(ratios) / len(ratios):.3f}, largest {max(ratios):.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
