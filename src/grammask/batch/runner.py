"""From a shard of records to a shard of outcomes, with a model that is loaded once."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from grammask.batch.job import Job
from grammask.batch.source import Record, Shard
from grammask.integrations.wire import constraint_from_wire

if TYPE_CHECKING:
    from grammask.batch.shards import Outcome
    from grammask.models import Model, Prompt

_NO_TEXT = "no_text"
_UNREADABLE = "unreadable"
_INCOMPLETE = "incomplete"
_ERROR = "error"


class Runner(Protocol):
    """Something that answers shards."""

    def run(self, shard: Shard) -> list[Outcome]:
        """One outcome for each record, in order. What goes wrong with a record is its outcome."""
        ...


def make_runner(job: Job) -> Runner:
    """A runner with the job's model, loaded.

    Raises:
        ModelError: the model cannot be loaded.
        ConstraintError: the constraint cannot be enforced.
    """
    if job.backend == "vllm":
        from grammask.batch.vllm_runner import VllmRunner

        return VllmRunner(job)
    return ModelRunner(job)


class ModelRunner:
    """Answers with ``load_model`` and ``generate_many``."""

    def __init__(self, job: Job) -> None:
        from grammask.engine.compile import compile
        from grammask.models import load_model
        from grammask.sampling import Sampling

        self._job = job
        self._model: Model = load_model(job.model, **job.engine_options)
        self._sampling = Sampling(**{"temperature": 0, **job.sampling})
        self._constraint: Any = None
        if job.constraint is not None:
            self._constraint = compile(constraint_from_wire(job.constraint), self._model.vocabulary)

    def run(self, shard: Shard) -> list[Outcome]:
        asked, failures = readable(shard.records, self._job)
        # Each record draws the random numbers of its own place in the input, whatever else is in the shard.
        outcomes = dict(failures)
        for first, group in _consecutive(asked):
            results = self._model.generate_many(
                [self._prompt(text) for text in group],
                self._constraint,
                batch_size=self._job.batch_size,
                sampling=self._sampling,
                max_tokens=self._job.max_tokens,
                request=first,
            )
            for number, result in enumerate(results, start=first):
                outcomes[number] = self._outcome(result)
        return in_order(shard.records, outcomes, self._job)

    def _prompt(self, text: str) -> Prompt:
        job = self._job
        whole = text if job.instruction is None else f"{job.instruction}\n\n{text}"
        if job.raw or not self._model.has_chat_template:
            return whole
        head = [{"role": "system", "content": job.system}] if job.system is not None else []
        return [*head, {"role": "user", "content": whole}]

    def _outcome(self, result: Any) -> Outcome:
        usage = dataclasses.asdict(result.usage)
        if result.error is not None:
            kind, _, message = result.error.partition(": ")
            return failure(kind or _ERROR, message or result.error, text=result.text or None)
        if not result.complete:
            return failure(_INCOMPLETE, f"cut after {result.usage.completion_tokens} tokens", text=result.text)
        return success(result.text, self._job, result.finish_reason, usage)


def success(text: str, job: Job, finish_reason: str, usage: dict[str, Any]) -> Outcome:
    """The outcome of a complete output."""
    kinds = set(job.constraint or ())
    value = json.loads(text) if kinds & {"json_schema", "json"} else text
    return {"value": value, "text": text, "finish_reason": finish_reason, "usage": usage}


def failure(kind: str, message: str, *, text: str | None = None) -> Outcome:
    """The outcome of a record that has no output."""
    outcome: Outcome = {"error": {"kind": kind, "message": message}}
    return outcome if text is None else {**outcome, "text": text}


def incomplete(tokens: int, text: str) -> Outcome:
    """The outcome of an output that was cut."""
    return failure(_INCOMPLETE, f"cut after {tokens} tokens", text=text)


def readable(records: Sequence[Record], job: Job) -> tuple[list[tuple[int, str]], dict[int, Outcome]]:
    """The texts of the records that have one, with their numbers, and the outcomes of those that have not."""
    texts: list[tuple[int, str]] = []
    failures: dict[int, Outcome] = {}
    for record in records:
        text = None if record.values is None else record.values.get(job.column)
        if record.values is None:
            failures[record.number] = failure(_UNREADABLE, record.error or "")
        elif isinstance(text, str):
            texts.append((record.number, text))
        elif job.column not in record.values:
            there = ", ".join(map(str, list(record.values)[:8]))
            failures[record.number] = failure(_NO_TEXT, f"no member {job.column!r}, but {there or 'none at all'}")
        else:
            failures[record.number] = failure(_NO_TEXT, f"{job.column!r} is no text: {str(text)[:40]}")
    return texts, failures


def in_order(records: Sequence[Record], outcomes: dict[int, Outcome], job: Job) -> list[Outcome]:
    """The outcomes of all records, each with its number and the id that was asked for."""
    made: list[Outcome] = []
    for record in records:
        head: Outcome = {"record": record.number}
        if job.id_column is not None:
            head["id"] = (record.values or {}).get(job.id_column)
        made.append({**head, **outcomes[record.number]})
    return made


def _consecutive(asked: Sequence[tuple[int, str]]) -> list[tuple[int, list[str]]]:
    """Runs of records with consecutive numbers: (first number, texts)."""
    groups: list[tuple[int, list[str]]] = []
    for number, text in asked:
        if groups and groups[-1][0] + len(groups[-1][1]) == number:
            groups[-1][1].append(text)
        else:
            groups.append((number, [text]))
    return groups
