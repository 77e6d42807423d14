"""glm_moe_dsa in plain torch, for training on a CPU in float32.

Rows of several dialogs are one flat matrix [rows, hidden] in all linear layers; only attention
looks at the dialogs, group by group. Contexts never exceed index_topk, where an indexer selects
every position: its tensors exist and are exported, but no gradient reaches them.
"""
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from config import indexer_types

QUERY_SPAN = 96


@dataclass
class Group:
    """`count` dialogs of similar length, padded on the right to `length` rows each."""
    count: int
    length: int


@dataclass
class Drafts:
    """The rows from which the MTP chain is trained.

    Row i of the chain starts at position `position[i]` of a dialog, is row `row[i]` of the flat
    matrix, and lies in `groups`, which divide the chain's rows as Group divides the flat ones.
    `tokens[d]` are the tokens that depth d reads (those at position + 1 + d).
    """
    row: torch.Tensor
    position: torch.Tensor
    tokens: list
    groups: list


class Permute(torch.autograd.Function):
    """x[order] where `inverse` undoes `order`: both directions gather, none scatters."""

    @staticmethod
    def forward(ctx, x, order, inverse):
        ctx.save_for_backward(inverse)
        return x.index_select(0, order)

    @staticmethod
    def backward(ctx, gradient):
        return gradient.index_select(0, ctx.saved_tensors[0]), None, None


class Dispatch(torch.autograd.Function):
    """x[order // copies]: each row once for each of its experts, sorted by expert."""

    @staticmethod
    def forward(ctx, x, order, inverse, copies):
        ctx.save_for_backward(inverse)
        ctx.copies = copies
        return x.index_select(0, order.div(copies, rounding_mode="floor"))

    @staticmethod
    def backward(ctx, gradient):
        rows = gradient.index_select(0, ctx.saved_tensors[0])
        return rows.view(-1, ctx.copies, rows.shape[-1]).sum(1), None, None, None


def matrix(*shape, scale=1.0):
    return nn.Parameter(torch.randn(*shape) * scale * shape[-1] ** -0.5)


class Normalize(torch.autograd.Function):
    """x / rms(x) * weight with fewer passes over memory than the composed form."""

    @staticmethod
    def forward(ctx, x, weight, eps):
        size = x.shape[-1]
        norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        scale = norm.square_().div_(size).add_(eps).rsqrt_()
        unit = x * scale
        ctx.save_for_backward(unit, scale, weight)
        return unit * weight

    @staticmethod
    def backward(ctx, gradient):
        unit, scale, weight = ctx.saved_tensors
        product = gradient * unit
        along = torch.mv(product, weight).div_(len(weight))[:, None]
        inward = torch.addcmul(gradient * weight, unit, along, value=-1).mul_(scale)
        return inward, product.sum(0), None


class RmsNorm(nn.Module):
    def __init__(self, size, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(size)), eps

    def forward(self, x):
        return Normalize.apply(x, self.weight, self.eps)


class Rope:
    """cos + i sin of every position and pair; interleaved pairs are complex numbers."""

    def __init__(self, config):
        size, theta = config["qk_rope_head_dim"], config["rope_parameters"]["rope_theta"]
        frequency = theta ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)
        angle = torch.arange(config["index_topk"] + 8, dtype=torch.float64)[:, None] * frequency
        self.table = torch.polar(torch.ones_like(angle), angle).to(torch.complex64)

    def __call__(self, x, position):
        """x [rows, heads, size]"""
        pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
        return torch.view_as_real(pairs * self.table[position][:, None]).flatten(-2)


class Indexer(nn.Module):
    """Tensors only, random like those of a fresh layer: beyond index_topk positions the selection
    prefers nothing in particular."""

    def __init__(self, config):
        super().__init__()
        heads, size = config["index_n_heads"], config["index_head_dim"]
        self.wq_b = matrix(heads * size, config["q_lora_rank"])
        self.wk = matrix(size, config["hidden_size"])
        self.k_norm_weight = nn.Parameter(torch.ones(size))
        self.k_norm_bias = nn.Parameter(torch.zeros(size))
        self.weights_proj = matrix(heads, config["hidden_size"])


