"""What two programs wrote for one source: differences, and those that are meant to be."""
import fnmatch
import json
import re
from pathlib import Path

from safetensors_file import INDEX, read_file, read_header

MANIFEST = "ingot_quantization.json"
METADATA = '"__metadata__" of the shards: Ingot writes {"format": "pt"}, Quark nothing'
OWN_MANIFEST = f"{MANIFEST}: Ingot's alone"
TOTAL_SIZE = "metadata.total_size of the index: the sum of file sizes, which __metadata__ changes"
SHARD_ORDER = "order of shards in the index: Quark's is the one in which the directory lists them"
FP8_ORDER = "order inside shards with FP8 per channel: Ingot keeps values and scales together"
LAYER_NAMES = "layer_quant_config: Ingot writes exact names, Quark the patterns that it was given"


class Comparison:
    """Of two directories.  `differences` should be empty; `known` are stated, and checked too."""

    def __init__(self, quark, ingot, has_fp8=False):
        self.quark, self.ingot, self.has_fp8 = Path(quark), Path(ingot), has_fp8
        self.differences, self.known = [], []
        self.num_files = self.num_tensors = self.num_bytes = 0
        self._compare()

    def _differ(self, what):
        self.differences.append(what)

    def _know(self, what):
        if what not in self.known:
            self.known.append(what)

    def _compare(self):
        names = [
            {str(p.relative_to(d)) for p in d.rglob("*") if p.is_file()}
            for d in (self.quark, self.ingot)
        ]
        if MANIFEST in names[1]:
            names[1].remove(MANIFEST)
            self._know(OWN_MANIFEST)
        for name in sorted(names[0] ^ names[1]):
            self._differ(f"{name}: only {'Quark' if name in names[0] else 'Ingot'} writes it")
        for name in sorted(names[0] & names[1]):
            self.num_files += 1
            if name.endswith(".safetensors"):
                self._compare_shard(name)
            elif name == INDEX:
                self._compare_index()
            elif name == "config.json":
                self._compare_config()
            elif (self.quark / name).read_bytes() != (self.ingot / name).read_bytes():
                self._differ(f"{name}: other contents")

    def _compare_shard(self, name):
        headers = [read_header(d / name)[0] for d in (self.quark, self.ingot)]
        metadata = [header.pop("__metadata__", None) for header in headers]
        if metadata == [None, {"format": "pt"}]:
            self._know(METADATA)
        elif metadata[0] != metadata[1]:
            self._differ(f"{name}: __metadata__ {metadata[0]} and {metadata[1]}")
        if sorted(headers[0]) != sorted(headers[1]):
            only = sorted(set(headers[0]) ^ set(headers[1]))
            self._differ(f"{name}: tensors that only one has: {', '.join(only[:3])}")
            return
        if list(headers[0].items()) != list(headers[1].items()):
            if self.has_fp8:
                self._know(FP8_ORDER)
            else:
                self._differ(f"{name}: another order or layout of tensors")
        of_quark, of_ingot = (read_file(d / name) for d in (self.quark, self.ingot))
        for tensor, quark in of_quark.items():
            ingot = of_ingot[tensor]
            self.num_tensors += 1
            self.num_bytes += len(quark.data)
            if (quark.dtype, quark.shape) != (ingot.dtype, ingot.shape):
                self._differ(f"{tensor}: {quark[:2]} of Quark and {ingot[:2]} of Ingot")
            elif quark.data != ingot.data:
                count = sum(a != b for a, b in zip(quark.data, ingot.data))
                self._differ(f"{tensor} {quark.dtype}: {count} of {len(quark.data)} bytes")

    def _compare_index(self):
        texts = [(d / INDEX).read_text() for d in (self.quark, self.ingot)]
        for directory, text in zip((self.quark, self.ingot), texts):
            files = set(json.loads(text)["weight_map"].values())
            total = sum((directory / file).stat().st_size for file in files)
            if json.loads(text)["metadata"] != {"total_size": total}:
                self._differ(f"{INDEX}: total_size is not the sum of {directory.name}'s files")
        bare = [re.sub(r'"total_size": \d+', '"total_size": 0', text) for text in texts]
        if texts[0] != texts[1]:
            self._know(TOTAL_SIZE)
        if bare[0] != bare[1]:
            self._know(SHARD_ORDER)
            bare = [self._by_shard(json.loads(text)["weight_map"]) for text in texts]
        if bare[0] != bare[1]:
            self._differ(f"{INDEX}: other contents")

    def _by_shard(self, weight_map):
        """{shard: its tensors}, in the order of the index, which with FP8 is another."""
        shards = {}
        for name, shard in weight_map.items():
            shards.setdefault(shard, []).append(name)
        return {shard: sorted(names) if self.has_fp8 else names for shard, names in shards.items()}

    def _compare_config(self):
        texts = [(d / "config.json").read_text() for d in (self.quark, self.ingot)]
        if texts[0] == texts[1]:
            return
        if not self.has_fp8:
            self._differ("config.json: other bytes")
            return
        self._know(LAYER_NAMES)
        documents = [json.loads(text) for text in texts]
        patterns, exact = (
            document["quantization_config"].pop("layer_quant_config") for document in documents
        )
        if json.dumps(documents[0]) != json.dumps(documents[1]):
            self._differ("config.json: more than layer_quant_config differs")
        excluded = set(documents[0]["quantization_config"]["exclude"])
        meant = {}
        for module in sorted(self._modules()):
            matching = [value for key, value in patterns.items() if fnmatch.fnmatch(module, key)]
            if matching and module not in excluded:
                meant[module] = matching[0]
        if json.dumps(meant) != json.dumps(exact):
            self._differ("config.json: layer_quant_config means other modules or settings")

    def _modules(self):
        index = json.loads((self.quark / INDEX).read_text())
        return {
            name.removesuffix(".weight")
            for name in index["weight_map"]
            if name.endswith(".weight") and name + "_scale" in index["weight_map"]
        }
