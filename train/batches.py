"""Batches of drawn dialogs, the same for a seed and a step whatever happened before."""
from dataclasses import dataclass

import torch

from config import NUM_DRAFTS, SEED
from model import Drafts, Group
from tasks import Draw, all_tasks, draw_item

HIGH_EFFORT_SHARE = 0.1
POOL = 16


@dataclass
class Batch:
    """Flat rows of a few groups of dialogs, one group a task."""
    ids: torch.Tensor           # [rows]
    next_ids: torch.Tensor      # [rows]: the token after each
    position: torch.Tensor      # [rows]
    groups: list
    learned: torch.Tensor       # [selected]: rows whose next token is learned
    task: torch.Tensor          # [selected]: its task, or -1 for a token of the prompt
    drafts: Drafts
    draft_targets: list         # a tensor [chain rows] a depth; -100: nothing to learn
    num_tokens: int


def pad(lists, value):
    length = max(map(len, lists))
    return torch.tensor([row + [value] * (length - len(row)) for row in lists])


def draft_rows(dialogs, start, length):
    """(positions, flat rows, tokens per depth, targets per depth) of one group, each [dialogs, n].

    A chain starts where the model has just chosen the next token, and learns a depth as long as the
    tokens up to it are its own: a draft after the turn's end is never asked for.
    """
    chains = [[p for p in range(len(ids) - 2) if flags[p + 1] and flags[p + 2]]
              or [0] for ids, flags in dialogs]
    position = pad(chains, 0)
    row = position + start + torch.arange(len(dialogs))[:, None] * length
    # Far enough beyond the end that every depth finds an entry.
    ids = pad([ids + [0] * (NUM_DRAFTS + 2) for ids, _ in dialogs], 0)
    flags = pad([flags + [False] * (NUM_DRAFTS + 2) for _, flags in dialogs], False)
    used = pad([[True] * len(chain) for chain in chains], False)
    tokens, targets = [], []
    for depth in range(NUM_DRAFTS):
        tokens.append(ids.gather(1, position + 1 + depth))
        used = used & flags.gather(1, position + 2 + depth)
        targets.append(ids.gather(1, position + 2 + depth).masked_fill(~used, -100))
    return position, row, tokens, targets


def collate(groups_of_dialogs, prompt_rows, generator):
    """A Batch of lists of (ids, learned flags), one list a task."""
    ids, next_ids, positions, groups, learned, task = [], [], [], [], [], []
    rows, chain_groups, start = [], [], 0
    for number, dialogs in enumerate(groups_of_dialogs):
        padded = pad([d[0] for d in dialogs], 0)
        count, length = padded.shape
        groups.append(Group(count, length))
        ids.append(padded.flatten())
        next_ids.append(shift_left(padded, 0).flatten())
        positions.append(torch.arange(length).repeat(count))
        flags = shift_left(pad([d[1] for d in dialogs], False), False).flatten()
        inside = shift_left(pad([[True] * len(d[0]) for d in dialogs], False), False).flatten()
        sampled = inside & ~flags & (torch.rand(len(flags), generator=generator) < prompt_rows)
        chosen = (flags | sampled).nonzero()[:, 0]
        learned.append(chosen + start)
        task.append(torch.where(flags[chosen], number, -1))
        drawn = draft_rows(dialogs, start, length)
        rows.append(drawn)
        chain_groups.append(Group(count, drawn[0].shape[1]))
        start += count * length
    flat = [torch.cat([r[i].flatten() for r in rows]) for i in range(2)]
    tokens, targets = ([torch.cat([r[i][d].flatten() for r in rows]) for d in range(NUM_DRAFTS)]
                       for i in (2, 3))
    return Batch(torch.cat(ids), torch.cat(next_ids), torch.cat(positions), groups,
                 torch.cat(learned), torch.cat(task),
                 Drafts(flat[1], flat[0], tokens, chain_groups), targets,
                 sum(len(d[0]) for dialogs in groups_of_dialogs for d in dialogs))


def shift_left(x, value):
    """Each row moved left by one."""
    return torch.cat([x[:, 1:], torch.full_like(x[:, :1], value)], 1)


class Batches:
    """`counts`: dialogs of each task in a batch. Batches are drawn POOL at a time, so that dialogs
    of similar length can share one and little is padded."""

    def __init__(self, encoder, counts, prompt_rows):
        self.encoder, self.counts, self.prompt_rows = encoder, counts, prompt_rows
        self.tasks = all_tasks()
        self.pool_key, self.pool = None, []

    def draw(self, step, worker=0):
        """The batch of one step of one worker."""
        key = (step // POOL, worker)
        if key != self.pool_key:
            self.pool_key, self.pool = key, self._draw_pool(key)
        generator = torch.Generator().manual_seed(hash((SEED, step, worker)))
        return collate([batches[step % POOL] for batches in self.pool], self.prompt_rows, generator)

    def _draw_pool(self, key):
        """For each task POOL lists of dialogs."""
        pool = []
        for name, count in self.counts.items():
            draw = Draw(f"{SEED} {name} {key}", held_out=False)
            dialogs = [self._dialog(name, draw) for _ in range(count * POOL)]
            dialogs.sort(key=lambda dialog: len(dialog[0]))
            batches = [dialogs[i:i + count] for i in range(0, len(dialogs), count)]
            draw.shuffle(batches)
            pool.append(batches)
        return pool

    def _dialog(self, name, draw):
        effort = "high" if draw.random() < HIGH_EFFORT_SHARE else "max"
        return self.encoder.dialog(draw_item(self.tasks[name], draw), effort)
