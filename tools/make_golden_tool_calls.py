#!/usr/bin/env python3
"""What sglang's own parser makes of tool calls in GLM's syntax: tests/golden/text/tool_calls.json.

usage: make_golden_tool_calls.py --sglang DIRECTORY [--count N] [--seed S]

DIRECTORY holds the unpacked wheel of sglang (pip download --no-deps sglang). Only its detector is
loaded, with stand-ins for what it imports around it; orjson, partial_json_parser and pydantic have
to be installed.

Drawn outputs are whole calls with values of every kind, white space at the places where models put
it, and text between calls. Left out is where Ingot differs from sglang 0.5.23 on purpose:
- a key that a call has twice (sglang keeps the last value, which a stream cannot) and a value cut
  by </tool_call>;
- white space after the name (sglang then does not know the tool);
- schemas of several types with a string among them (sglang decides by the first), None where
  several types are allowed (sglang makes it the string "None") and a Python string where anything
  is allowed (sglang takes off its quotes).
"""

import argparse
import json
import pathlib
import random
import sys
import types

ROOT = pathlib.Path(__file__).resolve().parent.parent

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "find",
            "parameters": {
                "type": "object",
                "properties": {
                    "query": {"type": "string"},
                    "limit": {"type": "integer"},
                    "ratio": {"type": "number"},
                    "strict": {"type": "boolean"},
                    "filter": {"type": "object"},
                    "tags": {"type": "array"},
                    "unit": {"enum": ["km", "mile"]},
                    "place": {"$ref": "#/$defs/place"},
                    "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                    "anything": {},
                },
                "$defs": {"place": {"type": "string"}},
            },
        },
    },
    {"type": "function", "function": {"name": "stop"}},
]


def load_detector(directory):
    """sglang's detector class, without the rest of sglang."""
    from pydantic import BaseModel
    from typing import Any

    class Function(BaseModel):
        name: str
        parameters: Any = None

    class Tool(BaseModel):
        type: str = "function"
        function: Function

    class ToolChoice(BaseModel):
        type: str = "function"

    def module(name, **members):
        made = types.ModuleType(name)
        made.__dict__.update(members)
        made.__path__ = [str(directory / name.replace(".", "/"))]
        sys.modules[name] = made

    class Flag:
        def get(self):
            return False

    class Flags:
        def __getattr__(self, name):
            return Flag()

    module("sglang")
    module("sglang.srt")
    module("sglang.srt.environ", envs=Flags())
    module("sglang.srt.entrypoints")
    module("sglang.srt.entrypoints.openai")
    module("sglang.srt.entrypoints.openai.protocol", Tool=Tool, ToolChoice=ToolChoice)
    module("sglang.srt.function_call")
    from sglang.srt.function_call.glm47_moe_detector import Glm47MoeDetector

    return Glm47MoeDetector, Tool


WORDS = [
    "",
    "a",
    "Paris",
    "two words",
    "line\nbreak",
    'quote " here',
    "back\\slash",
    "über 🙂",
    "1",
    "true",
    "null",
    "<b>",
    "{x}",
    "[1, 2]",
    " spaced ",
    "it's",
    "tab\there",
    "a < b",
    "</arg",
    "\\n",
]


def draw_json(rng, depth=0):
    kind = rng.randrange(5 if depth > 2 else 7)
    if kind == 0:
        return rng.choice([0, 1, -7, 42, 1234567890123])
    if kind == 1:
        return rng.choice([0.5, -1.25, 1e-3, 2.0])
    if kind == 2:
        return rng.choice([True, False, None])
    if kind in (3, 4):
        return rng.choice(WORDS)
    if kind == 5:
        return [draw_json(rng, depth + 1) for _ in range(rng.randrange(4))]
    return {f"k{i}": draw_json(rng, depth + 1) for i in range(rng.randrange(3))}


def draw_value(rng, key):
    if key in ("query", "place"):
        return rng.choice(WORDS)
    if key == "unit":
        return rng.choice(["km", "mile"])
    value = {
        "limit": lambda: rng.choice([0, 5, -3]),
        "ratio": lambda: rng.choice([0.5, 2, -1.5e3]),
        "strict": lambda: rng.choice([True, False]),
        "filter": lambda: {f"k{i}": draw_json(rng, 1) for i in range(rng.randrange(3))},
        "tags": lambda: [draw_json(rng, 1) for _ in range(rng.randrange(4))],
        "maybe": lambda: rng.choice([None, 4]),
    }.get(key, lambda: draw_json(rng))()
    form = rng.randrange(6)
    if form == 0 and not isinstance(value, str) and key != "maybe":
        return repr(value)  # as Python writes it
    if form == 1:
        return json.dumps(json.dumps(value, ensure_ascii=False), ensure_ascii=False)[
            1:-1
        ]  # escaped once too often
    if form == 2 and key in ("limit", "ratio"):
        return json.dumps(str(value))
    if form == 3:
        return json.dumps(value, ensure_ascii=False, indent=1)
    if form == 4 and key == "anything":
        return rng.choice(["plain words", "12 apples", "{broken"])
    return json.dumps(value, ensure_ascii=False)


def draw_output(rng):
    space = lambda: rng.choice(["", "", "\n", " "])
    text = rng.choice(["", "", "I look it up.", "Two calls:\n"])
    for _ in range(rng.randrange(1, 3)):
        name = rng.choice(["find", "find", "find", "stop"])
        keys = (
            list(TOOLS[0]["function"]["parameters"]["properties"]) if name == "find" else ["free"]
        )
        text += f"<tool_call>{name}"
        for key in rng.sample(keys, rng.randrange(min(4, len(keys) + 1))):
            value = draw_value(rng, key)
            text += f"<arg_key>{key}</arg_key>{space()}<arg_value>{value}</arg_value>{space()}"
        text += "</tool_call>" + rng.choice(["", "\n", " and then ", "\n\n"])
    return text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sglang", required=True, type=pathlib.Path)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--out", type=pathlib.Path, default=ROOT / "tests/golden/text/tool_calls.json"
    )
    options = parser.parse_args()
    detector_class, tool_class = load_detector(options.sglang.resolve())
    tools = [tool_class(**tool) for tool in TOOLS]
    rng = random.Random(options.seed)
    cases = []
    for _ in range(options.count):
        output = draw_output(rng)
        result = detector_class().detect_and_parse(output, tools)
        calls = [
            {"name": call.name.strip(), "arguments": json.loads(call.parameters)}
            for call in result.calls
        ]
        cases.append({"output": output, "calls": calls, "text": result.normal_text})
    options.out.write_text(
        '{"tools": '
        + json.dumps(TOOLS)
        + ', "cases": [\n'
        + ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
        + "\n]}\n"
    )
    print(f"{options.out}: {len(cases)} outputs, {sum(len(case['calls']) for case in cases)} calls")


if __name__ == "__main__":
    main()
