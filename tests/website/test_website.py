"""The site: all links lead somewhere, nothing comes from another server, and search works from the disk."""

import os
import subprocess
import sys
from html.parser import HTMLParser
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[2]


class Links(HTMLParser):
    """The ids, links and sources of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids, self.links, self.sources = set(), [], []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids |= {found[name] for name in ("id", "name") if found.get(name)}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        for name in ("src", "href"):
            if tag != "a" and found.get(name):
                self.sources.append(found[name])


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("website") / "built"
    command = [sys.executable, ROOT / "website" / "build.py", folder]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", env={**os.environ, "NO_COLOR": "1"})
    assert done.returncode == 0, done.stderr
    assert "No issues found" in done.stderr
    return folder / "site"


def test_every_link_leads_somewhere(site):
    pages = {path: Links(path) for path in site.rglob("*.html")}
    assert len(pages) > 50
    dead = []
    for path, page in pages.items():
        if path.name == "404.html":
            continue
        for link in [*page.links, *page.sources]:
            url = urlsplit(link)
            if url.scheme in ("http", "https", "data"):
                continue
            target = (path.parent / unquote(url.path)).resolve() if url.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.exists() or (
                url.fragment and target in pages and unquote(url.fragment) not in pages[target].ids
            ):
                dead.append(f"{path.relative_to(site)}: {link}")
    assert not dead


def test_no_page_loads_anything_from_another_server(site):
    for path in site.rglob("*.html"):
        assert [source for source in Links(path).sources if urlsplit(source).netloc] == []


def test_every_command_has_a_page_with_all_options(site):
    from glassformer.cli import SUMMARIES

    for commands in SUMMARIES.values():
        for name, summary in commands.items():
            text = (site / "commands" / f"{name}.html").read_text(encoding="utf-8")
            assert summary.split("<")[0].split("`")[0] in text
    assert "--bpe-dropout" in (site / "commands" / "train.html").read_text(encoding="utf-8")  # a rare one


@pytest.mark.slow
def test_search_finds_a_page_from_the_disk(site, tabs):
    tab = tabs((site / "index.html").as_uri(), ("file:", "data:", "blob:"), expected="Autofocus")
    tab.keyboard.press("Control+k")
    query = tab.get_by_placeholder("Search").last
    query.press_sequentially("length penalty")
    # Until all is typed and found, the results are those of its beginning.
    tab.get_by_role("option", selected=True).filter(has_text="--length-penalty").wait_for()
    tab.keyboard.press("Enter")
    tab.wait_for_url(lambda url: not url.endswith("index.html"))
    assert "length-penalty" in tab.inner_text("main").lower()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["index", "commands/translate", "api/functions", "coming-from", "troubleshooting"])
def test_pages_are_accessible(site, tabs, name, scheme):
    axe = Path(find_spec("axe_core_python").origin).with_name("axe.min.js")
    tab = tabs((site / f"{name}.html").as_uri(), ("file:", "data:", "blob:"), scheme=scheme)
    tab.add_script_tag(content=axe.read_text(encoding="utf-8"))
    only = "" if scheme == "light" else "runOnly: ['color-contrast'], "  # nothing but the colors differs
    found = tab.evaluate(
        f"axe.run(document, {{ {only}resultTypes: ['violations'] }}).then("
        "r => r.violations.map(v => `${v.id}: ${v.nodes.map(n => n.html).slice(0, 3)}`))"
    )
    assert found == []


def test_a_site_that_could_not_be_built_is_built_again(tmp_path, monkeypatch):
    spec = spec_from_file_location("build_of_the_site", ROOT / "website" / "build.py")
    build = module_from_spec(spec)
    spec.loader.exec_module(build)

    def stopped(pages):
        raise KeyboardInterrupt

    monkeypatch.setattr(build, "copy_pages", stopped)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            build.main(tmp_path / "site")
    (tmp_path / "other").mkdir()
    with pytest.raises(SystemExit, match="no site that this script has written"):
        build.main(tmp_path / "other")
