#!/usr/bin/env python3
"""Compares what `ingot quantize` and AMD Quark 0.13 write for the same checkpoints.

    compare_with_quark.py --ingot BINARY [--seed S] [--keep DIR]

Run with the interpreter in which Quark is installed (README.md).  Sources are made by `ingot
synth`, and then rows that decide between rules of rounding are planted in them (hard_rows.py).
Every file is compared: names and order of shards and tensors, dtypes, shapes, bytes, index,
config.json and side files.  Differences are listed and make the exit status 1; those that are
meant are named and checked.  At last, what both make of NaN and infinity: Quark writes something,
Ingot must refuse.
--keep DIR leaves the directories there.
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from oracle import paths  # noqa: F401
import glm_oracle
import hard_rows
import quark_export
import safetensors_file as files
from quark_comparison import Comparison

LARGEST = {"BF16": 3.39e38, "F16": 65000.0, "F32": 3.4e38}
MLP = ("*mlp.gate_proj", "*mlp.up_proj", "*mlp.down_proj")
FP8_MODULES = ("*self_attn*", "*lm_head", *MLP)
FP8_KEPT = ("*self_attn.indexer.weights_proj", "*mlp.gate")
SIDE_FILES = {"notes.txt": "a side file\n", "README.md": "not carried over\n", "LICENSE": "none\n"}


class Programs:
    def __init__(self, ingot):
        self.ingot_binary = ingot

    def ingot(self, *arguments):
        command = [self.ingot_binary, *map(str, arguments)]
        run = subprocess.run(command, capture_output=True, text=True)
        return run.returncode, run.stderr.strip()

    def ingot_must(self, *arguments):
        status, message = self.ingot(*arguments)
        # 1: written, but a loader would not take it, which is not asked here.
        if status not in (0, 1):
            sys.exit(f"ingot {arguments[0]}: exit {status}: {message}")


def with_hard_rows(tensors, seed, mixed):
    """Tensors with other rows in their matrices; some in f32 and f16 if `mixed`."""
    g = np.random.default_rng(seed)
    result, planted = {}, {"mxfp4": 0, "fp8": 0}
    for i, (name, tensor) in enumerate(tensors.items()):
        dtype = tensor.dtype
        if mixed and dtype == "BF16":
            # The routed experts of a layer must be of one type.
            number = int(name.split(".")[2]) if ".experts." in name else i
            dtype = ("BF16", "F32", "F16")[number % 3]
        values = files.to_float32(tensor).astype(np.float64)
        if len(tensor.shape) == 2 and "embed" not in name:
            kind = "mxfp4" if "experts" in name else "fp8"
            rows = getattr(hard_rows, f"{kind}_rows")(g, dtype)
            planted[kind] += hard_rows.plant(values, rows, i, LARGEST[dtype])
        with np.errstate(under="ignore"):
            result[name] = files.of_float32(values.astype(np.float32), dtype)
    return result, planted


def write_source(directory, config, tensors, num_shards):
    files.write_checkpoint(directory, config, tensors, num_shards)
    for name, text in SIDE_FILES.items():
        (directory / name).write_text(text)
    (directory / "folder").mkdir()
    (directory / "folder" / "inside.json").write_text("{}\n")


def compare(programs, work, title, source, recipe, options, has_fp8=False):
    """Prints a row; returns the number of differences."""
    name = title.replace(" ", "_").replace(",", "")
    quark, ingot = work / f"{name}_quark", work / f"{name}_ingot"
    quark_export.quantize(source, quark, **options)
    programs.ingot_must("quantize", source, ingot, "--recipe", recipe)
    result = Comparison(quark, ingot, has_fp8)
    print(
        f"{title}: {result.num_files} files, {result.num_tensors} tensors,"
        f" {result.num_bytes} bytes: {len(result.differences)} differences",
        flush=True,
    )
    for line in result.differences[:20]:
        print(f"  DIFFERENT {line}")
    for line in result.known:
        print(f"  meant     {line}")
    return len(result.differences)


def compare_non_finite(programs, work, config, tensors, mtp):
    """Prints what becomes of NaN and infinity; returns how often Ingot did not refuse."""
    failures = 0
    name = next(n for n in tensors if "mlp.experts.3.up_proj" in n)
    for label, value in (("nan", np.nan), ("infinity", np.inf)):
        values = files.to_float32(tensors[name]).copy()
        values[1, 2] = value
        bits = (values.view(np.uint32) >> 16).astype(np.uint16)
        source = work / f"{label}_source"
        broken = files.Tensor("BF16", tensors[name].shape, bits.tobytes())
        write_source(source, config, dict(tensors, **{name: broken}), 1)
        quark_export.quantize(source, work / f"{label}_quark", exclude=[mtp])
        written = files.read_checkpoint(work / f"{label}_quark")[name + "_scale"]
        scale = np.frombuffer(written.data, np.uint8).reshape(written.shape)[1, 0]
        destination = work / f"{label}_ingot"
        status, message = programs.ingot("quantize", source, destination)
        refused = status == 2 and name in message and not (destination / "config.json").exists()
        print(f"{label}: Quark writes scale byte {scale} without an error; ingot: exit {status}")
        print(f"  {message}")
        failures += not refused
    return failures


def run_all(programs, work, seed):
    failures = 0
    programs.ingot_must("synth", work / "tiny", "--config", "tiny", "--seed", seed)
    config = json.loads((work / "tiny" / "config.json").read_text())
    tensors = files.read_checkpoint(work / "tiny")
    mtp = f"*layers.{config['num_hidden_layers']}.*"
    plain = ("amd-glm-5.2", {"exclude": [mtp]})
    failures += compare(programs, work, "bf16 one file", work / "tiny", *plain)

    mixed, planted = with_hard_rows(tensors, seed, mixed=True)
    print(f"hard rows: {planted['mxfp4']} for MXFP4, {planted['fp8']} for FP8")
    write_source(work / "mixed", config, mixed, 4)
    failures += compare(programs, work, "bf16 f16 f32, four files", work / "mixed", *plain)

    odd_config = glm_oracle.tiny_config(hidden_size=80, moe_intermediate_size=72)
    odd = glm_oracle.random_weights(odd_config, seed)
    odd = {name: files.of_float32(x, "F32" if x.ndim == 1 else "BF16") for name, x in odd.items()}
    odd, _ = with_hard_rows(odd, seed, mixed=False)
    write_source(work / "odd", odd_config, odd, 3)
    odd_mtp = f"*layers.{odd_config['num_hidden_layers']}.*"
    odd_options = {"exclude": [odd_mtp]}
    failures += compare(programs, work, "partial blocks", work / "odd", plain[0], odd_options)

    options = {"exclude": [mtp, *FP8_KEPT], "fp8": FP8_MODULES, "with_template": False}
    recipe = "amd-glm-5.2-attn-fp8"
    title = "attention in FP8 per channel"
    failures += compare(programs, work, title, work / "mixed", recipe, options, has_fp8=True)

    return failures + compare_non_finite(programs, work, config, tensors, mtp)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ingot", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    programs = Programs(options.ingot)
    if options.keep:
        options.keep.mkdir(parents=True)
        failures = run_all(programs, options.keep, options.seed)
    else:
        with tempfile.TemporaryDirectory() as work:
            failures = run_all(programs, Path(work), options.seed)
    print("FAILED" if failures else "equal but for what is meant")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
