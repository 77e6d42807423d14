"""Muon for the matrices inside the layers, Adam for everything else.

Muon: Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024. A step is the
momentum with its singular values pushed towards one, by five Newton-Schulz iterations. Matrices of
one shape are handled as one batch, the experts of a layer included.
"""
import torch
import torch.distributed as distributed

from config import TRAIN

COEFFICIENTS = (3.4445, -4.7750, 2.0315)    # the quintic of the paper
ITERATIONS = 5
MOMENTUM = 0.95


def orthogonalized(x):
    """x [..., rows, columns] with rows <= columns."""
    a, b, c = COEFFICIENTS
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(ITERATIONS):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x


class Muon(torch.optim.Optimizer):
    """Each worker orthogonalizes its share of the matrices; a sum gives everybody all of them."""

    def __init__(self, parameters, lr, weight_decay):
        super().__init__(list(parameters), dict(lr=lr, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            by_shape = {}
            for p in group["params"]:
                by_shape.setdefault(p.shape[-2:], []).append(p)
            updates = [self._own_share(shape, parameters)
                       for shape, parameters in by_shape.items()]
            flat = torch.cat([update.flatten() for update in updates])
            if distributed.is_initialized():
                distributed.all_reduce(flat)
            at = 0
            for (shape, parameters), update in zip(by_shape.items(), updates):
                whole = flat[at:at + update.numel()].view_as(update)
                self._apply(group, shape, parameters, whole)
                at += update.numel()

    def _own_share(self, shape, parameters):
        """The steps of all matrices of one shape, zero where they are another worker's."""
        directions = []
        for p in parameters:
            momentum = self.state[p].setdefault("momentum", torch.zeros_like(p))
            momentum.lerp_(p.grad, 1 - MOMENTUM)
            directions.append(p.grad.lerp(momentum, MOMENTUM).view(-1, *shape))
        stacked = torch.cat(directions)
        rank, workers = 0, 1
        if distributed.is_initialized():
            rank, workers = distributed.get_rank(), distributed.get_world_size()
        own = stacked[rank::workers]
        update = torch.zeros_like(stacked)
        if len(own) > 0:
            wide = shape[0] <= shape[1]
            update[rank::workers] = (orthogonalized(own) if wide
                                     else orthogonalized(own.mT).mT)
        return update

    @staticmethod
    def _apply(group, shape, parameters, update):
        scale = max(1.0, shape[0] / shape[1]) ** 0.5
        sizes = [p.numel() // (shape[0] * shape[1]) for p in parameters]
        for p, part in zip(parameters, update.split(sizes)):
            p.mul_(1 - group["lr"] * group["weight_decay"])
            p.add_(part.reshape(p.shape), alpha=-group["lr"] * scale)


def make_optimizers(model):
    """Muon and Adam over every parameter that gets a gradient: all but the indexers'."""
    matrices, others = [], []
    for name, p in model.named_parameters():
        if ".indexer." in name:
            p.requires_grad_(False)
        elif p.ndim < 2 or name in ("embed_tokens", "lm_head") or name.endswith("mlp.gate"):
            others.append(p)
        else:
            matrices.append(p)
    return [Muon(matrices, TRAIN["muon_lr"], TRAIN["weight_decay"]),
            torch.optim.Adam(others, TRAIN["adam_lr"], betas=(0.9, 0.95), eps=1e-10, fused=True)]


def rate_factor(progress):
    """Of the learning rates, at a progress of 0..1: warm up, hold, drop, fall to zero."""
    hold = 1.0 if progress < TRAIN["drop_at"] else TRAIN["drop_to"]
    return hold * min(1.0, progress / TRAIN["warmup"], max(0.0, 1 - progress) / TRAIN["decay"])
