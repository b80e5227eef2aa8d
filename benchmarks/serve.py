"""The server under load: throughput, latency, overload, slow and hostile clients, crashes.

The base model (random weights, outputs of at most 16 tokens, int8, beam 4) is served on the loopback interface. Peers
in the same run, in turn: this library's translation of the same sentences without a server, and a FastAPI application
of 40 lines with CTranslate2 in int8 and the same weights.

usage: python -m benchmarks.serve DATA MODELS [SECTION ...]

DATA contains raw/test_2016_flickr.en.gz. MODELS: folder with base and base.ctranslate2, as
`TRANSLATE_SPEED_MODELS=MODELS python -m benchmarks.translate_speed DATA - nothing` leaves it, and tiny, any small
translator with languages. Sections: throughput, latency, load, mixed, overload, slow, disconnects, hostile, kills,
memory, xss (playwright and Chromium), schemathesis (`pip install schemathesis`; SCHEMATHESIS: its program st).
Default: all.
"""

import asyncio
import json
import os
import random
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

from benchmarks.corpora import lines
from benchmarks.machine import describe, load_own, save

N_CONNECTIONS = 32
FULL_BATCH = 64  # the budget of a batch, 1,024 source tokens, in sentences of this length
N_SENTENCES = 320
ROUNDS = 3
N_TOKENS = 16
PARAMETERS = {"max_new_tokens": N_TOKENS, "no_repeat_ngram_size": 0}
PEER = """
import asyncio, sys
import ctranslate2, tokenizers, uvicorn
from concurrent.futures import ThreadPoolExecutor
from fastapi import FastAPI, Request
folder, peer, port, inter, intra, n = *sys.argv[1:3], *map(int, sys.argv[3:])
tokenizer = tokenizers.Tokenizer.from_file(folder + "/tokenizer.json")
translator = ctranslate2.Translator(peer, compute_type="int8", inter_threads=inter, intra_threads=intra)
pool = ThreadPoolExecutor(inter)
app = FastAPI()
waiting = []
def work(texts):
    sources = [e.tokens + ["</s>"] for e in tokenizer.encode_batch([" " + text for text in texts])]
    results = translator.translate_batch(sources, beam_size=4, max_decoding_length=n, max_batch_size=32)
    return [tokenizer.decode([tokenizer.token_to_id(t) for t in r.hypotheses[0]]).strip() for r in results]
async def batches():
    loop = asyncio.get_running_loop()
    free = asyncio.Semaphore(inter)
    async def compute(some):
        for (_, future), text in zip(some, await loop.run_in_executor(pool, work, [q for q, _ in some])):
            future.set_result(text)
        free.release()
    while True:
        await free.acquire()
        while not waiting:
            await asyncio.sleep(0.001)
        some, waiting[:] = waiting[:32], waiting[32:]
        asyncio.create_task(compute(some))
@app.on_event("startup")
async def start():
    app.state.task = asyncio.create_task(batches())
@app.post("/models/base")
async def translate(request: Request):
    future = asyncio.get_running_loop().create_future()
    waiting.append(((await request.json())["inputs"], future))
    return [{"translation_text": await future}]
print(f"http://127.0.0.1:{port}", file=sys.stderr, flush=True)
uvicorn.run(app, port=port, log_level="error")
"""
OFFLINE = """
import sys, time
from glassformer.decode_config import DecodeConfig
from glassformer.tasks.registry import load
folder, n = sys.argv[1], int(sys.argv[2])
lines = sys.stdin.read().split("\\n")
task, options = load(folder, device="cpu"), DecodeConfig(precision="auto", max_length=n, no_repeat_ngram_size=0)
task.translate(lines[:32], options)
if len(sys.argv) > 3:
    times = []
    for line in lines[:100]:
        start = time.perf_counter()
        task.translate([line], options)
        times.append(time.perf_counter() - start)
    times.sort()
    print(times[50], times[98])
else:
    start = time.perf_counter()
    task.translate(lines, options)
    print(len(lines) / (time.perf_counter() - start))
"""


