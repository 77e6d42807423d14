#!/usr/bin/env python3
"""Compares `ingot score` with Hugging Face transformers on small glm_moe_dsa models, in float32.

    PYTHON check_with_transformers.py --ingot BINARY [--seeds N] [--random N] [--keep DIR]

PYTHON is one that has torch and transformers (tools/README.md).  Cases are the golden files,
their shapes with N other seeds each, and --random N drawn shapes.  Fails where logits differ by
more than 1e-4 (for logits of size 5).  The numpy oracle stands third: without --ingot only HF and
it are compared.

Three things that transformers does otherwise, as of 5.24:
  q_a_layernorm and kv_a_layernorm take epsilon 1e-6 whatever rms_norm_eps says; patched here.
  indexer_rope_interleave is ignored and taken as true; shapes with false are left out.
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
from random_config import random_config  # noqa: E402
from tiny_configs import tiny_configs  # noqa: E402

GOLDEN = Path(__file__).resolve().parent.parent / "tests" / "golden" / "glm_moe_dsa"
TOLERANCE = 1e-4
DECISION_GAP_MIN = 2e-5
SEED_STRIDE = 1000      # seeds passed over must not run into the next case's


def load_transformers(directory):
    model = transformers.AutoModelForCausalLM.from_pretrained(
        directory, dtype=torch.float32, attn_implementation="eager",
        experts_implementation="eager")
    for name, module in model.named_modules():
        if name.endswith(("q_a_layernorm", "kv_a_layernorm")):
            module.variance_epsilon = model.config.rms_norm_eps
    return model.eval()


@torch.no_grad()
def transformers_logits(directory, ids):
    model = load_transformers(directory)
    return model(input_ids=torch.tensor([ids]), use_cache=False).logits[0].float().numpy()


@dataclass
class Case:
    name: str
    seed: int
    config: dict
    weights: dict
    ids: list
    oracle_logits: np.ndarray       # [tokens, vocabulary]


def decisive_case(name, config, num_tokens, first_seed):
    """The case of the first seed whose decisions are all clear."""
    for seed in range(first_seed, first_seed + SEED_STRIDE):
        weights = glm_oracle.random_weights(config, seed)
        generator = np.random.default_rng(seed + 1)
        ids = [int(x) for x in generator.integers(0, config["vocab_size"], num_tokens)]
        model = glm_oracle.Glm(config, weights)
        logits = model.forward(ids)[1]
        if comparison.comparable_rows(model, DECISION_GAP_MIN) == num_tokens:
            return Case(name, seed, config, weights, ids, logits)
    raise SystemExit(f"{name}: no seed decides clearly enough")


def golden_cases():
    """The stored golden files themselves, with the weights that their seed stands for."""
    for directory in sorted(GOLDEN.iterdir()):
        config = json.loads((directory / "config.json").read_text())
        case = json.loads((directory / "case.json").read_text())
        if not config["indexer_rope_interleave"]:
            continue
        weights = synthetic_weights.weights(config, case["seed"], case["dtype"])
        logits, start = np.load(directory / "logits.npy"), 0
        for sequence in case["sequences"]:
            end = start + len(sequence["ids"])
            yield Case(f"golden {directory.name}", case["seed"], config, weights, sequence["ids"],
                       logits[start:end])
            start = end


def cases(num_seeds, num_random):
    yield from golden_cases()
    for name, config in tiny_configs().items():
        if not config["indexer_rope_interleave"]:
            continue
        num_tokens = 220 if name == "long_context" else 5 * config["index_topk"]
        for i in range(num_seeds):
            yield decisive_case(name, config, num_tokens, (i + 1) * SEED_STRIDE)
    for i in range(num_random):
        config = random_config(np.random.default_rng(i), indexer_rope_interleave=True)
        yield decisive_case(f"random {i}", config, 3 * config["index_topk"] + 10, SEED_STRIDE)


def run_case(case, engine, checkpoint):
    """Returns (passed, table row)."""
    num_tokens = len(case.ids)
    glm_oracle.write_checkpoint(checkpoint, case.config, case.weights)
    reference = transformers_logits(checkpoint, case.ids)
    difference, worst = comparison.scaled_difference(reference, case.oracle_logits, num_tokens)
    columns = [f"{difference:10.2e}"]
    if engine:
        got = engine.score(checkpoint, [case.ids])[0][0]
        for want in (reference, case.oracle_logits):
            difference, scaled = comparison.scaled_difference(got, want, num_tokens)
            columns.append(f"{difference:10.2e}")
            worst = max(worst, scaled)
    return worst <= TOLERANCE, (f"{case.seed:6} {num_tokens:6} "
                                f"{np.abs(case.oracle_logits).max():8.2f} " + " ".join(columns))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ingot", type=Path)
    parser.add_argument("--seeds", type=int, default=3, help="seeds for each golden shape")
    parser.add_argument("--random", type=int, default=10, help="number of drawn shapes")
    parser.add_argument("--engine-options", default="", help="more options for `ingot score`")
    parser.add_argument("--keep", type=Path, help="where to leave the checkpoints that failed")
    options = parser.parse_args()
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()      # it reports at length that MTP is not loaded
    transformers.logging.disable_progress_bar()
    engine = comparison.Engine(options.ingot, options.engine_options) if options.ingot else None
    print(f"transformers {transformers.__version__}, torch {torch.__version__}")
    print(f"{'case':24} result   seed tokens  |logit|  HF-oracle"
          + ("   ingot-HF ingot-oracle" if engine else ""))
    failed = total = 0
    for case in cases(options.seeds, options.random):
        with tempfile.TemporaryDirectory() as checkpoint:
            try:
                passed, row = run_case(case, engine, checkpoint)
            except (RuntimeError, ValueError, OSError) as error:
                passed, row = False, str(error)
            total += 1
            print(f"{case.name:24} {'ok  ' if passed else 'FAIL'} {row}", flush=True)
            if not passed:
                failed += 1
                if options.keep:
                    target = options.keep / f"{case.name.replace(' ', '_')}_{case.seed}"
                    shutil.copytree(checkpoint, target, dirs_exist_ok=True)
    print(f"{total - failed} of {total} cases passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
