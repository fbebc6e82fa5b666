"""Kernels with tokens and lines changed at random compile, or end with an error that names a line. $HEDDLE_TILE_DAMAGED: how many;
$HEDDLE_TILE_SEED: the first seed."""
import ast
import io
import os
import random
import tokenize
import unittest
import warnings

import heddle
import heddle.tile as triton

from tile_kernels import module_of

SOFTMAX = ("""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, B)
    v = tl.load(X + row * n + at, mask=at < n, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, 0))
    tl.store(Y + row * n + at, (e / tl.sum(e, 0)).to(Y.dtype.element_ty), mask=at < n)
""", {"X": "*fp16", "Y": "*fp16", "n": "i32", "B": "constexpr"}, {"B": 64})

MATMUL = ("""
    pid = tl.program_id(0)
    pn = tl.cdiv(n, B)
    rm = (pid // pn * B + tl.arange(0, B)) % m
    rn = (pid % pn * B + tl.arange(0, B)) % n
    rk = tl.arange(0, B)
    pa = X + rm[:, None] * k + rk[None, :]
    pb = Y + rk[:, None] * n + rn[None, :]
    acc = tl.zeros((B, B), tl.float32)
    for i in range(0, tl.cdiv(k, B)):
        a = tl.load(pa, mask=rk[None, :] < k - i * B, other=0.0)
        b = tl.load(pb, mask=rk[:, None] < k - i * B, other=0.0)
        acc = tl.dot(a, b, acc)
        pa += B
        pb += B * n
    if pid > 3:
        acc = acc * 2
    else:
        acc += 1
    tl.store(Z + rm[:, None] * n + rn[None, :], acc.to(tl.float16), mask=(rm[:, None] < m) & (rn[None, :] < n))
""", {"X": "*fp16", "Y": "*fp16", "Z": "*fp16", "m": "i32", "n": "i32", "k": "i32", "B": "constexpr"}, {"B": 16})

SCAN = ("""
    total = 0.0
    i = 0
    while i < n:
        x = tl.load(X + i + tl.arange(0, B), mask=i + tl.arange(0, B) < n, other=0)
        c = tl.cumsum(x, 0) + total
        y = tl.where(c > 0, c, tl.sqrt(tl.abs(c)))
        tl.store(Y + i + tl.arange(0, B), y)
        total += tl.sum(x, 0)
        i += B
    tl.atomic_add(Z, total)
    pair = (total, tl.reshape(tl.arange(0, B), (2, B // 2)))
    tl.static_assert(B > 1)
    tl.device_assert(pair[0] == total, "not itself")
""", {"X": "*fp32", "Y": "*fp32", "Z": "*fp32", "n": "i32", "B": "constexpr"}, {"B": 32})

NUMBERS = ["0", "1", "3", "-1", "2.5", "1e40", "64", "4294967296", "True", "None", '"a"', "()", "tl.float16"]
OPERATORS = ["+", "-", "*", "/", "//", "%", "<", ">", "==", "&", "|", "<<", ">>", "@", ".", ",", "=", ":", "**", "and", "not in"]


def damaged(body, chance):
    """The text with one to three tokens or lines changed."""
    for _ in range(chance.randrange(1, 4)):
        lines = body.splitlines()
        if chance.random() < 0.2:
            i, j = chance.randrange(len(lines)), chance.randrange(len(lines))
            kind = chance.randrange(4)
            if kind == 0:
                del lines[i]
            elif kind == 1:
                lines.insert(j, lines[i])
            elif kind == 2:
                lines[i], lines[j] = lines[j], lines[i]
            else:
                lines[i] = "    " + lines[i]
            body = "\n".join(lines) + "\n"
            continue
        try:
            tokens = [t for t in tokenize.generate_tokens(io.StringIO("if 1:\n" + body).readline) if t.type in (1, 2, 54) and t.start[0] > 1]
        except (tokenize.TokenError, IndentationError):
            return body
        if not tokens:
            return body
        token = chance.choice(tokens)
        names = [t.string for t in tokens if t.type == tokenize.NAME] or ["x"]
        new = chance.choice({tokenize.NAME: [*names, "", "undefined"], tokenize.NUMBER: NUMBERS}.get(token.type, [*OPERATORS, ""]))
        if chance.random() < 0.15:
            new = chance.choice([*names, *NUMBERS])
        line = lines[token.start[0] - 2]
        lines[token.start[0] - 2] = line[: token.start[1]] + new + line[token.end[1] :]
        body = "\n".join(lines) + "\n"
    return body


class Damaged(unittest.TestCase):
    def test_kernels_compile_or_name_a_line(self):
        count, seed = int(os.environ.get("HEDDLE_TILE_DAMAGED", 500)), int(os.environ.get("HEDDLE_TILE_SEED", 1))
        warnings.simplefilter("ignore", SyntaxWarning)
        compiled = refused = 0
        for number in range(seed, seed + count):
            chance = random.Random(number)
            body, signature, constants = chance.choice([SOFTMAX, MATMUL, SCAN])
            names = ", ".join(f"{name}: tl.constexpr" if kind == "constexpr" else name for name, kind in signature.items())
            text = f"@triton.jit\ndef kernel({names}):\n{damaged(body, chance)}"
            try:
                ast.parse(text)
            except (SyntaxError, ValueError):
                continue  # Python says so itself
            with self.subTest(number, text=text):
                try:
                    module = module_of(text)
                except (SyntaxError, IndentationError):
                    continue
                try:
                    triton.compile(triton.compiler.ASTSource(module.kernel, signature, constants))
                    compiled += 1
                except heddle.Error as error:
                    refused += 1
                    self.assertNotEqual(error.code, 501, error)
                    self.assertRegex(str(error), r"\.py:\d+", error)
        self.assertGreater(compiled, count // 20)
        self.assertGreater(refused, count // 20)


if __name__ == "__main__":
    unittest.main()