@contextmanager
def process(command, pattern=r"http://.*:(\d+)$", **options):
    """A server process. Yields it and its port."""
    started = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **options)
    for line in started.stderr:
        if match := re.search(pattern, line):
            break
        print(line, end="")
    threading.Thread(target=started.stderr.read, daemon=True).start()  # a full pipe would stop the server
    time.sleep(0.5)
    try:
        yield started, int(match[1])
    finally:
        started.send_signal(signal.SIGTERM)
        try:
            started.wait(20)
        except subprocess.TimeoutExpired:
            started.kill()


def glassformer(models, *arguments):
    return process([sys.executable, "-m", "glassformer", "serve", *models, "--port", "0", *arguments])


async def request(reader, writer, path, body):
    """A request on a connection. Returns the status, the headers and the body."""
    data = json.dumps(body).encode()
    writer.write(
        f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        f"content-length: {len(data)}\r\n\r\n".encode()
        + data
    )
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    length = int(re.search(r"content-length: (\d+)", head)[1])
    return int(head[9:12]), head, await reader.readexactly(length)


async def get(port, path):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n".encode())
    data = await reader.read()
    writer.close()
    return int(data[9:12]), data.partition(b"\r\n\r\n")[2]


async def closed_loop(port, texts, n, path="/models/base", wrap=None, address="127.0.0.1"):
    """n connections, each of which sends the next text when it has its answer. Returns seconds, answers, latencies."""
    wrap = wrap or (lambda text: {"inputs": text, "parameters": PARAMETERS})
    left, answers, seconds = list(enumerate(texts))[::-1], {}, []

    async def client():
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
        while left:
            i, text = left.pop()
            start = time.perf_counter()
            status, _, body = await request(reader, writer, path, wrap(text))
            seconds.append(time.perf_counter() - start)
            answers[i] = status, body
        writer.close()

    start = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(n)))
    return time.perf_counter() - start, [answers[i] for i in range(len(texts))], sorted(seconds)


async def open_loop(port, texts, rate, duration_s, path="/models/base", wrap=None):
    """Requests at random times, whatever the answers. Returns a list of status, seconds."""
    wrap = wrap or (lambda text: {"inputs": text, "parameters": PARAMETERS})
    results, tasks, free, rng = [], set(), [], random.Random(1)

    async def one(text):
        start = time.perf_counter()
        while True:
            is_new = not free
            connection = await asyncio.open_connection("127.0.0.1", port) if is_new else free.pop()
            try:
                status, head, _ = await request(*connection, path, wrap(text))
            except (OSError, asyncio.IncompleteReadError):  # the server has closed an idle connection
                assert not is_new
                continue
            if status in (429, 503):
                assert "retry-after" in head
            free.append(connection)
            results.append((status, time.perf_counter() - start))
            return

    start, at = time.perf_counter(), 0.0
    while at < duration_s:
        at += rng.expovariate(rate)
        await asyncio.sleep(max(0, start + at - time.perf_counter()))
        task = asyncio.create_task(one(rng.choice(texts)))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    await asyncio.gather(*tasks)
    for _, writer in free:
        writer.close()
    return results


def percentile(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * p / 100))] if values else None


def rss(pid):
    """Resident memory of a process in MB."""
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) / 1024


def offline(folder, texts, *mode):
    command = [sys.executable, "-c", OFFLINE, folder, str(N_TOKENS), *mode]
    done = subprocess.run(command, input="\n".join(texts), capture_output=True, text=True, check=True)
    return [float(value) for value in done.stdout.split()]


