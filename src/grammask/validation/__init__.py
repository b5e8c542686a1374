"""Checks beyond syntax: what is wrong with a value, asking again, and rejecting while the output is written."""

from __future__ import annotations

from grammask.validation.checks import Check, across, exists_in, field
from grammask.validation.history import Attempt
from grammask.validation.incremental import ChecksFailed, Rejection, generate_checked
from grammask.validation.parts import Part
from grammask.validation.problems import CheckError, Problem
from grammask.validation.retry import ValidationFailed, generate_valid
from grammask.validation.sql import SqlCheck, sql_parts

__all__ = [
    "Attempt",
    "Check",
    "CheckError",
    "ChecksFailed",
    "Part",
    "Problem",
    "Rejection",
    "SqlCheck",
    "ValidationFailed",
    "across",
    "exists_in",
    "field",
    "generate_checked",
    "generate_valid",
    "sql_parts",
]
