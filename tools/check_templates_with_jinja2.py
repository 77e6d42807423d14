#!/usr/bin/env python3
"""Compares our templates with jinja2 in the settings of transformers, on random ones.

usage: check_templates_with_jinja2.py --test build/release/src/ingot_text_test
           [--count 20000] [--seed 1] [--keep FILE]

Needs transformers and jinja2. A grammar draws templates with variables, many of which fail while
they run; jinja2 says what comes out or that nothing does, and the test RandomTemplates compares.
Left out are what we refuse by intent (docs/formats/chat_template.md): what Python prints by its
address, integers beyond 64 bits in arithmetic, attributes of numbers and macros, tuples as keys.
"""

import argparse
import copy
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

from transformers.utils import chat_template_utils as hf

from random_expression import VARIABLES
from random_template import Grammar

BY_ADDRESS = re.compile(
    r"<[\w. ]+ at 0x|<built-in|<function|<bound|<Macro|<Namespace|<LoopContext|<.*class '"
)


def integers_fit(output):
    return all(
        -(2**63) <= int(digits) < 2**63
        for digits in re.findall(r"-?\d{19,40}", output)
        if digits != "100000000000000000000"
    )


def one_case(rng, counts):
    template = Grammar(rng).template()
    case = {"template": template}
    try:
        case["output"] = hf._compile_jinja_template(template).render(**copy.deepcopy(VARIABLES))
        case["output"].encode()
    except Exception as failure:  # whatever the template makes Python do
        case.pop("output", None)
        case["error"] = type(failure).__name__
    counts[case.get("error", "rendered")] = counts.get(case.get("error", "rendered"), 0) + 1
    output = case.get("output", "")
    if BY_ADDRESS.search(output) or not integers_fit(output) or len(output) > 200000:
        counts["left out"] = counts.get("left out", 0) + 1
        return None
    return case


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--test", type=pathlib.Path, required=True, help="the program ingot_text_test"
    )
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--keep", type=pathlib.Path, help="where the cases are written, to be looked at"
    )
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    counts = {}
    path = arguments.keep or pathlib.Path(tempfile.mkdtemp()) / "cases.jsonl"
    with path.open("w") as file:
        file.write(json.dumps(VARIABLES, ensure_ascii=False) + "\n")
        for _ in range(arguments.count):
            case = one_case(rng, counts)
            if case is not None:
                file.write(json.dumps(case, ensure_ascii=False) + "\n")
    print(
        ", ".join(
            f"{name}: {count}" for name, count in sorted(counts.items(), key=lambda item: -item[1])
        ),
        flush=True,
    )
    environment = {**os.environ, "INGOT_TEMPLATE_CASES": str(path)}
    command = [arguments.test, "--gtest_filter=ChatTemplateGolden.RandomTemplates"]
    sys.exit(subprocess.run(command, env=environment).returncode)


if __name__ == "__main__":
    main()
