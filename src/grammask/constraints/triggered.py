"""Free text with triggers: text is free until a tag begins, then constrained, then free again.

Let T be the triggers. The text before a tag is the shortest that a trigger follows: ``text · t`` must hold no word of T
anywhere but at its end. As a language that is

    (text · t)  and not  (text · T · character · text)

whatever the overlaps, and free text after the last tag is ``not (text · T · text)``. All of it is over bytes, so it
does not matter how a trigger is cut into tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grammask.constraints.algebra import Text, encode
from grammask.constraints.base import Constraint
from grammask.constraints.special_token import SpecialToken
from grammask.engine.errors import ConstraintSyntaxError

if TYPE_CHECKING:
    from grammask._core import Builder, Expr


@dataclass(frozen=True)
class Tag:
    """A constrained stretch of an output.

    Attributes:
        begin: the text or special token that it begins with.
        body: what stands between begin and end. A regular body ends at the first ``end``, so it cannot hold that text.
        end: the text or special token that it ends with; "" for none.
        trigger: the leading part of ``begin`` that commits to the tag, all of it by default. Tags may share a trigger
            (``<function=`` for ``<function=add>`` and ``<function=mul>``).
    """

    begin: str | SpecialToken
    body: Constraint
    end: str | SpecialToken = ""
    trigger: str | None = None


@dataclass(frozen=True)
class Triggered(Constraint):
    """Free text in which every tag, once its trigger is written, is carried through.

    Args:
        tags: the tags. No trigger may contain another one.
        at_least: occurrences of tags, of any kind, that the text must have.
        at_most: occurrences that it may have; after these, text holds no trigger. None: no upper limit.
        stop_after_last: nothing follows the last tag. A text without tags (``at_least`` 0) stays free.

    Raises:
        ConstraintSyntaxError: counts or triggers do not fit together.
    """

    tags: Sequence[Tag]
    at_least: int = 0
    at_most: int | None = None
    stop_after_last: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "tags", tuple(self.tags))
        if not self.tags:
            raise ConstraintSyntaxError("there are no tags", hint="free text alone is grammask.Text()")
        if self.at_least < 0 or (self.at_most is not None and self.at_most < self.at_least):
            raise ConstraintSyntaxError(
                f"counts must be 0 <= at_least <= at_most, not {self.at_least} and {self.at_most}"
            )
        for tag in self.tags:
            if tag.trigger is not None and not (isinstance(tag.begin, str) and tag.begin.startswith(tag.trigger)):
                raise ConstraintSyntaxError(f"the trigger {tag.trigger!r} is not the first part of {tag.begin!r}")
        triggers = self._text_triggers()
        for trigger in triggers:
            if not trigger:
                raise ConstraintSyntaxError("a tag needs a text or a special token that it begins with")
            for other in triggers:
                if other != trigger and other in trigger:
                    raise ConstraintSyntaxError(
                        f"the trigger {trigger!r} contains the trigger {other!r}",
                        hint=f"give both tags trigger={other!r}, or tell them apart earlier",
                    )

    def _text_triggers(self) -> list[str]:
        triggers = [_trigger(tag) for tag in self.tags]
        return list(dict.fromkeys([trigger for trigger in triggers if isinstance(trigger, str)]))

    def lower(self, builder: Builder) -> Expr:
        stops = [builder.literal(encode(trigger)) for trigger in self._text_triggers()]
        by_trigger: dict[str | SpecialToken, list[Expr]] = {}
        for tag in self.tags:
            by_trigger.setdefault(_trigger(tag), []).append(_after_trigger(tag, builder))
        units = []
        for trigger, rests in by_trigger.items():
            if isinstance(trigger, str):
                lead = up_to_first(Text().lower(builder), builder.literal(encode(trigger)), stops, builder)
            else:
                lead = builder.concat([text_without(stops, builder), trigger.lower(builder)])
            # A frame of its own, whose states and masks do not depend on what the tags hold.
            units.append(builder.concat([builder.call(lead), builder.union(rests)]))
        unit, free = builder.union(units), builder.call(text_without(stops, builder))
        if not self.stop_after_last:
            return builder.concat([builder.repeat(unit, self.at_least, self.at_most), free])
        if self.at_most == 0:
            return free
        tagged = builder.repeat(unit, max(1, self.at_least), self.at_most)
        return tagged if self.at_least else builder.union([tagged, free])


def text_without(stops: Sequence[Expr], builder: Builder) -> Expr:
    """Free text in which no word of the stops (regular expressions over characters) occurs."""
    text = Text().lower(builder)
    if not stops:
        return text
    return builder.intersection([text, builder.complement(builder.concat([text, builder.union(stops), text]))])


def up_to_first(body: Expr, end: Expr, stops: Sequence[Expr], builder: Builder) -> Expr:
    """Texts of a regular body followed by ``end``, in which no word of the stops occurs before the end of the whole."""
    text = Text().lower(builder)
    later = Text(1).lower(builder)
    early = builder.concat([text, builder.union(stops), later])
    return builder.intersection([builder.concat([body, end]), builder.complement(early)])


def _trigger(tag: Tag) -> str | SpecialToken:
    return tag.begin if tag.trigger is None else tag.trigger


def _after_trigger(tag: Tag, builder: Builder) -> Expr:
    """What follows the trigger: the rest of the beginning, the body and the end."""
    body = tag.body.lower(builder)
    if isinstance(tag.end, SpecialToken):
        content = builder.concat([builder.call(body), tag.end.lower(builder)])
    elif tag.end and tag.body.is_regular:
        end = builder.literal(encode(tag.end))
        content = up_to_first(body, end, [end], builder)
    else:
        content = builder.concat([builder.call(body), builder.literal(encode(tag.end))])
    if isinstance(tag.begin, str) and tag.trigger is not None:
        return builder.concat([builder.literal(encode(tag.begin[len(tag.trigger) :])), content])
    return content
