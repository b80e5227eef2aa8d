"""`glassformer worked-example`"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from glassformer.cli.files import check_new, write_page
from glassformer.cli.options import Int

if TYPE_CHECKING:
    from glassformer.inspection.worked_example import WorkedExample


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
    """Compute attention in ten steps and print every number: a small example, or one head of a model.

    Example:  glassformer worked-example --model en-fr --text "The black cat sat." --layer decoder.0.cross_attention

    Args:
        model: Model folder written by `glassformer train` or `glassformer import`. Default: a small built-in example.
        text: Input text.
        target: Target text for translators and language models.
        layer: Name of the attention module, such as encoder.0.self_attention. Default: the first.
        head: Number of the head, counted from 1, unlike layers in module names.
        words: Two tokens of the text whose embeddings, position encodings and sums are compared.
        html: Also write an HTML page.
        force: Overwrite the page if it exists.
    """
    from glassformer.errors import ConfigError
    from glassformer.inspection.worked_example import worked_example as built_in_example
    from glassformer.inspection.worked_example import worked_example_of_model
    from glassformer.tasks.registry import load

    check_new(html, force)
    if (model is None) != (text is None):
        raise ConfigError("--model names a model and --text its input: give both, or neither for the built-in example.")
    if model is None and (layer or words or target or head != 1):
        raise ConfigError(
            "--layer, --head, --words and --target need --model and --text. The built-in example has no options."
        )
    if model and text is not None:
        example = worked_example_of_model(
            load(model, device="cpu"), text, target=target, layer=layer, head=head, words=words
        )
    else:
        example = built_in_example()
    show(example)
    if html:
        from glassformer.inspection.page import worked_page

        write_page(html, worked_page(example))


def show(example: "WorkedExample") -> None:
    """Print the steps; matrices in numpy's format."""
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
        print(f"\nPositions {p.first} and {p.second}, d_model {p.correct.shape[1]}")
        for name, table, cosine in (
            ("exponent 2i/d_model, as in the paper", p.correct, p.cosines[0]),
            ("exponent 4i/d_model, a common wrong implementation", p.doubled_exponent, p.cosines[1]),
        ):
            begins = np.array2string(table[p.first][:4], max_line_width=110)
            print(f"  {name}: PE({p.first}) begins {begins}; cosine {cosine:.7f}")
    if s := example.similarities:
        print(f"\n{s.words[0]!r} (position {s.positions[0]}) and {s.words[1]!r} (position {s.positions[1]})")
        print(f"  cosine of the words {s.word:.4f}, of the positions {s.position:.4f}, of the sums {s.sum:.4f}")
    if example.saturation:
        print("\nWhy dot products are scaled by 1/sqrt(d_k): softmax over 16 random keys of unit variance")
        print(
            "   d_k  std of q.k   largest weight: unscaled  scaled  additive attention"
            "   softmax derivative: unscaled  scaled"
        )
        for row in example.saturation:
            plain, scaled, additive = row.largest
            print(
                f"  {row.d_k:4}  {row.deviation:10.2f}   {plain:24.3f}  {scaled:6.3f}  {additive:18.3f}"
                f"   {row.gradient[0]:28.4f}  {row.gradient[1]:6.4f}"
            )
