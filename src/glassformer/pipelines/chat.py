"""Chat messages as a prompt: by the chat template of the tokenizer, or a plain transcript."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, TypeGuard

from glassformer.errors import CheckpointError, ConfigError

if TYPE_CHECKING:
    from jinja2.sandbox import SandboxedEnvironment

Message = Mapping[str, str]

CONTINUED = "CONTINUE_FINAL_MESSAGE_TAG "
"""Marks the end of the message to continue while the template is rendered; the name that transformers uses. Its final
space is missing if the template removes space at the end of messages."""


def is_chat(value: object) -> TypeGuard[list[Message]]:
    """Whether a value is a list of messages {"role", "content"}."""
    return (
        isinstance(value, list | tuple) and bool(value) and all(isinstance(m, Mapping) and "role" in m for m in value)
    )


def chat_prompt(
    messages: Sequence[Message], template: str | None, special_tokens: Mapping[str, str], *, continues: bool
) -> str:
    """The prompt of a conversation, up to the start of the assistant's next message.

    Args:
        template: chat template in Jinja. None: one line "role: content" for each message.
        special_tokens: names of special tokens, as variables of the template.
        continues: the prompt ends with the content of the last message, which is to be continued.

    Raises:
        ConfigError: a message without a text as its content, or jinja2 is not installed.
        CheckpointError: the template is not valid.
    """
    for message in messages:
        if not isinstance(message.get("content"), str):
            raise ConfigError(f'chat: each message is {{"role": …, "content": text}}, found {dict(message)!r:.60}.')
    if template is None:
        lines = [f"{m['role']}: {m['content']}" for m in messages]
        return "\n".join(lines if continues else [*lines, "assistant:"])
    try:
        import jinja2
    except ImportError:
        raise ConfigError(
            "a chat template needs the package jinja2, which is not installed.\n  Install it with: pip install jinja2"
        ) from None
    last = messages[-1]
    marked = [*messages[:-1], {**last, "content": last["content"] + CONTINUED}] if continues else messages
    try:
        rendered = (
            template_environment()
            .from_string(template)
            .render(
                messages=[dict(m) for m in marked], tools=None, documents=None, add_generation_prompt=not continues,
                **special_tokens,
            )
        )  # fmt: skip
    except (jinja2.TemplateError, TypeError, ValueError) as error:
        raise CheckpointError(f"the chat template of this model cannot be used: {error}.") from None
    if not continues:
        return rendered
    prompt, mark, rest = rendered.rpartition(CONTINUED.rstrip())
    if not mark or last["content"].strip() not in prompt:
        raise ConfigError(
            "chat: the chat template of this model omits or changes the last message, so it cannot be continued.\n"
            "  Pass continue_final_message=False for a new message."
        )
    return prompt if rest.startswith(" ") else prompt.rstrip()


def template_environment() -> "SandboxedEnvironment":
    """The environment in which transformers renders chat templates."""
    import jinja2.ext
    import jinja2.nodes
    import jinja2.parser
    import jinja2.sandbox

    class Generation(jinja2.ext.Extension):
        """{% generation %} … {% endgeneration %}, which marks the text of the assistant."""

        tags = {"generation"}

        def parse(self, parser: jinja2.parser.Parser) -> jinja2.nodes.Node:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return jinja2.nodes.Scope(body, lineno=line)

    def refuse(message: str) -> None:
        raise jinja2.TemplateError(message)

    def to_json(
        value: object,
        ensure_ascii: bool = False,
        indent: int | None = None,
        separators: tuple[str, str] | None = None,
        sort_keys: bool = False,
    ) -> str:
        """The filter of Jinja escapes HTML."""
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = to_json
    environment.globals |= {"raise_exception": refuse, "strftime_now": lambda form: datetime.now().strftime(form)}
    return environment
