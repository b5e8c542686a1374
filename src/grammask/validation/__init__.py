"""Checks beyond syntax: what is wrong with a value, asking again, and rejecting while the output is written."""
