"""Small Stable Diffusion models with seeded weights, in folders as optimum's and diffusers' exports lay them out."""
import json
import subprocess
import sys

import numpy as np
import onnx
from onnx import helper, numpy_helper

SCHEDULER = {"beta_start": 0.00085, "beta_end": 0.012, "beta_schedule": "scaled_linear", "num_train_timesteps": 1000,
             "steps_offset": 1, "set_alpha_to_one": False, "clip_sample": False, "prediction_type": "epsilon"}
TINY_COLOURS = np.array([[0.1, 0, 0.05, 0], [0, 0.1, 0, 0], [0, 0, 0.05, 0.1]])  # of the channels of latents
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


def save(path, nodes, inputs, output, constants):
    """inputs and output: (name, type, shape)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    graph = helper.make_graph(nodes, path.parent.name, [helper.make_tensor_value_info(*port) for port in inputs],
                              [helper.make_tensor_value_info(*output)], [numpy_helper.from_array(value, name) for name, value in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)]), path)


def tiny_unet(path, real, time, time_shape):
    """scale * sample + the mean of the text + time / 1000, with inputs of these types and open extents."""
    nodes = [helper.make_node("Cast", ["timestep"], ["cast"], to=real), helper.make_node("Reshape", ["cast", "column"], ["number"]), helper.make_node("Mul", ["number", "per_step"], ["moment"]),
             helper.make_node("ReduceMean", ["encoder_hidden_states"], ["mean"], axes=[1, 2], keepdims=1),
             helper.make_node("Unsqueeze", ["mean", "last"], ["text"]), helper.make_node("Mul", ["sample", "scale"], ["scaled"]),
             helper.make_node("Add", ["scaled", "text"], ["sum"]), helper.make_node("Add", ["sum", "moment"], ["out_sample"])]
    kind = helper.tensor_dtype_to_np_dtype(real)
    constants = {"scale": np.asarray(0.5, kind), "per_step": np.asarray(1e-3, kind), "last": np.array([3]), "column": np.array([-1, 1, 1, 1])}
    ports = [("sample", real, ["b", 4, "h", "w"]), ("timestep", time, time_shape), ("encoder_hidden_states", real, ["b", "t", 8])]
    save(path, nodes, ports, ("out_sample", real, ["b", 4, "h", "w"]), constants)


def tiny_text(ids):
    """[..., 8]"""
    return np.sin(ids[..., None] * np.arange(1.0, 9.0))


def write_tiny(folder):
    """A folder with open extents in which each network is a few nodes."""
    real, integer = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
    save(folder / "text_encoder/model.onnx", [helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])],
         [("input_ids", integer, ["b", "t"])], ("last_hidden_state", real, ["b", "t", 8]), {"table": np.float32(tiny_text(np.arange(600)))})
    tiny_unet(folder / "unet/model.onnx", real, integer, ["steps"])
    nodes = [helper.make_node("Conv", ["latent_sample", "colours"], ["small"]),
             helper.make_node("Resize", ["small", "", "scales"], ["sample"], mode="nearest", coordinate_transformation_mode="asymmetric",
                              nearest_mode="floor")]
    save(folder / "vae_decoder/model.onnx", nodes, [("latent_sample", real, ["b", 4, "h", "w"])], ("sample", real, ["b", 3, "h8", "w8"]),
         {"colours": np.float32(TINY_COLOURS).reshape(3, 4, 1, 1), "scales": np.float32([1, 1, 8, 8])})
    write_json(folder / "scheduler/scheduler_config.json", SCHEDULER)
    write_tokenizer(folder / "tokenizer")
