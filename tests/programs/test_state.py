"""States: text and generations, turns, captures, forks, traces and replays."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from grammask import Choice, FunctionModel, Regex, Sampling, State, Text, Trace, gen, select, together, where
from grammask.engine.errors import ConstraintSyntaxError
from grammask.models.base import Message
from grammask.models.errors import ModelError
from grammask.programs import ReplayDiverged
from grammask.programs.captures import NoSplit, split
from support.models import END, byte_vocabulary, indifferent_model


def chatml(messages: Sequence[Message]) -> str:
    turns = "".join(f"<{message['role']}>{message['content']}</{message['role']}>\n" for message in messages)
    return f"{turns}<assistant>"


class Parrot(FunctionModel):
    """Goes on with the document as a list of texts says: whatever text the document ends with, it writes what follows.

    Attributes:
        read: how many tokens each forward pass was given.
    """

    def __init__(self, *texts: str) -> None:
        self._texts = [text.encode() for text in texts]
        self.read: list[int] = []
        super().__init__(byte_vocabulary(), self._next, chat=chatml, name="parrot")

    def render(self, messages: Sequence[Message]) -> str:
        return chatml(messages)

    def _next(self, tokens: Sequence[int]) -> NDArray[np.float32]:
        logits = np.zeros(self.vocabulary.size, dtype=np.float32)
        written = self.vocabulary.decode(tokens)
        goal = next((text for text in self._texts if text.startswith(written)), written)
        logits[goal[len(written)] if len(goal) > len(written) else END] = 30
        return logits

    def session(self) -> Any:
        inner, read = super().session(), self.read

        class Counting:
            """Counts what it reads; forks count on."""

            def __init__(self, session: Any) -> None:
                self._session = session

            def __getattr__(self, name: str) -> Any:
                return getattr(self._session, name)

            def forward(self, token_ids: Sequence[int]) -> Any:
                read.append(len(token_ids))
                return self._session.forward(token_ids)

            def fork(self) -> Any:
                return Counting(self._session.fork())

        return Counting(inner)


def test_text_and_generations() -> None:
    state = State(Parrot("2 + 2 = 4, and 3 + 3 = 6.")) + "2 + 2 = " + gen("four", Regex("[0-9]")) + ", and 3 + 3 = "
    state += gen("six", Regex("[0-9]"))
    assert state.text == "2 + 2 = 4, and 3 + 3 = 6"
    assert dict(state.captures) == {"four": "4", "six": "6"}
    assert "four" in state
    assert state.get("none", 1) == 1


def test_nothing_is_read_twice() -> None:
    model = Parrot("abcdefgh1xyz2")
    state = State(model) + "abcdefgh" + gen("one", Regex("[0-9]")) + "xyz"
    state += gen("two", Regex("[0-9]"))
    assert state["two"] == "2"
    assert sum(model.read) <= len("abcdefgh1xyz") + 2  # the token at each edge may be taken back (healing)


def test_a_stop_text_is_not_part_of_it() -> None:
    model = Parrot("name: Ada\nage: 36\n")
    state = State(model) + "name: " + gen("name", stop="\n") + "\nage: " + gen("age", stop="\n")
    assert dict(state.captures) == {"name": "Ada", "age": "36"}


def test_states_are_values() -> None:
    start = State(Parrot("ab1", "ax2")) + "a"
    first, second = start + "b" + gen("n", Regex("[0-9]")), start + "x" + gen("n", Regex("[0-9]"))
    assert (first["n"], second["n"]) == ("1", "2")
    assert start.text == "a"
    assert not start.captures


def test_forks_share_what_was_read() -> None:
    beginning = "0123456789" * 10
    model = Parrot(*[f"{beginning}{letter}{letter}" for letter in "abc"])
    state = State(model) + beginning + gen(None, Choice([""]))
    state = state + gen("first", Regex("[abc]"))
    model.read.clear()
    for fork, letter in zip(state.fork(3), "abc", strict=True):
        assert (fork + letter + gen("x", Regex("[abc]")))["x"] in "abc"
    assert max(model.read) < 10


def test_forks_draw_their_own_numbers() -> None:
    state = State(indifferent_model(), sampling=Sampling(temperature=1), seed=3) + "x"
    drawn = {(fork + gen("n", Regex("[0-9]{6}")))["n"] for fork in state.fork(5)}
    assert len(drawn) == 5
    again = {(fork + gen("n", Regex("[0-9]{6}")))["n"] for fork in state.fork(5)}
    assert drawn == again


def test_plain_python() -> None:
    """Conditions, loops and functions are the language's own."""

    def item(state: State) -> State:
        return state + "- " + gen("items", Regex("[a-z]+"), many=True, stop="\n") + "\n"

    state = State(Parrot("List:\n- one\n- two\n- three\n"))
    state += "List:\n"
    while len(state.get("items", [])) < 3:
        state += item
    assert state["items"] == ["one", "two", "three"]
    assert state.texts["items"] == ["one", "two", "three"]


def test_values_are_parsed() -> None:
    state = (
        State(Parrot("n=42;true")) + "n=" + gen("n", where=where(integer=(10, 99))) + ";" + select("b", [True, False])
    )
    assert dict(state.captures) == {"n": 42, "b": True}


