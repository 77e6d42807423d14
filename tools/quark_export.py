#!/usr/bin/env python3
"""Quantizes a checkpoint with AMD Quark, file to file, on the CPU.

    quark_export.py SOURCE DESTINATION [--threads N] [--exclude GLOB]... [--no-template]
                    [--fp8 GLOB]...

MXFP4 for what the template of glm_moe_dsa does not exclude; --exclude adds to that list, and with
--no-template replaces it.  --fp8: modules in FP8 with a scale an output row.  Prints one line of
JSON: wall and processor seconds of the quantization alone, seconds of the import, and versions.
README.md says how Quark is installed.  Quark removes an existing DESTINATION.
"""
import argparse
import json
import os
import sys
import time


def quantize(source, destination, threads=1, exclude=(), fp8=(), with_template=True):
    """Returns what is printed, as a dictionary.  Ends the script where Quark writes nothing."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    start = time.monotonic()
    import torch
    import quark
    from quark.torch import LLMTemplate, ModelQuantizer

    import_seconds = time.monotonic() - start
    torch.set_num_threads(threads)
    template = LLMTemplate.get("glm_moe_dsa")
    excluded = template.exclude_layers_name if with_template else []
    config = template.get_config(
        scheme="mxfp4",
        exclude_layers=[*excluded, *exclude],
        layer_config=dict.fromkeys(fp8, "ptpc_fp8"),
    )
    start, processor_start = time.monotonic(), time.process_time()
    ModelQuantizer(config).direct_quantize_checkpoint(str(source), str(destination), device="cpu")
    seconds, processor_seconds = time.monotonic() - start, time.process_time() - processor_start
    # It refuses an FP8 source on a CPU with a line in its log and no exit status.
    if not os.path.exists(os.path.join(destination, "config.json")):
        sys.exit("Quark wrote nothing")
    return {
        "seconds": seconds,
        "processor_seconds": processor_seconds,
        "import_seconds": import_seconds,
        "quark": quark.__version__,
        "torch": torch.__version__,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("source")
    parser.add_argument("destination")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--exclude", action="append", default=[])
    parser.add_argument("--fp8", action="append", default=[])
    parser.add_argument("--no-template", dest="with_template", action="store_false")
    print(json.dumps(quantize(**vars(parser.parse_args()))))


if __name__ == "__main__":
    main()
