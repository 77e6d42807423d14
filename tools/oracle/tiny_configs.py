"""The small configs that golden files and checks use: one for each way to be unlike.

Each is what a published config.json could hold, in the newer or the older spelling of its keys;
those of the families after glm_moe_dsa are the published files with other numbers in them.
All that have an indexer have at least 16 index heads: with few heads relu yields many scores of
exactly zero, and no reference defines the order of ties.
"""
import glm_oracle
from families import published_config

FULL_EVERYWHERE = ("index_topk_freq", "index_skip_topk_offset", "index_share_for_mtp_iteration")


def _config(drop=(), **overrides):
    config = glm_oracle.tiny_config(attention_bias=False, moe_layer_freq=1, **overrides)
    for key in drop:
        del config[key]
    return config


def _old_rope(theta):
    return dict(rope_theta=theta, rope_scaling=None)


def _layer_types(num_dense, num_layers):
    return ["dense"] * num_dense + ["sparse"] * (num_layers - num_dense)


def _glm_moe_dsa():
    return {
        # The oracle's own sample shape, sharing by explicit list as GLM-5.2 writes it.
        "tiny": _config(
            indexer_types=["full", "full", "full", "shared", "shared", "shared", "full"],
            mlp_layer_types=_layer_types(2, 7), index_topk_pattern=None),
        # Fifteen times more context than the indexer may select; sharing by the rule alone.
        "long_context": _config(
            vocab_size=64, hidden_size=64, q_lora_rank=40, kv_lora_rank=24, index_n_heads=32,
            index_head_dim=24, index_topk=16, num_hidden_layers=8, n_routed_experts=8,
            num_experts_per_tok=2, eos_token_id=[60, 61, 62],
            rope_parameters=dict(rope_theta=1000000, rope_type="default")),
        # Every dimension a multiple of 32, as block formats want them.
        "multiples_of_32": _config(
            drop=FULL_EVERYWHERE, vocab_size=128, hidden_size=64, intermediate_size=96,
            moe_intermediate_size=32, num_hidden_layers=4, num_attention_heads=2,
            num_key_value_heads=2, q_lora_rank=64, kv_lora_rank=32, qk_nope_head_dim=32,
            qk_rope_head_dim=32, v_head_dim=32, n_routed_experts=8, num_experts_per_tok=3,
            index_head_dim=32, index_topk=12, first_k_dense_replace=1,
            indexer_types=["full", "shared", "full", "shared"],
            index_share_for_mtp_iteration=True,
            rope_parameters=dict(rope_theta=8000000, rope_type="default")),
        # No dimension a power of two that need not be; an odd number of everything.
        "odd_dims": _config(
            vocab_size=51, hidden_size=40, intermediate_size=52, moe_intermediate_size=12,
            num_hidden_layers=5, num_attention_heads=3, num_key_value_heads=3, q_lora_rank=24,
            kv_lora_rank=20, qk_nope_head_dim=12, qk_rope_head_dim=4, v_head_dim=20,
            n_routed_experts=7, num_experts_per_tok=3, index_n_heads=17, index_head_dim=10,
            index_topk=7, first_k_dense_replace=3, index_topk_freq=3, index_skip_topk_offset=1,
            eos_token_id=[50]),
        # GLM-5.1: no sharing keys at all, and a head_dim that means nothing.
        "glm_5_1_style": _config(
            drop=FULL_EVERYWHERE + ("rope_parameters",), num_hidden_layers=4,
            n_routed_experts=12, head_dim=6, index_topk=9, **_old_rope(1000000.0)),
        # GLM-5.2 sharing as a pattern, which outranks the frequency that stands beside it.
        "pattern": _config(
            index_topk_pattern="FFFSSSFSS", index_topk_freq=1, num_hidden_layers=9,
            first_k_dense_replace=3, n_routed_experts=8, num_experts_per_tok=2,
            moe_intermediate_size=16, index_topk=8,
            rope_parameters=dict(rope_theta=8000000, rope_type="default")),
        # Group-limited routing, weights not normalized, two shared experts, MTP without sharing.
        "groups": _config(
            n_group=4, topk_group=2, norm_topk_prob=False, n_shared_experts=2,
            routed_scaling_factor=1.8, num_hidden_layers=5, index_topk_freq=2,
            index_skip_topk_offset=2, index_share_for_mtp_iteration=False, rms_norm_eps=1e-6,
            num_experts_per_tok=5, index_topk=10),
        # MoE from the first layer, one expert a token, no MTP layer, old keys, default offset.
        "no_dense_no_mtp": _config(
            drop=("rope_parameters", "index_skip_topk_offset", "index_share_for_mtp_iteration"),
            first_k_dense_replace=0, num_nextn_predict_layers=0, num_experts_per_tok=1,
            num_hidden_layers=6, n_routed_experts=5, index_topk_freq=3, index_topk=5,
            **_old_rope(500.0)),
        # More dense layers asked for than there are: the MTP layer is dense as well.
        "all_dense": _config(
            first_k_dense_replace=99, num_hidden_layers=3, intermediate_size=72, index_topk=11,
            index_topk_freq=2, index_skip_topk_offset=1),
        # The indexer rotates halves, as DeepSeek-V3.2's does.
        "half_split_indexer": _config(
            indexer_rope_interleave=False, num_hidden_layers=4, n_routed_experts=10,
            num_experts_per_tok=3, index_topk_freq=2, index_skip_topk_offset=2, index_topk=8),
    }


