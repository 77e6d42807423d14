#!/usr/bin/env python3
"""Makes tests/golden/text/*_tokenizer: small tokenizers and what Hugging Face's tokenizers give.

    PYTHON make_golden_tokenizers.py [--check]

PYTHON is one that has tokenizers (tools/README.md).  Each directory has a tokenizer.json, trained
on text of our own, in the shape of a published one; encodings.jsonl, a line for each string:
[string, ids with control tokens recognised, ids as ordinary text]; and decodings.jsonl:
[ids, text, text without special tokens].  --check compares instead of writing.
"""
import argparse
import json
import pathlib
import random
import sys

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from random_text import PROSE, RandomText

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "tests/golden/text"
NUM_STRINGS, NUM_SEQUENCES = 300, 100

GLM_PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
               r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK_PATTERNS = [
    r"\p{N}{1,3}",
    "[一-龥぀-ゟ゠-ヿ]+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"]
GLM_SPECIAL = (
    "<|endoftext|> [MASK] [gMASK] [sMASK] <sop> <eop> <|system|> <|user|> <|assistant|> "
    "<|observation|> <|begin_of_image|> <|end_of_image|> <|begin_of_video|> <|end_of_video|> "
    "<|begin_of_audio|> <|end_of_audio|> <|begin_of_transcription|> <|end_of_transcription|>")
GLM_ORDINARY = (
    "<|code_prefix|> <|code_middle|> <|code_suffix|> <think> </think> <tool_call> </tool_call> "
    "<tool_response> </tool_response> <arg_key> </arg_key> <arg_value> </arg_value> /nothink "
    "<|begin_of_box|> <|end_of_box|> <|image|> <|video|>")
EDGE_STRINGS = [
    "", " ", "  ", "\n", "\r\n", " \n ", "a", "é", "中", "🚢", "\x00", "don't", "DON'T", "'ſ",
    "a'ſb", "1234567", "12 345", "٣٤٥٦", "  two", "x  \n\n  y", "tab\t\tend ", "\u180ea",
    "a\u0301\u0345",
    "<|user|>", "<|user|", "<<|user|>>", "<|user|><|assistant|>", " <|user|> ", "<think></think>",
    "</think>/nothink", "[gMASK]<sop>hi", "the harbour", "harbour's", "ß㋿ﬁ①Å", "각\u11a7",
    "a" * 60, " " * 70, "ab" * 40, "the " * 30, "🏴‍☠️" * 12, "!?" * 50]


def byte_level_model(vocabulary_size, pre_tokenizer, first_tokens=()):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size, min_frequency=1, show_progress=False,
        special_tokens=list(first_tokens),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.train_from_iterator([PROSE], trainer)
    return tokenizer


def split_sequence(patterns):
    splits = [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in patterns]
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return pre_tokenizers.Sequence([*splits, byte_level])


def added(id, content, special=False, **options):
    return {"id": id, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": False, "special": special} | options


def described(tokenizer):
    tokenizer.decoder = decoders.ByteLevel()
    return json.loads(tokenizer.to_str())


def glm():
    """GLM's shape: one pattern, merges as pairs, 36 added tokens, and ignore_merges.

    Every fifth merge is left out, so that many words of the vocabulary are only to be had by it.
    """
    description = described(byte_level_model(800, split_sequence([GLM_PATTERN])))
    model = description["model"]
    model["ignore_merges"] = True
    parts = {part for merge in model["merges"][::5] for part in merge}
    model["merges"] = [merge for i, merge in enumerate(model["merges"])
                       if i % 5 or "".join(merge) in parts]
    base = len(model["vocab"])
    markers = GLM_SPECIAL.split() + GLM_ORDINARY.split()
    description["added_tokens"] = [added(base + i, marker, special=i < 18)
                                   for i, marker in enumerate(markers)]
    return description


def deepseek():
    """DeepSeek's shape: three patterns, merges as strings, markers in the vocabulary and beyond."""
    first = ["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜▁pad▁｜>"]
    tokenizer = byte_level_model(700, split_sequence(DEEPSEEK_PATTERNS), first)
    tokenizer.normalizer = normalizers.Sequence([])
    description = described(tokenizer)
    description["model"]["merges"] = [" ".join(merge) for merge in description["model"]["merges"]]
    base = len(description["model"]["vocab"])
    markers = ["<｜User｜>", "<｜Assistant｜>", "<|EOT|>", "<｜tool▁calls▁begin｜>",
               "<|EOT|><|EOT|>"]
    description["added_tokens"] = [added(i, marker, special=True) for i, marker in enumerate(first)]
    description["added_tokens"] += [added(base + i, marker, normalized=i > 1)
                                    for i, marker in enumerate(markers)]
    return description


def nfkc():
    """GPT-2's words, NFKC, and added tokens with the options that those two shapes do not use."""
    tokenizer = byte_level_model(400, pre_tokenizers.ByteLevel(add_prefix_space=False))
    tokenizer.normalizer = normalizers.NFKC()
    description = described(tokenizer)
    base = len(description["model"]["vocab"])
    description["added_tokens"] = [
        added(base, "<s>", special=True), added(base + 1, "<mask>", special=True, lstrip=True),
        added(base + 2, "<sep>", special=True, rstrip=True),
        added(base + 3, "harbour", single_word=True),
        added(base + 4, "<both>", lstrip=True, rstrip=True),
        added(base + 5, "été", single_word=True),
        added(base + 6, "ñé")]  # decodes as the bytes F1 E9
    return description


def encodings(description, markers):
    with_markers = Tokenizer.from_str(json.dumps(description))
    without_markers = Tokenizer.from_str(json.dumps(description | {"added_tokens": []}))
    source = RandomText(5, markers, PROSE)
    strings = EDGE_STRINGS + [source.string() for _ in range(NUM_STRINGS)]
    for string in strings:
        yield [string, *(tokenizer.encode(string, add_special_tokens=False).ids
                         for tokenizer in (with_markers, without_markers))]


def decodings(description):
    """Random ids: most sequences break characters."""
    tokenizer = Tokenizer.from_str(json.dumps(description))
    numbers = random.Random(7)
    all_ids = sorted(tokenizer.get_vocab(with_added_tokens=True).values())
    bytes_and_markers = all_ids[:256] + [token["id"] for token in description["added_tokens"]]
    for i in range(NUM_SEQUENCES):
        ids = numbers.choices(bytes_and_markers if i % 2 else all_ids, k=numbers.randrange(40))
        yield [ids, *(tokenizer.decode(ids, skip_special_tokens=skip) for skip in (False, True))]


def lines(rows):
    return "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)


def files():
    for shape in (glm, deepseek, nfkc):
        description = shape()
        directory = GOLDEN / f"{shape.__name__}_tokenizer"
        markers = [token["content"] for token in description["added_tokens"]]
        yield directory / "tokenizer.json", json.dumps(description, ensure_ascii=False) + "\n"
        yield directory / "encodings.jsonl", lines(encodings(description, markers))
        yield directory / "decodings.jsonl", lines(decodings(description))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with the stored files")
    check = parser.parse_args().check
    different = []
    for path, text in files():
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            different.append(path)
    for path in different:
        print(f"{path} is not what this script makes")
    sys.exit(bool(different))


if __name__ == "__main__":
    main()
