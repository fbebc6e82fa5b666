#!/usr/bin/env python3
"""examples/stable_diffusion beside diffusers, on small random networks with the same weights and noise.

usage: diffusers_pictures.py [--target cpu|cuda] [--precision f32|f16] [--steps 10] [--pictures 1 2]

The networks are diffusers' and transformers' own, exported by PyTorch to a folder with the names and open extents of optimum's
exports. Prints the largest difference of a pixel, of 255, for each scheduler and number of pictures; whether the tokens are
those of transformers' tokenizer; and the largest difference of the schedules' coefficients over all spacings and kinds of
prediction. Needs torch, diffusers, transformers, onnx, tokenizers. Exit status 1 if tokens differ or pixels differ by more
than 1 (f32) or 12 (f16)."""
import argparse
import json
import pathlib
import sys
import tempfile
import warnings

import numpy as np
import torch
from diffusers import AutoencoderKL, DDIMScheduler, EulerDiscreteScheduler, UNet2DConditionModel
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTokenizer

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "examples/stable_diffusion"), str(ROOT / "tests/python")]
import diffusion_models as small  # noqa: E402
import schedule  # noqa: E402
from pipeline import Pipeline, Request  # noqa: E402
from tokens import Tokenizer  # noqa: E402

SCHEDULERS = {"ddim": DDIMScheduler, "euler": EulerDiscreteScheduler}
TEXTS = ("a lighthouse, in use", "  A  LIGHT\nhouse's 12 cats!!", "naïve café: déjà vu", "日本語 text", "a " * 90, "")
PROMPT, NEGATIVE, GUIDANCE, SEED = "a lighthouse", "dark", 7.5, 4


class Returns(torch.nn.Module):
    """A call as a module, for export."""

    def __init__(self, module, call):
        super().__init__()
        self.module, self.call = module, call

    def forward(self, *arguments):
        return self.call(*arguments)


def networks(words):
    text = CLIPTextModel(CLIPTextConfig(
        vocab_size=len(words), hidden_size=32, intermediate_size=64, num_hidden_layers=3, num_attention_heads=4, projection_dim=32,
        max_position_embeddings=77, bos_token_id=words["<|startoftext|>"], eos_token_id=words["<|endoftext|>"]))
    unet = UNet2DConditionModel(sample_size=8, block_out_channels=(32, 64, 64, 64), cross_attention_dim=32, attention_head_dim=8)
    decoder = AutoencoderKL(down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4,
                            block_out_channels=(32, 32, 64, 64), layers_per_block=2, sample_size=64)
    return text.eval(), unet.eval(), decoder.eval()


def export(folder, text, unet, decoder):
    parts = {
        "text_encoder": (Returns(text, lambda ids: tuple(text(ids).values())[:2]), {"input_ids": torch.zeros(2, 77, dtype=torch.int64)},
                         ["last_hidden_state", "pooler_output"]),
        "unet": (Returns(unet, lambda *inputs: unet(*inputs).sample),
                 {"sample": torch.randn(2, 4, 8, 8), "timestep": torch.tensor([5]), "encoder_hidden_states": torch.randn(2, 77, 32)}, ["out_sample"]),
        "vae_decoder": (Returns(decoder, lambda latents: decoder.decode(latents).sample), {"latent_sample": torch.randn(1, 4, 8, 8)}, ["sample"]),
    }
    for part, (module, inputs, outputs) in parts.items():
        (folder / part).mkdir()
        open_extents = {name: {axis: f"{name}_{axis}" for axis in range(value.ndim) if axis != 1 or value.ndim < 4} for name, value in inputs.items()}
        torch.onnx.export(module, tuple(inputs.values()), str(folder / part / "model.onnx"), input_names=list(inputs), output_names=outputs,
                          dynamic_axes=open_extents, opset_version=17, dynamo=False)
    small.write_json(folder / "unet/config.json", {"sample_size": unet.config.sample_size})
    small.write_json(folder / "vae_decoder/config.json", {"scaling_factor": decoder.config.scaling_factor})
    small.write_json(folder / "scheduler/scheduler_config.json", small.SCHEDULER)


