"""The explorer: a local web page that shows what a constraint and a sampler do, step by step.

Each view's logic is a module of plain functions that take and return JSON values or dataclasses; ``server`` joins them
to HTTP, and ``static`` holds the page, which has no dependencies and asks nothing outside of this machine.
"""

from __future__ import annotations
