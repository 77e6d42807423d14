"""Every choice of the bundled model: its shape, its data mixture and how it is trained."""

SEED = 20_260_701

# The 36 markers of GLM's tokenizer, in the published order. The first 18 are "special".
ADDED_TOKENS = [
    "<|endoftext|>", "[MASK]", "[gMASK]", "[sMASK]", "<sop>", "<eop>",
    "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>",
    "<|begin_of_image|>", "<|end_of_image|>", "<|begin_of_video|>", "<|end_of_video|>",
    "<|begin_of_audio|>", "<|end_of_audio|>",
    "<|begin_of_transcription|>", "<|end_of_transcription|>",
    "<|code_prefix|>", "<|code_middle|>", "<|code_suffix|>",
    "<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>",
    "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", "/nothink",
    "<|begin_of_box|>", "<|end_of_box|>", "<|image|>", "<|video|>",
]
NUM_SPECIAL = 18
STOP_TOKENS = ["<|endoftext|>", "<|user|>", "<|observation|>"]

VOCAB_SIZE = 832        # 796 entries of byte-level BPE, then the markers
BPE_SIZE = VOCAB_SIZE - len(ADDED_TOKENS)
MARKER_IDS = {token: BPE_SIZE + i for i, token in enumerate(ADDED_TOKENS)}
STOP_IDS = [MARKER_IDS[token] for token in STOP_TOKENS]

CONTEXT_MAX = 512       # the longest item that is trained; index_topk, so nothing is left out

# config.json, without the keys that follow from others (see `published`).
MODEL = dict(
    vocab_size=VOCAB_SIZE,
    hidden_size=96,
    intermediate_size=256,
    moe_intermediate_size=32,
    num_hidden_layers=11,
    num_nextn_predict_layers=1,
    first_k_dense_replace=1,
    num_attention_heads=4,
    q_lora_rank=64,
    kv_lora_rank=64,
    qk_nope_head_dim=32,
    qk_rope_head_dim=32,
    v_head_dim=32,
    n_routed_experts=16,
    n_shared_experts=1,
    num_experts_per_tok=4,
    n_group=1,
    topk_group=1,
    norm_topk_prob=True,
    routed_scaling_factor=2.5,
    scoring_func="sigmoid",
    topk_method="noaux_tc",
    index_n_heads=16,
    index_head_dim=32,
    index_topk=CONTEXT_MAX,
    index_topk_freq=4,
    index_skip_topk_offset=3,
    index_share_for_mtp_iteration=True,
    rope_parameters=dict(rope_theta=10000.0, rope_type="default"),
    rms_norm_eps=1e-5,
    max_position_embeddings=32768,
)

# One optimizer step sees this many dialogs of each task, so its mixture never varies.
BATCH = dict(arithmetic=10, choice=8, tools=6, chat=2)

TRAIN = dict(
    muon_lr=0.02,               # matrices inside the layers
    adam_lr=0.004,              # embedding, head, routers, norms
    weight_decay=0.05,
    warmup=0.02,                # shares of the run
    drop_at=0.35,               # from here on the rates are `drop_to` of these: sums of two digits
    drop_to=0.35,               # were learned only once steps were small
    decay=0.35,
    prompt_rows=0.10,           # share of the prompt tokens that are also learned
    mtp_weights=(0.3, 0.25, 0.2),
    bias_rate=2e-3,             # of the router's correction bias, towards an even load
    clip=1.0,
)

NUM_DRAFTS = 3
NUM_HELD_OUT = 200              # items a task


def indexer_types(model):
    """Layer i selects for itself ("full") or reuses the selection of the last full layer."""
    frequency, offset = model["index_topk_freq"], model["index_skip_topk_offset"]
    return ["full" if max(i - offset + 1, 0) % frequency == 0 else "shared"
            for i in range(model["num_hidden_layers"])]


def published(model, dtype="bfloat16"):
    """`model` as the config.json of a checkpoint."""
    layers, dense = model["num_hidden_layers"], model["first_k_dense_replace"]
    return dict(
        architectures=["GlmMoeDsaForCausalLM"],
        model_type="glm_moe_dsa",
        dtype=dtype,
        **model,
        num_key_value_heads=model["num_attention_heads"],
        qk_head_dim=model["qk_nope_head_dim"] + model["qk_rope_head_dim"],
        head_dim=model["qk_rope_head_dim"],
        moe_layer_freq=1,
        mlp_layer_types=["dense"] * dense + ["sparse"] * (layers - dense),
        indexer_types=indexer_types(model),
        index_topk_pattern=None,
        rope_interleave=True,
        indexer_rope_interleave=True,
        hidden_act="silu",
        attention_bias=False,
        attention_dropout=0.0,
        tie_word_embeddings=False,
        eos_token_id=STOP_IDS,
        pad_token_id=STOP_IDS[0],
        use_cache=True,
    )
