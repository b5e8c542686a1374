"""Several outputs at once, over whatever a model offers for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grammask.models import LanguageModel

T = TypeVar("T")


def run_all(model: LanguageModel, jobs: Sequence[Callable[[LanguageModel], T]], *, at_once: int) -> list[T]:
    """Runs jobs, each of which makes outputs of the model that it is given.

    Args:
        at_once: how many may run at the same time.

    Returns:
        Their results, in order. The first exception of a job is raised, after the jobs that had begun have ended.
    """
    with shared_model(model, min(at_once, len(jobs))) as (any_model, threads):
        if threads == 1:
            return [job(any_model) for job in jobs]
        with ThreadPoolExecutor(threads, thread_name_prefix="grammask-output") as pool:
            futures = [pool.submit(job, any_model) for job in jobs]
            try:
                return [future.result() for future in futures]
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise


def compiled_once(model: LanguageModel, constraint: Any) -> Any:
    """A constraint in a form that many outputs share, so that it is compiled once. A hosted model takes it as it is."""
    from grammask.decoding.output import resolve_output
    from grammask.models.base import Model

    return resolve_output(constraint, model.vocabulary) if isinstance(model, Model) else constraint


@contextmanager
def shared_model(model: LanguageModel, at_once: int) -> Iterator[tuple[Any, int]]:
    """The model as several threads can use it, and how many threads are of use: hosted models are asked side by side;
    models of transformers read all sequences in common forward passes; any other model makes one output after the
    other."""
    from grammask.models.base import Model
    from grammask.models.transformers_model import TransformersModel

    if at_once == 1 or (isinstance(model, Model) and not isinstance(model, TransformersModel)):
        yield model, 1
    elif isinstance(model, TransformersModel):
        from grammask.models.concurrent import ConcurrentModel

        shared = ConcurrentModel(model)
        try:
            yield shared, at_once
        finally:
            shared.close()
    else:
        yield model, at_once