class Attention(nn.Module):
    def __init__(self, config, has_indexer):
        super().__init__()
        c = config
        self.heads, self.latent = c["num_attention_heads"], c["kv_lora_rank"]
        self.nope, self.rope_size = c["qk_nope_head_dim"], c["qk_rope_head_dim"]
        self.value = c["v_head_dim"]
        self.key = self.nope + self.rope_size
        self.q_a_proj = matrix(c["q_lora_rank"], c["hidden_size"])
        self.q_a_layernorm = RmsNorm(c["q_lora_rank"], c["rms_norm_eps"])
        self.q_b_proj = matrix(self.heads * self.key, c["q_lora_rank"])
        self.kv_a_proj_with_mqa = matrix(self.latent + self.rope_size, c["hidden_size"])
        self.kv_a_layernorm = RmsNorm(self.latent, c["rms_norm_eps"])
        self.kv_b_proj = matrix(self.heads * (self.nope + self.value), self.latent)
        self.o_proj = matrix(c["hidden_size"], self.heads * self.value, scale=0.2)
        self.indexer = Indexer(c) if has_indexer else None

    def queries(self, x, position, rope):
        """[rows, heads, key]"""
        q = F.linear(self.q_a_layernorm(F.linear(x, self.q_a_proj)), self.q_b_proj)
        nope, turned = q.view(-1, self.heads, self.key).split([self.nope, self.rope_size], -1)
        return torch.cat([nope, rope(turned, position)], -1)

    def keys_values(self, x, position, rope):
        """[rows, heads, key] and [rows, heads, value]"""
        latent, shared = F.linear(x, self.kv_a_proj_with_mqa).split(
            [self.latent, self.rope_size], -1)
        both = F.linear(self.kv_a_layernorm(latent), self.kv_b_proj)
        nope, value = both.view(-1, self.heads, self.nope + self.value).split(
            [self.nope, self.value], -1)
        shared = rope(shared[:, None], position).expand(-1, self.heads, -1)
        return torch.cat([nope, shared], -1), value

    def attend(self, q, k, v, spans):
        """q [count, queries, heads, key], k and v [count, length, heads, size]"""
        count, queries = q.shape[:2]
        q, k, v = (x.transpose(1, 2).flatten(0, 1) for x in (q, k, v))
        parts = []
        for part, bias in zip(q.split(QUERY_SPAN, 1), spans):
            end = bias.shape[-1]
            scores = torch.baddbmm(bias, part, k[:, :end].mT, alpha=self.key ** -0.5)
            parts.append(torch.bmm(scores.softmax(-1), v[:, :end]))
        out = torch.cat(parts, 1).view(count, self.heads, queries, self.value)
        return out.transpose(1, 2).reshape(-1, self.heads * self.value)

    def forward(self, x, position, groups, spans, rope):
        q = self.queries(x, position, rope)
        k, v = self.keys_values(x, position, rope)
        parts = zip(*(split_groups(y, groups) for y in (q, k, v)), spans)
        return F.linear(torch.cat([self.attend(*part) for part in parts]), self.o_proj)


def split_groups(x, groups):
    """The rows of each group, [count, length, ...] a group."""
    parts = x.split([g.count * g.length for g in groups])
    return [part.unflatten(0, (g.count, g.length)) for part, g in zip(parts, groups)]


def attention_spans(reach, heads):
    """What to add to the scores of each QUERY_SPAN queries, which attend to the keys up to `reach`
    [dialogs, queries]; keys that none of a span reaches are left out. On these processors faster
    than torch's fused attention by a third."""
    spans = []
    for part in reach.split(QUERY_SPAN, 1):
        hidden = torch.arange(int(part.max()) + 1) > part[..., None]
        bias = torch.zeros(hidden.shape).masked_fill_(hidden, -torch.inf)
        spans.append(bias.repeat_interleave(heads, 0) if len(reach) > 1 else bias)
    return spans


class Mlp(nn.Module):
    def __init__(self, hidden, intermediate):
        super().__init__()
        self.gate_up_proj = matrix(2 * intermediate, hidden)
        self.down_proj = matrix(hidden, intermediate, scale=0.2)

    def forward(self, x):
        gate, up = F.linear(x, self.gate_up_proj).chunk(2, -1)
        return F.linear(F.silu(gate) * up, self.down_proj)


class Moe(nn.Module):
    def __init__(self, config):
        super().__init__()
        c = config
        self.experts, self.copies = c["n_routed_experts"], c["num_experts_per_tok"]
        self.scale = c["routed_scaling_factor"]
        hidden, intermediate = c["hidden_size"], c["moe_intermediate_size"]
        self.gate = matrix(self.experts, hidden)
        self.gate_up_proj = matrix(self.experts, 2 * intermediate, hidden)
        self.down_proj = matrix(self.experts, hidden, intermediate, scale=0.2)
        self.shared_experts = Mlp(hidden, intermediate * c["n_shared_experts"])
        self.register_buffer("correction_bias", torch.zeros(self.experts))
        self.register_buffer("load", torch.zeros(self.experts), persistent=False)

    def route(self, x):
        score = torch.sigmoid(F.linear(x, self.gate))
        expert = (score.detach() + self.correction_bias).topk(self.copies, -1, sorted=False)[1]
        weight = score.gather(-1, expert)
        return expert, weight / (weight.sum(-1, keepdim=True) + 1e-20) * self.scale

    def forward(self, x):
        expert, weight = self.route(x)
        order = expert.flatten().argsort(stable=True)
        inverse = torch.empty_like(order)
        inverse[order] = torch.arange(len(order))
        load = torch.bincount(expert.flatten(), minlength=self.experts)
        self.load += load
        parts = Dispatch.apply(x, order, inverse, self.copies).split(load.tolist())
        out = []
        for part, gate_up, down in zip(parts, self.gate_up_proj.unbind(), self.down_proj.unbind()):
            gate, up = F.linear(part, gate_up).chunk(2, -1)
            out.append(F.linear(F.silu(gate) * up, down))
        rows = Permute.apply(torch.cat(out), inverse, order)
        routed = torch.bmm(weight[:, None], rows.view(len(x), self.copies, -1))[:, 0]
        return routed + self.shared_experts(x)

    @torch.no_grad()
    def balance(self, rate):
        """Moves the bias of each expert towards an even load, without a loss of its own."""
        self.correction_bias += rate * torch.sign(self.load.mean() - self.load)
        self.correction_bias -= self.correction_bias.mean()
        self.load.zero_()


