"""Build the site from the README, docs/, the help of the commands, the docstrings and the messages in the source.

usage: python website/build.py FOLDER [MODEL]

Replaces FOLDER and writes FOLDER/site, whose pages a browser opens from the disk, search included. A translator in the
folder MODEL is exported as a page that translates by itself and shows its attention.
"""

import re
import shutil
import subprocess
import sys
import tomllib
from html import escape
from pathlib import Path

import tomli_w
from messages import messages_page

ROOT = Path(__file__).parents[1]

SHIM = "https://unpkg.com/iframe-worker/shim"
"""What the template of Zensical loads so that search works from the disk."""

API = {
    "Functions": ["glassformer.api", "glassformer.tasks.registry.load", "glassformer.pipelines.pipeline"],
    "Tasks": [
        "glassformer.tasks.translation.Translator",
        "glassformer.tasks.classification.Classifier",
        "glassformer.tasks.regression.Regressor",
        "glassformer.tasks.tagging.Tagger",
        "glassformer.tasks.question_answering.QuestionAnswerer",
        "glassformer.tasks.causal_lm.LanguageModel",
        "glassformer.tasks.summarization.Summarizer",
        "glassformer.tasks.masked_lm.MaskedLM",
        "glassformer.tasks.feature_extraction.SentenceEmbedder",
        "glassformer.tasks.skip_gram.WordVectors",
    ],
    "Errors": ["glassformer.errors"],
}
"""Page of the Python API -> what it documents."""

MEMBERS = {"glassformer.api": ["train", "distill", "inspect", "record_activations"]}
"""Members of a module that are documented, unless all."""


def moved(text: str) -> str:
    """A page of the repository, with the links of the site."""
    text = text.replace("](../benchmarks/results/", "](images/").replace("](docs/", "](").replace('src="docs/', 'src="')
    text = re.sub(r"\[docs/([\w-]+)\.md\]", r"[\1]", text)
    return re.sub(r"\]\((?:\.\./)?([A-Z]+\.md)", lambda match: f"]({page_name(match[1])}", text)


def page_name(name: str) -> str:
    """File name in the site of a page of the root of the repository."""
    return "index.md" if name == "README.md" else name.lower()


def copy_pages(pages: Path) -> None:
    """Pages of the repository."""
    for path in [*(ROOT / "docs").glob("*.md"), *ROOT.glob("*.md")]:
        text = path.read_text(encoding="utf-8")
        (pages / page_name(path.name)).write_text(moved(text), encoding="utf-8")
    for path in (ROOT / "docs").glob("*/*"):
        (pages / path.parent.name).mkdir(exist_ok=True)
        shutil.copy(path, pages / path.parent.name)
    for path in (ROOT / "benchmarks" / "results").glob("*.svg"):
        shutil.copy(path, pages / "images")
    for path in (ROOT / "website").glob("*.[cj]s*"):
        shutil.copy(path, pages)


def command_page(name: str) -> str:
    """Help of a command with all of its options, as Markdown."""
    from glassformer import cli

    if name in cli.COMMANDS:
        cli.show_full_description(name)
    text = cli.app[name].generate_docs(output_format="markdown")
    text = text.replace(f"```console\n{name} ", f"```console\nglassformer {name} ")
    text = re.sub(r", --empty-[a-z-]+", "", text)
    text = re.sub(r"(?<=\S) (?=Example:  )", "\n\n", text)
    text = re.sub(r"^Example:  (.*?) *$", r"```console\n\1\n```", text, flags=re.MULTILINE)
    parts = re.split(r"(```.*?```|`[^`]*`)", text, flags=re.DOTALL)
    return "".join(part if part.startswith("`") else escape(part, quote=False) for part in parts)


def write_commands(pages: Path) -> list[str]:
    """A page for each command. Returns their names."""
    from glassformer import cli

    (pages / "commands").mkdir()
    names = []
    for commands in cli.SUMMARIES.values():
        for name in commands:
            (pages / "commands" / f"{name}.md").write_text(command_page(name), encoding="utf-8")
            names.append(f"commands/{name}.md")
    return names


