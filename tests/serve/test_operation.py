"""The server under load, crashes, reloads and attacks."""

import gzip
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from glassformer.serve.keys import add_key
from tests.interop.ours import make
from tests.journeys.conftest import glassformer
from tests.serve.models import running, wait_for

TEXTS = [f"The cat {i} sat on the mat with the old dog." for i in range(60)]


@pytest.fixture(scope="module")
def own(folder):
    """A server of one model for the tests that end its model process; the last one ends the server."""
    with running(folder, models=("en-de",)) as found:
        yield found


def refused(server, data):
    """The answer to an incomplete request, and the seconds until it came."""
    start = time.monotonic()
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.settimeout(20)
        connection.sendall(data)
        return connection.recv(100), time.monotonic() - start


@pytest.fixture(scope="module")
def slow_clients(server):
    """What slow clients are answered. They wait during the other tests."""
    head = b"GET /health HTTP/1.1\r\nHost: loc"
    body = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900\r\n\r\n{"
    with ThreadPoolExecutor(2) as pool:
        yield [pool.submit(refused, server, data) for data in (head, body)]


@pytest.mark.usefixtures("slow_clients")  # they wait from here on
def test_the_front_process_does_not_load_torch():
    code = "import glassformer.serve.server, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_no_answer_is_lost_or_wrong_when_the_model_process_is_killed(own):
    with ThreadPoolExecutor(8) as pool:
        expected = [answer.json for answer in pool.map(own.translate, TEXTS)]
        n_restarts = own.metric("glassformer_model_process_restarts")
        for _ in range(2):
            answers = [pool.submit(own.translate, text) for text in TEXTS]
            wait_for(lambda: own.metric("glassformer_texts_running") > 0)
            os.kill(own.worker, signal.SIGKILL)
            assert [answer.result().json for answer in answers] == expected
        assert own.metric("glassformer_model_process_restarts") == n_restarts + 2


def test_a_model_process_that_does_not_answer_is_restarted(own):
    os.kill(own.worker, signal.SIGSTOP)
    assert own.translate("The cat.").status == 200


def test_a_retrained_folder_is_loaded_without_a_failed_request(folder, tmp_path):
    shutil.copytree(folder / "en-de", tmp_path / "en-de")
    with running(tmp_path, models=("en-de",)) as server, ThreadPoolExecutor(4) as pool:
        before = server.translate("The cat.").json
        worker = server.worker
        retrained = tmp_path / "retrained"
        task = make("translation", "transformer", d_model=32, n_heads=4, d_ff=32, max_len=33)
        task.languages = ("en", "de")
        task.save(retrained)
        os.rename(tmp_path / "en-de", tmp_path / "old")
        os.rename(retrained, tmp_path / "en-de")
        server.process.send_signal(signal.SIGHUP)
        answers = []
        while not any("were loaded again" in line for line in server.log):
            answers += [future.result() for future in [pool.submit(server.translate, "The cat.") for _ in range(4)]]
        assert {answer.status for answer in answers} == {200}
        assert server.worker != worker
        after = server.translate("The cat.").json
        assert after != before
        assert all(answer.json in (before, after) for answer in answers)
        # A folder that cannot be loaded is not used.
        shutil.rmtree(tmp_path / "en-de")
        server.process.send_signal(signal.SIGHUP)
        wait_for(lambda: any("not replaced" in line for line in server.log))
        assert server.get("/health").status == 200


def test_a_client_that_leaves_takes_its_requests_with_it(own):
    n_disconnected = own.metric("glassformer_disconnected_total")
    body = json.dumps({"q": TEXTS * 6, "source": "en", "target": "de"}).encode()
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", own.port)) as connection:
            head = f"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
            connection.sendall(head.encode() + body)
            wait_for(lambda: own.metric("glassformer_texts_running") > 0)
    wait_for(lambda: own.metric("glassformer_texts_running") == 0)
    assert own.metric("glassformer_texts_waiting") == 0
    assert own.metric("glassformer_disconnected_total") == n_disconnected + 5
    assert own.translate("The cat.").status == 200


def test_what_cannot_be_answered_in_time_is_refused_at_once(folder):
    with running(folder, "--deadline", "0.3", models=("en-de",)) as server, ThreadPoolExecutor(30) as pool:
        answers = list(pool.map(lambda i: server.translate(TEXTS[:9]), range(90)))
        statuses = {answer.status for answer in answers}
        assert statuses <= {200, 503}
        assert 503 in statuses
        refused = next(answer for answer in answers if answer.status == 503)
        assert int(refused.headers["retry-after"]) >= 1
        assert "Slowdown" in refused.json["error"]
        too_long = server.translate("The cat. " * 2000, beam=16)
        assert too_long.status == 413
        assert "the limit of this server, 0.3 s" in too_long.json["error"]
        assert "retry-after" not in too_long.headers


def test_hosts_and_origins_that_are_not_allowed_are_refused(server):
    assert server.get("/languages", Host="evil.example").status == 400
    assert server.get("/languages", Host="localhost:1").status == 200
    assert server.get("/languages", Host="192.168.1.5:5000").status == 200
    assert server.get("/languages", Host="[fe80::1]:5000").status == 200
    assert server.get("/languages", Host="192.168.1.5.evil.example").status == 400
    body = {"q": "The cat.", "source": "en", "target": "de"}
    assert server.post("/translate", body, Origin="http://evil.example").status == 403
    assert server.post("/translate", body, Origin="null").status == 403
    assert server.post("/translate", body, Origin="http://127.0.0.1:1").status == 403
    own = server.post("/translate", body, Origin=f"http://127.0.0.1:{server.port}")
    assert own.status == 200
    assert "access-control-allow-origin" not in own.headers


def test_named_origins_may_use_the_server(folder):
    origin = "https://intranet.example.org"
    with running(folder, "--cors", origin, "--public-name", "mt.example.org", models=("en-de",)) as server:
        preflight = server.request("OPTIONS", "/translate", headers={"Origin": origin, "Host": "mt.example.org"})
        assert preflight.status == 204
        assert preflight.headers["access-control-allow-origin"] == origin
        assert preflight.headers["access-control-allow-headers"] == "Content-Type, Authorization"
        wanted = "authorization,content-type,x-stainless-lang,x-stainless-os"
        asked = {"Origin": origin, "Access-Control-Request-Headers": wanted}
        preflight = server.request("OPTIONS", "/v1/chat/completions", headers=asked)
        assert preflight.headers["access-control-allow-headers"] == wanted
        body = {"q": "The cat.", "source": "en", "target": "de"}
        assert server.post("/translate", body, Origin=origin).headers["access-control-allow-origin"] == origin


def test_keys(folder, tmp_path):
    path = tmp_path / "keys.toml"
    key = add_key(path, "weblate")
    assert key not in path.read_text()
    assert path.stat().st_mode & 0o77 == 0
    slow = add_key(path, "slow")
    path.write_text(path.read_text().replace("[slow]", "[slow]\ncharacters_per_minute = 20"))
    with running(folder, "--keys", str(path), models=("en-de", "lm")) as server:
        assert server.translate("The cat.").status == 403
        assert server.translate("The cat.", api_key=key + "x").json == {"error": "Invalid API key"}
        assert server.translate("The cat.", api_key=key).status == 200
        body = {"q": "The cat.", "source": "en", "target": "de"}
        assert server.post("/translate", body, Authorization=f"Bearer {key}").status == 200
        prompt = {"model": "lm", "prompt": "a", "max_tokens": 2}
        refused = server.post("/v1/completions", prompt)
        assert (refused.status, refused.json["error"]["type"]) == (401, "authentication_error")
        assert server.get("/languages").status == 200
        assert server.translate("The cat sat on a mat.", api_key=slow).status == 200
        exceeded = server.translate("The cat sat.", api_key=slow)
        assert exceeded.status == 429
        assert 30 < int(exceeded.headers["retry-after"]) < 62


def test_the_server_ends_when_it_is_told(own):
    own.process.send_signal(signal.SIGTERM)
    assert own.process.wait(10) == 0


def test_headers_that_are_too_long_are_refused(server):
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 40_000)
        assert connection.recv(100).startswith(b"HTTP/1.1 431")


