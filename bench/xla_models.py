"""Five architectures of the zoo as JAX functions, written as JAX's users write them: make(name, batch, seq) gives a
function of (parameters, inputs), random parameters and example inputs, f32. The rival of gpu_models.py through XLA;
weights and sizes are those of torch_models.py."""

import jax
import jax.numpy as jnp
import numpy


class Parameters(dict):
    """Random parameters, made where a function first asks for them; in later calls it gets what it is given."""

    def __init__(self):
        super().__init__()
        self.random = numpy.random.default_rng(0)

    def __missing__(self, key):
        _, shape = key
        scale = 1 / numpy.sqrt(shape[0]) if len(shape) > 1 else 0.1
        self[key] = self.random.standard_normal(shape, dtype=numpy.float32) * numpy.float32(scale)
        return self[key]


class Scope:
    def __init__(self, values, name=""):
        self.values, self.name = values, name

    def __call__(self, name):
        return Scope(self.values, f"{self.name}/{name}")

    def get(self, name, *shape):
        return jnp.asarray(self.values[f"{self.name}/{name}", shape])


def linear(p, x, width, bias=True):
    y = x @ p.get("w", x.shape[-1], width)
    return y + p.get("b", width) if bias else y


def layer_norm(p, x):
    wide = x.astype(jnp.float32)
    centred = wide - wide.mean(-1, keepdims=True)
    y = centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)
    return (y * p.get("g", x.shape[-1]) + p.get("b", x.shape[-1])).astype(x.dtype)


def attention(p, x, heads, memory=None, causal=False):
    memory, width = x if memory is None else memory, x.shape[-1]
    split = lambda t: t.reshape(*t.shape[:2], heads, -1)
    q, k, v = split(linear(p("q"), x, width)), split(linear(p("k"), memory, width)), split(linear(p("v"), memory, width))
    # cuDNN's fused attention takes 16 bits; XLA makes the rest.
    fused = "cudnn" if x.dtype != jnp.float32 and jax.default_backend() == "gpu" else "xla"
    y = jax.nn.dot_product_attention(q, k, v, is_causal=causal, implementation=fused)
    return linear(p("o"), y.reshape(x.shape), width)


def post_norm_block(p, x, heads, hidden, activation, memory=None):
    x = layer_norm(p("n1"), x + attention(p("own"), x, heads, causal=memory is not None))
    if memory is not None:
        x = layer_norm(p("n2"), x + attention(p("cross"), x, heads, memory))
    return layer_norm(p("n3"), x + linear(p("f2"), activation(linear(p("f1"), x, hidden)), x.shape[-1]))


def gelu(x):
    return jax.nn.gelu(x, approximate=False)


def bert(p, ids, types, width=768):
    words, kinds = p.get("words", 30522, width)[ids], p.get("types", 2, width)[types]
    x = layer_norm(p("norm"), words + kinds + p.get("places", 512, width)[: ids.shape[1]])
    for i in range(12):
        x = post_norm_block(p(f"block{i}"), x, 12, 3072, gelu)
    return x


def transformer(p, source, target, width=512, words=32000):
    table, places = p.get("words", words, width), p.get("places", 512, width)[: source.shape[1]]
    memory, y = table[source] * 22.6 + places, table[target] * 22.6 + places
    for i in range(6):
        memory = post_norm_block(p(f"encoder{i}"), memory, 8, 2048, jax.nn.relu)
    for i in range(6):
        y = post_norm_block(p(f"decoder{i}"), y, 8, 2048, jax.nn.relu, memory)
    return jax.nn.log_softmax(linear(p("out"), y, words).astype(jnp.float32))


