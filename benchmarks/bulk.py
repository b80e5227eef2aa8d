"""Bulk translation of files of lines: overhead, processes, kills, memory.

    python -m benchmarks.bulk MODEL LINES [PYTHON] [PART ...]

LINES: a text file. PYTHON: one that has Ray besides. Parts are measured alone or one after another:
speed: whole processes in turn, `translate < LINES` and `translate LINES --lines --out`, with one process of all
threads, one process for each, and actors of Ray; medians of rounds.
kills: a million lines, a small model with random weights, a process for each core; `kill -9` of the command at up to
50 random times, then once more to the end; the output is compared with that of standard input.
actors: the same with actors of Ray, which are killed one after another.
memory: 10 million lines that are put into upper case by the same code, since translating them would take hours.
model: time for 100 million lines on several machines, computed: each reads all files, and its processes of one thread
compute its share meanwhile, each as fast as one of those of this machine.
"""

import hashlib
import os
import random
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

from benchmarks.machine import load_own, save
from benchmarks.stream_memory import lines, save_model
from glassformer.bulk.chunks import CHUNK_ITEMS, Chunk
from glassformer.bulk.outputs import Processor
from glassformer.bulk.run import WORK, Run, Source, folder_of
from glassformer.bulk.workers import ThisProcess
from glassformer.corpora.lines import chunks, read_lines

N_ROUNDS = 3
N_KILLS = 50
N_ACTORS_KILLED = 20
N_CORES = os.cpu_count() or 1
DECODING = ("--beam", "1", "--quiet")
SHORT = ("--precision", "int8", "--max-length", "4", "--no-repeat-ngram-size", "0")
START_S = 1.5
"""Seconds that the command takes at least to start."""


def translate(model, *arguments, python=sys.executable, **options):
    """Run a command. Returns its time in seconds."""
    command = [python, "-m", "glassformer", "translate", str(model), *DECODING, *map(str, arguments)]
    start = time.perf_counter()
    subprocess.run(command, check=True, **options)
    return time.perf_counter() - start


def speed(model, text, python=None):
    """Times of whole processes."""
    each = {"one": ("--workers", 1), "processes": ("--workers", N_CORES)}
    if python:
        each["ray"] = ("--workers", N_CORES, "--threads", 1, "--ray", "local")
    times = {name: [] for name in ("stream", *each)}
    with tempfile.TemporaryDirectory() as folder:
        stream, out = Path(folder, "stream"), Path(folder, "out")
        for _ in range(N_ROUNDS):
            with open(text, "rb") as source, open(stream, "wb") as target:
                times["stream"].append(translate(model, stdin=source, stdout=target))
            for name, options in each.items():
                own = python if name == "ray" else sys.executable
                times[name].append(translate(model, text, "--lines", "--out", out, *options, python=own))
                assert (out / Path(text).name).read_bytes() == stream.read_bytes()
                shutil.rmtree(out)
            print({name: round(statistics.median(found), 1) for name, found in times.items()}, flush=True)
    with open(text, "rb") as file:
        n = sum(1 for _ in file)
    return {"n_lines": n, "options": list(DECODING), "seconds": times}


