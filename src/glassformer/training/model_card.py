"""The model folder's README.md: what the model is and how to use it."""

from typing import Any

from glassformer.config import TrainConfig
from glassformer.tasks.base import Task
from glassformer.version import __version__

PIPELINE_TAGS = {
    "translation": "translation",
    "classification": "text-classification",
    "regression": "sentence-similarity",
    "tagging": "token-classification",
    "question-answering": "question-answering",
    "causal-lm": "text-generation",
    "masked-lm": "fill-mask",
    "bert-pretraining": "fill-mask",
}


def example_of_use(task: Task, folder: Any) -> str:
    """A command line that asks the trained task something."""
    return f"echo 'some text' | glassformer {'translate' if task.name == 'translation' else 'run'} {folder}"


def model_card(config: TrainConfig, task: Task, training: dict[str, Any]) -> str:
    """A card in the layout of the Hugging Face hub."""
    n_parameters = sum(p.numel() for p in task.model.parameters())
    machine = training["machine"]
    return f"""---
library_name: glassformer
pipeline_tag: {PIPELINE_TAGS.get(task.name, "text2text-generation")}
---

# {task.name.capitalize()} by {config.family} {config.preset}, trained by glassformer {__version__}

- {n_parameters:,} parameters, {task.tokenizer.vocab_size:,} units, {training[f"n_{task.examples_name}"]:,} {task.examples_name}
- dev {task.metric} {training[f"dev_{task.metric}"]} ({training["weights"]})
- {training["steps"]:,} steps in {training["minutes"]} minutes, {config.precision}, {machine["processor"]},
  {config.threads} threads, torch {machine["torch"]}

```
{example_of_use(task, "PATH/TO/THIS/FOLDER")}
```

```python
import glassformer as gf

task = gf.load("PATH/TO/THIS/FOLDER")
task("some text")
```
"""
