"""Continuous batching: outputs join and leave between forward passes."""

from grammask.server.scheduler.job import Ended, Event, Failed, Job, Piece
from grammask.server.scheduler.queue import QueueFull
from grammask.server.scheduler.scheduler import Scheduler

__all__ = ["Ended", "Event", "Failed", "Job", "Piece", "QueueFull", "Scheduler"]
