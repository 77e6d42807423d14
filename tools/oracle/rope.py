"""Rotary position embedding of the four families: frequencies, plain or YaRN, and the rotation."""
import math

import numpy as np

KNOWN_KEYS = {"rope_theta", "rope_type", "type", "partial_rotary_factor", "factor", "beta_fast",
              "beta_slow", "mscale", "mscale_all_dim", "original_max_position_embeddings"}


def _settings(config):
    """One dictionary out of rope_parameters, or of the older rope_theta and rope_scaling."""
    settings = {"rope_theta": config.get("rope_theta")}
    settings.update(config.get("rope_scaling") or {})
    settings.update(config.get("rope_parameters") or {})
    unknown = set(settings) - KNOWN_KEYS
    kind = settings.get("rope_type", settings.get("type", "default"))
    if unknown or kind not in ("default", "yarn") or settings.get("partial_rotary_factor", 1) != 1:
        raise ValueError(f"rope that the oracle does not compute: {settings}")
    return settings, kind


def get_mscale(factor, mscale=1.0):
    return 1.0 if factor <= 1 else 0.1 * mscale * math.log(factor) + 1.0


def _interpolated_share(settings, dim):
    """For each pair how much it is interpolated: 0 for those that turn often within the context
    of the training, 1 for those that hardly turn, a ramp between (Peng et al. 2023)."""
    theta, length = settings["rope_theta"], settings["original_max_position_embeddings"]

    def pair_that_turns(times):
        return dim * math.log(length / (times * 2 * math.pi)) / (2 * math.log(theta))

    first = max(math.floor(pair_that_turns(settings.get("beta_fast") or 32)), 0)
    last = min(math.ceil(pair_that_turns(settings.get("beta_slow") or 1)), dim - 1)
    if first == last:
        last += 0.001
    return np.clip((np.arange(dim // 2) - first) / (last - first), 0.0, 1.0)


class Rope:
    """inverse_frequency [dim / 2]: angle a position; magnitude: what cos and sin are multiplied by;
    softmax_factor: what the scale of the attention's softmax is multiplied by."""

    def __init__(self, config):
        dim = config["qk_rope_head_dim"]
        settings, kind = _settings(config)
        self.inverse_frequency = settings["rope_theta"] ** (
            -np.arange(0, dim, 2, dtype=np.float64) / dim)
        self.magnitude = self.softmax_factor = 1.0
        if kind == "default":
            return
        factor, all_dim = settings["factor"], settings.get("mscale_all_dim")
        share = _interpolated_share(settings, dim)
        self.inverse_frequency = self.inverse_frequency * (share / factor + (1.0 - share))
        if all_dim and settings.get("mscale"):
            self.magnitude = get_mscale(factor, settings["mscale"]) / get_mscale(factor, all_dim)
        else:
            self.magnitude = get_mscale(factor)
        if all_dim:
            self.softmax_factor = get_mscale(factor, all_dim) ** 2

    def rotate(self, x, positions, interleave):
        """Rotates x [..., dim]; positions broadcast to x.shape[:-1]."""
        angle = np.asarray(positions, np.float64)[..., None] * self.inverse_frequency
        cos = (np.cos(angle) * self.magnitude).astype(x.dtype)
        sin = (np.sin(angle) * self.magnitude).astype(x.dtype)
        y = np.empty_like(x)
        if interleave:
            a, b = x[..., 0::2], x[..., 1::2]
            y[..., 0::2], y[..., 1::2] = a * cos - b * sin, a * sin + b * cos
        else:
            half = x.shape[-1] // 2
            a, b = x[..., :half], x[..., half:]
            y[..., :half], y[..., half:] = a * cos - b * sin, a * sin + b * cos
        return y
