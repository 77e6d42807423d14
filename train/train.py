"""Trains the bundled model.

    python train/train.py OUT_DIR --minutes 75 --workers 2

Resumes from OUT_DIR/state.pt where it exists: the same command goes on after a kill. Writes the
tokenizer's files, curves.csv and state.pt to OUT_DIR, of which export.py makes a model.
Each worker is a process with one thread that takes its share of every batch.
"""
import argparse
import csv
import os
import socket
import sys
import time
from pathlib import Path

import torch
import torch.distributed as distributed
import torch.multiprocessing as multiprocessing
import torch.nn.functional as F
from tokenizers import Tokenizer

import tokenizer as tokenizer_training
from batches import Batches
from config import BATCH, MODEL, SEED, TRAIN
from dialog import Encoder
from evaluate import held_out_scores
from model import Glm
from optimizer import make_optimizers, rate_factor

LOG_EVERY_STEPS = 25
SCORE_EVERY_STEPS = 250
SAVE_EVERY_SECONDS = 120
TASKS = list(BATCH)


def losses(model, batch):
    """(the loss to descend, {name: value} to log)"""
    hidden = model(batch.ids, batch.position, batch.groups)
    targets = batch.next_ids[batch.learned]
    main = F.cross_entropy(model.logits(hidden[batch.learned]), targets, reduction="none")
    chain = model.chain(hidden, batch.next_ids, batch.position, batch.groups, batch.drafts)
    drafts = [F.cross_entropy(model.logits(rows), target, ignore_index=-100)
              for rows, target in zip(chain, batch.draft_targets)]
    total = main.mean() + sum(w * loss for w, loss in zip(TRAIN["mtp_weights"], drafts))
    main = main.detach()
    logged = {name: main[batch.task == i].mean() for i, name in enumerate(TASKS)}
    logged["prompt"] = main[batch.task == -1].mean()
    logged |= {f"draft_{i + 1}": loss.detach() for i, loss in enumerate(drafts)}
    return total, {name: float(value) for name, value in logged.items()}


def share_of(counts, rank, workers):
    return {name: count * (rank + 1) // workers - count * rank // workers
            for name, count in counts.items()}


