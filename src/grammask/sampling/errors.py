"""What the sampler raises and warns about."""

from __future__ import annotations


class SamplingError(ValueError):
    """No token can be chosen from these logits under this mask and these settings."""


class SamplingWarning(UserWarning):
    """Settings that are legal but rarely what was meant."""