def test_turns() -> None:
    chat = "<user>Colour?</user>\n<assistant>The colour is red.</assistant>\n<user>Sure?</user>\n<assistant>"
    model = Parrot(f"{chat}yes")
    state = State(model).user("Colour?").assistant("The colour is ", gen("colour", Choice(["red", "blue"])), ".")
    state = state.user("Sure?").assistant(select("sure", ["yes", "no"]))
    assert dict(state.captures) == {"colour": "red", "sure": "yes"}
    assert [turn["role"] for turn in state.messages] == ["user", "assistant", "user", "assistant"]
    assert state.messages[1]["content"] == "The colour is red."
    assert sum(model.read) <= len(chat) + 2


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (lambda state: state.user("a") + "text", "belongs to no turn"),
        (lambda state: state.begin("user").begin("assistant"), "still open"),
        (lambda state: (state + "text").user("a"), "began as plain text"),
        (lambda state: state.begin("prophet"), "no role"),
        (lambda state: state.end(), "no turn"),
        (lambda state: state.user(gen("x")), "turns of the assistant"),
    ],
)
def test_what_makes_no_document(program: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        program(State(Parrot("")))


# -- several captures under one grammar

SHEET = "Name: Ada\nAge: 36\nClass: wizard\n"


def sheet(state: State) -> State:
    return state + together(
        "Name: ",
        gen("name", Regex("[A-Z][a-z]+")),
        "\nAge: ",
        gen("age", where=where(integer=(18, 99))),
        "\nClass: ",
        select("class", ["wizard", "warrior"]),
        "\n",
    )


def test_several_captures_in_one_go() -> None:
    model = Parrot("Sheet\n" + SHEET)
    state = State(model) + "Sheet\n" + sheet
    assert dict(state.captures) == {"name": "Ada", "age": 36, "class": "wizard"}
    assert state.text == "Sheet\n" + SHEET
    (step,) = [step for step in state.trace.steps if step.kind == "generation"]
    assert [step.text[capture.start : capture.end] for capture in step.captures] == ["Ada", "36", "wizard"]
    assert step.usage is not None
    assert step.usage.forced_tokens >= len("Name: Class: ")


@pytest.mark.parametrize(
    ("text", "parts", "expected"),
    [
        ("aab", [gen("x", Regex("a*")), gen("y", Regex("a*b"))], ["aa", "b"]),
        ("aab", [gen("x", Regex("a*?")), "ab"], ["a", "ab"]),
        ("aaa", [gen("x", Regex("a+")), gen("y", Regex("a+")), "a"], ["a", "a", "a"]),
        ("é1", [gen("x", Text(1)), gen("y", Regex("[0-9]"))], ["é", "1"]),
        ("a,b,c", [gen("x", stop=","), ",", gen("y")], ["a", ",", "b,c"]),
        ("", [gen("x", Regex("a*"))], [""]),
    ],
)
def test_which_text_belongs_to_which_part(text: str, parts: list[Any], expected: list[str]) -> None:
    assert split(text, parts) == expected


def test_texts_that_are_not_made_of_the_parts() -> None:
    with pytest.raises(NoSplit):
        split("aac", [gen("x", Regex("a*")), "b"])


def test_many_ways_to_split_end_soon() -> None:
    with pytest.raises(NoSplit):
        split("a" * 60 + "b", [gen(str(i), Regex("a*")) for i in range(8)])


def test_parts_with_settings_of_their_own_are_refused() -> None:
    with pytest.raises(ConstraintSyntaxError, match="options of its own"):
        together("a", gen("x", max_tokens=5))
    with pytest.raises(ConstraintSyntaxError, match="nothing to generate"):
        together("a", "b")


# -- traces


def test_a_trace_can_be_kept_and_replayed() -> None:
    def program(state: State) -> list[State]:
        state = state + "Sheet\n" + sheet
        return [state + "Mood: " + select("mood", [mood, "none"]) for mood in ("happy", "sad")]

    first, second = program(State(Parrot("Sheet\n" + SHEET + "Mood: happy", "Sheet\n" + SHEET + "Mood: sad")))
    trace = Trace.from_json(second.trace.to_json())
    assert trace == second.trace
    assert len(trace.leaves) == 2
    assert trace.path(trace.leaves[0])[-1].name == "mood"
    texts = [text for _, text in trace.frames(trace.leaves[0])]
    assert texts[-1] == first.text
    assert all(later.startswith(earlier) for earlier, later in pairwise(texts))
    assert trace.usage.completion_tokens > 10
    replayed = program(State.replaying(trace))
    assert [dict(state.captures) for state in replayed] == [dict(first.captures), dict(second.captures)]


def test_a_replay_that_differs_is_noticed() -> None:
    trace = (State(Parrot("ab")) + "a" + gen("x", Regex("b"))).trace
    assert (State.replaying(trace) + "a" + gen("x", Regex("b")))["x"] == "b"
    with pytest.raises(ReplayDiverged, match="no text 'c'"):
        State.replaying(trace) + "c"
    with pytest.raises(ReplayDiverged):
        State.replaying(trace) + "a" + gen("other", Regex("b"))
    with pytest.raises(ValueError, match="no trace"):
        Trace.from_json('{"steps": [1]}')


def test_a_trace_is_shown() -> None:
    trace = (State(Parrot("ab")) + "a" + gen("x", Regex("b"))).trace
    assert "<" in trace._repr_html_()
    rich = pytest.importorskip("rich.console")
    console = rich.Console(record=True, width=80)
    console.print(trace)
    assert "x" in console.export_text()


def test_tokens_of_a_trace() -> None:
    step = (State(Parrot("a€")) + "a" + gen("x", Regex("€"))).trace.steps[-1]
    data = b"".join(token.text.encode("utf-8", "surrogateescape") for token in step.tokens)
    assert data.decode().endswith("€")
    assert all(token.logprob <= 0 for token in step.tokens)
