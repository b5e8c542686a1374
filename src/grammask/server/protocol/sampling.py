"""Parameters of sampling, common to chat and text completions."""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import Field, StringConstraints

from grammask.sampling import Sampling
from grammask.server.errors import invalid
from grammask.server.protocol.base import Neutral, Request

StopText = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
MAX_STOPS = 16

NEUTRAL = {
    "service_tier": Neutral("there is one tier", "auto", "default"),
    "best_of": Neutral("use n", 1),
    "use_beam_search": Neutral("outputs are drawn or greedy", False),
    "ignore_eos": Neutral("an output ends where the model or the constraint ends it", False),
    "skip_special_tokens": Neutral("special tokens are never part of the text", True),
    "spaces_between_special_tokens": Neutral("special tokens are never part of the text", True),
    "truncate_prompt_tokens": Neutral("prompts are never cut: shorten the prompt"),
    "prompt_logprobs": Neutral("log-probabilities are given for the output alone"),
    "logits_processors": Neutral("code from requests is not run"),
    "bad_words": Neutral("use a constraint, or logit_bias for tokens", []),
    "guided_decoding_backend": Neutral("the backend is grammask", "auto", "grammask"),
    "guided_whitespace_pattern": Neutral("the server's setting whitespace decides about blanks in JSON"),
}
"""Of OpenAI's, vLLM's and llama.cpp's interfaces."""


class SamplingParameters(Request):
    """The ones of OpenAI first; the others are those of vLLM and llama.cpp."""

    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, gt=0, le=1)
    presence_penalty: float | None = Field(None, ge=-2, le=2)
    frequency_penalty: float | None = Field(None, ge=-2, le=2)
    logit_bias: dict[str, float] | None = Field(None, max_length=300)
    seed: int | None = Field(None, ge=-(2**63), le=2**64 - 1)
    stop: StopText | list[StopText] | None = Field(None, max_length=1000)
    max_tokens: int | None = Field(None, ge=1)
    n: int | None = Field(None, ge=1, le=128)
    stream: bool | None = None

    top_k: int | None = Field(None, ge=-1, description="0 and -1 switch it off")
    min_p: float | None = Field(None, ge=0, le=1)
    typical_p: float | None = Field(None, gt=0, le=1)
    top_n_sigma: float | None = Field(None, gt=0)
    repetition_penalty: float | None = Field(None, gt=0, le=10)
    min_tokens: int | None = Field(None, ge=0)
    stop_token_ids: list[int] | None = Field(None, max_length=64)
    include_stop_str_in_output: bool | None = None

    def limit(self) -> int | None:
        """The most tokens that an output may have, if the request says so."""
        return self.max_tokens

    def stops(self) -> list[str]:
        """The stop texts."""
        stops = [self.stop] if isinstance(self.stop, str) else list(self.stop or [])
        if len(stops) > MAX_STOPS:
            raise invalid(f"stop has {len(stops)} texts: at most {MAX_STOPS}", "stop")
        return stops

    def sampling(self, *, logprobs: bool, top_logprobs: int) -> Sampling:
        """As grammask's own settings; stop texts and length are the scheduler's.

        Raises:
            ApiError: values that do not go together.
        """
        settings: dict[str, Any] = {
            "temperature": 1.0 if self.temperature is None else self.temperature,
            "logit_bias": self._bias(),
            "logprobs": logprobs,
            "top_logprobs": top_logprobs,
            # Who sends a penalty wants it, also where the server would advise against it.
            "penalize_structured": True,
            "stop_token_ids": self.stop_token_ids or [],
            "stop": self.stops(),
            "include_stop": bool(self.include_stop_str_in_output and self.stop),
            "top_k": self.top_k if self.top_k and self.top_k > 0 else None,
        }
        for name in ("top_p", "min_p", "typical_p", "top_n_sigma", "presence_penalty", "frequency_penalty"):
            settings[name] = getattr(self, name)
        settings["repetition_penalty"] = self.repetition_penalty
        settings["min_tokens"] = self.min_tokens
        limit = self.limit()
        if self.min_tokens is not None and limit is not None and self.min_tokens > limit:
            raise invalid(f"min_tokens is {self.min_tokens}, and at most {limit} tokens are asked for", "min_tokens")
        try:
            return Sampling(**{name: value for name, value in settings.items() if value is not None})
        except (ValueError, TypeError) as error:
            raise invalid(str(error), _first_name(str(error), settings)) from error

    def seed_bits(self) -> int | None:
        """The seed as 64 bits; negative ones are taken modulo 2^64."""
        return None if self.seed is None else self.seed % 2**64

    def _bias(self) -> dict[int, float]:
        biases = {}
        for key, value in (self.logit_bias or {}).items():
            if not key.isascii() or not key.isdigit() or len(key) > 9:
                raise invalid(f"logit_bias has the key {key!r}: use token ids", "logit_bias")
            if not -100 <= value <= 100 or math.isnan(value):
                raise invalid(f"logit_bias[{key}] is {value}: use a number from -100 to 100", "logit_bias")
            biases[int(key)] = float(value)
        return biases


def _first_name(message: str, names: dict[str, Any]) -> str | None:
    return next((word for word in message.replace("[", " ").split() if word in names), None)
