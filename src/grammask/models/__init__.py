"""Where logits come from."""

from grammask.models.base import LanguageModel, Message, Model, Prompt, Session
from grammask.models.concurrent import ConcurrentModel
from grammask.models.errors import ContextTooLong, MissingDependency, ModelError, ModelNotFound
from grammask.models.fingerprint import Fingerprint, system_fingerprint
from grammask.models.function_model import FunctionModel
from grammask.models.loading import load_model, load_vocabulary
from grammask.models.prefix_cache import PrefixCache

__all__ = [
    "ConcurrentModel",
    "ContextTooLong",
    "Fingerprint",
    "FunctionModel",
    "LanguageModel",
    "Message",
    "MissingDependency",
    "Model",
    "ModelError",
    "ModelNotFound",
    "PrefixCache",
    "Prompt",
    "Session",
    "load_model",
    "load_vocabulary",
    "system_fingerprint",
]
