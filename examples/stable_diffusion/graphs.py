"""ONNX graphs around the networks of a folder: rows for each picture behind a text encoder, a step of a scheduler around
the UNet, and pixels behind the decoder.

Weights stay where they are: a graph is written to a folder of its own with links to the files of the network's weights.
"""
import pathlib

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import TensorProto, helper, numpy_helper

from schedule import TRAINED_STEPS

PREFIX = "pipeline."  # of all names that are added, so that they clash with none of the network
LATENTS, STEP, TABLE, GUIDANCE, TIME, PIXELS = (PREFIX + name for name in ("latents", "step", "table", "guidance", "time", "pixels"))
TOKENS = "input_ids"
NEXT = PREFIX + "next_latents"
CHANNELS = 4  # of latents


class WrongModel(ValueError):
    """A network without the inputs and outputs that it has to have."""


def load(path):
    """Without the weights that are in other files."""
    try:
        return onnx.load(path, load_external_data=False)
    except DecodeError as error:
        raise WrongModel(f"{path} is no ONNX model: {error}") from None


class Wrapped:
    """A network with nodes in front of its inputs and behind its output."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.model = load(path)
        self.graph = self.model.graph
        constants = {tensor.name for tensor in self.graph.initializer}
        self.inputs = {value.name: value for value in self.graph.input if value.name not in constants}
        self.own_nodes = list(self.graph.node)
        self.front, self.back, self.count = [], [], 0

    def require(self, *names):
        missing = [name for name in names if name not in self.inputs]
        if missing:
            raise WrongModel(f"{self.path} has no input {missing[0]}: it has {', '.join(self.inputs)}")

    def type_of(self, name):
        return self.inputs[name].type.tensor_type.elem_type

    def extents(self, name):
        """Of an input; None for those that are open."""
        return [dim.dim_value or None for dim in self.inputs[name].type.tensor_type.shape.dim]

    def require_shape(self, name, shape):
        own = self.extents(name)
        if len(own) != len(shape) or any(extent not in (None, wanted) for extent, wanted in zip(own, shape)):
            raise WrongModel(f"{self.path}: input {name} has the shape {own}, {list(shape)} is needed. Export it with open extents, "
                             "or give a size and a number of pictures that fit")

    def node(self, nodes, operator, *inputs, output=None, **attributes):
        self.count += 1
        output = output or f"{PREFIX}{self.count}"
        nodes.append(helper.make_node(operator, list(inputs), [output], name=f"/pipeline/{operator}_{self.count}", **attributes))
        return output

    def constant(self, values, dtype):
        self.count += 1
        name = f"{PREFIX}{self.count}"
        self.graph.initializer.append(numpy_helper.from_array(np.asarray(values, dtype), name))
        return name

    def finish(self, scratch, inputs, outputs):
        """Writes the graph with these inputs and outputs, (name, type, shape), in place of its own; returns the path."""
        del self.graph.node[:], self.graph.input[:], self.graph.output[:], self.graph.value_info[:]
        self.graph.node.extend([*self.front, *self.own_nodes, *self.back])
        self.graph.input.extend(helper.make_tensor_value_info(*port) for port in inputs)
        self.graph.output.extend(helper.make_tensor_value_info(*port) for port in outputs)
        folder = pathlib.Path(scratch) / self.path.parent.name
        folder.mkdir()
        for name in sorted({str(pathlib.PurePath(name)) for name in external_files(self.model)}):
            if name == "model.onnx":  # a link of that name would be written through, into the user's model
                raise WrongModel(f"{self.path}: it names itself as the file of its weights")
            if pathlib.PurePath(name).is_absolute() or ".." in pathlib.PurePath(name).parts:
                raise WrongModel(f"{self.path}: its weights are in {name}, outside its folder")
            if not (self.path.parent / name).is_file():
                raise WrongModel(f"{self.path}: its weights are in {name}, which is not beside it")
            link = folder / name
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to((self.path.parent / name).resolve())
        path = folder / "model.onnx"
        onnx.save(self.model, path)
        return path


def external_files(model):
    """The files that hold weights of a model, relative to its own."""
    tensors = list(model.graph.initializer)
    for node in model.graph.node:
        for attribute in node.attribute:
            tensors += [attribute.t] if attribute.HasField("t") else []
    return {entry.value for tensor in tensors if tensor.data_location == TensorProto.EXTERNAL
            for entry in tensor.external_data if entry.key == "location"}


def text_graph(path, scratch, pictures, tokens, outputs):
    """A text encoder of the token ids of two texts, [2, tokens]: without the prompt, then with it.

    Its outputs of these names are f32 and have as many equal rows as pictures for each text.
    """
    encoder = Wrapped(path)
    encoder.require(TOKENS)
    encoder.require_shape(TOKENS, (2, tokens))
    own = {value.name for value in encoder.graph.output}
    missing = [name for name in outputs if name not in own]
    if missing:
        raise WrongModel(f"{path} has no output {missing[0]}: it has {', '.join(sorted(own))}")
    rows = encoder.constant([0] * pictures + [1] * pictures, np.int64)
    for name in outputs:
        real = encoder.node(encoder.back, "Cast", name, to=TensorProto.FLOAT)
        encoder.node(encoder.back, "Gather", real, rows, axis=0, output=PREFIX + name)
    return encoder.finish(scratch, [(TOKENS, encoder.type_of(TOKENS), (2, tokens))],
                          [(PREFIX + name, TensorProto.FLOAT, None) for name in outputs])


def hidden_state_of(path):
    """The output of a text encoder of XL that the UNet reads: what the last layer but one makes."""
    names = [value.name for value in load(path).graph.output]
    states = {int(name.split(".")[1]): name for name in names if name.startswith("hidden_states.")}
    if len(states) < 2:
        raise WrongModel(f"{path} has no outputs hidden_states.N: export it as a part of Stable Diffusion XL")
    return states[max(states) - 1]


def step_graph(path, scratch, pictures, text, latent):
    """A step of a scheduler (schedule.py) with classifier-free guidance around the UNet.

    text: shapes of the UNet's further inputs by name, without the batch; latent: height and width of the latents. The
    batch of the UNet is twice the pictures: first without the prompt, then with it. Inputs are the latents, the number
    of the step, the schedule's table, the strength of the guidance and the texts; outputs the next latents and the time
    of the step. Everything but the UNet is f32.
    """
    unet = Wrapped(path)
    unet.require("sample", "timestep", *text)
    further = set(unet.inputs) - {"sample", "timestep", *text}
    if further:
        raise WrongModel(f"{path}: the inputs {', '.join(sorted(further))} are not those of Stable Diffusion 1.x or XL")
    latents, doubled = (pictures, CHANNELS, *latent), (2 * pictures, CHANNELS, *latent)
    unet.require_shape("sample", doubled)
    for name, shape in text.items():
        unet.require_shape(name, (2 * pictures, *shape))

    f, b = unet.front, unet.back
    row = unet.node(f, "Gather", TABLE, STEP, axis=0)  # [1, 4]
    time, input_scale, keep, move = (
        unet.node(f, "Gather", row, unet.constant(column, np.int64), axis=1, output=TIME if column == 0 else None) for column in range(4))
    scaled = unet.node(f, "Mul", LATENTS, input_scale)
    unet.node(f, "Cast", unet.node(f, "Concat", scaled, scaled, axis=0), to=unet.type_of("sample"), output="sample")
    extents = unet.extents("timestep")
    shape = unet.constant([extent or 1 for extent in extents], np.int64)
    typed = unet.node(f, "Cast", time, to=unet.type_of("timestep"))
    if extents:
        unet.node(f, "Expand", typed, shape, output="timestep")
    else:
        unet.node(f, "Reshape", typed, shape, output="timestep")
    for name in text:
        unet.node(f, "Cast", PREFIX + name, to=unet.type_of(name), output=name)

    prediction = unet.node(b, "Cast", unet.graph.output[0].name, to=TensorProto.FLOAT)
    zero, middle, end, axis = (unet.constant([value], np.int64) for value in (0, pictures, 2 * pictures, 0))
    without, guided = (unet.node(b, "Slice", prediction, first, last, axis) for first, last in ((zero, middle), (middle, end)))
    change = unet.node(b, "Mul", unet.node(b, "Sub", guided, without), GUIDANCE)
    moved = unet.node(b, "Mul", unet.node(b, "Add", without, change), move)
    unet.node(b, "Add", unet.node(b, "Mul", LATENTS, keep), moved, output=NEXT)

    real, texts = TensorProto.FLOAT, [(PREFIX + name, TensorProto.FLOAT, (2 * pictures, *shape)) for name, shape in text.items()]
    return unet.finish(scratch,
                       [(LATENTS, real, latents), (STEP, TensorProto.INT64, (1,)), (TABLE, real, (TRAINED_STEPS, 4)),
                        (GUIDANCE, real, (1,)), *texts],
                       [(NEXT, real, latents), (TIME, real, (1,))])


def picture_graph(path, scratch, pictures, latent, scale):
    """The decoder of latents, and pixels [pictures, height, width, 3] of bytes behind it. scale: of the latents."""
    decoder = Wrapped(path)
    decoder.require("latent_sample")
    decoder.require_shape("latent_sample", (pictures, CHANNELS, *latent))
    scaled = decoder.node(decoder.front, "Div", LATENTS, decoder.constant(scale, np.float32))
    decoder.node(decoder.front, "Cast", scaled, to=decoder.type_of("latent_sample"), output="latent_sample")

    b, half = decoder.back, decoder.constant(127.5, np.float32)
    real = decoder.node(b, "Cast", decoder.graph.output[0].name, to=TensorProto.FLOAT)
    level = decoder.node(b, "Add", decoder.node(b, "Mul", real, half), half)
    bounded = decoder.node(b, "Clip", decoder.node(b, "Round", level), decoder.constant(0, np.float32), decoder.constant(255, np.float32))
    last = decoder.node(b, "Transpose", bounded, perm=[0, 2, 3, 1])
    decoder.node(b, "Cast", last, to=TensorProto.UINT8, output=PIXELS)
    return decoder.finish(scratch, [(LATENTS, TensorProto.FLOAT, (pictures, CHANNELS, *latent))],
                          [(PIXELS, TensorProto.UINT8, (pictures, *(8 * extent for extent in latent), 3))])
