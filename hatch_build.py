"""Build hook: compiles the kernels where there is a C compiler, and for WebAssembly where the package ziglang is
installed. Without one, the package is installed without them.
"""

import importlib.util
import json
import os
import sysconfig
from importlib.metadata import version as installed_version
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LINKED = {"web": ("wasi-libc", "MIT"), "win": ("mingw-w64", "ZPL-2.1")}
"""What a wheel contains besides our code and compiler-rt: C libraries of ziglang that are linked statically, with their
licences (the folder licenses/)."""


def load_build(root: Path) -> ModuleType:
    """The module that compiles the kernels. The package itself cannot be imported while it is built."""
    path = root / "src" / "glassformer" / "kernels" / "build.py"
    spec = importlib.util.spec_from_file_location("build_kernels", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def bill_of_materials(name: str, version: str, platform_tag: str) -> dict[str, Any]:
    """What the wheel of a platform contains, as a CycloneDX software bill of materials (SBOM)."""
    zig = installed_version("ziglang")
    linked = {("compiler-rt", "MIT"), LINKED["web"], *([LINKED["win"]] if platform_tag.startswith("win") else [])}
    parts = [
        {
            "type": "library",
            "name": part,
            "version": f"of ziglang {zig}",
            "licenses": [{"license": {"id": licence}}],
            "purl": f"pkg:pypi/ziglang@{zig}",
        }
        for part, licence in sorted(linked)
    ]
    component = {"type": "library", "name": name, "version": version, "purl": f"pkg:pypi/{name}@{version}"}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "metadata": {"component": {**component, "licenses": [{"license": {"id": "Apache-2.0"}}]}},
        "components": parts,
    }


class KernelsHook(BuildHookInterface[Any]):
    """Adds the library of the kernels to the wheel: for this machine, or with a bill of materials for the platform
    GLASSFORMER_PLATFORM. GLASSFORMER_KERNELS=none leaves it out."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        module = load_build(root)
        web = module.build_web()
        if not web:
            self.app.display_info("The package ziglang is not installed: glassformer is installed without WebAssembly.")
        elif version != "editable":
            build_data["artifacts"] += [str(path.relative_to(root)) for path in web]
        if os.environ.get("GLASSFORMER_KERNELS") == "none":
            return
        if platform_tag := os.environ.get("GLASSFORMER_PLATFORM"):
            folder = root / "build" / "kernels" / platform_tag
            folder.mkdir(parents=True, exist_ok=True)
            library = module.build_for(platform_tag, folder)
            build_data["force_include"][str(library)] = f"glassformer/kernels/{library.name}"
            materials = bill_of_materials(self.metadata.name, self.metadata.version, platform_tag)
            (folder / "glassformer.cdx.json").write_text(json.dumps(materials, indent=1), encoding="utf-8")
            build_data["sbom_files"].append(str(folder / "glassformer.cdx.json"))
            build_data["tag"] = f"py3-none-{platform_tag}"
            build_data["pure_python"] = False
            return
        library = module.build()
        if library is None:
            self.app.display_warning("No C compiler was found: glassformer is installed without its CPU kernels.")
        elif version != "editable":  # an editable installation uses the library beside the sources
            build_data["artifacts"].append(str(library.relative_to(root)))
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