@torch.no_grad()
def expected(text, unet, decoder, tokenizer, noise, scheduler, steps):
    """Pixels of 0 to 255 by diffusers' modules, as its pipeline calls them."""
    states = text(torch.tensor([tokenizer(words)[0] for words in (NEGATIVE, PROMPT)])).last_hidden_state
    states = states.repeat_interleave(len(noise), 0)
    scheduler.set_timesteps(steps)
    latents = torch.tensor(noise) * scheduler.init_noise_sigma
    for time in scheduler.timesteps:
        without, guided = unet(scheduler.scale_model_input(torch.cat([latents] * 2), time), time, states).sample.chunk(2)
        latents = scheduler.step(without + GUIDANCE * (guided - without), time, latents).prev_sample
    picture = decoder.decode(latents / decoder.config.scaling_factor).sample
    return 255 * (picture / 2 + 0.5).clamp(0, 1).permute(0, 2, 3, 1).numpy()


def difference_of_schedules():
    """Of latents after all steps, for a made-up network."""
    largest = 0
    cases = [(name, spacing, kind, steps) for name in SCHEDULERS for spacing in ("leading", "linspace", "trailing")
             for kind in ("epsilon", "v_prediction") for steps in (1, 7, 50)]
    for name, spacing, kind, steps in cases:
        settings = {**small.SCHEDULER, "timestep_spacing": spacing, "prediction_type": kind}
        theirs, ours = SCHEDULERS[name].from_config(settings), schedule.make(name, settings, steps)
        theirs.set_timesteps(steps)
        start = torch.linspace(-2, 2, 9, dtype=torch.float64)
        x, y = start * float(theirs.init_noise_sigma), start.numpy() * ours.first_scale
        for time, (own_time, scale, keep, move) in zip(theirs.timesteps, np.float64(ours.rows)):
            x = theirs.step(torch.sin(3 * theirs.scale_model_input(x, time)) + float(time) / 1000, time, x).prev_sample.double()
            y = keep * y + move * (np.sin(3 * scale * y) + own_time / 1000)
        largest = max(largest, float(np.abs(x.numpy() - y).max()))
    return largest


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--precision", default="f32", choices=("f32", "f16"))
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--pictures", type=int, nargs="*", default=[1, 2])
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.manual_seed(0)
    failed = False
    print(f"schedules: {difference_of_schedules():.1e}")
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        small.write_tokenizer(folder / "tokenizer")
        parts = networks(json.loads((folder / "tokenizer/vocab.json").read_text()))
        export(folder, *parts)
        theirs = CLIPTokenizer(str(folder / "tokenizer/vocab.json"), str(folder / "tokenizer/merges.txt"))
        ours = Tokenizer(folder / "tokenizer")
        same = [theirs(text, padding="max_length", max_length=77, truncation=True).input_ids == ours(text)[0] for text in TEXTS]
        print(f"tokens: {sum(same)} of {len(same)} texts")
        failed |= not all(same)
        for pictures in arguments.pictures:
            pipeline = Pipeline(folder, pictures=pictures, target=arguments.target, precision=arguments.precision, progress=lambda text: None)
            for name, kind in SCHEDULERS.items():
                reference = expected(*parts, ours, pipeline.noise(SEED), kind.from_config(small.SCHEDULER), arguments.steps)
                pixels = pipeline.run(Request(PROMPT, NEGATIVE, SEED, arguments.steps, GUIDANCE, name)).pixels
                largest = float(np.abs(pixels - reference).max())
                print(f"{name}, pictures {pictures}: {largest:.2f} of 255", flush=True)
                failed |= largest > (1 if arguments.precision == "f32" else 12)
    sys.exit(failed)


if __name__ == "__main__":
    main()
