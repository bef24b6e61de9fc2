"""What is asked of the engine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation, as chat templates expect it."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt: plain text, or messages for the chat template.

    Attributes:
        prompt_id: Unique within the study.
        prompt_class: Class by which acceptance is reported ("code", "chat", …).
        text: Plain text; None when there are messages.
        messages: Conversation; empty when there is text.
        output_tokens: The prompt's own limit; None takes the workload's.
    """

    prompt_id: str
    prompt_class: str
    text: str | None = None
    messages: tuple[Message, ...] = ()
    output_tokens: int | None = None

    def __post_init__(self) -> None:
        assert (self.text is None) != (not self.messages), "a prompt is either text or messages"

    @property
    def characters(self) -> int:
        """Length of its text, or of all its messages."""
        return len(self.text) if self.text is not None else sum(len(message.content) for message in self.messages)

    @property
    def content(self) -> tuple[str, ...]:
        """What makes two prompts the same."""
        if self.text is not None:
            return (self.text,)
        return tuple(part for message in self.messages for part in (message.role, message.content))


@dataclass(frozen=True, slots=True)
class TokenizedPrompt:
    """A prompt as token ids, rendered and encoded by the engine's own tokenizer."""

    prompt: Prompt
    input_ids: list[int]

    def __post_init__(self) -> None:
        assert self.input_ids, f"prompt {self.prompt.prompt_id} has no token"
