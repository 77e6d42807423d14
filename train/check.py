"""Proves that the model trained here is the model that others run.

    python train/check.py [--ingot BINARY] [--run RUN_DIR]

Exports a model (of random weights, or a trained run) in float32 and in bfloat16 and compares its
logits and drafts with the numpy oracle of tools/oracle, and with `ingot score` in float32 where a
binary is given; `ingot inspect` must find nothing to complain about. For a trained run also says
how much Ingot's default, bfloat16 activations and cache, changes on held-out dialogs. Exit 1 on a
difference.
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools" / "oracle"))
import glm_oracle  # noqa: E402

from config import BATCH, MODEL, NUM_DRAFTS, published  # noqa: E402
from dialog import Encoder  # noqa: E402
from export import load_run, named_tensors, round_weights, write_checkpoint  # noqa: E402
from model import Drafts, Glm, Group  # noqa: E402
from tasks import held_out_items  # noqa: E402

TOLERANCE = 1e-4        # for logits of size 5; grows with them
LENGTHS = (1, 2, 37, 300)
FLOAT32 = ("--activations", "f32", "--kv-dtype", "f32")
DIALOGS = 6             # held-out ones of each task
AGREEMENT_MIN = 0.99    # share of the learned tokens whose first choice survives bfloat16


def random_model(seed=3):
    """Norms, biases and the indexers as uneven as after a training."""
    torch.manual_seed(seed)
    model = Glm(MODEL)
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.add_(torch.randn_like(p) * (0.2 if p.ndim == 1 else 0.3 * p.shape[-1] ** -0.5))
        for moe in model.moes():
            moe.correction_bias.copy_(torch.randn(moe.experts) * 0.05)
    return model


@torch.no_grad()
def logits_and_drafts(model, ids):
    """[tokens, vocabulary] and NUM_DRAFTS tokens, of the training code."""
    flat, position = torch.tensor(ids), torch.arange(len(ids))
    groups = [Group(1, len(ids))]
    hidden = model(flat, position, groups)
    logits = model.logits(hidden)
    next_ids = torch.cat([flat[1:], logits[-1:].argmax(-1)])
    last, tokens = torch.tensor([len(ids) - 1]), [next_ids[-1:]]
    for depth in range(NUM_DRAFTS):
        drafts = Drafts(last, last, tokens, [Group(1, 1)])
        chain = model.chain(hidden, next_ids, position, groups, drafts)
        tokens.append(model.logits(chain[-1]).argmax(-1))
    return logits.numpy(), [int(token) for token in tokens[1:]]


def oracle(model, ids):
    config = published(model.config)
    weights = {name: tensor.double().numpy() for name, tensor in named_tensors(model).items()}
    glm = glm_oracle.Glm(config, weights)
    hidden, logits = glm.forward(ids)
    next_ids = ids[1:] + [int(logits[-1].argmax())]
    drafts = glm.draft(next_ids, hidden, list(range(len(ids))), NUM_DRAFTS)
    return logits, drafts


def ingot_score(binary, checkpoint, ids, options):
    with tempfile.TemporaryDirectory() as folder:
        ids_file, logits = Path(folder) / "ids.json", Path(folder) / "logits.npy"
        ids_file.write_text(json.dumps(ids))
        command = [binary, "score", checkpoint, "--token-ids", ids_file, "--logits", logits,
                   "--draft", str(NUM_DRAFTS), "--json", *options]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return np.load(logits), json.loads(done.stdout)["draft"]


def complaints(binary, checkpoint):
    done = subprocess.run([binary, "inspect", checkpoint], capture_output=True, text=True)
    return done.stderr.strip() or ("" if done.returncode == 0 else done.stdout)


def compare(what, got, want):
    difference = float(np.abs(got[0] - want[0]).max())
    allowed = TOLERANCE * max(1.0, float(np.abs(want[0]).max()) / 5)
    drafts = "equal" if list(got[1]) == list(want[1]) else f"{got[1]} for {want[1]}"
    passed = difference <= allowed and drafts == "equal"
    print(f"{what:34} {len(want[0]):4} tokens  difference {difference:.2e} of {allowed:.2e}  "
          f"drafts {drafts}  {'ok' if passed else 'FAIL'}")
    return passed


def check(model, dtype, binary):
    """Whether all comparisons at one stored dtype pass."""
    round_weights(model, dtype)
    name = str(dtype).removeprefix("torch.")
    draw, passed = np.random.default_rng(5), True
    with tempfile.TemporaryDirectory() as folder:
        write_checkpoint(model, Path(folder), dtype)
        if binary:
            text = complaints(binary, folder)
            print(f"{name + ': ingot inspect':34} {text or 'nothing to complain about'}")
            passed = not text
        for length in LENGTHS:
            ids = draw.integers(0, MODEL["vocab_size"], length).tolist()
            ours = logits_and_drafts(model, ids)
            passed &= compare(f"{name}: training code, oracle", ours, oracle(model, ids))
            if binary:
                theirs = ingot_score(binary, folder, ids, FLOAT32)
                passed &= compare(f"{name}: ingot, training code", theirs, ours)
    return passed


def check_bfloat16(run, binary):
    """Whether Ingot's default arithmetic keeps the choices of a trained model."""
    model = load_run(run)
    round_weights(model, torch.bfloat16)
    encoder = Encoder(Tokenizer.from_file(str(run / "tokenizer.json")))
    same, total, differences = 0, 0, []
    with tempfile.TemporaryDirectory() as folder:
        write_checkpoint(model, Path(folder))
        for item in (item for name in BATCH for item in held_out_items(name, DIALOGS)):
            ids, learned = encoder.dialog(item)
            rows = [i for i in range(len(ids) - 1) if learned[i + 1]]
            ours, theirs = logits_and_drafts(model, ids)[0], ingot_score(binary, folder, ids, ())[0]
            same += int((ours[rows].argmax(-1) == theirs[rows].argmax(-1)).sum())
            total += len(rows)
            differences += np.abs(ours[rows] - theirs[rows]).max(-1).tolist()
    passed = same >= AGREEMENT_MIN * total
    print(f"bfloat16 arithmetic: {same} of {total} first choices kept, median difference of a row "
          f"{np.median(differences):.3f}  {'ok' if passed else 'FAIL'}")
    return passed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ingot", help="the binary to compare with")
    parser.add_argument("--run", type=Path, help="a trained run, instead of random weights")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    passed = True
    for dtype in (torch.float32, torch.bfloat16):
        model = load_run(arguments.run) if arguments.run else random_model()
        passed &= check(model, dtype, arguments.ingot)
    if arguments.run and arguments.ingot:
        passed &= check_bfloat16(arguments.run, arguments.ingot)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
