"""sentence-similarity: similarity of one text to others, as the inference API of the Hugging Face hub returns it."""

from collections.abc import Mapping

from glassformer.errors import ConfigError
from glassformer.pipelines.base import Options, Output, Pipeline, warn_truncated
from glassformer.tasks.regression import Regressor


class SentenceSimilarity(Pipeline[Options]):
    """List of similarities of a source sentence to other sentences.

    The input is {"source_sentence": …, "sentences": […]}. With an encoder without a head: the cosine similarity of
    the mean-pooled embeddings. With a regression model trained on pairs: its prediction for each pair.
    """

    options_type = Options

    def __call__(self, inputs: object = None, sentences: object = None, **options: object) -> Output:
        """Compute similarities.

        Args:
            inputs: a dictionary, a list of dictionaries, or the source sentence.
            sentences: the other sentences, if `inputs` is the source sentence.

        Raises:
            ConfigError: the input is not a source sentence with a list of sentences.
        """
        if isinstance(inputs, str):
            inputs = {"source_sentence": inputs, "sentences": [sentences] if isinstance(sentences, str) else sentences}
        return self.each(inputs, options)

    def run(self, inputs: list[object], options: Options) -> list[Output]:
        return [self.similarities(*self.read(value), options) for value in inputs]

    def read(self, value: object) -> tuple[str, list[str]]:
        """Source sentence and sentences of an input."""
        source = value.get("source_sentence") if isinstance(value, Mapping) else None
        sentences = value.get("sentences") if isinstance(value, Mapping) else None
        if not isinstance(source, str) or not isinstance(sentences, list | tuple) or not sentences:
            raise ConfigError(
                f'{self.task}: expected {{"source_sentence": …, "sentences": […]}}, or a text and a list of texts,'
                f" found {value!r:.60}."
            )
        return source, [self.text(sentence) for sentence in sentences]

    def similarities(self, source: str, sentences: list[str], options: Options) -> list[float]:
        """Similarity of the source to each sentence."""

        def warn(*_: object) -> None:
            if not options.truncates:
                warn_truncated(self.tokenizer.model_max_length, "end")

        if isinstance(self.model, Regressor):
            if len(self.model.inputs) == 1:
                raise ConfigError(f"{self.task}: the model was trained on single texts, not on pairs.")
            return self.model.predict_numbers([(source, sentence) for sentence in sentences], warn)
        vectors = self.model([source, *sentences], warn)
        return (vectors[1:] @ vectors[0]).tolist()  # vectors have length 1
