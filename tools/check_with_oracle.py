#!/usr/bin/env python3
"""Compares `ingot score` with the numpy oracle (float64) on random glm_moe_dsa models.

    check_with_oracle.py --ingot BINARY [--cases N] [--seed S] [--draft] [--keep DIR]

Each case draws a config, writes a float32 checkpoint, and compares the logits of every position.
The limit is 1e-4 for logits of size 5 and grows with them.  Rows from the first one on whose index
selection or routing is decided by less than 1e-5 are not compared, and the table says how many.
Without --ingot the oracle's absorbed form is compared with its naive form instead.
"""
import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np  # noqa: E402

from oracle import paths  # noqa: E402,F401
import comparison  # noqa: E402
import glm_oracle  # noqa: E402
from random_config import describe, random_config  # noqa: E402

TOLERANCE = 1e-4
DECISION_GAP_MIN = 1e-5
ARGMAX_GAP_MIN = 1e-3
DRAFT_TOKENS = 4


def draw_sequences(g, config):
    """One sequence, or now and then several; most are longer than the indexer may select."""
    count = 1 if g.random() < 0.7 else int(g.integers(2, 4))
    topk, vocabulary = config["index_topk"], config["vocab_size"]
    lengths = [int(g.integers(1, 4 * topk + 40)) for _ in range(count)]
    return [[int(x) for x in g.integers(0, vocabulary, n)] for n in lengths]


def oracle_draft(model, ids, hidden, logits):
    """The drafted ids as far as the oracle is sure of them."""
    next_id = int(logits[-1].argmax())
    last_gap = float(glm_oracle.boundary_gap(np.sort(logits[-1])[::-1], 1))
    draft = model.draft(ids[1:] + [next_id], hidden, list(range(len(ids))), DRAFT_TOKENS)
    sure = (comparison.comparable_rows(model, DECISION_GAP_MIN) == len(ids)
            and last_gap > ARGMAX_GAP_MIN
            and min([*model.draft_index_gap.values(), *model.draft_router_gap.values()],
                    default=1.0) > DECISION_GAP_MIN)
    num_sure = 0
    while sure and num_sure < len(draft) and model.argmax_gap[num_sure] > ARGMAX_GAP_MIN:
        num_sure += 1
    return draft[:num_sure]


def naive_logits(config, weights, sequences):
    return [glm_oracle.Glm(config, weights, absorbed=False).forward(ids)[1] for ids in sequences]


def run_case(case_seed, engine, checkpoint, with_draft):
    """Returns (passed, table row)."""
    g = np.random.default_rng(case_seed)
    config = random_config(g)
    sequences = draw_sequences(g, config)
    weights = glm_oracle.random_weights(config, case_seed)
    glm_oracle.write_checkpoint(checkpoint, config, weights)
    with_draft = with_draft and config["num_nextn_predict_layers"] > 0
    if engine is None:
        got, drafts = naive_logits(config, weights, sequences), None
    else:
        got, drafts = engine.score(checkpoint, sequences, DRAFT_TOKENS if with_draft else 0)
    if len(got) != len(sequences):
        raise RuntimeError(f"{len(got)} logit files for {len(sequences)} sequences")
    worst, worst_scaled, compared, total, size, draft_errors = 0.0, 0.0, 0, 0, 0.0, 0
    for i, ids in enumerate(sequences):
        model = glm_oracle.Glm(config, weights)
        hidden, want = model.forward(ids)
        num_rows = comparison.comparable_rows(model, DECISION_GAP_MIN)
        difference, scaled = comparison.scaled_difference(got[i], want, num_rows)
        worst, worst_scaled = max(worst, difference), max(worst_scaled, scaled)
        compared, total, size = compared + num_rows, total + len(ids), max(size, abs(want).max())
        if drafts is not None:
            sure = oracle_draft(model, ids, hidden, want)
            draft_errors += drafts[i][:len(sure)] != sure
    passed = worst_scaled <= TOLERANCE and not draft_errors
    skipped = f" skipped {total - compared} rows after a close decision" if compared < total else ""
    draft = f" DRAFTS DIFFER in {draft_errors}" if draft_errors else ""
    return passed, (f"{worst:9.2e} {size:7.2f} {compared:4}/{total:<4} {len(sequences)} "
                    f"{describe(config)}{skipped}{draft}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ingot", type=Path)
    parser.add_argument("--cases", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--draft", action="store_true", help="compare the MTP drafts as well")
    parser.add_argument("--engine-options", default="", help="more options for `ingot score`")
    parser.add_argument("--keep", type=Path, help="where to leave the checkpoints that failed")
    options = parser.parse_args()
    engine = comparison.Engine(options.ingot, options.engine_options) if options.ingot else None
    print("  seed   max diff |logit|  rows   sequences, shape")
    failed = 0
    for case_seed in range(options.seed, options.seed + options.cases):
        with tempfile.TemporaryDirectory() as checkpoint:
            try:
                passed, row = run_case(case_seed, engine, checkpoint, options.draft)
            except (RuntimeError, ValueError, OSError) as error:
                passed, row = False, str(error)
            print(f"{case_seed:6} {'ok  ' if passed else 'FAIL'} {row}", flush=True)
            if not passed:
                failed += 1
                if options.keep:
                    shutil.copytree(checkpoint, options.keep / str(case_seed), dirs_exist_ok=True)
    print(f"{options.cases - failed} of {options.cases} cases passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
