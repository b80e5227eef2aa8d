"""Run the hostile cases: `python -m tests.hostile.run [--sample N] [--only SUBSTRING] [--jobs N] [--list]`.

Each case runs in a fork of this process, in which torch and glassformer are already imported, in a folder of its own
below one temporary folder, with its own standard streams. A case that takes longer than `LIMIT_S` is a hang.
"""

import argparse
import gc
import hashlib
import importlib
import json
import os
import pkgutil
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

for _name, _value in (
    *(("OMP_NUM_THREADS", "1"), ("TOKENIZERS_PARALLELISM", "false"), ("HF_HUB_OFFLINE", "1")),
    *(("COLUMNS", "200"), ("NO_COLOR", "1")),
):
    os.environ.setdefault(_name, _value)

LIMIT_S = 20.0
"""Seconds after which a case is a hang."""

MEMORY_BYTES = 6 << 30
"""Address space that a case may use in addition to that of this process."""

VERDICTS = ("ok", "traceback", "hang", "silent wrong", "wrong exit code", "wrong message")

SETUP_FAILED, CALL_WRONG = 97, 98
"""Exit codes of a child: the setup of its case raised an error; its call returned something wrong."""

INTERNAL = re.compile(
    r"object is not (iterable|subscriptable|callable)|has no attribute|unsupported operand|has no len\(\)"
    r"|indices must be|not supported between|can't multiply|NoneType.*expected"
)
"""Messages of Python about its own operations, which do not name what the caller did wrong."""


@dataclass(frozen=True)
class Result:
    """What a case did. `code` is None after a time-out, negative after a signal."""

    code: int | None
    out: bytes
    err: str
    changed: tuple[str, ...]
    folder: Path
    seconds: float


def import_everything() -> None:
    """Import all modules that a command imports when it is called, so that a fork has them."""
    import glassformer

    for module in pkgutil.walk_packages(glassformer.__path__, "glassformer."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    import numpy.testing  # noqa: F401
    import sacrebleu  # noqa: F401
    import torch
    import torch._dynamo  # takes a second; needed to build a model

    import tests.hostile.prepare  # noqa: F401

    torch.set_num_threads(1)


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 of each regular file below a folder, by relative path."""
    found = {}
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place, name)
            if path.is_file() and not path.is_symlink():
                found[str(path.relative_to(folder))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def open_streams(case: Any, base: Path) -> None:
    """Connect descriptors 0, 1 and 2 as the case says, and Python's standard streams to them."""
    if isinstance(case.stdin, bytes):
        base.with_suffix(".in").write_bytes(case.stdin)
        source = os.open(base.with_suffix(".in"), os.O_RDONLY)
    else:
        source = os.open(os.devnull if case.stdin == "closed" else case.stdin, os.O_RDONLY)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    error = os.open(base.with_suffix(".err"), flags)
    match case.stdout:
        case "full":
            target = os.open("/dev/full", os.O_WRONLY)
        case "reader gone":
            end, target = os.pipe()
            os.close(end)
        case _:
            target = os.open(base.with_suffix(".out"), flags)
    for descriptor, number in ((source, 0), (target, 1), (error, 2)):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdin = open(0, encoding="utf-8", closefd=False)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False, buffering=1)
    if case.stdin == "closed":
        os.close(0)
        sys.stdin = None
    if case.stdout == "closed":
        os.close(1)
        sys.stdout = None


