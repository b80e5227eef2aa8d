"""README.md of a model folder: model card in the layout of the Hugging Face hub."""

from pathlib import Path

from glassformer.config import JsonObject
from glassformer.metrics.registry import format_metric
from glassformer.tasks.base import AnyTask
from glassformer.train_config import TrainConfig
from glassformer.version import __version__


def usage_example(task: AnyTask, folder: str | Path) -> str:
    """Example command that applies the trained task."""
    program = "printf '{}\\n'" if "\\t" in task.example_input else "echo '{}'"
    return f"{program.format(task.example_input)} | glassformer {task.command} {folder}"


def model_name(config: TrainConfig) -> str:
    """Family and size of the model, or the folder that it was fine-tuned from."""
    return f"{config.family} from {config.init_from}" if config.init_from else f"{config.family} {config.preset}"


def model_card(config: TrainConfig, task: AnyTask, metric: str, training: JsonObject) -> str:
    """Markdown text of the model card.

    Args:
        metric: the metric on the dev set.
        training: the contents of training.json.
    """
    n_parameters = sum(p.numel() for p in task.model.parameters())
    machine = training["machine"]
    tokenizer = f", with sacrebleu's tokenizer {name}" if (name := training.get("bleu_tokenizer")) else ""
    return f"""---
library_name: glassformer
pipeline_tag: {task.pipeline_tag}
---

# {task.name.capitalize()} by {model_name(config)}, trained by glassformer {__version__}

- {n_parameters:,} parameters, vocabulary of {task.tokenizer.vocab_size:,}
- trained on {training[f"n_{task.examples_name}"]:,} {task.examples_name}
- dev {format_metric(metric, training[f"dev_{metric}"])} ({training["weights"]}){tokenizer}
- {training["steps"]:,} steps in {training["minutes"]} minutes, {config.precision}, {machine["processor"]},
  {config.threads} threads, torch {machine["torch"]}

```
{usage_example(task, "PATH/TO/THIS/FOLDER")}
```

```python
import glassformer as gf

task = gf.load("PATH/TO/THIS/FOLDER")
task("some text")
```
"""
