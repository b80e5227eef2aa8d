"""Placing of inline codes by word alignment, compared with where human translators put them.

Data: the French translation of Python's documentation. Its codes are roles such as :func:`x`, ``literals``, links,
*emphasis*, |substitutions| and placeholders. An entry with the same codes on both sides is a pair. A code whose content
is equal on both sides is kept as it is, like <code> in HTML. Emphasis, links and roles whose content is translated are
a pair of tags around its words. The codes are taken out of both sides, the two texts are aligned, and the codes are put
back into the human translation. A code is right if it is where the human translator put it: between the same words; in
"exactly" also the same side of punctuation, and nothing but white space differs.

The training and eflomal see the texts without codes, those of the pairs included:

    python -m benchmarks.markup write PAIRS FOLDER
    glassformer train FOLDER/train.en FOLDER/train.fr --preset tiny --minutes 18 --threads 1 --out FOLDER/model
    eflomal-align -s FOLDER/words.en -t FOLDER/words.fr -f FOLDER/forward -r FOLDER/reverse
    python -m benchmarks.markup measure PAIRS FOLDER

The rules were chosen on the even pairs. The odd ones are reported; with `even` as the last argument, the even ones.
"""

import gzip
import json
import re
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from benchmarks.machine import save
from glassformer.corpora.lines import read_lines
from glassformer.documents.inline import aligned_positions, detach, put_at, tag_pairs
from glassformer.documents.words import is_word
from glassformer.tasks.alignment import align
from glassformer.tasks.registry import load

CODE = re.compile(
    r"(?P<role>:[a-zA-Z][\w:+.-]*:)`(?P<content>[^`]+?)(?P<target> <[^<>`]*>)?`"
    r"|``(?:[^`]|`(?!`))+``"
    r"|`(?P<link>[^`]+?)(?P<url> <[^<>`]*>)?`__?"
    r"|(?P<star>\*\*?)(?P<emphasis>[^*\s](?:[^*]*[^*\s])?)(?P=star)"
    r"|\|[\w-]+\||%(?:\(\w+\))?[sdifrxge]|\{\w*\}"
)
MARK = re.compile(r"</?e\d+>|<code>\d+</code>")
"""What codes are written as: numbers are equal for equal codes."""


@dataclass(frozen=True)
class Pair:
    """An entry, with marks for its codes."""

    en: str
    fr: str

    @property
    def source(self):
        return detach(self.en, [mark.span() for mark in MARK.finditer(self.en)])

    @property
    def target(self):
        """The translation without codes, and without the space and the punctuation that they leave."""
        text = MARK.sub(lambda mark: " " if mark[0].startswith("<code") else "", self.fr)
        text = re.sub(r"(?<=\() +| +(?=[.,)])", "", re.sub(" +", " ", text).strip())
        text = text.lstrip(",:;.)— \u00a0") if self.source.before else text
        return text.rstrip(",:;(— \u00a0") if self.source.after else text


def kinds(text):
    """The codes of a text: match, kind of code, and the words that it encloses, or None."""
    for match in CODE.finditer(text):
        words = match["emphasis"] or match["link"] or (match["target"] and match["content"])
        yield match, (match["role"], match["target"], match["url"], match["star"]), words


def marked(en, fr):
    """The pair; None if the codes are not the same."""
    sides = [list(kinds(text)) for text in (en, fr)]
    equal = Counter(match[0] for match, *_ in sides[0]) & Counter(match[0] for match, *_ in sides[1])
    numbers, counts, texts = {}, [], []
    for text, codes in zip((en, fr), sides, strict=True):
        left, result, position, keys = equal.copy(), "", 0, Counter()
        for match, kind, words in codes:
            kept = left[match[0]] > 0
            if not kept and words is None:
                return None
            left[match[0]] -= kept
            key = match[0] if kept else kind
            keys[key] += 1
            i = numbers.setdefault(key, len(numbers))
            result += text[position : match.start()] + (f"<code>{i}</code>" if kept else f"<e{i}>{words}</e{i}>")
            position = match.end()
        counts.append(keys)
        texts.append(result + text[position:])
    return Pair(*texts) if numbers and counts[0] == counts[1] else None


def read(path):
    """The pairs with the same codes on both sides, and the texts without codes."""
    pairs, others = [], []
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for record in map(json.loads, file):
            en, fr = (record[side].replace("\n", " ") for side in ("en", "fr"))
            if pair := marked(en, fr):
                pairs.append(pair)
            elif not CODE.search(en) and not CODE.search(fr):
                others.append((en, fr))
    return pairs, others


