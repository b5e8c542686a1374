"""Shapes of real tool calls, format by format, and values that try to end them."""

from __future__ import annotations

from typing import Any

OSLO = {"city": "Oslo"}

# (format, text, the calls as (name, arguments); None for texts that are not allowed)
ROWS: list[tuple[str, str, list[tuple[str, dict[str, Any]]] | None]] = [
    ("hermes", "It rains.", []),
    (
        "hermes",
        'Let me see.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>',
        [("get_weather", OSLO)],
    ),
    (
        "hermes",
        (
            '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo", "days": 3}}\n</tool_call>\n'
            '<tool_call>\n{"name": "get_time", "arguments": {"zone": "CET"}}\n</tool_call>'
        ),
        [("get_weather", {"city": "Oslo", "days": 3}), ("get_time", {"zone": "CET"})],
    ),
    ("hermes", '<tool_call>{"name":"ping","arguments":{}}</tool_call>', [("ping", {})]),
    ("hermes", '<tool_call>\n{"name": "ping", "arguments": {"x": 1}}\n</tool_call>', None),
    ("hermes", '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo", "days": 8}}\n</tool_call>', None),
    ("hermes", '<tool_call>\n{"name": "rm", "arguments": {}}\n</tool_call>', None),
    ("hermes", '<tool_call>\n{"name": "ping", "arguments": {}}\n', None),
    ("hermes", "What does <tool_call> mean?", None),
    ("hermes", "a < b and <tool_cal", []),
    (
        "qwen3_coder",
        (
            "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n<parameter=days>\n3\n</parameter>\n"
            "<parameter=metric>\ntrue\n</parameter>\n</function>\n</tool_call>"
        ),
        [("get_weather", {"city": "Oslo", "days": 3, "metric": True})],
    ),
    (
        "qwen3_coder",
        (
            "<tool_call>\n<function=get_weather>\n<parameter=city>\n5\n</parameter>\n<parameter=note>\nnull\n</parameter>\n"
            "</function>\n</tool_call>"
        ),
        [("get_weather", {"city": "5", "note": None})],
    ),
    (
        "qwen3_coder",
        (
            '<tool_call>\n<function=get_weather>\n<parameter=city>\nx\n</parameter>\n<parameter=note>\n"null"\n</parameter>\n'
            "</function>\n</tool_call>"
        ),
        [("get_weather", {"city": "x", "note": "null"})],
    ),
    ("qwen3_coder", "<tool_call>\n<function=ping>\n</function>\n</tool_call>", [("ping", {})]),
    (
        "qwen3_coder",
        (
            "<tool_call>\n<function=get_time>\n<parameter=zone>\nCET\n</parameter>\n<parameter=extra>\n7 up\n"
            "</parameter>\n</function>\n</tool_call>"
        ),
        [("get_time", {"zone": "CET", "extra": "7 up"})],
    ),
    (
        "qwen3_coder",
        (
            "<tool_call>\n<function=get_weather>\n<parameter=city>\nx\n</parameter>\n<parameter=metric>\nyes\n</parameter>\n"
            "</function>\n</tool_call>"
        ),
        None,
    ),
    (
        "qwen3_coder",
        (
            "<tool_call>\n<function=get_weather>\n<parameter=city>\nx\n</parameter>\n<parameter=city>\ny\n</parameter>\n"
            "</function>\n</tool_call>"
        ),
        None,
    ),
    ("qwen3_coder", "<tool_call>\n<function=get_weather>\n</function>\n</tool_call>", None),
    (
        "glm4_5",
        "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n</tool_call>",
        [("get_weather", OSLO)],
    ),
    ("glm4_5", "<tool_call>get_weather\n<arg_key>town</arg_key>\n<arg_value>Oslo</arg_value>\n</tool_call>", None),
    ("llama3_json", '{"name": "get_weather", "parameters": {"city": "Oslo"}}', [("get_weather", OSLO)]),
    ("llama3_json", '<|python_tag|>{"name": "ping", "parameters": {}}<|eom_id|>', [("ping", {})]),
    (
        "llama3_json",
        '{"name": "ping", "parameters": {}}; {"name": "ping", "parameters": {}}',
        [("ping", {}), ("ping", {})],
    ),
    ("llama3_json", '{"answer": 42}', []),
    ("llama3_json", 'A call looks like {"name": "ping", "parameters": {}}', []),
    ("llama3_json", '{"name": "pong", "parameters": {}}', None),
    (
        "llama3_pythonic",
        "[get_weather(city='Oslo', days=2), get_time(zone=\"CET\")]",
        [("get_weather", {"city": "Oslo", "days": 2}), ("get_time", {"zone": "CET"})],
    ),
    (
        "llama3_pythonic",
        '[get_weather(city="it\'s", metric=True, tags=["a", \'b"\'.strip()])]',
        None,
    ),
    (
        "llama3_pythonic",
        '[get_weather(city="it\'s", metric=True, tags=["a", "b"], note=None)]',
        [("get_weather", {"city": "it's", "metric": True, "tags": ["a", "b"], "note": None})],
    ),
    ("llama3_pythonic", "[ping()]", [("ping", {})]),
    ("llama3_pythonic", "[1, 2, 3]", []),
    ("llama3_pythonic", '[get_weather("Oslo")]', None),
    ("llama3_pythonic", '[get_weather(city="Oslo", metric=true)]', None),
    (
        "mistral",
        '[TOOL_CALLS] [{"name": "get_weather", "arguments": {"city": "Oslo"}}, {"name": "ping", "arguments": {}}]',
        [("get_weather", OSLO), ("ping", {})],
    ),
    ("mistral", '[TOOL_CALLS] {"name": "ping", "arguments": {}}', None),
    ("mistral_v11", '[TOOL_CALLS]get_weather[ARGS]{"city": "Oslo"}', [("get_weather", OSLO)]),
    ("mistral_v11", "[TOOL_CALLS]ping{}[TOOL_CALLS]ping[CALL_ID]Ab3dE6gH9[ARGS]{}", [("ping", {}), ("ping", {})]),
    ("mistral_v11", "[TOOL_CALLS]ping[CALL_ID]short[ARGS]{}", None),
    (
        "deepseek_v3",
        (
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n"
            '{"city": "Oslo"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>'
        ),
        [("get_weather", OSLO)],
    ),
    (
        "deepseek_v3_1",
        (
            '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Oslo"}<｜tool▁call▁end｜>'
            "<｜tool▁calls▁end｜>"
        ),
        [("get_weather", OSLO)],
    ),
    ("deepseek_v3_1", "<｜tool▁call▁begin｜>ping<｜tool▁sep｜>{}<｜tool▁call▁end｜>", None),
    ("harmony", "<|channel|>final<|message|>It rains.", []),
    (
        "harmony",
        (
            "<|channel|>analysis<|message|>Need weather.<|end|><|start|>assistant<|channel|>commentary "
            'to=functions.get_weather <|constrain|>json<|message|>{"city":"Oslo"}<|call|>'
        ),
        [("get_weather", OSLO)],
    ),
    ("harmony", "<|channel|>commentary to=functions.ping<|message|>{}", [("ping", {})]),
    ("harmony", "<|channel|>commentary to=functions.ping json<|message|>{}<|call|>", [("ping", {})]),
    (
        "harmony",
        (
            "<|channel|>analysis<|message|>Two steps.<|end|><|start|>assistant<|channel|>commentary<|message|>I look "
            "it up.<|end|><|start|>assistant<|channel|>commentary to=functions.get_time <|constrain|>json<|message|>"
            '{"zone": "CET"}<|call|>'
        ),
        [("get_time", {"zone": "CET"})],
    ),
    (
        "harmony",
        "<|channel|>analysis<|message|>Easy.<|end|><|start|>assistant<|channel|>final<|message|>It rains.<|return|>",
        [],
    ),
    ("harmony", "<|channel|>analysis<|message|>Only thoughts.<|end|>", None),
    ("harmony", "<|channel|>commentary to=functions.rm<|message|>{}<|call|>", None),
    ("harmony", "<|channel|>final to=functions.ping<|message|>{}<|call|>", None),
    ("harmony", "It rains.", None),
    ("harmony", '<|channel|>commentary to=functions.ping<|message|>{"a":1}<|call|>', None),
    ("functionary", 'Sure. <function=get_weather>{"city": "Oslo"}</function>', [("get_weather", OSLO)]),
    ("functionary", '<function=get_weather>{"city": "Oslo"}', None),
    (
        "kimi_k2",
        (
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.ping:7<|tool_call_argument_begin|>{}<|tool_call_end|>"
            "<|tool_calls_section_end|>"
        ),
        [("ping", {})],
    ),
    (
        "kimi_k2",
        (
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.ping:07<|tool_call_argument_begin|>{}"
            "<|tool_call_end|><|tool_calls_section_end|>"
        ),
        None,
    ),
]