def conv(p, x, width, kernel=3, stride=1, padding="VALID"):
    y = jax.lax.conv_general_dilated(x, p.get("k", kernel, kernel, x.shape[-1], width), (stride, stride), padding,
                                     dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return y + p.get("b", width)


def asr(p, x, width=256):
    x = jax.nn.relu(conv(p("c1"), x[..., None], width, stride=2))
    x = jax.nn.relu(conv(p("c2"), x, width, stride=2))
    x = linear(p("o"), x.reshape(*x.shape[:2], -1), width)
    x = x + p.get("places", 1000, width)[: x.shape[1]]
    for i in range(12):
        x = post_norm_block(p(f"block{i}"), x, 4, 2048, jax.nn.silu)
    return jax.nn.log_softmax(linear(p("ctc"), x, 5000).astype(jnp.float32))


def max_pool(x, stride, padding=(0, 0)):
    least = jnp.array(-jnp.inf, x.dtype)
    return jax.lax.reduce_window(x, least, jax.lax.max, (1, 2, 2, 1), (1, *stride, 1), ((0, 0), (0, 0), padding, (0, 0)))


def lstm(p, x, hidden, reverse=False):
    """Of x [t, b, width], gates in PyTorch's order; the product of the inputs is one for all steps."""
    inputs = linear(p("x"), x, 4 * hidden)
    weights, bias = p.get("h", hidden, 4 * hidden), p.get("hb", 4 * hidden)

    def step(state, gates):
        h, c = state
        i, f, g, o = jnp.split(gates + h @ weights + bias, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zero = jnp.zeros((x.shape[1], hidden), x.dtype)
    return jax.lax.scan(step, (zero, zero), inputs, reverse=reverse)[1]


def crnn(p, x, hidden=256, classes=37):
    for n, width in enumerate((64, 128, 256, 256, 512, 512, 512)):
        x = conv(p(f"c{n}"), x, width, 2 if n == 6 else 3, padding="VALID" if n == 6 else "SAME")
        if n in (2, 4, 6):  # a batch norm of constants
            x = x * p.get(f"g{n}", width) + p.get(f"s{n}", width)
        x = jax.nn.relu(x)
        x = max_pool(x, (2, 2)) if n < 2 else max_pool(x, (2, 1), (1, 1)) if n in (3, 5) else x
    x = x[:, 0].transpose(1, 0, 2)
    both = lambda p, x: jnp.concatenate([lstm(p("f"), x, hidden), lstm(p("r"), x, hidden, reverse=True)], -1)
    x = linear(p("l2"), both(p("r2"), linear(p("l1"), both(p("r1"), x), hidden)), classes)
    return jax.nn.log_softmax(x.astype(jnp.float32))


def gru(p, x):
    """Of x [b, t, width], as wide as x."""
    d = x.shape[-1]
    inputs = linear(p("x"), x, 3 * d).transpose(1, 0, 2)
    weights, bias = p.get("h", d, 3 * d), p.get("hb", 3 * d)

    def step(h, gates):
        of_h = h @ weights + bias
        reset, update = jnp.split(jax.nn.sigmoid(gates[:, : 2 * d] + of_h[:, : 2 * d]), 2, -1)
        candidate = jnp.tanh(gates[:, 2 * d :] + reset * of_h[:, 2 * d :])
        h = (1 - update) * candidate + update * h
        return h, h

    return jax.lax.scan(step, jnp.zeros((x.shape[0], d), x.dtype), inputs)[1].transpose(1, 0, 2)


def prelu(p, x):
    return jnp.where(x >= 0, x, p.get("slope", 1) * x)


def dien(p, user, item, category, items, categories, mask, e=18):
    users, table, kinds = p.get("user", 50000, e), p.get("item", 100000, e), p.get("category", 1000, e)
    query = jnp.concatenate([table[item], kinds[category]], -1)
    history = jnp.concatenate([table[items], kinds[categories]], -1)
    interest, d = gru(p("gru"), history), query.shape[-1]
    scores = (linear(p("w"), query, d, bias=False)[:, None] * interest).sum(-1)
    weights = jax.nn.softmax(scores + (mask - 1) * 1e4)
    gates = linear(p("gx"), interest, 3 * d)

    def step(state, now):
        gates, weight = now
        reset, update = jnp.split(jax.nn.sigmoid(gates[:, : 2 * d] + linear(p("gh"), state, 2 * d)), 2, -1)
        candidate = jnp.tanh(gates[:, 2 * d :] + linear(p("gc"), reset * state, d))
        update = update * weight[:, None]
        return (1 - update) * state + update * candidate, None

    linear(p("gh"), query, 2 * d), linear(p("gc"), query, d)  # a loop's body cannot make parameters
    state, _ = jax.lax.scan(step, jnp.zeros_like(query), (gates.transpose(1, 0, 2), weights.T))
    x = jnp.concatenate([users[user], query, history.sum(1), state], -1)
    x = prelu(p("a1"), linear(p("m1"), x, 200))
    x = prelu(p("a2"), linear(p("m2"), x, 80))
    return jax.nn.softmax(linear(p("m3"), x, 2).astype(jnp.float32))


MODELS = {"bert-base": bert, "transformer": transformer, "asr": asr, "crnn": crnn, "dien": dien}


def inputs_of(name, b, seq):
    random = numpy.random.default_rng(1)
    ids = lambda high, *shape: random.integers(0, high, shape, dtype=numpy.int32)
    normal = lambda *shape: random.standard_normal(shape, dtype=numpy.float32)
    if name == "bert-base":
        return ids(30522, b, seq or 128), ids(2, b, seq or 128)
    if name == "transformer":
        return ids(32000, b, seq or 64), ids(32000, b, seq or 64)
    if name == "asr":
        return (normal(b, seq or 800, 80),)
    if name == "crnn":
        return (normal(b, 32, 320, 1),)
    t = seq or 100
    return ids(50000, b), ids(100000, b), ids(1000, b), ids(100000, b, t), ids(1000, b, t), numpy.ones((b, t), numpy.float32)


def make(name, batch=1, seq=0):
    function, inputs, parameters = MODELS[name], inputs_of(name, batch, seq), Parameters()
    jax.eval_shape(lambda *values: function(Scope(parameters), *values), *inputs)
    return lambda parameters, inputs: function(Scope(parameters), *inputs), dict(parameters), inputs
