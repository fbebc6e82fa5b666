"""Devices by the names of Triton's back ends, as far as programs import them; Heddle's own are not taken out or put in here."""
from heddle.tile.backends import compiler

backends: dict = {}

__all__ = ["backends", "compiler"]
