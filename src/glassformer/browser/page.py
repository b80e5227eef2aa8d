"""A page that contains a model: one HTML file with the model, the kernels in WebAssembly, and the server's page.

The page is that of `serve` with another `api.js`, which asks a worker in place of a server.
"""

import base64
import html
import json
import re
import zlib
from collections.abc import Sequence

from glassformer.browser.model_file import model_file
from glassformer.errors import UserError
from glassformer.inspection.bundle import OF_INSPECTION, bundle, hash_of, source
from glassformer.kernels.build import FOLDER, WEB, source_hash, web_file
from glassformer.tasks.base import AnyTask

MAX_DEFLATED = 16_000_000
"""Size of the largest model that is compressed: it saves a tenth of a small one, and of a large one takes seconds."""

MODEL = "model.bin"
"""The file that a page for a web site loads its model from."""

LIBRARIES = ("d3",)
PACKAGES = ("glassformer.browser", "glassformer.serve", OF_INSPECTION)


def web_kernels() -> dict[str, bytes]:
    """The builds of the kernels for WebAssembly, by name.

    Raises:
        UserError: the package was installed without them.
    """
    builds = {name: FOLDER / web_file(name) for name in WEB}
    contents = {name: path.read_bytes() if path.exists() else b"" for name, path in builds.items()}
    if any(source_hash().encode() not in content for content in contents.values()):
        raise UserError(
            "the kernels for WebAssembly are missing, or were built from other sources.\n"
            f"  Build them: pip install ziglang, then python {FOLDER / 'build.py'} web"
        )
    return contents


def libraries() -> list[str]:
    """The libraries that draw."""
    return [source(f"vendor/{name}.min.js") for name in LIBRARIES]


def inspection_page(scripts: Sequence[str], style: str) -> str:
    """The page in a frame that shows what happens in the model. The policy of the outer page holds for it."""
    licences = "".join(f"<!--\n{name}\n{source(f'vendor/{name}.LICENSE')}-->\n" for name in LIBRARIES)
    title = "<title>Inside of the model</title>"
    head = f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">{title}<style>{style}</style></head>'
    return f"{head}<body><main></main>{licences}{''.join(f'<script>{text}</script>' for text in scripts)}</body></html>"


def encoded(content: bytes) -> str:
    """Bytes as text."""
    return base64.b64encode(content).decode()


def page(task: AnyTask, name: str) -> str:
    """The page of a model, which contains it.

    Args:
        name: name of the model.

    Raises:
        ConfigError: it has not all that the model needs.
        UserError: the package was installed without the kernels for WebAssembly.
    """
    model = model_file(task, name)
    is_deflated = len(model) <= MAX_DEFLATED
    return page_of(name, model, encoded(zlib.compress(model, 9) if is_deflated else model), is_deflated=is_deflated)


def site(task: AnyTask, name: str) -> dict[str, bytes]:
    """The page of a model for a web site, and the file that it loads. Arguments and errors: as of `page`."""
    model = model_file(task, name)
    return {"index.html": page_of(name, model, is_deflated=False).encode(), MODEL: model}


def page_of(name: str, model: bytes, content: str = "", *, is_deflated: bool) -> str:
    """The page of the file of a model.

    Args:
        content: the file as the page contains it; empty: the page loads MODEL from its server.
    """
    script, style, worker = bundle("main", PACKAGES), source("serve.css", PACKAGES), bundle("worker", PACKAGES)
    inner_scripts, inner_style = [*libraries(), bundle("live", PACKAGES)], source("style.css")
    policy = "; ".join(
        [
            "default-src 'none'",
            f"script-src {' '.join(map(hash_of, [script, *inner_scripts]))} 'wasm-unsafe-eval'",
            "worker-src blob:",
            f"style-src {hash_of(style)} {hash_of(inner_style)}",
            "img-src data:",
            *([] if content else ["connect-src 'self'"]),
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    parts = {
        "policy": policy,
        "title": html.escape(name),
        "style": style,
        "script": script,
        "worker": worker,
        "kernels": "\n".join(
            f'<script type="application/wasm" data-build="{name}">{encoded(zlib.compress(content, 9))}</script>'
            for name, content in web_kernels().items()
        ),
        "inspection": encoded(zlib.compress(inspection_page(inner_scripts, inner_style).encode(), 9)),
        "sum": json.dumps(
            {"size": len(model), "sum": zlib.adler32(model), "deflated": is_deflated, "url": "" if content else MODEL}
        ),
        "model": content,
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], source("browser.html", PACKAGES))
