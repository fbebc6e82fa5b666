"""Attention in one kernel: softmax over blocks of keys that are seen one after the other, causal or not.

usage: attention.py
"""
import heddle.tile as triton
import heddle.tile.language as tl
import numpy as np


@triton.jit
def attention_kernel(q, k, v, out, scale, queries, keys, CAUSAL: tl.constexpr, HEAD: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    start, head = tl.program_id(0) * M, tl.program_id(1)
    rows = start + tl.arange(0, M)
    q_tile = tl.make_block_ptr(q + head * queries * HEAD, (queries, HEAD), (HEAD, 1), (start, 0), (M, HEAD), (1, 0))
    k_tile = tl.make_block_ptr(k + head * keys * HEAD, (HEAD, keys), (1, HEAD), (0, 0), (HEAD, N), (0, 1))
    v_tile = tl.make_block_ptr(v + head * keys * HEAD, (keys, HEAD), (HEAD, 1), (0, 0), (N, HEAD), (1, 0))
    largest = tl.full((M,), -float("inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    sums = tl.zeros((M, HEAD), tl.float32)
    queried = tl.load(q_tile, boundary_check=(0,), padding_option="zero")
    for at in range(0, min(keys, start + M) if CAUSAL else keys, N):
        columns = at + tl.arange(0, N)
        scores = tl.dot(queried, tl.load(k_tile, boundary_check=(1,), padding_option="zero"), input_precision="ieee") * scale
        seen = (columns[None, :] < keys) & ((rows[:, None] >= columns[None, :]) | (not CAUSAL))
        scores = tl.where(seen, scores, -1.0e30)
        higher = tl.maximum(largest, tl.max(scores, 1))
        weights = tl.exp(scores - higher[:, None])
        # What was summed up relative to a smaller largest score counts less now.
        fade = tl.exp(largest - higher)
        total = total * fade + tl.sum(weights, 1)
        values = tl.load(v_tile, boundary_check=(0,), padding_option="zero")
        sums = tl.dot(weights.to(values.dtype), values, sums * fade[:, None], input_precision="ieee")
        largest = higher
        k_tile = tl.advance(k_tile, (0, N))
        v_tile = tl.advance(v_tile, (N, 0))
    out_tile = tl.make_block_ptr(out + head * queries * HEAD, (queries, HEAD), (HEAD, 1), (start, 0), (M, HEAD), (1, 0))
    tl.store(out_tile, (sums / total[:, None]).to(out.dtype.element_ty), boundary_check=(0,))


def attention(q, k, v, causal):
    heads, queries, head = q.shape
    out = np.empty_like(q)
    attention_kernel[(triton.cdiv(queries, 32), heads)](q, k, v, out, head**-0.5, queries, k.shape[1], CAUSAL=causal, HEAD=head, M=32, N=32)
    return out


def main():
    q, k, v = np.random.default_rng(0).standard_normal((3, 2, 75, 32)).astype(np.float32)
    for causal in (False, True):
        scores = q.astype(np.float64) @ k.transpose(0, 2, 1) / 32**0.5
        if causal:
            scores[:, np.triu(np.ones((75, 75), bool), 1)] = -np.inf
        weights = np.exp(scores - scores.max(2, keepdims=True))
        error = abs(attention(q, k, v, causal) - weights / weights.sum(2, keepdims=True) @ v).max()
        assert error < 1e-5
        print(f"attention{' causal' if causal else ''}: error {error:.1e}")


if __name__ == "__main__":
    main()
