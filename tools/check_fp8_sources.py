#!/usr/bin/env python3
"""Checks what `ingot quantize` makes of FP8 sources against a rule in numpy.

    check_fp8_sources.py --ingot BINARY [--cases N] [--seed S]

Sources are small glm_moe_dsa checkpoints of drawn sizes whose linear layers are FP8, with a scale
for a block of 128 x 128 (partial blocks included) or for an output row; all 254 finite codes occur,
and scales from subnormal ones to those near the largest float32.  The rule: value times scale in
float32, rounded to bf16 for `--dequant bf16`, and then Quark's: MXFP4 with the scale mode "even",
or FP8 with a scale an output row.  What the recipe keeps becomes bf16, or stays as it is.  Every
byte must be equal.  Needs numpy alone.
"""
import argparse
import itertools
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from oracle import paths  # noqa: F401
import glm_oracle
import safetensors_file as files
from safetensors_file import Tensor

BLOCK, GROUP = 128, 32
UNSCALED = ("mlp.gate.", "lm_head", "embed", "eh_proj", "weights_proj", "norm", "bias")
RECIPES = ("amd-glm-5.2", "amd-glm-5.2-attn-fp8")
SPREADS = {
    "ordinary": (-14, -6),
    "powers of two": (-14, -6),
    "small": (-149, -115),
    "large": (90, 118),
}


# ------------------------------------------------------------------------------------- the formats


def e4m3_values():
    """The values of all 256 codes of F8_E4M3; NaN for two of them."""
    codes = np.arange(256)
    exponent, mantissa = (codes >> 3) & 15, (codes & 7).astype(np.float64)
    normal = (1 + mantissa / 8) * 2.0 ** (exponent - 7)
    size = np.where(exponent == 0, mantissa / 8 * 2.0**-6, normal)
    values = np.where(codes >= 128, -size, size)
    values[[0x7F, 0xFF]] = np.nan
    return values


E4M3 = e4m3_values()


def as_bf16(values):
    bits = files.bf16_bits(values).astype(np.uint32) << 16
    return bits.view(np.float32).reshape(np.shape(values))


def nearest_even_code(sizes, grid):
    """For sizes that the grid covers the code of the nearest value, of two equally near the even
    one."""
    middles = (grid[1:] + grid[:-1]) / 2
    below = np.searchsorted(middles, sizes, side="left")
    above = np.searchsorted(middles, sizes, side="right")
    return np.where(below % 2 == 0, below, above)


