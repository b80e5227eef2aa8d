"""Metrics for Prometheus. No label is chosen by a client."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

REGISTRY = CollectorRegistry()
REQUESTS = Counter("glassformer_requests", "Requests by route and status.", ["route", "status"], registry=REGISTRY)
SECONDS = Histogram(
    "glassformer_request_seconds", "Time to the end of an answer, by route.", ["route"], registry=REGISTRY,
    buckets=(0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100),
)  # fmt: skip
CHARACTERS = Counter("glassformer_characters", "Characters of texts that were computed.", registry=REGISTRY)
DISCONNECTED = Counter("glassformer_disconnected", "Clients that left before their answer.", registry=REGISTRY)
WAITING = Gauge("glassformer_texts_waiting", "Texts that wait to be computed.", registry=REGISTRY)
RUNNING = Gauge("glassformer_texts_running", "Texts that the model process computes.", registry=REGISTRY)
RESTARTS = Gauge("glassformer_model_process_restarts", "Restarts of the model process.", registry=REGISTRY)
