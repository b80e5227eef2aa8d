"""OpenTelemetry: what is sent, and that no text is."""

import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tests.serve.models import running, wait_for

TEXT = "Aardvarks sleep."


@pytest.fixture
def collector():
    """The address of a server that keeps what it is sent, and the paths and bodies that it was sent."""
    received: list[tuple[str, bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            received.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    collecting = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=collecting.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{collecting.server_port}", received
    collecting.shutdown()
    collecting.server_close()


def test_traces_and_metrics_are_sent_without_texts(folder, collector, monkeypatch):
    address, received = collector
    for name, value in (
        ("OTEL_EXPORTER_OTLP_ENDPOINT", address),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "none"),
        ("OTEL_BSP_SCHEDULE_DELAY", "100"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "100"),
    ):
        monkeypatch.setenv(name, value)
    with running(folder, models=("en-de",)) as server:
        assert server.translate(TEXT).status == 200
        assert server.get("/translate?langpair=en|de&q=Aardvarks+sleep.").status == 200
        assert server.translate([TEXT, 5]).status == 400
        wait_for(lambda: {path for path, _ in received} >= {"/v1/traces", "/v1/metrics"})
    sent = b"".join(body for _, body in received)
    assert b"/translate" in sent
    assert b"ardvark" not in sent


def test_without_an_address_nothing_is_sent(folder, collector):
    _, received = collector
    with running(folder, models=("en-de",)) as server:
        assert server.translate(TEXT).status == 200
    assert not received


def test_an_address_without_the_packages_is_an_error(folder, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['opentelemetry.exporter'] = None\n")
    done = subprocess.run(
        [sys.executable, "-m", "glassformer", "serve", "en-de", "--port", "0"],
        cwd=folder, capture_output=True, text=True, timeout=60,
        env={**os.environ, "PYTHONPATH": str(tmp_path), "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1"},
    )  # fmt: skip
    assert done.returncode == 2
    assert "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is set" in done.stderr
    assert "glassformer[serve,telemetry]" in done.stderr
    assert "Traceback" not in done.stderr
