"""Slips in the arguments of ``generate`` and its relatives, told before anything is computed."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from grammask.models import LanguageModel

ROLES = ("system", "developer", "user", "assistant", "tool")
"""Roles of messages. A model's chat template may know further ones (``LanguageModel.knows_role``)."""

_EXAMPLE = '[{"role": "user", "content": "..."}]'


def check_options(function: str, options: Iterable[str], more: Sequence[str] = ()) -> None:
    """Refuses options that ``generate`` does not have.

    Args:
        function: whose options they are, for the message.
        more: options of this function alone.

    Raises:
        TypeError: with the option that was meant, where one can be guessed.
    """
    from grammask.models.base import GenerateOptions
    from grammask.sampling import Sampling

    known = [*GenerateOptions.__annotations__, *more]
    settings = [field.name for field in dataclasses.fields(Sampling) if field.name not in known]
    for name in options:
        if name in known:
            continue
        message = f"{function}() has no option {name!r}"
        meant = difflib.get_close_matches(name, [*known, *settings], n=1)
        if name in settings:
            message += f", it is a setting of how tokens are drawn: pass sampling=grammask.Sampling({name}=...)"
        elif meant and meant[0] in settings:
            message += f": did you mean sampling=grammask.Sampling({meant[0]}=...)?"
        elif meant:
            message += f": did you mean {meant[0]!r}?"
        else:
            message += f": it has {', '.join(sorted(known))}"
        raise TypeError(message)


def check_prompt(model: LanguageModel, prompt: Any) -> None:
    """Refuses what is no prompt.

    Raises:
        TypeError: it is neither a text nor a list of messages.
        ModelError: a message without a role or content, or with a role that neither chats in general nor the model's
            template know.
    """
    if isinstance(prompt, str):
        return
    if isinstance(prompt, Mapping):
        raise TypeError(f"the prompt is one message: pass a list of messages such as {_EXAMPLE}")
    if not isinstance(prompt, Sequence) or isinstance(prompt, (bytes, bytearray)):
        raise TypeError(
            f"the prompt is of type {type(prompt).__name__}: pass a text, or a list of messages such as {_EXAMPLE}"
        )
    for position, message in enumerate(prompt):
        _check_message(model, position, message)


def check_prompts(prompts: Any) -> None:
    """Refuses one prompt where several are expected.

    Raises:
        TypeError: a text, or one list of messages.
    """
    if isinstance(prompts, (str, bytes, Mapping)):
        raise TypeError(f"prompts is of type {type(prompts).__name__}: pass a list of prompts, even of one")
    if isinstance(prompts, Sequence) and prompts and all(isinstance(message, Mapping) for message in prompts):
        raise TypeError("prompts is one list of messages: pass a list of prompts, even of one ([messages])")


def _check_message(model: LanguageModel, position: int, message: Any) -> None:
    from grammask.models.errors import ModelError

    if not isinstance(message, Mapping):
        raise TypeError(
            f"message {position} is of type {type(message).__name__}: pass a list of messages such as {_EXAMPLE}"
        )
    if "role" not in message or not ("content" in message or "tool_calls" in message):
        raise ModelError(f"message {position} must have the keys 'role' and 'content', got {sorted(message)}")
    role, content = message["role"], message.get("content")
    if role not in ROLES and not model.knows_role(str(role)):
        near = difflib.get_close_matches(str(role), ROLES, n=1)
        raise ModelError(
            f"message {position} has the role {role!r}",
            hint=(f"did you mean {near[0]!r}? " if near else "") + f"the roles are {', '.join(ROLES)}",
        )
    if content is None and "tool_calls" in message:
        return
    if not isinstance(content, (str, Sequence)) or isinstance(content, (bytes, bytearray)):
        raise ModelError(
            f"the content of message {position} is of type {type(content).__name__}",
            hint="content is a text, or a list of parts",
        )
