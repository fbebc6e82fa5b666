"""Every attention of the zoo's models is one kernel for an H200: attention_models.py HEDDLE [NAME...]. Needs no GPU."""

import argparse
import json
import subprocess
import sys
import tempfile

from zoo_models import SMALL, write_model

# Layers with an attention of their own, those of decoders on their encoder included.
ATTENTIONS = {"vit-b16": 12, "sd-text": 12, "bert-base": 12, "transformer": 18, "asr": 12, "gpt2": 12, "llama": 16, "gpt2-step": 12,
              "llama-step": 16, "t5-small": 18, "deberta-v3-small": 6, "whisper-encoder": 6, "swin-t": 12}


def kernels(heddle, path, precision):
    """Kernels of attention that the model is compiled to."""
    command = [heddle, "explain", path, "--target", "cuda", "--precision", precision, "--json"]
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    labels = [kernel["label"] for group in report["groups"] for kernel in group["kernels"]]
    return sum(label.startswith("attention ") for label in labels)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("heddle")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    problems = 0
    for name in arguments.names or ATTENTIONS:
        with tempfile.TemporaryDirectory() as folder:
            path = write_model(arguments.heddle, name, SMALL[name], folder)
            for precision in ("f16", "bf16"):
                found, expected = kernels(arguments.heddle, path, precision), ATTENTIONS[name]
                print(f"{name:18} {precision:5} {found} of {expected}{'' if found == expected else '  FAIL'}", flush=True)
                problems += found != expected
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
