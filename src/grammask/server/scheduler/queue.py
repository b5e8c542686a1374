"""Who is next: clients take turns, and each client's outputs come in the order they were asked for."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grammask.server.scheduler.job import Job
    from grammask.server.scheduler.sequence import OutputSequence


class QueueFull(Exception):
    """There is no room for another request."""


class FairQueue:
    """Outputs that wait. Not thread-safe."""

    def __init__(self) -> None:
        self._by_client: OrderedDict[str, deque[OutputSequence]] = OrderedDict()
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def put(self, sequences: Iterable[OutputSequence]) -> None:
        """Adds outputs at the end of their client's line."""
        for sequence in sequences:
            self._by_client.setdefault(sequence.job.client, deque()).append(sequence)
            self._length += 1

    def take(self) -> OutputSequence | None:
        """The next output of the client whose turn is longest ago."""
        if not self._by_client:
            return None
        client, line = next(iter(self._by_client.items()))
        sequence = line.popleft()
        self._length -= 1
        if line:
            self._by_client.move_to_end(client)
        else:
            del self._by_client[client]
        return sequence

    def jobs(self) -> set[Job]:
        """Of which outputs wait."""
        return {sequence.job for line in self._by_client.values() for sequence in line}

    def remove(self, unwanted: Callable[[OutputSequence], bool]) -> list[OutputSequence]:
        """Takes out what is not wanted any more."""
        removed: list[OutputSequence] = []
        for client, line in list(self._by_client.items()):
            kept = deque([sequence for sequence in line if not unwanted(sequence)])
            if len(kept) < len(line):
                removed.extend(sequence for sequence in line if unwanted(sequence))
                if kept:
                    self._by_client[client] = kept
                else:
                    del self._by_client[client]
        self._length -= len(removed)
        return removed
