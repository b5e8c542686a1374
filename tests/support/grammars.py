"""What the grammar tests share: a vocabulary of single bytes, and asking a constraint about texts."""

from __future__ import annotations

import random

import grammask

END = 256


def byte_vocabulary() -> grammask.Vocabulary:
    """A token for every byte (its id is the byte) and an end of text."""
    return grammask.Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [b"</s>"], eos_token_ids=[END])


def accepts(compiled: grammask.CompiledConstraint, text: str) -> bool:
    """Whether a text is a complete output."""
    matcher = compiled.matcher()
    return matcher.accept_bytes(text.encode()) and matcher.is_complete


def random_text(compiled: grammask.CompiledConstraint, generator: random.Random, ending: float) -> str:
    """A random output, byte by byte; ends with this probability wherever it may."""
    matcher = compiled.matcher()
    data = bytearray()
    while True:
        following = matcher.next_bytes()
        if matcher.is_complete and (not following or generator.random() < ending):
            return data.decode()
        byte = bytes([generator.choice(following)])
        assert matcher.accept_bytes(byte), (bytes(data), byte)
        data += byte
