"""The text on the page: where words are highlighted, and that no text is lost."""

import pytest

from tests.serve.test_page import LONG, opened, pytestmark, typed, until

__all__ = ["opened", "pytestmark"]

SENTENCES = " ".join(f"{LONG} The {i} small cats, which are old, sleep in the garden." for i in range(150))

DISPLACED = """async () => {
  const [field, copy] = ["textarea", ".copy"].map((name) => document.querySelector(".mirror " + name));
  const text = copy.firstChild, words = [...field.value.matchAll(/\\w+/g)];
  return words.filter(({ 0: word, index }) => {
    const range = new Range();
    range.setStart(text, index);
    range.setEnd(text, index + word.length);
    const box = range.getBoundingClientRect();
    const caret = document.caretPositionFromPoint((box.left + box.right) / 2, (box.top + box.bottom) / 2);
    return caret?.offsetNode !== field || caret.offset < index || caret.offset > index + word.length;
  }).length;
}"""
"""Number of words of the source of which the highlighted range is not where the field shows the word."""


@pytest.mark.parametrize("width", [390, 800, 1280])
def test_words_are_highlighted_where_they_are_in_300_sentences(opened, width):
    page = opened(width=width)
    page.set_viewport_size({"width": width, "height": 16000})
    page.fill(".mirror textarea", SENTENCES)
    page.wait_for_timeout(300)
    assert page.evaluate("document.querySelector('.mirror textarea').value.match(/\\w+/g).length") > 2000
    assert page.evaluate(DISPLACED) == 0


def test_a_text_survives_a_reload_and_another_interface_language(opened):
    page = opened()
    typed(page, LONG)
    page.reload()
    until(page, "text => document.querySelector('.mirror textarea')?.value === text", LONG)
    page.get_by_text("Français").click()
    until(page, "text => document.querySelector('.mirror textarea')?.value === text", LONG)


def test_a_text_over_the_limit_is_not_cut(opened):
    page = opened()
    text = "cat " * 6000
    page.fill(".mirror textarea", text)
    page.wait_for_timeout(300)
    assert page.input_value(".mirror textarea") == text
    assert "20,000" in page.locator("main").inner_text()


def test_saving_without_a_change_is_no_correction(opened):
    page, asked = opened(), []
    typed(page, LONG)
    page.on("request", lambda request: asked.append(request.url))
    page.get_by_role("button", name="Correct").click()
    page.get_by_role("button", name="Save").click()
    page.wait_for_timeout(300)
    assert not [url for url in asked if url.endswith("/suggest")]
