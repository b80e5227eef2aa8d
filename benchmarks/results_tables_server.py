"""The tables of docs/results.md about the server."""

from benchmarks.results_page import Row, Rows, Table
from benchmarks.results_tables_tasks import times


def joined(*parts: Rows) -> Rows:
    """The rows of several functions."""
    return lambda record: [row for part in parts for row in part(record)]


def throughput(record: dict) -> list[Row]:
    section = record["results"]["throughput"]
    names = {
        "glassformer offline": "`translate --precision auto`, without a server",
        "glassformer serve": "`glassformer serve`",
    }
    return [
        [names.get(n, n), rate, "throughput", section["commit"]] for n, rate in section["sentences_per_second"].items()
    ]


def libretranslate(record: dict) -> list[Row]:
    clients = {
        "single": "32 connections, single sentences",
        "lists of 20": "2 connections, lists of 20",
        "one client": "one connection, single sentences",
    }
    return [
        [f"{model}: {text}", *results[name]["sentences_per_second"].values(), times(results[name]["ratio"])]
        for model, results in record["results"].items()
        for name, text in clients.items()
    ]


def section(name: str, **rows) -> Rows:
    """Rows of a section of benchmarks.serve: text -> function of the record of the section."""

    def made(record: dict) -> list[Row]:
        found = record["results"].get(name)
        return [[text, value(found), name, found["commit"]] for text, value in rows.items()] if found else []

    return made


def statuses(record: dict) -> str:
    return ", ".join(f"{n:,} times {status}" for status, n in sorted(record["statuses"].items()))


def arrivals(percentage: str) -> Rows:
    cell = lambda r: f"{r[percentage]['p50_ms']:,} ms, {r[percentage]['p99_ms']:,} ms"
    return section("load", **{f"random arrivals at {percentage} of the capacity: median, 99th percentile": cell})


ANSWER_TIMES = joined(
    section(
        "latency",
        **{"one sentence at a time: what the server adds, median": lambda r: f"{r['added_ms_p50_p98'][0]} ms"},
    ),
    *map(arrivals, ("25%", "50%", "75%", "100%")),
    section("load", **{"time of a full batch, 64 sentences": lambda r: f"{r['full_batch_ms']} ms"}),
    section(
        "mixed",
        **{
            "single sentences beside 50 lists of 100 of another client: 95th percentile": lambda r: (
                f"{r['p95_ms']:,} ms"
            ),
            "time of a full batch then": lambda r: f"{r['full_batch_ms']} ms",
        },
    ),
)
ROBUSTNESS = joined(
    section(
        "overload",
        **{
            "ten times the capacity for 60 s: answers": statuses,
            "99th percentile of the time of answered requests": lambda r: f"{r['admitted_p99_s']} s",
            "the same of refused requests": lambda r: f"{r['refused_p99_ms']} ms",
            "growth of memory": lambda r: f"{r['rss_growth_mb']} MB",
            "end after SIGTERM": lambda r: f"{r['sigterm_s']} s",
        },
    ),
    section(
        "kills",
        **{
            "model process killed 100 times, stopped 20 times, reloaded 20 times: answers": lambda r: (
                f"{r['answers']:,}"
            ),
            "wrong answers, refused requests": lambda r: f"{r['wrong']}, {r['refused']}",
        },
    ),
    section(
        "slow",
        **{
            "1,000 slow headers, 200 bodies of 1 GB, 200 clients that read nothing: p99 of `/health`": lambda r: (
                f"{r['health_p99_ms']} ms"
            ),
            "growth of memory with them": lambda r: f"{r['rss_growth_mb']} MB",
            "they are closed after": lambda r: ", ".join(f"{s} s" for s in r["closed_within_s"]),
        },
    ),
    section(
        "disconnects",
        **{
            "1,000 clients that leave: other answers that changed": lambda r: r["other_answers_changed"],
            "their texts that are still computed": lambda r: f"{r['texts_left']:.0f} after {r['cancelled_after_s']} s",
        },
    ),
    section(
        "hostile",
        **{"10,000 hostile requests: answers": statuses, "slowest of these answers": lambda r: f"{r['slowest_s']} s"},
    ),
    section(
        "xss",
        **{
            "5,000 payloads of cross-site scripting: HTML answers with the elements of the input": lambda r: (
                f"{r['html']['same']:,}"
            ),
            "with these in another order": lambda r: r["html"]["moved"],
            "scripts executed, elements added to the page": lambda r: f"{r['executed']}, {r['foreign_elements']}",
        },
    ),
    section(
        "schemathesis",
        **{"schemathesis on `/spec`: requests, failures": lambda r: f"{r['requests']:,}, {r['failures']}"},
    ),
    section(
        "memory",
        **{
            "100,000 requests: growth of memory of front process, model process": lambda r: ", ".join(
                f"{mb} MB" for mb in r["growth_mb"]
            )
        },
    ),
)
SERVE = "python -m benchmarks.serve DATA MODELS SECTION"
SERVER = {
    "throughput": Table(
        ("system", "sentences/s", "section", "commit"), {"serve": throughput}, ("torch", "ctranslate2"), SERVE
    ),
    "libretranslate": Table(
        ("model: clients", "glassformer", "LibreTranslate", "ratio"),
        {"serve_libretranslate": libretranslate},
        ("torch", "ctranslate2"),
    ),
    "answer times": Table(("what", "time", "section", "commit"), {"serve": ANSWER_TIMES}, command=SERVE),
    "robustness": Table(("what", "result", "section", "commit"), {"serve": ROBUSTNESS}, command=SERVE),
}
