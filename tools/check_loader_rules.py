#!/usr/bin/env python3
"""Compares `ingot inspect --for` with the loaders' own code on random lists of excluded modules.

    pip download --no-deps sglang==0.5.23   # or vllm==0.33.0; then unzip the wheel
    tools/check_loader_rules.py build/release/ingot sglang UNPACKED_WHEEL --lists 2000

Of a wheel only the functions that match names are taken, by their source, so that nothing else of
it has to run here. The model is a small bf16 one under a Quark config, where every module that a
list does not cover has to come up in Ingot's "exclude_to_add", and every fused module that it
covers in part as "loader_refuses".
"""

import argparse
import ast
import copy
import json
import logging
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import types
import typing
from collections.abc import Iterable, Mapping
from types import MappingProxyType

LAYERS, DENSE, EXPERTS = 3, 1, 4
CONFIG = {
    "model_type": "glm_moe_dsa",
    "architectures": ["GlmMoeDsaForCausalLM"],
    "vocab_size": 96,
    "hidden_size": 64,
    "intermediate_size": 96,
    "moe_intermediate_size": 64,
    "num_hidden_layers": LAYERS,
    "num_nextn_predict_layers": 1,
    "first_k_dense_replace": DENSE,
    "num_attention_heads": 4,
    "q_lora_rank": 32,
    "kv_lora_rank": 32,
    "qk_nope_head_dim": 24,
    "qk_rope_head_dim": 8,
    "v_head_dim": 32,
    "n_routed_experts": EXPERTS,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "routed_scaling_factor": 2.5,
    "index_n_heads": 16,
    "index_head_dim": 32,
    "index_topk": 6,
    "indexer_types": ["full", "full", "shared"],
    "rms_norm_eps": 1e-5,
    "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
    "max_position_embeddings": 64,
    "eos_token_id": [90],
}
SIDE = {"dtype": "fp4", "qscheme": "per_group", "group_size": 32, "scale_format": "e8m0"}
QUARK = {
    "quant_method": "quark",
    "global_quant_config": {
        "weight": {**SIDE, "is_dynamic": False},
        "input_tensors": {**SIDE, "is_dynamic": True},
        "output_tensors": None,
        "bias": None,
    },
    "layer_quant_config": {},
    "layer_type_quant_config": {},
    "export": {"kv_cache_group": [], "pack_method": "reorder"},
}


def take(path, names, scope):
    """Runs the functions (or, as Class.method, methods) of these names out of a source file."""
    tree = ast.parse(path.read_text())
    wanted = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            wanted[node.name] = node
        if isinstance(node, ast.ClassDef):
            for method in node.body:
                if isinstance(method, ast.FunctionDef):
                    wanted[f"{node.name}.{method.name}"] = method
    for name in names:
        node = wanted[name]
        node.decorator_list = []
        exec(compile(ast.Module([node], []), str(path), "exec"), scope)


def scope_for_functions():
    return {
        **vars(typing),
        "re": re,
        "copy": copy,
        "logger": logging.getLogger(),
        "Iterable": Iterable,
        "Mapping": Mapping,
        "MappingProxyType": MappingProxyType,
    }


class Sglang:
    fused_qkv = "fused_qkv_a_proj_with_mqa"

    def __init__(self, wheel):
        root = wheel / "sglang/srt"
        self.scope = scope_for_functions()
        take(
            root / "layers/quantization/quark/utils.py",
            ["_is_equal_or_regex_match", "check_equal_or_regex_match", "should_ignore_layer"],
            self.scope,
        )
        self.nextn = scope_for_functions()
        self.nextn["should_apply_glm_nextn_moe_ptpc"] = lambda *_: False
        self.nextn["QuantizationConfig"] = object
        self.nextn["PretrainedConfig"] = object
        cls = "GlmMoeDsaForCausalLMNextN"
        take(
            root / "models/glm4_moe.py",
            [f"{cls}._map_mtp_ckpt_name", f"{cls}._resolve_nextn_quant_config"],
            self.nextn,
        )

    def draft_list(self, exclude):
        names = self.nextn["_map_mtp_ckpt_name"]
        model = types.SimpleNamespace(
            _map_mtp_ckpt_name=lambda name, prefix: names(
                types.SimpleNamespace(
                    _NEXTN_SPEC_WEIGHT_NAMES=("shared_head.norm", "eh_proj", "enorm", "hnorm")
                ),
                name,
                prefix,
            )
        )
        # What the mapper of an empty renaming does to entries of another model around this one.
        expanded = []
        for name in exclude:
            expanded.append(name)
            if name.startswith("language_model."):
                expanded.append(name.removeprefix("language_model."))
        config = types.SimpleNamespace(
            quant_config={}, exclude_layers=expanded, get_name=lambda: "quark"
        )
        resolved = self.nextn["_resolve_nextn_quant_config"](
            model, types.SimpleNamespace(num_hidden_layers=LAYERS), config
        )
        return resolved.exclude_layers

    def ignores(self, name, exclude, fused, is_experts):
        return self.scope["should_ignore_layer"](name, exclude, fused)

    def draft(self, name):
        return "model." + name if name == "eh_proj" else "model.decoder." + name


