"""Offline extraction from files: one record in, one record out, however often it is interrupted.

    source.py   records of JSON lines, CSV and Parquet files, in order
    job.py      what is asked of the model for every record
    shards.py   the output folder: a fixed stretch of the input each, written whole or not at all
    runner.py   from a shard of records to a shard of outcomes
    local.py, ray_engine.py   where runners run

Exactly-once comes from three rules. Records are numbered by their place in the input and cut into shards of a fixed
length, so a shard's content depends on nothing but the job. A shard's file appears by renaming, so it is there whole or
not at all, and writing it a second time changes nothing. And a folder belongs to one job, whose fingerprint covers the
input.
"""

from grammask.batch.job import BatchError, Job
from grammask.batch.local import run_local
from grammask.batch.shards import Summary

__all__ = ["BatchError", "Job", "Summary", "run_local"]
