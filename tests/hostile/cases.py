"""All hostile cases, in a fixed order, each with an id of its own."""

from tests.hostile.calls import all_calls
from tests.hostile.case import Case
from tests.hostile.corpora import all_corpora
from tests.hostile.damage import all_damage
from tests.hostile.options import all_options
from tests.hostile.streams import all_streams


def all_cases() -> list[Case]:
    """The cases of all groups. The part of an id before the first slash is the group."""
    cases = [*all_damage(), *all_options(), *all_streams(), *all_corpora(), *all_calls()]
    ids = [case.id for case in cases]
    assert len({*ids}) == len(ids), sorted({id for id in ids if ids.count(id) > 1})[:5]
    return cases
