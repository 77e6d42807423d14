"""Comparison of an engine's logits with a reference, and the engine's command line."""
import json
import math
import shlex
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import glm_oracle

ARGMAX_GAP_MIN = 1e-3
LOGIT_SCALE = 5.0       # the tolerance is stated for logits of about this size


def comparable_rows(model, gap_min):
    """Rows of the oracle's last forward before the first decision closer than gap_min.

    That row itself may select or route otherwise, and every later row may attend to it.
    """
    num_tokens = len(model.latents[0])
    for position in range(num_tokens):
        gap = min(model.index_gap.get(position, math.inf), model.router_gap.get(position, math.inf))
        if gap < gap_min:
            return position
    return num_tokens


def scaled_difference(got, want, num_rows):
    """(largest absolute difference, its ratio to what a logit of LOGIT_SCALE may differ by)."""
    if got.shape != want.shape:
        raise ValueError(f"logits of shape {got.shape}, expected {want.shape}")
    if num_rows == 0:
        return 0.0, 0.0
    difference = float(np.abs(got[:num_rows] - want[:num_rows]).max())
    if not math.isfinite(difference):
        return math.inf, math.inf
    return difference, difference / max(1.0, float(np.abs(want).max()) / LOGIT_SCALE)


def run_oracle_draft(model, ids, hidden, logits, count):
    """Drafts `count` tokens behind the greedy one; hidden, logits: what `forward(ids)` returned."""
    next_id = int(logits[-1].argmax())
    return model.draft(ids[1:] + [next_id], hidden, list(range(len(ids))), count)


def num_sure_drafts(model, logits, gap_min):
    """How many of the tokens that the oracle drafted last nothing close decided."""
    last_gap = float(glm_oracle.boundary_gap(np.sort(logits[-1])[::-1], 1))
    gaps = [*model.draft_index_gap.values(), *model.draft_router_gap.values()]
    if (comparable_rows(model, gap_min) < len(logits) or last_gap <= ARGMAX_GAP_MIN
            or min(gaps, default=math.inf) <= gap_min):
        return 0
    for i, gap in enumerate(model.argmax_gap):
        if gap <= ARGMAX_GAP_MIN:
            return i
    return len(model.argmax_gap)


class Engine:
    """The `ingot` binary, run once a call.  Raises RuntimeError with what it printed."""

    def __init__(self, binary, options=""):
        self.command = [str(binary)]
        self.options = shlex.split(options)

    def score(self, checkpoint, sequences, draft_tokens=0):
        """sequences: list of lists of ids.  Returns ([logits], [drafted ids] or None)."""
        with tempfile.TemporaryDirectory() as temporary:
            ids_path, out = Path(temporary) / "ids.json", Path(temporary) / "logits.npy"
            single = len(sequences) == 1
            ids_path.write_text(json.dumps(sequences[0] if single else sequences))
            command = [*self.command, "score", str(checkpoint), "--token-ids", str(ids_path),
                       "--logits", str(out), "--json", *self.options]
            if draft_tokens:
                command += ["--draft", str(draft_tokens)]
            run = subprocess.run(command, capture_output=True, text=True)
            if run.returncode != 0:
                raise RuntimeError(f"exit {run.returncode}: {run.stderr.strip()}")
            drafts = json.loads(run.stdout)["draft"] if draft_tokens else None
            if single:
                return [np.load(out)], [drafts] if draft_tokens else None
            if drafts is not None and len(drafts) != len(sequences):
                raise RuntimeError(f"{len(drafts)} lists of drafts, {len(sequences)} sequences")
            files = sorted(out.glob("*.npy"), key=_number_in_name)
            return [np.load(path) for path in files], drafts


def _number_in_name(path):
    return int("".join(filter(str.isdigit, path.stem)))
