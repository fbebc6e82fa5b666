"""Small Stable Diffusion models with seeded weights, in folders as optimum's and diffusers' exports lay them out."""
import json
import subprocess
import sys

SCHEDULER = {"beta_start": 0.00085, "beta_end": 0.012, "beta_schedule": "scaled_linear", "num_train_timesteps": 1000,
             "steps_offset": 1, "set_alpha_to_one": False, "clip_sample": False, "prediction_type": "epsilon"}
MERGES = ("l i", "li g", "h o", "u s", "us e</w>", "lig h")


def zoo(name, path, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    words = [word for option, value in options.items() for word in (f"--{option}", str(value))]
    subprocess.run([sys.executable, "-m", "heddle", "zoo", name, *words, "-o", path], check=True, stdout=subprocess.DEVNULL)


def write_json(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


def byte_letters():
    """The letters that stand for bytes in vocabularies of byte-level pairs."""
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    rest = [byte for byte in range(256) if byte not in plain]
    return [chr(byte) for byte in plain] + [chr(256 + i) for i in range(len(rest))]


def write_tokenizer(folder):
    letters = byte_letters()
    words = [*letters, *(letter + "</w>" for letter in letters), *(merge.replace(" ", "") for merge in MERGES),
             "<|startoftext|>", "<|endoftext|>"]
    write_json(folder / "vocab.json", {word: number for number, word in enumerate(words)})
    (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(MERGES) + "\n")
    write_json(folder / "tokenizer_config.json", {"model_max_length": 77, "pad_token": "<|endoftext|>"})


def write(folder, pictures=1, type="f32"):
    """Pictures of 64x64 pixels."""
    zoo("sd-text", folder / "text_encoder/model.onnx", width=64, batch=2, type=type)
    zoo("sd-unet", folder / "unet/model.onnx", width=32, context=64, size=8, batch=2 * pictures, type=type)
    zoo("sd-vae-decoder", folder / "vae_decoder/model.onnx", width=32, size=8, batch=pictures, type=type)
    write_json(folder / "unet/config.json", {"sample_size": 8})
    write_json(folder / "vae_decoder/config.json", {"scaling_factor": 0.18215})
    write_json(folder / "model_index.json", {"_class_name": "StableDiffusionPipeline"})
    write_json(folder / "scheduler/scheduler_config.json", SCHEDULER)
    write_tokenizer(folder / "tokenizer")


def write_xl(folder):
    zoo("sd-text", folder / "text_encoder/model.onnx", width=192, batch=2)
    zoo("sdxl-text-2", folder / "text_encoder_2/model.onnx", width=320, batch=2)
    zoo("sdxl-unet", folder / "unet/model.onnx", width=32, context=512, size=8, batch=2)
    zoo("sd-vae-decoder", folder / "vae_decoder/model.onnx", width=32, size=8)
    write_json(folder / "unet/config.json", {"sample_size": 8})
    write_json(folder / "model_index.json", {"_class_name": "StableDiffusionXLPipeline", "force_zeros_for_empty_prompt": True})
    write_json(folder / "scheduler/scheduler_config.json", {**SCHEDULER, "timestep_spacing": "leading"})
    write_tokenizer(folder / "tokenizer")
    write_tokenizer(folder / "tokenizer_2")