def throughput(models, texts):
    """Sentences per second with 32 connections, relative to this library offline and to the peer."""
    rows = {"glassformer serve": [], "glassformer offline": [], "FastAPI and CTranslate2": []}
    base = str(models / "base")
    for _ in range(ROUNDS):
        with glassformer([base]) as (_, port):
            seconds, answers, _ = asyncio.run(closed_loop(port, texts, N_CONNECTIONS))
            assert all(status == 200 for status, _ in answers)
            rows["glassformer serve"].append(len(texts) / seconds)
        rows["glassformer offline"] += offline(base, texts)
        best = 0.0
        for inter, intra in ((1, 2), (2, 1)):
            command = [sys.executable, "-W", "ignore", "-c", PEER, base, f"{base}.ctranslate2", "5977", str(inter)]
            with process([*command, str(intra), str(N_TOKENS)]) as (_, port):
                time.sleep(2)
                seconds, answers, _ = asyncio.run(closed_loop(port, texts, N_CONNECTIONS))
                assert all(status == 200 for status, _ in answers)
                best = max(best, len(texts) / seconds)
        rows["FastAPI and CTranslate2"].append(best)
    ours = rows["glassformer serve"]
    return {
        "sentences_per_second": {name: round(statistics.median(values), 1) for name, values in rows.items()},
        "relative_to_offline": ratio(ours, rows["glassformer offline"]),
        "relative_to_fastapi_and_ctranslate2": ratio(ours, rows["FastAPI and CTranslate2"]),
    }


def ratio(ours, theirs):
    return round(statistics.median(a / b for a, b in zip(ours, theirs, strict=True)), 2)


def latency(models, texts):
    """One client, one sentence at a time: time added to that of the library."""
    base = str(models / "base")
    own = offline(base, texts, "single")
    with glassformer([base]) as (_, port):
        asyncio.run(closed_loop(port, texts[:20], 1))
        _, _, seconds = asyncio.run(closed_loop(port, texts[:100], 1))
    served = percentile(seconds, 50), percentile(seconds, 98)
    return {
        "own_ms": [round(1e3 * s, 1) for s in own],
        "served_ms": [round(1e3 * s, 1) for s in served],
        "added_ms_p50_p98": [round(1e3 * (b - a), 1) for a, b in zip(own, served, strict=True)],
    }


def load(models, texts):
    """Latency at parts of the capacity, with random arrivals; the time of a full batch for comparison."""
    with glassformer([str(models / "base")]) as (_, port):
        seconds, _, batch = asyncio.run(closed_loop(port, texts, FULL_BATCH))
        capacity = len(texts) / seconds
        rows = {}
        for part in (25, 50, 75, 100):
            results = asyncio.run(open_loop(port, texts, capacity * part / 100, 15))
            times = [s for status, s in results if status == 200]
            rows[f"{part}%"] = {
                "n": len(results),
                "answered": len(times),
                "p50_ms": round(1e3 * percentile(times, 50)),
                "p99_ms": round(1e3 * percentile(times, 99)),
            }
    return {"capacity": round(capacity, 1), "full_batch_ms": round(1e3 * percentile(batch, 50)), **rows}


def mixed(models, texts):
    """Single sentences of one client beside lists of 100 of another."""

    async def run(port):
        _, _, batch = await closed_loop(port, texts, FULL_BATCH)
        lists = [[random.Random(i).choice(texts) for _ in range(100)] for i in range(50)]
        others = asyncio.ensure_future(closed_loop(port, lists, 50))
        await asyncio.sleep(1)
        _, answers, alone = await closed_loop(port, texts[:25], 1, address="127.0.0.2")
        assert all(status == 200 for status, _ in answers)
        assert not others.done()
        others.cancel()
        return batch, alone

    with glassformer([str(models / "base")], "--deadline", "600") as (_, port):
        batch, alone = asyncio.run(run(port))
    return {"full_batch_ms": round(1e3 * percentile(batch, 50)), "p95_ms": round(1e3 * percentile(alone, 95))}


def overload(models, texts):
    """Ten times the capacity for 60 s, and the time until the server ends after SIGTERM."""
    with glassformer([str(models / "base")]) as (server, port):
        seconds, _, _ = asyncio.run(closed_loop(port, texts, N_CONNECTIONS))
        before = rss(server.pid)
        results = asyncio.run(open_loop(port, texts, 10 * len(texts) / seconds, 60))
        growth = rss(server.pid) - before
        start = time.perf_counter()
        server.send_signal(signal.SIGTERM)
        server.wait(30)
        end_s = time.perf_counter() - start
    statuses = {}
    for status, _ in results:
        statuses[status] = statuses.get(status, 0) + 1
    return {
        "statuses": statuses,
        "admitted_p99_s": round(percentile([s for status, s in results if status == 200], 99), 2),
        "refused_p99_ms": round(1e3 * percentile([s for status, s in results if status != 200], 99), 1),
        "rss_growth_mb": round(growth, 1),
        "sigterm_s": round(end_s, 1),
    }


