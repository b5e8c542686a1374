"""What ``/metrics`` shows, in the names of Prometheus: everything begins with ``grammask_``."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

LATENCY = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
STEP = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128)


class Metrics:
    """The metrics of one server, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = self._counter("requests", "Answered HTTP requests.", "endpoint", "status")
        self.request_seconds = self._histogram("request_seconds", "From request to the end.", LATENCY, "endpoint")
        self.finished = self._counter("outputs", "Outputs by end and constraint.", "reason", "constraint")
        self.prompt_tokens = self._counter("prompt_tokens", "Prompt tokens read.")
        self.output_tokens = self._counter("output_tokens", "Tokens drawn, or forced by the constraint.", "how")
        self.first_token_seconds = self._histogram("first_token_seconds", "From request to first token.", LATENCY)
        self.waiting_seconds = self._histogram("waiting_seconds", "Outputs waiting for their turn.", LATENCY)
        self.step_seconds = self._histogram("step_seconds", "Parts of one step of all sequences.", STEP, "part")
        self.batch_sequences = self._histogram("batch_sequences", "Sequences in one step.", SIZES)
        self.running = self._gauge("running_outputs", "Outputs being written.")
        self.waiting = self._gauge("waiting_outputs", "Outputs that wait.")
        self.refused = self._counter("refused_requests", "Requests refused for lack of room.")
        self.compile_cache = self._counter("compile_cache", "Look-ups: hit, miss, joined, evicted.", "event")
        self.compile_cache_entries = self._gauge("compile_cache_entries", "Constraints kept.")
        self.compile_seconds = self._histogram("compile_seconds", "Compiling one constraint.", LATENCY, "lane")
        self.asked_again = self._counter("proxy_asked_again", "Answers of the upstream that were refused.")

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"grammask_{name}", text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"grammask_{name}", text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        return Histogram(f"grammask_{name}", text, labels, buckets=buckets, registry=self.registry)

    def text(self) -> bytes:
        """In Prometheus's text format."""
        return generate_latest(self.registry)