def write(path, folder):
    """Write the texts to train on, and those for eflomal: in lower case, words without punctuation around them."""
    pairs, others = read(path)
    texts = [(pair.source.core, pair.target) for pair in pairs] + others
    for side, name in enumerate(("en", "fr")):
        lines = [" ".join(text[side].split()) for text in texts if all(re.search(r"\w", part) for part in text)]
        (folder / f"train.{name}").write_text("".join(f"{line}\n" for line in lines))
        lines = [" ".join(map(bare, text[side].split())) for text in texts]
        (folder / f"words.{name}").write_text("".join(f"{line}\n" for line in lines))


def bare(word):
    return re.sub(r"^\W+(?=\w)|(?<=\w)\W+$", "", word.lower())


def positions(text, measure):
    """The codes of a text, and how much text is before each; for a pair of tags before its start and its end."""
    marks = list(MARK.finditer(text))
    at = [measure(MARK.sub("", text[: mark.start()])) for mark in marks]
    pairs = dict(tag_pairs([mark[0] for mark in marks]))
    ends = set(pairs.values())
    return Counter((mark[0], at[i], at[pairs.get(i, i)]) for i, mark in enumerate(marks) if i not in ends)


def n_letters(text):
    return sum(map(is_word, text))


def n_characters(text):
    return len("".join(text.split()))


def is_complete(text, pair):
    """Whether a text has the codes of a pair, each as often as there, and nested."""
    found = MARK.findall(text)
    tags = [mark for mark in found if not mark.startswith("<code")]
    return Counter(found) == Counter(MARK.findall(pair.en)) and 2 * len(list(tag_pairs(tags))) == len(tags)


def score(pairs, found):
    """Fractions of pairs and codes.

    Args:
        found: where the codes of each pair are put.
    """
    counts = Counter()
    for pair, at in zip(pairs, found, strict=True):
        source = pair.source
        output = put_at(source, pair.target, at)
        within = {span.text for span in source.inner}
        counts["kept"] += is_complete(output, pair)
        for name, measure in (("right", n_letters), ("exactly", n_characters)):
            expected = positions(pair.fr, measure)
            found = expected & positions(output, measure)
            counts[name] += found.total()
            for codes, n in ((expected, 1), (found, 0)):
                for code, number in codes.items():
                    kind = "outside" if code[0] not in within else "tags" if code[0].startswith("<e") else "codes"
                    counts[kind, name, n] += number
            counts["all"] = counts["all"] + (expected.total() if name == "right" else 0)
    return {
        "kept_and_nested": round(counts["kept"] / len(pairs), 4),
        **{f"placed_{name}": round(counts[name] / counts["all"], 4) for name in ("right", "exactly")},
        **{
            f"{kind}_right": round(counts[kind, "right", 0] / counts[kind, "right", 1], 4)
            for kind in ("outside", "codes", "tags")
        },
    }


def by_alignment(pairs, alignments):
    """Where the alignment of each pair puts its codes."""
    return [
        aligned_positions(pair.source, pair.target, alignment)
        for pair, alignment in zip(pairs, alignments, strict=True)
    ]


def measure(path, folder, which="odd"):
    pairs, _ = read(path)
    chosen = range(int(which == "odd"), len(pairs), 2)
    directions = [[line.split() for line in read_lines(folder / name)] for name in ("forward", "reverse")]
    union = [
        [tuple(map(int, link.split("-"))) for link in {*directions[0][i], *directions[1][i]}] for i in range(len(pairs))
    ]
    some = [pairs[i] for i in chosen]
    ours = align(
        load(folder / "model", device="cpu"), [pair.source.core for pair in some], [pair.target for pair in some]
    )
    codes = [positions(pair.fr, len) for pair in pairs]
    record = {
        "pairs": len(pairs),
        "pairs_of_equal_codes": sum("<e" not in pair.en for pair in pairs),
        "measured_pairs": len(some),
        "measured_codes": sum(codes[i].total() for i in chosen),
        "own_alignment": score(some, by_alignment(some, ours)),
        "eflomal": score(some, by_alignment(some, [union[i] for i in chosen])),
        "in_proportion": score(some, by_alignment(some, [[]] * len(some))),
    }
    print(json.dumps(record, indent=2))
    return record


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    arguments[:2] = map(Path, arguments[:2])
    if command == "write":
        write(*arguments)
    else:
        result = measure(*arguments)
        if arguments[2:] != ["even"]:
            save("markup", result, "python -m benchmarks.markup measure PAIRS FOLDER")
