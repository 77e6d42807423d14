#!/usr/bin/env python3
"""How fast `ingot tokenize` and Hugging Face's tokenizers turn a text into ids, on one thread each.

usage: compare_tokenizer_speed.py MODEL_DIR... --ingot build/release/ingot --text FILE [--turns N]

Needs the package tokenizers. The two take turns; the medians are printed, and whether the ids are
the same. Text is taken as text: control tokens are not recognised by either.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import time

os.environ["RAYON_NUM_THREADS"] = "1"

from tokenizers import Tokenizer  # noqa: E402 (after the number of threads)


def without_added_tokens(path):
    description = json.loads(path.read_text())
    vocabulary = description["model"]["vocab"]
    description["added_tokens"] = [
        token for token in description["added_tokens"] if token["content"] in vocabulary
    ]
    return Tokenizer.from_str(json.dumps(description))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--ingot", required=True)
    parser.add_argument("--text", required=True, type=pathlib.Path)
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    text = options.text.read_text()
    size = len(text.encode()) / 1e6
    for model in options.models:
        peer = without_added_tokens(model / "tokenizer.json")
        ours, theirs, loads = [], [], []
        for _ in range(options.turns):
            command = [options.ingot, "tokenize", model, "--file", options.text, "--json"]
            result = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
            ours.append(result["timings"]["encode_seconds"])
            loads.append(result["timings"]["load_seconds"])
            start = time.perf_counter()
            ids = peer.encode(text, add_special_tokens=False).ids
            theirs.append(time.perf_counter() - start)
        same = ids == result["token_ids"]
        print(
            f"{model.name}: ingot {size / statistics.median(ours):.1f} MB/s, tokenizers "
            f"{size / statistics.median(theirs):.1f} MB/s, {len(ids)} ids "
            f"{'equal' if same else 'DIFFER'}; ingot loads in {statistics.median(loads):.2f} s"
        )


if __name__ == "__main__":
    main()