def slow(models, texts):
    """1,000 slow headers, 200 bodies of 1 GB, 200 slow readers."""

    async def run(port, pid):
        before, connections, health, peak = rss(pid), [], [], 0.0

        async def trickle(head, data=None):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            connections.append(writer)
            start = time.perf_counter()
            try:
                writer.write(head)
                while data is not None:
                    writer.write(data)
                    await writer.drain()
                    await asyncio.sleep(0.5)
                    if reader.at_eof():
                        break
                if data is None:
                    await reader.read()
            except OSError:
                pass
            writer.close()
            return time.perf_counter() - start

        async def unread(path):
            receiver = socket.socket()
            receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            receiver.connect(("127.0.0.1", port))
            _, writer = await asyncio.open_connection(sock=receiver, limit=1024)
            start = time.perf_counter()
            try:
                for _ in range(300):
                    writer.write(f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
                    await writer.drain()
                    await asyncio.sleep(0.2)
            except OSError:
                pass
            writer.close()
            return time.perf_counter() - start

        async def watch():
            nonlocal peak
            while True:
                start = time.perf_counter()
                status, _ = await get(port, "/health")
                assert status == 200
                health.append(time.perf_counter() - start)
                peak = max(peak, rss(pid) - before)
                await asyncio.sleep(0.05)

        watching = asyncio.ensure_future(watch())
        post = b"POST /translate HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000000\r\n\r\n"
        heads = [trickle(b"GET / HTTP/1.1\r\nx: ", b"a") for _ in range(1000)]
        bodies = [trickle(post, b"x" * 1000) for _ in range(200)]
        times = await asyncio.gather(*heads, *bodies, *(unread("/") for _ in range(200)))
        watching.cancel()
        return {
            "health_p99_ms": round(1e3 * percentile(health, 99), 1),
            "rss_growth_mb": round(peak, 1),
            "closed_within_s": [round(max(part), 1) for part in (times[:1000], times[1000:1200], times[1200:])],
        }

    with glassformer([str(models / "tiny")]) as (server, port):
        return asyncio.run(run(port, server.pid))


async def metric(port, name):
    _, body = await get(port, "/metrics")
    return sum(float(x) for x in re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", body.decode(), re.MULTILINE))


def disconnects(models, texts):
    """1,000 clients that leave, while others translate."""

    async def run(port):
        expected = [body for _, body in (await closed_loop(port, texts, 8))[1]]
        others = asyncio.ensure_future(closed_loop(port, texts * 4, 8))
        for start in range(0, 1000, 50):
            writers = []
            for i in range(start, start + 50):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                data = json.dumps({"inputs": [texts[i % len(texts)]] * 20, "parameters": PARAMETERS}).encode()
                head = f"POST /models/base HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(data)}\r\n\r\n"
                writer.write(head.encode() + data)
                writers.append(writer)
            await asyncio.sleep(0.2)
            for writer in writers:
                writer.close()
        left_at = time.perf_counter()
        while (
            await metric(port, "glassformer_disconnected_total") < 1000
            or await metric(port, "glassformer_texts_running") > 8
        ):
            await asyncio.sleep(0.01)
        cancelled_s = time.perf_counter() - left_at
        _, answers, _ = await others
        running = [await metric(port, f"glassformer_texts_{name}") for name in ("running", "waiting")]
        return {
            "other_answers_changed": sum(a != (200, b) for a, b in zip(answers, expected * 4, strict=True)),
            "disconnected": await metric(port, "glassformer_disconnected_total"),
            "cancelled_after_s": round(cancelled_s, 2),
            "texts_left": sum(running),
        }

    with glassformer([str(models / "base")], "--deadline", "600") as (_, port):
        return asyncio.run(run(port))


def hostile(models, texts):
    """10,000 hostile requests: random fields, types, sizes, bodies and paths."""
    rng = random.Random(1)
    values = [
        *(None, True, -1, 0, 2**63, 1e400, float("nan"), "", " ", "x" * 300, "\ud800", "\0", [], {}, [[]], ["a", 1]),
        *("auto", "../../etc/passwd", "<script>alert(1)</script>", "a\nb" * 50, {"a": {"b": []}}, "ÿ" * 99, "en", "de"),
        *("0.5", [None]),
    ]
    names = (
        "q source target format alternatives beam terms prefix align min_confidence model prompt messages inputs"
        " parameters max_tokens stream stop input api_key"
    ).split()
    paths = (
        "/translate /detect /suggest /translate_file /v1/completions /v1/chat/completions /v1/embeddings /models/tiny"
        " /models/tiny/inspect /models/x /download_file/x /"
    ).split()

    def body():
        if rng.random() < 0.1:
            return rng.randbytes(rng.randrange(200))
        fields = {"q": "A dog.", "source": "en", "target": "de", "model": "tiny", "inputs": "A dog."}
        fields |= {rng.choice(names): rng.choice(values) for _ in range(rng.randrange(1, 5))}
        return json.dumps(fields).encode()

    async def run(port):
        statuses, slowest = {}, 0.0

        async def client(n):
            nonlocal slowest
            for _ in range(n):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                data, path = body(), rng.choice(paths)
                kind = rng.choice(["application/json", "application/x-www-form-urlencoded", "text/plain",
                                   "multipart/form-data; boundary=x", "multipart/form-data", "\xff"])  # fmt: skip
                head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: {kind}\r\n"
                start = time.perf_counter()
                writer.write(f"{head}content-length: {len(data)}\r\n\r\n".encode("latin-1") + data)
                answer = await reader.read()
                slowest = max(slowest, time.perf_counter() - start)
                writer.close()
                status = int(answer[9:12])
                statuses[status] = statuses.get(status, 0) + 1
                if status == 500:
                    print(path, kind, data)

        await asyncio.gather(*(client(625) for _ in range(16)))
        return {"statuses": dict(sorted(statuses.items())), "slowest_s": round(slowest, 2)}

    with glassformer([str(models / "tiny")]) as (_, port):
        return asyncio.run(run(port))


def kills(models, texts):
    """Crashes (100), hangs (20) and reloads (20) under load: wrong and lost answers."""

    def worker(pid):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [int(c) for c in children if b"serve.worker" in Path(f"/proc/{c}/cmdline").read_bytes()]

    async def run(server, port):
        wrap = lambda text: {"q": text, "source": "en", "target": "de"}
        expected = [body for _, body in (await closed_loop(port, texts, 8, "/translate", wrap))[1]]
        counts = {"answers": 0, "wrong": 0, "refused": 0}
        done = False

        async def clients():
            while not done:
                _, answers, _ = await closed_loop(port, texts, 8, "/translate", wrap)
                counts["answers"] += len(answers)
                counts["refused"] += sum(status == 503 for status, _ in answers)
                counts["wrong"] += sum(a != (200, b) and a[0] != 503 for a, b in zip(answers, expected, strict=True))

        loading = asyncio.ensure_future(clients())
        actions = [signal.SIGKILL] * 100 + [signal.SIGSTOP] * 20 + [signal.SIGHUP] * 20
        random.Random(1).shuffle(actions)
        for action in actions:
            n = counts["answers"]
            if action == signal.SIGHUP:
                server.send_signal(action)
            else:
                for pid in worker(server.pid)[-1:]:
                    os.kill(pid, action)
            while counts["answers"] == n and not loading.done():  # until a round of answers has come
                await asyncio.sleep(0.05)
        done = True
        await loading
        return counts

    with glassformer([str(models / "tiny")], "--deadline", "120") as (server, port):
        return asyncio.run(run(server, port))


def memory(models, texts):
    """Growth of the resident memory of both processes in 100,000 requests, after the first 2,000."""
    wrap = lambda text: {"q": text, "source": "en", "target": "de", "beam": 1}
    with glassformer([str(models / "tiny")], "--deadline", "120") as (server, port):
        child = int(Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()[-1])
        short = [text for text in texts if len(text) < 60] or texts
        asyncio.run(closed_loop(port, (short * 100)[:2000], 32, "/translate", wrap))
        before = rss(server.pid), rss(child)
        n = 0
        while n < 100_000:
            _, answers, _ = asyncio.run(closed_loop(port, (short * 100)[:10_000], 64, "/translate", wrap))
            assert all(status == 200 for status, _ in answers)
            n += len(answers)
        return {
            "requests": n,
            "growth_mb": [round(rss(p) - b, 1) for p, b in zip((server.pid, child), before, strict=True)],
        }


def xss(models, texts):
    """5,000 payloads of cross-site scripting in texts, HTML, files, names of files, and outputs of models."""
    from benchmarks import serve_xss as check

    payloads = check.payloads()
    clients = []
    with check.chromium() as (tab, executed):
        with check.stub_command() as command, process(command) as (_, port):
            judge = check.Judge(tab(f"http://127.0.0.1:{port}", watched=False))
            clients.append(check.Client(port))
            check.check_apis(clients[0], judge, payloads, files=True)
            foreign = check.check_page(tab(f"http://127.0.0.1:{port}"), payloads)
        with glassformer([str(models / "tiny")], "--deadline", "600", "--languages", "tiny=en,de") as (_, port):
            judge.page = tab(f"http://127.0.0.1:{port}", watched=False)
            clients.append(check.Client(port))
            check.check_apis(clients[1], judge, payloads[::50], files=False)  # a second for each
            check.check_inspection(tab(f"http://127.0.0.1:{port}"), clients[1], payloads, 50)
    statuses = sum((client.statuses for client in clients), Counter())
    for example in [*judge.examples[:10], *foreign[:10], *Counter(executed).most_common(10)]:
        print(example)
    return {
        "payloads": len(payloads),
        "statuses": dict(sorted(statuses.items())),
        "html": dict(judge.counts),
        "answers_shown_as_pages": sum(client.pages for client in clients),
        "executed": len(executed),
        "foreign_elements": len(foreign),
    }


def schemathesis(models, texts):
    """Requests that schemathesis makes of the OpenAPI description, and its checks of the answers.

    One check is left out: that each request which the description allows is accepted. Which languages and models there
    are is not part of the description.
    """
    program = os.environ.get("SCHEMATHESIS", "st")
    languages = "--languages", "tiny=en,de"
    with tempfile.TemporaryDirectory() as folder, glassformer([str(models / "tiny")], *languages) as (_, port):
        config = Path(folder) / "schemathesis.toml"
        config.write_text('[parameters]\n"path.name" = "tiny"\n')
        command = [program, "--config-file", str(config), "run", f"http://127.0.0.1:{port}/spec", "--no-color"]
        command += ["--exclude-checks", "positive_data_acceptance", "--continue-on-failure", "-n", "200", "--seed", "1"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    if done.returncode:
        print(done.stdout)
    version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout.split()[-1]
    cases = int(re.search(r"(\d+) generated", done.stdout)[1])
    found = re.search(r"(\d+) unique failures?", done.stdout)
    return {"version": version, "requests": cases, "failures": int(found[1]) if found else done.returncode}


SECTIONS = (throughput, latency, load, mixed, overload, slow, disconnects, hostile, kills, memory, xss, schemathesis)


def main():
    data, models, *names = Path(sys.argv[1]), Path(sys.argv[2]).resolve(), *sys.argv[3:]
    texts = lines(data / "raw/test_2016_flickr.en.gz")[:N_SENTENCES]
    rows = load_own("serve").get("results", {})
    for section in SECTIONS:
        if not names or section.__name__ in names:
            rows[section.__name__] = {"commit": describe("")["commit"], **section(models, texts)}
            print(section.__name__, json.dumps(rows[section.__name__], indent=2), flush=True)
            save("serve", {"results": rows}, "python -m benchmarks.serve DATA MODELS")


if __name__ == "__main__":
    main()
