"""Chat messages as a prompt: by the chat template of the tokenizer, or a plain transcript."""

from collections.abc import Mapping, Sequence
from typing import TypeGuard

from glassformer.errors import CheckpointError, ConfigError

Message = Mapping[str, str]


def is_chat(value: object) -> TypeGuard[list[Message]]:
    """Whether a value is a list of messages {"role", "content"}."""
    return (
        isinstance(value, list | tuple) and bool(value) and all(isinstance(m, Mapping) and "role" in m for m in value)
    )


def chat_prompt(messages: Sequence[Message], template: str | None, special_tokens: Mapping[str, str]) -> str:
    """The prompt of a conversation, up to the start of the assistant's next message.

    Args:
        template: Jinja template of tokenizer_config.json. Default: one line "role: content" for each message.

    Raises:
        ConfigError: a message without a text as its content.
        CheckpointError: the template is not valid.
    """
    for message in messages:
        if not isinstance(message.get("content"), str):
            raise ConfigError(f'chat: each message is {{"role": …, "content": text}}, found {dict(message)!r:.60}.')
    if template is None:
        return "".join(f"{m['role']}: {m['content']}\n" for m in messages) + "assistant:"
    import jinja2
    import jinja2.sandbox

    def refuse(message: str) -> None:
        raise jinja2.TemplateError(message)

    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.globals["raise_exception"] = refuse
    try:
        rendered = environment.from_string(template).render(
            messages=[dict(m) for m in messages], add_generation_prompt=True, **special_tokens
        )
    except jinja2.TemplateError as error:
        raise CheckpointError(f"tokenizer_config.json: the chat template cannot be used: {error}.") from None
    return str(rendered)
