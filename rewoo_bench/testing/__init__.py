"""For tests of your own: a model server that keeps its own books, and a model that answers as it is told."""

from rewoo_bench.testing.scripted_model import ScriptedModel
from rewoo_bench.testing.server import ModelServer

__all__ = ["ModelServer", "ScriptedModel"]