def run_in_child(case: Any, shared: Path, base: Path) -> int:
    """Set up and run a case in this process, which is a fork. Returns the exit code."""
    from glassformer import limits
    from glassformer.cli import demo, main
    from glassformer.corpora.demo import pairs
    from glassformer.errors import UserError

    os.setpgid(0, 0)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    limits.MAX_PIPE_WAIT_S = 1.0
    demo.N_DEV = demo.N_TEST = 2
    pairs.SHOWCASE = ()
    folder = base.with_suffix(".d")
    folder.mkdir()
    os.chdir(folder)
    error_log = open(base.with_suffix(".err"), "w", encoding="utf-8")
    try:
        if case.setup:
            case.setup(folder, shared)
    except BaseException:
        traceback.print_exc(file=error_log)
        error_log.close()
        return SETUP_FAILED
    base.with_suffix(".json").write_text(json.dumps(digests(folder)))
    for name in [name for name in os.environ if name.startswith("GLASSFORMER_")]:
        del os.environ[name]
    os.environ.update({name: fill(value, shared, folder) for name, value in case.environment.items()})
    open_streams(case, base)
    code = 0
    try:
        if case.call is None:
            main([fill(argument, shared, folder) for argument in case.arguments])
        else:
            problem = case.call(folder, shared)
            if problem:
                print(f"silent wrong: {problem}", file=sys.stderr)
                code = CALL_WRONG
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except (UserError, TypeError, ValueError) as error:
        if case.call is None:
            traceback.print_exc()
            code = 1
        else:
            if INTERNAL.search(str(error)) or not str(error).strip():
                traceback.print_exc()
            print(f"error: {type(error).__name__}: {error}", file=sys.stderr)
            code = 1
    except BaseException:
        traceback.print_exc()
        code = 1
    for stream in (sys.stdout, sys.stderr):  # as the interpreter does when it exits
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            os.write(2, b"Traceback: the interpreter could not flush a stream at its exit\n")
            code = 120
    return code


def fill(text: str, shared: Path, folder: Path) -> str:
    """Replace {m} by the folder of models and corpora and {t} by the folder of the case."""
    return text.replace("{m}", str(shared)).replace("{t}", str(folder))


def run_cases(cases: Sequence[Any], root: Path, jobs: int) -> Iterator[tuple[Any, Result]]:
    """Run cases, `jobs` at a time, and yield each with its result, in the order in which they end."""
    shared = root / "shared"
    waiting = list(enumerate(cases))[::-1]
    running: dict[int, tuple[Any, Path, float]] = {}
    sys.stdout.flush()
    sys.stderr.flush()
    while waiting or running:
        while waiting and len(running) < jobs:
            number, case = waiting.pop()
            base = root / f"case-{number}"
            child = os.fork()
            if child == 0:
                code = SETUP_FAILED
                try:
                    code = run_in_child(case, shared, base)
                except BaseException:
                    traceback.print_exc()
                finally:
                    os._exit(code)
            running[child] = case, base, time.monotonic()
        ended, status = os.waitpid(-1, os.WNOHANG)
        if ended:
            case, base, start = running.pop(ended)
            yield case, collect(base, os.waitstatus_to_exitcode(status), time.monotonic() - start)
            continue
        for child, (case, base, start) in list(running.items()):
            if time.monotonic() - start > LIMIT_S:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                del running[child]
                yield case, collect(base, None, time.monotonic() - start)
        time.sleep(0.003)


def collect(base: Path, code: int | None, seconds: float) -> Result:
    """The result of a child that has ended."""

    def read(suffix: str) -> bytes:
        path = base.with_suffix(suffix)
        return path.read_bytes() if path.exists() else b""

    folder = base.with_suffix(".d")
    before = json.loads(read(".json") or "{}")
    after = digests(folder)
    changed = tuple(name for name, digest in before.items() if after.get(name) != digest)
    return Result(code, read(".out"), read(".err").decode(errors="replace"), changed, folder, seconds)


def discard(base: Path) -> None:
    """Delete the files of a case."""
    shutil.rmtree(base, ignore_errors=True)
    for suffix in (".in", ".out", ".err", ".json"):
        base.with_suffix(suffix).unlink(missing_ok=True)


