"""Compiles the kernels to a shared library, and those of decoding to WebAssembly. Run by the build hook of the package,
or: python build.py [FOLDER], python build.py web

The sources in PER_VARIANT are compiled once for each instruction set; the library selects the best that the processor
has.
"""

import hashlib
import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FOLDER = Path(__file__).parent
WORKING = tempfile.gettempdir()
"""Working directory of compilers. By the path from there, Zig keeps its C libraries, which take it a minute."""

LIBRARIES = {"darwin": "libkernels.c.dylib", "win32": "libkernels.c.dll"}
"""File name of the library by operating system. With two dots, Python does not take it for an extension module."""

LIBRARY = LIBRARIES.get(sys.platform, "libkernels.c.so")

LINK = {"darwin": f"-Wl,-install_name,@rpath/{LIBRARIES['darwin']}", "win32": ""}
"""Flags of the linker by operating system. Without -install_name, the library names the folder where it was built."""

TARGETS = {
    "manylinux_2_17_x86_64": ("x86_64-linux-gnu.2.17", "x86_64", "linux"),
    "manylinux_2_17_aarch64": ("aarch64-linux-gnu.2.17", "aarch64", "linux"),
    "musllinux_1_1_x86_64": ("x86_64-linux-musl", "x86_64", "linux"),
    "musllinux_1_1_aarch64": ("aarch64-linux-musl", "aarch64", "linux"),
    "macosx_11_0_x86_64": ("x86_64-macos.11.0", "x86_64", "darwin"),
    "macosx_11_0_arm64": ("aarch64-macos.11.0", "arm64", "darwin"),
    "win_amd64": ("x86_64-windows-gnu", "AMD64", "win32"),
}
"""Platforms of wheels -> target of `zig cc`, processor as `platform.machine` names it, `sys.platform`."""

AVX512 = "-mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mfma -mf16c"
X86 = {
    "avx512bf16": ("has_avx512_bf16()", f"{AVX512} -mavx512bf16"),
    "avx512": ("has_avx512_vnni()", AVX512),
    "avxvnni": ("has_avx_vnni()", "-mavx2 -mfma -mf16c -mavxvnni"),
    "avx2": ("has_avx2()", "-mavx2 -mfma -mf16c"),
}
ARM = {
    "i8mm": ("has_i8mm_bf16()", "-march=armv8.2-a+i8mm+bf16"),  # Armv8.6 has both
    "dotprod": ("has_dot_product()", "-march=armv8.2-a+dotprod"),
}
VARIANTS = {"x86_64": X86, "AMD64": X86, "aarch64": ARM, "arm64": ARM}
"""Instruction sets by processor, the fastest first: condition under which the processor has it, compiler flags."""

PER_VARIANT = {"program.c": "-ffp-contract=off", "training.c": ""}
"""Sources that are compiled for each instruction set, and their flags. In decoding, the compiler must not use fused
multiply-add of its own accord, so that all instruction sets compute the same bits."""

# Not -ffast-math: it changes how the whole process rounds denormal numbers.
FLAGS = "-std=gnu11 -O3 -fPIC -pthread -fno-math-errno -fno-trapping-math -fvisibility=hidden -Wall -Wextra -Wno-psabi"

RELAXED = "-msimd128 -mrelaxed-simd"
WEB = {"relaxed": RELAXED, "signed": f"{RELAXED} -DSIGNED", "simd": "-msimd128"}
"""Builds for WebAssembly, and their flags. Which of them a browser computes exactly, the page tests."""

WEB_FLAGS = (
    "-target wasm32-wasi -std=gnu11 -O3 -ffp-contract=off -fno-math-errno -fno-trapping-math -mbulk-memory"
    " -fvisibility=hidden -Wall -Wextra -Wno-psabi -DSUFFIX=web -mexec-model=reactor -Wl,--no-entry -Wl,-s"
    " -Wl,-z,stack-size=262144 -Wl,--export=__heap_base"
)


def web_file(build: str) -> str:
    """File name of a build for WebAssembly."""
    return f"web-{build}.wasm"


