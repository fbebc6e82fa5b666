"""PP-OCRv4's three models: Heddle reads the same text in pictures as ONNX Runtime, through examples/read_text."""

import unittest

import numpy as np
from PIL import Image, ImageDraw, ImageFont

import side_by_side
from side_by_side import SideBySide
from drawing import draw  # from tests/python
from heddle_library import HeddleLibrary  # from examples/read_text
from read_text import characters_of
from text_reader import TextReader

HEDDLE = DATA = None  # set by side_by_side.main

LINES = ["Heddle reads this picture", "through three models: 2026-11-20", "total 1,623.42 EUR"]
UPSIDE_DOWN = "turned upside down"
DRAWN = (900, 420)  # of the drawn pictures: what finds lines is compiled for each size
PICTURES = draw(("drawn", "photograph"))  # each takes seven compilations of a network
PAGE = ["Region-based", "markers", "pixels that we can label", "object or background", "two extreme parts", "histogram"]


def squeeze(text):
    """The reader does not always find the blanks between words."""
    return text.replace(" ", "")


def drawn_picture():
    image = Image.new("RGB", DRAWN, "white")
    draw = ImageDraw.Draw(image)
    for number, line in enumerate(LINES):
        draw.text(
            (30, 30 + number * 90), line, fill=(20, 20, 60 * number), font=ImageFont.load_default(52 - 8 * number)
        )
    strip = Image.new("RGB", (500, 60), "white")
    ImageDraw.Draw(strip).text((5, 5), UPSIDE_DOWN, fill="black", font=ImageFont.load_default(40))
    image.paste(strip.rotate(180), (200, 330))
    return image


def photograph():
    with Image.open(DATA / "pictures/page.png") as image:
        return image.copy()


class ReadTextTest(unittest.TestCase):
    def setUp(self):
        models = {name: DATA / f"rapidocr/{name}.onnx" for name in ("det", "cls", "rec")}
        self.pair = SideBySide(self, HEDDLE, models)
        self.characters = characters_of(models["rec"])

    def read_both(self, image):
        """What Heddle reads; every call is compared with ONNX Runtime, and so is the text at the end."""
        heddle = TextReader(lambda model, inputs: self.pair.run(model, inputs)[0], self.characters).read(image)
        alone = TextReader(lambda model, inputs: self.pair.sessions[model].run(None, inputs), self.characters).read(
            image
        )
        self.assertEqual([text for text, _, _ in heddle], [text for text, _, _ in alone])
        return [text for text, _, _ in heddle]

    @unittest.skipUnless("drawn" in PICTURES, "a run that draws the other picture")
    def test_drawn_text(self):
        texts = [squeeze(text) for text in self.read_both(drawn_picture())]
        self.assertEqual(texts, [squeeze(line) for line in [*LINES, UPSIDE_DOWN]])

    @unittest.skipUnless("photograph" in PICTURES, "a run that draws the other picture")
    def test_photograph_of_a_page(self):
        text = squeeze("\n".join(self.read_both(photograph())))
        for part in PAGE:
            self.assertIn(squeeze(part), text)

    def test_picture_without_text(self):
        size = DRAWN if "drawn" in PICTURES else photograph().size
        self.assertEqual(self.read_both(Image.new("RGB", size, "gray")), [])

    def test_library_runs_as_the_command_does(self):
        library = HeddleLibrary(HEDDLE.parent / "libheddle.so", {"cls": DATA / "rapidocr/cls.onnx"})
        batch = np.random.default_rng(3).standard_normal((8, 3, 48, 192)).astype(np.float32)
        for _ in range(2):
            np.testing.assert_array_equal(library.run("cls", {"x": batch})[0], self.pair.run("cls", {"x": batch})[0][0])
        with self.assertRaises(RuntimeError):
            library.run("cls", {"x": batch.astype(np.float64)})
        library.close()


if __name__ == "__main__":
    side_by_side.main()
