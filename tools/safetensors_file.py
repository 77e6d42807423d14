"""safetensors files as bytes: read, written and compared without a library.

A tensor is a `Tensor`: dtype as the header spells it, shape, and its bytes.  Nothing is converted
but by `to_float32` and `of_float32`, and those round as IEEE 754 does, ties to even.
"""
import json
import struct
from collections import namedtuple
from pathlib import Path

import numpy as np

Tensor = namedtuple("Tensor", "dtype shape data")

INDEX = "model.safetensors.index.json"


def read_header(path):
    """(header as a dictionary in the file's order, offset of the data)."""
    with open(path, "rb") as f:
        (length,) = struct.unpack("<Q", f.read(8))
        return json.loads(f.read(length)), 8 + length


def read_file(path):
    """{name: Tensor} in the order of the header."""
    header, begin = read_header(path)
    data = memoryview(Path(path).read_bytes())[begin:]
    header.pop("__metadata__", None)
    return {
        name: Tensor(entry["dtype"], tuple(entry["shape"]), data[slice(*entry["data_offsets"])])
        for name, entry in header.items()
    }


def write_file(path, tensors):
    header, offset = {}, 0
    for name, tensor in tensors.items():
        end = offset + len(tensor.data)
        header[name] = {
            "dtype": tensor.dtype,
            "shape": list(tensor.shape),
            "data_offsets": [offset, end],
        }
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            f.write(tensor.data)


def read_checkpoint(directory):
    """{name: Tensor} of every shard of a directory."""
    tensors = {}
    for path in sorted(Path(directory).glob("*.safetensors")):
        tensors.update(read_file(path))
    return tensors


def write_checkpoint(directory, config, tensors, num_shards):
    """config.json and shards that take turns, so that parts of a layer lie in several of them."""
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    if num_shards == 1:
        write_file(directory / "model.safetensors", tensors)
        return
    names, weight_map = list(tensors), {}
    for shard in range(num_shards):
        file_name = f"model-{shard + 1:05}-of-{num_shards:05}.safetensors"
        part = {name: tensors[name] for name in names[shard::num_shards]}
        write_file(directory / file_name, part)
        weight_map.update(dict.fromkeys(part, file_name))
    index = {"metadata": {}, "weight_map": {name: weight_map[name] for name in names}}
    (directory / INDEX).write_text(json.dumps(index, indent=2) + "\n")


def bf16_bits(values):
    """Bits of float32 values rounded to bf16; finite ones only."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def of_float32(values, dtype):
    """A Tensor of this dtype (BF16, F16 or F32)."""
    values = np.ascontiguousarray(values, np.float32)
    if dtype == "BF16":
        stored = bf16_bits(values)
    else:
        with np.errstate(over="ignore"):
            stored = values.astype({"F16": np.float16, "F32": np.float32}[dtype])
    return Tensor(dtype, values.shape, stored.tobytes())


def to_float32(tensor):
    """Values of a BF16, F16 or F32 tensor, exactly."""
    if tensor.dtype == "BF16":
        bits = np.frombuffer(tensor.data, np.uint16).astype(np.uint32) << 16
        values = bits.view(np.float32)
    else:
        values = np.frombuffer(tensor.data, {"F16": np.float16, "F32": np.float32}[tensor.dtype])
    return values.astype(np.float32).reshape(tensor.shape)
