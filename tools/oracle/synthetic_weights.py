#!/usr/bin/env python3
"""Random weights as `ingot synth` makes them, bit for bit, so that golden files need no weights.

    synthetic_weights.py DESTINATION --config CONFIG.json [--seed S] [--dtype F32|BF16]

A value depends only on (seed, tensor name, element index):

    key  = splitmix64(seed) XOR fnv1a64(name)
    u    = splitmix64(key + i * 0x9E3779B97F4A7C15)              i: row-major element index
    s    = sum of the four 16-bit fields of u                    0 .. 262140
    g    = (s - 131070.0) / 37837.0                              about standard normal

    1.0 + 0.2 g                       names ending in "norm.weight"
    0.1 g                             names ending in "bias"
    g (1.2 / sqrt(last dimension))    everything else

in double, then rounded to float32 and, for BF16, from there to bfloat16, each to nearest even.
`e_score_correction_bias` is float32 always.
"""
import argparse
import json
import math
import os
import sys

import numpy as np

import glm_oracle

GOLDEN = 0x9E3779B97F4A7C15
MASK = (1 << 64) - 1


def fnv1a64(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & MASK
    return value


def splitmix64(z):
    """z: uint64 array; arithmetic is modulo 2^64."""
    z = z + np.uint64(GOLDEN)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def tensor_key(name, seed):
    mixed = int(splitmix64(np.array([seed & MASK], np.uint64))[0])
    return mixed ^ fnv1a64(name.encode())


def standard_values(name, indices, seed):
    """About standard normal, float64; indices: uint64 array of row-major element indices."""
    u = splitmix64(np.uint64(tensor_key(name, seed)) + indices * np.uint64(GOLDEN))
    fields = sum((u >> np.uint64(shift)) & np.uint64(0xFFFF) for shift in (0, 16, 32, 48))
    return (fields.astype(np.float64) - 131070.0) / 37837.0


def elements(name, shape, indices, seed):
    """float32 values of the elements at the given row-major indices."""
    g = standard_values(name, np.asarray(indices, np.uint64), seed)
    if name.endswith("norm.weight"):
        x = 1.0 + 0.2 * g
    elif name.endswith("bias"):
        x = 0.1 * g
    else:
        x = g * (1.2 / math.sqrt(shape[-1]))
    return x.astype(np.float32)


def tensor(name, shape, seed):
    return elements(name, shape, np.arange(math.prod(shape)), seed).reshape(shape)


def bf16_bits(x):
    """float32 to the bits of the nearest bfloat16, ties to even; x is finite."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    rounding = np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    return ((bits + rounding) >> np.uint32(16)).astype(np.uint16)


def is_always_float32(name):
    return name.endswith("e_score_correction_bias")


def weights(config, seed, dtype="F32"):
    """{name: float64 array} holding the values that a checkpoint of `dtype` holds."""
    result = {}
    for name, shape in glm_oracle.shapes(config).items():
        x = tensor(name, shape, seed)
        if dtype == "BF16" and not is_always_float32(name):
            x = (bf16_bits(x).astype(np.uint32) << np.uint32(16)).view(np.float32)
        result[name] = x.astype(np.float64)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("destination")
    parser.add_argument("--config", required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dtype", choices=["F32", "BF16"], default="BF16")
    options = parser.parse_args()
    with open(options.config) as f:
        config = json.load(f)
    os.makedirs(options.destination, exist_ok=True)
    with open(os.path.join(options.destination, "config.json"), "w") as f:
        json.dump(config, f, indent=2)
        f.write("\n")
    stored, bf16_names = {}, set()
    for name, shape in glm_oracle.shapes(config).items():
        stored[name] = tensor(name, shape, options.seed)
        if options.dtype == "BF16" and not is_always_float32(name):
            stored[name] = bf16_bits(stored[name])
            bf16_names.add(name)
    glm_oracle.write_safetensors(os.path.join(options.destination, "model.safetensors"), stored,
                                 bf16_names)
    return 0


if __name__ == "__main__":
    sys.exit(main())
