"""One thread a process, the same random numbers in every test, and shapes that are checked.

The signatures of tensors are checked unless JAXTYPING_DISABLE=1 is set, as `make test` sets it for the tests that run
whole commands and training runs. In CI (CI=true) a skipped test is a failure.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # also for the commands that tests start; one test runs on each core
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import jaxtyping
import torch

if not torch.cuda.is_available():  # the kernels are interpreted; Triton decides when it is first imported
    os.environ.setdefault("TRITON_INTERPRET", "1")
if not jaxtyping.config.jaxtyping_disable:  # before the modules are imported
    jaxtyping.install_import_hook(
        ["glassformer.nn", "glassformer.models", "glassformer.objectives", "glassformer.generate", "glassformer.data"],
        "beartype.beartype",
    )

import pytest

torch.set_num_threads(1)
IN_CI = os.environ.get("CI") == "true"


@pytest.fixture(autouse=True)
def seeded():
    """The same random numbers in every test, whichever others run."""
    torch.manual_seed(0)


def pytest_collection_modifyitems(items):
    """Files with slow tests come first, so that the processes of pytest-xdist, which take whole files, end together."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


def fail_if_skipped(report):
    """In CI everything that a test needs is installed: a skipped test means that something is missing."""
    if IN_CI and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, which is a failure in CI: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    return fail_if_skipped((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report():
    return fail_if_skipped((yield))
