"""Checkpoints run by Hugging Face transformers: logits, and the MTP chain of its layers.

In float32 as the library does it, or after `use_float64` in float64 throughout.

What transformers 5.24 does otherwise than the oracle, and what is done about it here:
  q_a_layernorm and kv_a_layernorm take epsilon 1e-6 whatever rms_norm_eps says: patched.
  glm4_moe_lite ignores first_k_dense_replace: its copy of the config gets mlp_layer_types.
  The MTP layer is left out, but for `MtpModel`, which knows deepseek_v3 alone: `MtpChain` loads it
  as one decoder layer more, and runs that inside the library's own MTP step, `MtpLayer`.
"""
import importlib
import json
from pathlib import Path

import safetensors.torch
import torch
import transformers
from transformers.cache_utils import MtpCache
from transformers.masking_utils import create_causal_mask
from transformers.modeling_layers import MtpLayer, MtpModel

import glm_oracle
from families import FAMILIES

_dtype = torch.float32

HAVE_MLP_LAYER_TYPES = ("glm_moe_dsa", "glm4_moe_lite", "deepseek_v32")


class _TorchInFloat64:
    float = float32 = torch.float64

    def __getattr__(self, name):
        return getattr(torch, name)


def use_float64():
    """Turns the library's casts to float32 (norms, rope, router, indexer, softmax) into casts to
    float64, in this process from here on."""
    modules = [f"transformers.models.{family}.modeling_{family}" for family in FAMILIES]
    for name in ["transformers.modeling_rope_utils", *modules]:
        importlib.import_module(name).torch = _TorchInFloat64()
    torch.Tensor.float = torch.Tensor.double
    global _dtype
    _dtype = torch.float64


def quiet():
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()      # it reports at length that MTP is not loaded
    transformers.logging.disable_progress_bar()


def _read_config(directory):
    return json.loads((Path(directory) / "config.json").read_text())


def _with_mlp_layer_types(config):
    layers = config["num_hidden_layers"]
    dense = min(config["first_k_dense_replace"], layers)
    return dict(config, mlp_layer_types=["dense"] * dense + ["sparse"] * (layers - dense))


def _with_mtp_as_a_layer(config):
    types = glm_oracle.indexer_types(config)
    config = dict(config, num_hidden_layers=config["num_hidden_layers"] + 1)
    if config["model_type"] in HAVE_MLP_LAYER_TYPES:
        config = _with_mlp_layer_types(config)
    if config["model_type"] == "glm_moe_dsa":
        config["indexer_types"] = types + ["full"]
    return config


def _load(directory, config):
    model = transformers.AutoModelForCausalLM.from_pretrained(
        directory, config=transformers.AutoConfig.for_model(**config), dtype=torch.float32,
        attn_implementation="eager", experts_implementation="eager")
    _patch_latent_eps(model, config)
    return model.to(_dtype).eval()


def _patch_latent_eps(model, config):
    for name, module in model.named_modules():
        if name.endswith(("q_a_layernorm", "kv_a_layernorm")):
            module.variance_epsilon = config["rms_norm_eps"]


def load(directory):
    config = _read_config(directory)
    if config["model_type"] == "glm4_moe_lite":
        config = _with_mlp_layer_types(config)
    return _load(directory, config)


@torch.no_grad()
def logits(directory, ids):
    model = load(directory)
    return model(input_ids=torch.tensor([ids]), use_cache=False).logits[0].numpy()


class _Selection(torch.nn.Module):
    """An indexer that, once `fix` was called, gives the rows behind the last one of that call this
    row's selection, as index_share_for_mtp_iteration asks."""

    def __init__(self, indexer):
        super().__init__()
        self.indexer, self.last, self.fixed = indexer, None, None

    def fix(self):
        self.fixed = self.last

    def forward(self, *args, **kwargs):
        self.last = own = self.indexer(*args, **kwargs)
        if self.fixed is None:
            return own
        anchor, rows = self.fixed[0, -1], self.fixed.shape[1]
        padding = anchor[:1].expand(own.shape[-1] - len(anchor))
        own = own.clone()
        own[:, rows:] = torch.cat([anchor, padding])
        return own


