"""Results as JSON lines, appended one by one, so that an interrupted run can go on where it was.

Each line is an object: ``index`` (the place of the prompt), ``key`` (a hash of prompt, constraint and settings),
``text``, ``value`` (as JSON, if the output is complete), ``finish_reason``, ``usage`` and so on. Lines stand in the
order in which outputs were finished. A line counts once its newline is there: what an interrupted run left of a last
line is cut off.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from grammask.decoding.result import Result, Usage

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_NOT_ASKED = {"cancelled", "timeout", "session"}
"""Options that do not change what an output is asked to be."""


def request_key(prompt: Any, constraint: Any, options: Mapping[str, Any], number: int) -> str:
    """64 bits that stand for what was asked: the same in every process."""
    asked = {name: _plain(value) for name, value in sorted(options.items()) if name not in _NOT_ASKED}
    described = json.dumps([number, prompt, _plain(constraint), asked], sort_keys=True, default=_plain)
    return hashlib.sha256(described.encode()).hexdigest()[:16]


def _plain(value: Any) -> Any:
    from grammask.constraints.json_schema import JsonSchema
    from grammask.constraints.types import TypedOutput, typed_output
    from grammask.engine.compile import CompiledConstraint

    if isinstance(value, CompiledConstraint):
        value = value.constraint
    if isinstance(value, type):
        value = typed_output(value)
    if isinstance(value, TypedOutput):
        value = value.constraint
    if isinstance(value, JsonSchema):
        return ["JsonSchema", value.schema, value.property_order, repr(value.whitespace)]
    if value is None or isinstance(value, (str, int, float)):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return [type(value).__name__, {name: _plain(part) for name, part in parts.items()}]
    texts = getattr(value, "texts", None)
    return list(texts) if isinstance(texts, list) else _ADDRESS.sub("", repr(value))


class ResultFile:
    """The file of one run, open for appending.

    Args:
        path: made if it is not there.
        keys: of all prompts, in order.
        constraint: what the outputs are; reads the values of earlier results.

    Attributes:
        earlier: the results that the file had, by index.

    Raises:
        ValueError: the file is not such a file, or belongs to other prompts or settings.
    """

    def __init__(self, path: str | os.PathLike[str], keys: Sequence[str], constraint: Any) -> None:
        self._path = Path(path)
        self._keys = keys
        data = self._path.read_bytes() if self._path.exists() else b""
        whole = data[: data.rfind(b"\n") + 1]
        self.earlier: dict[int, Result[Any]] = {}
        parse = _value_parser(constraint)
        for number, line in enumerate(whole.splitlines(), start=1):
            index, result = self._read(line, number, parse)
            if index in self.earlier:
                raise ValueError(f"line {number} of {self._path} is a second result for prompt {index}")
            self.earlier[index] = result
        self._file = self._path.open("ab")
        if len(whole) < len(data):
            self._file.truncate(len(whole))

    def __enter__(self) -> ResultFile:
        return self

    def __exit__(self, *details: object) -> None:
        self._file.close()

    def append(self, index: int, result: Result[Any], fields: Mapping[str, Any]) -> None:
        """Writes a result and sees that it is in the file before returning."""
        line = {"index": index, "key": self._keys[index], **fields, **as_line(result)}
        self._file.write(json.dumps(line, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def _read(self, line: bytes, number: int, parse: Any) -> tuple[int, Result[Any]]:
        where = f"line {number} of {self._path}"
        try:
            read = json.loads(line)
            index, key = read["index"], read["key"]
            usage = Usage(**read["usage"])
            text, reason, complete = read["text"], read["finish_reason"], read["complete"]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{where} is not a result of an earlier run: choose another file") from error
        if not (isinstance(index, int) and 0 <= index < len(self._keys)) or key != self._keys[index]:
            raise ValueError(
                f"{where} belongs to another run, with other prompts or settings: choose another file, or remove it"
            )
        result: Result[Any] = Result(
            value=parse(read["value"]) if complete else None,
            text=text,
            complete=complete,
            finish_reason=reason,
            usage=usage,
            seed=read.get("seed"),
            reasoning=read.get("reasoning"),
            error=read.get("error"),
        )
        return index, result


def as_line(result: Result[Any]) -> dict[str, Any]:
    """A result as members of a JSON object."""
    line: dict[str, Any] = {"text": result.text}
    if result.complete:
        line["value"] = _json_value(result)
    line["complete"] = result.complete
    line["finish_reason"] = result.finish_reason
    if result.limited:
        line["limited"] = True
    if result.seed is not None:
        line["seed"] = result.seed
    if result.reasoning is not None:
        line["reasoning"] = result.reasoning
    if result.vote is not None:
        counts = [[json.loads(json.dumps(said, default=repr)), count] for said, count in result.vote.counts]
        line["vote"] = {"counts": counts, "agreement": result.vote.agreement, "tied": result.vote.tied}
    elif result.samples:
        line["samples"] = [sample.text for sample in result.samples]
    if result.error is not None:
        line["error"] = result.error
    line["usage"] = dataclasses.asdict(result.usage)
    return line


def _json_value(result: Result[Any]) -> Any:
    """The value as JSON: itself if it is JSON, else what the text says."""
    try:
        return json.loads(json.dumps(result.value))
    except (TypeError, ValueError):
        try:
            return json.loads(result.text)
        except ValueError:
            return result.text


def _value_parser(constraint: Any) -> Callable[[Any], Any]:
    """From the JSON value of a result to its value."""
    from grammask.constraints.base import Constraint
    from grammask.decoding.reasoning import constraint_and_parser
    from grammask.engine.compile import CompiledConstraint

    if constraint is None or isinstance(constraint, (Constraint, CompiledConstraint, str)):
        return lambda value: value
    parse = constraint_and_parser(constraint)[1]
    return lambda value: parse(json.dumps(value, ensure_ascii=False))
