#!/usr/bin/env python3
"""Makes tests/golden/sampling/*.json: what a plain statement of every sampling option draws.

    python3 tools/check_sampling_with_numpy.py                   # write
    python3 tools/check_sampling_with_numpy.py --check           # compare, exit 1 on a difference
    PYTHON tools/check_sampling_with_numpy.py --transformers     # the statement against the classes
                                                                 # of a PYTHON with transformers

The statement sorts all tokens, in float64.  cases.json has rows of a few ids with the probability
of every token that may be drawn; large_rows.json has rows of thousands, made from a seed, with how
many tokens are left and which one is drawn.  A case in which a rounding could decide otherwise (the
uniform number, top_p or min_p within 1e-7 of a boundary) is left out, unless it is exact.
"""
import argparse
import itertools
import json
import pathlib
import sys

import numpy as np

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "tests/golden/sampling"
MARGIN = 1e-7
WORD = 2**64 - 1
PARAMS = {"temperature": 0.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "repetition_penalty": 1.0,
          "presence_penalty": 0.0, "frequency_penalty": 0.0, "logit_bias": [], "seed": 0,
          "num_top_logprobs": None}


class TooClose(Exception):
    """A rounding could decide this case."""


def splitmix64(state):
    state = (state + 0x9E3779B97F4A7C15) & WORD
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & WORD
    return state ^ (state >> 31)


def random_word(seed, name, counter):
    key = 0xCBF29CE484222325
    for byte in name.encode():
        key = ((key ^ byte) * 0x100000001B3) & WORD
    key ^= splitmix64(seed)
    return splitmix64((key + counter * 0x9E3779B97F4A7C15) & WORD)


def uniform(seed, name, counter):
    return (random_word(seed, name, counter) >> 11) * 2.0**-53


def normal(seed, name, counter):
    bits = random_word(seed, name, counter)
    fields = sum((bits >> shift) & 0xFFFF for shift in (0, 16, 32, 48))
    return (fields - 131070.0) / 37837.0


def adjusted(logits, params, case):
    """Mask, bias and penalties; float32 after the biases and after the penalties."""
    values = logits.astype(np.float64)
    if case["allowed"] is not None:
        forbidden = np.ones(len(values), bool)
        forbidden[allowed_ids(case)] = False
        values[forbidden] = -np.inf
    for token, bias in params["logit_bias"]:
        values[token] += bias
    values = values.astype(np.float32).astype(np.float64)
    output_counts = np.bincount(case["output"], minlength=len(values)).astype(np.float64)
    seen = np.bincount(case["prompt"] + case["output"], minlength=len(values)) > 0
    penalty = params["repetition_penalty"]
    values[seen] = np.where(values > 0, values / penalty, values * penalty)[seen]
    values -= params["frequency_penalty"] * output_counts
    values -= params["presence_penalty"] * (output_counts > 0)
    return values.astype(np.float32).astype(np.float64)


def allowed_ids(case):
    """A list, or "every third" to keep the file of large rows small."""
    if case["allowed"] == "every third":
        return range(0, case["random_logits"]["count"], 3)
    return case["allowed"]


def ranking(values):
    return np.lexsort((np.arange(len(values)), -values))


def softmax(values):
    weights = np.exp(values - values.max())
    return weights / weights.sum()


def probabilities(logits, params, case):
    """What a token is drawn from.  Raises TooClose."""
    values = adjusted(logits, params, case)
    order = ranking(values)
    if params["temperature"] == 0:
        return np.eye(len(values))[order[0]]
    whole = softmax(values / params["temperature"])
    kept = whole >= params["min_p"] * whole.max()
    if params["min_p"] > 0 and not case["exact"]:
        gap = np.abs(whole / whole.max() / params["min_p"] - 1)[whole > 0].min()
        if gap < MARGIN:
            raise TooClose
    if params["top_k"] > 0:
        kept[order[params["top_k"]:]] = False
    if params["top_p"] < 1:
        sums = np.cumsum((whole * kept / (whole * kept).sum())[order])
        if not case["exact"] and np.abs(sums - params["top_p"]).min() < MARGIN:
            raise TooClose
        kept[order[np.argmax(sums >= params["top_p"]) + 1:]] = False
    return whole * kept / (whole * kept).sum()


