"""Results and traces for notebooks and terminals: what is shown is what they hold, and nothing in it can break out."""

from __future__ import annotations

import io
import re
from html.parser import HTMLParser

import pytest
from rich.console import Console

import grammask
from grammask.decoding import Result, Usage
from grammask.display import result_html, result_rich, trace_html, trace_rich
from grammask.display.chips import Chip, chips_html, chips_text, colour
from support.models import WritingModel

SCHEMA = grammask.JsonSchema(
    {
        "type": "object",
        "properties": {"<b>name": {"enum": ["Ada & co", "Bob"]}},
        "required": ["<b>name"],
        "additionalProperties": False,
    },
    whitespace="python",
)


class Reader(HTMLParser):
    """The text and the tags of a page, in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.tags: list[str] = []
        self.open: list[str] = []
        self.titles: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.append(tag)
        self.titles += [value for name, value in attrs if name == "title"]
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return "".join(self.words)


def rendered(shown) -> str:
    console = Console(width=120, record=True, force_terminal=True, file=io.StringIO())
    console.print(shown)
    return console.export_text()


@pytest.fixture(scope="module")
def result() -> Result:
    return WritingModel('{"<b>name": "Ada & co"}').generate("x", SCHEMA)


def test_a_result_as_html(result: Result) -> None:
    page = Reader(result._repr_html_())
    assert not page.open
    assert set(page.tags) <= {"div", "span", "pre", "br", "details", "summary"}
    assert "complete" in page.text
    assert '"<b>name": "Ada & co"' in page.text
    assert f"{result.usage.forced_tokens} forced" in page.text
    assert len(page.titles) == len(result.tokens)


def test_a_result_in_a_terminal(result: Result) -> None:
    text = rendered(result)
    assert '{"<b>name": "Ada & co"}' in text
    assert "complete" in text
    assert "finish reason stop" in text


def test_measures() -> None:
    """What tokens are coloured by depends on what is known of them."""
    model = WritingModel("yes")
    choice = grammask.Choice(["yes", "yeast", "no"])
    greedy = model.generate("x", choice)
    drawn = model.generate("x", choice, sampling=grammask.Sampling(temperature=1.0, seed=1))
    told = model.generate("x", choice, sampling=grammask.Sampling(temperature=1.0, seed=1, logprobs=True))
    for result, measure in (
        (greedy, "the mass that the constraint kept"),
        (drawn, "the probability of the draw"),
        (told, "the model's own probability"),
    ):
        assert f"coloured by {measure}" in result_html(result)


def test_what_is_missing() -> None:
    """A hosted model's result has no tokens; an error has no value."""
    bare = Result(value=None, text="half of <i>", complete=False, finish_reason="length", usage=Usage(1, 2))
    page = Reader(result_html(bare))
    assert "half of <i>" in page.text
    assert "not complete" in page.text
    failed = Result(value=None, text="", complete=False, finish_reason="error", usage=Usage(0, 0), error="no <model>")
    assert "no <model>" in Reader(result_html(failed)).text
    assert "no <model>" in rendered(result_rich(failed))


def test_more_than_one_output() -> None:
    usage = Usage(1, 1)
    samples = tuple(Result(value=t, text=t, complete=True, finish_reason="stop", usage=usage) for t in ("a<b", "c"))
    voted = Result(
        value="c", text="c", complete=True, finish_reason="stop", usage=usage, samples=samples, reasoning="think <hard>"
    )
    text = Reader(result_html(voted)).text
    for words in ("2 samples", "a<b", "think <hard>"):
        assert words in text
        assert words in rendered(result_rich(voted))


def test_control_characters_do_not_reach_the_terminal() -> None:
    text = chips_text([Chip("\x1b[2Ja\nb")]).plain
    assert text == "\\x1b[2Ja\nb"


def test_chips() -> None:
    page = Reader(chips_html([Chip("a\n", 1.0), Chip("<", 0.0, note='"'), Chip("{", forced=True)]))
    assert page.text == "a⏎<{"
    assert page.titles == ["", '"', ""]
    many = chips_html([Chip("x", 0.5)] * 2500)
    assert "and 500 more tokens" in many


def test_colours_run_from_red_to_teal() -> None:
    red, yellow, teal = colour(0), colour(0.5), colour(1)
    assert red[0] > red[1] > red[2]
    assert min(yellow[:2]) > yellow[2]
    assert teal[1] > teal[0]
    assert colour(-3) == red
    assert colour(7) == teal


def test_a_trace() -> None:
    from grammask.programs.trace import Step, Trace, TraceToken

    trace = Trace(
        "writer",
        (
            Step("text", "Choose <one>: ", None),
            Step(
                "choice",
                "yes",
                0,
                name="answer",
                tokens=(TraceToken(1, "y", -0.5, False, 0.9), TraceToken(2, "es", 0, True)),
                usage=Usage(1, 2, 1),
            ),
            Step("generation", "no\udce2", 0, tokens=(TraceToken(3, "no\udce2", -2.0, False),), usage=Usage(1, 1)),
            Step("check", "wrong", 2, note="too <long>"),
        ),
    )
    page = Reader(trace_html(trace))
    assert not page.open
    for words in ("writer: 4 steps", "2 ways", "Choose <one>: ", "→ answer", "no\\xe2", "too <long>"):
        assert words in page.text
    assert "mass kept 90 %" in page.titles[0]
    text = rendered(trace_rich(trace))
    assert "Choose <one>: " in text
    assert re.search(r"^ {2,}⎇ choice", text, re.MULTILINE), "the ways of a fork are indented"
    assert trace._repr_html_() == trace_html(trace)
