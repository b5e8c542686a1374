"""``generate_many``: one output for each of many prompts, several at a time, into a file that survives
interruptions."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any

from grammask.decoding.parallel import compiled_once, shared_model
from grammask.decoding.result import InvalidValue, Result, Usage
from grammask.decoding.result_file import ResultFile, request_key

if TYPE_CHECKING:
    import os

    from grammask.models import LanguageModel, Prompt

Progress = Callable[[int, int], None]


def generate_many(
    model: LanguageModel,
    prompts: Iterable[Prompt],
    constraint: Any,
    *,
    output: str | os.PathLike[str] | None,
    batch_size: int,
    progress: bool | Progress,
    options: Mapping[str, Any],
    fields: Sequence[Mapping[str, Any]] | None = None,
) -> list[Result[Any]]:
    """See ``LanguageModel.generate_many``.

    Args:
        fields: for each prompt, further members of its line in the file.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size is {batch_size}: use at least 1")
    if options.get("session") is not None:
        raise ValueError("several outputs cannot share one session: leave it out")
    asked = list(prompts)
    results: list[Result[Any] | None] = [None] * len(asked)
    with contextlib.ExitStack() as stack:
        file: ResultFile | None = None
        if output is not None:
            keys = [request_key(prompt, constraint, options, number) for number, prompt in enumerate(asked)]
            file = stack.enter_context(ResultFile(output, keys, constraint))
            for number, result in file.earlier.items():
                results[number] = result
        todo = [number for number, result in enumerate(results) if result is None]
        report = stack.enter_context(reporting(progress, len(asked)))
        done = len(asked) - len(todo)
        report(done, len(asked))
        for number, result in as_finished(model, asked, constraint, options, todo=todo, batch_size=batch_size):
            results[number] = result
            if file is not None and result.finish_reason != "cancelled":
                file.append(number, result, fields[number] if fields else {})
            done += 1
            report(done, len(asked))
    return [result for result in results if result is not None]


def as_finished(
    model: LanguageModel,
    prompts: Sequence[Prompt],
    constraint: Any,
    options: Mapping[str, Any],
    *,
    todo: Sequence[int],
    batch_size: int,
) -> Generator[tuple[int, Result[Any]], None, None]:
    """(place of the prompt, result) in the order in which outputs are finished.

    Args:
        todo: the places of the prompts to answer.
    """
    if not todo:
        return
    options = dict(options)
    stop = threading.Event()
    caller_cancelled = options.pop("cancelled", None)
    first_request = options.pop("request", 0)
    options.pop("session", None)
    wanted = compiled_once(model, constraint)

    def make(any_model: LanguageModel, number: int) -> Result[Any]:
        from grammask.decoding.budget import BudgetTooSmall
        from grammask.models.errors import ModelError
        from grammask.sampling.errors import SamplingError

        try:
            return any_model.generate(
                prompts[number],
                wanted,
                request=first_request + number,
                cancelled=lambda: stop.is_set() or (caller_cancelled is not None and caller_cancelled()),
                **options,
            )
        except (BudgetTooSmall, InvalidValue, ModelError, SamplingError) as error:
            text = getattr(error, "text", "")
            return Result(None, text, False, "error", Usage(0, 0), error=f"{type(error).__name__}: {error}")

    with shared_model(model, min(batch_size, len(todo))) as (any_model, threads):
        if threads == 1:
            for number in todo:
                yield number, make(any_model, number)
            return
        with ThreadPoolExecutor(threads, thread_name_prefix="grammask-output") as pool:
            waiting = iter(todo)
            running: dict[Future[Result[Any]], int] = {}
            try:
                while True:
                    # No more are handed over than run, so that an interruption leaves nothing to wait for.
                    for number in _some(waiting, threads - len(running)):
                        running[pool.submit(make, any_model, number)] = number
                    if not running:
                        return
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        yield running.pop(future), future.result()
            finally:
                stop.set()


def _some(items: Iterator[int], count: int) -> list[int]:
    return [item for _, item in zip(range(count), items, strict=False)]


@contextlib.contextmanager
def reporting(progress: bool | Progress, total: int) -> Iterator[Progress]:
    """What to call with the number of outputs done and their total."""
    if not isinstance(progress, bool):
        yield progress
        return
    if not progress:
        yield lambda done, total: None
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar
    except ImportError as error:
        from grammask.models.errors import MissingDependency

        raise MissingDependency("progress=True needs the package rich", hint='pip install "grammask[cli]"') from error
    columns = (TextColumn("generating"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total)
        yield lambda done, total: bar.update(task, completed=done)