def quantize_mxfp4(values):
    """(packed codes, scale bytes) of float32 values [rows, cols] with an even number of columns."""
    rows, cols = values.shape
    groups = -(-cols // GROUP)
    padded = np.zeros((rows, groups * GROUP), np.float32)
    padded[:, :cols] = values
    blocks = padded.reshape(rows, groups, GROUP)
    largest = np.abs(blocks).max(axis=2)
    exponent = ((largest.view(np.uint32) + 0x200000) >> 23).astype(np.int64)
    exponent = np.where(exponent == 255, 254, np.clip(exponent - 2, 0, 254))
    scaled = blocks.astype(np.float64) / 2.0 ** (exponent - 127.0)[..., None]
    grid = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    codes = nearest_even_code(np.minimum(np.abs(scaled), 6), grid)
    codes = np.where((scaled < 0) & (codes > 0), codes | 8, codes).astype(np.uint8)
    codes = codes.reshape(rows, -1)[:, :cols]
    packed = codes[:, 0::2] | codes[:, 1::2] << 4
    return packed, np.maximum(exponent, 1).astype(np.uint8)


def quantize_fp8(values, through_bf16):
    """(codes, float32 scales); the division is rounded to the type of the values."""
    narrow = as_bf16 if through_bf16 else np.float32
    scales = np.abs(values).max(axis=1) / np.float32(448)
    scales[scales == 0] = np.float32(2.0**-23)
    divisors = narrow(scales)
    divisors = np.where(divisors == 0, scales, divisors)[:, None]  # bf16 has no such small numbers
    quotients = np.clip(narrow(values / divisors), -448, 448).astype(np.float64)
    codes = nearest_even_code(np.abs(quotients), E4M3[:0x7F]).astype(np.uint8)
    return codes | np.signbit(quotients).astype(np.uint8) << 7, scales


# ------------------------------------------------------------------------------------- the sources


def draw_config(g):
    sizes = dict(hidden_size=int(g.choice([96, 130, 160, 256, 300])))
    sizes["moe_intermediate_size"] = int(g.choice([34, 128, 136, 200]))
    sizes["intermediate_size"] = int(g.choice([64, 140, 264]))
    return glm_oracle.tiny_config(num_hidden_layers=3, n_routed_experts=4, **sizes)


def draw_scales(g, shape, spread):
    low, high = SPREADS[spread]
    exponents = g.uniform(low, high, shape)
    if spread == "powers of two":
        exponents = np.round(exponents)
    with np.errstate(under="ignore"):
        scales = (2.0**exponents).astype(np.float32)
    return np.maximum(scales, np.float32(2.0**-149))


def draw_codes(g, shape):
    codes = g.integers(0, 256, shape, dtype=np.uint8)
    codes[codes & 0x7F == 0x7F] = 0x7E
    kind = g.random(shape[0])
    codes[kind < 0.1] &= 0x87  # subnormal numbers and zeros of both signs
    codes[kind > 0.95] &= 0x80
    return codes


def decode(codes, scales, per_channel):
    """Value times scale in float32, [rows, cols]."""
    if per_channel:
        spread = scales.reshape(-1, 1)
    else:
        spread = scales.repeat(BLOCK, axis=0).repeat(BLOCK, axis=1)
        spread = spread[: codes.shape[0], : codes.shape[1]]
    return E4M3.astype(np.float32)[codes] * spread


def draw_source(g, config, per_channel, spread):
    """({name: Tensor} to store, {name of a weight: its values in float32})."""
    stored, decoded = {}, {}
    for name, shape in glm_oracle.shapes(config).items():
        if len(shape) != 2 or any(part in name for part in UNSCALED):
            dtype = "F32" if name.endswith("bias") else "BF16"
            stored[name] = files.of_float32(g.standard_normal(shape), dtype)
            continue
        codes = draw_codes(g, shape)
        blocks = (-(-shape[0] // BLOCK), -(-shape[1] // BLOCK))
        scale_shape = (shape[0],) if per_channel else blocks
        scales = draw_scales(g, scale_shape, spread)
        stored[name] = Tensor("F8_E4M3", shape, codes.tobytes())
        suffix = "_scale" if per_channel else "_scale_inv"
        stored[name + suffix] = Tensor("F32", scale_shape, scales.tobytes())
        decoded[name] = decode(codes, scales, per_channel)
    return stored, decoded


def expected(stored, decoded, config, recipe, through_bf16):
    """{name: Tensor} that must come out."""
    mtp = f"model.layers.{config['num_hidden_layers']}."
    attention = recipe.endswith("attn-fp8")
    result = {}
    for name, tensor in stored.items():
        if name.endswith(("_scale", "_scale_inv")):
            continue
        values = decoded.get(name)
        is_kept = name.startswith(mtp) or len(tensor.shape) != 2 or "embed" in name
        is_expert = "experts" in name and not is_kept
        is_fp8 = attention and not is_kept and not is_expert
        is_fp8 = is_fp8 and "mlp.gate." not in name and "weights_proj" not in name
        if values is not None and through_bf16:
            values = as_bf16(values)
        if is_expert:
            packed, scales = quantize_mxfp4(values)
            result[name] = Tensor("U8", packed.shape, packed.tobytes())
            result[name + "_scale"] = Tensor("U8", scales.shape, scales.tobytes())
        elif is_fp8:
            narrow = values is None or through_bf16
            values = files.to_float32(tensor) if values is None else values
            codes, scales = quantize_fp8(values, narrow)
            result[name] = Tensor("F8_E4M3", codes.shape, codes.tobytes())
            result[name + "_scale"] = Tensor("F32", scales.shape, scales.tobytes())
        else:
            result[name] = tensor if values is None else files.of_float32(values, "BF16")
    return result


def differences(want, got):
    lines = [f"{name}: only one has it" for name in sorted(set(want) ^ set(got))]
    for name in sorted(set(want) & set(got)):
        a, b = want[name], got[name]
        if a[:2] != b[:2]:
            lines.append(f"{name}: {a[:2]} expected, {b[:2]} written")
        elif a.data != b.data:
            x, y = np.frombuffer(a.data, np.uint8), np.frombuffer(b.data, np.uint8)
            lines.append(f"{name} {a.dtype}: {int((x != y).sum())} of {x.size} bytes")
    return lines


def quantize(ingot, source, destination, recipe, dequantization):
    command = [ingot, "quantize", source, destination, "--recipe", recipe]
    command += ["--dequant", dequantization]
    run = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    # 1: written, but a loader would not take it; that is not asked here.
    if run.returncode not in (0, 1):
        sys.exit(f"exit {run.returncode}: {run.stderr.strip()}")
    return files.read_checkpoint(destination)


def run_case(ingot, g, per_channel, spread, work):
    """Prints a row; returns the number of differences."""
    config = draw_config(g)
    stored, decoded = draw_source(g, config, per_channel, spread)
    described = dict(quant_method="fp8", activation_scheme="dynamic", fmt="e4m3")
    if not per_channel:
        described["weight_block_size"] = [BLOCK, BLOCK]
    source = work / "source"
    files.write_checkpoint(source, dict(config, quantization_config=described), stored, 3)
    count = num_bytes = 0
    for recipe, dequantization in itertools.product(RECIPES, ("fp32", "bf16")):
        destination = work / f"{recipe}-{dequantization}"
        got = quantize(ingot, source, destination, recipe, dequantization)
        want = expected(stored, decoded, config, recipe, dequantization == "bf16")
        num_bytes += sum(len(tensor.data) for tensor in want.values())
        lines = differences(want, got)
        count += len(lines)
        for line in lines[:5]:
            print(f"  DIFFERENT {recipe} {dequantization}: {line}")
    kind = "per channel" if per_channel else "blocks"
    sizes = [config[key] for key in ("hidden_size", "moe_intermediate_size", "intermediate_size")]
    title = f"{kind}, {spread} scales, sizes {sizes}"
    print(f"{title}: {num_bytes} bytes, {count} differences", flush=True)
    return count


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ingot", required=True)
    parser.add_argument("--cases", type=int, default=2, help="of each kind")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    failures = 0
    for case in range(options.cases):
        for i, (per_channel, spread) in enumerate(itertools.product((False, True), SPREADS)):
            g = np.random.default_rng([options.seed, case, i])
            with tempfile.TemporaryDirectory() as work:
                failures += run_case(options.ingot, g, per_channel, spread, Path(work))
    print("FAILED" if failures else "every byte is equal")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
