"""Writes a trained run as a checkpoint in the published format.

    python train/export.py RUN_DIR MODEL_DIR

The weights are bfloat16, the routers' correction biases float32, as in the published files. Also
writes the held-out items to MODEL_DIR/tasks/NAME.jsonl, and an example of a request.
"""
import json
import shutil
import struct
import sys
from pathlib import Path

import torch

from config import BATCH, MODEL, NUM_HELD_OUT, STOP_IDS, published
from model import Glm, Mlp
from tasks import held_out_items

TEXT_FILES = ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja"]
DTYPES = {torch.bfloat16: "BF16", torch.float32: "F32"}


def _mlp(prefix, gate_up, down):
    gate, up = gate_up.chunk(2)
    return {f"{prefix}gate_proj.weight": gate, f"{prefix}up_proj.weight": up,
            f"{prefix}down_proj.weight": down}


def _layer(prefix, layer):
    attention, mlp = layer.self_attn, layer.mlp
    tensors = {f"{prefix}{name}.weight": getattr(layer, name).weight
               for name in ("input_layernorm", "post_attention_layernorm")}
    a = prefix + "self_attn."
    for name in ("q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj", "o_proj"):
        tensors[f"{a}{name}.weight"] = getattr(attention, name)
    for name in ("q_a_layernorm", "kv_a_layernorm"):
        tensors[f"{a}{name}.weight"] = getattr(attention, name).weight
    if attention.indexer is not None:
        for name in ("wq_b", "wk", "weights_proj"):
            tensors[f"{a}indexer.{name}.weight"] = getattr(attention.indexer, name)
        tensors[f"{a}indexer.k_norm.weight"] = attention.indexer.k_norm_weight
        tensors[f"{a}indexer.k_norm.bias"] = attention.indexer.k_norm_bias
    m = prefix + "mlp."
    if isinstance(mlp, Mlp):
        return tensors | _mlp(m, mlp.gate_up_proj, mlp.down_proj)
    tensors[f"{m}gate.weight"] = mlp.gate
    tensors[f"{m}gate.e_score_correction_bias"] = mlp.correction_bias
    for e, (gate_up, down) in enumerate(zip(mlp.gate_up_proj, mlp.down_proj)):
        tensors |= _mlp(f"{m}experts.{e}.", gate_up, down)
    shared = mlp.shared_experts
    return tensors | _mlp(f"{m}shared_experts.", shared.gate_up_proj, shared.down_proj)


def named_tensors(model):
    """Every tensor under its published name."""
    tensors = {"model.embed_tokens.weight": model.embed_tokens}
    for i, layer in enumerate(model.layers):
        tensors |= _layer(f"model.layers.{i}.", layer)
    last = f"model.layers.{len(model.layers)}."
    tensors |= {f"{last}enorm.weight": model.mtp.enorm.weight,
                f"{last}hnorm.weight": model.mtp.hnorm.weight,
                f"{last}eh_proj.weight": model.mtp.eh_proj}
    tensors |= _layer(last, model.mtp.layer)
    tensors |= {f"{last}shared_head.norm.weight": model.mtp.norm.weight,
                "model.norm.weight": model.norm.weight, "lm_head.weight": model.lm_head}
    return {name: tensor.detach() for name, tensor in tensors.items()}


@torch.no_grad()
def round_weights(model, dtype):
    """Rounds every weight that is stored as `dtype`, so that the model here is the exported one."""
    for name, tensor in named_tensors(model).items():
        if not name.endswith("e_score_correction_bias"):
            tensor.copy_(tensor.to(dtype))


def write_safetensors(path, tensors):
    header, offset = {}, 0
    for name, tensor in tensors.items():
        size = tensor.numel() * tensor.element_size()
        header[name] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps({"__metadata__": {"format": "pt"}} | header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            file.write(tensor.contiguous().view(torch.uint8).numpy().tobytes())


def write_checkpoint(model, directory, dtype=torch.bfloat16):
    """config.json and model.safetensors."""
    directory.mkdir(parents=True, exist_ok=True)
    config = published(model.config, str(dtype).removeprefix("torch."))
    (directory / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    tensors = {name: tensor if name.endswith("e_score_correction_bias") else tensor.to(dtype)
               for name, tensor in named_tensors(model).items()}
    write_safetensors(directory / "model.safetensors", tensors)


def load_run(run):
    """The model that a run has trained so far."""
    model = Glm(MODEL)
    model.load_state_dict(torch.load(run / "state.pt", weights_only=True)["model"])
    return model


def write_tasks(directory):
    directory.mkdir(parents=True, exist_ok=True)
    for name in BATCH:
        lines = [json.dumps(item.public()) + "\n" for item in held_out_items(name, NUM_HELD_OUT)]
        (directory / f"{name}.jsonl").write_text("".join(lines))


def write_example(directory):
    """A request for `ingot chat --messages`: the first held-out one that wants a tool call."""
    directory.mkdir(parents=True, exist_ok=True)
    item = next(item for item in held_out_items("tools", NUM_HELD_OUT)
                if isinstance(item.expected, dict))
    request = {key: value for key, value in item.public().items() if key != "expected"}
    (directory / "tool_call.json").write_text(json.dumps(request, indent=2) + "\n")


def main(run, out):
    write_checkpoint(load_run(run), out)
    generation = dict(do_sample=True, temperature=1.0, top_p=0.95, eos_token_id=STOP_IDS,
                      pad_token_id=STOP_IDS[0])
    (out / "generation_config.json").write_text(json.dumps(generation, indent=2) + "\n")
    for name in TEXT_FILES:
        shutil.copyfile(run / name, out / name)
    write_tasks(out / "tasks")
    write_example(out / "examples")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
