"""``TextStream``: an output while it is written, as pieces of text and as partial values; and the same for asyncio.

A stream is driven by a generator that yields ``StreamEvent`` and returns the ``Result``, so every source of text, a
model in this process or a hosted one, is one generator.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Generator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

if TYPE_CHECKING:
    from grammask.decoding.result import Result

T = TypeVar("T")

Channel = Literal["output", "reasoning"]
"""``output`` is the text that satisfies the constraint; ``reasoning`` is a draft or thinking beside it."""


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """A piece of text: whole characters, never empty."""

    text: str
    channel: Channel = "output"


class TextStream(Generic[T]):
    """An output being written: an iterator over pieces of text.

    The pieces are whole characters, and put together they are ``result.text``. Nothing happens before the first
    ``next``. ``cancel`` may be called from any thread; everything else belongs to one thread at a time.

    Args:
        events: a generator of StreamEvent that returns the Result.
        cancel: asks the generator to end soon.
        partial: from the beginning of an output to a partial value.
    """

    def __init__(
        self,
        events: Generator[StreamEvent, None, Result[T]],
        *,
        cancel: Callable[[], None],
        partial: Callable[[str], Any],
    ) -> None:
        self._source = events
        self._cancel = cancel
        self._partial = partial
        self._events = self._run()
        self._parts: list[str] = []
        self._result: Result[T] | None = None

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        while True:
            event = next(self._events)
            if event.channel == "output":
                return event.text

    def events(self) -> Iterator[StreamEvent]:
        """The pieces of all channels that are still to come, in the order in which they are written."""
        return self._events

    def values(self) -> Iterator[Any]:
        """Partial values: one after each piece of text that changes the value, and at last ``result.value``, if the
        output
        is complete."""
        previous: Any = None
        for _ in self:
            value = self.partial
            if value != previous:
                yield value
                previous = value
        if self.result.complete:
            yield self.result.value

    @property
    def text(self) -> str:
        """The output so far."""
        if len(self._parts) > 1:
            self._parts = ["".join(self._parts)]
        return self._parts[0] if self._parts else ""

    @property
    def partial(self) -> Any:
        """What is known of the value so far: members that have not been written are absent, and a string that is being
        written is a ``PartialText``. None while nothing is known."""
        return self._partial(self.text)

    def cancel(self) -> None:
        """Ends the output before the next forward pass; ``result.finish_reason`` is then "cancelled"."""
        self._cancel()

    @property
    def result(self) -> Result[T]:
        """The whole output; what has not been iterated over is generated first.

        Raises:
            RuntimeError: generation had failed with an error.
        """
        for _ in self._events:
            pass
        if self._result is None:
            raise RuntimeError("there is no result: generation failed with an error")
        return self._result

    def _run(self) -> Generator[StreamEvent, None, None]:
        while True:
            try:
                event = next(self._source)
            except StopIteration as end:
                self._result = end.value
                return
            if event.channel == "output":
                self._parts.append(event.text)
            yield event


class AsyncTextStream(Generic[T]):
    """A TextStream for asyncio: ``async for piece in stream``. Each step runs in a worker thread, so the event loop
    stays free. When the task that iterates is cancelled, so is the output."""

    def __init__(self, open_stream: Callable[[], TextStream[T]]) -> None:
        self._open = open_stream
        self._stream: TextStream[T] | None = None

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        stream = await self._opened()
        piece: str | None = await self._in_thread(lambda: next(stream, None))
        if piece is None:
            raise StopAsyncIteration
        return piece

    async def events(self) -> AsyncIterator[StreamEvent]:
        """See ``TextStream.events``."""
        stream = await self._opened()
        events = stream.events()
        while (event := await self._in_thread(lambda: next(events, None))) is not None:
            yield event

    async def values(self) -> AsyncIterator[Any]:
        """See ``TextStream.values``."""
        stream = await self._opened()
        values = stream.values()
        end = object()
        while (value := await self._in_thread(lambda: next(values, end))) is not end:
            yield value

    @property
    def partial(self) -> Any:
        """See ``TextStream.partial``."""
        return None if self._stream is None else self._stream.partial

    def cancel(self) -> None:
        """See ``TextStream.cancel``."""
        if self._stream is not None:
            self._stream.cancel()

    async def result(self) -> Result[T]:
        """See ``TextStream.result``."""
        stream = await self._opened()
        result: Result[T] = await self._in_thread(lambda: stream.result)
        return result

    async def _opened(self) -> TextStream[T]:
        import asyncio

        if self._stream is None:
            self._stream = await asyncio.to_thread(self._open)
        return self._stream

    async def _in_thread(self, step: Callable[[], Any]) -> Any:
        import asyncio

        # The thread cannot be interrupted: the stream is told to end, and its step is waited for, since two threads
        # must not be in one stream at once.
        work = asyncio.ensure_future(asyncio.to_thread(step))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            self.cancel()
            await asyncio.wait([work])
            raise
