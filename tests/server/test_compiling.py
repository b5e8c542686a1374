"""The cache of compiled constraints: hits, refusals that are kept, hostile constraints beside honest requests."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

import grammask
from grammask import _core
from grammask.server.compiling import CompileCache
from grammask.server.errors import ApiError
from grammask.server.metrics import Metrics
from grammask.server.wanted import Wanted
from support.models import byte_vocabulary
from support.server import random_model, served


def wanted(key: str, build: Any, size: int = 10) -> Wanted:
    return Wanted("regex", build, key, size, "guided_regex")


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is small is compiled in the quick lane on slow machines as well."""
    monkeypatch.setattr("grammask.server.compiling.QUICK_SECONDS", 60)


def cache(**changes: Any) -> tuple[CompileCache, Metrics]:
    metrics = Metrics()
    options = {"max_entries": 2, "max_bytes": 1000, "metrics": metrics, **changes}
    limits = grammask.Limits(expressions=20_000, seconds=60)
    return CompileCache(byte_vocabulary(), limits, **options), metrics


def count(metrics: Metrics, event: str) -> float:
    return float(metrics.compile_cache.labels(event)._value.get())


@pytest.mark.usefixtures("patience")
def test_hits_misses_and_eviction() -> None:
    made: list[str] = []

    def build(name: str) -> Any:
        made.append(name)
        return grammask.Regex(name)

    async def run() -> None:
        kept, metrics = cache()
        first = await kept.get(wanted("a", lambda: build("a")))
        assert await kept.get(wanted("a", lambda: build("a"))) is first
        same = await asyncio.gather(*[kept.get(wanted("b", lambda: build("b"))) for _ in range(5)])
        assert len(set(map(id, same))) == 1
        await kept.get(wanted("c", lambda: build("c")))
        assert len(kept) == 2
        await kept.get(wanted("a", lambda: build("a")))
        assert made == ["a", "b", "c", "a"]
        assert (count(metrics, "hit"), count(metrics, "miss"), count(metrics, "joined")) == (1, 4, 4)
        assert count(metrics, "evicted") == 2
        kept.close()

    asyncio.run(run())


def slow(name: str) -> dict[str, Any]:
    """More expressions than the quick lane takes."""
    patterns = {f"{name}{i}": {"pattern": f"{i}.*{name}"} for i in range(60)}
    return {"oneOf": [{"properties": patterns, "minProperties": i} for i in range(4)]}


@pytest.mark.usefixtures("patience")
def test_what_compiles_slowly_is_kept_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """It shares no states with others, answers all the same, and is let go when such constraints take much memory."""
    monkeypatch.setattr("grammask.server.compiling.QUICK_EXPRESSIONS", 200)

    async def run() -> None:
        kept, metrics = cache(max_entries=100)
        quick = await kept.get(wanted("quick", lambda: grammask.Regex("a")))
        before = quick.memory_bytes()
        sizes = []
        for number in range(3):
            schema = slow(f"p{number}")
            compiled = await kept.get(wanted(f"slow {number}", lambda schema=schema: grammask.JsonSchema(schema)))
            assert compiled.vocabulary is not quick.vocabulary
            assert compiled.vocabulary.fingerprint == quick.vocabulary.fingerprint
            matcher = compiled.matcher()
            assert matcher.accept_bytes(b"{")
            assert matcher.shortest_completion() is not None
            sizes.append(compiled.memory_bytes()["total"])
        assert quick.memory_bytes()["expressions"] - before["expressions"] < 1000
        assert len(kept) == 4
        quick.vocabulary.cache_budget = sum(sizes) - 1
        await kept.get(wanted("slow 3", lambda: grammask.JsonSchema(slow("p3"))))
        assert len(kept) < 5
        assert await kept.get(wanted("quick", lambda: grammask.Regex("b"))) is quick
        assert count(metrics, "evicted") >= 1
        kept.close()

    asyncio.run(run())


@pytest.mark.usefixtures("patience")
def test_refusals_are_kept() -> None:
    made: list[int] = []

    def build() -> Any:
        made.append(1)
        return grammask.Regex("[")

    async def run() -> None:
        kept, _ = cache()
        for _ in range(3):
            with pytest.raises(ApiError) as caught:
                await kept.get(wanted("bad", build))
            assert caught.value.status == 400
            assert caught.value.param == "guided_regex"
        assert len(made) == 1
        with pytest.raises(ApiError, match="bytes"):
            await kept.get(wanted("long", build, size=10**6))
        kept.close()

    asyncio.run(run())


@pytest.mark.usefixtures("patience")
def test_who_hangs_up_does_not_end_it_for_others() -> None:
    building, left = threading.Event(), threading.Event()

    def build() -> Any:
        building.set()
        left.wait()
        return grammask.Regex("a")

    async def run() -> None:
        kept, _ = cache()
        leaving = asyncio.ensure_future(kept.get(wanted("a", build)))
        staying = asyncio.ensure_future(kept.get(wanted("a", build)))
        await asyncio.to_thread(building.wait)
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        left.set()
        assert (await staying).matcher().accept_bytes(b"a")
        kept.close()

    asyncio.run(run())


def test_hints_stand_on_lines_of_their_own() -> None:
    with served(random_model()) as server:
        error = server.chat(guided_json={"type": "objekt"}).json()["error"]
    what, hint = error["message"].split("\n")
    assert "'objekt'" in what
    assert hint.startswith("Hint: ")


