"""Answers prompts with a language model as a batch, and prints the first answer while it is generated.

usage: generate.py MODEL_FOLDER [--target cpu|cuda] PROMPT...

The command `heddle generate` has more options.
"""
import argparse
import sys

import heddle
from heddle.text import Generator, Sampling


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("folder")
    parser.add_argument("prompts", nargs="+")
    parser.add_argument("--target", default="cpu")
    given = parser.parse_args()
    try:
        generator = Generator(given.folder, target=given.target)
        for piece in generator.stream(given.prompts, max_tokens=32, sampling=Sampling(temperature=0.8, top_k=40, top_p=0.95), seed=1):
            if piece.row == 0:
                print(piece.text, end="", flush=True)
    except heddle.Error as error:  # str(error) says what, where, why and what to do
        print(error, file=sys.stderr)
        return 1
    print()
    for prompt, answer in zip(given.prompts[1:], generator.answers[1:]):
        print(f"{prompt!r}: {answer.text!r}")
    print(f"{generator.timing.tokens_per_second:.1f} tokens/s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
