"""The zoo's architectures as PyTorch modules, written as PyTorch's users write them: make(name, batch, seq) gives a module
in eval mode and example inputs, f32 on the CPU, with random weights. The rival of gpu_models.py."""

import math

import torch
import torch.nn.functional as F
from torch import nn


def conv_norm(i, o, kernel=3, stride=1, groups=1):
    return nn.Sequential(nn.Conv2d(i, o, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(o))


class ResNetBlock(nn.Module):
    def __init__(self, i, width, stride, bottleneck):
        super().__init__()
        o = 4 * width if bottleneck else width
        parts = [(i, width, 1, 1), (width, width, 3, stride), (width, o, 1, 1)] if bottleneck else [(i, o, 3, stride), (o, o, 3, 1)]
        layers = []
        for part in parts:
            layers += [conv_norm(*part), nn.ReLU(inplace=True)]
        self.branch = nn.Sequential(*layers[:-1])
        self.short = nn.Identity() if stride == 1 and i == o else conv_norm(i, o, 1, stride)

    def forward(self, x):
        return F.relu(self.branch(x) + self.short(x))


def resnet(depths, bottleneck):
    layers = [conv_norm(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    i = 64
    for stage, depth in enumerate(depths):
        for block in range(depth):
            layers.append(ResNetBlock(i, 64 << stage, 2 if stage and not block else 1, bottleneck))
            i = (64 << stage) * (4 if bottleneck else 1)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(i, 1000))


def vgg(depths):
    layers, i = [], 3
    for depth, width in zip(depths, (64, 128, 256, 512, 512)):
        for _ in range(depth):
            layers += [nn.Conv2d(i, width, 3, padding=1), nn.ReLU(inplace=True)]
            i = width
        layers.append(nn.MaxPool2d(2))
    head = [nn.Linear(512 * 49, 4096), nn.ReLU(inplace=True), nn.Linear(4096, 4096), nn.ReLU(inplace=True), nn.Linear(4096, 1000)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(7), nn.Flatten(), *head)


def repvgg(depths, widths):
    layers, i = [nn.Conv2d(3, min(64, widths[0]), 3, 2, 1), nn.ReLU(inplace=True)], min(64, widths[0])
    for depth, width in zip(depths, widths):
        for block in range(depth):
            layers += [nn.Conv2d(i, width, 3, 1 if block else 2, 1), nn.ReLU(inplace=True)]
            i = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(i, 1000))


class InvertedResidual(nn.Module):
    def __init__(self, i, o, stride, expansion):
        super().__init__()
        h = i * expansion
        layers = [conv_norm(i, h, 1), nn.ReLU6(inplace=True)] if expansion > 1 else []
        self.branch = nn.Sequential(*layers, conv_norm(h, h, 3, stride, h), nn.ReLU6(inplace=True), conv_norm(h, o, 1))
        self.residual = stride == 1 and i == o

    def forward(self, x):
        return x + self.branch(x) if self.residual else self.branch(x)


def mobilenet_v2():
    layers, i = [conv_norm(3, 32, 3, 2), nn.ReLU6(inplace=True)], 32
    for expansion, o, repeats, stride in [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]:
        for block in range(repeats):
            layers.append(InvertedResidual(i, o, 1 if block else stride, expansion))
            i = o
    return nn.Sequential(*layers, conv_norm(i, 1280, 1), nn.ReLU6(inplace=True), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 1000))


class Attention(nn.Module):
    """Of x on a memory (x itself)."""

    def __init__(self, width, heads, memory=None, bias=True):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v = nn.Linear(width, width, bias), nn.Linear(memory or width, width, bias), nn.Linear(memory or width, width, bias)
        self.o = nn.Linear(width, width)

    def forward(self, x, memory=None, causal=False):
        memory = x if memory is None else memory
        split = lambda t: t.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        y = F.scaled_dot_product_attention(split(self.q(x)), split(self.k(memory)), split(self.v(memory)), is_causal=causal)
        return self.o(y.transpose(1, 2).flatten(2))


class PostNormBlock(nn.Module):
    def __init__(self, width, heads, hidden, activation, decoder=False):
        super().__init__()
        self.own, self.n1 = Attention(width, heads), nn.LayerNorm(width)
        self.cross, self.n2 = (Attention(width, heads), nn.LayerNorm(width)) if decoder else (None, None)
        self.f1, self.f2, self.n3 = nn.Linear(width, hidden), nn.Linear(hidden, width), nn.LayerNorm(width)
        self.activation = activation

    def forward(self, x, memory=None):
        x = self.n1(x + self.own(x, causal=self.cross is not None))
        if self.cross is not None:
            x = self.n2(x + self.cross(x, memory))
        return self.n3(x + self.f2(self.activation(self.f1(x))))


class PreNormBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(width, 1e-6), nn.LayerNorm(width, 1e-6)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.f1, self.f2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        q, k, v = self.qkv(self.n1(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.f2(F.gelu(self.f1(self.n2(x))))


class ViT(nn.Module):
    def __init__(self, width=768, tokens=197):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.token, self.places = nn.Parameter(torch.randn(1, 1, width)), nn.Parameter(torch.randn(1, tokens, width) * 0.02)
        self.blocks = nn.Sequential(*[PreNormBlock(width, 12) for _ in range(12)])
        self.norm, self.head = nn.LayerNorm(width, 1e-6), nn.Linear(width, 1000)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        return self.head(self.norm(self.blocks(x))[:, 0])


class Bert(nn.Module):
    def __init__(self, width=768):
        super().__init__()
        self.words, self.types = nn.Embedding(30522, width), nn.Embedding(2, width)
        self.places, self.norm = nn.Parameter(torch.randn(1, 512, width) * 0.02), nn.LayerNorm(width)
        self.blocks = nn.Sequential(*[PostNormBlock(width, 12, 3072, F.gelu) for _ in range(12)])

    def forward(self, ids, types):
        return self.blocks(self.norm(self.words(ids) + self.types(types) + self.places[:, : ids.shape[1]]))


class Transformer(nn.Module):
    def __init__(self, width=512, words=32000):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Parameter(torch.randn(1, 512, width) * 0.02)
        self.encoder = nn.ModuleList(PostNormBlock(width, 8, 2048, F.relu) for _ in range(6))
        self.decoder = nn.ModuleList(PostNormBlock(width, 8, 2048, F.relu, True) for _ in range(6))
        self.out = nn.Linear(width, words)

    def forward(self, source, target):
        places = self.places[:, : source.shape[1]]
        memory, y = self.words(source) * 22.6 + places, self.words(target) * 22.6 + places
        for block in self.encoder:
            memory = block(memory)
        for block in self.decoder:
            y = block(y, memory)
        return F.log_softmax(self.out(y).float(), -1)


class ASR(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.c1, self.c2, self.o = nn.Conv2d(1, width, 3, 2), nn.Conv2d(width, width, 3, 2), nn.Linear(width * 19, width)
        self.places = nn.Parameter(torch.randn(1, 1000, width) * 0.02)
        self.blocks = nn.Sequential(*[PostNormBlock(width, 4, 2048, F.silu) for _ in range(12)])
        self.ctc = nn.Linear(width, 5000)

    def forward(self, x):
        x = F.relu(self.c2(F.relu(self.c1(x.unsqueeze(1)))))
        x = self.o(x.transpose(1, 2).flatten(2))
        return F.log_softmax(self.ctc(self.blocks(x + self.places[:, : x.shape[1]])).float(), -1)


class CRNN(nn.Module):
    def __init__(self, hidden=256, classes=37):
        super().__init__()
        layers, i = [], 1
        for n, o in enumerate((64, 128, 256, 256, 512, 512, 512)):
            layers.append(nn.Conv2d(i, o, 2 if n == 6 else 3, padding=0 if n == 6 else 1))
            layers += ([nn.BatchNorm2d(o)] if n in (2, 4, 6) else []) + [nn.ReLU(inplace=True)]
            layers += [nn.MaxPool2d(2)] if n < 2 else [nn.MaxPool2d((2, 2), (2, 1), (0, 1))] if n in (3, 5) else []
            i = o
        self.features = nn.Sequential(*layers)
        self.r1, self.l1 = nn.LSTM(512, hidden, bidirectional=True), nn.Linear(2 * hidden, hidden)
        self.r2, self.l2 = nn.LSTM(hidden, hidden, bidirectional=True), nn.Linear(2 * hidden, classes)

    def forward(self, x):
        x = self.features(x).squeeze(2).permute(2, 0, 1)
        return F.log_softmax(self.l2(self.r2(self.l1(self.r1(x)[0]))[0]), -1)


class DIEN(nn.Module):
    def __init__(self, e=18):
        super().__init__()
        d = 2 * e
        self.user, self.item, self.category = nn.Embedding(50000, e), nn.Embedding(100000, e), nn.Embedding(1000, e)
        self.gru, self.w = nn.GRU(d, d, batch_first=True), nn.Linear(d, d, bias=False)
        self.gx, self.gh, self.gc = nn.Linear(d, 3 * d), nn.Linear(d, 2 * d), nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(e + 3 * d, 200), nn.PReLU(), nn.Linear(200, 80), nn.PReLU(), nn.Linear(80, 2))

    def forward(self, user, item, category, items, categories, mask):
        query = torch.cat([self.item(item), self.category(category)], -1)
        history = torch.cat([self.item(items), self.category(categories)], -1)
        interest, d = self.gru(history)[0], query.shape[-1]
        attention = torch.softmax((self.w(query)[:, None] * interest).sum(-1) + (mask - 1) * 1e4, -1)
        gates, state = self.gx(interest), torch.zeros_like(query)
        for t in range(history.shape[1]):
            reset, update = torch.sigmoid(gates[:, t, : 2 * d] + self.gh(state)).chunk(2, -1)
            candidate = torch.tanh(gates[:, t, 2 * d :] + self.gc(reset * state))
            update = update * attention[:, t : t + 1]
            state = (1 - update) * state + update * candidate
        return torch.softmax(self.mlp(torch.cat([self.user(user), query, history.sum(1), state], -1)).float(), -1)


class ResBlock(nn.Module):
    def __init__(self, i, o, time):
        super().__init__()
        self.n1, self.c1, self.t = nn.GroupNorm(32, i), nn.Conv2d(i, o, 3, padding=1), nn.Linear(time, o)
        self.n2, self.c2 = nn.GroupNorm(32, o), nn.Conv2d(o, o, 3, padding=1)
        self.short = nn.Identity() if i == o else nn.Conv2d(i, o, 1)

    def forward(self, x, t):
        y = self.c1(F.silu(self.n1(x))) + self.t(F.silu(t))[:, :, None, None]
        return self.short(x) + self.c2(F.silu(self.n2(y)))


class SpatialBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.n, self.i, self.o = nn.GroupNorm(32, c), nn.Conv2d(c, c, 1), nn.Conv2d(c, c, 1)
        self.n1, self.n2, self.n3 = nn.LayerNorm(c), nn.LayerNorm(c), nn.LayerNorm(c)
        self.own, self.cross = Attention(c, 8, bias=False), Attention(c, 8, 768, bias=False)
        self.f1, self.f2 = nn.Linear(c, 8 * c), nn.Linear(4 * c, c)

    def forward(self, x, context):
        y = self.i(self.n(x)).flatten(2).transpose(1, 2)
        y = y + self.own(self.n1(y))
        y = y + self.cross(self.n2(y), context)
        value, gate = self.f1(self.n3(y)).chunk(2, -1)
        y = y + self.f2(value * F.gelu(gate))
        return x + self.o(y.transpose(1, 2).unflatten(2, x.shape[2:]))


class Level(nn.Module):
    def __init__(self, i, o, time, spatial):
        super().__init__()
        self.res, self.spatial = ResBlock(i, o, time), SpatialBlock(o) if spatial else None

    def forward(self, x, t, context):
        x = self.res(x, t)
        return x if self.spatial is None else self.spatial(x, context)


class UNet(nn.Module):
    def __init__(self, width=320):
        super().__init__()
        self.frequencies, time, c = width // 2, 4 * width, width
        self.time = nn.Sequential(nn.Linear(width, time), nn.SiLU(), nn.Linear(time, time))
        self.first, skips = nn.Conv2d(4, width, 3, padding=1), [width]
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        for level, multiple in enumerate((1, 2, 4, 4)):
            for _ in range(2):
                self.down.append(Level(c, width * multiple, time, level < 3))
                c = width * multiple
                skips.append(c)
            if level < 3:
                self.down.append(nn.Conv2d(c, c, 3, 2, 1))
                skips.append(c)
        self.m1, self.ma, self.m2 = ResBlock(c, c, time), SpatialBlock(c), ResBlock(c, c, time)
        for level, multiple in reversed(list(enumerate((1, 2, 4, 4)))):
            for _ in range(3):
                self.up.append(Level(c + skips.pop(), width * multiple, time, level < 3))
                c = width * multiple
            if level:
                self.up.append(nn.Conv2d(c, c, 3, padding=1))
        self.norm, self.last = nn.GroupNorm(32, width), nn.Conv2d(width, 4, 3, padding=1)

    def forward(self, x, step, context):
        angle = step[:, None].float() * torch.exp(-math.log(1e4) * torch.arange(self.frequencies, device=x.device) / self.frequencies)
        t = self.time(torch.cat([angle.cos(), angle.sin()], -1).to(x.dtype))
        x = self.first(x)
        skips = [x]
        for layer in self.down:
            x = layer(x) if isinstance(layer, nn.Conv2d) else layer(x, t, context)
            skips.append(x)
        x = self.m2(self.ma(self.m1(x, t), context), t)
        for layer in self.up:
            if isinstance(layer, nn.Conv2d):
                x = layer(F.interpolate(x, scale_factor=2.0, mode="nearest"))
            else:
                x = layer(torch.cat([x, skips.pop()], 1), t, context)
        return self.last(F.silu(self.norm(x)))


class LlamaStep(nn.Module):
    """One token of each sequence through Llama 3.2 1B, with caches of a fixed length that are written in place."""

    def __init__(self, batch, seq, width=2048, layers=16, words=128256, depth=64):
        super().__init__()
        self.heads, self.shared, self.depth = width // depth, width // depth // 4, depth
        self.table, self.norm = nn.Embedding(words, width), nn.RMSNorm(width)
        linear = lambda i, o: nn.Linear(i, o, bias=False)
        self.layers = nn.ModuleList(nn.ModuleDict({
            "norm": nn.RMSNorm(width), "qkv": linear(width, width + 2 * self.shared * depth), "out": linear(width, width),
            "mlp_norm": nn.RMSNorm(width), "gate_up": linear(width, 8 * width), "down": linear(4 * width, width)}) for _ in range(layers))
        for i in range(layers):
            self.register_buffer(f"keys{i}", torch.randn(batch, self.shared, seq, depth))
            self.register_buffer(f"values{i}", torch.randn(batch, self.shared, seq, depth))
        angle = torch.arange(seq)[:, None] * 500000.0 ** (-torch.arange(0, depth, 2) / depth)
        self.register_buffer("cosines", torch.cat([angle.cos()] * 2, -1))
        self.register_buffer("sines", torch.cat([angle.sin()] * 2, -1))
        self.register_buffer("places", torch.arange(seq))
        self.register_buffer("rows", torch.arange(batch))

    def forward(self, ids, positions):
        b, d = ids.shape[0], self.depth
        cosines, sines = (table[positions][:, None, None] for table in (self.cosines, self.sines))
        mask = (self.places <= positions[:, None])[:, None, None]
        rotated = lambda x: x * cosines + torch.cat([-x[..., d // 2:], x[..., :d // 2]], -1) * sines
        x = self.table(ids)
        for i, layer in enumerate(self.layers):
            parts = layer["qkv"](layer["norm"](x)).view(b, 1, -1, d).transpose(1, 2)
            q, k, v = parts.split([self.heads, self.shared, self.shared], 1)
            keys, values = getattr(self, f"keys{i}"), getattr(self, f"values{i}")
            keys[self.rows, :, positions] = rotated(k)[:, :, 0]
            values[self.rows, :, positions] = v[:, :, 0]
            mixed = F.scaled_dot_product_attention(rotated(q), keys, values, attn_mask=mask, enable_gqa=True)
            x = x + layer["out"](mixed.transpose(1, 2).reshape(b, 1, -1))
            gate, up = layer["gate_up"](layer["mlp_norm"](x)).chunk(2, -1)
            x = x + layer["down"](F.silu(gate) * up)
        return F.linear(self.norm(x), self.table.weight)


MODELS = {
    "resnet18": lambda: resnet((2, 2, 2, 2), False),
    "resnet50": lambda: resnet((3, 4, 6, 3), True),
    "vgg16": lambda: vgg((2, 2, 3, 3, 3)),
    "vgg19": lambda: vgg((2, 2, 4, 4, 4)),
    "repvgg-a0": lambda: repvgg((2, 4, 14, 1), (48, 96, 192, 1280)),
    "repvgg-b0": lambda: repvgg((4, 6, 16, 1), (64, 128, 256, 1280)),
    "mobilenet-v2": mobilenet_v2,
    "vit-b16": ViT,
    "bert-base": Bert,
    "transformer": Transformer,
    "asr": ASR,
    "crnn": CRNN,
    "dien": DIEN,
    "sd-unet": UNet,
}


def inputs_of(name, b, seq):
    ids = lambda high, *shape: torch.randint(0, high, shape)
    if name == "bert-base":
        return ids(30522, b, seq or 128), ids(2, b, seq or 128)
    if name == "transformer":
        return ids(32000, b, seq or 64), ids(32000, b, seq or 64)
    if name == "asr":
        return (torch.randn(b, seq or 800, 80),)
    if name == "crnn":
        return (torch.randn(b, 1, 32, 320),)
    if name == "dien":
        t = seq or 100
        return ids(50000, b), ids(100000, b), ids(1000, b), ids(100000, b, t), ids(1000, b, t), torch.ones(b, t)
    if name == "sd-unet":
        return torch.randn(b, 4, 64, 64), ids(1000, b), torch.randn(b, seq or 77, 768)
    return (torch.randn(b, 3, 224, 224),)


def make(name, batch=1, seq=0):
    if name == "llama-step":
        seq = seq or 4096
        return LlamaStep(batch, seq).eval(), (torch.randint(0, 128256, (batch, 1)), torch.full((batch,), seq - 1))
    return MODELS[name]().eval(), inputs_of(name, batch, seq)