def solve(case):
    """Adds what must come out.  Raises TooClose."""
    params = PARAMS | case["params"]
    logits = case_logits(case)
    expected = probabilities(logits, params, case)
    number = uniform(params["seed"], "sample", case["position"])
    sums = np.cumsum(expected)
    if params["temperature"] > 0 and np.abs(sums - number).min() < MARGIN:
        raise TooClose
    case["uniform"] = number
    case["id"] = int(np.argmax(sums > number))
    drawable = np.flatnonzero(expected)
    if "random_logits" in case:
        case["num_drawable"] = len(drawable)
        case["sum_of_drawable_ids"] = int(drawable.sum())
        case["probability"] = rounded(expected[case["id"]])
    else:
        case["probabilities"] = [[int(i), rounded(expected[i])] for i in drawable]
    if params["num_top_logprobs"] is not None:
        logprobs = logits.astype(np.float64)
        logprobs -= logprobs.max() + np.log(np.exp(logprobs - logprobs.max()).sum())
        case["logprob"] = rounded(logprobs[case["id"]])
        top = ranking(logits.astype(np.float64))[:params["num_top_logprobs"]]
        case["top_logprobs"] = [[int(i), rounded(logprobs[i])] for i in top]
    return case


def rounded(number):
    return float(f"{number:.10g}")


def case_logits(case):
    if "logits" in case:
        return np.array(case["logits"], np.float32)
    spec = case["random_logits"]
    return np.array([spec["deviation"] * normal(spec["seed"], "logits", i)
                     for i in range(spec["count"])]).astype(np.float32)


OPTIONS = {
    "temperature": [0.0, 0.3, 0.7, 1.0, 1.7, 1e-5],
    "top_k": [0, 1, 2, 5, 11, 1000],
    "top_p": [1.0, 0.95, 0.8, 0.3, 1e-6],
    "min_p": [0.0, 0.02, 0.2, 0.9],
    "repetition_penalty": [1.0, 1.3, 3.0, 0.7],
    "presence_penalty": [0.0, 1.1, -2.0],
    "frequency_penalty": [0.0, 0.6, -0.9],
    "bias": [0, 1, 5],
    "mask": [False, True],
}


class Cases:
    """Numbered cases; the i-th one's random numbers come from i alone."""

    def __init__(self):
        self.cases = []
        self.num_tried = 0

    def add(self, name, choice, large=None):
        """Tries numbers until a case is decided clearly."""
        while True:
            self.num_tried += 1
            try:
                self.cases.append(solve(self.drawn(name, choice, large)))
                return
            except TooClose:
                continue

    def drawn(self, name, choice, large):
        random = np.random.default_rng(self.num_tried)
        choice = dict(choice)
        size = large["count"] if large else int(random.integers(6, 28))
        num_biased, masked = choice.pop("bias", 0), choice.pop("mask", False)
        params = {"temperature": 1.0, "seed": int(random.integers(1 << 40))} | choice
        if num_biased:
            ids = random.permutation(size)[:num_biased]
            params["logit_bias"] = [[int(i), round(float(random.normal(0, 3)), 2)] for i in ids]
        if random.integers(2):
            params["num_top_logprobs"] = int(random.integers(0, 5))
        case = {"name": name, "exact": False, "params": params,
                "prompt": [int(i) for i in random.integers(0, size, random.integers(0, 9))],
                "output": [int(i) for i in random.integers(0, min(size, 9), random.integers(0, 9))],
                "allowed": None, "position": int(random.integers(0, 3000))}
        if large:
            case["random_logits"] = large | {"seed": self.num_tried}
            case["allowed"] = "every third" if masked else None
        else:
            if masked:
                allowed = random.permutation(size)[:random.integers(1, size)]
                case["allowed"] = sorted(int(i) for i in allowed)
            case["logits"] = [round(float(v), 2) for v in random.normal(0, 2, size)]
        return case

    def add_edge(self, name, logits, params, **fields):
        case = {"name": name, "exact": True, "params": {"temperature": 1.0, "seed": 5} | params,
                "prompt": [], "output": [], "allowed": None, "position": 0, "logits": logits}
        self.cases.append(solve(case | fields))


