import threading

import pytest

from glassformer.training.prepare import ahead


def test_items_come_in_order_and_are_computed_in_another_thread():
    threads = set()

    def items():
        for i in range(7):
            threads.add(threading.get_ident())
            yield i

    assert list(ahead(items())) == list(range(7))
    assert len(threads - {threading.get_ident()}) == len(threads) == 1


def test_at_most_one_item_is_computed_ahead():
    computed = []
    items = ahead(computed.append(i) or i for i in range(9))
    assert [next(items), next(items)] == [0, 1]
    items.close()  # waits for the item that is being computed
    assert computed == [0, 1, 2]


def test_an_error_comes_after_the_items_before_it():
    def items():
        yield 1
        raise ValueError("line 2")

    found = []
    with pytest.raises(ValueError, match="line 2"):
        found.extend(ahead(items()))
    items = ahead(items())
    assert next(items) == 1
    with pytest.raises(ValueError, match="line 2"):
        next(items)
