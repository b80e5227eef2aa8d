"""Build hook: compiles the kernels where there is a C compiler, and for WebAssembly where the package ziglang is
installed. Without one, the package is installed without them.
"""

import importlib.util
import os
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class KernelsHook(BuildHookInterface[Any]):
    """Adds the library of the kernels to the wheel. GLASSFORMER_KERNELS=none leaves out those for one platform."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        path = Path(self.root) / "src" / "glassformer" / "kernels" / "build.py"
        spec = importlib.util.spec_from_file_location("build_kernels", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        web = module.build_web()
        if not web:
            self.app.display_info("The package ziglang is not installed: glassformer is installed without WebAssembly.")
        elif version != "editable":
            build_data["artifacts"] += [str(path.relative_to(self.root)) for path in web]
        if os.environ.get("GLASSFORMER_KERNELS") == "none":
            return
        library = module.build()
        if library is None:
            self.app.display_warning("No C compiler was found: glassformer is installed without its CPU kernels.")
        elif version != "editable":  # an editable installation uses the library beside the sources
            build_data["artifacts"].append(str(library.relative_to(self.root)))
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
