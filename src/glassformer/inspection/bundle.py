"""One script from JavaScript modules, for pages that consist of one file."""

import base64
import hashlib
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w]+)\.js";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?function\*? (\w+)|const (\w+)|class (\w+))", re.MULTILINE)
DOCUMENTATION = re.compile(r"^ */\*\*((?!\*/).)*\*/\n", re.MULTILINE | re.DOTALL)
OF_INSPECTION = "glassformer.inspection"


@cache
def source(name: str, packages: Sequence[str] = (OF_INSPECTION,)) -> str:
    """Read a file of the folder `page/` of the first package that has it."""
    found = next(path for package in packages if (path := files(package) / "page" / name).is_file())
    return found.read_text(encoding="utf-8")


def bundle(entry: str, packages: Sequence[str] = (OF_INSPECTION,)) -> str:
    """Bundle a JavaScript module and its imports into one script.

    Each module becomes a function that returns its exports. Comments with documentation and types are left out.
    """
    bundled: dict[str, str] = {}

    def add(name: str) -> None:
        if name in bundled:
            return
        text = source(f"{name}.js", packages)
        bundled[name] = ""  # set before the imports are added, so that circular imports terminate
        for match in IMPORT.finditer(text):
            add(match[2])
        exports = [match[1] or match[2] or match[3] for match in EXPORT.finditer(text)]
        text = IMPORT.sub(lambda m: f"const {{{' '.join(m[1].split())}}} = ${m[2]};\n", text)
        text = DOCUMENTATION.sub("", EXPORT.sub("", text))
        del bundled[name]
        bundled[name] = f"const ${name} = (() => {{\n{text}\nreturn {{ {', '.join(exports)} }};\n}})();\n"

    add(entry)
    return '"use strict";\n' + "".join(bundled.values())


def hash_of(text: str) -> str:
    """Hash of an inlined script or style, as the Content-Security-Policy names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
