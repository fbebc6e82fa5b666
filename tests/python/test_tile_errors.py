"""What is wrong with a kernel is said with its file, line, column and the expression, through every call on the way."""
import pickle
import unittest

import heddle
import heddle.tile as triton

from tile_kernels import module_of

# name: (text of the kernel's body, words of the message, the marked expression)
MISTAKES = {
    "a name that is none": ("y = undefined + 1", "NameError: undefined is not defined", "undefined"),
    "types that do not meet": ("y = tl.load(X) & 1", "invalid operands of type fp32 and int 1", "tl.load(X) & 1"),
    "shapes that do not meet": ("y = tl.arange(0, 4) + tl.arange(0, 5)", "incompatible dimensions at index 0: 4 and 5", "tl.arange(0, 4) + tl.arange(0, 5)"),
    "a value for a constant": ("y = tl.arange(0, tl.program_id(0))", "arange's arguments must be of type tl.constexpr", "tl.arange(0, tl.program_id(0))"),
    "a tile as a condition": ("if tl.arange(0, 4) > 1:\n        pass", "Boolean value of Tensor with more than one value is ambiguous", "if tl.arange(0, 4) > 1:"),
    "a carried type that changes": ("y = 0\n    for i in range(3):\n        y += 1.5", "Loop-carried variable y has initial type int32 but is re-assigned to fp32", "for i in range(3):"),
    "branches that differ": ("if tl.program_id(0) > 1:\n        y = 1\n    else:\n        y = 1.5", "Mismatched type for y between then block (int32) and else block (fp32)", "if tl.program_id(0) > 1:"),
    "a return in a loop": ("for i in range(3):\n        return", "Cannot have `return` statements inside", "return"),
    "a nested function": ("def f(x):\n        return x", "nested function definitions are not allowed", "def f(x):"),
    "a statement that is not known": ("while True:\n        break", "unsupported AST node type: Break", "break"),
    "an assertion": ("tl.static_assert(2 > 3, 'two is not more')", "two is not more", "tl.static_assert(2 > 3, 'two is not more')"),
    "a variable around it": ("y = OUTSIDE", "Cannot access global variable OUTSIDE", "OUTSIDE"),
    "an element that is set": ("y = tl.arange(0, 4)\n    y[0] = 1", "tiles do not change", "y[0] = 1"),
    "a mask that is no mask": ("tl.store(X + tl.arange(0, 4), 1.0, tl.arange(0, 4))", "Mask must have boolean scalar type", "tl.store(X + tl.arange(0, 4), 1.0, tl.arange(0, 4))"),
    "other without a mask": ("tl.load(X, other=1.0)", "`other` cannot be provided without `mask`", "tl.load(X, other=1.0)"),
    "products that do not fit": ("tl.dot(tl.zeros((4, 8), tl.float32), tl.zeros((4, 8), tl.float32))", "not compatible for matmul", "tl.dot"),
    "a number that does not fit": ("y = tl.load(X).to(tl.int8) + 1000", "Scalar 1000 is out of range for type int8", "tl.load(X).to(tl.int8) + 1000"),
    "a constant that is assigned again": ("y = 1\n    y: tl.constexpr = 2", "y is already defined. constexpr cannot be reassigned", "y: tl.constexpr = 2"),
}

CALLS = '''
@triton.jit
def inner(a, b):
    # two tiles
    return a + b

@triton.jit
def middle(a):
    return inner(a, tl.arange(0, 3))

@triton.jit
def kernel(X):
    middle(tl.arange(0, 4))
'''


def compile(kernel):
    triton.compile(triton.compiler.ASTSource(kernel, {"X": "*fp32"}))


class Errors(unittest.TestCase):
    def test_mistakes(self):
        for name, (body, words, marked) in MISTAKES.items():
            module = module_of(f"OUTSIDE = 3\n\n@triton.jit\ndef kernel(X):\n    {body}\n")
            with self.subTest(name), self.assertRaises(triton.CompilationError) as raised:
                compile(module.kernel)
            error = raised.exception
            self.assertIn(words, str(error))
            file, line, column = error.where.rsplit(":", 2)
            self.assertEqual(file, module.__file__)
            with open(file) as source:
                text = source.read().splitlines()[int(line) - 1][int(column) - 1 :]
            self.assertTrue(text.startswith(marked), f"{text!r} is marked, and not {marked!r}")
            lines = str(error).splitlines()
            mark = next(i for i, line in enumerate(lines) if line.strip().startswith("^"))
            self.assertTrue(lines[mark - 1][lines[mark].index("^") :].startswith(marked.splitlines()[0]))

    def test_calls(self):
        module = module_of(CALLS)
        with self.assertRaises(triton.CompilationError) as raised:
            compile(module.kernel)
        told = str(raised.exception)
        for part in ("in kernel, at 2:4:", "in middle, at 2:11:", "in inner, at 3:11:", "    return a + b\n           ^~~~~", "4 and 3"):
            self.assertIn(part, told)
        self.assertLess(told.index("in kernel"), told.index("in inner"))
        self.assertIsInstance(raised.exception.__cause__, triton.CompilationError)

    def test_classes(self):
        module = module_of("@triton.jit\ndef kernel(X):\n    tl.static_assert(False)\n")
        with self.assertRaises(triton.CompileTimeAssertionFailure) as raised:
            compile(module.kernel)
        self.assertIsInstance(raised.exception, heddle.Error)
        self.assertEqual(raised.exception.code, 201)
        copy = pickle.loads(pickle.dumps(raised.exception))
        self.assertEqual((type(copy), str(copy), copy.where), (type(raised.exception), str(raised.exception), raised.exception.where))

    def test_outside_of_a_kernel(self):
        with self.assertRaisesRegex(RuntimeError, "inside of a @jit function"):
            triton.language.arange(0, 4)
        with self.assertRaisesRegex(RuntimeError, r"launch it: kernel\[grid\]"):
            module_of("@triton.jit\ndef kernel(X):\n    pass\n").kernel(1)


if __name__ == "__main__":
    unittest.main()
