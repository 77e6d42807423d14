#!/usr/bin/env python3
"""Numpy oracle of the forward pass and the MTP chain of glm_moe_dsa, glm4_moe_lite, deepseek_v3
and deepseek_v32, float64: slow, plain, independent of the engine.

    glm_oracle.py selftest            naive == absorbed == incremental, index sharing, YaRN, gaps
    glm_oracle.py write DIR [SEED]    config.json, model.safetensors, logits.npy, expected.json

A config is the dictionary of a published config.json: `indexer_types`, `index_topk_pattern` or the
frequency rule, `rope_parameters` or a top-level `rope_theta` with `rope_scaling`.  Without
`index_topk` the model has no indexer and attention is dense.  The model keeps, for every position,
how near each discrete decision (index selection, expert choice) was to falling the other way:
an engine in float32 can be held to the same decisions only where that gap is larger than its error.

Not covered: several sequences at once, quantized weights.
"""
import json
import math
import os
import struct
import sys

import numpy as np

from rope import Rope

# ------------------------------------------------------------------------------- config and shapes


def tiny_config(**overrides):
    config = dict(
        model_type="glm_moe_dsa", architectures=["GlmMoeDsaForCausalLM"],
        vocab_size=96, hidden_size=48, intermediate_size=64, moe_intermediate_size=24,
        num_hidden_layers=7, num_nextn_predict_layers=1, first_k_dense_replace=2,
        num_attention_heads=4, num_key_value_heads=4, q_lora_rank=32, kv_lora_rank=20,
        qk_nope_head_dim=12, qk_rope_head_dim=8, v_head_dim=16,
        n_routed_experts=16, n_shared_experts=1, num_experts_per_tok=4, n_group=1, topk_group=1,
        norm_topk_prob=True, routed_scaling_factor=2.5, scoring_func="sigmoid",
        topk_method="noaux_tc", index_n_heads=16, index_head_dim=16, index_topk=6,
        index_topk_freq=4, index_skip_topk_offset=3, index_share_for_mtp_iteration=True,
        rope_interleave=True, indexer_rope_interleave=True,
        rope_parameters=dict(rope_theta=10000.0, rope_type="default"), rms_norm_eps=1e-5,
        tie_word_embeddings=False, max_position_embeddings=4096, hidden_act="silu",
        eos_token_id=[90, 91, 92])
    config.update(overrides)
    return config


def indexer_types(config):
    """'full', 'shared' or 'none' for each main layer; the explicit list wins, then the pattern."""
    if not config.get("index_topk"):
        return ["none"] * config["num_hidden_layers"]
    if config.get("indexer_types"):
        return list(config["indexer_types"])
    if config.get("index_topk_pattern"):
        return ["full" if letter == "F" else "shared" for letter in config["index_topk_pattern"]]
    frequency = max(int(config.get("index_topk_freq") or 1), 1)
    offset = config.get("index_skip_topk_offset")
    offset = 2 if offset is None else int(offset)
    if offset < 1:
        raise ValueError("index_skip_topk_offset must be at least 1")
    return ["full" if max(i - offset + 1, 0) % frequency == 0 else "shared"
            for i in range(config["num_hidden_layers"])]


def _attention_shapes(c, prefix, has_indexer):
    hidden, heads = c["hidden_size"], c["num_attention_heads"]
    nope, rope_dim, value = c["qk_nope_head_dim"], c["qk_rope_head_dim"], c["v_head_dim"]
    q_rank, kv_rank = c["q_lora_rank"], c["kv_lora_rank"]
    yield prefix + "q_a_proj.weight", (q_rank, hidden)
    yield prefix + "q_a_layernorm.weight", (q_rank,)
    yield prefix + "q_b_proj.weight", (heads * (nope + rope_dim), q_rank)
    yield prefix + "kv_a_proj_with_mqa.weight", (kv_rank + rope_dim, hidden)
    yield prefix + "kv_a_layernorm.weight", (kv_rank,)
    yield prefix + "kv_b_proj.weight", (heads * (nope + value), kv_rank)
    yield prefix + "o_proj.weight", (hidden, heads * value)
    if has_indexer:
        index_heads, index_dim = c["index_n_heads"], c["index_head_dim"]
        yield prefix + "indexer.wq_b.weight", (index_heads * index_dim, q_rank)
        yield prefix + "indexer.wk.weight", (index_dim, hidden)
        yield prefix + "indexer.k_norm.weight", (index_dim,)
        yield prefix + "indexer.k_norm.bias", (index_dim,)
        yield prefix + "indexer.weights_proj.weight", (index_heads, hidden)