class Layer(nn.Module):
    def __init__(self, config, has_indexer, dense):
        super().__init__()
        hidden, eps = config["hidden_size"], config["rms_norm_eps"]
        self.input_layernorm = RmsNorm(hidden, eps)
        self.post_attention_layernorm = RmsNorm(hidden, eps)
        self.self_attn = Attention(config, has_indexer)
        self.mlp = Mlp(hidden, config["intermediate_size"]) if dense else Moe(config)

    def feed_forward(self, h):
        return h + self.mlp(self.post_attention_layernorm(h))

    def forward(self, h, position, groups, spans, rope):
        h = h + self.self_attn(self.input_layernorm(h), position, groups, spans, rope)
        return self.feed_forward(h)


class Mtp(nn.Module):
    """The layer that drafts, applied again and again to its own output."""

    def __init__(self, config):
        super().__init__()
        hidden, eps = config["hidden_size"], config["rms_norm_eps"]
        self.enorm, self.hnorm = RmsNorm(hidden, eps), RmsNorm(hidden, eps)
        self.eh_proj = matrix(hidden, 2 * hidden)
        self.layer = Layer(config, has_indexer=True, dense=False)
        self.norm = RmsNorm(hidden, eps)

    def enter(self, embedded, hidden):
        return F.linear(torch.cat([self.enorm(embedded), self.hnorm(hidden)], -1), self.eh_proj)


class Glm(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config, self.heads = config, config["num_attention_heads"]
        types, dense = indexer_types(config), config["first_k_dense_replace"]
        self.embed_tokens = nn.Parameter(
            torch.randn(config["vocab_size"], config["hidden_size"]) * 0.5)
        self.layers = nn.ModuleList(
            Layer(config, kind == "full", i < dense) for i, kind in enumerate(types))
        self.norm = RmsNorm(config["hidden_size"], config["rms_norm_eps"])
        self.lm_head = matrix(config["vocab_size"], config["hidden_size"], scale=0.2)
        self.mtp = Mtp(config)
        self.rope = Rope(config)

    def moes(self):
        return [m for m in self.modules() if isinstance(m, Moe)]

    def forward(self, ids, position, groups):
        """The hidden rows after the final norm, which the head and the MTP layer read."""
        h = F.embedding(ids, self.embed_tokens)
        spans = [attention_spans(torch.arange(g.length)[None], self.heads) for g in groups]
        for layer in self.layers:
            h = layer(h, position, groups, spans, self.rope)
        return self.norm(h)

    def logits(self, hidden):
        return F.linear(hidden, self.lm_head)

    def chain(self, hidden, next_ids, position, groups, drafts):
        """The hidden rows of each depth of the MTP chain, [chain rows, hidden] a depth.

        Keys and values are those of depth 0, at every row of every dialog. A step of depth d > 0
        attends to those up to the row where its chain began: the selection is shared among the
        steps, and rows that were drafted since are not in it.
        """
        mtp, attention, norm = self.mtp, self.mtp.layer.self_attn, self.mtp.layer.input_layernorm
        entered = mtp.enter(F.embedding(next_ids, self.embed_tokens), hidden)
        k, v = attention.keys_values(norm(entered), position, self.rope)
        keys, values = split_groups(k, groups), split_groups(v, groups)
        spans = [attention_spans(reach, self.heads)
                 for reach in split_groups(drafts.position, drafts.groups)]
        u, out = entered.index_select(0, drafts.row), []
        for depth, tokens in enumerate(drafts.tokens):
            if depth > 0:
                u = mtp.enter(F.embedding(tokens, self.embed_tokens), out[-1])
            q = attention.queries(norm(u), drafts.position + depth, self.rope)
            parts = [attention.attend(*part)
                     for part in zip(split_groups(q, drafts.groups), keys, values, spans)]
            y = mtp.layer.feed_forward(u + F.linear(torch.cat(parts), attention.o_proj))
            out.append(mtp.norm(y))
        return out
