#!/usr/bin/env python3
"""Compares `ingot tokenize` with Hugging Face's tokenizers on random strings.

    PYTHON check_tokenizer_with_tokenizers.py --ingot BINARY MODEL_DIR... [--strings N] [--seed S]

PYTHON is one that has tokenizers (tools/README.md).  Every string is encoded twice: with control
tokens recognised, and as ordinary text, which for Hugging Face means a copy of the file without
added tokens.  Where nothing is normalized, the ids must decode to the string.  Prints the first
differences, and exits 1 if there is one.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

from tokenizers import Tokenizer

from random_text import PROSE, RandomText


def tokenize(ingot, model_dir, strings, control_tokens):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.writelines(json.dumps(string) + "\n" for string in strings)
        file.flush()
        command = [ingot, "tokenize", str(model_dir), "--jsonl", file.name]
        command += ["--control-tokens"] * control_tokens
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [json.loads(line) for line in output.splitlines()]


def count_differences(name, strings, ours, theirs):
    assert len(ours) == len(theirs) == len(strings), f"{len(ours)} lines of {len(strings)}"
    different = [i for i in range(len(strings)) if ours[i] != theirs[i]]
    num_tokens = sum(map(len, theirs))
    print(f"{name}: {len(strings)} strings, {num_tokens} tokens, {len(different)} differences",
          flush=True)
    for i in different[:5]:
        print(f"  {ascii(strings[i])}\n    ingot      {ours[i]}\n    tokenizers {theirs[i]}")
    return len(different)


def is_lossless(normalizer):
    return not normalizer or normalizer.get("normalizers") == []


def check(ingot, model_dir, num_strings, seed):
    description = json.loads((model_dir / "tokenizer.json").read_text())
    with_markers = Tokenizer.from_str(json.dumps(description))
    without_markers = Tokenizer.from_str(json.dumps(description | {"added_tokens": []}))
    markers = [token["content"] for token in description["added_tokens"]]
    prose = PROSE + "".join(pathlib.Path(__file__).with_name(name).read_text()
                            for name in ("random_text.py", "README.md"))
    source = RandomText(seed, markers, prose)
    strings = [source.string() for _ in range(num_strings)]
    differences = 0
    for name, tokenizer, control_tokens in (("recognised", with_markers, True),
                                            ("as text", without_markers, False)):
        ours = tokenize(ingot, model_dir, strings, control_tokens)
        theirs = [e.ids for e in tokenizer.encode_batch(strings, add_special_tokens=False)]
        differences += count_differences(f"{model_dir.name}, control tokens {name}", strings, ours,
                                         theirs)
        if is_lossless(description["normalizer"]):
            decoded = with_markers.decode_batch(ours, skip_special_tokens=False)
            lost = sum(a != b for a, b in zip(decoded, strings))
            print(f"  {lost} do not decode to themselves")
            differences += lost
    return differences


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model_dirs", nargs="+", type=pathlib.Path)
    parser.add_argument("--ingot", required=True)
    parser.add_argument("--strings", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    counts = [check(arguments.ingot, model_dir, arguments.strings, arguments.seed)
              for model_dir in arguments.model_dirs]
    sys.exit(any(counts))


if __name__ == "__main__":
    main()
