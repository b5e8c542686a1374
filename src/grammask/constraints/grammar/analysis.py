"""Which rules matter: what the start reaches, and what can produce a text at all."""

from __future__ import annotations

from collections.abc import Iterable

from grammask.constraints.grammar.graph import components
from grammask.constraints.grammar.model import Diagnostic, ParsedGrammar
from grammask.constraints.grammar.nodes import Concat, Node, NodeId, OtherToken, Repeat, RuleRef, Union, operands
from grammask.engine.errors import UnsatisfiableConstraint, UnsupportedConstraint


def reachable_rules(grammar: ParsedGrammar) -> dict[str, list[str]]:
    """The rules that the start can come to, each with the rules that its body mentions."""
    graph: dict[str, list[str]] = {}
    pending = list(grammar.arena.references(grammar.start))
    while pending:
        name = pending.pop()
        if name not in graph:
            graph[name] = list(grammar.arena.references(grammar.rules[name].body))
            pending.extend(graph[name])
    return graph


def productive_rules(grammar: ParsedGrammar, graph: dict[str, list[str]]) -> set[str]:
    """The rules with at least one finite derivation (a least fixpoint), taking embedded constraints for non-empty.

    graph: the rules to look at and what they mention. They are visited callees first, so only rules that call each
    other are looked at more than once.
    """
    productive: set[str] = set()
    for component in components(graph):
        waiting = component
        while True:
            left = [name for name in waiting if not _derives(grammar, grammar.rules[name].body, productive)]
            productive.update(set(waiting) - set(left))
            if not left or len(left) == len(waiting):
                break
            waiting = left
    return productive


def _derives(grammar: ParsedGrammar, root: NodeId, productive: set[str]) -> bool:
    derives: dict[NodeId, bool] = {}
    for number in grammar.arena.reachable([root]):
        node = grammar.arena.nodes[number]
        parts = [derives[part] for part in operands(node)]
        derives[number] = _node_derives(node, parts, productive)
    return derives[root]


def _node_derives(node: Node, parts: list[bool], productive: set[str]) -> bool:
    if isinstance(node, RuleRef):
        return node.name in productive
    if isinstance(node, Union):
        return any(parts)
    if isinstance(node, Concat):
        return all(parts)
    if isinstance(node, Repeat):
        return node.low == 0 or parts[0]
    return True


def diagnose(grammar: ParsedGrammar, graph: dict[str, list[str]], productive: set[str]) -> list[Diagnostic]:
    """What the author should know: rules that are never used, rules that can never finish, and notes from reading.

    Raises:
        UnsatisfiableConstraint: the start itself can never finish.
    """
    starts = list(grammar.arena.references(grammar.start))
    stuck = next((name for name in [grammar.start_rule, *starts] if name not in productive), None)
    if stuck is not None:
        raise _unproductive_error(grammar, graph, productive, stuck)
    found = list(grammar.notes)
    for name, rule in grammar.rules.items():
        if rule.offset is None:
            continue
        line, column = grammar.source.position(rule.offset)
        if name not in graph:
            if "{" in name:
                continue  # a template's rule: what uses it is told
            message = f"{name} is never used: the start does not lead to it"
            found.append(Diagnostic("warning", message, name, line, column))
        elif name not in productive:
            reason = _reason(graph, productive, name)
            message = f"{name} can never finish, so the alternatives that use it are dead: {reason}"
            found.append(Diagnostic("warning", message, name, line, column))
    return found


def _reason(graph: dict[str, list[str]], productive: set[str], name: str) -> str:
    needs = [other for other in graph[name] if other not in productive]
    return f"every alternative needs {' or '.join(needs)}" if needs else "it has no alternative with a text"


def _unproductive_error(
    grammar: ParsedGrammar, graph: dict[str, list[str]], productive: set[str], name: str
) -> UnsatisfiableConstraint:
    error = grammar.source.error(
        grammar.rules[name].offset or 0,
        f"no text at all matches {name}: {_reason(graph, productive, name)}",
        hint="give the recursion an alternative that ends",
        kind=UnsatisfiableConstraint,
    )
    assert isinstance(error, UnsatisfiableConstraint)
    return error


def check_other_tokens(grammar: ParsedGrammar, bodies: Iterable[NodeId]) -> None:
    """Refuses negated tokens outside ``*`` and ``+``.

    The language is one of texts, and the same text can be split into tokens in several ways, so "one token other than
    this" has no meaning as a text; any number of them has.

    Raises:
        UnsupportedConstraint: with the place of the token.
    """
    arena = grammar.arena
    roots = frozenset(bodies)
    for number in arena.reachable(roots):
        node = arena.nodes[number]
        free = isinstance(node, Repeat) and node.low <= 1 and node.high is None
        misplaced = [] if free else [arena.nodes[part] for part in operands(node)]
        if number in roots:
            misplaced.append(node)
        for part in misplaced:
            if isinstance(part, OtherToken):
                raise grammar.source.error(
                    part.excluded.offset,
                    "a negated token must be repeated with * or +",
                    hint="how many tokens a text has is not determined by the text; to bound its length use .{m,n}",
                    kind=UnsupportedConstraint,
                )
