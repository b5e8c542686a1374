"""Constraints in front of an endpoint that knows none: ask in words, check exactly, ask again."""
