"""The zoo's models at sizes that a test can afford, which of them an ordinary run takes, and how to write them."""
import pathlib
import random
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))

from drawing import SEED, takes_all  # noqa: E402

# name: (sequence, size, width); 0 is the model's default.
SMALL = {
    "resnet18": (0, 64, 0),
    "resnet50": (0, 64, 0),
    "vgg16": (0, 32, 0),
    "vgg19": (0, 32, 0),
    "repvgg-a0": (0, 64, 0),
    "repvgg-b0": (0, 64, 0),
    "mobilenet-v2": (0, 64, 0),
    "vit-b16": (0, 48, 192),
    "bert-base": (16, 0, 192),
    "transformer": (11, 0, 0),
    "gpt2": (9, 0, 192),
    "llama": (9, 0, 256),
    "gpt2-step": (19, 0, 192),
    "llama-step": (19, 0, 256),
    "t5-small": (11, 0, 0),
    "deberta-v3-small": (13, 0, 192),
    "whisper-encoder": (37, 0, 0),
    "swin-t": (0, 0, 32),
    "convnext-t": (0, 64, 32),
    "asr": (67, 0, 0),
    "crnn": (0, 64, 0),
    "dien": (13, 0, 0),
    "sd-text": (9, 0, 64),
    "sd-unet": (7, 16, 64),
    "sd-vae-decoder": (0, 8, 32),
    "sdxl-text-2": (9, 0, 64),
    "sdxl-unet": (7, 8, 32),
}
DEFAULT = (0, 0, 0)
# Models of the same operators: an ordinary run compares the first of a family in f32 with ONNX Runtime or verifies the second
# in a type of 16 bits.
FAMILIES = (("resnet18", "resnet50"), ("vgg16", "vgg19"), ("repvgg-a0", "repvgg-b0"), ("gpt2-step", "gpt2"),
            ("llama-step", "llama"), ("t5-small", "transformer"), ("sd-unet", "sdxl-unet"), ("sd-text", "sdxl-text-2"))


def draw(member):
    """The models that an ordinary run takes. Of one half of the families the first is compared with ONNX Runtime (`member` 0),
    of the other half the second is verified (1), and so it is with the models of no family. HEDDLE_TEST_SEED, or the day,
    chooses the halves."""
    if takes_all():
        return list(SMALL)
    alone = [name for name in SMALL if not any(name in family for family in FAMILIES)]
    families = list(FAMILIES)
    for cases in (alone, families):
        random.Random(SEED).shuffle(cases)
    chosen = {family[member] for family in families[member::2]} | set(alone[member::2])
    print(f"HEDDLE_TEST_SEED={SEED}", flush=True)
    return [name for name in SMALL if name in chosen]


def write_model(heddle, name, sizes, folder):
    """Writes the model through `heddle zoo`; returns its path."""
    path = pathlib.Path(folder) / f"{name}.onnx"
    options = [text for option, value in zip(("--seq", "--size", "--width"), sizes) if value
               for text in (option, str(value))]
    subprocess.run([heddle, "zoo", name, *options, "-o", path], check=True, stdout=subprocess.DEVNULL)
    return path