class Vllm:
    fused_qkv = "fused_qkv_a_proj"

    def __init__(self, wheel):
        root = wheel / "vllm/model_executor/layers/quantization"
        self.scope = scope_for_functions()
        self.scope["fnmatch"] = lambda *_: False
        take(
            root / "utils/config_utils.py",
            ["is_equal_or_regex_match", "find_matching_patterns"],
            self.scope,
        )
        take(root / "quark/utils.py", ["should_ignore_layer"], self.scope)

    def draft_list(self, exclude):
        return exclude

    def ignores(self, name, exclude, fused, is_experts):
        return self.scope["should_ignore_layer"](name, exclude, fused, check_children=is_experts)

    def draft(self, name):
        return None if name == "eh_proj" else f"model.layers.{LAYERS}.{name}"


def modules_of(layer, loader):
    """(module, parts) of a layer that are quantized unless a list covers them."""
    yield f"self_attn.{loader.fused_qkv}", ["self_attn.q_a_proj", "self_attn.kv_a_proj_with_mqa"]
    for name in ["q_b_proj", "kv_b_proj", "o_proj"]:
        yield f"self_attn.{name}", []
    if CONFIG["indexer_types"][layer : layer + 1] != ["shared"]:
        yield "self_attn.indexer.wq_b", []
    prefix = "mlp." if layer < DENSE else "mlp.shared_experts."
    yield prefix + "gate_up_proj", [prefix + "gate_proj", prefix + "up_proj"]
    yield prefix + "down_proj", []
    if layer >= DENSE:
        yield "mlp.experts", []
    if layer == LAYERS:
        yield "eh_proj", []


def expected(loader, exclude):
    """Names that a list lacks, as the file has them, and whether it covers a part of a module."""
    lacks, conflict = set(), False
    fused = {
        "gate_up_proj": ["gate_proj", "up_proj"],
        loader.fused_qkv: ["q_a_proj", "kv_a_proj_with_mqa"],
    }
    for layer in range(LAYERS + 1):
        entries = loader.draft_list(exclude) if layer == LAYERS else exclude
        for name, parts in modules_of(layer, loader):
            full = f"model.layers.{layer}.{name}" if layer < LAYERS else loader.draft(name)
            if full is None:
                continue
            try:
                if not loader.ignores(full, entries, fused, name == "mlp.experts"):
                    lacks |= {f"model.layers.{layer}.{part}" for part in parts or [name]}
            except ValueError:
                conflict = True
    return lacks, conflict


def random_list(rng, names):
    """Names of modules, of what is around and inside them, and expressions, right and not."""

    def entry():
        name = rng.choice(names)
        kind = rng.randrange(12)
        if kind < 5:
            return name
        if kind == 5:
            return name.rsplit(".", 1)[0]
        if kind == 6:
            return rng.choice(["language_model.", "model."]) + name
        if kind == 7:
            return name.replace(f"model.layers.{LAYERS}", "model.decoder")
        if kind == 8:
            return "re:" + re.sub(r"\d+", r"\\d+", name.replace(".", r"\."))
        if kind == 9:
            return "re:.*" + name.split(".")[-1] + rng.choice(["", "$", ".*"])
        if kind == 10:
            return "re:" + name[: rng.randrange(len(name))].rstrip("\\.")
        return "*" + name.split(".")[-1]

    return [entry() for _ in range(rng.choice([0, 1, 3, 10, 40, 150]))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ingot", type=pathlib.Path)
    parser.add_argument("loader", choices=["sglang", "vllm"])
    parser.add_argument("wheel", type=pathlib.Path)
    parser.add_argument("--lists", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    loader = {"sglang": Sglang, "vllm": Vllm}[options.loader](options.wheel)
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as scratch:
        model = pathlib.Path(scratch) / "model"
        source = pathlib.Path(scratch) / "source.json"
        source.write_text(json.dumps(CONFIG))
        run = [options.ingot, "synth", model, "--config", source, "--dtype", "bf16"]
        subprocess.run(run, check=True, capture_output=True)
        header = (model / "model.safetensors").read_bytes()
        size = int.from_bytes(header[:8], "little")
        names = [name.removesuffix(".weight") for name in json.loads(header[8 : 8 + size])]
        num_lacking = num_conflicts = 0
        for number in range(options.lists):
            exclude = random_list(rng, names)
            document = {**CONFIG, "quantization_config": {**QUARK, "exclude": exclude}}
            (model / "config.json").write_text(json.dumps(document))
            run = [options.ingot, "inspect", model, "--for", options.loader, "--json"]
            out = subprocess.run(run, capture_output=True, text=True)
            report = json.loads(out.stdout)["loader"]
            found = set(report["exclude_to_add"])
            # Runtime names of the draft, where Ingot suggests them, are not used for this family.
            refuses = any(f["code"] == "loader_refuses" for f in report["findings"])
            lacks, conflict = expected(loader, exclude)
            num_lacking += len(lacks)
            num_conflicts += conflict
            if found != lacks or refuses != conflict:
                print(f"list {number}: {json.dumps(exclude)}")
                print(f"  only Ingot misses {sorted(found - lacks)}")
                print(f"  only {options.loader} misses {sorted(lacks - found)}")
                print(f"  refused: Ingot {refuses}, {options.loader} {conflict}")
                sys.exit(1)
    print(
        f"{options.lists} lists for {options.loader}, seed {options.seed}: the same modules "
        f"({num_lacking} names not covered, {num_conflicts} lists refused)"
    )


if __name__ == "__main__":
    main()
