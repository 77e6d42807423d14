#!/usr/bin/env python3
"""Compares `ingot score` with the numpy oracle (float64) on random models of each family.

    check_with_oracle.py --ingot BINARY [--family F] [--cases N] [--seed S] [--draft [K]]
                         [--keep DIR]

Each case, N a family, draws a config, writes a float32 checkpoint, and compares the logits of every
position.  The limit is 1e-4 for logits of size 5 and grows with them.  Rows from the first one on
whose index selection or routing is decided by less than 1e-5 are not compared, and the table says
how many.  --draft K compares drafted tokens as well, as far as nothing close decides them.
Without --ingot the oracle's absorbed form is compared with its naive form instead.
"""
import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from oracle import paths  # noqa: E402,F401
import comparison  # noqa: E402
import glm_oracle  # noqa: E402
from families import add_family_option, chosen_families  # noqa: E402
from random_config import describe, generator, random_config  # noqa: E402

TOLERANCE = 1e-4
DECISION_GAP_MIN = 1e-5
DRAFT_TOKENS = 4
DENSE_LENGTH = 24       # stands for index_topk where there is no indexer


def draw_sequences(g, config):
    """One sequence, or now and then several; most are longer than the indexer may select."""
    count = 1 if g.random() < 0.7 else int(g.integers(2, 4))
    topk, vocabulary = config.get("index_topk", DENSE_LENGTH), config["vocab_size"]
    lengths = [int(g.integers(1, 4 * topk + 40)) for _ in range(count)]
    return [[int(x) for x in g.integers(0, vocabulary, n)] for n in lengths]


def naive_logits(config, weights, sequences):
    return [glm_oracle.Glm(config, weights, absorbed=False).forward(ids)[1] for ids in sequences]


def run_case(family, case_seed, engine, checkpoint, draft_tokens):
    """Returns (passed, table row)."""
    g = generator(family, case_seed)
    config = random_config(g, family)
    sequences = draw_sequences(g, config)
    weights = glm_oracle.random_weights(config, case_seed)
    glm_oracle.write_checkpoint(checkpoint, config, weights)
    if not config["num_nextn_predict_layers"]:
        draft_tokens = 0
    if engine is None:
        got, drafts = naive_logits(config, weights, sequences), None
    else:
        got, drafts = engine.score(checkpoint, sequences, draft_tokens)
    if len(got) != len(sequences):
        raise RuntimeError(f"{len(got)} logit files for {len(sequences)} sequences")
    worst, worst_scaled, compared, total, size = 0.0, 0.0, 0, 0, 0.0
    num_drafts, draft_errors = 0, 0
    for i, ids in enumerate(sequences):
        model = glm_oracle.Glm(config, weights)
        hidden, want = model.forward(ids)
        num_rows = comparison.comparable_rows(model, DECISION_GAP_MIN)
        difference, scaled = comparison.scaled_difference(got[i], want, num_rows)
        worst, worst_scaled = max(worst, difference), max(worst_scaled, scaled)
        compared, total, size = compared + num_rows, total + len(ids), max(size, abs(want).max())
        if drafts is not None:
            draft = comparison.run_oracle_draft(model, ids, hidden, want, draft_tokens)
            sure = comparison.num_sure_drafts(model, want, DECISION_GAP_MIN)
            num_drafts += sure
            draft_errors += drafts[i][:sure] != draft[:sure] or len(drafts[i]) != draft_tokens
    passed = worst_scaled <= TOLERANCE and not draft_errors
    skipped = f" skipped {total - compared} rows after a close decision" if compared < total else ""
    draft = f" drafts {num_drafts}" if drafts is not None else ""
    draft += f" DRAFTS DIFFER in {draft_errors}" if draft_errors else ""
    return passed, (f"{worst:9.2e} {size:7.2f} {compared:4}/{total:<4} {len(sequences)} "
                    f"{describe(config)}{skipped}{draft}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ingot", type=Path)
    add_family_option(parser)
    parser.add_argument("--cases", type=int, default=20, help="number of cases a family")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--draft", type=int, nargs="?", const=DRAFT_TOKENS, default=0, metavar="K",
                        help="compare K drafts of the MTP chain as well")
    parser.add_argument("--engine-options", default="", help="more options for `ingot score`")
    parser.add_argument("--keep", type=Path, help="where to leave the checkpoints that failed")
    options = parser.parse_args()
    engine = comparison.Engine(options.ingot, options.engine_options) if options.ingot else None
    print("  seed   max diff |logit|  rows   sequences, shape")
    failed = 0
    cases = [(family, options.seed + i) for family in chosen_families(options)
             for i in range(options.cases)]
    for family, case_seed in cases:
        with tempfile.TemporaryDirectory() as checkpoint:
            try:
                passed, row = run_case(family, case_seed, engine, checkpoint, options.draft)
            except (RuntimeError, ValueError, OSError) as error:
                passed, row = False, f"{family}: {error}"
            print(f"{case_seed:6} {'ok  ' if passed else 'FAIL'} {row}", flush=True)
            if not passed:
                failed += 1
                if options.keep:
                    shutil.copytree(checkpoint, options.keep / f"{family}_{case_seed}",
                                    dirs_exist_ok=True)
    print(f"{len(cases) - failed} of {len(cases)} cases passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
