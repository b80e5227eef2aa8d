from hypothesis import given
from hypothesis import strategies as st

from glassformer.serve.channel import decode, encode

MESSAGES = st.lists(st.dictionaries(st.text(), st.text() | st.integers() | st.lists(st.booleans())), max_size=5)


@given(MESSAGES, st.integers(1, 20))
def test_messages_are_those_that_were_sent_in_whatever_pieces_they_arrive(messages, size):
    data = b"".join(map(encode, messages))
    received, found = bytearray(), []
    for start in range(0, len(data), size):
        received += data[start : start + size]
        found += decode(received)
    assert found == messages
    assert not received