def test_headers_that_are_too_long_are_refused_also_in_one_piece(server):
    for size, status in ((20_000, b"200"), (40_000, b"431")):
        raw = b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * size + b"\r\n\r\n"
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(raw)
            assert connection.recv(100)[9:12] == status
    body = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nX: " + b"x" * 40_000 + b"\r\n\r\nabc"
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(body)
        assert connection.recv(100)[9:12] == b"431"
    assert server.get("/health").status == 200
    assert "Traceback" not in "".join(server.log)


def test_an_address_that_ends_in_a_slash(server):
    assert server.get("//languages").json == server.get("/languages").json
    body = {"q": "The cat.", "source": "en", "target": "de"}
    assert server.post("//translate", body).json == server.post("/translate", body).json


@pytest.mark.parametrize("path", ["/translate", "/v1/completions", "/models/lm"])
def test_a_compressed_body_is_refused(server, path):
    answer = server.request("POST", path, gzip.compress(b"{}"), {"Content-Encoding": "gzip"})
    assert answer.status == 415
    assert "Content-Encoding" in str(answer.json["error"])


def test_pages_of_others_cannot_compute_by_get(server):
    path = "/translate?langpair=en|de&q=The+cat."
    assert server.get(path).status == 200
    own = f"http://127.0.0.1:{server.port}"
    assert server.get(path, Origin=own, **{"Sec-Fetch-Site": "same-origin"}).status == 200
    assert server.get(path, Origin="http://evil.example").status == 403
    for site in ("cross-site", "same-site"):
        assert server.get(path, **{"Sec-Fetch-Site": site}).status == 403
        assert server.get("/" + path, **{"Sec-Fetch-Site": site}).status == 403
        assert server.get("/", **{"Sec-Fetch-Site": site}).status == 200  # a link to the page


