"""What the profiler reads of the interpreter's memory is what traceback says of the same stack.

usage: stack_test.py LIBRARY FOLDER: libheddle_profile.so, and where record.py is; for the interpreter that runs it
"""
import contextlib
import sys
import threading
import traceback
import unittest

sys.path.insert(0, sys.argv[2])
import record  # noqa: E402

LIBRARY = record.Library(sys.argv[1])
MOST = 256  # frames that the library tells


def both():
    """Differences between what the profiler reads, at rest and in a handler, and traceback, from the caller outwards."""
    told = [(f.name, f.lineno, f.filename) for f in reversed(traceback.extract_stack())][1:]
    found = []
    for resting in True, False:
        frames = [(name.rsplit(".", 1)[-1], line, file) for name, line, file in LIBRARY.stack(resting)][2:]
        found += [(resting, *pair) for pair in zip(frames, told) if pair[0] != pair[1]]
        if len(frames) != min(len(told), MOST - 2):
            found.append((resting, len(frames), len(told)))
    return found, len(told)


def recursion(n):
    if n:
        return recursion(
            n - 1)
    return both()


def generator():
    yield from (both() for _ in range(1))


class Context:
    def __enter__(self):
        self.seen = both()
        return self

    def __exit__(self, *_):
        self.left = both()

    @property
    def value(self):
        return both()

    def __lt__(self, other):
        Context.compared = both()
        return True


@contextlib.contextmanager
def managed(found):
    found.append(both())
    yield
    found.append(both())


def größe(
        a=1,

        b=2):
    return [both()
            for _ in range(1)][0]


class Walk(unittest.TestCase):
    def check(self, outcome, least=1):
        differences, depth = outcome
        self.assertEqual(differences, [])
        self.assertGreaterEqual(depth, least)

    def test_recursion(self):
        for depth in 0, 1, 15, 16, 30, 700:
            self.check(recursion(depth), depth)

    def test_generators_and_comprehensions(self):
        self.check(next(generator()))
        self.check(list(map(lambda _: both(), [0]))[0])
        self.check({0: both() for _ in range(1)}[0])

    def test_through_c(self):
        kept = []
        sorted([0], key=lambda _: kept.append(both()))
        self.check(kept[0])
        sorted([Context(), Context()])
        self.check(Context.compared)
        self.check(Context().value)
        self.check(eval("(lambda:\n\n both())()"))

    def test_contexts(self):
        with Context() as context:
            pass
        self.check(context.seen)
        self.check(context.left)
        found = []
        with managed(found):
            pass
        for outcome in found:
            self.check(outcome)

    def test_exceptions(self):
        try:
            1 // 0
        except ZeroDivisionError:
            self.check(both())
        finally:
            self.check(both())

    def test_names_that_are_not_ascii(self):
        self.check(größe())

    def test_threads(self):
        found = []
        threads = [threading.Thread(target=lambda: found.append(recursion(10))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(found), 4)
        for outcome in found:
            self.check(outcome, 10)

    def test_async(self):
        import asyncio

        async def inner():
            await asyncio.sleep(0)
            return both()

        async def outer():
            return await inner()

        self.check(asyncio.run(outer()))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
