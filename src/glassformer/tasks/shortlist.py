"""The vocabulary shortlist of a translator, learned from parallel text."""

from collections.abc import Callable, Iterable, Iterator

from glassformer.corpora.example import Example, with_both_sides
from glassformer.corpora.lines import chunks
from glassformer.errors import UserError
from glassformer.generate.shortlist import Pair, Shortlist
from glassformer.tasks.base import Log
from glassformer.tasks.texts import no_op
from glassformer.tasks.translation import Translator
from glassformer.tokens.tags import tags_of

CHUNK = 4096
"""Number of sentence pairs that are tokenized together."""


def learn_shortlist(
    task: Translator, pairs: Iterable[Example], progress: Callable[[int], None] = no_op, log: Log = no_op
) -> Shortlist:
    """Learn which tokens the tokens of a source may be translated to. The task gets the shortlist.

    Args:
        pairs: sentence pairs, for instance the training text. Those with a blank side and those that are too long for
            the model are left out.
        progress: called with the number of pairs processed since the last call.
        log: called with the number of pairs that were left out.

    Raises:
        UserError: there are no pairs.
    """
    limit = task.config.max_len

    def rows() -> Iterator[Pair]:
        yield from (([tag], [task.tokenizer.eos_id]) for tag in tags_of(task.tokenizer).values())  # nothing more
        n_too_long = 0
        for chunk in chunks(with_both_sides(pairs, log), CHUNK):
            sides = [
                t.encode_batch([task.texts(pair)[i] for pair in chunk]) for i, t in enumerate(task.tokenizer.sides)
            ]
            short = [pair for pair in zip(*sides, strict=True) if max(map(len, pair)) < limit]
            n_too_long += len(chunk) - len(short)
            yield from short
        if n_too_long:
            log(f"warning: {n_too_long:,} pairs that are too long for the model were left out (limit: {limit} tokens)")

    learned = Shortlist.learn(rows(), task.config.vocab_size, task.tokenizer.eos_id, progress)
    if not len(learned.targets):
        raise UserError(
            "no sentence pairs to learn from: all lines are blank on one side, or too long for the model."
            "\n  Give the pairs that the model was trained on."
        )
    task.shortlist = learned
    return learned
