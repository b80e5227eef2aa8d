"""Pages in Chromium, opened from disk without a network; skipped without playwright or Chromium (CI has both)."""

import pytest

from glassformer.inspection.ablation import AblationResult, Component
from glassformer.inspection.inspect import inspect
from glassformer.inspection.page import ablation_page, inspection_page, profile_page, report_page, worked_page
from glassformer.inspection.worked_example import worked_example, worked_example_of_model
from tests.inspection.models import CASES, at_most, make, text_for
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
    task = make(name, family)
    inspection = inspect(task, text_for(name), **at_most(task, 7))
    for width, scheme in ((1280, "light"), (390, "dark")):
        page = opened(inspection_page(inspection.to_dict()), width=width, scheme=scheme)
        assert page.locator(".overview .thumbnail").count() == sum(
            a.weights.shape[0]
            for a in inspection.attention
            if a.kind == ("cross" if name == "translation" else inspection.attention[0].kind)
        )
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_the_whole_way_has_each_token_and_layer_and_leads_to_each_head(opened):
    inspection = inspect(make("translation", "transformer"), "The black cat sat", "Der Hund")
    page = opened(inspection_page(inspection.to_dict()))
    tables = page.locator("table.way")
    for table, side in zip(tables.all(), inspection.sides.values(), strict=True):
        assert table.locator("tbody tr").count() == len(side.tokens)
    maps = {(a.kind, a.layer): a for a in inspection.attention}
    n_heads = sum(a.weights.shape[0] for a in maps.values())
    assert page.locator("table.way .thumbnail").count() == n_heads
    row = tables.last.locator("tbody tr").nth(1)
    layers = [name for name in inspection.lens if name.startswith("decoder")]
    words = [inspection.lens[name][1].best[0].text for name in layers] + [inspection.predictions[1].best[0].text]
    cells = [text for text in row.locator("td").all_inner_texts() if text]
    assert cells == [word.replace(" ", "\N{MIDDLE DOT}") for word in words]
    row.hover()
    assert tables.last.evaluate(
        "(table) => [table.classList.contains('lit'), table.style.getPropertyValue('--row')]"
    ) == [True, "1"]
    tables.last.locator("thead th").nth(-2).locator(".heads").last.locator("button").nth(1).click()
    assert page.get_by_role("radio", name="cross-attention").is_checked()
    assert (
        page.locator('.overview .thumbnail[aria-pressed="true"]').get_attribute("title")
        == f"layer {max(layer for _, layer in maps) + 1}, head 2"
    )


def test_all_is_printed(opened):
    page = opened(inspection_page(inspect(make("translation", "transformer"), "The black cat sat").to_dict()))
    page.emulate_media(media="print")
    for area in page.locator(".scroll, .overview, .bars").all():
        style = area.evaluate(
            "(node) => { const { maxHeight, overflowY } = getComputedStyle(node); return [maxHeight, overflowY]; }"
        )
        assert style == ["none", "visible"]


def test_selecting_heads_and_hovering_updates_the_page(opened):
    inspection = inspect(make("translation", "transformer"), "The black cat sat", "Der Hund")
    page = opened(inspection_page(inspection.to_dict()))
    mean = pixels(page, ".heat canvas")
    page.locator(".overview .thumbnail").nth(3).click()
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


