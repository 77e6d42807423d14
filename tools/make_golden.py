#!/usr/bin/env python3
"""Writes tests/golden: what small models of the four families must produce, by the numpy oracle.

    make_golden.py              writes everything
    make_golden.py --check      compares with what is stored; exit 1 where a byte differs
    make_golden.py --search N   for each case the best of N seeds, to fill in CASES;
                                --family F only those of one family

    FAMILY/NAME/config.json          the model
    FAMILY/NAME/case.json            seed and dtype of its synthetic weights, and per sequence:
        ids, next                    tokens, and the greedy token after the last
        draft                        four tokens that the MTP chain drafts behind `next`
        selected                     full layer -> per token the positions that attention reads
        selected_mtp                 the same of the first MTP pass (row p: token p + 1)
                                     (both only where the family has an indexer)
    FAMILY/NAME/logits.npy           float32 [tokens of all sequences in order, vocabulary]
    synthetic_weights.json           single values of the weight generator, as bits
    oracle_checkpoint/               a whole checkpoint with weights from numpy's generator

Every discrete decision (index selection, expert choice, argmax) is farther from its alternative
than a float32 engine can err, so an engine must reproduce the sets and tokens exactly.
"""
import argparse
import filecmp
import json
import math
import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")      # one order of summation, whatever the host

import numpy as np  # noqa: E402

from oracle import paths  # noqa: E402,F401
import glm_oracle  # noqa: E402
import synthetic_weights  # noqa: E402
from families import FAMILIES, WITH_INDEXER, drawable_ids  # noqa: E402
from tiny_configs import tiny_configs  # noqa: E402

DESTINATION = Path(__file__).resolve().parent.parent / "tests" / "golden"
DRAFT_TOKENS = 4
DECISION_GAP_MIN = 2e-5
ARGMAX_GAP_MIN = 1e-3

# family/name: (seed, tokens of each sequence).  Lengths around index_topk, one page of 16 and one
# token; with YaRN also beyond the length of the training.
CASES = {
    "glm_moe_dsa/tiny": (18, [24, 6, 7, 1]),
    "glm_moe_dsa/long_context": (7, [240]),
    "glm_moe_dsa/multiples_of_32": (8, [48, 33, 16]),
    "glm_moe_dsa/odd_dims": (22, [37, 8]),
    "glm_moe_dsa/glm_5_1_style": (2, [40]),
    "glm_moe_dsa/pattern": (9, [45, 17]),
    "glm_moe_dsa/groups": (20, [50, 2]),
    "glm_moe_dsa/no_dense_no_mtp": (5, [29, 15]),
    "glm_moe_dsa/all_dense": (23, [31]),
    "glm_moe_dsa/half_split_indexer": (16, [34]),
    "glm4_moe_lite/published_keys": (23, [52, 16, 1]),
    "glm4_moe_lite/three_dense_layers": (12, [35, 17]),
    "glm4_moe_lite/newer_keys": (20, [28]),
    "deepseek_v3/yarn_40": (9, [70, 9]),
    "deepseek_v3/yarn_4": (18, [110, 32]),
    "deepseek_v3/plain_rope": (16, [33, 2]),
    "deepseek_v32/yarn_40": (20, [60, 11]),
    "deepseek_v32/yarn_4": (20, [90]),
    "deepseek_v32/multiples_of_32": (17, [47, 20, 1]),
}

ORACLE_CHECKPOINT_SEED = 2
ORACLE_CHECKPOINT = dict(
    vocab_size=64, hidden_size=32, intermediate_size=40, moe_intermediate_size=8,
    num_hidden_layers=4, first_k_dense_replace=1, num_attention_heads=3, num_key_value_heads=3,
    q_lora_rank=20, kv_lora_rank=16, qk_nope_head_dim=8, qk_rope_head_dim=4, v_head_dim=12,
    n_routed_experts=6, num_experts_per_tok=2, index_head_dim=8, index_topk=6,
    index_topk_freq=2, index_skip_topk_offset=2, eos_token_id=[60, 61, 62])


def sequences(config, lengths, seed):
    """Random ids that are no end tokens."""
    low, high = drawable_ids(config)
    generator = np.random.default_rng(seed + 1)
    return [[int(x) for x in generator.integers(low, high, n)] for n in lengths]


