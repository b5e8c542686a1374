"""The errors of loading and running a model.

RuntimeError
└── ModelError                  a model could not be loaded or run
    ├── ModelNotFound           no model of this name: neither a file, a folder, nor on the hub
    ├── MissingDependency       an optional package is needed and not installed
    └── ContextTooLong          the prompt does not fit into the model's context
"""

from __future__ import annotations


class ModelError(RuntimeError):
    """Base of all errors about models.

    Attributes:
        message: what went wrong.
        hint: what to do about it, or None.
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        self.message = message
        self.hint = hint
        super().__init__(f"{message}\n  hint: {hint}" if hint else message)


class ModelNotFound(ModelError):
    """The name is neither a built-in model, a local path, nor a model that the hub knows or has cached."""


class MissingDependency(ModelError):
    """An optional package is needed for this model and is not installed."""


class ContextTooLong(ModelError):
    """The prompt leaves no room for a single new token in the model's context."""
