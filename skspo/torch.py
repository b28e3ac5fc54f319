"""The SPO+ loss as a PyTorch module, with the regions of this package as oracles.

``import torch`` in this file is PyTorch: imports are absolute.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._utils.params import one_of
from .losses import SPOPlusLoss as _SPOPlusLoss
from .losses import check_existing
from .regions.base import Region
from .regions.check import check_region

try:
    import torch
    from torch.autograd.function import once_differentiable
except ImportError as error:
    raise ImportError("skspo.torch needs PyTorch: pip install skspo[torch]") from error

__all__ = ["SPOPlusLoss"]


class _Differentiable(torch.autograd.Function):
    """Loss of each sample; the same call of the oracle gives value and gradient."""

    @staticmethod
    def forward(ctx: Any, C_hat: torch.Tensor, C: np.ndarray, W: np.ndarray | None, region: Region) -> torch.Tensor:
        predicted = _to_numpy(C_hat)
        if not np.isfinite(predicted).all():
            raise ValueError("The predicted costs are not finite: training may have diverged. Lower the learning rate.")
        C = region.to_min(check_existing(C, region, name="C")[0])
        W = region.solve_min(C) if W is None else W
        value, G = _SPOPlusLoss(region).value_gradient_min(region, C, region.to_min(predicted), W)
        ctx.save_for_backward(torch.as_tensor(region.to_min(G)).to(C_hat))
        return torch.as_tensor(value).to(C_hat)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
        (G,) = ctx.saved_tensors
        return grad[:, None] * G, None, None, None


class SPOPlusLoss(torch.nn.Module):
    r"""SPO+ loss of predicted costs, for networks of any kind.

    The oracle runs on the CPU in double precision and solves the whole batch at once; value and gradient come back in
    the precision and on the device of the predictions.  The gradient in the predicted costs is
    :math:`2 (w^*(c) - w^*(2 \hat c - c))`, a subgradient where the loss has a kink.  Decide with
    ``region.decide(C_hat)``, which clips predictions to the ``cost_bounds`` of the region; training does not clip.

    Parameters
    ----------
    region : Region or None, default=None
        Feasible region of the decisions; None means the unit Box.
    reduction : {"mean", "sum", "none"}, default="mean"
        How to combine the losses of the samples.

    See Also
    --------
    skspo.SPOPlusLoss : The same in NumPy.
    skspo.SPOMLPRegressor : Networks trained for decisions without PyTorch.

    Examples
    --------
    >>> import torch
    >>> from skspo import Simplex
    >>> from skspo.torch import SPOPlusLoss
    >>> C_hat = torch.tensor([[2.0, 1.0]], requires_grad=True)
    >>> loss = SPOPlusLoss(Simplex())(C_hat, torch.tensor([[1.0, 2.0]]))
    >>> loss.backward()
    >>> loss.item(), C_hat.grad
    (3.0, tensor([[ 2., -2.]]))
    """

    def __init__(self, region: Region | None = None, reduction: str = "mean") -> None:
        super().__init__()
        one_of("mean", "sum", "none")("reduction", reduction)
        self.region = region
        self.reduction = reduction
        self._checked: tuple[Region | None, int, Region] | None = None

    def forward(self, C_hat: torch.Tensor, C: torch.Tensor, W: torch.Tensor | None = None) -> torch.Tensor:
        """Loss of predictions.

        Parameters
        ----------
        C_hat : Tensor of shape (n_samples, d)
            Predicted costs.
        C : Tensor of shape (n_samples, d)
            True costs.
        W : Tensor of shape (n_samples, d), optional
            Best decisions for the true costs, ``region.argmin(C)``.  Computing them once, before training, saves half
            of the oracle calls.

        Returns
        -------
        loss : Tensor
            A number, or one for each sample if ``reduction="none"``.
        """
        if C_hat.ndim != 2 or C_hat.shape != C.shape or (W is not None and W.shape != C.shape):
            shapes = ", ".join(str(tuple(T.shape)) for T in (C_hat, C, W) if T is not None)
            raise ValueError(f"C_hat, C and W must all have the same shape (n_samples, d), got {shapes}.")
        region = self._region(C_hat.shape[1])
        loss = _Differentiable.apply(C_hat, _to_numpy(C), None if W is None else _to_numpy(W), region)
        return loss if self.reduction == "none" else getattr(loss, self.reduction)()

    def _region(self, d: int) -> Region:
        # Check only once: it clones the region, and the clone has an empty cache.
        if self._checked is None or self._checked[0] is not self.region or self._checked[1] != d:
            self._checked = (self.region, d, check_region(self.region, n_dim=d))
        return self._checked[2]

    def extra_repr(self) -> str:
        """Parameters, for printing."""
        region = "None" if self.region is None else type(self.region).__name__
        return f"region={region}, reduction={self.reduction!r}"


def _to_numpy(T: torch.Tensor | np.ndarray) -> np.ndarray:
    """Double precision on the CPU; W may be an array already."""
    return torch.as_tensor(T).detach().to("cpu", torch.float64).numpy()
