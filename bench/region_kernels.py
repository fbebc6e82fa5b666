"""Kernels of bench/tile_regions.py: what regions of models compute, in the tile language.

Extents are constants, and what is read once asks the L2 not to keep it, where the compiler's own kernels do so. A tile of
R rows is A x R x C: element (a, r, c) is in column a C + c, those beyond the N of a row are left out by masks. Layouts give the last
dimension to lanes and the one before it to warps, so that where C is what a warp loads at once, a row belongs to one warp. With A = 1
it is R x C, and all warps share each row; one row is a tile of one dimension. A program does L such tiles.
"""
import heddle.tile as triton
import heddle.tile.language as tl


@triton.jit
def columns_of(R: tl.constexpr, A: tl.constexpr, C: tl.constexpr):
    """Of a tile of rows: the column of each element."""
    if A > 1:
        return tl.arange(0, A)[:, None, None] * C + tl.arange(0, C)[None, None, :]
    if R > 1:
        return tl.arange(0, C)[None, :]
    return tl.arange(0, C)


@triton.jit
def rows_from(first, R: tl.constexpr, A: tl.constexpr):
    """Of a tile of rows: the row of each element."""
    if A > 1:
        return (first + tl.arange(0, R))[None, :, None]
    if R > 1:
        return (first + tl.arange(0, R))[:, None]
    return first


@triton.jit
def load_rows(p, first, other, N: tl.constexpr, R: tl.constexpr, A: tl.constexpr, C: tl.constexpr, policy: tl.constexpr = ""):
    """R rows of p from `first` on, as float32."""
    at = columns_of(R, A, C)
    pointers = p + rows_from(first, R, A) * N + at
    if A * C == N:
        return tl.load(pointers, eviction_policy=policy).to(tl.float32)
    return tl.load(pointers, mask=at < N, other=other, eviction_policy=policy).to(tl.float32)


@triton.jit
def load_columns(p, N: tl.constexpr, R: tl.constexpr, A: tl.constexpr, C: tl.constexpr):
    """A row that all rows share."""
    at = columns_of(R, A, C)
    if A * C == N:
        return tl.load(p + at).to(tl.float32)
    return tl.load(p + at, mask=at < N).to(tl.float32)


@triton.jit
def store_rows(p, first, value, N: tl.constexpr, R: tl.constexpr, A: tl.constexpr, C: tl.constexpr):
    at = columns_of(R, A, C)
    pointers = p + rows_from(first, R, A) * N + at
    if A * C == N:
        tl.store(pointers, value.to(p.dtype.element_ty))
    else:
        tl.store(pointers, value.to(p.dtype.element_ty), mask=at < N)


@triton.jit
def row_sum(v, R: tl.constexpr, A: tl.constexpr):
    if A > 1:
        return tl.sum(tl.sum(v, 0), 1)[None, :, None]
    if R > 1:
        return tl.sum(v, 1)[:, None]
    return tl.sum(v, 0)


@triton.jit
def row_max(v, R: tl.constexpr, A: tl.constexpr):
    if A > 1:
        return tl.max(tl.max(v, 0), 1)[None, :, None]
    if R > 1:
        return tl.max(v, 1)[:, None]
    return tl.max(v, 0)


@triton.jit
def inside(v, N: tl.constexpr, R: tl.constexpr, A: tl.constexpr, C: tl.constexpr):
    """v, with zeros beyond a row."""
    if A * C == N:
        return v
    return tl.where(columns_of(R, A, C) < N, v, 0)


@triton.jit
def normalised(v, N: tl.constexpr, R: tl.constexpr, A: tl.constexpr, C: tl.constexpr):
    """Rows less their mean, over their standard deviation; what lies beyond a row is 0."""
    d = inside(v - row_sum(v, R, A) * (1 / N), N, R, A, C)
    return d * tl.rsqrt(row_sum(d * d, R, A) * (1 / N) + 1e-5)


@triton.jit
def gelu(x):
    return x * 0.5 * (tl.erf(x * 0.7071067811865476) + 1)


@triton.jit
def softmax_rows(x, y, first, N: tl.constexpr, R: tl.constexpr, A: tl.constexpr, C: tl.constexpr):
    v = load_rows(x, first, -float("inf"), N, R, A, C)
    e = tl.exp(v - row_max(v, R, A))
    store_rows(y, first, e * (1 / row_sum(e, R, A)), N, R, A, C)


@triton.jit
def softmax(x, y, N: tl.constexpr, R: tl.constexpr, A: tl.constexpr, C: tl.constexpr, L: tl.constexpr):
    if L == 1:
        softmax_rows(x, y, tl.program_id(0) * R, N, R, A, C)
    else:
        for step in range(L):
            softmax_rows(x, y, (tl.program_id(0) * L + step) * R, N, R, A, C)