def source_hash() -> str:
    """Hash of the sources, by which a library that was built from other sources is recognized."""
    digest = hashlib.sha256()
    for path in sorted([*FOLDER.glob("*.c"), *FOLDER.glob("*.h"), FOLDER / "build.py"]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def compilers() -> list[list[str]]:
    """Commands of C compilers on this machine: that of $CC, those of the system, and that of the package `ziglang`.
    Without -mcpu, the last would use all instructions of this processor in the basic instruction set `plain`.
    """
    found = [shlex.split(os.environ["CC"])] if os.environ.get("CC") else []
    found += [[path] for name in ("cc", "gcc", "clang") if (path := shutil.which(name))]
    return [*found, [sys.executable, "-m", "ziglang", "cc", "-mcpu=baseline"]]


def compile_library(
    compiler: list[str], target: Path, extra: str = "", machine: str = platform.machine(), system: str = sys.platform
) -> None:
    """Compile the library with one compiler. Instruction sets that it does not know are left out.

    Args:
        extra: further flags, such as those of a sanitizer.
        machine: processor to compile for, as `platform.machine` names it.
        system: operating system to compile for, as `sys.platform` names it.

    Raises:
        OSError, subprocess.CalledProcessError: there is no such compiler, or it fails.
    """
    flags = f"{FLAGS} {extra}".split()

    def run(*arguments: str) -> None:
        subprocess.run([*compiler, *flags, *arguments], check=True, capture_output=True, text=True, cwd=WORKING)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        variants = {"plain": ("1", ""), **dict(reversed(VARIANTS.get(machine, {}).items()))}

        def run_source(variant: str, source: str) -> None:
            options = f"{variants[variant][1]} {PER_VARIANT[source]}"
            if "zig" in shlex.join(compiler):  # Zig does not know the name armv8.2-a
                options = options.replace("-march=armv8.2-a", "-mcpu=generic")
            output = f"{folder}/{source}.{variant}.o"
            run(f"-DSUFFIX={variant}", *options.split(), "-c", str(FOLDER / source), "-o", output)

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            running = {
                variant: [pool.submit(run_source, variant, source) for source in PER_VARIANT] for variant in variants
            }
        built: dict[str, str] = {}
        for variant, (condition, _) in variants.items():
            try:
                for compiled in running[variant]:
                    compiled.result()
            except subprocess.CalledProcessError as error:
                if variant == "plain":
                    raise
                print(f"kernels without {variant}: {error.stderr.strip().splitlines()[:1]}", file=sys.stderr)
            else:
                built = {variant: condition, **built}
        table = " ".join(f"X({variant}, {condition})" for variant, condition in built.items())
        library = folder / target.name
        run(
            f"-DVARIANTS(X)={table}", f'-DSOURCE_HASH="{source_hash()}"', "-shared", "-o", str(library),
            *(str(FOLDER / name) for name in ("library.c", "threads.c", "parallel.c")),
            *(str(folder / f"{source}.{variant}.o") for source in PER_VARIANT for variant in built), "-lm",
            *LINK.get(system, "-ldl").split(), *([] if extra or system == "darwin" else ["-s"]),
        )  # fmt: skip
        temporary = target.with_name(f".{target.name}.{os.getpid()}")
        shutil.copyfile(library, temporary)
        temporary.replace(target)  # a process that has loaded the old library keeps it


def build(folder: Path = FOLDER) -> Path | None:
    """Compile the library with the first compiler that works. None: there is none."""
    target = folder / LIBRARY
    for compiler in compilers():
        try:
            compile_library(compiler, target, extra=os.environ.get("CFLAGS", ""))
        except OSError:
            continue
        except subprocess.CalledProcessError as error:
            print(f"{shlex.join(compiler)}: {error.stderr.strip()[-2000:]}", file=sys.stderr)
            continue
        return target
    return None


def build_for(platform_tag: str, folder: Path = FOLDER) -> Path:
    """Compile the library for a platform in TARGETS, with the package `ziglang`.

    Raises:
        subprocess.CalledProcessError: it is not installed, or it fails.
    """
    zig_target, machine, system = TARGETS[platform_tag]
    target = folder / LIBRARIES.get(system, "libkernels.c.so")
    compiler = [sys.executable, "-m", "ziglang", "cc", "-target", zig_target]
    compile_library(compiler, target, extra="-s", machine=machine, system=system)
    return target


def build_web(folder: Path = FOLDER) -> list[Path]:
    """Compile the modules of WebAssembly with the package `ziglang`. Without it: the modules that are already there, as
    in the source distribution. Empty: these are missing or of other sources, or the compiler fails.
    """
    modules = [folder / web_file(name) for name in WEB]
    if importlib.util.find_spec("ziglang") is None:
        is_current = all(path.exists() and source_hash().encode() in path.read_bytes() for path in modules)
        return modules if is_current else []
    sources = [str(FOLDER / name) for name in ("web.c", "program.c")]
    for path, flags in zip(modules, WEB.values(), strict=True):
        command = [sys.executable, "-m", "ziglang", "cc", *WEB_FLAGS.split(), *flags.split()]
        command += [f'-DSOURCE_HASH="{source_hash()}"', "-o", str(path), *sources]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True, cwd=WORKING)
        except subprocess.CalledProcessError as error:
            print(f"{shlex.join(command[:3])}: {error.stderr.strip()[-2000:]}", file=sys.stderr)
            return []
    return modules


if __name__ == "__main__":
    if sys.argv[1:] == ["web"]:
        modules = build_web()
        print(*modules if modules else ["no WebAssembly: pip install ziglang"], sep="\n")
        sys.exit(not modules)
    built = build(*map(Path, sys.argv[1:]))
    print(built or "no C compiler was found: install gcc or clang, or: pip install ziglang")
    sys.exit(not built)
