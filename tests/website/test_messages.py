"""The page of messages has those that the commands print."""

import html
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "website"))

from messages import messages_page

from tests.journeys.conftest import glassformer


def patterns():
    """A regular expression for each row of the page."""
    rows = re.findall(r"^\| (.*) \| (.*) \|$", html.unescape(messages_page()), re.MULTILINE)
    texts = [" ".join(row).replace(r"\|", "|").strip() for row in rows]
    return [re.compile(".*?".join(map(re.escape, text.split("…")))) for text in texts if text.count(" ") > 3]


@pytest.mark.parametrize(
    "arguments",
    [
        ["translate", "no-such-folder"],
        ["train", "no-such-file.tsv", "--out", "run"],
        ["train", "one-column.tsv", "--out", "run"],
        ["evaluate", ".", "empty.en"],
        ["export", "empty.en", "--to", "html", "--out", "page.html"],
        ["classify", "."],
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_the_message_of_a_command_is_on_the_page(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("one-column.tsv").write_text("text without a tab\n" * 3)
    Path("empty.en").write_text("")
    done = glassformer(*arguments)
    assert done.returncode
    message = " ".join(done.stderr.removeprefix("error: ").split())
    found = [pattern.pattern for pattern in patterns() if pattern.fullmatch(message)]
    assert found, message
