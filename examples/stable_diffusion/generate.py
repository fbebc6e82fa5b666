"""Makes pictures from a prompt with a Stable Diffusion model that was exported to ONNX.

    optimum-cli export onnx --model stable-diffusion-v1-5/stable-diffusion-v1-5 sd15
    python generate.py sd15 "a lighthouse in a storm, oil on canvas" --target cuda -o lighthouse.png
"""
import argparse
import pathlib
import sys
import time

import heddle
from PIL import Image

import schedule
from pipeline import Pipeline, Request


def show(text, last=False):
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="\n" if last else "", file=sys.stderr, flush=True)
    elif last:
        print(text, file=sys.stderr)


def file_of(output, number, pictures):
    path = pathlib.Path(output)
    return path if pictures == 1 else path.with_stem(f"{path.stem}-{number + 1}")


def print_memory(pipeline):
    giga = 1e-9
    for name, constants, values in pipeline.memory():
        print(f"{name:16} {constants * giga:6.2f} GB of weights, {values * giga:6.2f} GB of intermediate values")
    print(f"{'on ' + pipeline.device:16} {sum(part[1] + part[2] for part in pipeline.memory()) * giga:6.2f} GB in all")


def make(arguments):
    schedule.require_steps(arguments.steps)  # before minutes of compilation
    pipeline = Pipeline(arguments.folder, pictures=arguments.pictures, height=arguments.height, width=arguments.width,
                        target=arguments.target, precision=arguments.precision, threads=arguments.threads, progress=show)
    show("compiled", last=True)
    print_memory(pipeline)
    request = Request(arguments.prompt, arguments.negative, arguments.seed, arguments.steps, arguments.guidance, arguments.scheduler)
    if arguments.save:
        pipeline.save(arguments.save, request)
        print(arguments.save)
        return
    start = time.perf_counter()

    def told(step):
        each = (time.perf_counter() - start) / step
        show(f"step {step} of {request.steps}, {each:.2f} s each, {each * (request.steps - step):.0f} s left")

    result = pipeline.run(request, told if sys.stderr.isatty() else None)
    seconds = time.perf_counter() - start
    show(f"{arguments.pictures} in {seconds:.2f} s: {arguments.pictures / seconds:.2f} pictures a second", last=True)
    if result.cut_tokens:
        print(f"warning: the last {result.cut_tokens} tokens of the prompt did not fit and were left out", file=sys.stderr)
    for number, picture in enumerate(result.pixels):
        path = file_of(arguments.output, number, arguments.pictures)
        Image.fromarray(picture).save(path)
        print(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="the exported model: text_encoder/, unet/, vae_decoder/, tokenizer/, scheduler/")
    parser.add_argument("prompt")
    parser.add_argument("-o", "--output", default="picture.png", help="with several pictures, -1, -2, ... is added to the name")
    parser.add_argument("--save", help="write a folder for examples/cpp/stable_diffusion.cc in place of pictures")
    parser.add_argument("--negative", default="", help="what the picture is to be unlike")
    parser.add_argument("--pictures", type=int, default=1, help="at once, from the seeds SEED, SEED + 1, ...")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--guidance", type=float, default=7.5, help="how closely the picture follows the prompt; 1: no guidance")
    parser.add_argument("--scheduler", choices=schedule.NAMES, default="ddim")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--height", type=int, help="in pixels; default: the model's")
    parser.add_argument("--width", type=int, help="in pixels; default: the model's")
    parser.add_argument("--target", default="cpu", help="cpu, cuda or cuda:N")
    parser.add_argument("--precision", default="f16", help="of an f32 model on a GPU")
    parser.add_argument("--threads", type=int, default=0, help="of a CPU")
    arguments = parser.parse_args()
    output = pathlib.Path(arguments.output)
    if not arguments.save and (not output.parent.is_dir() or output.suffix.lower() not in Image.registered_extensions()):
        sys.exit(f"{output}: its folder has to exist, and its name has to end as .png or another kind of picture")
    try:
        make(arguments)
    except (ValueError, OSError, heddle.Error) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
