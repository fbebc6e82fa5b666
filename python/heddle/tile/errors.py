"""What every error of heddle.tile is."""
from heddle._errors import Error as TritonError

__all__ = ["TritonError"]
