"""The zoo's models at sizes that a test can afford, which of them an ordinary run takes, and how to write them."""
import os
import pathlib
import subprocess

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
# Models of the same operators: an ordinary run compares the first of a family in f32 with ONNX Runtime and verifies the
# second in a type of 16 bits. A model of no family is in both.
FAMILIES = (("resnet18", "resnet50"), ("vgg16", "vgg19"), ("repvgg-a0", "repvgg-b0"), ("gpt2-step", "gpt2"),
            ("llama-step", "llama"), ("t5-small", "transformer"), ("sd-unet", "sdxl-unet"), ("sd-text", "sdxl-text-2"))


def takes_all():
    return bool(os.environ.get("HEDDLE_ALL_INSTANCES"))


def without(member):
    """The models that an ordinary run takes: all but that member of each family."""
    left = () if takes_all() else {family[member] for family in FAMILIES}
    return [name for name in SMALL if name not in left]


def write_model(heddle, name, sizes, folder):
    """Writes the model through `heddle zoo`; returns its path."""
    path = pathlib.Path(folder) / f"{name}.onnx"
    options = [text for option, value in zip(("--seq", "--size", "--width"), sizes) if value
               for text in (option, str(value))]
    subprocess.run([heddle, "zoo", name, *options, "-o", path], check=True, stdout=subprocess.DEVNULL)
    return path
