"""Prompt formats: how observations and actions become one growing token sequence.

A format only ever *appends* token ids: the prompt when an episode starts, and after each action the tokens
up to the point where the model speaks next. What the model generated is never tokenised again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

from transformers import PreTrainedTokenizerBase


class PromptFormat(Protocol):
    """Turns text into tokens at the seams of a conversation.

    Attributes:
        stop_ids: an action ends with the first of these tokens.
    """

    stop_ids: frozenset[int]

    def start(self, observation: str, info: Mapping[str, Any]) -> list[int]:
        """Tokens of the first prompt, up to where the model speaks."""
        ...

    def follow(self, observation: str, info: Mapping[str, Any], cut: bool) -> list[int]:
        """Tokens between an action and the next one; `cut`: the action was generated without its end."""
        ...

    def action_text(self, tokens: list[int]) -> str:
        """The action that generated tokens stand for, its end removed."""
        ...

    def action_tokens(self, text: str) -> list[int]:
        """The tokens of a given action, its end included (for imitation)."""
        ...


@dataclass(frozen=True)
class FormatOptions:
    """Configuration of a prompt format.

    Attributes:
        format: "plain" (text and a mark) or "chat" (the tokenizer's chat template).
        system: chat only: the system message; "" for none.
        first_template: the first user text; may use {observation}, {instruction} and {admissible_actions}.
        later_template: later ones.
        action_mark: plain only: stands before each action.
        action_end: plain only: ends each action.
        max_observation_tokens: longer observations keep their head and are cut, before the template.
    """

    format: str = "plain"
    system: str = ""
    first_template: str = "{observation}"
    later_template: str = "{observation}"
    action_mark: str = ">"
    action_end: str = "\n"
    max_observation_tokens: int = 1024


def make_format(tokenizer: PreTrainedTokenizerBase, options: FormatOptions) -> PromptFormat:
    """Build the format named by `options.format`.

    Raises:
        ValueError: an unknown kind, a template with an unknown field, or a chat format without a chat
        template.
    """
    for template in (options.first_template, options.later_template):
        _fill(template, "", {"instruction": "", "admissible_actions": []})
    if options.format == "plain":
        return PlainFormat(tokenizer, options)
    if options.format == "chat":
        return ChatFormat(tokenizer, options)
    raise ValueError(f"unknown prompt format {options.format!r}; expected 'plain' or 'chat'")


class PlainFormat:
    """Observation, mark, action, end; the next observation follows at once."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, options: FormatOptions) -> None:
        if not options.action_end:
            raise ValueError("the plain format needs a text that ends an action; `action_end` is empty")
        self._tokenizer = tokenizer
        self._options = options
        self._encode = lru_cache(maxsize=65536)(lambda text: tuple(_as_text(tokenizer, text)))
        self._mark = list(self._encode(options.action_mark))
        # Any token whose text holds the end mark ends the action, "word\n" of a larger vocabulary too.
        texts = tokenizer.batch_decode([[i] for i in range(len(tokenizer))])
        self.stop_ids = frozenset(i for i, text in enumerate(texts) if options.action_end in text)
        if not self.stop_ids:
            raise ValueError(
                f"no token of this vocabulary holds {options.action_end!r}; choose another `action_end`"
            )

    def _observed(self, template: str, observation: str, info: Mapping[str, Any]) -> list[int]:
        head = self._encode(observation)[: self._options.max_observation_tokens]
        shown = (
            observation if len(head) == len(self._encode(observation)) else _decode(self._tokenizer, [*head])
        )
        return [*self._encode(_fill(template, shown, info)), *self._mark]

    def start(self, observation: str, info: Mapping[str, Any]) -> list[int]:
        return self._observed(self._options.first_template, observation, info)

    def follow(self, observation: str, info: Mapping[str, Any], cut: bool) -> list[int]:
        end = list(self._encode(self._options.action_end)) if cut else []
        return end + self._observed(self._options.later_template, observation, info)

    def action_text(self, tokens: list[int]) -> str:
        return _decode(self._tokenizer, tokens).split(self._options.action_end, 1)[0].strip()

    def action_tokens(self, text: str) -> list[int]:
        return list(self._encode(f" {text}{self._options.action_end}"))


class ChatFormat:
    """User and assistant turns in the tokenizer's chat template.

    The tokens between two turns are what the template adds to a conversation that ends with a finished
    assistant turn: found by difference, so that no generated token is rendered again.
    """

    _PROBE = "x"
    _SLOT = "[what the environment shows]"

    def __init__(self, tokenizer: PreTrainedTokenizerBase, options: FormatOptions) -> None:
        if not getattr(tokenizer, "chat_template", None):
            raise ValueError("this tokenizer has no chat template; use the plain format")
        if tokenizer.eos_token_id is None:
            raise ValueError("this tokenizer names no end-of-turn (eos) token, which the chat format needs")
        self._tokenizer = tokenizer
        self._options = options
        self._system = [{"role": "system", "content": options.system}] if options.system else []
        self.stop_ids = frozenset([int(tokenizer.eos_token_id)])
        if str(tokenizer.eos_token) not in self._render(self._before(), False):
            raise ValueError(
                f"the chat template does not end an assistant turn with {tokenizer.eos_token!r}, this "
                "tokenizer's end-of-turn (eos) token; set its eos_token to the one that the template uses"
            )

        spaced = f" {self._SLOT} \n"
        self._trims = spaced not in self._render([{"role": "user", "content": spaced}], False)

    def _before(self) -> list[dict[str, str]]:
        """A conversation that ends with a finished assistant turn."""
        return [
            *self._system,
            {"role": "user", "content": self._PROBE},
            {"role": "assistant", "content": self._PROBE},
        ]

    def _render(self, messages: list[dict[str, str]], speak: bool) -> str:
        text = self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=speak)
        return str(text)

    def _encode(self, around: str, content: str) -> list[int]:
        """The rendered template `around`, with `content` in its slot: marks as marks, content as text."""
        before, _, after = around.partition(self._SLOT)
        marks = [self._tokenizer.encode(part, add_special_tokens=False) for part in (before, after)]
        return [*marks[0], *_as_text(self._tokenizer, content), *marks[1]]

    def _content(self, template: str, observation: str, info: Mapping[str, Any]) -> str:
        limit = self._options.max_observation_tokens
        tokens = _as_text(self._tokenizer, observation)
        if len(tokens) > limit:
            observation = _decode(self._tokenizer, tokens[:limit])
        content = _fill(template, observation, info)
        return content.strip() if self._trims else content

    def start(self, observation: str, info: Mapping[str, Any]) -> list[int]:
        rendered = self._render([*self._system, {"role": "user", "content": self._SLOT}], True)
        return self._encode(rendered, self._content(self._options.first_template, observation, info))

    def follow(self, observation: str, info: Mapping[str, Any], cut: bool) -> list[int]:
        before = self._before()
        spoken = self._render(before, False)
        after = self._render([*before, {"role": "user", "content": self._SLOT}], True)
        end = str(self._tokenizer.eos_token)
        head = spoken[: spoken.rindex(end)]
        if not after.startswith(head):
            raise ValueError("this chat template rewrites earlier turns; it cannot be used token by token")
        bridge = after[len(head) :]
        if not cut and bridge.startswith(end):
            bridge = bridge[len(end) :]  # the model has generated it
        return self._encode(bridge, self._content(self._options.later_template, observation, info))

    def action_text(self, tokens: list[int]) -> str:
        return _decode(self._tokenizer, [t for t in tokens if t not in self.stop_ids]).strip()

    def action_tokens(self, text: str) -> list[int]:
        return [*_as_text(self._tokenizer, text), int(self._tokenizer.eos_token_id)]


def _as_text(tokenizer: PreTrainedTokenizerBase, text: str) -> list[int]:
    """Tokens of text that is only text: what spells a control token is spelt out, not obeyed."""
    return list(tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True))


def _decode(tokenizer: PreTrainedTokenizerBase, tokens: list[int]) -> str:
    """The text of the tokens as they are: no spaces tidied up."""
    return str(tokenizer.decode(tokens, clean_up_tokenization_spaces=False))


def _fill(template: str, observation: str, info: Mapping[str, Any]) -> str:
    if template == "{observation}":
        return observation
    fields = {
        "observation": observation,
        "instruction": info.get("instruction", ""),
        "admissible_actions": "\n".join(info.get("admissible_actions", ())),
    }
    try:
        return template.format_map(fields)
    except (KeyError, AttributeError) as error:
        raise ValueError(
            f"template {template!r} uses the unknown field {error}; known: {sorted(fields)}"
        ) from error
