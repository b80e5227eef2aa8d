"""`glassformer worked-example`"""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from glassformer.cli.files import check_new, write_page
from glassformer.cli.options import Int


def worked_example(
    *,
    model: Path | None = None,
    text: str | None = None,
    target: str | None = None,
    layer: str = "",
    head: Int = 1,
    words: Annotated[tuple[str, str] | None, Parameter(consume_multiple=True)] = None,
    html: Path | None = None,
    force: bool = False,
) -> None:
    """Attention in ten steps with every number: a small example on paper, or a head of your own model.

    Example:  glassformer worked-example --model en-fr --text "The black cat sat." --layer decoder.0.cross_attention

    Args:
        model: folder written by `glassformer train` or `glassformer import`; without it the example on paper.
        text: what the model is to read.
        target: what a translator or a language model is to follow.
        layer: name of the attention; default: the first.
        head: counted from 1.
        words: two tokens of the text to compare by word, position and sum.
        html: also write a page.
        force: overwrite the page if it exists.
    """
    from glassformer.errors import ConfigError
    from glassformer.inspection.worked_example import worked_example as on_paper
    from glassformer.inspection.worked_example import worked_model
    from glassformer.tasks.registry import load

    check_new(html, force)
    if (model is None) != (text is None) or (model is None and (layer or words or target or head != 1)):
        raise ConfigError(
            "--model names a model and --text what it is to read: give both for a head of it, or nothing."
        )
    if model and text is not None:
        example = worked_model(load(model, device="cpu"), text, target=target, layer=layer, head=head, words=words)
    else:
        example = on_paper()
    show(example)
    if html:
        from glassformer.inspection.page import worked_page

        write_page(html, worked_page(example))


def show(example: Any) -> None:
    """The steps, as numpy prints them."""
    import numpy as np

    print(example.title)
    for note in example.notes:
        print(f"note: {note}")
    for i, step in enumerate(example.steps, 1):
        print(f"\n{i}. {step.title}\n   {step.text}")
        for matrix in step.matrices:
            print(f"   {matrix.name} {list(matrix.values.shape)}")
            text = np.array2string(matrix.values, threshold=60, edgeitems=3, max_line_width=110)
            print("     " + text.replace("\n", "\n     "))
    if p := example.positions:
        print(f"\nPositions {p.first} and {p.second}, d_model {p.paper.shape[1]}")
        for name, table, cosine in (
            ("by the paper's formula", p.paper, p.cosines[0]),
            ("by a loop that doubles the exponent", p.doubled, p.cosines[1]),
        ):
            begins = np.array2string(table[p.first][:4], max_line_width=110)
            print(f"  {name}: PE({p.first}) begins {begins}; cosine {cosine:.7f}")
    if s := example.similarities:
        print(f"\n{s.words[0]!r} (position {s.places[0]}) and {s.words[1]!r} (position {s.places[1]})")
        print(f"  cosine of the words {s.word:.4f}, of the positions {s.position:.4f}, of the sums {s.sum:.4f}")
    if example.saturation:
        print("\nWhat scaling is for: softmax over 16 random keys of unit variance")
        print("   d_k  deviation of q.k   largest weight: unscaled  scaled  additive   derivative: unscaled  scaled")
        for row in example.saturation:
            plain, scaled, additive = row.largest
            print(
                f"  {row.d_k:4}  {row.deviation:16.2f}   {plain:24.3f}  {scaled:6.3f}  {additive:8.3f}"
                f"   {row.gradient[0]:20.4f}  {row.gradient[1]:6.4f}"
            )