def rows_as_lists(rows):
    return [[int(x) for x in row] for row in rows]


def smallest_gaps(model, last_logits):
    """{kind of decision: smallest gap}, of the main layers, the MTP layer and the greedy tokens."""
    last = float(glm_oracle.boundary_gap(np.sort(last_logits)[::-1], 1))
    index = [*model.index_gap.values(), *model.draft_index_gap.values()]
    router = [*model.router_gap.values(), *model.draft_router_gap.values()]
    return dict(index=min(index, default=math.inf), router=min(router, default=math.inf),
                argmax=min([last, *model.argmax_gap]))


def run_sequence(config, weights, ids):
    """Returns (JSON fields, logits, smallest gaps)."""
    model = glm_oracle.Glm(config, weights)
    hidden, logits = model.forward(ids)
    num_layers = config["num_hidden_layers"]
    result = dict(ids=ids, next=int(logits[-1].argmax()), draft=[])
    has_indexer = config["model_type"] in WITH_INDEXER
    if has_indexer:
        result["selected"] = {str(i): rows_as_lists(model.selected[i]) for i in range(num_layers)
                              if model.types[i] == "full"}
    if config["num_nextn_predict_layers"]:
        result["draft"] = model.draft(ids[1:] + [result["next"]], hidden,
                                      list(range(len(ids))), DRAFT_TOKENS)
    if has_indexer and config["num_nextn_predict_layers"]:
        result["selected_mtp"] = rows_as_lists(model.selected[num_layers])
    return result, logits, smallest_gaps(model, logits[-1])


def run_case(name, seed):
    family, short_name = name.split("/")
    config, lengths = tiny_configs(family)[short_name], CASES[name][1]
    weights = synthetic_weights.weights(config, seed)
    runs = [run_sequence(config, weights, ids) for ids in sequences(config, lengths, seed)]
    gaps = {kind: min(run[2][kind] for run in runs) for kind in ("index", "router", "argmax")}
    logits = np.concatenate([run[1] for run in runs]).astype(np.float32)
    return config, [run[0] for run in runs], logits, gaps


def margin(gaps):
    """How many times over the smallest gaps suffice."""
    return min(gaps["index"] / DECISION_GAP_MIN, gaps["router"] / DECISION_GAP_MIN,
               gaps["argmax"] / ARGMAX_GAP_MIN)


def finite(gap):
    return None if math.isinf(gap) else float(f"{gap:.4g}")


def case_json(seed, runs, gaps):
    """One line a field: small, and a diff shows what changed."""
    compact = lambda value: json.dumps(value, separators=(",", ":"))  # noqa: E731
    lines = []
    for run in runs:
        fields = [f'"{key}":{compact(value)}' for key, value in run.items()]
        lines.append("  {" + ",\n   ".join(fields) + "}")
    gap_text = compact({kind: finite(gap) for kind, gap in gaps.items()})
    return (f'{{"schema":"ingot.golden-case/1","seed":{seed},"dtype":"F32",\n'
            f' "gap_min":{gap_text},\n "sequences":[\n' + ",\n".join(lines) + "]}\n")


def write_case(directory, name, seed):
    config, runs, logits, gaps = run_case(name, seed)
    if margin(gaps) <= 1.0:
        raise SystemExit(f"{name}: seed {seed} decides too closely: {gaps}; use --search")
    directory.mkdir(parents=True)
    text = json.dumps(config, indent=2, sort_keys=True) + "\n"
    (directory / "config.json").write_text(text)
    (directory / "case.json").write_text(case_json(seed, runs, gaps))
    np.save(directory / "logits.npy", logits)
    print(f"{name:32} seed {seed:3} tokens {len(logits):4} max |logit| {abs(logits).max():.2f} "
          f"gaps: index {gaps['index']:.1e} router {gaps['router']:.1e} "
          f"argmax {gaps['argmax']:.1e}")


