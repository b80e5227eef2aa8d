"""The model folder's README.md: what the model is and how to use it."""

from typing import Any

from glassformer.config import TrainConfig
from glassformer.tasks.translation import Translator
from glassformer.version import __version__


def model_card(config: TrainConfig, task: Translator, training: dict[str, Any]) -> str:
    """A card in the layout of the Hugging Face hub."""
    n_parameters = sum(p.numel() for p in task.model.parameters())
    machine = training["machine"]
    return f"""---
library_name: glassformer
pipeline_tag: translation
---

# A {config.preset} Transformer, trained by glassformer {__version__}

- {n_parameters:,} parameters, {task.tokenizer.vocab_size:,} subword units, {training["n_pairs"]:,} sentence pairs
- dev BLEU {training["dev_bleu"]} (greedy; {training["weights"]})
- {training["steps"]:,} steps in {training["minutes"]} minutes, {config.precision}, {machine["processor"]},
  {config.threads} threads, torch {machine["torch"]}

```
echo "some text" | glassformer translate PATH/TO/THIS/FOLDER
```

```python
import glassformer as gf

translator = gf.load("PATH/TO/THIS/FOLDER")
translator("some text")
```
"""