POST = b"POST /translate HTTP/1.1\r\nHost: localhost\r\n"


@pytest.mark.parametrize(
    "raw",
    [
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x00\x01\x02\r\n\r\n",
        b"GET /%ff%fe%00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        POST + b"Content-Length: -1\r\n\r\n",
        POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        POST + b"Content-Type: multipart/form-data\r\nContent-Length: 2\r\n\r\nab",
        POST + b"Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 2\r\n\r\nab",
        POST + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n",
        b"GET /results/../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /models/..%2f..%2fetc HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
)
def test_malformed_requests_are_refused(server, raw):
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(raw)
        status = connection.recv(1000)[9:12]
    assert status.startswith(b"4"), raw
    assert server.get("/health").status == 200


def test_no_text_is_logged(server):
    server.translate("A secret sentence.")
    server.translate("A secret sentence.", target="secret")
    assert "secret" not in "".join(server.log)
    assert b"secret" not in server.get("/metrics").body


def test_a_port_that_is_taken_is_one_clear_error(server, folder):
    command = [sys.executable, "-m", "glassformer", "serve", "en-de", "--port", str(server.port)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: 127.0.0.1:{server.port}: Address already in use")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no model"), (["nope"], "nope"), (["en-de", "en-de"], "two models named en-de"),
        (["en-de", "--languages", "xx=en,de"], "there is no model xx"),
        (["en-de", "--languages", "en-de=en"], "expected two different codes"),
        (["en-de", "--glossary", "a=nope.tsv"], "nope.tsv"), (["en-de", "--keys", "nope.toml"], "no such file"),
        (["en-de", "--corrections", "nope"], "no such folder"), (["a/../=en-de"], "cannot be part of a URL"),
        (["en-de", "--port", "99999"], "0 to 65535"),
    ],
)  # fmt: skip
def test_wrong_options_are_one_clear_error(folder, arguments, message, monkeypatch):
    monkeypatch.chdir(folder)
    done = glassformer("serve", *arguments)
    assert done.returncode in (1, 2)
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_the_limits_are_printed(folder):
    done = subprocess.run([sys.executable, "-m", "glassformer", "serve", "--limits"], capture_output=True, text=True)
    assert "MAX_TEXT_CHARACTERS" in done.stdout
    assert "Most characters of the texts of one request." in done.stdout


@pytest.mark.parametrize("path", ["/", "/health", "/languages", "/v1/models", "/nope", "/download_file/nope.txt"])
def test_head_has_the_headers_of_get_without_the_body(server, path):
    head, get = server.request("HEAD", path), server.get(path)
    assert (head.status, head.body) == (get.status, b"")
    names = ("content-type", "content-length")
    assert [head.headers[name] for name in names] == [get.headers[name] for name in names]
    assert server.request("HEAD", "/suggest").status == 405


def test_connections_are_kept(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    for _ in range(3):
        connection.request("GET", "/health")
        assert connection.getresponse().read() == b'{"status":"ok"}'
    connection.close()


def test_a_model_process_that_ends_while_it_starts_is_one_clear_error(folder, tmp_path):
    ends = 'import os, sys\nif "glassformer.serve.worker" in sys.orig_argv:\n    os._exit(3)\n'
    (tmp_path / "sitecustomize.py").write_text(ends)
    done = subprocess.run(
        [sys.executable, "-m", "glassformer", "serve", "en-de", "--port", "0"],
        cwd=folder, capture_output=True, text=True, timeout=60, env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 1
    assert "the model process ended while it loaded the models" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_slow_clients_are_disconnected(slow_clients):
    for client in slow_clients:
        answer, seconds = client.result()
        assert answer.startswith(b"HTTP/1.1 408")
        assert 9 < seconds < 19