def write_oracle_checkpoint(directory):
    config = glm_oracle.tiny_config(**ORACLE_CHECKPOINT)
    model = glm_oracle.write_sample(str(directory), config, ORACLE_CHECKPOINT_SEED)
    gaps = smallest_gaps(model, np.load(directory / "logits.npy")[-1])
    if margin(gaps) <= 1.0:
        raise SystemExit(f"oracle_checkpoint: decides too closely: {gaps}")
    ids = json.loads((directory / "expected.json").read_text())["ids"]
    (directory / "ids.json").write_text(json.dumps(ids) + "\n")


def write_synthetic_values(path):
    """Bits of single values, to test the generator without a model."""
    tensors = [("model.embed_tokens.weight", [154880, 6144], [0, 1, 2, 6143, 6144, 951582719]),
               ("model.layers.0.input_layernorm.weight", [6144], [0, 1, 6143]),
               ("model.layers.3.mlp.gate.e_score_correction_bias", [256], [0, 255]),
               ("model.layers.3.mlp.experts.17.down_proj.weight", [6144, 2048], [0, 12582911]),
               ("model.layers.78.self_attn.indexer.k_norm.bias", [128], [0, 127]),
               ("model.layers.1.self_attn.q_b_proj.weight", [9, 40], [0, 39, 40, 359])]
    out = []
    for seed in (0, 1, 0xFFFFFFFFFFFFFFFF):
        for name, shape, indices in tensors:
            x = synthetic_weights.elements(name, shape, indices, seed)
            out.append(dict(seed=str(seed), name=name, shape=shape, index=indices,
                            key=f"{synthetic_weights.tensor_key(name, seed):016x}",
                            f32=[f"{int(bits):08x}" for bits in x.view(np.uint32)],
                            bf16=[f"{int(bits):04x}" for bits in synthetic_weights.bf16_bits(x)]))
    lines = ",\n".join("  " + json.dumps(row) for row in out)
    path.write_text('{"schema":"ingot.golden-synthetic/1",\n "values":[\n' + lines + "]}\n")


def write_all(destination):
    for name, (seed, _) in CASES.items():
        write_case(destination / name, name, seed)
    write_oracle_checkpoint(destination / "oracle_checkpoint")
    write_synthetic_values(destination / "synthetic_weights.json")


def search(count, families):
    for name in CASES:
        if name.split("/")[0] not in families:
            continue
        best = max(range(count), key=lambda seed: margin(run_case(name, seed)[3]))
        gaps = run_case(name, best)[3]
        print(f"{name}: seed {best}, margin {margin(gaps):.1f}, {gaps}", flush=True)


def relative_files(directory):
    return {str(p.relative_to(directory)) for p in directory.rglob("*") if p.is_file()}


def describe_difference(stored, made):
    if stored.suffix == ".npy":
        a, b = np.load(stored), np.load(made)
        if a.shape == b.shape:
            return f"values differ by at most {abs(a - b).max():.3e}"
    return "contents differ"


def check(made_root):
    """Prints every difference between stored and freshly made files; returns their number."""
    made_files = relative_files(made_root)
    stored_files = {name for name in relative_files(DESTINATION)
                    if name.split("/")[0] in {made.split("/")[0] for made in made_files}}
    problems = [f"{name}: not stored" for name in made_files - stored_files]
    problems += [f"{name}: nothing makes it" for name in stored_files - made_files]
    for name in made_files & stored_files:
        stored, made = DESTINATION / name, made_root / name
        if not filecmp.cmp(stored, made, shallow=False):
            problems.append(f"{name}: {describe_difference(stored, made)}")
    for problem in sorted(problems):
        print(problem)
    return len(problems)


def replace_stored(made_root):
    for name in sorted(relative_files(made_root)):
        target = DESTINATION / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((made_root / name).read_bytes())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--search", type=int, metavar="N")
    parser.add_argument("--family", choices=FAMILIES, help="search for the cases of this one only")
    options = parser.parse_args()
    if options.search:
        search(options.search, [options.family] if options.family else FAMILIES)
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        made_root = Path(temporary)
        write_all(made_root)
        if options.check:
            problems = check(made_root)
            print("golden files are as stored" if not problems else f"{problems} differences")
            return 1 if problems else 0
        replace_stored(made_root)
    return 0


if __name__ == "__main__":
    sys.exit(main())