CLIPPED = """() => {
  const outside = [...document.querySelectorAll(".plot svg text")].filter((text) => {
    const [box, plot, svg] = [text, text.closest(".plot"), text.closest("svg")]
      .map((node) => node.getBoundingClientRect());
    return box.left < plot.left || box.right > plot.left + text.closest(".plot").scrollWidth || box.bottom > svg.bottom;
  });
  const cut = [...document.querySelectorAll(".heat .rows span, th, h1")]
    .filter((node) => node.scrollWidth > node.clientWidth);
  return [...outside, ...cut].map((node) => node.textContent);
}"""
"""Texts of axes and tables that are cut."""


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_labels_are_not_cut_and_count_layers_from_1(opened, width, scheme):
    task = make("translation", "transformer")
    record = inspect(task, "The black cat sat", "Der Hund").to_dict()
    example = worked_example_of_model(task, "The cat", target="Hund", layer="decoder.1.cross_attention", head=2)
    losses = [
        AblationResult(component, {"bleu": 20.0, "loss": 1.5}, {"bleu": 0.0, "loss": 0.5})
        for component in (Component("encoder.0.self_attention", 0), Component("decoder.2.cross_attention", 1))
    ]
    pages = [
        (inspection_page(record), ["decoder layer 1", "layer 3", "cross-attention", "feed-forward"]),
        (
            worked_page(example),
            ["decoder layer 2, cross-attention, head 2", "Module path", "decoder.1.cross_attention"],
        ),
        (
            ablation_page({"bleu": 20.0, "loss": 1.0}, losses, "heads", 3),
            ["encoder layer 1, self-attention, head 1", "decoder layer 3, cross-attention, head 2", "module path"],
        ),
    ]
    for text, shown in pages:
        page = opened(text, width=width, scheme=scheme)
        page.add_style_tag(content=".section { content-visibility: visible; }")
        found = page.locator("main").inner_text() + " ".join(page.locator(".plot text").all_text_contents())
        assert [name for name in shown if name not in found] == []
        assert page.evaluate(CLIPPED) == []
        paths = page.locator("code").all_text_contents()  # a module path is shown as such, or not at all
        for path in ("encoder.0", "decoder.0", "decoder.1", "decoder.2", "encoder.0.self_attention"):
            assert found.count(path) == sum(path in code for code in paths)


def test_a_cell_of_the_attention_map_shows_its_lines_and_a_token_its_cells(opened):
    page = opened(inspection_page(inspect(make("translation", "transformer"), "The black cat", "Der Hund").to_dict()))
    before = pixels(page, ".lines canvas")
    rows, columns = (page.locator(f".view .heat .{side} span").all_text_contents() for side in ("rows", "columns"))
    cells = page.locator(".view .cell-area")
    cells.scroll_into_view_if_needed()
    size = cells.evaluate("node => parseInt(getComputedStyle(node).getPropertyValue('--cell'))")
    cells.hover(position={"x": 2.5 * size, "y": 1.5 * size})
    assert page.locator(".lines .on").all_text_contents() == [rows[1], columns[2]]
    one = pixels(page, ".lines canvas")
    assert one != before
    cells.hover(position={"x": 1.5 * size, "y": 1.5 * size})
    assert pixels(page, ".lines canvas") not in (one, before)
    page.mouse.move(1, 1)
    assert page.locator(".lines .on").count() == 0
    assert pixels(page, ".lines canvas") == before
    cells.focus()
    page.keyboard.press("ArrowDown")
    assert page.locator(".lines .on").all_text_contents() == [rows[1], columns[0]]
    page.keyboard.press("Escape")
    page.locator(".lines .left button").nth(1).hover()
    band = page.locator(".band:visible")
    assert band.count() == 1
    assert band.bounding_box()["y"] == pytest.approx(cells.bounding_box()["y"] + size, abs=2)
    page.mouse.move(1, 1)
    assert band.count() == 0


LIT = """() => Object.fromEntries([...document.querySelectorAll(".matrix")].map((matrix) => [
  matrix.querySelector(".label, figcaption").textContent.split(" ")[0],
  [...matrix.querySelectorAll("tr")].flatMap((row, i) =>
    [...row.querySelectorAll("td")].flatMap((cell, j) => cell.classList.contains("on") ? [[i, j]] : [])),
]).filter(([, cells]) => cells.length))"""
"""Highlighted cells by matrix; rows are those of the table."""


