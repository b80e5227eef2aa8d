"""One thread a process, the same random numbers in every test, and shapes that are checked.

The signatures of tensors are checked in the tests of modules, unless JAXTYPING_DISABLE=1 is set. In CI (CI=true) a
skipped test is a failure.
"""

import atexit
import gc
import os
import shutil
import signal
import tempfile

os.environ.setdefault("OMP_NUM_THREADS", "1")  # also for the commands that tests start; one test runs on each core
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
CACHES = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
os.environ.setdefault("ZIG_GLOBAL_CACHE_DIR", f"{CACHES}/zig")  # compiled C libraries, which take a minute
if "PYTEST_XDIST_WORKER" not in os.environ:  # choices by measuring hold for all tests, and are not those of the user
    os.environ["XDG_CACHE_HOME"] = CACHE = tempfile.mkdtemp(prefix="glassformer-tests-")
    atexit.register(shutil.rmtree, CACHE, ignore_errors=True)

import jaxtyping
import torch

if not torch.cuda.is_available():  # the kernels are interpreted; Triton decides when it is first imported
    os.environ.setdefault("TRITON_INTERPRET", "1")
CHECKS_SHAPES = not jaxtyping.config.jaxtyping_disable  # JAXTYPING_DISABLE=1
if CHECKS_SHAPES:  # before the modules are imported
    jaxtyping.install_import_hook(
        ["glassformer.nn", "glassformer.models", "glassformer.objectives", "glassformer.generate", "glassformer.data"],
        "beartype.beartype",
    )

import hypothesis
import pytest

hypothesis.settings.register_profile("no deadline", deadline=None)  # tests do not depend on the speed of the machine
hypothesis.settings.load_profile("no deadline")
torch.set_num_threads(1)
IN_CI = os.environ.get("CI") == "true"
BROWSERS = ("chromium-headless-shell", "chromium")  # the same engine without windows takes half the time
CHROMIUM = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), "")
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--no-first-run"),
]


MODULES = {"data", "generate", "interop", "kernels", "nn", "objectives", "oracles", "runtime", "training"}
"""Folders whose tests check shapes."""
WHOLE_RUNS = {
    f"test_{name}.py" for name in ("auto_batch", "divergence", "memory", "messages", "model_fields", "profile")
}
"""Files of `training` that train whole models, where checks take most of the time. Others check the same functions."""
checked: set[tuple[str, str]] = set()
"""Files, and in each the tests and the values of parameters with which shapes have been checked."""


def pytest_runtest_setup(item):
    """Check shapes in the first case of each test of modules, and in the first of each file with a value of a
    parameter: checks take longer than most tests."""
    if not CHECKS_SHAPES:
        return
    values = item.callspec.id.split("-") if hasattr(item, "callspec") else []
    keys = {(str(item.path), name) for name in (item.originalname, *values)}
    is_of_modules = item.path.relative_to(item.config.rootpath / "tests").parts[0] in MODULES
    is_of_modules &= item.path.parent.name != "training" or item.path.name not in WHOLE_RUNS
    jaxtyping.config.update("jaxtyping_disable", not is_of_modules or keys <= checked)
    checked.update(keys)


@pytest.fixture(autouse=True)
def pipes():
    """A command that a test ran in this process let a closed pipe end it, and thereby the tests that come after."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)


@pytest.fixture(autouse=True)
def seeded():
    """The same random numbers in every test, whichever others run."""
    # Without a GPU, torch.manual_seed would note for each kind of device where it was called.
    (torch.manual_seed if torch.cuda.is_available() else torch.default_generator.manual_seed)(0)


@pytest.fixture(scope="module")
def browser():
    """Chromium. Without it or playwright, tests are skipped; CI has both."""
    playwright = pytest.importorskip("playwright.sync_api")
    if not os.path.exists(CHROMIUM):
        pytest.skip("needs Chromium")
    with playwright.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def tabs(browser):
    """A function that opens a page. At the end, pages must have caused no messages, errors, dialogs or other requests.

    Args of the function: URL; how those of allowed requests begin; handlers of routes; a text that messages may have.
    """
    contexts, problems = [], []

    def open_tab(url, allowed, *, width=1280, scheme="light", routes=None, expected=None, **options):
        viewport = {"width": width, "height": 900}
        context = browser.new_context(viewport=viewport, color_scheme=scheme, **options)
        contexts.append(context)
        page = context.new_page()
        for path, handler in (routes or {}).items():
            page.route(path, handler)
        page.on("console", lambda message: (expected and expected in message.text) or problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: problems.append(dialog.message))
        page.on("request", lambda request: request.url.startswith(allowed) or problems.append(request.url))
        page.goto(url)
        return page

    yield open_tab
    for context in contexts:
        for page in context.pages:
            page.unroute_all(behavior="ignoreErrors")  # a request may be on its way
        context.close()
    assert not problems


def pytest_collection_modifyitems(items):
    """Files with slow tests come first, so that the processes of pytest-xdist, which take whole files, end together;
    those with a browser after others, so that it is not read from the disk for both processes at once."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: (item.path not in slow, item.path.parent.name == "browser"))


def pytest_collection_finish():
    """The modules and the tests need not be searched for garbage again and again."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish():
    gc.unfreeze()  # else extensions report at the end what they believe to be leaks


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
