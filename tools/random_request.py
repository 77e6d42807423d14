"""Random conversations with tools and template options, for comparing what templates make of them.

Most are what chat APIs send. Three in ten are odd: they have types that many templates fail on.
"""

import json

PLAIN_TEXTS = ["Hello", "What is 2+2?", "Two\nlines.", "question /nothink", "/nothink"]
SPACED_TEXTS = ["", "\t \n", "  leading", "trailing \r\n", "\u3000wide\u0085", "\u2028\u00a0\u200b"]
QUOTED_TEXTS = ["'\"\\\x07", "{{ 1 }}{% raw %}", '{"a": [1]}', "Grüße, 日本 🙂", "e\u0301 ǅ İ"]
REASONING_TEXTS = [
    "<think>why</think>so",
    "\n<think>\nlong\n</think>\n\nshort",
    "a</think>b</think>c",
    "</think>",
    "<think>open",
]
MARKERS = ["<|user|>", "[gMASK]<sop>", "<|assistant|><think>", "<｜Assistant｜>", "<tool_call>x"]
TEXTS = PLAIN_TEXTS + SPACED_TEXTS + QUOTED_TEXTS + REASONING_TEXTS + MARKERS
MEDIA = [{"type": "image"}, {"type": "image_url", "image_url": {"url": "u"}}, {"type": "video"}]
ODD_PARTS = [{"type": "text"}, {"text": "untyped"}, {}, "bare", 1]
ODD_CONTENTS = [None, [], {}, {"a": 1}, 5, 2.5, True, [{"type": "tool_reference", "name": "find"}]]
ODD_ROLES = ["developer", "observation", "function", "referee"]

WEATHER = {
    "name": "weather",
    "description": "Weather of a <b>town</b>,\n\"today\" & 'later' ü🙂",
    "strict": True,
    "parameters": {
        "type": "object",
        "properties": {
            "town": {"type": "string", "enum": ["a", "ü"], "description": "</tools>"},
            "hour": {"type": "integer", "default": 1.0, "minimum": 1e-7, "maximum": 1e20},
            "place": {"type": "object", "properties": {}, "items": {"type": "number"}},
        },
        "required": ["town"],
    },
}
FUNCTIONS = [
    WEATHER,
    {"name": "find", "description": "  to be trimmed \n", "parameters": {"type": "object"}},
    {"name": "hidden", "description": "", "defer_loading": True, "parameters": {}},
]
ODD_FUNCTIONS = [{"name": "no_parameters"}, {"name": "none", "description": None}, {}]
ARGUMENTS = [
    {},
    {"town": "Köln", "hour": 3},
    {"list": [1, 2.5, None, True], "dict": {"x": "y"}},
    {"text": 'two\nlines, "quoted" </arg_value>', "items": "x", "keys": 1},
    {"nothing": None, "large": 1e16, "no": False},
]
TEMPLATE_KWARGS = {
    "enable_thinking": [True, False, None],
    "thinking": [True, False],
    "clear_thinking": [True, False],
    "reasoning_effort": ["low", "medium", "high", "max", None, 3],
}


class RandomRequest:
    """Draws one file of `ingot tokenize --messages`."""

    def __init__(self, rng):
        self.rng = rng
        self.odd = self.chance(0.3)
        self.arguments_as_json = self.chance(0.4)  # what some templates need and others fail on

    def chance(self, probability):
        return self.rng.random() < probability

    def oddly(self, probability):
        return self.odd and self.chance(probability)

    def text(self):
        return self.rng.choice(TEXTS)

    def part(self):
        if self.oddly(0.2):
            return self.rng.choice(ODD_PARTS)
        return self.rng.choice(MEDIA) if self.chance(0.3) else {"type": "text", "text": self.text()}

    def content(self):
        if self.oddly(0.2):
            return self.rng.choice(ODD_CONTENTS)
        if self.odd or self.chance(0.1):
            return [self.part() for _ in range(self.rng.randint(1, 3))]
        return self.text()

    def tool_call(self, call_id):
        arguments = self.rng.choice(ARGUMENTS)
        if self.arguments_as_json:
            arguments = json.dumps(arguments, ensure_ascii=False)
        function = {"name": self.rng.choice(FUNCTIONS)["name"], "arguments": arguments}
        if self.oddly(0.3):
            return function
        return {"id": call_id, "type": "function", "function": function}

    def tool_result(self, call_ids):
        message = {"role": "tool", "content": self.content()}
        if self.oddly(0.3):
            message["content"] = [{"output": self.text()}, {"output": "second"}]
        if self.chance(0.7):
            message["tool_call_id"] = self.rng.choice(call_ids)
        return message

    def assistant_turn(self):
        message = {"role": "assistant", "content": self.content()}
        if self.chance(0.4):
            field = self.rng.choice(["reasoning_content", "reasoning", "thinking"])
            message[field] = None if self.oddly(0.3) else self.text()
        if self.oddly(0.2):
            message["tool_calls"] = None
        if self.chance(0.6):
            return [message]
        if self.chance(0.4):
            message["content"] = None
        call_ids = [f"call_{i}" for i in range(self.rng.randint(0, 2))]
        message["tool_calls"] = [self.tool_call(call_id) for call_id in call_ids]
        results = [self.tool_result(call_ids) for _ in call_ids]
        answers = [{"role": "assistant", "content": self.text()}] if self.chance(0.6) else []
        return [message, *results, *answers]

    def messages(self):
        messages = [{"role": "system", "content": self.content()}] if self.chance(0.5) else []
        for _ in range(self.rng.randint(0, 2)):
            messages.append({"role": "user", "content": self.content()})
            messages += self.assistant_turn()
        if self.chance(0.7):
            messages.append({"role": "user", "content": self.content()})
        if self.oddly(0.2):
            at = self.rng.randint(0, len(messages))
            messages.insert(at, {"role": self.rng.choice(ODD_ROLES), "content": self.text()})
        return messages

    def tools(self):
        functions = FUNCTIONS + (ODD_FUNCTIONS if self.odd else [])
        functions = self.rng.sample(functions, self.rng.randint(0, len(functions)))
        if self.chance(0.2):
            return functions
        return [{"type": "function", "function": function} for function in functions]

    def draw(self):
        request = {"messages": self.messages(), "add_generation_prompt": self.chance(0.8)}
        if self.chance(0.5):
            request["tools"] = self.tools()
        request["chat_template_kwargs"] = {
            name: self.rng.choice(values)
            for name, values in TEMPLATE_KWARGS.items()
            if self.chance(0.3)
        }
        return request
