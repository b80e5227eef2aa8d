"""Pages in Chromium, opened from disk without a network; skipped without playwright or Chromium (CI has both)."""

import pytest

from glassformer.inspection.inspect import inspect
from glassformer.inspection.page import ablation_page, inspection_page, profile_page, report_page, worked_page
from glassformer.inspection.worked_example import worked_example, worked_example_of_model
from tests.inspection.models import CASES, make, text_for
from tests.inspection.test_page import HOSTILE

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::ResourceWarning")]


@pytest.fixture
def opened(tabs, tmp_path):
    """A function that opens a page."""

    def open_page(text, **options):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.html"
        path.write_text(text, encoding="utf-8")
        page = tabs(path.as_uri(), ("file:", "data:"), offline=True, **options)
        page.wait_for_selector("main h1")
        return page

    return open_page


def pixels(page, selector):
    return page.evaluate(f"document.querySelector('{selector}').toDataURL()")


@pytest.mark.parametrize(("name", "family"), CASES)
def test_pages_of_every_family_render(opened, name, family):
    inspection = inspect(make(name, family), text_for(name), max_length=7)
    for width, scheme in ((1280, "light"), (390, "dark")):
        page = opened(inspection_page(inspection.to_dict()), width=width, scheme=scheme)
        assert page.locator(".thumbnail").count() == sum(
            a.weights.shape[0]
            for a in inspection.attention
            if a.kind == ("cross" if name == "translation" else inspection.attention[0].kind)
        )
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_selecting_heads_and_hovering_updates_the_page(opened):
    inspection = inspect(make("translation", "transformer"), "The black cat sat", "Der Hund")
    page = opened(inspection_page(inspection.to_dict()))
    mean = pixels(page, ".heat canvas")
    page.locator(".thumbnail").nth(3).click()
    assert page.locator('.thumbnail[aria-pressed="true"]').get_attribute("title") == "layer 2, head 2"
    one = pixels(page, ".heat canvas")
    assert one != mean
    page.get_by_role("radio", name="encoder self-attention").check(force=True)
    page.get_by_role("radio", name="roll-out of all layers").check(force=True)
    assert pixels(page, ".heat canvas") not in (mean, one)
    area = page.locator(".cell-area").first
    area.hover(position={"x": 5, "y": 5})
    weight = inspection.rollout["encoder"][0, 0]
    assert f"{weight:.4f}" in page.locator(".heat output").first.text_content()
    assert page.locator(".heat .rows .on").count() == 1
    area.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    assert f"{inspection.rollout['encoder'][1, 1]:.4f}" in page.locator(".heat output").first.text_content()
    page.keyboard.press("Enter")
    page.mouse.move(1, 1)
    assert page.locator(".heat .rows .on").count() == 1
    page.keyboard.press("Escape")
    assert page.locator(".heat .rows .on").count() == 0
    button = page.locator(".lines .left button").first
    button.hover()
    assert page.locator(".lines .on").count() == 1
    button.click()
    page.mouse.move(1, 1)
    assert button.get_attribute("aria-pressed") == "true"
    assert page.locator(".lines .on").count() == 1


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_tokens_are_displayed_as_text(opened, text):
    task = make("translation", "transformer")
    page = opened(inspection_page(inspect(task, text, text).to_dict()))
    assert page.locator("blockquote").first.text_content() == "source" + text
    assert page.locator("main script, main img, main iframe, main object").count() == 0
    opened(worked_page(worked_example_of_model(task, text, target=text)))


def test_the_other_pages_render(opened):
    page = opened(worked_page(worked_example()))
    assert page.locator("summary h2").all_text_contents()[:3] == [
        "1. Input",
        "2. Weight matrices",
        "3. Queries, keys and values",
    ]
    assert "0.4683" in page.locator("main").text_content()
    page.locator("summary").first.click()
    assert page.locator("details").first.get_attribute("open") is None
    losses = []
    from glassformer.inspection.ablation import AblationResult, Component

    for head in range(2):
        losses.append(
            AblationResult(Component("encoder.0.self_attention", head), {"loss": 1.0 + head}, {"loss": float(head)})
        )
    page = opened(ablation_page({"loss": 1.0}, losses, "heads", 3))
    assert page.locator("table tbody tr").count() == 2
    record = {
        "run": "r", "task": "translation", "metric": "bleu", "unit": "pairs",
        "curves": {"loss": [[1, 2.0], [2, 1.0]], "dev_bleu": [[2, 3.0]]},
        "data": {}, "samples": {"inputs": ["a"], "expected": ["b"], "outputs": {"finished": ["<b>c</b>"]}},
        "training": {}, "machine": {"torch": "2"}, "options": {"steps": 2}, "command": "glassformer train <x>",
    }  # fmt: skip
    page = opened(report_page(record))
    assert page.locator(".plot svg").count() == 2
    assert "<b>c</b>" in page.locator("main").text_content()


@pytest.mark.parametrize("device", ["cpu", "an H100"])
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_the_page_of_a_profile_renders(opened, device, width, scheme):
    kernel = "void <b>gemm</b>_" + "x" * 300
    record = {
        "run": "r", "device": device, "threads": 1, "precision": "bf16", "compiled": True, "cuda_graphs": True,
        "processes": 2, "steps": 7, "elapsed_s": 4.0,
        "seconds": {"steps" if device != "cpu" else "forward": 3.0, "data": 1.0},
        "step_ms": {"forward": 1.0, "backward": 2.0}, "padding": {"source": 0.25}, "targets_per_s": 1234.5,
        "flop_per_s": 2e12, "product_flop_per_s": 8e12, "utilization": 0.25,
        "memory_bytes": {"weights": 1024, "gradients": 2048, "optimizer state": 4096, "activations": None},
        "peak_bytes": 1 << 30, "operations": [{"name": kernel, "calls": 2.0, "ms": 0.5, "fraction": 1.0}],
    }  # fmt: skip
    page = opened(profile_page(record), width=width, scheme=scheme)
    text = page.locator("main").text_content()
    for shown in ("1,235", "2 TFLOP/s", "8 TFLOP/s", "25%", "3 s", "75%", "4 KiB", "1 GiB", "rank 0 of 2", kernel):
        assert shown in text
    assert ("without CUDA graphs" in text) == (device != "cpu")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
