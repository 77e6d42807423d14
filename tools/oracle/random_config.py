"""Random valid configs: every variation of shape, sharing, rope and spelling, kept small."""
import numpy as np

import glm_oracle
from families import FAMILIES, WITH_INDEXER, WITH_YARN, published_config


def _dimensions(g):
    """Multiples of 4 that mostly are not powers of two; rope dimensions are even."""
    rope = 2 * int(g.integers(1, 9))
    heads = int(g.integers(1, 7))
    index_heads = int(g.integers(16, 36))
    return dict(
        vocab_size=int(g.integers(40, 140)), hidden_size=4 * int(g.integers(6, 25)),
        intermediate_size=4 * int(g.integers(4, 33)),
        moe_intermediate_size=4 * int(g.integers(2, 13)),
        num_attention_heads=heads, num_key_value_heads=heads,
        q_lora_rank=4 * int(g.integers(3, 17)), kv_lora_rank=4 * int(g.integers(3, 17)),
        qk_nope_head_dim=2 * int(g.integers(1, 17)), qk_rope_head_dim=rope,
        v_head_dim=2 * int(g.integers(2, 17)), index_n_heads=index_heads,
        index_head_dim=rope + 2 * int(g.integers(0, 9)), index_topk=int(g.integers(1, 25)))


def _routing(g):
    """Every group holds at least two experts, for a group's score is the sum of its best two."""
    groups = int(g.choice([1, 1, 2, 4, 8]))
    experts = groups * int(g.integers(2, 7))
    topk_group = int(g.integers(1, groups + 1))
    allowed = experts // groups * topk_group
    return dict(n_group=groups, topk_group=topk_group, n_routed_experts=experts,
                num_experts_per_tok=int(g.integers(1, min(allowed, 6) + 1)),
                n_shared_experts=int(g.integers(1, 4)), norm_topk_prob=bool(g.random() < 0.7),
                routed_scaling_factor=float(g.choice([1.0, 1.8, 2.5])))


def _sharing(g, num_layers):
    style = g.choice(["all full", "list", "pattern", "rule", "rule without offset"])
    if style == "all full":
        return {}
    if style in ("list", "pattern"):
        full = [True] + [bool(g.random() < 0.5) for _ in range(num_layers - 1)]
        if style == "list":
            return dict(indexer_types=["full" if f else "shared" for f in full])
        return dict(index_topk_pattern="".join("F" if f else "S" for f in full))
    keys = dict(index_topk_freq=int(g.integers(1, 5)), index_topk_pattern=None)
    if style == "rule":
        keys["index_skip_topk_offset"] = int(g.integers(1, 4))
    return keys


def _glm_rope(g):
    theta = float(g.choice([500.0, 10000.0, 1000000.0, 8000000.0]))
    if g.random() < 0.5:
        return dict(rope_theta=theta, rope_scaling=None)
    return dict(rope_parameters=dict(rope_theta=theta, rope_type="default"))


def _glm_moe_dsa_config(g, for_hf):
    num_layers = int(g.integers(1, 8))
    config = glm_oracle.tiny_config(**_dimensions(g), **_routing(g), num_hidden_layers=num_layers,
                                    num_nextn_predict_layers=int(g.random() < 0.7))
    for key in ("index_topk_freq", "index_skip_topk_offset", "index_share_for_mtp_iteration"):
        del config[key]
    config.update(_sharing(g, num_layers))
    config["first_k_dense_replace"] = int(g.integers(0, num_layers + 2))
    if g.random() < 0.5:
        num_dense = min(config["first_k_dense_replace"], num_layers)
        config["mlp_layer_types"] = ["dense"] * num_dense + ["sparse"] * (num_layers - num_dense)
    if g.random() < 0.5:
        config["index_share_for_mtp_iteration"] = bool(g.random() < 0.7)
    del config["rope_parameters"]
    config.update(_glm_rope(g))
    config["rms_norm_eps"] = float(g.choice([1e-5, 1e-6]))
    interleave = for_hf or bool(g.random() < 0.8)
    config["indexer_rope_interleave"] = interleave
    if interleave and g.random() < 0.3:
        del config["indexer_rope_interleave"]
    config["eos_token_id"] = [config["vocab_size"] - 1]
    return config