def _published(family, drop=(), **overrides):
    config = published_config(family)
    config.update(max_position_embeddings=4096, **overrides)
    config["num_key_value_heads"] = config["num_attention_heads"]
    for key in drop:
        del config[key]
    return config


def _glm4_moe_lite():
    small = dict(
        vocab_size=64, hidden_size=48, intermediate_size=80, moe_intermediate_size=20,
        num_hidden_layers=4, num_attention_heads=5, q_lora_rank=28, kv_lora_rank=20,
        qk_nope_head_dim=12, qk_rope_head_dim=8, v_head_dim=16, n_routed_experts=8,
        num_experts_per_tok=4, pad_token_id=60, eos_token_id=[60, 61, 62])
    return {
        "published_keys": _published("glm4_moe_lite", **small),
        # More than one dense layer; an odd number of everything.
        "three_dense_layers": _published("glm4_moe_lite", **dict(
            small, vocab_size=51, hidden_size=40, num_hidden_layers=5, first_k_dense_replace=3,
            num_attention_heads=3, kv_lora_rank=12, v_head_dim=20, n_routed_experts=7,
            num_experts_per_tok=3, n_shared_experts=2, eos_token_id=[50], pad_token_id=50)),
        # As a newer library saves it again: rope_parameters, a list of layer types; no MTP layer.
        "newer_keys": _published(
            "glm4_moe_lite", drop=("rope_theta", "rope_scaling", "partial_rotary_factor"),
            **dict(small, num_hidden_layers=3, first_k_dense_replace=2, num_experts_per_tok=1,
                   num_nextn_predict_layers=0, mlp_layer_types=_layer_types(2, 3),
                   rope_parameters=dict(rope_theta=1000000.0, rope_type="default"))),
    }


def _yarn(factor, length, mscale=1.0, mscale_all_dim=1.0):
    return dict(type="yarn", factor=factor, beta_fast=32, beta_slow=1, mscale=mscale,
                mscale_all_dim=mscale_all_dim, original_max_position_embeddings=length)


_SMALL_DEEPSEEK = dict(
    vocab_size=64, hidden_size=48, intermediate_size=72, moe_intermediate_size=12,
    num_hidden_layers=4, first_k_dense_replace=2, num_attention_heads=4, q_lora_rank=28,
    kv_lora_rank=20, qk_nope_head_dim=12, qk_rope_head_dim=16, v_head_dim=16, n_routed_experts=32)


def _deepseek_v3():
    return {
        # Eight groups of which four count, eight experts a token, YaRN with factor 40.
        "yarn_40": _published("deepseek_v3", **_SMALL_DEEPSEEK),
        # Beyond the length of the training, and cos and sin with a magnitude other than 1.
        "yarn_4": _published("deepseek_v3", **dict(
            _SMALL_DEEPSEEK, hidden_size=40, first_k_dense_replace=1, num_hidden_layers=3,
            num_attention_heads=3, qk_rope_head_dim=12, n_routed_experts=16, n_group=4,
            topk_group=3, num_experts_per_tok=5, norm_topk_prob=False,
            rope_scaling=_yarn(4, 32, mscale_all_dim=0.7))),
        # No YaRN; every layer is dense, the MTP layer too.
        "plain_rope": _published("deepseek_v3", **dict(
            _SMALL_DEEPSEEK, num_hidden_layers=2, first_k_dense_replace=3, rope_scaling=None)),
    }


def _deepseek_v32():
    small = dict(_SMALL_DEEPSEEK, index_n_heads=16, index_head_dim=24, index_topk=10)
    return {
        "yarn_40": _published("deepseek_v32", **small),
        # The MTP layer selects once for all drafts; the sequence leaves the length of the training.
        "yarn_4": _published("deepseek_v32", **dict(
            small, hidden_size=40, num_hidden_layers=3, first_k_dense_replace=1, n_group=4,
            topk_group=2, n_routed_experts=16, num_experts_per_tok=3, index_n_heads=20,
            qk_rope_head_dim=12, index_head_dim=12, index_share_for_mtp_iteration=True,
            rope_scaling=_yarn(4, 24, mscale_all_dim=0.7))),
        # Every dimension a multiple of 32; two sequences that may select everything.
        "multiples_of_32": _published("deepseek_v32", **dict(
            small, hidden_size=64, intermediate_size=96, moe_intermediate_size=32,
            num_hidden_layers=3, num_attention_heads=2, q_lora_rank=64, kv_lora_rank=32,
            qk_nope_head_dim=32, qk_rope_head_dim=32, v_head_dim=32, n_routed_experts=16,
            num_experts_per_tok=4, index_n_heads=16, index_head_dim=64, index_topk=20)),
    }


def tiny_configs(family):
    """{name: config}"""
    return {"glm_moe_dsa": _glm_moe_dsa, "glm4_moe_lite": _glm4_moe_lite,
            "deepseek_v3": _deepseek_v3, "deepseek_v32": _deepseek_v32}[family]()