def add_edges(cases):
    equal = [0.0, 1.0, 1.0, 1.0, 1.0, 0.5]
    cases.add_edge("one id", [3.5], {"top_p": 0.5, "top_k": 4, "min_p": 1.0, "num_top_logprobs": 3})
    cases.add_edge("greedy takes the first of equals", equal, {"temperature": 0.0})
    cases.add_edge("top_k cuts equals by id", equal, {"top_k": 3})
    cases.add_edge("top_k 1 is greedy among equals", equal, {"top_k": 1}, position=3)
    cases.add_edge("top_p cuts equals by id", [2.0] * 8, {"top_p": 0.5})
    cases.add_edge("top_p reached exactly", [0.0] * 4, {"top_p": 0.75})
    cases.add_edge("min_p 1 keeps all equals", equal, {"min_p": 1.0})
    cases.add_edge("min_p 1 keeps one", [0.0, 0.5, 2.0, 1.0], {"min_p": 1.0})
    cases.add_edge("top_p tiny", [0.0, 0.5, 2.0, 1.0], {"top_p": 1e-300})
    cases.add_edge("all masked but the least", [9.0, 8.0, -9.0, 7.0], {}, allowed=[2])
    cases.add_edge("greedy under a mask", [9.0, 8.0, -9.0, 8.5], {"temperature": 0.0},
                   allowed=[1, 2])
    cases.add_edge("a bias of 100 decides", [9.0, -60.0, 4.0], {"logit_bias": [[1, 100.0]]})
    cases.add_edge("a bias of -100 bans", [9.0, 1.0, 1.5], {"logit_bias": [[0, -100.0]]})
    cases.add_edge("a bias does not lift a mask", [9.0, 1.0, 1.5], {"logit_bias": [[0, 100.0]]},
                   allowed=[1, 2])
    cases.add_edge("greedy after penalties", [3.0, 2.9, 1.0],
                   {"temperature": 0.0, "presence_penalty": 0.5}, output=[0])
    cases.add_edge("greedy ignores min_p, top_k and top_p", [1.0, 2.0, 2.0],
                   {"temperature": 0.0, "top_k": 2, "top_p": 0.1, "min_p": 0.5})
    cases.add_edge("the prompt counts for repetition alone", [1.0, 2.0, 2.0],
                   {"repetition_penalty": 2.0, "presence_penalty": 1.0, "frequency_penalty": 1.0},
                   prompt=[0, 1, 1])
    cases.add_edge("a bias turns the sign before repetition", [-1.0, 2.0, 2.0],
                   {"repetition_penalty": 2.0, "logit_bias": [[0, 3.0]]}, output=[0])
    cases.add_edge("a logit of 0 stays", [0.0, 2.0, -2.0], {"repetition_penalty": 1.5},
                   prompt=[0, 1, 2])
    cases.add_edge("the largest temperature", [0.0, 50.0, -50.0], {"temperature": 100.0})


def small_cases():
    cases = Cases()
    add_edges(cases)
    for field, values in OPTIONS.items():
        for value in values:
            cases.add(f"{field} {value}", {field: value})
    for a, b in itertools.combinations(OPTIONS, 2):
        random = np.random.default_rng(len(cases.cases))
        choice = {field: OPTIONS[field][1 + random.integers(len(OPTIONS[field]) - 1)]
                  for field in (a, b)}
        cases.add(f"{a} and {b}", choice)
    for i in range(80):
        random = np.random.default_rng(1000 + i)
        choice = {field: values[random.integers(len(values))] for field, values in OPTIONS.items()}
        cases.add(f"any {i}", choice)
    return cases.cases


