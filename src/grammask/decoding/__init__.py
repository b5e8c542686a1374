"""The loop: from logits to text that satisfies a constraint."""

from grammask.decoding.generate import TextStream, generate, stream
from grammask.decoding.loop import Decoding
from grammask.decoding.result import FinishReason, InvalidValue, Result, Usage

__all__ = ["Decoding", "FinishReason", "InvalidValue", "Result", "TextStream", "Usage", "generate", "stream"]
