"""The page of the server, as one file without requests to other servers."""

import re
from functools import cache

from glassformer.inspection.bundle import OF_INSPECTION, bundle, hash_of, source

PACKAGES = ("glassformer.serve", OF_INSPECTION)


@cache
def page() -> tuple[str, str]:
    """The page, and its Content-Security-Policy, which allows only its own script and style, by their hashes."""
    script, style = bundle("main", PACKAGES), source("serve.css", PACKAGES)
    policy = "; ".join(
        [
            "default-src 'none'",
            f"script-src {hash_of(script)}",
            f"style-src {hash_of(style)}",
            "connect-src 'self'",
            "frame-src 'self'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        ]
    )
    parts = {"style": style, "script": script}
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], source("serve.html", PACKAGES)), policy
