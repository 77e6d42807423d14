#!/usr/bin/env python3
"""Compares `ingot tokenize` with Hugging Face's tokenizers on many random strings. Needs the package tokenizers.

Every string is encoded twice: with control tokens recognised, and as ordinary text (which for Hugging Face means a
copy of the file without added tokens). Prints the first differences, and exits 1 if there is one.

usage: check_tokenizer_with_tokenizers.py --ingot BINARY MODEL_DIR... [--strings 100000] [--seed 1]
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

from tokenizers import Tokenizer

TEXT_FILES = ["/usr/share/common-licenses/GPL-3", "/usr/share/common-licenses/Artistic", __file__]
RANGES = [  # Latin, Greek, Cyrillic, Hebrew and Arabic, Indic, Thai, Hangul, kana, Han, emoji, marks, digits of many scripts
    (0x20, 0x7F), (0x80, 0x250), (0x370, 0x400), (0x400, 0x530), (0x590, 0x700), (0x900, 0xE00), (0xE00, 0xE80),
    (0x1100, 0x1200), (0xAC00, 0xD7A4), (0x3040, 0x3100), (0x4E00, 0xA000), (0x1F300, 0x1FAFF), (0x300, 0x370),
    (0x2000, 0x2070), (0xFF00, 0xFFEF), (0x660, 0x66A), (0x1D400, 0x1D800), (0x20000, 0x20100)]
SPACES = " \t\n\r\v\f\x85\xa0\u1680\u180e\u2003\u2028\u2029\u202f\u205f\u3000\u200b"
ODD = "ſK'’sStTdDmMllveVErR İıßŉǆﬁﬆ\u0301\u0345\u1100\u1161\u11a7\u11a8각\u0897\u1c89\ua7da\U00010d40\U00031350\U0001e5f0\x00\x7f\xad"


class Strings:
    """Random strings of several kinds, each a function of the seed alone."""

    def __init__(self, seed, markers):
        self.random = random.Random(seed)
        self.markers = markers or ["<|none|>"]
        self.texts = [pathlib.Path(f).read_text() for f in TEXT_FILES]
        self.kinds = [self.any, self.script, self.ascii, self.spaces, self.odd, self.prose, self.marked]

    def one(self):
        return self.random.choice(self.kinds)()

    def length(self):
        return int(self.random.expovariate(1 / 16))

    def code_point(self, first, end):
        c = self.random.randrange(first, end)
        return chr(c) if not 0xD800 <= c < 0xE000 else "\ufffd"

    def any(self):
        return "".join(self.code_point(0, 0x110000) for _ in range(self.length()))

    def script(self):
        spans = self.random.choices(RANGES, k=2)
        return "".join(self.code_point(*self.random.choice(spans)) for _ in range(self.length()))

    def ascii(self):
        return "".join(chr(self.random.randrange(128)) for _ in range(self.length()))

    def spaces(self):
        return "".join(self.random.choice(SPACES if self.random.random() < 0.7 else "a1.é中'") for _ in range(self.length()))

    def odd(self):
        return "".join(self.random.choice(ODD) for _ in range(self.length()))

    def prose(self):
        text = self.random.choice(self.texts)
        begin = self.random.randrange(len(text))
        words = text[begin : begin + 4 * self.length()]
        return words.swapcase() if self.random.random() < 0.2 else words

    def marked(self):
        parts = []
        for _ in range(self.random.randrange(1, 6)):
            marker = self.random.choice(self.markers)
            cut = self.random.randrange(len(marker) + 1)
            parts += [self.random.choice([marker, marker, marker[:cut], marker[cut:]]), self.random.choice([self.ascii, self.spaces, self.prose, str])()]
        return "".join(parts)


def tokenize(ingot, model_dir, strings, control_tokens):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.writelines(json.dumps(s) + "\n" for s in strings)
        file.flush()
        command = [ingot, "tokenize", str(model_dir), "--jsonl", file.name] + ["--control-tokens"] * control_tokens
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [json.loads(line) for line in output.splitlines()]


def compare(name, strings, ours, theirs):
    assert len(ours) == len(theirs) == len(strings), f"{len(ours)} lines for {len(strings)} strings"
    different = [i for i in range(len(strings)) if ours[i] != theirs[i]]
    print(f"{name}: {len(strings)} strings, {sum(map(len, theirs))} tokens, {len(different)} differences", flush=True)
    for i in different[:5]:
        print(f"  {ascii(strings[i])}\n    ingot      {ours[i]}\n    tokenizers {theirs[i]}")
    return len(different)


def check(ingot, model_dir, num_strings, seed):
    description = json.loads((model_dir / "tokenizer.json").read_text())
    with_markers = Tokenizer.from_str(json.dumps(description))
    markers = [token["content"] for token in description["added_tokens"]]
    without_markers = Tokenizer.from_str(json.dumps(description | {"added_tokens": []}))
    source = Strings(seed, markers)
    strings = [source.one() for _ in range(num_strings)]
    differences = 0
    for name, tokenizer, control_tokens in (("recognised", with_markers, True), ("as text", without_markers, False)):
        ours = tokenize(ingot, model_dir, strings, control_tokens)
        theirs = [e.ids for e in tokenizer.encode_batch(strings, add_special_tokens=False)]
        differences += compare(f"{model_dir.name}, control tokens {name}", strings, ours, theirs)
        if not description["normalizer"] or description["normalizer"].get("normalizers") == []:
            lossless = sum(with_markers.decode(ids, skip_special_tokens=False) == s for ids, s in zip(ours, strings))
            print(f"  decoded to themselves: {lossless}")
            differences += len(strings) - lossless
    return differences


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model_dirs", nargs="+", type=pathlib.Path)
    parser.add_argument("--ingot", required=True)
    parser.add_argument("--strings", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    sys.exit(any([check(arguments.ingot, d, arguments.strings, arguments.seed) for d in arguments.model_dirs]))


if __name__ == "__main__":
    main()
