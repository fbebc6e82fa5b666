"""The notebooks of examples/python/notebooks that train by PyTorch. `test_torch_notebooks.py --store` writes their outputs."""
import notebooks
from drawing import draw

EXPECTED = {"train_text": ["", "25", "parameters", "backward", "saved", "loss", "right", "backward"],
            "train_images": ["", "12", "", ", 0 wrong", "loss", "inference", "Model"],
            "own_kernel": ["", "", "", "largest error", "notebook.gated", "loss"]}


def register():
    """The backend by its name, as an installed package does."""
    import test_torch_backend  # noqa: F401  it ends the program where there is no torch
    import torch

    import heddle.torch

    torch._dynamo.register_backend(heddle.torch.heddle_backend, name="heddle")


class Notebooks(notebooks.Notebooks):
    expected = dict(draw(EXPECTED.items()))

    @classmethod
    def setUpClass(cls):
        register()


if __name__ == "__main__":
    register()
    notebooks.main(EXPECTED)
