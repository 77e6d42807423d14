"""How good an exported model is on its held-out items when `ingot chat` answers them.

    python train/evaluate_with_ingot.py MODEL_DIR --ingot build/release/ingot [--items 200]
        [--tasks arithmetic,choice,tools,chat] [--json FILE] [--jobs N]

Each item is a request file as `ingot chat --messages` takes it, answered greedily by a process of
its own with one thread. Answers are judged as evaluate.py judges them.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from config import BATCH, NUM_HELD_OUT
from evaluate import OUTPUT_TOKENS_MAX, TARGETS, is_right
from tasks import held_out_items


def answer(ingot, model, line):
    """What ingot answers to a line of tasks/NAME.jsonl, as its JSON."""
    request = {key: line[key] for key in ("messages", "tools") if key in line}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(request, file)
        file.flush()
        run = subprocess.run(
            [ingot, "chat", str(model), "--messages", file.name, "--json", "--threads", "1",
             "--kv-tokens", "1024", "--max-tokens", str(OUTPUT_TOKENS_MAX)],
            capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise RuntimeError(f"ingot chat failed: {run.stderr.strip()}")
    return json.loads(run.stdout)


def is_right_answer(name, item, said):
    """Whether the answer gives what the item expects; a call is compared as ingot parsed it."""
    if isinstance(item.expected, dict):
        calls = said.get("tool_calls", [])
        if not calls:
            return False
        function = calls[0]["function"]
        arguments = json.loads(function["arguments"])
        return {"name": function["name"], "arguments": arguments} == item.expected
    return "tool_calls" not in said and is_right(name, item, said["content"])


def evaluate_task(ingot, model, name, count, jobs):
    lines = (model / "tasks" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()[:count]
    items = held_out_items(name, len(lines))
    with ThreadPoolExecutor(jobs) as pool:
        said = list(pool.map(lambda line: answer(ingot, model, json.loads(line)), lines))
    right = [is_right_answer(name, item, one) for item, one in zip(items, said)]
    return {"right": sum(right) / len(right), "items": len(right),
            "completion_tokens": sum(one["usage"]["completion_tokens"] for one in said)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--ingot", required=True)
    parser.add_argument("--items", type=int, default=NUM_HELD_OUT)
    parser.add_argument("--tasks", default=",".join(BATCH))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    results = {}
    for name in arguments.tasks.split(","):
        results[name] = evaluate_task(arguments.ingot, arguments.model, name, arguments.items,
                                      arguments.jobs)
        aim, floor = TARGETS.get(name, (None, None))
        print(f"{name:12} {results[name]['right']:.3f} of {results[name]['items']} items"
              + (f", aim {aim}, floor {floor}" if aim else ""), flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
