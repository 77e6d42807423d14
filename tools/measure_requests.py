#!/usr/bin/env python3
"""Measures `ingot generate --requests` on the bundled model against how many run at once.

    measure_requests.py --ingot BINARY [--model DIR] [--requests N] [--turns N] [--threads N]
                        [--running 1,2,4,..] [--prefix-tokens N]

Takes N items of the model's own tasks as chats, each after one long system message that all share,
and answers them greedily: with and without prefix cache, with and without drafts.  All runs of one
turn follow each other; tables have medians over the turns.  The answers must be the same in every
run.  The second table is where the engine's thread spends its time.
"""
import argparse
import json
import statistics
import subprocess
import tempfile
from pathlib import Path

VARIANTS = {
    "plain": ["--no-prefix-cache", "--speculative-tokens", "0"],
    "cache": ["--speculative-tokens", "0"],
    "drafts": ["--no-prefix-cache", "--speculative-tokens", "3"],
    "cache, drafts": ["--speculative-tokens", "3"],
    "cache, auto": ["--speculative-tokens", "auto"],
}
PARTS = ["scheduling", "drafting", "forward", "drawing", "delivering"]


def write_requests(model, count, prefix_words, path):
    items = []
    for task in ("arithmetic", "choice", "chat"):
        items += [json.loads(line)["messages"] for line in open(model / "tasks" / f"{task}.jsonl")]
    step = max(1, len(items) // count)
    system = "You are a helpful assistant. " * (prefix_words // 6)
    with open(path, "w") as file:
        for number, messages in enumerate(items[::step][:count]):
            messages = [m for m in messages if m["role"] != "system"]
            body = {"messages": [{"role": "system", "content": system}] + messages,
                    "temperature": 0, "max_tokens": 128}
            print(json.dumps({"custom_id": str(number), "method": "POST",
                              "url": "/v1/chat/completions", "body": body}), file=file)


def answer(arguments, requests, running, options, directory):
    out = directory / "out.jsonl"
    out.unlink(missing_ok=True)
    command = [arguments.ingot, "generate", arguments.model, "--requests", requests, "--out", out,
               "--max-running", str(running), "--threads", str(arguments.threads), "--json",
               "--kv-tokens", "65536"] + options
    run = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if run.returncode != 0:
        raise SystemExit(run.stderr)
    said = [json.loads(line)["response"]["body"]["choices"] for line in open(out)]
    return json.loads(run.stdout), said


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ingot", required=True)
    parser.add_argument("--model", type=Path, default=Path("models/ingot-3m"))
    parser.add_argument("--requests", type=int, default=128)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--running", default="1,2,4,8,16,32,64")
    parser.add_argument("--prefix-tokens", type=int, default=256)
    arguments = parser.parse_args()
    running = [int(number) for number in arguments.running.split(",")]

    results = {}
    said = None
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        requests = directory / "in.jsonl"
        write_requests(arguments.model, arguments.requests, arguments.prefix_tokens, requests)
        for _ in range(arguments.turns):
            for count in running:
                for variant, options in VARIANTS.items():
                    result, choices = answer(arguments, requests, count, options, directory)
                    said = said or choices
                    if choices != said:
                        raise SystemExit(f"{variant}, {count} at once: other answers than before")
                    results.setdefault((variant, count), []).append(result)
    provenance = result["provenance"]
    print(f"{provenance['commit']}, {provenance['processor']}, {provenance['target']}, "
          f"{arguments.threads} threads, {arguments.requests} requests, "
          f"{result['prompt_tokens'] // arguments.requests} prompt tokens each, "
          f"{result['output_tokens'] // arguments.requests} output tokens each\n")

    print("| at once | " + " | ".join(VARIANTS) + " |")
    print("|--:|" + "--:|" * len(VARIANTS))
    for count in running:
        rates = [statistics.median(r["output_tokens_per_second"] for r in results[v, count])
                 for v in VARIANTS]
        print(f"| {count} | " + " | ".join(f"{rate:.0f}" for rate in rates) + " |")
    print("\n| at once | variant | steps | us a step | " + " | ".join(PARTS) + " | overhead us |")
    print("|--:|---|--:|--:|" + "--:|" * len(PARTS) + "--:|")
    for count in running:
        for variant in ("cache", "cache, drafts"):
            runs = results[variant, count]
            steps = statistics.median(r["steps"] for r in runs)
            per_step = {part: statistics.median(1e6 * r["times"][part + "_seconds"] / r["steps"]
                                                for r in runs) for part in PARTS}
            executing = statistics.median(1e6 * r["times"]["executing_seconds"] / r["steps"]
                                          for r in runs)
            total = executing + per_step["scheduling"] + per_step["delivering"]
            overhead = total - per_step["drafting"] - per_step["forward"] - per_step["drawing"]
            shares = " | ".join(f"{100 * per_step[part] / total:.1f}%" for part in PARTS)
            print(f"| {count} | {variant} | {steps:.0f} | {total:.0f} | {shares} | "
                  f"{overhead:.1f} |")


if __name__ == "__main__":
    main()
