"""The notebooks of examples/python/notebooks that need no PyTorch. `test_notebooks.py --store` writes their outputs."""
import unittest

import notebooks
import test_torch_notebooks

EXPECTED = {"models": ["", "", "64, 128", "fused", "extern", "", "(7, 128)"],
            "tile_kernels": ["", "e-0", "kernel @softmax", "extern", "store", "BLOCK", "microseconds"]}


class Notebooks(notebooks.Notebooks):
    expected = EXPECTED

    def test_each_notebook_is_tested(self):
        self.assertEqual({path.stem for path in notebooks.FOLDER.glob("*.ipynb")}, {*EXPECTED, *test_torch_notebooks.EXPECTED})

    def test_masks_hide_figures_only(self):
        masked = notebooks.masked
        self.assertEqual(masked("a  12.3 us (79%)  k_19e090f4891eccc7"), masked("a 1.5 ms (8%) k_0d7831966b8abbeb"))
        self.assertEqual(masked("ok\nnote: the machine is busy: while times were measured, a thread waited 12% of them"), masked("ok"))
        self.assertNotEqual(masked("ok\nnote: guessed extents"), masked("ok"))
        self.assertNotEqual(masked("fused 3 operators"), masked("3 operators"))
        self.assertNotEqual(masked("<svg><text x='1'>gemm 64</text></svg>"), masked("<svg><text x='1'>stitch 64</text></svg>"))


if __name__ == "__main__":
    notebooks.main(EXPECTED)
