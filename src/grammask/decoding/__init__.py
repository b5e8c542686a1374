"""The loop: from logits to text that satisfies a constraint."""

from grammask.decoding.beam import BeamSearch
from grammask.decoding.budget import BudgetTooSmall
from grammask.decoding.classify import Classification
from grammask.decoding.draft import Draft
from grammask.decoding.generate import generate, stream
from grammask.decoding.loop import Decoding
from grammask.decoding.partial import partial_reader
from grammask.decoding.partial_json import PartialText, partial_json
from grammask.decoding.reasoning import ReasoningField
from grammask.decoding.result import FinishReason, InvalidValue, Result, Usage
from grammask.decoding.smc import ParticleReport, SequentialMonteCarlo
from grammask.decoding.strategy import Strategy
from grammask.decoding.streams import AsyncTextStream, Channel, StreamEvent, TextStream
from grammask.decoding.thinking import Thinking
from grammask.decoding.vote import Vote, VoteReport

__all__ = [
    "AsyncTextStream",
    "BeamSearch",
    "BudgetTooSmall",
    "Channel",
    "Classification",
    "Decoding",
    "Draft",
    "FinishReason",
    "InvalidValue",
    "PartialText",
    "ParticleReport",
    "ReasoningField",
    "Result",
    "SequentialMonteCarlo",
    "Strategy",
    "StreamEvent",
    "TextStream",
    "Thinking",
    "Usage",
    "Vote",
    "VoteReport",
    "generate",
    "partial_json",
    "partial_reader",
    "stream",
]