def judge(case: Any, result: Result) -> tuple[str, str]:
    """The verdict on a result, one of `VERDICTS`, and the reason."""
    expect, err = case.expect, result.err
    if result.code is None:
        return "hang", f"longer than {LIMIT_S:g} s"
    if result.code == SETUP_FAILED:
        return "traceback", "the setup of the case failed"
    if "Traceback" in err or "panicked at" in err:
        return "traceback", err.strip().rpartition("\n")[2][:200]
    if result.code < 0 and result.code not in expect.codes:
        return "traceback", f"killed by signal {-result.code}"
    if result.code == CALL_WRONG:
        return "silent wrong", err.strip().rpartition("\n")[2][:300]
    if result.code not in expect.codes:
        allowed = ", ".join(map(str, sorted(expect.codes)))
        verdict = "silent wrong" if result.code == 0 else "wrong exit code"
        return verdict, f"exit code {result.code}, expected {allowed}"
    if result.changed and not expect.may_change(result.changed):
        return "silent wrong", f"changed {', '.join(result.changed[:3])}"
    found = expect.findings and result.code == 1 and not any(line.startswith("error: ") for line in err.split("\n"))
    if result.code <= 0 or found:
        return judge_success(case, result)
    n_errors = sum(line.startswith("error: ") for line in err.split("\n")) + err.count("─ Error ─")
    if n_errors != 1:
        return "wrong message", f"{n_errors} error messages"
    flat = " ".join(re.sub("[│╭╰╮╯─]", " ", err).split())
    for part in expect.says:
        if part not in flat:
            return "wrong message", f"does not say {part!r}"
    if result.out and not expect.partial:
        return "silent wrong", f"an error, yet standard output has {result.out[:60]!r}"
    return "ok", ""


def judge_success(case: Any, result: Result) -> tuple[str, str]:
    """The verdict on a case that succeeded, as it was expected to."""
    expect = case.expect
    if any(line.startswith("error: ") for line in result.err.split("\n")):
        return "wrong exit code", "an error message, yet exit code 0"
    n_lines = result.out.count(b"\n")
    if expect.n_lines is not None and n_lines != expect.n_lines:
        return "silent wrong", f"{n_lines} lines of output, expected {expect.n_lines}"
    for part in expect.warns:
        if part not in " ".join(result.err.split()):
            return "silent wrong", f"does not warn {part!r}"
    if expect.check is not None and (problem := expect.check(result)):
        return "silent wrong", problem
    return "ok", ""


def sample(cases: Sequence[Any], n: int, seed: int = 1) -> list[Any]:
    """A random sample of cases that has as many of each group as its share, and at least one."""
    rng = random.Random(seed)
    groups: dict[str, list[Any]] = {}
    for case in cases:
        groups.setdefault(case.group, []).append(case)
    chosen = []
    for group in groups.values():
        chosen += rng.sample(group, min(len(group), max(1, round(n * len(group) / len(cases)))))
    while len(chosen) > n:
        largest = Counter(case.group for case in chosen).most_common(1)[0][0]
        chosen.remove(next(case for case in chosen if case.group == largest))
    left = [case for case in cases if case not in chosen]
    return chosen + rng.sample(left, max(0, min(len(left), n - len(chosen))))


def describe(case: Any) -> str:
    """The command of a case as one types it, or the name of its call."""
    import shlex

    if case.call is not None:
        return f"(Python) {case.id}"
    parts = [shlex.quote(part if len(part) < 200 else f"{part[:60]}…{len(part)} characters") for part in case.arguments]
    variables = [f"{name}={shlex.quote(value[:60])}" for name, value in case.environment.items()]
    return " ".join([*variables, "glassformer", *parts])


def table(verdicts: dict[str, Counter]) -> str:
    """The counts of each group, one row for each."""
    total: Counter = sum(verdicts.values(), Counter())
    width = max(map(len, [*verdicts, "total"]))
    heads = "  ".join(f"{name:>{max(6, len(name))}}" for name in ("cases", *VERDICTS))
    rows = [f"{'group':{width}}  {heads}"]
    for name, counts in [*verdicts.items(), ("total", total)]:
        cells = [f"{sum(counts.values()):>6}", *(f"{counts[v]:>{max(6, len(v))}}" for v in VERDICTS)]
        rows.append(f"{name:{width}}  " + "  ".join(cells))
    return "\n".join(rows)


