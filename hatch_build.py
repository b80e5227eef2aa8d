"""Build hook: compiles the kernels where there is a C compiler, and for WebAssembly where the package ziglang is
installed. Without one, the package is installed without them.
"""

import hashlib
import importlib.util
import json
import os
import re
import sys
import sysconfig
from datetime import UTC, datetime
from importlib.metadata import version as installed_version
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import platform_tags

LINKED = {
    "compiler-rt": ("MIT", ""),
    "wasi-libc": ("MIT", ""),
    "mingw-w64": ("ZPL-2.1", "win"),
    "winpthreads": ("MIT", "win"),
}
"""Libraries of ziglang that are linked into the kernels: license, and beginning of the platform tags of the wheels that
contain them. The texts of the licenses are in the folder licenses/."""

SCRIPTS = {"d3": "pkg:npm/d3", "plot": "pkg:npm/%40observablehq/plot"}
"""Scripts of others in the pages, all with the license ISC. Their first lines have the versions."""


def load_build(root: Path) -> ModuleType:
    """The module that compiles the kernels. The package itself cannot be imported while it is built."""
    path = root / "src" / "glassformer" / "kernels" / "build.py"
    spec = importlib.util.spec_from_file_location("build_kernels", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def file_component(path: Path) -> dict[str, Any]:
    """A file of a wheel, as a component of a bill of materials."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return {"type": "file", "name": path.name, "hashes": [{"alg": "SHA-256", "content": digest}]}


def library_component(name: str, version: str, license_id: str, purl: str) -> dict[str, Any]:
    """Code of others in a wheel, as a component of a bill of materials."""
    licenses = [{"license": {"id": license_id}}]
    return {"type": "library", "name": name, "version": version, "licenses": licenses, "purl": purl}


def bill_of_materials(root: Path, name: str, version: str, platform_tag: str, compiled: list[Path]) -> dict[str, Any]:
    """What the wheel of a platform contains, as a CycloneDX software bill of materials (SBOM). The time is that of
    SOURCE_DATE_EPOCH.

    Args:
        compiled: files of the wheel that were compiled with ziglang.
    """
    zig = installed_version("ziglang")
    linked = [
        library_component(part, f"of ziglang {zig}", license_id, f"pkg:pypi/ziglang@{zig}")
        for part, (license_id, platforms) in LINKED.items()
        if platform_tag.startswith(platforms)
    ]
    scripts = []
    for script, purl in SCRIPTS.items():
        path = root / f"src/glassformer/inspection/page/vendor/{script}.min.js"
        found = re.match(r"//.* v([\d.]+) ", path.read_text(encoding="utf-8"))
        assert found is not None
        scripts.append(library_component(script, found[1], "ISC", f"{purl}@{found[1]}"))
    time = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), UTC)
    component = library_component(name, version, "Apache-2.0", f"pkg:pypi/{name}@{version}")
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"timestamp": time.isoformat(), "component": component},
        "components": [*map(file_component, compiled), *linked, *scripts],
    }


def platform_of_machine() -> str:
    """Tag of the platform of a wheel with a library for this machine. On macOS, Python may be for two processors, and
    names versions that pip does not know."""
    if sys.platform == "darwin":
        return next(iter(platform_tags()))
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")


class KernelsHook(BuildHookInterface[Any]):
    """Adds the library of the kernels to the wheel: for this machine, or with a bill of materials for the platform
    GLASSFORMER_PLATFORM. GLASSFORMER_KERNELS=none leaves it out. The source distribution gets WebAssembly only."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        module = load_build(root)
        web = module.build_web()
        if not web:
            self.app.display_info("The package ziglang is not installed: glassformer is installed without WebAssembly.")
        elif version != "editable":
            build_data["artifacts"] += [path.relative_to(root).as_posix() for path in web]
        if self.target_name != "wheel" or os.environ.get("GLASSFORMER_KERNELS") == "none":
            return
        if platform_tag := os.environ.get("GLASSFORMER_PLATFORM"):
            folder = root / "build" / "kernels" / platform_tag
            folder.mkdir(parents=True, exist_ok=True)
            library = module.build_for(platform_tag, folder)
            build_data["force_include"][str(library)] = f"glassformer/kernels/{library.name}"
            materials = bill_of_materials(
                root, self.metadata.name, self.metadata.version, platform_tag, [library, *web]
            )
            (folder / "glassformer.cdx.json").write_text(json.dumps(materials, indent=1), encoding="utf-8")
            build_data["sbom_files"].append(str(folder / "glassformer.cdx.json"))
            build_data["tag"] = f"py3-none-{platform_tag}"
            build_data["pure_python"] = False
            return
        library = module.build()
        if library is None:
            self.app.display_warning("No C compiler was found: glassformer is installed without its CPU kernels.")
        elif version != "editable":  # an editable installation uses the library beside the sources
            build_data["artifacts"].append(library.relative_to(root).as_posix())
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{platform_of_machine()}"
