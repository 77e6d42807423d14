"""Dialogs as tokens: the chat template, the encoding, and which tokens are learned."""
import json
from pathlib import Path

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from config import CONTEXT_MAX, MARKER_IDS

ROLES = {MARKER_IDS[f"<|{role}|>"] for role in ("system", "user", "assistant", "observation")}
ASSISTANT, THINK, END_THINK = (MARKER_IDS[t] for t in ("<|assistant|>", "<think>", "</think>"))
USER, OBSERVATION = MARKER_IDS["<|user|>"], MARKER_IDS["<|observation|>"]


def load_template():
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                                extensions=["jinja2.ext.loopcontrols"])

    def to_json(value, ensure_ascii=False):
        return json.dumps(value, ensure_ascii=ensure_ascii)

    def raise_exception(message):
        raise jinja2.TemplateError(message)

    environment.filters["tojson"] = to_json
    environment.globals["raise_exception"] = raise_exception
    source = Path(__file__).with_name("chat_template.jinja").read_text(encoding="utf-8")
    return environment.from_string(source)


class Renderer:
    """Turns an Item into text: the prompt of an evaluation, or the whole dialog to learn."""

    def __init__(self):
        self.template = load_template()

    def prompt(self, item):
        return self.template.render(messages=item.messages, tools=item.tools or None,
                                    enable_thinking=item.thinking, add_generation_prompt=True)

    def dialog(self, item, effort="max"):
        return self.template.render(messages=item.messages + [item.answer],
                                    tools=item.tools or None, enable_thinking=item.thinking,
                                    reasoning_effort=effort)


def stop_token(item):
    """The marker with which the model ends its turn."""
    return OBSERVATION if item.answer.get("tool_calls") else USER


def learned_tokens(ids, thinking):
    """A flag a token: whether an assistant wrote it, including the marker that ends its turn.

    An empty <think></think> is what the template writes, not the assistant, except in the last
    turn of a dialog with thinking on; there it is the assistant's choice not to think.
    """
    learned = [False] * len(ids)
    last = max((i for i, token in enumerate(ids[:-1]) if token == USER), default=0)
    at = 0
    while at < len(ids):
        if ids[at] != ASSISTANT:
            at += 1
            continue
        at += 2
        if ids[at] == END_THINK and not (thinking and at > last):
            at += 1
        while at < len(ids):
            learned[at] = True
            if ids[at] in ROLES:
                break
            at += 1
    return learned


class Encoder:
    """Items to (token ids, learned flags)."""

    def __init__(self, tokenizer):
        self.tokenizer, self.renderer = tokenizer, Renderer()

    def dialog(self, item, effort="max"):
        ids = self.tokenizer.encode(self.renderer.dialog(item, effort)).ids + [stop_token(item)]
        if len(ids) > CONTEXT_MAX:
            raise ValueError(f"a dialog of {len(ids)} tokens; CONTEXT_MAX is {CONTEXT_MAX}")
        return ids, learned_tokens(ids, item.thinking)

    def prompt(self, item):
        return self.tokenizer.encode(self.renderer.prompt(item)).ids
