"""Cases that a run of the tests draws: others each day, since compiling all of them takes long."""
import datetime
import os
import random
import unittest

SEED = int(os.environ.get("HEDDLE_TEST_SEED", datetime.date.today().toordinal()))


def takes_all():
    return bool(os.environ.get("HEDDLE_ALL_INSTANCES"))


def draw(cases, count=1):
    """`count` of the cases, or all with HEDDLE_ALL_INSTANCES. HEDDLE_TEST_SEED, or the day, chooses them."""
    if takes_all():
        return list(cases)
    print(f"HEDDLE_TEST_SEED={SEED}", flush=True)
    return random.Random(SEED).sample(list(cases), count)


def draws(count, *names):
    """A decorator of a class of tests: a run takes `count` of the tests `names`."""

    def decorate(tests):
        left_out = set(names) - set(draw(names, count))
        for name in left_out:
            setattr(tests, name, unittest.skip("another run draws it")(getattr(tests, name)))
        return tests

    return decorate
