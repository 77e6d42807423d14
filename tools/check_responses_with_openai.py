#!/usr/bin/env python3
"""Reads answers in OpenAI's batch format as the openai package does, strictly.

    PYTHON check_responses_with_openai.py ANSWERS.jsonl...

Each line must be one of a batch's output. A body of status 200 must be a ChatCompletion or a
Completion of the package, every field of which has its declared type; the fields that the package
does not know must be those that Ingot adds. What the lines say must add up: tokens, offsets,
logprobs, calls. Other statuses must carry an error of OpenAI's form. Prints how many of each there
were; exit status 1 on the first line that is not so.

The package: pip install openai
"""

import copy
import json
import math
import sys

from openai.types import Completion, ErrorObject
from openai.types.chat import ChatCompletion

# What Ingot adds, by the place in the body.
ADDED = {
    "": {"timings", "prompt_logprobs"},
    "choices": {"stop_reason", "token_ids", "prompt_logprobs"},
    "choices.message": {"reasoning_content"},
    "usage.completion_tokens_details": {"draft_tokens", "accepted_tokens"},
}


def check(condition, message):
    if not condition:
        raise ValueError(message)


def check_extra(model, place):
    """Fields that the package's types do not declare."""
    extra = set(model.model_extra or {}) - ADDED.get(place, set())
    check(not extra, f"{place or 'body'} has unknown fields {sorted(extra)}")
    for name in type(model).model_fields:
        value = getattr(model, name)
        for part in value if isinstance(value, list) else [value]:
            if hasattr(part, "model_extra"):
                check_extra(part, f"{place}.{name}".lstrip("."))


def check_usage(usage):
    check(usage.total_tokens == usage.prompt_tokens + usage.completion_tokens, "usage: total")
    cached = usage.prompt_tokens_details.cached_tokens
    check(0 <= cached <= usage.prompt_tokens, "usage: cached_tokens")
    details = usage.completion_tokens_details
    check(0 <= details.reasoning_tokens <= usage.completion_tokens, "usage: reasoning_tokens")
    extra = details.model_extra
    check(0 <= extra["accepted_tokens"] <= extra["draft_tokens"], "usage: drafts")


def check_logprob(logprob):
    check(logprob is None or (math.isfinite(logprob) and logprob <= 1e-9), f"logprob {logprob}")


def check_chat(body):
    answer = ChatCompletion.model_validate(body, strict=True)
    check(answer.object == "chat.completion" and answer.id.startswith("chatcmpl-"), "object, id")
    for choice in answer.choices:
        calls = choice.message.tool_calls or []
        check((choice.finish_reason == "tool_calls") <= bool(calls), "finish_reason without a call")
        check(choice.message.content is not None or calls, "neither content nor a call")
        check(len({call.id for call in calls}) == len(calls), "ids of calls")
        for call in calls:
            check(isinstance(json.loads(call.function.arguments), dict), "arguments")
        for token in (choice.logprobs.content or []) if choice.logprobs else []:
            for each in [token, *token.top_logprobs]:
                check_logprob(each.logprob)
                if not each.token.startswith("bytes:") and each.bytes is not None:
                    check(bytes(each.bytes).decode() == each.token, f"bytes of {each.token!r}")
    return answer


def with_declared_types(body):
    """OpenAI's service says null for the first token of an echoed prompt; its types do not."""
    body = copy.deepcopy(body)
    for choice in body["choices"]:
        if not choice["logprobs"]:
            continue
        for name, nothing in ("token_logprobs", 0.0), ("top_logprobs", {}):
            values = choice["logprobs"][name]
            check(all(value is not None for value in values[1:]), f"{name} has a null")
            if values and values[0] is None:
                values[0] = nothing
    return body


def check_completion(body):
    answer = Completion.model_validate(with_declared_types(body), strict=True)
    check(answer.object == "text_completion" and answer.id.startswith("cmpl-"), "object, id")
    check(answer.usage.completion_tokens == sum(len(c["token_ids"]) for c in body["choices"]),
          "token_ids")
    for choice in answer.choices:
        logprobs = choice.logprobs
        if logprobs is None:
            continue
        sizes = {len(logprobs.tokens), len(logprobs.token_logprobs), len(logprobs.top_logprobs),
                 len(logprobs.text_offset)}
        check(len(sizes) == 1, "logprobs: lists of several lengths")
        check(logprobs.text_offset == sorted(logprobs.text_offset), "text_offset descends")
        for token, own, top in zip(logprobs.tokens, logprobs.token_logprobs,
                                   logprobs.top_logprobs):
            check_logprob(own)
            check(not top or top[token] == own, f"{token!r} is not among its top_logprobs")
    return answer


def check_line(line):
    answer = json.loads(line)
    check(list(answer) == ["id", "custom_id", "response", "error"], "fields of the line")
    if answer["response"] is None:
        check(set(answer["error"]) == {"code", "message"} and answer["error"]["code"], "error")
        return "no request"
    check(answer["error"] is None and isinstance(answer["custom_id"], str), "error, custom_id")
    response = answer["response"]
    check(isinstance(response["request_id"], str), "request_id")
    body = response["body"]
    if response["status_code"] != 200:
        ErrorObject.model_validate(body["error"], strict=True)
        return f"status {response['status_code']}"
    is_chat = body["object"] == "chat.completion"
    parsed = check_chat(body) if is_chat else check_completion(body)
    check([choice.index for choice in parsed.choices] == list(range(len(parsed.choices))), "index")
    check_extra(parsed, "")
    check_usage(parsed.usage)
    check(all(seconds >= 0 for seconds in body["timings"].values()), "timings")
    return body["object"]


def main():
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    counts = {}
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    kind = check_line(line)
                except (ValueError, KeyError, TypeError) as error:
                    print(f"{path}:{number}: {error}")
                    return 1
                counts[kind] = counts.get(kind, 0) + 1
    print(", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())))
    return 0 if counts else 1


if __name__ == "__main__":
    sys.exit(main())