class _HiddenOnly(torch.nn.Module):
    """glm_moe_dsa's layer also returns its selection, which `MtpLayer` does not expect."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, *args, **kwargs):
        result = self.layer(*args, **kwargs)
        return result[0] if isinstance(result, tuple) else result


class MtpChain:
    """The MTP chain of a checkpoint.  It keeps no cache: each pass computes all rows anew."""

    def __init__(self, directory):
        config = _read_config(directory)
        layer_index = config["num_hidden_layers"]
        self.share = bool(config.get("index_share_for_mtp_iteration"))
        self.model = _load(directory, _with_mtp_as_a_layer(config))
        base = self.model.model
        layer = base.layers[layer_index]
        base.layers = base.layers[:layer_index]
        base.config.num_hidden_layers = layer_index
        self.selection = None
        if getattr(layer.self_attn, "indexer", None) is not None:
            self.selection = layer.self_attn.indexer = _Selection(layer.self_attn.indexer)
        self.step = MtpLayer(base.config, lambda *_: _HiddenOnly(layer), type(base.norm),
                             layer_index).to(_dtype).eval()
        weights = safetensors.torch.load_file(Path(directory) / "model.safetensors")
        prefix = f"model.layers.{layer_index}."
        for module, name in ((self.step.enorm, "enorm"), (self.step.hnorm, "hnorm"),
                             (self.step.eh_proj, "eh_proj"),
                             (self.step.post_norm, "shared_head.norm")):
            module.load_state_dict({"weight": weights[f"{prefix}{name}.weight"]})

    def _pass(self, ids, hidden):
        """ids [T], the tokens after rows whose hidden states are given; returns the new ones."""
        base = self.model.model
        embedded = base.embed_tokens(torch.tensor([ids]))
        positions = torch.arange(len(ids))[None]
        mask = create_causal_mask(config=base.config, inputs_embeds=embedded, attention_mask=None,
                                  cache=None, position_ids=positions, allow_is_causal_skip=False)
        return self.step(embedded, hidden[None], base.rotary_emb(embedded, position_ids=positions),
                         attention_mask=mask, position_ids=positions, cache=None)[0]

    @torch.no_grad()
    def draft(self, ids, count):
        """Returns (logits [T, vocabulary] of the main model, drafted ids, hidden states of each
        pass: of all rows first, then of the row that the pass added)."""
        hidden = self.model.model(input_ids=torch.tensor([ids]), use_cache=False)
        hidden = hidden.last_hidden_state[0]
        main_logits = self.model.lm_head(hidden)
        next_ids = ids[1:] + [int(main_logits[-1].argmax())]
        drafted, passes = [], []
        for k in range(count):
            y = self._pass(next_ids, hidden)
            if k == 0 and self.share:
                self.selection.fix()
            passes.append((y if k == 0 else y[-1:]).numpy())
            drafted.append(int(self.model.lm_head(y[-1]).argmax()))
            next_ids = next_ids + drafted[-1:]
            hidden = torch.cat([hidden, y[-1:]])
        return main_logits.numpy(), drafted, passes


@torch.no_grad()
def mtp_model_passes(directory, ids, count):
    """(drafted ids, hidden states as `MtpChain.draft`) by the library's `MtpModel` and its cache.

    deepseek_v3 with a MoE layer for MTP only.  It numbers positions from 1 there: rope is relative.
    """
    config = _read_config(directory)
    main = load(directory)
    # By default the library looks for layer 61.
    main._keys_to_ignore_on_load_unexpected = [
        rf"model\.layers\.{config['num_hidden_layers']}\..*"]
    model = MtpModel.from_pretrained(main).to(_dtype).eval()
    _patch_latent_eps(model, config)
    cache = MtpCache(config=main.config.get_mtp_config())
    hidden = main.model(input_ids=torch.tensor([ids]), use_cache=False).last_hidden_state
    next_ids = ids[1:] + [int(main.lm_head(hidden[0, -1]).argmax())]
    positions = torch.arange(1, len(ids) + 1)[None]
    drafted, passes = [], []
    for _ in range(count):
        y = model.forward_layer(0, hidden, positions, cache, input_ids=torch.tensor([next_ids]))
        passes.append(y[0].numpy())
        drafted.append(int(main.lm_head(y[0, -1]).argmax()))
        next_ids, hidden, positions = drafted[-1:], y[:, -1:], positions[:, -1:] + 1
    return drafted, passes
