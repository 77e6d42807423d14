#!/usr/bin/env python3
"""Measures `ingot quantize` beside AMD Quark on one bf16 shard with the experts of GLM-5.2.

    compare_quark_speed.py --ingot BINARY [--experts N] [--turns N] [--quark-turns N]
                           [--tmpfs DIR] [--disk DIR] [--fp8]

The shard is made in DIR of --disk: one MoE layer of N experts (2048 x 6144 and 6144 x 2048) and
next to nothing else; 20 experts are 1.59 GB.  It is read once before each run, so
that it lies in the page cache.  Ingot and Quark, with one and with two threads, write to --tmpfs in
turns, Ingot to --disk as well, beside `dd` with as many bytes.  The table has medians and extremes.

For Ingot time and processor time are of the whole process, from start to end; for Quark of the
quantization alone, without the 10 to 20 s that its import takes.  Memory is the peak of RssAnon and
RssShmem, which a thread samples: mapped files, that is page cache, are not counted.  Every tensor
must be equal.  --fp8 measures Ingot alone, on the same shapes in FP8 blocks.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from oracle import paths  # noqa: F401
import glm_oracle
import safetensors_file as files
from quark_comparison import Comparison

SAMPLE_SECONDS = 0.01
BLOCK = 128


def config_of(num_experts):
    return glm_oracle.tiny_config(
        hidden_size=6144,
        moe_intermediate_size=2048,
        intermediate_size=64,
        num_hidden_layers=2,
        first_k_dense_replace=1,
        num_nextn_predict_layers=0,
        n_routed_experts=num_experts,
    )


def make_source(directory, num_experts):
    """Normal values; experts of one shape are the same rows in another order, which is quicker."""
    g = np.random.default_rng(1)
    drawn, tensors = {}, {}
    for i, (name, shape) in enumerate(glm_oracle.shapes(config_of(num_experts)).items()):
        if "experts" not in name:
            dtype = "F32" if name.endswith("bias") else "BF16"
            tensors[name] = files.of_float32(g.standard_normal(shape, np.float32) * 0.02, dtype)
            continue
        if shape not in drawn:
            drawn[shape] = files.bf16_bits(g.standard_normal(shape, np.float32) * 0.02)
        tensors[name] = files.Tensor("BF16", shape, np.roll(drawn[shape], i, axis=0).tobytes())
    files.write_checkpoint(directory, config_of(num_experts), tensors, 1)


def make_fp8_source(source, directory):
    """The experts of a bf16 source as random FP8 codes, with a scale for each block."""
    result = {}
    for name, tensor in files.read_file(next(source.glob("*.safetensors"))).items():
        if ".experts." not in name:
            result[name] = tensor
            continue
        rows, cols = (extent // BLOCK for extent in tensor.shape)
        g = np.random.default_rng(len(result))
        codes = g.integers(0, 0x7F, tensor.shape, dtype=np.uint8)
        codes |= g.integers(0, 2, tensor.shape, dtype=np.uint8) << 7
        scales = np.full((rows, cols), 1e-4, np.float32)
        result[name] = files.Tensor("F8_E4M3", tensor.shape, codes.tobytes())
        result[name + "_scale_inv"] = files.Tensor("F32", scales.shape, scales.tobytes())
    config = json.loads((source / "config.json").read_text())
    config["quantization_config"] = {
        "quant_method": "fp8",
        "activation_scheme": "dynamic",
        "weight_block_size": [BLOCK, BLOCK],
    }
    files.write_checkpoint(directory, config, result, 1)


class Peak(threading.Thread):
    """The largest own memory of a process and its children, in bytes, until it ends."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.path, self.most = f"/proc/{pid}/status", 0
        self.start()

    def run(self):
        while True:
            try:
                with open(self.path) as status:
                    fields = dict(line.split(":", 1) for line in status)
            except (FileNotFoundError, ProcessLookupError):
                return
            if "RssAnon" not in fields:  # it ended and waits for its parent
                return
            own = sum(int(fields[key].split()[0]) for key in ("RssAnon", "RssShmem"))
            self.most = max(self.most, own * 1024)
            time.sleep(SAMPLE_SECONDS)