@triton.jit
def layer_norm_rows(x, g, b, y, first, N: tl.constexpr, R: tl.constexpr, A: tl.constexpr, C: tl.constexpr):
    v = normalised(load_rows(x, first, 0, N, R, A, C), N, R, A, C)
    store_rows(y, first, v * load_columns(g, N, R, A, C) + load_columns(b, N, R, A, C), N, R, A, C)


@triton.jit
def layer_norm(x, g, b, y, N: tl.constexpr, R: tl.constexpr, A: tl.constexpr, C: tl.constexpr, L: tl.constexpr):
    if L == 1:
        layer_norm_rows(x, g, b, y, tl.program_id(0) * R, N, R, A, C)
    else:
        for step in range(L):
            layer_norm_rows(x, g, b, y, (tl.program_id(0) * L + step) * R, N, R, A, C)


@triton.jit
def two_layer_norms_rows(x, r, g, b, y, first, N: tl.constexpr, R: tl.constexpr, A: tl.constexpr, C: tl.constexpr, AGAIN: tl.constexpr):
    v = load_rows(x, first, 0, N, R, A, C, "evict_first")
    gain, bias = load_columns(g, N, R, A, C), load_columns(b, N, R, A, C)
    h = gelu(normalised(v + load_rows(r, first, 0, N, R, A, C, "evict_first"), N, R, A, C) * gain + bias) + v
    z = normalised(inside(h, N, R, A, C), N, R, A, C)
    if AGAIN:
        store_rows(y, first, z * load_columns(g, N, R, A, C) + load_columns(b, N, R, A, C), N, R, A, C)
    else:
        store_rows(y, first, z * gain + bias, N, R, A, C)


@triton.jit
def two_layer_norms(x, r, g, b, y, N: tl.constexpr, R: tl.constexpr, A: tl.constexpr, C: tl.constexpr, L: tl.constexpr, AGAIN: tl.constexpr = False):
    """layer_norm(gelu(layer_norm(x + r)) + x), for AGAIN loading what all rows share once for each norm."""
    if L == 1:
        two_layer_norms_rows(x, r, g, b, y, tl.program_id(0) * R, N, R, A, C, AGAIN)
    else:
        for step in range(L):
            two_layer_norms_rows(x, r, g, b, y, (tl.program_id(0) * L + step) * R, N, R, A, C, AGAIN)


@triton.jit
def gelu_scaled_rows(x, g, b, r, y, first, N: tl.constexpr, R: tl.constexpr, C: tl.constexpr):
    rows, begin, at = rows_from(first, R, 1), tl.program_id(1) * C, columns_of(R, 1, C)
    v = tl.load(x + begin + rows * N + at).to(tl.float32)
    v = gelu(v * tl.load(g + begin + at).to(tl.float32) + tl.load(b + begin + at).to(tl.float32))
    tl.store(y + begin + rows * N + at, (v * tl.load(r + rows).to(tl.float32)).to(y.dtype.element_ty))


@triton.jit
def gelu_scaled(x, g, b, r, y, N: tl.constexpr, R: tl.constexpr, C: tl.constexpr, L: tl.constexpr):
    """gelu(x g + b) r: g and b for each column, r for each row; L times R rows of C columns."""
    if L == 1:
        gelu_scaled_rows(x, g, b, r, y, tl.program_id(0) * R, N, R, C)
    else:
        for step in range(L):
            gelu_scaled_rows(x, g, b, r, y, (tl.program_id(0) * L + step) * R, N, R, C)


