"""For your own tests: a model server that records its requests, and a model with scripted replies."""

from rewoo_bench.testing.scripted_model import ScriptedModel
from rewoo_bench.testing.server import ModelServer

__all__ = ["ModelServer", "ScriptedModel"]
