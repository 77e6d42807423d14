"""The four kinds of dialog that the model learns, each drawn from a seeded generator.

A task module has `sample(draw)`, which returns an Item or None when the draw fell into the other
split. What is held out is decided by a hash of what the item is about (its numbers, its question
and options, its names and values), so no held-out item can be drawn in training, whatever the seed.
"""
import json
import random
import zlib
from dataclasses import dataclass, field

HELD_OUT_SHARE = 8      # one key in so many is held out
THINKING_SHARE = 0.88   # of the training dialogs; held-out ones all think
SYSTEM_SHARE = 0.12     # of the training dialogs that have no system message get one of these
SYSTEM_MESSAGES = ["You are a helpful assistant.", "You are Ingot, a small language model.",
                   "Be kind and answer briefly."]


@dataclass
class Item:
    """A dialog up to its last assistant turn, and that turn."""
    messages: list
    answer: dict            # the assistant message that should follow
    expected: object        # what an evaluation compares: text or {"name", "arguments"}
    tools: list = field(default_factory=list)
    thinking: bool = True

    def public(self):
        """The line of tasks/NAME.jsonl, with tool calls in OpenAI's form."""
        line = {"messages": openai_messages(self.messages)}
        if self.tools:
            line["tools"] = self.tools
        return line | {"expected": self.expected}


class Draw(random.Random):
    """The randomness of one split."""

    def __init__(self, seed, held_out):
        super().__init__(seed)
        self.held_out = held_out

    def in_split(self, *key):
        """Whether what `key` names belongs to the split of this draw."""
        return self.in_training(*key) != self.held_out

    def thinks(self):
        """Whether the dialog being drawn has thinking on."""
        return self.held_out or self.random() < THINKING_SHARE

    @staticmethod
    def in_training(*key):
        return zlib.crc32(repr(key).encode()) % HELD_OUT_SHARE != 0


def user(text):
    return {"role": "user", "content": text}


def assistant(text, reasoning=None, tool_calls=None):
    message = {"role": "assistant", "content": text}
    if reasoning is not None:
        message["reasoning_content"] = reasoning
    if tool_calls:
        message["tool_calls"] = tool_calls
    return message


def openai_messages(messages):
    """Arguments as text, and an id that ties each call to what the tool says."""
    result, last_id = [], None
    for number, message in enumerate(messages):
        message = dict(message)
        if message["role"] == "tool":
            message["tool_call_id"] = last_id
        if "tool_calls" in message:
            call = message["tool_calls"][0]["function"]
            last_id = f"call_{number}"
            message["tool_calls"] = [{
                "id": last_id, "type": "function",
                "function": {"name": call["name"], "arguments": json.dumps(call["arguments"])}}]
        result.append(message)
    return result


def draw_item(task, draw):
    """The next item of the split that `draw` stands for."""
    while (item := task.sample(draw)) is None:
        pass
    plain = item.messages[0]["role"] != "system" and not draw.held_out
    if plain and draw.random() < SYSTEM_SHARE:
        item.messages.insert(0, {"role": "system", "content": draw.choice(SYSTEM_MESSAGES)})
    return item


def held_out_items(name, count):
    """The first `count` held-out items of a task, always the same, none twice."""
    task, draw, items = all_tasks()[name], Draw(f"held out {name}", held_out=True), {}
    while len(items) < count:
        item = draw_item(task, draw)
        items.setdefault(repr((item.messages, item.tools)), item)
    return list(items.values())


def all_tasks():
    from tasks import arithmetic, chat, choice, tools
    return {"arithmetic": arithmetic, "choice": choice, "tools": tools, "chat": chat}
