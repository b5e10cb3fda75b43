"""The metric network of one concentration and its Christoffel symbol in plain torch: specification and CPU path."""

import torch
from torch import Tensor
from torch.nn import functional as F

FLOOR = 0.1  # added to softplus so that the metric stays positive


def network(c: Tensor, wavelength: Tensor, weights: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
    """y and ∂y/∂c of the 2→H₁→H₂→1 tanh network, [M, N] each; value and derivative go forward together.

    ``weights`` = (W1 [M, H1, 2], b1 [M, H1], W2 [M, H2, H1], b2 [M, H2], W3 [M, 1, H2], b3 [M, 1]).
    """
    w1, b1, w2, b2, w3, b3 = weights
    h = torch.tanh(c[..., None] * w1[:, None, :, 0] + (wavelength[..., None] * w1[:, None, :, 1] + b1[:, None]))
    d = (1.0 - h * h) * w1[:, None, :, 0]
    h2 = torch.tanh(torch.baddbmm(b2[:, None], h, w2.mT))
    d2 = (1.0 - h2 * h2) * torch.bmm(d, w2.mT)
    return torch.baddbmm(b3[:, None], h2, w3.mT)[..., 0], torch.bmm(d2, w3.mT)[..., 0]


def metric_value(c: Tensor, wavelength: Tensor, *weights: Tensor) -> Tensor:
    """y [M, N], the network's value before any transform."""
    return network(c, wavelength, weights)[0]


def metric_density(c: Tensor, wavelength: Tensor, *weights: Tensor, output: str = "exp") -> Tensor:
    """ρ = √g [M, N]: e^{y/2} for ``output="exp"``."""
    y = network(c, wavelength, weights)[0]
    return torch.exp(0.5 * y) if output == "exp" else (F.softplus(y) + FLOOR).sqrt()


def metric_christoffel(
    c: Tensor, wavelength: Tensor, *weights: Tensor, output: str = "softplus"
) -> tuple[Tensor, Tensor, Tensor]:
    """g, ∂g/∂c and Γ = ½ (∂g/∂c)/g, [M, N] each. output "softplus": g = softplus(y) + 0.1; "exp": g = e^y."""
    y, dy = network(c, wavelength, weights)
    if output == "softplus":
        g = F.softplus(y) + FLOOR
        dg = torch.sigmoid(y) * dy
        return g, dg, 0.5 * dg / g
    g = torch.exp(y)
    return g, g * dy, 0.5 * dy