def run(
    cases: Sequence[Any],
    jobs: int = 2,
    report: Callable[[str], None] = print,
    progress: Callable[[str], None] = lambda text: None,
) -> tuple[dict[str, Counter], list[tuple[Any, str, str, Result]]]:
    """Prepare, run the cases and judge them. Returns the counts by group and the failures."""
    from tests.hostile.prepare import prepare

    root = Path(tempfile.mkdtemp(prefix="glassformer-hostile-"))
    os.environ["TMPDIR"] = str(root)
    try:
        (root / "shared").mkdir()
        import_everything()
        prepare(root / "shared", progress)
        before = digests(root / "shared")
        gc.collect()
        gc.freeze()
        verdicts: dict[str, Counter] = {}
        failures = []
        slowest: list[tuple[float, str]] = []
        for group in dict.fromkeys(case.group for case in cases):
            verdicts[group] = Counter()
        for n, (case, result) in enumerate(run_cases(cases, root, jobs), 1):
            verdict, reason = judge(case, result)
            discard(result.folder)
            verdicts[case.group][verdict] += 1
            slowest = sorted([*slowest, (result.seconds, case.id)], reverse=True)[:10]
            if verdict != "ok":
                failures.append((case, verdict, reason, result))
                report(f"{verdict}: {case.id}: {reason}\n    {describe(case)}")
            progress(f"{n} of {len(cases)} cases, {len(failures)} failures")
        after = digests(root / "shared")
        for name in sorted({*before, *after}):
            if before.get(name) != after.get(name):
                report(f"silent wrong: the shared file {name} was changed by a case")
                verdicts.setdefault("shared files", Counter())["silent wrong"] += 1
        progress("slowest: " + ", ".join(f"{name} {seconds:.1f} s" for seconds, name in slowest))
        return verdicts, failures
    finally:
        gc.unfreeze()
        shutil.rmtree(root, ignore_errors=True)


def show_progress() -> Callable[[str], None]:
    """A function that shows the state: one line that is overwritten on a terminal, else a line every 100 cases."""
    is_terminal = sys.stderr.isatty()

    def show(text: str) -> None:
        number = text.split()[0]
        if is_terminal:
            print(f"\r\x1b[K{text[:150]}", end="", file=sys.stderr, flush=True)
        elif not number.isdecimal() or int(number) % 100 == 0:
            print(text, file=sys.stderr, flush=True)

    return show


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.run", description=__doc__)
    parser.add_argument("--sample", type=int, help="run this many cases, from all groups")
    parser.add_argument("--seed", type=int, default=1, help="seed of the sample")
    parser.add_argument("--only", help="run the cases whose id contains this text")
    parser.add_argument("--jobs", type=int, default=2, help="number of processes")
    parser.add_argument("--list", action="store_true", help="list the cases and do not run them")
    parser.add_argument("--verbose", action="store_true", help="print what each failing case wrote")
    arguments = parser.parse_args()
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    from tests.hostile.cases import all_cases

    cases = [case for case in all_cases() if not arguments.only or arguments.only in case.id]
    if arguments.sample:
        cases = sample(cases, arguments.sample, arguments.seed)
    if arguments.list:
        for case in cases:
            print(f"{case.id:60} {describe(case)[:150]}")
        print(Counter(case.group for case in cases), len(cases))
        return
    start = time.monotonic()
    verdicts, failures = run(cases, arguments.jobs, progress=show_progress())
    if arguments.verbose:
        for case, verdict, reason, result in failures:
            print(f"\n=== {verdict}: {case.id}: {reason}\n$ {describe(case)}\n{result.err[-3000:]}")
            print(f"--- standard output: {result.out[:500]!r}")
    print()
    print(table(verdicts))
    print(f"{len(cases)} cases in {time.monotonic() - start:.0f} s")
    sys.exit(any(counts[verdict] for counts in verdicts.values() for verdict in VERDICTS[1:]))


if __name__ == "__main__":
    main()