def _mlp_shapes(prefix, hidden, intermediate):
    yield prefix + "gate_proj.weight", (intermediate, hidden)
    yield prefix + "up_proj.weight", (intermediate, hidden)
    yield prefix + "down_proj.weight", (hidden, intermediate)


def _ffn_shapes(c, prefix, dense):
    hidden = c["hidden_size"]
    if dense:
        yield from _mlp_shapes(prefix, hidden, c["intermediate_size"])
        return
    intermediate = c["moe_intermediate_size"]
    yield prefix + "gate.weight", (c["n_routed_experts"], hidden)
    yield prefix + "gate.e_score_correction_bias", (c["n_routed_experts"],)
    for e in range(c["n_routed_experts"]):
        yield from _mlp_shapes(f"{prefix}experts.{e}.", hidden, intermediate)
    yield from _mlp_shapes(prefix + "shared_experts.", hidden, intermediate * c["n_shared_experts"])


def shapes(c):
    """{tensor name: shape} of the checkpoint, the MTP layer without its duplicates included.

    The order is part of the contract: `random_weights` draws in it.
    """
    hidden, num_layers = c["hidden_size"], c["num_hidden_layers"]
    result = {"model.embed_tokens.weight": (c["vocab_size"], hidden),
              "model.norm.weight": (hidden,),
              "lm_head.weight": (c["vocab_size"], hidden)}
    types = indexer_types(c)
    for i in range(num_layers + c["num_nextn_predict_layers"]):
        prefix = f"model.layers.{i}."
        has_indexer = types[i] == "full" if i < num_layers else types[0] != "none"
        result[prefix + "input_layernorm.weight"] = (hidden,)
        result[prefix + "post_attention_layernorm.weight"] = (hidden,)
        result.update(_attention_shapes(c, prefix + "self_attn.", has_indexer))
        result.update(_ffn_shapes(c, prefix + "mlp.", i < c["first_k_dense_replace"]))
        if i >= num_layers:
            result[prefix + "enorm.weight"] = (hidden,)
            result[prefix + "hnorm.weight"] = (hidden,)
            result[prefix + "eh_proj.weight"] = (hidden, 2 * hidden)
            result[prefix + "shared_head.norm.weight"] = (hidden,)
    return result


def random_weights(config, seed=0, dtype=np.float64):
    """Weights from numpy's generator, every value exactly representable in float32."""
    generator = np.random.default_rng(seed)
    weights = {}
    for name, shape in shapes(config).items():
        if name.endswith("norm.weight"):
            x = 1.0 + 0.2 * generator.standard_normal(shape)
        elif name.endswith("bias"):
            x = 0.1 * generator.standard_normal(shape)
        else:
            x = generator.standard_normal(shape) * (1.2 / math.sqrt(shape[-1]))
        weights[name] = x.astype(np.float32).astype(dtype)
    return weights


# --------------------------------------------------------------------------------------- primitives


def rms(x, weight, eps):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight


def layernorm(x, weight, bias, eps):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) / np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + eps) * weight + bias


