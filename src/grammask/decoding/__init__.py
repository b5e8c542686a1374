"""The loop: from logits to text that satisfies a constraint."""

from grammask.decoding.generate import TextStream, generate, stream
from grammask.decoding.loop import Decoding
from grammask.decoding.result import FinishReason, Result, Usage

__all__ = ["Decoding", "FinishReason", "Result", "TextStream", "Usage", "generate", "stream"]
