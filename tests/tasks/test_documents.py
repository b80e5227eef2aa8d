"""Plain text in chunks."""

import pytest

from glassformer.tasks.documents import LINES_PER_CHUNK, text_chunks


@pytest.mark.parametrize("n", [1, 63, 64, 65, 95, 96, 97, 128, 129, 161, 1281])
@pytest.mark.parametrize("n_blank", [0, 1, 70])
def test_the_last_chunk_of_a_text_can_be_held_out(tmp_path, n, n_blank):
    lines = [f"line {i}" if i % 5 or i == n - 1 else "" for i in range(n)]
    path = tmp_path / "text"
    path.write_text("\n".join(lines + [" "] * n_blank) + "\n")
    chunks = list(text_chunks(path))
    assert len(chunks) == -(-n // LINES_PER_CHUNK)
    assert "".join(chunk.text for chunk in chunks) == "\n".join(lines) + "\n"
    sizes = [chunk.text.count("\n") for chunk in chunks]
    assert [chunk.line for chunk in chunks] == [1 + sum(sizes[:i]) for i in range(len(sizes))]
    assert sizes[:-2] == [LINES_PER_CHUNK] * len(sizes[:-2])
    if len(chunks) > 1:
        assert min(sizes) >= LINES_PER_CHUNK // 2
