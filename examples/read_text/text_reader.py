"""Reads the text in a picture with three models: one finds lines, one tells which are upside down, one reads them.

The models are PP-OCRv4's, as shipped by the package rapidocr-onnxruntime. What runs them is a function
run(model, inputs) -> list of outputs, with `model` one of "det", "cls", "rec" and `inputs` a dict of arrays."""

import math

import numpy as np
from PIL import Image

from text_boxes import find_boxes

LONG_SIDE = 960  # of the picture that the detector sees
LINE_HEIGHT = 48
DIRECTION_WIDTH = 192
READING_WIDTHS = (320, 640, 1280)  # a line is padded to one of these, so that few shapes are compiled
UPSIDE_DOWN = 0.9  # probability from which a line is turned


def to_network(image):
    """RGB picture -> f32 [3,height,width] in [-1,1], channels in the order blue, green, red that the models expect."""
    pixels = np.asarray(image.convert("RGB"), np.float32)[:, :, ::-1]
    return np.ascontiguousarray((pixels / 255 - 0.5) / 0.5).transpose(2, 0, 1)


def fit_line(image, width):
    """The picture of a line scaled to the networks' height and padded with grey to `width`."""
    scaled = min(width, max(1, math.ceil(LINE_HEIGHT * image.width / image.height)))
    out = np.zeros((3, LINE_HEIGHT, width), np.float32)
    out[:, :, :scaled] = to_network(image.resize((scaled, LINE_HEIGHT), Image.Resampling.BILINEAR))
    return out


def in_batches(lines):
    """Stacks lines of equal shape into batches of a power of two, the last one filled up with grey lines."""
    while lines:
        size = min(8, 1 << (len(lines) - 1).bit_length())
        batch, lines = lines[:size], lines[size:]
        yield len(batch), np.stack(batch + [np.zeros_like(batch[0])] * (size - len(batch)))


def cut_out(image, box):
    """The part of the picture in a box of any direction, upright; columns of text are laid on their side."""
    width = max(1, round(float(np.linalg.norm(box[1] - box[0]))))
    height = max(1, round(float(np.linalg.norm(box[3] - box[0]))))
    quad = [*box[0], *box[3], *box[2], *box[1]]  # top left, bottom left, bottom right, top right
    line = image.transform((width, height), Image.Transform.QUAD, quad, Image.Resampling.BICUBIC)
    return line.transpose(Image.Transpose.ROTATE_90) if height >= 1.5 * width else line


class TextReader:
    def __init__(self, run, characters):
        """`characters`: what the reading model's classes 1... stand for; class 0 is the gap between characters."""
        self.run = run
        self.characters = ["", *characters, " "]

    def find(self, image):
        """Boxes [n,4,2] around lines of text, in pixels of `image`."""
        scale = min(LONG_SIDE / max(image.size), 2.0)
        width, height = (max(32, round(side * scale / 32) * 32) for side in image.size)
        small = to_network(image.resize((width, height), Image.Resampling.BILINEAR))
        probability = self.run("det", {"x": small[None]})[0]
        return find_boxes(probability[0, 0]) * [image.width / width, image.height / height]

    def turn_upright(self, lines):
        # The model sees both ends of a line at their own proportions: a long line squeezed into its width would be
        # unrecognisable, and one end alone may mislead it.
        ends = []
        for line in lines:
            width = min(line.width, line.height * DIRECTION_WIDTH // LINE_HEIGHT)
            for left in (0, line.width - width):
                ends.append(fit_line(line.crop((left, 0, left + width, line.height)), DIRECTION_WIDTH))
        down = [row[1] for count, batch in in_batches(ends) for row in self.run("cls", {"x": batch})[0][:count]]
        return [
            line.transpose(Image.Transpose.ROTATE_180) if (first + last) / 2 > UPSIDE_DOWN else line
            for line, first, last in zip(lines, down[::2], down[1::2])
        ]

    def read_lines(self, lines):
        """The text of each line and its mean probability."""
        needed = [LINE_HEIGHT * line.width / line.height for line in lines]
        widths = [next((w for w in READING_WIDTHS if w >= n), READING_WIDTHS[-1]) for n in needed]
        texts = [None] * len(lines)
        for width in sorted(set(widths)):
            members = [i for i, w in enumerate(widths) if w == width]
            for count, batch in in_batches([fit_line(lines[i], width) for i in members]):
                for row in self.run("rec", {"x": batch})[0][:count]:
                    texts[members.pop(0)] = self.decode(row)
        return texts

    def decode(self, probabilities):
        """[time,classes] -> text: the best class of each step, repetitions and gaps left out."""
        best = probabilities.argmax(-1)
        kept = np.flatnonzero((best != 0) & (best != np.concatenate(([-1], best[:-1]))))
        confidence = float(probabilities[kept, best[kept]].mean()) if kept.size else 0.0
        return "".join(self.characters[c] for c in best[kept]), confidence

    def read(self, image):
        """All text of a PIL image in reading order: a list of (text, probability, box [4,2])."""
        image = image.convert("RGB")
        boxes = self.find(image)
        if not len(boxes):
            return []
        lines = self.turn_upright([cut_out(image, box) for box in boxes])
        return [(text, confidence, box) for (text, confidence), box in zip(self.read_lines(lines), boxes)]