class Trainer:
    def __init__(self, arguments, rank):
        torch.set_num_threads(1)
        torch.set_flush_denormal(True)
        torch.manual_seed(SEED)
        self.arguments, self.rank, self.workers = arguments, rank, arguments.workers
        self.out = Path(arguments.out)
        encoder = Encoder(Tokenizer.from_file(str(self.out / "tokenizer.json")))
        self.encoder = encoder
        self.batches = Batches(encoder, share_of(BATCH, rank, self.workers),
                               TRAIN["prompt_rows"])
        self.model = Glm(MODEL)
        self.optimizers = make_optimizers(self.model)
        self.base_rates = [o.param_groups[0]["lr"] for o in self.optimizers]
        self.learning = [p for o in self.optimizers for p in o.param_groups[0]["params"]]
        self.step, self.num_tokens, self.seconds, self.rows = 0, 0, 0.0, []
        if (self.out / "state.pt").exists():
            self.load()
        self.clock = time.monotonic()       # when elapsed time was last counted

    def load(self):
        state = torch.load(self.out / "state.pt", weights_only=True)
        self.model.load_state_dict(state["model"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"]):
            optimizer.load_state_dict(saved)
        self.step, self.num_tokens, self.seconds = state["step"], state["tokens"], state["seconds"]
        self.rows = state["rows"]

    def save(self):
        """Atomically: a kill leaves the last complete state."""
        state = dict(model=self.model.state_dict(), step=self.step, tokens=self.num_tokens,
                     seconds=self.seconds, rows=self.rows,
                     optimizers=[o.state_dict() for o in self.optimizers])
        torch.save(state, self.out / "state.new")
        os.replace(self.out / "state.new", self.out / "state.pt")
        with open(self.out / "curves.new", "w", newline="") as file:
            names = dict.fromkeys(name for row in self.rows for name in row)
            writer = csv.DictWriter(file, list(names), restval="")
            writer.writeheader()
            writer.writerows(self.rows)
        os.replace(self.out / "curves.new", self.out / "curves.csv")

    def progress(self):
        if self.arguments.steps:
            return self.step / self.arguments.steps
        return self.seconds / (60 * self.arguments.minutes)

    def sum_over_workers(self, batch_tokens):
        """Gradients and elapsed time become their mean, expert loads and token counts their sum:
        all workers then take the same step, and agree which is the last."""
        loads = [moe.load for moe in self.model.moes()]
        gradients = [p.grad for p in self.learning]
        now = time.monotonic()
        extra = torch.tensor([float(batch_tokens), now - self.clock])
        self.clock = now
        flat = torch.cat([x.flatten() for x in gradients + loads + [extra]])
        if self.workers > 1:
            distributed.all_reduce(flat)
        at = 0
        for x in gradients + loads:
            x.copy_(flat[at:at + x.numel()].view_as(x))
            at += x.numel()
        for gradient in gradients:
            gradient /= self.workers
        self.num_tokens += int(flat[-2])
        self.seconds += float(flat[-1]) / self.workers

    def take_step(self):
        batch = self.batches.draw(self.step, self.rank)
        total, logged = losses(self.model, batch)
        for p in self.learning:
            p.grad = None
        total.backward()
        self.sum_over_workers(batch.num_tokens)
        torch.nn.utils.clip_grad_norm_(self.learning, TRAIN["clip"])
        factor = rate_factor(self.progress())
        for optimizer, rate in zip(self.optimizers, self.base_rates):
            optimizer.param_groups[0]["lr"] = rate * factor
            optimizer.step()
        loads = torch.stack([moe.load / moe.load.mean() for moe in self.model.moes()])
        for moe in self.model.moes():
            moe.balance(TRAIN["bias_rate"] * factor)
        self.step += 1
        return logged | {"load_min": float(loads.min()), "rate_factor": factor}

    def log(self, logged, tokens_per_second):
        row = {"step": self.step, "tokens": self.num_tokens, "seconds": round(self.seconds, 1)}
        row |= {name: round(value, 4) for name, value in logged.items()}
        if self.step % SCORE_EVERY_STEPS == 0:
            row |= held_out_scores(self.model, self.encoder)
        self.rows.append(row)
        left = self.seconds * (1 / max(self.progress(), 1e-9) - 1) / 60
        text = " ".join(f"{name} {value:g}" for name, value in row.items() if name != "seconds")
        print(f"{text} | {tokens_per_second:.0f} tokens/s, {left:.0f} min left", flush=True)

    def run(self):
        saved_at = mark = time.monotonic()
        mark_tokens, averages = self.num_tokens, {}
        while self.progress() < 1:
            for name, value in self.take_step().items():
                averages.setdefault(name, []).append(value)
            if self.rank == 0 and self.step % LOG_EVERY_STEPS == 0:
                now = time.monotonic()
                self.log({name: sum(v) / len(v) for name, v in averages.items()},
                         (self.num_tokens - mark_tokens) / (now - mark))
                mark, mark_tokens, averages = time.monotonic(), self.num_tokens, {}
            if self.rank == 0 and time.monotonic() - saved_at > SAVE_EVERY_SECONDS:
                self.save()
                saved_at = time.monotonic()
        if self.rank == 0:
            self.save()


def work(rank, arguments, port):
    if arguments.workers > 1:
        distributed.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank,
                                       world_size=arguments.workers)
    Trainer(arguments, rank).run()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out")
    parser.add_argument("--minutes", type=float, default=75,
                        help="length of the run, the time before a resumption included")
    parser.add_argument("--steps", type=int, help="length of the run in steps instead of minutes")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    out = Path(arguments.out)
    if not (out / "tokenizer.json").exists():
        tokenizer_training.write(out)
    if arguments.workers == 1:
        work(0, arguments, None)
    else:
        multiprocessing.spawn(work, (arguments, free_port()), nprocs=arguments.workers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
