#!/usr/bin/env python3
"""Compares what `ingot tokenize` and transformers make of published templates.

usage: check_published_templates.py DIRECTORY... --ingot build/release/ingot
                                    [--conversations 40] [--seed 1]

Needs transformers and jinja2. Every *.jinja in the directories is run on random conversations, and
the two must render the same text or fail with the same kind of error. Templates belong to their
publishers and none is kept here. A source of many is PyPI's wheel xinference 4.1.0, as
"chat_template" of the models in its xinference/model/llm/models/*.json: GLM-4.5 to GLM-5.3 and
DeepSeek-V2 to V3.2, with that of GLM-4.7-Flash (sha256 d63ad536...) and that of GLM-5.2
(172dc74a...) among them.

Prints the sha256 and the counts of each file and its first differences; exits 1 if there is one.
"""

import argparse
import collections
import hashlib
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

from transformers.utils import chat_template_utils as hf

from random_request import RandomRequest

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOKENIZER = ROOT / "tests/golden/text/glm_tokenizer/tokenizer.json"
SPECIAL_TOKENS = {"bos_token": "<｜begin▁of▁sentence｜>", "eos_token": "<｜end▁of▁sentence｜>"}
EXIT_REFUSED = 2  # ingot's status for bad input
SHOWN_PER_FILE = 3
SHOWN_CHARACTERS = 60  # on each side of where two texts part

Rendering = collections.namedtuple("Rendering", "text error")  # one of them is None


def render_with_transformers(template, request):
    try:
        texts, _ = hf.render_jinja_template(
            [hf._normalize_chat_messages(request["messages"])],
            tools=request.get("tools"),
            chat_template=template,
            add_generation_prompt=request["add_generation_prompt"],
            **SPECIAL_TOKENS,
            **request["chat_template_kwargs"],
        )
    except Exception as failure:  # whatever the template makes Python do
        return Rendering(None, f"{type(failure).__name__}: {failure}")
    return Rendering(texts[0], None)


def render_with_ingot(ingot, model_dir, request):
    request_file = model_dir / "request.json"
    request_file.write_text(json.dumps(request, ensure_ascii=False), encoding="utf-8")
    command = [ingot, "tokenize", model_dir, "--messages", request_file, "--json"]
    result = subprocess.run(command, capture_output=True, encoding="utf-8")
    if result.returncode == EXIT_REFUSED:
        return Rendering(None, result.stderr.strip())
    if result.returncode != 0:
        sys.exit(f"ingot ended with status {result.returncode} on\n{json.dumps(request)}")
    return Rendering(json.loads(result.stdout)["text"], None)


def agree(ours, theirs):
    if ours.error is None or theirs.error is None:
        return ours.text == theirs.text
    kind = theirs.error.split(":")[0]
    return ("refuses this conversation" if kind == "TemplateError" else kind) in ours.error


def shown(rendering, other):
    if rendering.text is None:
        return rendering.error
    pairs = enumerate(zip(rendering.text, other.text or ""))
    at = next((i for i, (a, b) in pairs if a != b), len(other.text or ""))
    around = rendering.text[max(0, at - SHOWN_CHARACTERS) : at + SHOWN_CHARACTERS]
    return f"at character {at} of {len(rendering.text)}: {ascii(around)}"


def check(ingot, template_file, num_conversations, seed):
    """Counts of "equal", "both fail" and "different"."""
    digest = hashlib.sha256(template_file.read_bytes()).hexdigest()[:8]
    template = template_file.read_text(encoding="utf-8")
    rng = random.Random(f"{seed} {digest}")
    counts = collections.Counter()
    with tempfile.TemporaryDirectory() as directory:
        model_dir = pathlib.Path(directory)
        shutil.copy(TOKENIZER, model_dir)
        shutil.copy(template_file, model_dir / "chat_template.jinja")
        (model_dir / "tokenizer_config.json").write_text(json.dumps(SPECIAL_TOKENS))
        for _ in range(num_conversations):
            request = RandomRequest(rng).draw()
            ours = render_with_ingot(ingot, model_dir, request)
            theirs = render_with_transformers(template, request)
            if agree(ours, theirs):
                counts["equal" if ours.error is None else "both fail"] += 1
                continue
            counts["different"] += 1
            if counts["different"] <= SHOWN_PER_FILE:
                print(f"{template_file.name} differs on {json.dumps(request)}")
                print(f"  ingot        {shown(ours, theirs)}")
                print(f"  transformers {shown(theirs, ours)}")
    print(f"{digest} {template_file.name}: {in_words(counts)}", flush=True)
    return counts


def in_words(counts):
    return ", ".join(f"{counts[name]} {name}" for name in ("equal", "both fail", "different"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("directories", nargs="+", type=pathlib.Path, help="with *.jinja files")
    parser.add_argument("--ingot", required=True)
    parser.add_argument("--conversations", type=int, default=40, help="per template")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    files = []
    for directory in options.directories:
        found = sorted(directory.glob("*.jinja"))
        if not found:
            parser.error(f"{directory} has no *.jinja")
        files += found
    counts = collections.Counter()
    for file in files:
        counts += check(options.ingot, file, options.conversations, options.seed)
    print(f"{len(files)} templates: {in_words(counts)}")
    sys.exit(counts["different"] > 0 or counts["equal"] == 0)


if __name__ == "__main__":
    main()
