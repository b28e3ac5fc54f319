"""One pass over data in chunks: means, spreads, least squares and sizes, from triangular factors that can be added."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy.linalg import lstsq
from sklearn.linear_model import LinearRegression

from .._utils.scaling import check_units, largest, power_of_two
from ..data.chunks import Chunk
from ..regions.base import Region
from ..regions.capabilities import project_visible
from .design import Design, SharedDesign, Standardization, triangle
from .in_memory import ROUNDING
from .inputs import mean_cost
from .objective import Coordinates

T = TypeVar("T")


def add(*results: T | None) -> T | None:
    """Sum of the results of parts; None is the result of a part without rows.  Plain tuples are added by entry."""
    total: Any = None
    for result in results:
        if total is None:
            total = result
        elif isinstance(result, tuple) and not hasattr(result, "_fields"):
            total = tuple(a + b for a, b in zip(total, result, strict=True))
        elif result is not None:
            total = total + result
    return total


class Survey(NamedTuple):
    """Statistics of the data that training needs; ``+`` gives those of both parts."""

    sizes: tuple[int, ...]  # rows of each part
    factor: np.ndarray  # R of sqrt(weight) [1 X-first C U], one row per feature vector; U = C - offset, if any
    weight: float
    size: float  # Frobenius norm of the visible part of sqrt(weight) C
    largest: np.ndarray  # of |X|, by feature
    mean: np.ndarray  # of the costs minus the offset, and of the costs, (2, d), in the user's sense
    least: np.ndarray  # smallest cost of each variable, to be minimized

    def __add__(self, other: Survey) -> Survey:  # type: ignore[override]
        """Survey of both parts."""
        if self.factor.shape[1] != other.factor.shape[1]:
            raise ValueError("Either all chunks have an offset, or none.")
        weight = self.weight + other.weight
        share = other.weight / weight if weight > 0 else 0.0
        return Survey(
            self.sizes + other.sizes,
            triangle(np.concatenate([self.factor, other.factor])),
            weight,
            float(np.hypot(self.size, other.size)),
            np.maximum(self.largest, other.largest),
            (1.0 - share) * self.mean + share * other.mean,
            np.minimum(self.least, other.least),
        )


def first_row(chunk: Chunk) -> tuple[np.ndarray, np.ndarray] | None:
    """First row of a chunk; the survey subtracts it from all rows."""
    if chunk.n_rows == 0:
        return None
    rows = chunk.head().checked()
    return rows.X, rows.y


def survey_chunk(chunk: Chunk, reference: np.ndarray, normals: np.ndarray, region: Region, shared: bool) -> Survey:
    """Survey of one chunk, after checking it."""
    X, y, weight, offset = chunk.checked(region)
    if X.shape[1] != reference.size or y.shape[1] != normals.shape[1]:
        raise ValueError(
            f"All chunks must have the same columns: the first has {reference.size} features and {normals.shape[1]} "
            f"costs, another {X.shape[1]} and {y.shape[1]}."
        )
    n, d = y.shape
    C = region.to_min(y)
    visible = project_visible(C, normals)
    # In units of the largest cost (a power of two: exact), so that squares neither overflow nor vanish.
    unit = power_of_two(largest(visible))
    size = float(unit * np.sqrt(weight @ np.square(visible / unit).sum(axis=1)))
    targets = [C] if offset is None else [C, C - region.to_min(offset)]
    rows, root = X - reference, np.sqrt(weight)
    if shared:
        possible = region.possible(n, d)  # the same costs in all rows
        exists = np.ones(d, dtype=bool) if possible is None or not n else possible[0]
        rows, root = rows.reshape(n * d, -1), np.outer(root, exists / np.sqrt(exists.sum())).ravel()
        targets = [target.reshape(-1, 1) for target in targets]
        X = X.reshape(n * d, -1)
    table = np.concatenate([np.ones((rows.shape[0], 1)), rows, *targets], axis=1) * root[:, None]
    means = np.array([mean_cost(y, weight, known) if weight.any() else np.zeros(d) for known in (offset, None)])
    largest_X = np.abs(X).max(axis=0, initial=0.0)
    return Survey((n,), triangle(table), float(weight.sum()), size, largest_X, means, C.min(axis=0, initial=np.inf))


def _column_norms(rows: np.ndarray) -> np.ndarray:
    """Norms of columns, computed so that squares neither overflow nor vanish."""
    units = np.array([power_of_two(largest(column)) for column in rows.T])
    return units * np.linalg.norm(rows / units, axis=0)


def coordinates_of(
    survey: Survey, reference: np.ndarray, normals: np.ndarray, *, fit_intercept: bool, center: bool, shared: bool
) -> Coordinates:
    """Coordinates from a survey: the same as those of rows in memory."""
    d, p = normals.shape[1], survey.largest.size
    R = survey.factor / np.sqrt(survey.weight)
    ones, X = R[:, :1], R[:, 1 : p + 1]
    target = R[:, -1:] if shared else R[:, -d:]
    raw = X + ones * reference[:p]  # add the reference row again
    mean = raw[0] / ones[0, 0]
    deviation, below = X[1:], target[1:]
    rounding = 16 * np.finfo(float).eps * survey.largest
    # What rounding leaves of a constant column is not a feature.
    deviation = np.where(_column_norms(deviation) > rounding, deviation, 0.0)
    centered = fit_intercept and center
    spread = _column_norms(deviation if centered else raw)
    used = spread > rounding
    standardization = Standardization(mean if centered else np.zeros(p), np.where(used, spread, 1.0), used)
    costs = R[:, p + 1 : p + 2] * np.sqrt(d) if shared else R[:, p + 1 : p + 1 + d]
    unit = power_of_two(largest(costs))
    size, whole = survey.size / np.sqrt(survey.weight), unit * float(np.linalg.norm(costs / unit))
    same = size <= ROUNDING * whole
    cost_scale = (whole if same else size) or 1.0
    check_units(standardization, cost_scale)
    # The cut-off that scikit-learn uses for rows in memory; old versions have no parameter for it.
    cond = getattr(LinearRegression(), "tol", max(sum(survey.sizes), p) * np.finfo(float).eps)
    if fit_intercept:
        coef = lstsq(deviation, below / unit, cond=cond)[0].T * unit
        intercept = target[0] / ones[0, 0] - coef @ mean
    else:
        coef = lstsq(raw, target / unit, cond=cond)[0].T * unit
        intercept = np.zeros(target.shape[1])
    design = (SharedDesign if shared else Design).without_rows(standardization, normals, fit_intercept=fit_intercept)
    Theta = design.from_user(coef[0], float(intercept[0])) if shared else design.from_user(coef, intercept)
    coordinates = Coordinates(standardization, float(cost_scale), *design.split(Theta / cost_scale), bool(same))
    known = R.shape[1] > p + 1 + costs.shape[1]
    return coordinates if known or shared else coordinates.without_rounding()