def options_page() -> str:
    """The options of training and decoding, as Markdown."""
    from glassformer.decode_config import DecodeConfig
    from glassformer.train_config import TrainConfig

    text = "# Options\n"
    for title, config in {
        "Training: `train`, `TrainConfig`": TrainConfig,
        "Decoding: calls, `DecodeConfig`": DecodeConfig,
    }.items():
        text += f"\n## {title}\n\n| argument | meaning |\n|---|---|\n"
        for name, field in config.model_fields.items():
            meaning = escape(field.description or "", quote=False).replace("|", r"\|")
            default = (
                "" if field.default in (None, (), False) or "Default" in meaning else f" Default: {field.default}."
            )
            text += f"| `{name}` | {meaning}{default} |\n"
    return text


def write_api(pages: Path) -> list[str]:
    """Pages of the Python API, which mkdocstrings fills. Returns their names."""
    (pages / "api").mkdir()
    names = []
    for title, objects in API.items():
        text = f"# {title}\n"
        for name in objects:
            text += f"\n::: {name}\n    options:\n      show_root_toc_entry: true\n"
            if members := MEMBERS.get(name):
                text += f"      members: [{', '.join(members)}]\n"
        names.append(f"api/{title.lower()}.md")
        (pages / names[-1]).write_text(text, encoding="utf-8")
    (pages / "api" / "options.md").write_text(options_page(), encoding="utf-8")
    return [*names, "api/options.md"]


def localize(site: Path) -> None:
    """Let pages load our script instead of the one that the builder's template loads from another server."""
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        depth = "../" * (len(path.relative_to(site).parts) - 1)
        path.write_text(text.replace(SHIM, f"{depth}worker.js"), encoding="utf-8")


def main(folder: Path, model: Path | None = None) -> None:
    """Write the pages and build the site.

    Raises:
        SystemExit: the folder is no site; or the builder has a warning, for example a link that leads nowhere.
    """
    if folder.exists() and not (folder / "zensical.toml").exists():
        sys.exit(f"{folder}: exists, and is no site that this script has written.\n  Name another folder.")
    shutil.rmtree(folder, ignore_errors=True)
    pages = folder / "pages"
    pages.mkdir(parents=True)
    (folder / "zensical.toml").touch()  # the folder is a site of this script, also if it fails
    copy_pages(pages)
    (pages / "messages.md").write_text(messages_page(), encoding="utf-8")
    config = tomllib.loads((ROOT / "website" / "zensical.toml").read_text(encoding="utf-8"))
    config["project"]["plugins"]["mkdocstrings"]["handlers"]["python"]["paths"] = [str(ROOT / "src")]
    generated = {"Commands": write_commands(pages), "Python API": write_api(pages)}
    if model:
        export = [sys.executable, "-m", "glassformer", "export", str(model), "--to", "html", "--out"]
        subprocess.run([*export, str(pages / "translator.html")], check=True)
        shutil.copy(ROOT / "website" / "live.md", pages)
        generated["Look inside"] = ["live.md", "inspection.md"]
    for section in config["project"]["nav"]:
        for title in section.keys() & generated.keys():
            section[title] = generated[title]
    (folder / "zensical.toml").write_text(tomli_w.dumps(config), encoding="utf-8")
    zensical = Path(sys.executable).with_name("zensical")
    built = subprocess.run([zensical, "build", "--strict"], cwd=folder, capture_output=True, encoding="utf-8")
    print(built.stdout, built.stderr, sep="", end="", file=sys.stderr)
    if built.returncode:
        sys.exit(built.returncode)
    localize(folder / "site")
    print(f"Open {folder / 'site' / 'index.html'}")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folders = [Path(argument) for argument in sys.argv[1:]]
    sys.argv.append("--help-all")  # the help then has all options
    main(*folders)
