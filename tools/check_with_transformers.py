#!/usr/bin/env python3
"""Compares `ingot score` with Hugging Face transformers on small models of the four families.

    PYTHON check_with_transformers.py --ingot BINARY [--family F] [--seeds N] [--random N]
                                      [--draft [K]] [--double] [--keep DIR]

PYTHON is one that has torch and transformers (tools/README.md).  Cases are the golden files,
their shapes with N other seeds each, and --random N drawn shapes a family.  Fails where logits
differ by more than 1e-4 (for logits of size 5).  The numpy oracle stands third: without --ingot
only HF and it are compared.  --draft K compares drafted tokens as well, as far as nothing close
decides them.  --double runs transformers in float64; the oracle must then agree to 1e-10.

What transformers does otherwise, as of 5.24 (see also oracle/transformers_reference.py):
  glm_moe_dsa takes indexer_rope_interleave as true; shapes with false are left out.
  torch.topk breaks ties in no defined order; seeds that decide closely are passed over.
"""
import argparse
import json
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402

from oracle import paths  # noqa: E402,F401
import comparison  # noqa: E402
import glm_oracle  # noqa: E402
import synthetic_weights  # noqa: E402
import transformers_reference as reference  # noqa: E402
from families import add_family_option, chosen_families, drawable_ids  # noqa: E402
from random_config import generator, random_config  # noqa: E402
from tiny_configs import tiny_configs  # noqa: E402

GOLDEN = Path(__file__).resolve().parent.parent / "tests" / "golden"
TOLERANCE = 1e-4
TOLERANCE_DOUBLE = 1e-10
DECISION_GAP_MIN = 2e-5
SEED_STRIDE = 1000      # seeds passed over must not run into the next case's
DRAFT_TOKENS = 4


@dataclass
class Case:
    name: str
    seed: int
    config: dict
    weights: dict
    ids: list
    model: glm_oracle.Glm
    hidden: np.ndarray
    logits: np.ndarray       # [tokens, vocabulary]


def run_oracle(name, seed, config, weights, ids):
    model = glm_oracle.Glm(config, weights)
    return Case(name, seed, config, weights, ids, model, *model.forward(ids))


def decisive_case(name, config, num_tokens, first_seed):
    """The case of the first seed whose decisions are all clear."""
    for seed in range(first_seed, first_seed + SEED_STRIDE):
        g = np.random.default_rng(seed + 1)
        ids = [int(x) for x in g.integers(*drawable_ids(config), num_tokens)]
        case = run_oracle(name, seed, config, glm_oracle.random_weights(config, seed), ids)
        if comparison.comparable_rows(case.model, DECISION_GAP_MIN) == num_tokens:
            return case
    raise SystemExit(f"{name}: no seed decides clearly enough")


def transformers_computes(config):
    return config["model_type"] != "glm_moe_dsa" or config.get("indexer_rope_interleave", True)


def golden_cases(family):
    """The stored golden files themselves, with the weights that their seed stands for."""
    for directory in sorted((GOLDEN / family).iterdir()):
        config = json.loads((directory / "config.json").read_text())
        stored = json.loads((directory / "case.json").read_text())
        if not transformers_computes(config):
            continue
        weights = synthetic_weights.weights(config, stored["seed"], stored["dtype"])
        logits, start = np.load(directory / "logits.npy"), 0
        for sequence in stored["sequences"]:
            case = run_oracle(f"golden {family}/{directory.name}", stored["seed"], config, weights,
                              sequence["ids"])
            end = start + len(case.ids)
            if not np.array_equal(logits[start:end], case.logits.astype(np.float32)):
                print(f"{case.name}: not what the oracle computes here", flush=True)
            start = end
            yield case


def cases(family, num_seeds, num_random):
    yield from golden_cases(family)
    for name, config in tiny_configs(family).items():
        if not transformers_computes(config):
            continue
        num_tokens = 220 if name == "long_context" else max(5 * config.get("index_topk", 0), 60)
        for i in range(num_seeds):
            yield decisive_case(f"{family}/{name}", config, num_tokens, (i + 1) * SEED_STRIDE)
    for i in range(num_random):
        config = random_config(generator(family, i), family, for_hf=True)
        yield decisive_case(f"{family} random {i}", config, 3 * config.get("index_topk", 20) + 10,
                            SEED_STRIDE)


