import torch

KR = (0.03, 0.1, 0.3, 1, 3)
KL = (0.003, 0.01, 0.03, 0.1, 0.3)


def _sp(u, p):
    return torch.sign(u) * u.abs() ** p


WARPS = {"u": lambda u: u, "sqrt": lambda u: _sp(u, 0.5), "square": lambda u: _sp(u, 2.0)}
for k in KR:
    WARPS[f"sat{k}"] = lambda u, k=k: (lambda x: x / (x + k))(u.clamp_min(-k / 2))
for k in KL:
    WARPS[f"log{k}"] = lambda u, k=k: torch.log1p(u.clamp_min(-k / 2) / k)


def scaled_warps(u, u_lo, u_hi):
    out = []
    for f in WARPS.values():
        a, b = f(u_lo), f(u_hi)
        out.append(2 * (f(u) - a[..., None]) / (b - a)[..., None] - 1)
    return torch.stack(out, -2)