def either_or_not(levels: int) -> dict[str, Any]:
    """Each level refers twice to the next."""
    following = [{"$ref": f"#/$defs/d{i + 1}"} for i in range(levels)]
    definitions: dict[str, Any] = {
        f"d{i}": {"anyOf": [reference, {"not": reference}]} for i, reference in enumerate(following)
    }
    definitions[f"d{levels}"] = {"type": "object", "patternProperties": {"a.*b": {"$ref": "#/$defs/d0"}}}
    return {
        "$defs": definitions,
        "allOf": [{"$ref": "#/$defs/d0"}, {"patternProperties": {".*b.*c": {"multipleOf": 7}}}],
    }


def tangled(rules: int) -> str:
    """A grammar of which every rule is ambiguous, nullable and recursive."""
    root = "root ::= " + " ".join(f"(a{i} | root)*" for i in range(rules))
    return "\n".join([root, *(f'a{i} ::= "{i}" | a{i} a{(i + 1) % rules} | ""' for i in range(rules))])


HOSTILE: dict[str, dict[str, Any]] = {
    # Nobody finds a short text for the first, and the second takes more than all the time there is to compile.
    "look-aheads": {"guided_regex": "".join(f"(?=.*{c}.{{{10 + i}}})" for i, c in enumerate("abcdefgh")) + "[a-z]*"},
    "counting look-aheads": {"guided_regex": "".join(f"(?=(?:.*{c}.*){{3}})" for c in "abcdefghij") + "[a-z]{0,200}"},
    "negative look-aheads": {"guided_regex": "(?!.*(a|b).{20}c)(?!.*d.{21}e)(?=.*x.{23}y)[a-z]{30,}"},
    "wide pattern": {"guided_regex": "(x|y|z){1,400}" * 30},
    "deep schema": {"guided_json": '{"items":' * 400 + "{}" + "}" * 400},
    "unions": {
        "guided_json": {
            "oneOf": [
                {"properties": {f"p{i}": {"type": "string", "pattern": f"{i}.*{i + 1}"}}, "minProperties": i}
                for i in range(14)
            ]
        }
    },
    "references": {"guided_json": either_or_not(30)},
    "grammar": {"guided_grammar": tangled(30)},
    "many choices": {"guided_choice": [f"{i * 7919 % 100_003:06d}" for i in range(20_000)]},
}


def refused_for_good(answer: httpx.Response) -> bool:
    """And not because no completion was found in time: the search for one goes on with the next request."""
    return answer.status_code == 400 and answer.json()["error"]["param"] != "max_tokens"


def test_slow_masks_end_an_output_and_refuse_its_constraint(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others wait for masks in every step, so an output may not spend much on them."""
    monkeypatch.setattr("grammask.server.scheduler.scheduler.SLOW_MASKS", 0.0)
    with served(random_model(), mask_seconds=1e-9, never_cut=False) as server:
        for _ in range(2):
            refused = server.chat(guided_regex="[a-z]{5}")
            assert refused.status_code == 400
            assert refused.json()["error"]["code"] == "constraint_too_large"
            assert "mask_seconds" in refused.json()["error"]["message"]
        assert count(server.service.metrics, "hit") == 1
        streamed = server.chat(guided_regex="[a-z]{6}", stream=True).text
        assert "constraint_too_large" in streamed
        assert server.service.scheduler.live_sequences == 0
    with served(random_model(), mask_seconds=1) as server:
        assert server.chat(guided_regex="[a-z]{5}").status_code == 200


def test_a_mask_that_is_given_up_ends_its_output_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(matchers: list[Any], out: Any, threads: int) -> None:
        if any(matcher.next_bytes() == b"Zz" for matcher in matchers):
            raise _core.ConstraintTooLargeError("one mask took too long")
        _core.fill_masks(matchers, out, threads)

    monkeypatch.setattr("grammask.server.scheduler.scheduler.fill_masks", fill)
    with served(random_model()) as server, ThreadPoolExecutor(4) as clients:
        answers = [clients.submit(server.chat, guided_regex=regex) for regex in ("[a-y]{30}", "[Zz]{5}", "[a-y]{31}")]
        first, refused, last = (answer.result() for answer in answers)
        assert (first.status_code, refused.status_code, last.status_code) == (200, 400, 200)
        assert refused.json()["error"]["code"] == "constraint_too_large"
        assert server.service.scheduler.live_sequences == 0


def test_hostile_constraints_do_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every hostile constraint is answered, by a refusal or an output; honest requests get theirs meanwhile."""
    monkeypatch.setattr("grammask.server.compiling.MAX_SLOW", len(HOSTILE) + 1)  # on slow machines all are slow
    with served(random_model(), compile_seconds=1.0, mask_seconds=0.5, max_schema_bytes=300_000) as server:
        with ThreadPoolExecutor(8) as clients:
            hostile = {name: clients.submit(server.chat, max_tokens=60, **fields) for name, fields in HOSTILE.items()}
            for seed in range(10):
                honest = server.chat(guided_regex="[a-z]{5}", seed=seed)
                assert honest.status_code == 200
            answers = {name: answer.result() for name, answer in hostile.items()}
        for name, answer in answers.items():
            assert answer.status_code in (200, 400), (name, answer.text[:500])
            if refused_for_good(answer):
                error = answer.json()["error"]
                assert error["code"].endswith(("_constraint", "too_large", "error")), (name, error)
        # Sent again, refusals come from the cache.
        metrics = server.service.metrics
        before = count(metrics, "miss")
        for name, fields in HOSTILE.items():
            # What was answered may be refused now: masks that were below the limit once may be above it later.
            possible = [400] if refused_for_good(answers[name]) else [200, 400]
            assert server.chat(max_tokens=60, **fields).status_code in possible, name
        assert count(metrics, "miss") == before
        assert server.service.scheduler.live_sequences == 0
