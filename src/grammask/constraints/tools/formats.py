"""The formats that models are trained on, each as one description, after the models' published chat templates."""

from __future__ import annotations

from grammask.constraints.tools.format import (
    Arguments,
    Blank,
    CallId,
    FreeText,
    JsonCall,
    KeywordArguments,
    Match,
    Maybe,
    Name,
    OneOf,
    Parameters,
    Token,
    ToolFormat,
)

HERMES = ToolFormat(
    "hermes",
    call=(Token("<tool_call>"), Blank("\n"), JsonCall(), Blank("\n"), Token("</tool_call>")),
    separator=(Blank("\n"),),
)
"""Hermes 2 and 3, Qwen 2.5 and 3: a JSON object in a tag."""

QWEN3_CODER = ToolFormat(
    "qwen3_coder",
    call=(
        Token("<tool_call>"),
        "\n<function=",
        Name(),
        ">\n",
        Parameters("<parameter=", ">\n", "\n</parameter>", "\n", "</function>"),
        "\n",
        Token("</tool_call>"),
    ),
    separator=(Blank("\n"),),
)
"""Qwen3-Coder: tags like XML, but with raw values."""

GLM45 = ToolFormat(
    "glm4_5",
    call=(
        Token("<tool_call>"),
        Name(),
        "\n",
        Parameters("<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>", "\n", "</tool_call>"),
    ),
    separator=(Blank("\n"),),
)
"""GLM 4.5: names and values in tags of their own."""

LLAMA3_JSON = ToolFormat(
    "llama3_json",
    begin=(Maybe((Token("<|python_tag|>"),)),),
    call=(JsonCall("name", "parameters"),),
    separator=("; ",),
    end=(Token("<|eom_id|>", ends=True),),
    lead=(),
    claim=r'(?:<\|python_tag\|>|[ \t\r\n]*\{[ \t\r\n]*"name"[ \t\r\n]*:)',
)
"""Llama 3.1 and later: the output is a JSON object with a name."""

LLAMA3_PYTHONIC = ToolFormat(
    "llama3_pythonic",
    begin=("[",),
    call=(Name(), "(", KeywordArguments()),
    separator=(", ",),
    end=("]",),
    lead=(),
    claim=r"\[[A-Za-z0-9_.\-/]+\(",
)
"""Llama 3.2 and 4: the output is a Python list of calls."""

MISTRAL = ToolFormat(
    "mistral",
    begin=(Token("[TOOL_CALLS]"), Blank(" "), "[", Blank()),
    call=(JsonCall(),),
    separator=(Blank(), ",", Blank(" ")),
    end=(Blank(), "]"),
)
"""Mistral 7B v0.3 up to tokenizer version 7: a JSON array after one token."""

MISTRAL_V11 = ToolFormat(
    "mistral_v11",
    call=(
        Token("[TOOL_CALLS]"),
        Name(),
        Maybe((Token("[CALL_ID]"), CallId((Match("[a-zA-Z0-9]{9}"),)))),
        Maybe((Token("[ARGS]"),)),
        Arguments(),
    ),
)
"""Mistral from tokenizer version 11: each call after its own token, as ``name[ARGS]{…}`` or ``name{…}``."""

DEEPSEEK_V3 = ToolFormat(
    "deepseek_v3",
    begin=(Token("<｜tool▁calls▁begin｜>"),),
    call=(
        Token("<｜tool▁call▁begin｜>"),
        "function",
        Token("<｜tool▁sep｜>"),
        Name(),
        "\n```json\n",
        Arguments(),
        "\n```",
        Token("<｜tool▁call▁end｜>"),
    ),
    separator=(Blank("\n"),),
    end=(Token("<｜tool▁calls▁end｜>"),),
)
"""DeepSeek V3 and R1: JSON in a fenced block."""

DEEPSEEK_V31 = ToolFormat(
    "deepseek_v3_1",
    begin=(Token("<｜tool▁calls▁begin｜>"),),
    call=(Token("<｜tool▁call▁begin｜>"), Name(), Token("<｜tool▁sep｜>"), Arguments(), Token("<｜tool▁call▁end｜>")),
    end=(Token("<｜tool▁calls▁end｜>"),),
)
"""DeepSeek V3.1."""

_HARMONY_MESSAGE = (Maybe((" ", Maybe((Token("<|constrain|>"),)), "json")), Token("<|message|>"), Arguments())
"""The end of the header of a call's message and the message."""

HARMONY = ToolFormat(
    "harmony",
    thought=(
        Token("<|channel|>"),
        OneOf(("analysis", "commentary")),
        Token("<|message|>"),
        FreeText(),
        Token("<|end|>"),
        Token("<|start|>"),
        "assistant",
    ),
    lead=(),
    call=(Token("<|channel|>"), "commentary to=functions.", Name(), *_HARMONY_MESSAGE),
    also_read=(
        (Token("<|channel|>"), "analysis to=functions.", Name(), *_HARMONY_MESSAGE),
        (
            " to=functions.",
            Name(),
            Token("<|channel|>"),
            OneOf(("commentary", "analysis")),
            *_HARMONY_MESSAGE,
        ),
    ),
    end=(Token("<|call|>", ends=True),),
    answer=(Token("<|channel|>"), "final", Token("<|message|>"), FreeText(), Token("<|return|>", ends=True)),
    max_calls=1,
)
"""gpt-oss: messages in channels, one call at the end, after which the model waits for its result. The prompt ends with
``<|start|>assistant``. The recipient is written in the channel, and read where a model wrote it after its role."""

FUNCTIONARY = ToolFormat(
    "functionary",
    call=("<function=", Name(), ">", Arguments(), "</function>"),
    separator=(Blank(),),
)
"""Functionary for Llama 3.1, and the custom calls of Llama 3.1: JSON in a tag that names the function."""

KIMI_K2 = ToolFormat(
    "kimi_k2",
    begin=(Token("<|tool_calls_section_begin|>"),),
    call=(
        Token("<|tool_call_begin|>"),
        CallId(("functions.", Name(), ":", Match("0|[1-9][0-9]{0,5}"))),
        Token("<|tool_call_argument_begin|>"),
        Arguments(),
        Token("<|tool_call_end|>"),
    ),
    end=(Token("<|tool_calls_section_end|>"),),
)
"""Kimi K2: calls in a section, with identifiers that count them."""

FORMATS: dict[str, ToolFormat] = {
    known.name: known
    for known in (
        HERMES,
        QWEN3_CODER,
        GLM45,
        LLAMA3_JSON,
        LLAMA3_PYTHONIC,
        MISTRAL,
        MISTRAL_V11,
        DEEPSEEK_V3,
        DEEPSEEK_V31,
        HARMONY,
        FUNCTIONARY,
        KIMI_K2,
    )
}
"""By name."""

ALIASES = {
    "qwen": "hermes",
    "qwen3": "hermes",
    "qwen3_coder_xml": "qwen3_coder",
    "llama3": "llama3_json",
    "pythonic": "llama3_pythonic",
    "deepseek": "deepseek_v3",
    "gpt_oss": "harmony",
    "kimi": "kimi_k2",
}
"""Other names for the same formats."""