def silu(x):
    return x / (1.0 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def boundary_gap(sorted_descending, k):
    """Distance between the k-th and the next value of each row; infinite where nothing is left."""
    if sorted_descending.shape[-1] <= k:
        return np.full(sorted_descending.shape[:-1], np.inf)
    return sorted_descending[..., k - 1] - sorted_descending[..., k]


# -------------------------------------------------------------------------------------------- model


class Glm:
    """One sequence.  `forward` appends tokens to it; `draft` runs the MTP chain behind them.

    latent_eps: epsilon of q_a_layernorm and kv_a_layernorm, rms_norm_eps unless given.
    index_gap, router_gap: {position: smallest gap of any main layer};
    draft_index_gap, draft_router_gap: the same of the MTP layer, argmax_gap of each drafted token.
    draft_hidden: what each pass of `draft` made of its rows, after shared_head.norm.
    """

    def __init__(self, config, weights, absorbed=True, latent_eps=None, k_norm_eps=1e-6):
        self.c, self.w, self.absorbed = config, weights, absorbed
        self.eps = config["rms_norm_eps"]
        self.latent_eps = self.eps if latent_eps is None else latent_eps
        self.k_norm_eps = k_norm_eps
        self.types = indexer_types(config)
        self.rope = Rope(config)
        num_caches = config["num_hidden_layers"] + config["num_nextn_predict_layers"]
        latent_dim = config["kv_lora_rank"] + config["qk_rope_head_dim"]
        self.latents = [np.zeros((0, latent_dim)) for _ in range(num_caches)]
        self.index_keys = [np.zeros((0, config.get("index_head_dim") or 0))
                           for _ in range(num_caches)]
        self.selected = {}      # layer -> per token of the last call: sorted cache rows
        self.index_gap, self.router_gap = {}, {}
        self.draft_index_gap, self.draft_router_gap, self.argmax_gap = {}, {}, []
        self.draft_hidden = []

    def _note_gap(self, kind, layer, positions, gaps):
        main = layer < self.c["num_hidden_layers"]
        table = getattr(self, f"{kind}_gap" if main else f"draft_{kind}_gap")
        for position, gap in zip(positions, gaps):
            table[int(position)] = min(table.get(int(position), np.inf), float(gap))

    def index_topk(self, i, x, qr, positions):
        """x: normed layer input [T, hidden]; qr: normed q latent [T, q_lora_rank].

        Appends the index keys of x and returns, per token, the sorted selected cache rows.
        """
        c, w, prefix = self.c, self.w, f"model.layers.{i}.self_attn.indexer."
        heads, d, r = c["index_n_heads"], c["index_head_dim"], c["qk_rope_head_dim"]
        interleave = c.get("indexer_rope_interleave", c.get("model_type") == "glm_moe_dsa")
        q = (qr @ w[prefix + "wq_b.weight"].T).reshape(-1, heads, d).copy()
        k = layernorm(x @ w[prefix + "wk.weight"].T, w[prefix + "k_norm.weight"],
                      w[prefix + "k_norm.bias"], self.k_norm_eps)
        # The indexer rotates the FIRST r values; the attention below rotates the LAST r.
        q[..., :r] = self.rope.rotate(q[..., :r], positions[:, None], interleave)
        k[..., :r] = self.rope.rotate(k[..., :r], positions, interleave)
        self.index_keys[i] = np.concatenate([self.index_keys[i], k])
        head_weight = (x @ w[prefix + "weights_proj.weight"].T) * heads ** -0.5 * d ** -0.5
        relu = np.maximum(np.einsum("thd,sd->ths", q, self.index_keys[i]), 0.0)
        score = np.einsum("ths,th->ts", relu, head_weight)
        selected, gaps = [], []
        base = len(self.index_keys[i]) - len(x)
        for t in range(len(x)):
            causal = score[t, :base + t + 1]
            count = min(c["index_topk"], len(causal))
            order = np.argsort(-causal, kind="stable")
            selected.append(np.sort(order[:count]))
            gaps.append(boundary_gap(causal[order], count))
        self._note_gap("index", i, positions, gaps)
        return selected

    def _select(self, i, x, qr, positions, inherited):
        if self.types[0] == "none":     # dense: everything up to the token itself
            base = len(self.latents[i]) - len(x)
            return [np.arange(base + t + 1) for t in range(len(x))]
        if i >= self.c["num_hidden_layers"]:
            run = inherited is None
        else:
            run = self.types[i] == "full"
        return self.index_topk(i, x, qr, positions) if run else inherited

    def attention(self, i, x, positions, inherited):
        """Returns (output [T, hidden], the selection of every token)."""
        c, w, prefix = self.c, self.w, f"model.layers.{i}.self_attn."
        heads, nope, r = c["num_attention_heads"], c["qk_nope_head_dim"], c["qk_rope_head_dim"]
        value, rank = c["v_head_dim"], c["kv_lora_rank"]
        interleave = c.get("rope_interleave", True)
        qr = rms(x @ w[prefix + "q_a_proj.weight"].T, w[prefix + "q_a_layernorm.weight"],
                 self.latent_eps)
        q = (qr @ w[prefix + "q_b_proj.weight"].T).reshape(-1, heads, nope + r)
        q_nope = q[..., :nope]
        q_rope = self.rope.rotate(q[..., nope:], positions[:, None], interleave)
        kv = x @ w[prefix + "kv_a_proj_with_mqa.weight"].T
        latent = rms(kv[:, :rank], w[prefix + "kv_a_layernorm.weight"], self.latent_eps)
        k_rope = self.rope.rotate(kv[:, rank:], positions, interleave)
        self.latents[i] = np.concatenate([self.latents[i], np.concatenate([latent, k_rope], -1)])
        selected = self._select(i, x, qr, positions, inherited)
        kv_b = w[prefix + "kv_b_proj.weight"].reshape(heads, nope + value, rank)
        w_key, w_value = kv_b[:, :nope], kv_b[:, nope:]
        scale = (nope + r) ** -0.5 * self.rope.softmax_factor
        out = np.zeros((len(x), heads, value))
        for t in range(len(x)):
            rows = self.latents[i][selected[t]]
            if self.absorbed:
                q_latent = np.einsum("hd,hdc->hc", q_nope[t], w_key)
                p = softmax((q_latent @ rows[:, :rank].T + q_rope[t] @ rows[:, rank:].T) * scale)
                out[t] = np.einsum("hc,hdc->hd", p @ rows[:, :rank], w_value)
            else:
                keys = np.einsum("sc,hdc->hsd", rows[:, :rank], w_key)
                values = np.einsum("sc,hdc->hsd", rows[:, :rank], w_value)
                p = softmax((np.einsum("hd,hsd->hs", q_nope[t], keys)
                             + q_rope[t] @ rows[:, rank:].T) * scale)
                out[t] = np.einsum("hs,hsd->hd", p, values)
        return out.reshape(len(x), -1) @ w[prefix + "o_proj.weight"].T, selected

    def mlp(self, prefix, x):
        w = self.w
        gate = silu(x @ w[prefix + "gate_proj.weight"].T)
        return (gate * (x @ w[prefix + "up_proj.weight"].T)) @ w[prefix + "down_proj.weight"].T

    def route(self, i, x, positions):
        """Returns (expert ids [T, k] by falling choice score, weights [T, k])."""
        c, w, prefix = self.c, self.w, f"model.layers.{i}.mlp.gate."
        score = 1.0 / (1.0 + np.exp(-(x @ w[prefix + "weight"].T)))
        choice = score + w[prefix + "e_score_correction_bias"]
        groups, experts, k = c["n_group"], c["n_routed_experts"], c["num_experts_per_tok"]
        if groups > 1:
            group_score = np.sort(choice.reshape(-1, groups, experts // groups), -1)
            group_score = group_score[..., -2:].sum(-1)
            order = np.argsort(-group_score, -1, kind="stable")
            self._note_gap("router", i, positions, boundary_gap(
                np.take_along_axis(group_score, order, -1), c["topk_group"]))
            keep = np.zeros_like(group_score, bool)
            np.put_along_axis(keep, order[:, :c["topk_group"]], True, -1)
            choice = np.where(np.repeat(keep, experts // groups, -1), choice, -np.inf)
        order = np.argsort(-choice, -1, kind="stable")
        self._note_gap("router", i, positions,
                       boundary_gap(np.take_along_axis(choice, order, -1), k))
        chosen = order[:, :k]
        weight = np.take_along_axis(score, chosen, -1)
        if c["norm_topk_prob"]:
            weight = weight / (weight.sum(-1, keepdims=True) + 1e-20)
        return chosen, weight * c["routed_scaling_factor"]

    def ffn(self, i, x, positions):
        prefix = f"model.layers.{i}.mlp."
        if i < self.c["first_k_dense_replace"]:
            return self.mlp(prefix, x)
        chosen, weight = self.route(i, x, positions)
        y = self.mlp(prefix + "shared_experts.", x)
        for t in range(len(x)):
            for e, a in zip(chosen[t], weight[t]):
                y[t] += a * self.mlp(f"{prefix}experts.{e}.", x[t:t + 1])[0]
        return y

    def layer(self, i, h, positions, inherited):
        w, prefix = self.w, f"model.layers.{i}."
        a, selected = self.attention(i, rms(h, w[prefix + "input_layernorm.weight"], self.eps),
                                     positions, inherited)
        h = h + a
        normed = rms(h, w[prefix + "post_attention_layernorm.weight"], self.eps)
        return h + self.ffn(i, normed, positions), selected

    def forward(self, ids):
        """Appends ids to the sequence; returns (hidden after model.norm, logits)."""
        start = len(self.latents[0])
        positions = np.arange(start, start + len(ids))
        h, selected = self.w["model.embed_tokens.weight"][np.asarray(ids)], None
        for i in range(self.c["num_hidden_layers"]):
            h, selected = self.layer(i, h, positions, selected)
            self.selected[i] = selected
        h = rms(h, self.w["model.norm.weight"], self.eps)
        return h, h @ self.w["lm_head.weight"].T

    def mtp(self, ids, hidden, positions, inherited=None):
        """One MTP step: ids are the NEXT tokens of rows whose post-norm hidden state is given."""
        i, w = self.c["num_hidden_layers"], self.w
        prefix = f"model.layers.{i}."
        e = rms(w["model.embed_tokens.weight"][np.asarray(ids)], w[prefix + "enorm.weight"],
                self.eps)
        x = np.concatenate([e, rms(hidden, w[prefix + "hnorm.weight"], self.eps)], -1)
        x = x @ w[prefix + "eh_proj.weight"].T
        y, selected = self.layer(i, x, np.asarray(positions), inherited)
        y = rms(y, w[prefix + "shared_head.norm.weight"], self.eps)
        return y, y @ w["lm_head.weight"].T, selected

    def _argmax(self, logits):
        self.argmax_gap.append(float(boundary_gap(np.sort(logits)[::-1], 1)))
        return int(logits.argmax())

    def draft(self, next_ids, hidden, positions, count):
        """next_ids[t] is the token at positions[t] + 1; drafts `count` tokens behind the last."""
        y, logits, selected = self.mtp(next_ids, hidden, positions)
        self.selected[self.c["num_hidden_layers"]] = selected
        out, self.draft_hidden = [self._argmax(logits[-1])], [y]
        shared = [selected[-1]] if self.c.get("index_share_for_mtp_iteration") else None
        for k in range(1, count):
            y, logits, _ = self.mtp([out[-1]], y[-1:], [positions[-1] + k], shared)
            self.draft_hidden.append(y)
            out.append(self._argmax(logits[-1]))
        return out


# -------------------------------------------------------------------------------------------- files


def write_safetensors(path, weights, bf16_names=frozenset()):
    """F32 tensors; those in bf16_names are uint16 arrays of bf16 bits and are stored as BF16."""
    header, offset = {}, 0
    for name, x in weights.items():
        bf16 = name in bf16_names
        size = x.size * (2 if bf16 else 4)
        header[name] = {"dtype": "BF16" if bf16 else "F32", "shape": list(x.shape),
                        "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)))
        f.write(text)
        for name, x in weights.items():
            f.write(np.ascontiguousarray(x, "<u2" if name in bf16_names else "<f4").tobytes())


def write_checkpoint(directory, config, weights):
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, "config.json"), "w") as f:
        json.dump(config, f, indent=1)
        f.write("\n")
    write_safetensors(os.path.join(directory, "model.safetensors"), weights)


def write_sample(directory, config, seed, num_tokens=24):
    """A checkpoint with what it must produce; returns the model, for its gaps."""
    weights = random_weights(config, seed)
    write_checkpoint(directory, dict(config, indexer_types=indexer_types(config)), weights)
    low = min(config["eos_token_id"])
    ids = [int(x) for x in np.random.default_rng(seed + 1).integers(0, low, num_tokens)]
    model = Glm(config, weights)
    hidden, logits = model.forward(ids)
    topk = {str(layer): [list(map(int, row)) for row in rows]
            for layer, rows in model.selected.items()}
    next_id = int(logits[-1].argmax())
    draft = model.draft(ids[1:] + [next_id], hidden, list(range(len(ids))), 4)
    np.save(os.path.join(directory, "logits.npy"), logits.astype(np.float32))
    with open(os.path.join(directory, "expected.json"), "w") as f:
        json.dump(dict(ids=ids, next=next_id, mtp_draft=draft, topk=topk), f)
        f.write("\n")
    return model


def selftest():
    config = tiny_config()
    weights = random_weights(config, 0)
    ids = [int(x) for x in np.random.default_rng(1).integers(0, 90, 24)]
    absorbed = Glm(config, weights).forward(ids)[1]
    naive = Glm(config, weights, absorbed=False).forward(ids)[1]
    model = Glm(config, weights)
    steps = np.concatenate([model.forward(ids[:9])[1]] + [model.forward([t])[1] for t in ids[9:]])
    dense = Glm(dict(config, index_topk=64), weights).forward(ids)[1]
    no_indexer = Glm(dict(config, index_topk=None), weights).forward(ids)[1]
    yarn_config = dict(config, rope_parameters=dict(
        rope_theta=10000.0, rope_type="yarn", factor=4.0, original_max_position_embeddings=16,
        mscale=1.0, mscale_all_dim=0.5))
    yarn = Glm(yarn_config, weights).forward(ids)[1]
    yarn_naive = Glm(yarn_config, weights, absorbed=False).forward(ids)[1]
    print("|logit|", abs(absorbed).max())
    differences = {"naive vs absorbed": abs(absorbed - naive).max(),
                   "prefill vs incremental": abs(absorbed - steps).max(),
                   "first 6 rows vs dense": abs(absorbed[:6] - dense[:6]).max(),
                   "all selected vs no indexer": abs(dense - no_indexer).max(),
                   "YaRN, naive vs absorbed": abs(yarn - yarn_naive).max()}
    for name, difference in differences.items():
        print(f"{name}: {difference:.1e}")
    print("later rows vs dense (must differ):", abs(absorbed[6:] - dense[6:]).max())
    glm_5_2 = dict(num_hidden_layers=78, index_topk=2048, index_topk_freq=4,
                   index_skip_topk_offset=3)
    full = [i for i, kind in enumerate(indexer_types(glm_5_2)) if kind == "full"]
    print("GLM-5.2 full layers:", full)
    print("with YaRN logits change by", abs(absorbed - yarn).max())
    deepseek = Rope(dict(qk_rope_head_dim=64, rope_theta=10000, rope_scaling=dict(
        type="yarn", factor=40, beta_fast=32, beta_slow=1, mscale=1.0, mscale_all_dim=1.0,
        original_max_position_embeddings=4096)))
    print("DeepSeek-V3: softmax factor", deepseek.softmax_factor, "magnitude", deepseek.magnitude)
    small_eps = Glm(config, weights, latent_eps=1e-6).forward(ids)[1]
    print("latent eps 1e-5 vs 1e-6 changes logits by", abs(absorbed - small_eps).max())
    print("smallest gaps: index", min(model.index_gap.values()), "router",
          min(model.router_gap.values()))
    good = max(differences.values()) < 1e-12 and full == [0, 1] + list(range(2, 78, 4))
    print("selftest", "passed" if good else "FAILED")
    return 0 if good else 1


def main():
    command = sys.argv[1] if len(sys.argv) > 1 else "selftest"
    if command == "selftest":
        return selftest()
    if command == "write" and len(sys.argv) > 2:
        write_sample(sys.argv[2], tiny_config(), int(sys.argv[3]) if len(sys.argv) > 3 else 0)
        print("wrote", sys.argv[2])
        return 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