# RAW stands for the value as it is, JSON for its JSON text (which is its Python text as well).
WRITTEN = {
    "hermes": '<tool_call>\n{"name": "get_weather", "arguments": {"city": JSON}}\n</tool_call>',
    "qwen3_coder": (
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nRAW\n</parameter>\n</function>\n</tool_call>"
    ),
    "glm4_5": "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>RAW</arg_value>\n</tool_call>",
    "llama3_json": '{"name": "get_weather", "parameters": {"city": JSON}}',
    "llama3_pythonic": "[get_weather(city=JSON)]",
    "mistral": '[TOOL_CALLS][{"name":"get_weather","arguments":{"city":JSON}}]',
    "mistral_v11": '[TOOL_CALLS]get_weather[ARGS]{"city": JSON}',
    "deepseek_v3": (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n"
        '{"city": JSON}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>'
    ),
    "deepseek_v3_1": (
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": JSON}<｜tool▁call▁end｜>'
        "<｜tool▁calls▁end｜>"
    ),
    "harmony": (
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather "
        '<|constrain|>json<|message|>{"city": JSON}<|call|>'
    ),
    "functionary": '<function=get_weather>{"city": JSON}</function>',
    "kimi_k2": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0"
        '<|tool_call_argument_begin|>{"city":JSON}<|tool_call_end|><|tool_calls_section_end|>'
    ),
}
VALUES = ["", "\n", "</parameter>", "x</parameter>\n", "it's", 'say "hi"', "'\"", "\\", "\\n", "😀\u2028é", "a\tb"]
VALUES += ["<tool_call>", "</tool_call>", "[TOOL_CALLS]", "[ARGS]", "<|tool_call_end|>", "<|call|>", "<function=ping>"]
VALUES += [
    "{",
    "}]",
    "null",
    "</function>",
    " x ",
    "\n```",
    "; ",
    "<｜tool▁call▁end｜>",
    "<|python_tag|>",
    "<arg_value>",
]
