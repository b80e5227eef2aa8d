"""All hostile cases, in a fixed order, each with an id of its own."""

from tests.hostile.case import Case
from tests.hostile.damage import all_damage


def all_cases() -> list[Case]:
    """The cases of all groups. The part of an id before the first slash is the group."""
    cases = [*all_damage()]
    ids = [case.id for case in cases]
    assert len({*ids}) == len(ids), [id for id in ids if ids.count(id) > 1][:5]
    return cases