def large_cases():
    """Beyond the sizes at which the engine changes from sorting a list to halving it."""
    cases = Cases()
    options = [{}, {"top_k": 1}, {"top_k": 50}, {"top_k": 700}, {"top_k": 2500}, {"top_p": 0.95},
               {"top_p": 0.5}, {"top_p": 0.9999}, {"min_p": 0.05}, {"min_p": 1e-4},
               {"top_k": 900, "top_p": 0.9}, {"min_p": 0.001, "top_p": 0.98},
               {"min_p": 0.01, "top_k": 200, "top_p": 0.9, "repetition_penalty": 1.2, "bias": 5},
               {"temperature": 0.0, "mask": True, "presence_penalty": 1.0}]
    for deviation, choice in itertools.product([0.3, 2.5], options):
        for masked in [False, True]:
            name = ", ".join(f"{field} {value}" for field, value in choice.items()) or "plain"
            cases.add(f"{name}, deviation {deviation}", choice | {"mask": masked},
                      {"count": 5000 if deviation < 1 else 2000, "deviation": deviation})
    return cases.cases


def text_of(cases):
    return "[\n" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases) + "\n]\n"


def compare_with_transformers(cases):
    """The processors of transformers, in float64, in our order; those that it lacks are ours."""
    import torch
    from transformers import (MinPLogitsWarper, RepetitionPenaltyLogitsProcessor,
                              TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper)
    compared, at_ties = 0, []
    for case in cases:
        params = PARAMS | case["params"]
        if params["temperature"] == 0:
            continue
        logits = case_logits(case)
        ours = probabilities(logits, params, case)
        ids = torch.tensor([case["prompt"] + case["output"]], dtype=torch.long)
        bias_alone = params | {"repetition_penalty": 1.0, "presence_penalty": 0.0,
                               "frequency_penalty": 0.0}
        scores = torch.tensor(adjusted(logits, bias_alone, case))[None]
        if ids.numel():
            scores = RepetitionPenaltyLogitsProcessor(params["repetition_penalty"])(ids, scores)
        counts = torch.tensor(np.bincount(case["output"], minlength=len(logits))).double()
        scores = scores - params["frequency_penalty"] * counts
        scores = scores - params["presence_penalty"] * (counts > 0).double()
        scores = scores.float().double()
        tied = len(set(scores[0].tolist())) < len(logits)
        scores = TemperatureLogitsWarper(params["temperature"])(ids, scores)
        if params["min_p"] > 0:
            scores = MinPLogitsWarper(params["min_p"])(ids, scores)
        if params["top_k"] > 0:
            scores = TopKLogitsWarper(params["top_k"])(ids, scores)
        if params["top_p"] < 1:
            scores = TopPLogitsWarper(params["top_p"])(ids, scores)
        theirs = torch.softmax(scores, -1)[0].numpy()
        compared += 1
        if np.allclose(ours, theirs, rtol=1e-9, atol=1e-12):
            continue
        if not tied:
            print(f"{case['name']}: {ours} but transformers {theirs}")
            return 1
        at_ties.append(case["name"])
    print(f"{compared} cases compared, {compared - len(at_ties)} equal; the others have equal "
          "logits at the last place, of which transformers keeps all (top_k) or any (top_p), we "
          f"the lowest ids: {at_ties}")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--transformers", action="store_true")
    options = parser.parse_args()
    small, large = small_cases(), large_cases()
    if options.transformers:
        return compare_with_transformers(small)
    GOLDEN.mkdir(exist_ok=True)
    different = False
    for name, cases in [("cases.json", small), ("large_rows.json", large)]:
        path, text = GOLDEN / name, text_of(cases)
        if not options.check:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            print(f"{path} differs")
            different = True
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
