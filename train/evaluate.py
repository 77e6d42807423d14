"""How good a trained model is, on the held-out items.

    python train/evaluate.py RUN_DIR [--items 200] [--json FILE] [--threads N]

Greedy answers and tokens per step with three drafts for each task, expert loads; then the same with
the routed experts rounded to MXFP4.

Nothing is generated where that can be avoided. If the model's first choice is the reference token
at every learned position, its greedy output is the reference; only other dialogs are continued
token by token. And since speculation never changes the output, one pass over an output shows which
drafts would have been accepted.
"""
import argparse
import json
import os
import re
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer

from batches import collate, pad
from config import BATCH, NUM_HELD_OUT, STOP_IDS
from dialog import Encoder
from export import load_run, round_weights
from model import Group, split_groups
from tasks import held_out_items

SCORED_DIALOGS = 24         # of a task, during training
BATCH_DIALOGS = 25
OUTPUT_TOKENS_MAX = 104
TARGETS = dict(arithmetic=(0.90, 0.80), choice=(0.95, 0.90), tools=(0.95, 0.90))    # aim, floor
MXFP4_BLOCK = 32


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


@torch.no_grad()
def greedy_outputs(model, prompts, references):
    """The tokens that the model answers each prompt with, its stop marker included."""
    sequences = [prompt + reference for prompt, reference in zip(prompts, references)]
    known = [len(prompt) for prompt in prompts]
    running = list(range(len(prompts)))
    while running:
        rows = pad([sequences[i] for i in running], 0)
        count, length = rows.shape
        hidden = model(rows.flatten(), torch.arange(length).repeat(count), [Group(count, length)])
        choices = model.logits(hidden).argmax(-1).view(count, length).tolist()
        for i, choice in zip(list(running), choices):
            sequence = sequences[i]
            while known[i] < len(sequence) and sequence[known[i]] == choice[known[i] - 1]:
                known[i] += 1
            if known[i] < len(sequence) or sequence[-1] not in STOP_IDS:
                sequence[known[i]:] = [choice[known[i] - 1]]
                known[i] += 1
            if sequence[-1] in STOP_IDS or known[i] - len(prompts[i]) >= OUTPUT_TOKENS_MAX:
                del sequence[known[i]:]
                running.remove(i)
    return [sequence[len(prompt):] for sequence, prompt in zip(sequences, prompts)]


def parse_call(text, item):
    """The first tool call of `text` as {"name", "arguments"}, typed by the schemas, or None."""
    found = re.search(r"<tool_call>(.*?)((?:<arg_key>.*?</arg_value>)*)</tool_call>", text, re.S)
    if found is None:
        return None
    functions = {tool["function"]["name"]: tool["function"] for tool in item.tools}
    if found[1] not in functions:
        return None
    types = functions[found[1]]["parameters"]["properties"]
    arguments = {}
    for key, value in re.findall(r"<arg_key>(.*?)</arg_key><arg_value>(.*?)</arg_value>", found[2],
                                 re.S):
        number = types.get(key, {}).get("type") == "integer" and re.fullmatch(r"-?\d+", value)
        arguments[key] = int(value) if number else value
    return {"name": found[1], "arguments": arguments}


def is_right(name, item, text):
    """Whether an answer, with its reasoning, gives what the item expects."""
    content = text.split("</think>")[-1].strip()
    if name == "arithmetic":
        return (re.findall(r"\d+", content) or [None])[-1] == item.expected
    if name == "choice":
        return (re.findall(r"\b[A-D]\b", content) or [None])[-1] == item.expected
    if isinstance(item.expected, dict):
        return parse_call(content, item) == item.expected
    return content == item.expected


def evaluate_task(model, encoder, name, count):
    """{"right", "tokens_per_step", "failures"} of the first `count` held-out items."""
    items = held_out_items(name, count)
    items.sort(key=lambda item: len(encoder.prompt(item)))
    right = tokens = steps = 0
    failures = []
    for at in range(0, count, BATCH_DIALOGS):
        part = items[at:at + BATCH_DIALOGS]
        prompts = [encoder.prompt(item) for item in part]
        references = [encoder.dialog(item)[0][len(p):] for item, p in zip(part, prompts)]
        outputs = greedy_outputs(model, prompts, references)
        for item, output in zip(part, outputs):
            ended = output[:-1] if output[-1] in STOP_IDS else output
            text = encoder.tokenizer.decode(ended, skip_special_tokens=False)
            if is_right(name, item, text):
                right += 1
            else:
                failures.append({"expected": item.expected, "got": text})
        dialogs = [(prompt + output, [False] * len(prompt) + [True] * len(output))
                   for prompt, output in zip(prompts, outputs)]
        _, part_tokens, part_steps = scored(model, dialogs)
        tokens, steps = tokens + part_tokens, steps + part_steps
    return {"right": right / count, "tokens_per_step": tokens / max(steps, 1),
            "failures": failures}


@torch.no_grad()
def round_to_mxfp4(weight):
    """`weight` after MXFP4 and back: E2M1 in blocks of 32 along the last dimension, with the shared
    exponent of the largest magnitude, which is first rounded up from a mantissa of 1.75 on."""
    blocks = weight.unflatten(-1, (-1, MXFP4_BLOCK))
    largest = blocks.abs().amax(-1, keepdim=True).contiguous()
    exponent = (((largest.view(torch.int32) + (1 << 21)) >> 23) - 127 - 2).clamp(min=-127)
    scaled = (blocks.abs() * torch.exp2(-exponent.float())).clamp(max=6)
    spacing = 0.5 + 0.5 * (scaled >= 2) + (scaled >= 4)
    rounded = torch.round(scaled / spacing) * spacing * torch.exp2(exponent.float())
    return torch.copysign(rounded, blocks).flatten(-2)


def quantize_experts(model):
    for moe in model.moes():
        for weight in (moe.gate_up_proj, moe.down_proj):
            weight.data = round_to_mxfp4(weight.data)


def evaluate(model, encoder, count):
    for moe in model.moes():
        moe.load.zero_()
    result = {name: evaluate_task(model, encoder, name, count) for name in BATCH}
    shares = torch.stack([moe.load / moe.load.mean() for moe in model.moes()])
    result["expert_load"] = {"min": float(shares.min()), "max": float(shares.max())}
    return result


def print_table(results):
    """`results`: {format: what evaluate returned}"""
    for title, key in (("right", "right"), ("tokens per step", "tokens_per_step")):
        print(f"{title:18}" + "".join(f"{name:>12}" for name in BATCH) + f"{'mean':>12}")
        for format_, result in results.items():
            values = [result[name][key] for name in BATCH]
            print(f"  {format_:16}" + "".join(f"{value:12.3f}" for value in values)
                  + f"{sum(values) / len(values):12.3f}")
    for format_, result in results.items():
        load = result["expert_load"]
        print(f"expert load, {format_}: {load['min']:.2f} to {load['max']:.2f} of a fair share")
    for name, (aim, floor) in TARGETS.items():
        value = results["bf16"][name]["right"]
        verdict = "reached" if value >= aim else "above the floor" if value >= floor else "MISSED"
        print(f"{name}: {value:.3f}, aim {aim}, floor {floor}: {verdict}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--items", type=int, default=NUM_HELD_OUT)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    encoder = Encoder(Tokenizer.from_file(str(arguments.run / "tokenizer.json")))
    model, results = load_run(arguments.run), {}
    round_weights(model, torch.bfloat16)
    results["bf16"] = evaluate(model, encoder, arguments.items)
    quantize_experts(model)
    results["MXFP4 experts"] = evaluate(model, encoder, arguments.items)
    print_table(results)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