@triton.jit
def column_sum(x, y, M: tl.constexpr, N: tl.constexpr, S: tl.constexpr, R: tl.constexpr, B: tl.constexpr):
    """Rows p S ... (p + 1) S - 1, of which R are a tile, of B columns are summed to row p of y."""
    columns = tl.program_id(0) * B + tl.arange(0, B)
    begin = tl.program_id(1) * S
    total = tl.zeros((R, B), tl.float32)
    if S // R <= 8:
        for step in tl.static_range(S // R):
            total += load_part(x, begin + step * R, columns, M, N, S, R)
    else:
        for first in range(begin, begin + S, R):
            total += load_part(x, first, columns, M, N, S, R)
    tl.store(y + tl.program_id(1) * N + columns, tl.sum(total, 0).to(y.dtype.element_ty), mask=columns < N)


@triton.jit
def load_part(x, first, columns, M: tl.constexpr, N: tl.constexpr, S: tl.constexpr, R: tl.constexpr):
    rows = first + tl.arange(0, R)[:, None]
    mask = columns[None, :] < N
    if M % S != 0:
        mask = mask & (rows < M)
    return tl.load(x + rows * N + columns[None, :], mask=mask, other=0, eviction_policy="evict_first").to(tl.float32)


@triton.jit
def silu_of(v, mean, deviations, gain, bias, COUNT: tl.constexpr):
    y = (v - mean) * (tl.rsqrt(deviations * (1 / COUNT) + 1e-5) * gain) + bias
    return y / (1 + tl.exp(-y))


@triton.jit
def group_norm_silu(x, g, b, y, GROUPS: tl.constexpr, C: tl.constexpr, S: tl.constexpr):
    """A group of C channels, each S elements, in one tile."""
    group = tl.program_id(0)
    at = tl.arange(0, C)[:, None] * S + tl.arange(0, S)[None, :]
    v = tl.load(x + group * (C * S) + at, eviction_policy="evict_first").to(tl.float32)
    channels = group % GROUPS * C + tl.arange(0, C)
    mean = tl.sum(v) * (1 / (C * S))
    d = v - mean
    z = silu_of(v, mean, tl.sum(d * d), tl.load(g + channels)[:, None].to(tl.float32), tl.load(b + channels)[:, None].to(tl.float32), C * S)
    tl.store(y + group * (C * S) + at, z.to(y.dtype.element_ty))


@triton.jit
def group_norm_silu_loops(x, g, b, y, GROUPS: tl.constexpr, C: tl.constexpr, S: tl.constexpr):
    """A group channel by channel: it is read three times."""
    group = tl.program_id(0)
    at = group * (C * S) + tl.arange(0, S)
    total = tl.zeros((S,), tl.float32)
    for c in range(C):
        total += tl.load(x + c * S + at).to(tl.float32)
    mean = tl.sum(total, 0) * (1 / (C * S))
    squares = tl.zeros((S,), tl.float32)
    for c in range(C):
        d = tl.load(x + c * S + at).to(tl.float32) - mean
        squares += d * d
    deviations = tl.sum(squares, 0)
    for c in range(C):
        channel = group % GROUPS * C + c
        v = tl.load(x + c * S + at).to(tl.float32)
        z = silu_of(v, mean, deviations, tl.load(g + channel).to(tl.float32), tl.load(b + channel).to(tl.float32), C * S)
        tl.store(y + c * S + at, z.to(y.dtype.element_ty))


@triton.jit
def channel_moments(x, moments, S: tl.constexpr):
    """The mean of a channel and its squared deviations, which the next kernel merges."""
    channel = tl.program_id(0)
    v = tl.load(x + channel * S + tl.arange(0, S)).to(tl.float32)
    mean = tl.sum(v, 0) * (1 / S)
    d = v - mean
    tl.store(moments + channel * 2, mean)
    tl.store(moments + channel * 2 + 1, tl.sum(d * d, 0))


@triton.jit
def channel_silu(x, moments, g, b, y, GROUPS: tl.constexpr, C: tl.constexpr, S: tl.constexpr):
    """A channel, normalised by the moments of its group."""
    row = tl.program_id(0)
    at = row * S + tl.arange(0, S)
    v = tl.load(x + at).to(tl.float32)
    members = (row // C * C + tl.arange(0, C)) * 2
    means = tl.load(moments + members)
    mean = tl.sum(means, 0) * (1 / C)
    apart = means - mean
    deviations = tl.sum(tl.load(moments + members + 1) + apart * apart * S, 0)
    channel = row % (GROUPS * C)
    z = silu_of(v, mean, deviations, tl.load(g + channel).to(tl.float32), tl.load(b + channel).to(tl.float32), C * S)
    tl.store(y + at, z.to(y.dtype.element_ty))


@triton.jit
def transposed_bias_relu(x, b, y, C: tl.constexpr, S: tl.constexpr, BC: tl.constexpr, BS: tl.constexpr):
    """y[n, s, c] = relu(x[n, c, s] + b[c])"""
    channels = tl.program_id(1) * BC + tl.arange(0, BC)
    places = tl.program_id(0) * BS + tl.arange(0, BS)
    image = tl.program_id(2) * (C * S)
    v = tl.load(x + image + channels[:, None] * S + places[None, :]).to(tl.float32) + tl.load(b + channels)[:, None].to(tl.float32)
    v = tl.maximum(v, 0)
    tl.store(y + image + places[:, None] * C + channels[None, :], tl.trans(v).to(y.dtype.element_ty))
