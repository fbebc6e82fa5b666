"""Kernels of bench/tile_language.py, for Heddle or for Triton: TILE_BACKEND says which."""
import os

if os.environ.get("TILE_BACKEND") == "triton":
    import triton
    import triton.language as tl
else:
    import heddle.tile as triton
    import heddle.tile.language as tl


@triton.jit
def add(x, y, z, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(z + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)


@triton.jit
def softmax(x, y, n, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, B)
    v = tl.load(x + row * n + at, mask=at < n, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + row * n + at, (e / tl.sum(e, 0)).to(y.dtype.element_ty), mask=at < n)


@triton.jit
def layer_norm(x, w, b, y, n, eps, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, B)
    inside = at < n
    v = tl.load(x + row * n + at, mask=inside, other=0).to(tl.float32)
    mean = tl.sum(v, 0) / n
    d = tl.where(inside, v - mean, 0)
    r = tl.rsqrt(tl.sum(d * d, 0) / n + eps)
    tl.store(y + row * n + at, (d * r * tl.load(w + at, mask=inside) + tl.load(b + at, mask=inside)).to(y.dtype.element_ty), mask=inside)


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, G: tl.constexpr):
    pid = tl.program_id(0)
    pm = tl.cdiv(M, BM)
    pn = tl.cdiv(N, BN)
    first = pid // (G * pn) * G
    size = min(pm - first, G)
    im = first + (pid % (G * pn)) % size
    jn = (pid % (G * pn)) // size
    rm = (im * BM + tl.arange(0, BM)) % M
    rn = (jn * BN + tl.arange(0, BN)) % N
    rk = tl.arange(0, BK)
    pa = a + rm[:, None] * K + rk[None, :]
    pb = b + rn[None, :] * K + rk[:, None]
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        acc = tl.dot(tl.load(pa, mask=rk[None, :] < K - k * BK, other=0.0), tl.load(pb, mask=rk[:, None] < K - k * BK, other=0.0), acc)
        pa += BK
        pb += BK
    cm = im * BM + tl.arange(0, BM)
    cn = jn * BN + tl.arange(0, BN)
    tl.store(c + cm[:, None] * N + cn[None, :], acc.to(c.dtype.element_ty), mask=(cm[:, None] < M) & (cn[None, :] < N))


@triton.jit
def attention(q, k, v, o, scale, S, D: tl.constexpr, CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    base = tl.program_id(1).to(tl.int64) * S * D
    m0 = tl.program_id(0) * BM
    d = tl.arange(0, D)
    rm = m0 + tl.arange(0, BM)
    rn = tl.arange(0, BN)
    tq = tl.load(q + base + rm[:, None] * D + d[None, :])
    top = tl.full((BM,), -float("inf"), tl.float32)
    den = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for n in range(0, m0 + BM if CAUSAL else S, BN):
        s = tl.dot(tq, tl.load(k + base + (n + rn)[None, :] * D + d[:, None])) * (scale * 1.44269504)
        if CAUSAL:
            s = tl.where(rm[:, None] >= (n + rn)[None, :], s, -float("inf"))
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        r = tl.exp2(top - new)
        den = den * r + tl.sum(p, 1)
        acc = tl.dot(p.to(tl.float16), tl.load(v + base + (n + rn)[:, None] * D + d[None, :]), acc * r[:, None])
        top = new
    tl.store(o + base + rm[:, None] * D + d[None, :], (acc / den[:, None]).to(tl.float16))
