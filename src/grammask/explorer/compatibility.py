"""What providers' APIs make of a schema: the catalogue's facts, and what the documented subsets leave open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from grammask.hosted.subset import Subset

FEATURES = ("json_schema", "strict", "json_object", "grammar", "regex", "choice")


def compatibility(schema: Any) -> list[dict[str, Any]]:
    """For each API of the catalogue: what it offers for structured output, and how this schema fares there.

    Returns:
        ``provider``, ``api``, ``name``, ``compiled`` (when the facts were gathered), ``stale``, ``features`` and
        ``fit`` (None where the API takes no schema).
    """
    from grammask.hosted.subset import subset_for
    from grammask.providers import load_all

    fits: dict[Subset, dict[str, Any]] = {}
    told = []
    for provider in load_all():
        subset = subset_for(provider.name)
        if subset not in fits:
            fits[subset] = fit(schema, subset)
        for api in provider.apis.values():
            features = {
                name: {
                    "status": api.features[name].status,
                    "how": api.features[name].how,
                    "source": None if api.features[name].source is None else str(api.features[name].source),
                }
                for name in FEATURES
            }
            told.append(
                {
                    "provider": provider.title,
                    "api": api.title,
                    "name": f"{provider.name}/{api.name}",
                    "compiled": provider.compiled.isoformat(),
                    "stale": provider.staleness(),
                    "features": features,
                    "fit": fits[subset] if api.features["json_schema"].status == "accepted" else None,
                }
            )
    return told


def fit(schema: Any, subset: Subset) -> dict[str, Any]:
    """How a schema fares in a subset.

    Returns:
        ``kind``: "as it is" (the schema is sent as it is, and what comes of it is the server's affair), "whole" (all
        of it can be said), "partly" (some of it is left open or changes its shape) or "none"; ``notes`` in words; and
        the ``source`` of the subset.
    """
    from grammask.hosted.rewriting import Inexpressible, rewrite

    if subset.keywords is None:
        return {"kind": "as it is", "notes": [], "source": subset.source}
    try:
        rewritten = rewrite(schema, subset)
    except Inexpressible as error:
        return {"kind": "none", "notes": [str(error)], "source": subset.source}
    notes = [f"{keyword} at {pointer or '(root)'} is not enforced" for pointer, keyword in rewritten.dropped]
    notes += [f"the object at {pointer or '(root)'} may have no further members" for pointer in rewritten.narrowed]
    notes += [f"{pointer} must be there, and may be null instead of absent" for pointer in sorted(rewritten.nullable)]
    if rewritten.wrapped:
        notes.append("the value must be wrapped into an object")
    return {"kind": "partly" if notes else "whole", "notes": notes, "source": subset.source}
