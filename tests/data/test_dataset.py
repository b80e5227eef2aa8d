import numpy as np
import pytest

from glassformer.data.dataset import PairDataset

PAIRS = [([5, 6, 7], [8]), ([9], [5, 5, 5, 5, 5]), ([7, 8], [6, 9, 11])]


def as_lists(dataset: PairDataset) -> list[tuple[list[int], list[int]]]:
    return [(list(dataset.src[i]), list(dataset.tgt[i])) for i in range(len(dataset))]


def test_pairs_come_back_as_they_were_written(tmp_path):
    assert as_lists(PairDataset.write(tmp_path, iter(PAIRS), 31)) == PAIRS


def test_pairs_are_there_when_the_folder_is_opened_again(tmp_path):
    PairDataset.write(tmp_path, PAIRS, 31)
    assert as_lists(PairDataset(tmp_path)) == PAIRS


def test_empty_sequences_come_back_empty(tmp_path):
    pairs = [([], [5]), ([6], []), ([], []), ([7, 8], [9])]
    dataset = PairDataset.write(tmp_path, pairs, 31)
    assert as_lists(dataset) == pairs
    assert dataset.src.lengths.tolist() == [0, 1, 0, 2]


@pytest.mark.parametrize("vocab_size", [1 << 16, (1 << 16) + 1, 1 << 20])
def test_the_largest_id_of_a_vocabulary_comes_back(tmp_path, vocab_size):
    pairs = [([vocab_size - 1, 3], [vocab_size - 1])]
    PairDataset.write(tmp_path, pairs, vocab_size)
    assert as_lists(PairDataset(tmp_path)) == pairs


@pytest.mark.parametrize(("vocab_size", "n_bytes"), [(1 << 16, 2), ((1 << 16) + 1, 4)])
def test_an_id_takes_two_bytes_where_two_are_enough(tmp_path, vocab_size, n_bytes):
    dataset = PairDataset.write(tmp_path, PAIRS, vocab_size)
    assert dataset.src.ids.dtype.itemsize == n_bytes


def test_a_smaller_vocabulary_written_over_a_larger_one_is_read_as_such(tmp_path):
    PairDataset.write(tmp_path, [([70_001], [70_002])], 1 << 17)
    assert as_lists(PairDataset.write(tmp_path, PAIRS, 31)) == PAIRS


def test_an_id_outside_the_number_type_is_refused(tmp_path):
    with pytest.raises(OverflowError):
        PairDataset.write(tmp_path, [([1 << 16], [3])], 31)


def test_ids_come_back_as_plain_integers(tmp_path):
    """Numpy's scalars are no ints to whom asks, and ten times slower to go through."""
    dataset = PairDataset.write(tmp_path, PAIRS, 31)
    assert {type(i) for i in dataset.src[0]} == {int}


def test_ids_stay_on_the_disk_until_they_are_asked_for(tmp_path):
    dataset = PairDataset.write(tmp_path, PAIRS, 31)
    for ids_file in (dataset.src, dataset.tgt):
        assert isinstance(ids_file.ids, np.memmap)
        assert isinstance(ids_file.ends, np.memmap)


def test_lengths_are_those_of_the_sequences(tmp_path):
    dataset = PairDataset.write(tmp_path, PAIRS, 31)
    assert dataset.src.lengths.tolist() == [3, 1, 2]
    assert dataset.tgt.lengths.tolist() == [1, 5, 3]