def kills(n=N_KILLS, n_lines=1_000_000):
    """Whether the output is the same after kills."""
    rng = random.Random(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model, source, stream, out = (folder / part for part in ("model", "lines.txt", "stream", "out"))
        save_model(model)
        source.write_text("".join(f"{line}\n" for line in lines(n_lines)))
        with open(source, "rb") as text, open(stream, "wb") as target:
            time_s = translate(model, *SHORT, stdin=text, stdout=target)
        command = [sys.executable, "-m", "glassformer", "translate", str(model), *DECODING, *SHORT, str(source)]
        command += ["--lines", "--out", str(out), "--workers", str(N_CORES)]
        n_killed = 0
        while n_killed < n:
            process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
            try:
                process.wait(START_S + rng.uniform(0, time_s / n))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                n_killed += 1
            else:
                break  # it has ended before the last kill
        chunks = sum(path.read_bytes().count(b'"chunk"') for path in out.glob(".bulk/*/manifest.jsonl"))
        print(f"{n_killed} kills, {chunks} of {n_lines // CHUNK_ITEMS + 1} chunks done", flush=True)
        subprocess.run(command, check=True)
        is_equal = (out / source.name).read_bytes() == stream.read_bytes()
        return {"n_lines": n_lines, "n_killed": n_killed, "chunks_done_then": chunks, "is_equal": is_equal}


def actors(model, text, python, n=N_ACTORS_KILLED):
    """Whether the output is the same after actors of Ray were killed."""
    rng = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        stream, out = Path(folder, "stream"), Path(folder, "out")
        with open(text, "rb") as source, open(stream, "wb") as target:
            translate(model, stdin=source, stdout=target)
        command = [python, "-m", "glassformer", "translate", str(model), *DECODING, str(text), "--lines"]
        command += ["--out", str(out), "--workers", str(N_CORES), "--threads", "1", "--ray", "local"]
        n_killed, start = 0, time.perf_counter()
        process = subprocess.Popen(command)
        while process.poll() is None:
            time.sleep(rng.uniform(1, 4))
            found = actor_processes()
            if n_killed < n and len(found) == N_CORES:  # those that were killed have been started again
                os.kill(rng.choice(found), signal.SIGKILL)
                n_killed += 1
        assert process.returncode == 0
        time_s = time.perf_counter() - start
        is_equal = (out / Path(text).name).read_bytes() == stream.read_bytes()
    with open(text, "rb") as file:
        n_lines = sum(1 for _ in file)
    return {"n_lines": n_lines, "n_killed": n_killed, "is_equal": is_equal, "seconds": round(time_s, 1)}


def actor_processes():
    """The processes of actors, by the names that Ray gives them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if path.read_bytes().startswith(b"ray::Actor"):
                found.append(int(path.parent.name))
    return found


def memory(n_lines=10_000_000):
    """Peak memory after every tenth of the lines, in MB."""
    peaks = []
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder, "lines.txt"), Path(folder, "out")
        with open(source, "w") as file:
            file.writelines(
                f"{hashlib.md5(str(i).encode()).hexdigest()} is line {i} of the file.\n" for i in range(n_lines)
            )
        (out / WORK / folder_of((1, 1))).mkdir(parents=True)
        n_done = 0

        def progress(n):
            nonlocal n_done
            n_done += n
            while n_done >= (len(peaks) + 1) * n_lines // 10:
                peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)

        workers = ThisProcess(Processor(lambda items, warn: [item.upper() for item in items]))
        start = time.perf_counter()
        run = Run(out, workers, progress=progress)
        run.run([Source(source, out / "lines.txt", "lines.txt", partial(read_lines, source))])
        run.close()
        time_s = time.perf_counter() - start
    return {"n_lines": n_lines, "peak_mb": peaks, "seconds": time_s}


def reading(n_lines=1_000_000):
    """Seconds for reading a line of a chunk that another machine does."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "lines.txt")
        source.write_text("".join(f"{line}\n" for line in lines(n_lines)))
        start = time.perf_counter()
        sum(1 for items in chunks(read_lines(source), CHUNK_ITEMS) if Chunk("lines.txt", 0, items).digest)
        return (time.perf_counter() - start) / n_lines


def model_of(record, n_lines=100_000_000, n_cores=16):
    """Hours for many lines, by number of machines."""
    speed = record["speed"]
    rate = speed["n_lines"] / statistics.median(speed["seconds"]["processes"]) / N_CORES
    keep_s = record["memory"]["seconds"] / record["memory"]["n_lines"] - record["reading_s"]
    hours = {}
    for n in (1, 8, 64):
        compute_s, read_s = n_lines / n / n_cores / rate, n_lines * record["reading_s"] + n_lines / n * keep_s
        hours[n] = {"compute": compute_s / 3600, "read": read_s / 3600, "total": max(compute_s, read_s) / 3600}
    return {"n_lines": n_lines, "cores": n_cores, "lines_a_core_and_second": rate, "hours": hours}


def main(model, text, python="", *names):
    parts = {
        "memory": memory,  # first: it is that of a process that has done nothing else
        "reading_s": reading,
        "kills": kills,
        "speed": lambda: speed(model, text, python),
        "actors": lambda: actors(model, text, python),
    }
    for name in names or parts:
        if name == "actors" and not python:
            continue
        record = {**load_own("bulk"), name: parts[name]()}
        print(name, record[name], flush=True)
        if parts.keys() - {"actors"} <= record.keys():
            record["model"] = model_of(record)
        save("bulk", record, "python -m benchmarks.bulk MODEL LINES [PYTHON] [PART ...]")


if __name__ == "__main__":
    main(*sys.argv[1:])
