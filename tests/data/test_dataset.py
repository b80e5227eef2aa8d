import numpy as np
import pytest

from glassformer.data import dataset as module
from glassformer.data.dataset import FLOATS, IDS, INTS, Dataset
from glassformer.errors import CheckpointError

PAIR = {"src": IDS, "tgt": IDS}
PAIRS = [([5, 6, 7], [8]), ([9], [5, 5, 5, 5, 5]), ([7, 8], [6, 9, 11])]


def as_lists(dataset: Dataset) -> list[tuple[list[int], list[int]]]:
    return [dataset[i] for i in range(len(dataset))]


def test_pairs_are_read_as_they_were_written(tmp_path):
    assert as_lists(Dataset.write(tmp_path, iter(PAIRS), PAIR, 31)) == PAIRS


@pytest.mark.parametrize("n_together", [1, 2, 3, 4])
def test_files_do_not_depend_on_how_many_examples_are_written_together(tmp_path, monkeypatch, n_together):
    Dataset.write(tmp_path / "a", PAIRS, PAIR, 31)
    monkeypatch.setattr(module, "WRITTEN_TOGETHER", n_together)
    Dataset.write(tmp_path / "b", PAIRS, PAIR, 31)
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_a_written_folder_can_be_opened_again(tmp_path):
    Dataset.write(tmp_path, PAIRS, PAIR, 31)
    assert as_lists(Dataset(tmp_path, PAIR)) == PAIRS


def test_empty_sequences_are_read_as_empty(tmp_path):
    pairs = [([], [5]), ([6], []), ([], []), ([7, 8], [9])]
    dataset = Dataset.write(tmp_path, pairs, PAIR, 31)
    assert as_lists(dataset) == pairs
    assert dataset.fields["src"].lengths.tolist() == [0, 1, 0, 2]


@pytest.mark.parametrize("vocab_size", [1 << 16, (1 << 16) + 1, 1 << 20])
def test_the_largest_id_of_a_vocabulary_is_preserved(tmp_path, vocab_size):
    pairs = [([vocab_size - 1, 3], [vocab_size - 1])]
    Dataset.write(tmp_path, pairs, PAIR, vocab_size)
    assert as_lists(Dataset(tmp_path, PAIR)) == pairs


@pytest.mark.parametrize(("vocab_size", "n_bytes"), [(1 << 16, 2), ((1 << 16) + 1, 4)])
def test_ids_use_two_bytes_if_the_vocabulary_allows(tmp_path, vocab_size, n_bytes):
    dataset = Dataset.write(tmp_path, PAIRS, PAIR, vocab_size)
    assert dataset.fields["src"].values.dtype.itemsize == n_bytes


def test_overwriting_with_a_smaller_vocabulary_replaces_the_old_files(tmp_path):
    Dataset.write(tmp_path, [([70_001], [70_002])], PAIR, 1 << 17)
    assert as_lists(Dataset.write(tmp_path, PAIRS, PAIR, 31)) == PAIRS


def test_an_id_outside_the_range_of_the_dtype_is_refused(tmp_path):
    with pytest.raises(OverflowError):
        Dataset.write(tmp_path, [([1 << 16], [3])], PAIR, 31)


def test_ids_are_python_integers(tmp_path):
    """NumPy scalars are not instances of int, and ten times slower to iterate over."""
    dataset = Dataset.write(tmp_path, PAIRS, PAIR, 31)
    assert {type(i) for i in dataset.fields["src"][0]} == {int}


def test_ids_are_not_loaded_before_they_are_accessed(tmp_path):
    dataset = Dataset.write(tmp_path, PAIRS, PAIR, 31)
    for ids_file in dataset.fields.values():
        assert isinstance(ids_file.values.base, np.memmap)
        assert isinstance(ids_file.ends.base, np.memmap)


def test_lengths_are_those_of_the_sequences(tmp_path):
    dataset = Dataset.write(tmp_path, PAIRS, PAIR, 31)
    assert dataset.fields["src"].lengths.tolist() == [3, 1, 2]
    assert dataset.fields["tgt"].lengths.tolist() == [1, 5, 3]


def test_integers_and_floats_can_be_stored_with_ids(tmp_path):
    rows = [([5, 6], [70_000], [0.5]), ([7], [1 << 31], [-1e-3, 2.0])]
    dataset = Dataset.write(tmp_path, rows, {"ids": IDS, "n": INTS, "x": FLOATS}, 31)
    assert [row[:2] for row in (dataset[0], dataset[1])] == [row[:2] for row in rows]
    assert dataset[1][2] == pytest.approx([-1e-3, 2.0])


def test_rows_are_the_examples_with_these_indices(tmp_path):
    dataset = Dataset.write(tmp_path, [*PAIRS, ([], [3]), *PAIRS], PAIR, 31)
    indices = np.array([5, 0, 3, 3, len(dataset) - 1])
    assert list(dataset.rows(indices)) == [dataset[i] for i in indices.tolist()]


@pytest.mark.parametrize("n_together", [1, 2, 3, 4])
def test_lengths_do_not_depend_on_how_many_ends_are_read_together(tmp_path, monkeypatch, n_together):
    monkeypatch.setattr(module, "READ_TOGETHER", n_together)
    dataset = Dataset.write(tmp_path, [*PAIRS, ([], [3])], PAIR, 31)
    assert dataset.fields["src"].lengths.tolist() == [3, 1, 2, 0]
    assert dataset.lengths.tolist() == [4, 6, 4, 2]


@pytest.mark.parametrize("ends", [[-1, 4, 6], [3, 2, 6], [3, 4, 3], [3, 4, 5], [3, 4, 7]])
@pytest.mark.parametrize("n_together", [1, 2, 4])
def test_ends_that_do_not_ascend_to_the_number_of_values_are_refused(tmp_path, monkeypatch, ends, n_together):
    monkeypatch.setattr(module, "READ_TOGETHER", n_together)
    Dataset.write(tmp_path, PAIRS, PAIR, 31)
    np.array(ends, "<i8").tofile(tmp_path / "src.ends")
    with pytest.raises(CheckpointError, match="damaged"):
        Dataset(tmp_path, PAIR)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (([1, 2], [0.7]), "field tgt of Objective.fields has integers, but a row has 0.7"),
        (([1, 2],), "a row has 1 fields, and not those of Objective.fields: src, tgt"),
    ],
)
def test_rows_that_are_not_of_the_fields_are_refused(tmp_path, row, message):
    with pytest.raises(TypeError, match=message):
        Dataset.write(tmp_path, [row], {"src": IDS, "tgt": IDS}, 9)