def _yarn(g):
    """Now and then with fewer tokens in the training than a sequence has."""
    mscale, mscale_all_dim = [(1.0, 1.0), (1.0, 1.0), (0.707, 0.707), (1.0, 0.7),
                              (None, None)][g.integers(5)]
    yarn = dict(factor=[1.0, 2.5, 4, 40][g.integers(4)],
                original_max_position_embeddings=[16, 64, 512, 4096][g.integers(4)])
    if g.random() < 0.7:
        yarn.update(beta_fast=int(g.choice([32, 8])), beta_slow=int(g.choice([1, 2])))
    if mscale is not None:
        yarn.update(mscale=mscale, mscale_all_dim=mscale_all_dim)
    return yarn


def _rope(g, family):
    theta = [10000, 500.0, 1000000][g.integers(3)]
    yarn = _yarn(g) if family in WITH_YARN and g.random() < 0.75 else None
    if g.random() < 0.7:
        return dict(rope_theta=theta, rope_scaling=yarn and dict(yarn, type="yarn"))
    kind = dict(rope_type="default") if yarn is None else dict(yarn, rope_type="yarn")
    return dict(rope_parameters=dict(kind, rope_theta=theta))


def _published_style_config(g, family, for_hf):
    """A published config.json with other numbers."""
    num_layers = int(g.integers(1, 6))
    config = published_config(family)
    config.update(_dimensions(g), **_routing(g), num_hidden_layers=num_layers,
                  num_nextn_predict_layers=int(g.random() < 0.7), max_position_embeddings=4096,
                  first_k_dense_replace=int(g.integers(0, num_layers + 2)),
                  rms_norm_eps=float(g.choice([1e-5, 1e-6])))
    for key in ("rope_theta", "rope_scaling", "partial_rotary_factor"):
        config.pop(key, None)
    config.update(_rope(g, family))
    last = config["vocab_size"] - 1
    if family == "glm4_moe_lite":
        config.update(pad_token_id=last, eos_token_id=[last - 1, last])
    if family not in WITH_INDEXER:
        for key in ("index_n_heads", "index_head_dim", "index_topk"):
            del config[key]
        if g.random() < 0.2:
            config["rope_interleave"] = False
        return config
    if g.random() < 0.5:
        config["index_share_for_mtp_iteration"] = bool(g.random() < 0.7)
    if not for_hf and g.random() < 0.3:
        config["indexer_rope_interleave"] = bool(g.random() < 0.5)
    return config


def generator(family, seed):
    """Its own stream a family, so that equal seeds do not draw equal shapes."""
    return np.random.default_rng([seed, FAMILIES.index(family)])


def random_config(g, family, for_hf=False):
    """g: numpy Generator.  for_hf: draws only what Hugging Face transformers computes as well."""
    if family == "glm_moe_dsa":
        return _glm_moe_dsa_config(g, for_hf)
    return _published_style_config(g, family, for_hf)


def describe(config):
    """One line that tells cases apart."""
    c = config
    types = "".join(kind[0] for kind in glm_oracle.indexer_types(c))
    index = (f"index{c['index_n_heads']}x{c['index_head_dim']} top{c['index_topk']} {types} "
             if c.get("index_topk") else "")
    yarn = {**(c.get("rope_scaling") or {}), **(c.get("rope_parameters") or {})}
    yarn_text = f" yarn{yarn['factor']}" if "factor" in yarn else ""
    return (f"{c['model_type']} h{c['hidden_size']} heads{c['num_attention_heads']} "
            f"q{c['q_lora_rank']} kv{c['kv_lora_rank']} {c['qk_nope_head_dim']}"
            f"+{c['qk_rope_head_dim']}/{c['v_head_dim']} {index}layers{c['num_hidden_layers']} "
            f"dense{c['first_k_dense_replace']} moe{c['num_experts_per_tok']}"
            f"/{c['n_routed_experts']} groups{c['topk_group']}/{c['n_group']} "
            f"shared{c['n_shared_experts']} mtp{c['num_nextn_predict_layers']}{yarn_text}")