def test_a_number_of_the_worked_example_highlights_what_it_is_computed_from(opened):
    page = opened(worked_page(worked_example()))

    def cell(name, row, column):
        table = page.locator(".matrix").filter(has=page.locator(".label", has_text=f"{name} [")).locator("table")
        return table.locator("tr:has(td)").nth(row).locator("td").nth(column)

    row_of_x, column_of_w = [[1, j] for j in range(4)], [[i, 2] for i in range(4)]
    cell("Q", 1, 2).hover()
    assert page.evaluate(LIT) == {"x": row_of_x, "W_query": column_of_w}
    assert page.locator(".bar").text_content() == "Q[2, 3] = 2, from row 2 of x and column 3 of W_query"
    page.mouse.move(1, 1)
    assert page.evaluate(LIT) == {}
    cell("Q", 0, 0).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    assert page.evaluate(LIT) == {"x": row_of_x, "W_query": column_of_w}
    cell("outputs", 2, 1).hover()
    assert page.evaluate(LIT) == {"weights": [[3, j] for j in range(3)], "V": [[i, 1] for i in range(3)]}
    assert (
        page.locator(".matrix td[tabindex='0']").count() == page.locator(".matrix table").count()
    )  # one stop of Tab each


def test_large_matrices_of_the_worked_example_highlight_rows_and_columns(opened):
    task = make("translation", "transformer", d_model=44)
    page = opened(worked_page(worked_example_of_model(task, "The black cat", layer="encoder.0.self_attention", head=2)))
    queries = page.locator("figure.matrix", has_text="Q [").locator(".cell-area")
    queries.hover(position={"x": 3, "y": 3})
    lit = page.locator("figure.matrix:has(.band:visible)").locator("figcaption").all_text_contents()
    assert [text.split(" ")[0] for text in lit] == ["x", "W_query"]


def test_the_page_of_ablate_says_where_a_metric_did_not_change(opened):
    heads = [Component("decoder.0.cross_attention", 0), Component("decoder.0.cross_attention", 1)]
    losses = [AblationResult(head, {"bleu": 20.0, "loss": 1.5}, {"bleu": 0.0, "loss": 0.5}) for head in heads]
    page = opened(ablation_page({"bleu": 20.0, "loss": 1.0}, losses, "heads", 3))
    assert page.locator("section, .section p").all_text_contents()[1:] == [
        "Change of BLEU. Full model: 20.00, and the same without any of the heads.",
        "Most important component first.",
    ]
    assert page.locator(".matrix td").all_text_contents() == ["+0.5000", "+0.5000"]
    row = page.locator("section, .section").nth(1).locator("tbody tr").first.locator("th, td").all_text_contents()
    assert row == [
        "decoder layer 1, cross-attention, head 1",
        "20.00",
        "0",
        "1.5000",
        "+0.5000",
        "decoder.0.cross_attention",
    ]
    losses[1].change["bleu"], losses[1].metrics["bleu"] = -3.0, 17.0
    page = opened(ablation_page({"bleu": 20.0, "loss": 1.0}, losses, "heads", 3))
    assert page.locator(".matrix").first.locator("td").all_text_contents() == ["0", "-3.00"]
    for kind, name, columns in (
        ("sublayers", "decoder.0.feedforward", ["", "feed-forward"]),
        ("layers", "decoder.0", ["", "change"]),
    ):
        page = opened(
            ablation_page({"loss": 1.0}, [AblationResult(Component(name), {"loss": 1.5}, {"loss": 0.5})], kind, 3)
        )
        assert page.locator(".matrix tr").nth(0).locator("th").all_text_contents() == columns
        assert page.locator(".matrix tr").nth(1).locator("th, td").all_text_contents() == ["decoder layer 1", "+0.5000"]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_tokens_are_displayed_as_text(opened, text):
    task = make("translation", "transformer")
    page = opened(inspection_page(inspect(task, text, text).to_dict()))
    assert page.locator("blockquote").first.text_content() == "source" + text.strip()
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
