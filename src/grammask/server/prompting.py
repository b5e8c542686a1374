"""From messages and tools to the tokens of a prompt.

A chat template that knows tools is given them. Where it does not, tools, calls and results are written into the
messages in the words of the Hermes format, which is also what the output then follows.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from grammask.constraints.tools import FORMATS
from grammask.constraints.tools.format import ToolFormat
from grammask.constraints.tools.formats import ALIASES, HERMES
from grammask.models import Model, ModelError
from grammask.server.errors import ApiError, invalid
from grammask.server.protocol.chat import AssistantMessage, Content, Message, SystemMessage, ToolMessage

_SIGNS = (
    ("<|tool_calls_section_begin|>", "kimi_k2"),
    ("<|channel|>", "harmony"),
    ("<｜tool▁calls▁begin｜>", "deepseek_v3"),
    ("<arg_key>", "glm4_5"),
    ("<parameter=", "qwen3_coder"),
    ("<tool_call>", "hermes"),
    ("[CALL_ID]", "mistral_v11"),
    ("[TOOL_CALLS]", "mistral"),
    ("<|python_tag|>", "llama3_json"),
)
"""What in a chat template gives a format away; the first that is found counts."""

HERMES_SYSTEM = """You may call functions to help with the user's request. The functions, as JSON Schemas:
<tools>
{tools}
</tools>
To call one, write a JSON object with its name and its arguments inside of tags:
<tool_call>
{{"name": <function name>, "arguments": <object with the arguments>}}
</tool_call>"""


class Prompter:
    """Writes prompts for a model.

    Args:
        model: with a chat template, if chats are asked for.
        tool_format: a name of ``FORMATS``, or "auto".

    Attributes:
        tool_format: how the model writes calls.

    Raises:
        ValueError: there is no such format.
    """

    def __init__(self, model: Model, tool_format: str = "auto") -> None:
        self._model = model
        self._tokenizer = getattr(model, "tokenizer", None)
        template = str(getattr(self._tokenizer, "chat_template", "") or "")
        self._knows_tools = "tools" in template
        if tool_format == "auto":
            found = (
                next((name for sign, name in _SIGNS if sign in template), "hermes") if self._knows_tools else "hermes"
            )
        else:
            found = ALIASES.get(tool_format, tool_format)
            if found not in FORMATS:
                raise ValueError(f"tool_format is {tool_format!r}: use auto, {', '.join(FORMATS)}")
        self.tool_format: ToolFormat = FORMATS[found]
        if not self._knows_tools and self.tool_format is not HERMES:
            raise ValueError(
                f"tool_format is {found!r}, but the model's chat template has no place for tools: use auto or hermes"
            )

    def chat(
        self, messages: Sequence[Message], tools: Sequence[dict[str, Any]], template_options: dict[str, Any] | None
    ) -> list[int]:
        """The tokens of a chat, up to where the answer begins.

        Args:
            tools: those that may be called, as requests describe them.
            template_options: further variables for the chat template.

        Raises:
            ApiError: the template refuses the messages.
        """
        if not self._model.has_chat_template:
            raise invalid(f"{self._model.name} has no chat template: use /v1/completions", "messages")
        turns = self._turns(messages) if self._knows_tools else plain_turns(messages, tools)
        try:
            if self._tokenizer is None:
                return self._model.encode(turns)
            text = self._tokenizer.apply_chat_template(
                turns,
                tools=list(tools) or None if self._knows_tools else None,
                tokenize=False,
                add_generation_prompt=True,
                **_safe(template_options),
            )
            ids = self._tokenizer(text, add_special_tokens=False).input_ids
        except ApiError:
            raise
        except Exception as error:  # a template is a program of its author: it may raise anything
            raise invalid(f"the model's chat template refuses these messages: {error}", "messages") from error
        return [int(token) for token in ids] or self._model.encode("")

    def text(self, prompt: str) -> list[int]:
        """The tokens of a plain text.

        Raises:
            ApiError: the text has no tokens, and the model no start token.
        """
        try:
            return self._model.encode(prompt)
        except ModelError as error:
            raise invalid(str(error), "prompt") from error

    def _turns(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        """Messages as templates that know tools expect them: arguments are objects."""
        turns = []
        for position, message in enumerate(messages):
            turn: dict[str, Any] = {"role": _role(message), "content": text_of(message.content)}
            if isinstance(message, AssistantMessage) and message.tool_calls:
                turn["tool_calls"] = [
                    {
                        "id": call.id,
                        "type": "function",
                        "function": {
                            "name": call.function.name,
                            "arguments": _arguments(call.function.arguments, position),
                        },
                    }
                    for call in message.tool_calls
                ]
            if isinstance(message, ToolMessage):
                turn["tool_call_id"] = message.tool_call_id
                if message.name:
                    turn["name"] = message.name
            turns.append(turn)
        return turns


def text_of(content: Content | None) -> str:
    """The text of a message, parts put together."""
    if content is None:
        return ""
    return content if isinstance(content, str) else "".join(part.text for part in content)


def plain_turns(messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages without anything but text: tools, calls and results are written out.

    Raises:
        ApiError: a call's arguments are no JSON object.
    """
    turns: list[dict[str, Any]] = []
    for position, message in enumerate(messages):
        text = text_of(message.content)
        if isinstance(message, AssistantMessage) and message.tool_calls:
            calls = [
                "<tool_call>\n"
                + json.dumps(
                    {"name": call.function.name, "arguments": _arguments(call.function.arguments, position)},
                    ensure_ascii=False,
                )
                + "\n</tool_call>"
                for call in message.tool_calls
            ]
            text = "\n".join([text, *calls] if text else calls)
        role = _role(message)
        if isinstance(message, ToolMessage):
            role, text = "user", f"<tool_response>\n{text}\n</tool_response>"
            if turns and turns[-1]["role"] == "user" and isinstance(messages[position - 1], ToolMessage):
                turns[-1]["content"] += f"\n{text}"
                continue
        turns.append({"role": role, "content": text})
    if tools:
        listed = HERMES_SYSTEM.format(tools="\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools))
        if turns and turns[0]["role"] == "system":
            turns[0]["content"] += f"\n\n{listed}"
        else:
            turns.insert(0, {"role": "system", "content": listed})
    return turns


def _role(message: Message) -> str:
    return "system" if isinstance(message, SystemMessage) else message.role


def _arguments(text: str, position: int) -> Any:
    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise invalid(
            f"messages[{position}] has a tool call whose arguments are no JSON object",
            f"messages[{position}].tool_calls",
        )
    return value


def _safe(options: dict[str, Any] | None) -> dict[str, Any]:
    """Template variables from a request, which must not take the place of the arguments given here."""
    reserved = {"conversation", "tools", "documents", "chat_template", "add_generation_prompt", "tokenize", "messages"}
    simple = {}
    for name, value in (options or {}).items():
        if name in reserved or not isinstance(value, (str, int, float, bool, type(None))):
            raise invalid(f"chat_template_kwargs has {name!r}, which cannot be set", "chat_template_kwargs")
        simple[name] = value
    return simple
