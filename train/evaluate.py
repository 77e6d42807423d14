"""How good a trained model is, on the held-out items.

    python train/evaluate.py RUN_DIR [--items 200] [--json FILE]

Greedy answers and tokens per step with three drafts for each task, expert loads; then the same with
the routed experts rounded to MXFP4.

Nothing is generated where that can be avoided. If the model's first choice is the reference token
at every learned position, its greedy output is the reference; only other dialogs are continued
token by token. And since speculation never changes the output, one pass over an output shows which
drafts would have been accepted.
"""
import torch

from batches import collate
from config import BATCH
from model import split_groups
from tasks import held_out_items

SCORED_DIALOGS = 24


@torch.no_grad()
def scored(model, dialogs):
    """([every learned token is the first choice] a dialog, tokens, steps) of a list of
    (ids, learned flags)."""
    batch = collate([dialogs], 0.0, torch.Generator())
    hidden = model(batch.ids, batch.position, batch.groups)
    wrong = torch.zeros(len(batch.ids))
    choice = model.logits(hidden[batch.learned]).argmax(-1)
    wrong[batch.learned] = (choice != batch.next_ids[batch.learned]).float()
    exact = split_groups(wrong, batch.groups)[0].sum(1) == 0
    chain = model.chain(hidden, batch.next_ids, batch.position, batch.groups, batch.drafts)
    alive, accepted = torch.ones(len(batch.drafts.row), dtype=torch.long), 0
    for rows, target in zip(chain, batch.draft_targets):
        alive = alive * (model.logits(rows).argmax(-1) == target)
        accepted = accepted + alive
    count = batch.drafts.groups[0].count
    positions, accepted = batch.drafts.position.view(count, -1), accepted.view(count, -1)
    tokens = steps = 0
    for (_, flags), row, hits in zip(dialogs, positions.tolist(), accepted.tolist()):
        walked = walk(flags, dict(zip(row, hits)))
        tokens, steps = tokens + walked[0], steps + walked[1]
    return exact.tolist(), tokens, steps


def walk(flags, accepted):
    """(tokens, steps) of the decoding steps of one dialog, the prefills' tokens not counted.

    A step at position p knows the token at p + 1, drafts from p + 2 on, and yields the accepted
    drafts and one token more.
    """
    tokens = steps = at = 0
    while at + 2 < len(flags):
        if not (flags[at + 1] and flags[at + 2]):
            at += 1
            continue
        advance = accepted[at] + 1
        tokens += sum(flags[at + 2:at + 2 + advance])
        steps, at = steps + 1, at + advance
    return tokens, steps


def held_out_scores(model, encoder):
    """A look during training, at a few held-out dialogs of each task."""
    result = {}
    for name in BATCH:
        dialogs = [encoder.dialog(item) for item in held_out_items(name, SCORED_DIALOGS)]
        exact, tokens, steps = scored(model, dialogs)
        result[f"exact_{name}"] = round(sum(exact) / len(exact), 3)
        result[f"tokens_per_step_{name}"] = round(tokens / max(steps, 1), 3)
    return result
