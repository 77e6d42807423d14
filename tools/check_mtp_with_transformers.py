#!/usr/bin/env python3
"""Compares the numpy oracle's MTP chain with one built from Hugging Face transformers' own layers.

    PYTHON check_mtp_with_transformers.py [--family F] [--seeds N] [--random N] [--draft K]
                                          [--double]

PYTHON is one that has torch and transformers (tools/README.md).  Cases are the golden shapes that
have an MTP layer, with N seeds each, and --random N drawn shapes a family; those that can share an
index selection among drafts run with and without.  Only seeds whose every decision is clear are
taken.  Fails where a drafted token differs, or a hidden state of any pass (after shared_head.norm)
by more than 1e-4; with --double, where transformers computes in float64, by more than 1e-10.
Where transformers has an MTP model itself (deepseek_v3), that is compared too.
"""
import argparse
import os
import sys
import tempfile

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402

from oracle import paths  # noqa: E402,F401
import comparison  # noqa: E402
import glm_oracle  # noqa: E402
import transformers_reference as reference  # noqa: E402
from families import WITH_INDEXER, add_family_option, chosen_families, drawable_ids  # noqa: E402
from random_config import generator, random_config  # noqa: E402
from tiny_configs import tiny_configs  # noqa: E402

TOLERANCE = 1e-4
TOLERANCE_DOUBLE = 1e-10
DECISION_GAP_MIN = 2e-5
SEED_STRIDE = 1000


def shapes(family, num_random):
    """(name, config) of every model with an MTP layer that transformers computes."""
    configs = list(tiny_configs(family).items())
    configs += [(f"random {i}", random_config(generator(family, i), family, for_hf=True))
                for i in range(num_random)]
    for name, config in configs:
        half_split = config.get("indexer_rope_interleave") is False and family == "glm_moe_dsa"
        if not config["num_nextn_predict_layers"] or half_split:
            continue
        if family not in WITH_INDEXER:
            yield name, config
            continue
        for share in (False, True):
            yield (f"{name}{' shared' if share else ''}",
                   dict(config, index_share_for_mtp_iteration=share))


def decisive_run(config, num_tokens, first_seed, draft_tokens):
    """(seed, weights, ids, logits, model) of the first seed whose decisions are all clear."""
    for seed in range(first_seed, first_seed + SEED_STRIDE):
        weights = glm_oracle.random_weights(config, seed)
        g = np.random.default_rng(seed + 1)
        ids = [int(x) for x in g.integers(*drawable_ids(config), num_tokens)]
        model = glm_oracle.Glm(config, weights)
        hidden, logits = model.forward(ids)
        model.drafted = comparison.run_oracle_draft(model, ids, hidden, logits, draft_tokens)
        if comparison.num_sure_drafts(model, logits, DECISION_GAP_MIN) == draft_tokens:
            return seed, weights, ids, logits, model
    raise SystemExit("no seed decides clearly enough")


def largest_difference(passes, model):
    return max(float(np.abs(got - want).max())
               for got, want in zip(passes, model.draft_hidden, strict=True))


def run_case(config, num_tokens, first_seed, draft_tokens):
    """Returns (drafts are equal, table row, largest difference of a hidden state)."""
    seed, weights, ids, logits, model = decisive_run(config, num_tokens, first_seed, draft_tokens)
    with tempfile.TemporaryDirectory() as checkpoint:
        glm_oracle.write_checkpoint(checkpoint, config, weights)
        hf_logits, drafted, passes = reference.MtpChain(checkpoint).draft(ids, draft_tokens)
        logit_difference = float(np.abs(hf_logits - logits).max())
        difference = largest_difference(passes, model)
        equal, column = drafted == model.drafted, ""
        moe = config["first_k_dense_replace"] <= config["num_hidden_layers"]
        if config["model_type"] == "deepseek_v3" and moe:
            drafted, passes = reference.mtp_model_passes(checkpoint, ids, draft_tokens)
            other = largest_difference(passes, model)
            equal, difference = equal and drafted == model.drafted, max(difference, other)
            column = f" MtpModel {other:.2e}"
    size = max(float(np.abs(y).max()) for y in model.draft_hidden)
    row = (f"{seed:6} {num_tokens:6} {size:8.2f} {logit_difference:10.2e} {difference:10.2e} "
           f"{'equal' if equal else 'DIFFERENT'}{column}")
    return equal, row, difference


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add_family_option(parser)
    parser.add_argument("--seeds", type=int, default=3, help="seeds for each golden shape")
    parser.add_argument("--random", type=int, default=5, help="number of drawn shapes a family")
    parser.add_argument("--draft", type=int, default=4, metavar="K", help="length of the chain")
    parser.add_argument("--double", action="store_true", help="run transformers in float64")
    options = parser.parse_args()
    reference.quiet()
    if options.double:
        reference.use_float64()
    tolerance = TOLERANCE_DOUBLE if options.double else TOLERANCE
    print(f"transformers {transformers.__version__}, torch {torch.__version__}")
    print(f"{'case':40} result   seed tokens |hidden|  logits     hidden     drafts")
    failed = total = 0
    for family in chosen_families(options):
        worst = 0.0
        for name, config in shapes(family, options.random):
            num_tokens = max(3 * config.get("index_topk", 0) + 10, 40)
            for i in range(1 if name.startswith("random") else options.seeds):
                equal, row, difference = run_case(config, num_tokens, (i + 1) * SEED_STRIDE,
                                                  options.draft)
                passed = equal and difference <= tolerance
                total, failed, worst = total + 1, failed + (not passed), max(worst, difference)
                print(f"{family + ' ' + name:40} {'ok  ' if passed else 'FAIL'} {row}", flush=True)
        print(f"{family}: hidden states differ by at most {worst:.1e}")
    print(f"{total - failed} of {total} cases passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