def run(command):
    """(seconds, processor seconds, peak bytes, standard output); a failure ends the script."""
    start = time.monotonic()
    process = subprocess.Popen(
        list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    peak = Peak(process.pid)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit {process.returncode}")
    peak.join()
    return seconds, usage.ru_utime + usage.ru_stime, peak.most, output


def run_ingot(ingot, source, destination, threads):
    shutil.rmtree(destination, ignore_errors=True)
    command = [ingot, "quantize", source, destination, "--threads", str(threads)]
    return run(command)[:3]


def run_quark(source, destination, threads):
    shutil.rmtree(destination, ignore_errors=True)
    script = Path(__file__).with_name("quark_export.py")
    command = [sys.executable, script, source, destination, "--threads", threads]
    _, _, peak, output = run(command)
    measured = json.loads(output.splitlines()[-1])
    return measured["seconds"], measured["processor_seconds"], peak


def run_dd(path, num_bytes):
    """Writes as many bytes and waits until they are on the disk."""
    blocks = -(-num_bytes // (1 << 20))
    command = ["dd", "if=/dev/zero", f"of={path}", "bs=1M", f"count={blocks}", "conv=fsync"]
    seconds, processor_seconds, _, _ = run(command)
    path.unlink()
    return seconds, processor_seconds, 0


def read_all(directory):
    """Brings a directory's shards into the page cache."""
    for path in directory.glob("*.safetensors"):
        with open(path, "rb") as f:
            while f.read(1 << 24):
                pass


def print_row(title, runs, num_bytes):
    seconds, processor, peaks = zip(*runs)
    median = statistics.median(seconds)
    median_processor = statistics.median(processor)
    print(
        f"| {title} | {len(runs)} | {median:.2f} ({min(seconds):.2f} to {max(seconds):.2f})"
        f" | {median_processor:.2f} ({min(processor):.2f} to {max(processor):.2f})"
        f" | {num_bytes / median / 1e9:.3f} | {num_bytes / median_processor / 1e9:.3f}"
        f" | {max(peaks) / 1e6:.0f} MB |",
        flush=True,
    )


def print_head(num_bytes, output_bytes):
    print(f"source {num_bytes / 1e9:.3f} GB, output {output_bytes / 1e9:.3f} GB")
    print("| what | runs | seconds | processor seconds | GB/s | GB a processor second | memory |")
    print("|---|---|---|---|---|---|---|", flush=True)


def shard_bytes(directory):
    return sum(path.stat().st_size for path in directory.glob("*.safetensors"))


def measure(options, source, tmpfs, disk):
    """Runs everything in turns and prints the table; returns whether all tensors were equal."""
    num_bytes = shard_bytes(source)
    runs, different = {}, 0

    def add(title, result):
        runs.setdefault(title, []).append(result)

    for turn in range(max(options.turns, options.quark_turns)):
        for threads in (1, 2):
            read_all(source)
            if turn < options.turns:
                title = f"Ingot, {threads} thread{'s' * (threads > 1)}"
                result = run_ingot(options.ingot, source, tmpfs / "ingot", threads)
                add(f"{title}, to tmpfs", result)
                output_bytes = shard_bytes(tmpfs / "ingot")
                add(f"{title}, to disk", run_ingot(options.ingot, source, disk / "out", threads))
                shutil.rmtree(disk / "out")
                add("dd of as many bytes to disk", run_dd(disk / "dd", output_bytes))
            if turn < options.quark_turns:
                title = f"Quark, {threads} thread{'s' * (threads > 1)}, to tmpfs"
                add(title, run_quark(source, tmpfs / "quark", threads))
                result = Comparison(tmpfs / "quark", tmpfs / "ingot")
                different += len(result.differences)
                print(f"{result.num_bytes} bytes compared, {result.differences}", flush=True)
    print_head(num_bytes, output_bytes)
    for title in sorted(runs, key=lambda t: t.startswith("dd")):
        print_row(title, runs[title], output_bytes if title.startswith("dd") else num_bytes)
    return different == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ingot", required=True)
    parser.add_argument("--experts", type=int, default=20)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--quark-turns", type=int, default=1)
    parser.add_argument("--tmpfs", default="/dev/shm")
    parser.add_argument("--disk", default=".")
    parser.add_argument("--fp8", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.tmpfs) as tmpfs:
        with tempfile.TemporaryDirectory(dir=options.disk) as disk:
            source = Path(disk) / "source"
            make_source(source, options.experts)
            if options.fp8:
                make_fp8_source(source, Path(disk) / "fp8")
                source, options.quark_turns = Path(disk) / "fp8", 0
            equal = measure(options, source, Path(tmpfs), Path(disk))
    print("equal" if equal else "DIFFERENT")
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