def compare_drafts(case, drafts, checkpoint, count):
    """Returns (equal, column): the oracle's drafts with those of HF's layers and the engine's."""
    drafted = comparison.run_oracle_draft(case.model, case.ids, case.hidden, case.logits, count)
    sure = comparison.num_sure_drafts(case.model, case.logits, DECISION_GAP_MIN)
    others = [reference.MtpChain(checkpoint).draft(case.ids, count)[1]]
    if drafts is not None:
        others.append(drafts)
    equal = all(len(other) == count and other[:sure] == drafted[:sure] for other in others)
    return equal, f" drafts {sure}/{count} {'equal' if equal else 'DIFFERENT'}"


def run_case(case, engine, checkpoint, options):
    """Returns (passed, table row, difference between HF and the oracle)."""
    num_tokens, worst = len(case.ids), 0.0
    count = options.draft if case.config["num_nextn_predict_layers"] else 0
    glm_oracle.write_checkpoint(checkpoint, case.config, case.weights)
    want = reference.logits(checkpoint, case.ids)
    hf_difference, scaled = comparison.scaled_difference(want, case.logits, num_tokens)
    passed = scaled <= (TOLERANCE_DOUBLE if options.double else TOLERANCE)
    columns, drafts = [f"{hf_difference:10.2e}"], None
    if engine:
        all_logits, all_drafts = engine.score(checkpoint, [case.ids], count)
        drafts = all_drafts[0] if all_drafts else None
        for other in (want, case.logits):
            difference, scaled = comparison.scaled_difference(all_logits[0], other, num_tokens)
            columns.append(f"{difference:10.2e}")
            worst = max(worst, scaled)
    if count:
        equal, column = compare_drafts(case, drafts, checkpoint, count)
        columns.append(column)
        passed = passed and equal
    row = (f"{case.seed:6} {num_tokens:6} {np.abs(case.logits).max():8.2f} " + " ".join(columns))
    return passed and worst <= TOLERANCE, row, hf_difference


def run_family(family, engine, options):
    """Prints a line a case; returns (number of cases, number that failed)."""
    failed, worst, total = 0, 0.0, 0
    for case in cases(family, options.seeds, options.random):
        with tempfile.TemporaryDirectory() as checkpoint:
            difference = 0.0
            try:
                passed, row, difference = run_case(case, engine, checkpoint, options)
            except (RuntimeError, ValueError, OSError) as error:
                passed, row = False, str(error)
            total, failed, worst = total + 1, failed + (not passed), max(worst, difference)
            print(f"{case.name:40} {'ok  ' if passed else 'FAIL'} {row}", flush=True)
            if not passed and options.keep:
                target = f"{case.name.replace(' ', '_').replace('/', '_')}_{case.seed}"
                shutil.copytree(checkpoint, options.keep / target, dirs_exist_ok=True)
    print(f"{family}: HF and the oracle differ by at most {worst:.1e}")
    return total, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ingot", type=Path)
    add_family_option(parser)
    parser.add_argument("--seeds", type=int, default=3, help="seeds for each golden shape")
    parser.add_argument("--random", type=int, default=10, help="number of drawn shapes a family")
    parser.add_argument("--draft", type=int, nargs="?", const=DRAFT_TOKENS, default=0, metavar="K",
                        help="compare K drafts of the MTP chain as well")
    parser.add_argument("--double", action="store_true", help="run transformers in float64")
    parser.add_argument("--engine-options", default="", help="more options for `ingot score`")
    parser.add_argument("--keep", type=Path, help="where to leave the checkpoints that failed")
    options = parser.parse_args()
    reference.quiet()
    if options.double:
        reference.use_float64()
    engine = comparison.Engine(options.ingot, options.engine_options) if options.ingot else None
    print(f"transformers {transformers.__version__}, torch {torch.__version__}")
    print(f"{'case':40} result   seed tokens  |logit|  HF-oracle"
          + ("   ingot-HF ingot-oracle" if engine else ""))
    results = [run_family(family, engine, options) for family in chosen_families(options)]
    total, failed = (sum(column) for column in zip(*results))
    print(f"{total - failed} of {total} cases passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
