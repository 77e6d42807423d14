#!/usr/bin/env python3
"""Counts tensors and parameters of a published checkpoint from its config.json alone.

    count_parameters.py CONFIG.json...     a table
    count_parameters.py --check            the published models against the known totals

The shapes come from the oracle.  A block-FP8 config adds one scale per 128 x 128 block of every
quantized weight; DeepSeek and GLM-4.7-Flash store the embedding and the head again in the MTP
layer.
"""
import argparse
import json
import math
import sys
from pathlib import Path

from oracle import paths  # noqa: F401
import glm_oracle

CONFIGS = Path(__file__).resolve().parent.parent / "tests" / "golden" / "configs"
MODELS_WITH_MTP_DUPLICATES = ("glm4_moe_lite", "deepseek_v3", "deepseek_v32")
NEVER_FP8 = ("embed_tokens.weight", "lm_head.weight", "mlp.gate.weight",
             "indexer.weights_proj.weight", "eh_proj.weight", "shared_head.head.weight")

# file: (weights without scales, tensors with scales)
KNOWN = {"glm-5.1.json": (753_864_139_008, 59_870),
         "glm-5.2.json": (753_329_940_480, 59_585),
         "glm-5.2-fp8.json": (753_329_940_480, 118_629),
         "glm-4.7-flash.json": (31_221_488_576, 9_703),
         "deepseek-v3.json": (684_489_845_504, 91_991)}


def checkpoint_shapes(config):
    shapes = glm_oracle.shapes(config)
    if config["model_type"] in MODELS_WITH_MTP_DUPLICATES:
        for i in range(config["num_nextn_predict_layers"]):
            prefix = f"model.layers.{config['num_hidden_layers'] + i}."
            table = (config["vocab_size"], config["hidden_size"])
            shapes[prefix + "embed_tokens.weight"] = table
            shapes[prefix + "shared_head.head.weight"] = table
    return shapes


def is_block_fp8(name, shape):
    return len(shape) == 2 and not name.endswith(NEVER_FP8)


def count(config):
    """Returns {kind: (tensors, values)} for kinds 'plain', 'fp8' and 'scales'."""
    totals = dict(plain=(0, 0), fp8=(0, 0), scales=(0, 0))

    def add(kind, values):
        totals[kind] = (totals[kind][0] + 1, totals[kind][1] + values)

    block = (config.get("quantization_config") or {}).get("weight_block_size")
    for name, shape in checkpoint_shapes(config).items():
        fp8 = block is not None and is_block_fp8(name, shape)
        add("fp8" if fp8 else "plain", math.prod(shape))
        if fp8:
            add("scales", math.prod(math.ceil(n / b) for n, b in zip(shape, block)))
    return totals


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("configs", nargs="*", type=Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    configs = options.configs or sorted(CONFIGS.glob("*.json"))
    wrong = 0
    print(f"{'config':24}{'tensors':>9}{'weights':>18}{'of them FP8':>18}{'scales':>14}")
    for path in configs:
        totals = count(json.loads(path.read_text()))
        tensors = sum(t for t, _ in totals.values())
        weights = totals["plain"][1] + totals["fp8"][1]
        verdict = ""
        if options.check and path.name in KNOWN:
            right = KNOWN[path.name] == (weights, tensors)
            verdict = "  as known" if right else f"  KNOWN AS {KNOWN[path.name]}"
            wrong += not right
        print(f"{path.name:24}{tensors:>9,}{weights:>18,}{totals['fp8'][1]:>18,}"
              f"{totals['scales'][1]:>14,}{verdict}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
