"""What providers' structured output takes of JSON Schema."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Subset:
    """What a provider's structured output takes.

    Attributes:
        keywords: those that pass, beside ``type``, ``properties``, ``items``, ``enum``, ``const``, ``anyOf``, ``$ref``
            and ``$defs``; None lets every schema pass as it is.
        formats: values of ``format`` that pass.
        closed: objects must say that they have no further members.
        all_required: every member must be required.
        root_object: the root must be an object, and no union.
        recursive: schemas may refer to themselves.
        type_lists: ``type`` may be a list.
        min_items: values of ``minItems`` that pass; None for all.
        enum_scalars: ``enum`` and ``const`` hold scalars only.
        source: where this is from.
    """

    keywords: frozenset[str] | None = None
    formats: frozenset[str] = frozenset()
    closed: bool = False
    all_required: bool = False
    root_object: bool = False
    recursive: bool = True
    type_lists: bool = True
    min_items: frozenset[int] | None = None
    enum_scalars: bool = False
    source: str = ""


_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
NUMBERS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
ANNOTATIONS = frozenset({"title", "description"})

OPENAI = Subset(
    keywords=ANNOTATIONS | NUMBERS | {"pattern", "format", "minItems", "maxItems"},
    formats=_FORMATS,
    closed=True,
    all_required=True,
    root_object=True,
    source="https://platform.openai.com/docs/guides/structured-outputs (supported schemas)",
)
ANTHROPIC = Subset(
    keywords=ANNOTATIONS | {"format", "minItems", "default"},
    formats=_FORMATS | {"uri"},
    closed=True,
    recursive=False,
    type_lists=False,
    min_items=frozenset({0, 1}),
    enum_scalars=True,
    source="https://docs.claude.com/en/docs/build-with-claude/structured-outputs (JSON Schema limitations)",
)
GOOGLE = Subset(
    keywords=ANNOTATIONS
    | {"format", "minItems", "maxItems", "minimum", "maximum", "prefixItems", "additionalProperties", "required"},
    formats=_FORMATS,
    enum_scalars=True,
    source="https://ai.google.dev/gemini-api/docs/structured-output (JSON Schema support)",
)
AS_IT_IS = Subset(source="the server's own engine reads the schema; what it leaves out is checked afterwards")

_STRICT = ("openai", "azure", "groq", "cerebras", "xai", "mistral", "openrouter", "together", "fireworks", "meta")
_OTHERS = {"anthropic": ANTHROPIC, "bedrock": ANTHROPIC, "google": GOOGLE}


def subset_for(provider: str) -> Subset:
    """The subset of a provider of the catalogue. Providers with a hosted interface like OpenAI's are held to OpenAI's
    subset, the smallest that is documented among them; engines of one's own get the schema as it is."""
    name = provider.partition("/")[0]
    return OPENAI if name in _STRICT else _OTHERS.get(name, AS_IT_IS)
