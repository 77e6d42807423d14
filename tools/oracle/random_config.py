"""Random valid glm_moe_dsa configs: every variation of shape, sharing and spelling, kept small."""
import glm_oracle


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
    groups = int(g.choice([1, 1, 2, 4]))
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


def random_config(g, indexer_rope_interleave=None):
    """g: numpy Generator.  indexer_rope_interleave: drawn unless given."""
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
    theta = float(g.choice([500.0, 10000.0, 1000000.0, 8000000.0]))
    if g.random() < 0.5:
        del config["rope_parameters"]
        config.update(rope_theta=theta, rope_scaling=None)
    else:
        config["rope_parameters"] = dict(rope_theta=theta, rope_type="default")
    config["rms_norm_eps"] = float(g.choice([1e-5, 1e-6]))
    if indexer_rope_interleave is None:
        indexer_rope_interleave = bool(g.random() < 0.8)
    config["indexer_rope_interleave"] = indexer_rope_interleave
    if indexer_rope_interleave and g.random() < 0.3:
        del config["indexer_rope_interleave"]
    config["eos_token_id"] = [config["vocab_size"] - 1]
    return config


def describe(config):
    """One line that tells cases apart."""
    c = config
    types = "".join(kind[0] for kind in glm_oracle.indexer_types(c))
    return (f"h{c['hidden_size']} heads{c['num_attention_heads']} q{c['q_lora_rank']} "
            f"kv{c['kv_lora_rank']} {c['qk_nope_head_dim']}+{c['qk_rope_head_dim']}"
            f"/{c['v_head_dim']} index{c['index_n_heads']}x{c['index_head_dim']}"
            f" top{c['index_topk']} {types} dense{c['first_k_dense_replace']} "
            f"moe{c['num_experts_per_tok']}/{c['n_routed_experts']}"
            f" groups{c['topk_group']}/{c['n_group']}"
            f" shared{c['n_shared_experts']} mtp{c['num_nextn_predict_layers']}")
