"""Work of the interior-point method, from the sizes of a problem."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._training.objective import LinearObjective, sample_step
from ..._training.run import Run
from ...regions.capabilities import has
from ..base import MATRIX_SPEED, STEP
from .cycles import cycle_basis
from .state import large_enough

#: operations of one iteration on each entry of the iterate; and rounds of ``working_set``, typically
ITERATE, ROUNDS = 100.0, 3.0


def coupled_size(objective: LinearObjective) -> int:
    """Number of reduced coefficients: the size of the coupled matrix."""
    q = objective.design.n_coef
    return q if objective.design.shared else (objective.normals.shape[1] - objective.normals.shape[0]) * q


def predicted_work(objective: LinearObjective, run: Run, share: float = 1.0) -> float:
    """Multiplications of one iteration, roughly, for a share of the rows.

    They are those of the small matrices of every sample, and of one factorization.
    """
    d, q = objective.normals.shape[1], objective.design.n_coef
    n = share * objective.n_samples
    region: Any = objective.region
    curved = not has(region, "standard_form")
    A = (region.quadratic_form(d).standard if curved else region.standard_form(d)).A
    N, k = A.shape[1], d - objective.normals.shape[0]
    null = max(N - A.shape[0], k)
    small = N**3 if curved else N * k**2 if A.shape[0] == 1 else 2 * N * null**2 + 2 * null**3
    if null == k and not objective.design.shared and large_enough(n, null):
        if run.derived.planar is None:
            flows = A.shape[0] > 1 and not curved
            run.derived.planar = flows and cycle_basis(A.toarray()) is not None
        if run.derived.planar:
            small = int(null**2.5)  # bands of about the root of the number of faces
    if objective.design.shared:
        return n * float(small + N * null * q + null * q**2) + float(q) ** 3
    # The matrix is symmetric, and so are its blocks.
    return n * float(small + k**2 * q**2 / 4) + float(k * q) ** 3 / 3


def iteration_work(objective: LinearObjective, run: Run, share: float = 1.0) -> float:
    """Work of one iteration: products and factorizations, and operations on arrays of the size of the iterate."""
    region: Any = objective.region
    d = objective.normals.shape[1]
    form = region.standard_form(d) if has(region, "standard_form") else region.quadratic_form(d).standard
    entries = share * objective.n_samples * form.A.shape[1]
    return STEP + predicted_work(objective, run, share) / MATRIX_SPEED + ITERATE * entries


def undecided_share(objective: LinearObjective) -> float:
    """Share of the rows whose decisions are expected to differ between the fits to two samples (``working_set``).

    The relative error of the predictions is the root of the number of coefficients for each row of a sample.
    """
    step = sample_step(objective.n_samples)
    if step is None:
        return 1.0
    return float(min(1.0, np.sqrt(2.0 * step * coupled_size(objective) / objective.n_samples)))


def working_set_work(objective: LinearObjective, run: Run) -> float:
    """Work of an iteration for both samples and for the undecided rows of every round."""
    sample = 1.0 / (sample_step(objective.n_samples) or 1)
    rounds = ROUNDS * iteration_work(objective, run, undecided_share(objective))
    return iteration_work(objective, run, sample) + rounds
