"""What was seen of the costs of past decisions, and its validation; see ``_feedback_costs.py`` for the algebra."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array, check_consistent_length

from .._utils.frames import Known, check_columns, check_values, column_labels, column_names, take_rows
from .._utils.types import RegionParams
from ..losses import check_offset, check_weight
from ..regions._names import say_variable
from ..regions._rows import read_rows, row_params
from ..regions._tolerances import RANK
from ..regions.base import Region
from ..regions.check import check_not_labels, check_region
from ._report import ORACLE_TOLERANCE


class Log(NamedTuple):
    """What was seen of the costs, less the offset."""

    X: Any
    C: np.ndarray  # (n, d), NaN where a cost was not seen
    W: Any = None  # (n, d) past decisions, if they are known
    z: Any = None  # (n,) their total costs, if nothing else was seen; then W is known
    weight: np.ndarray | None = None
    offset: np.ndarray | None = None
    possible: np.ndarray | None = None  # (n, d) which costs exist; None if all do
    region_params: np.ndarray | None = None  # structured, with one entry per sample
    propensity: np.ndarray | None = None  # (n, d) or (n, d, d), if it is known for each sample
    shared: bool = False
    worst: float = 1.0  # 1 if large costs are bad, -1 if small values are
    flat: bool = False  # whether there is one cost, as an array of one dimension

    def take(self, rows: np.ndarray) -> Log:
        """Some of the samples."""
        by_row = ("X", "C", "W", "z", "weight", "offset", "possible", "region_params", "propensity")
        return self._replace(**{name: take_rows(getattr(self, name), rows) for name in by_row})

    def with_offset(self, costs: np.ndarray) -> np.ndarray:
        """Costs that were less the offset."""
        return costs if self.offset is None else costs + self.offset

    @property
    def seen(self) -> np.ndarray:
        """Which entries say something: costs that were seen, or variables of decisions whose total was."""
        seen: np.ndarray = ~np.isnan(self.C) if self.z is None else self.W != 0.0
        return seen

    @property
    def learned(self) -> np.ndarray:
        """Variables about whose cost the samples say something, shape (d,)."""
        seen = self.seen if self.weight is None else self.seen[self.weight > 0]
        found = np.asarray(seen.any(axis=0))
        return np.full(len(found), bool(found.any())) if self.shared else found

    @property
    def complete(self) -> bool:
        """Whether all costs that exist were seen."""
        return self.z is None and bool((self.seen if self.possible is None else self.seen | ~self.possible).all())


def is_array(propensity: object) -> bool:
    """Whether propensities were given as numbers."""
    return isinstance(propensity, list | tuple | np.ndarray) or column_labels(propensity) is not None


def align(data: Any, y: Any, region: object, known: np.ndarray | None = None, *, name: str = "decisions") -> Any:
    """Decisions or propensities with their columns in the order of the costs of ``fit``, of y or of the region.

    Other names than these are an error.
    """
    if column_labels(data) is None:
        return data
    if known is None and np.ndim(y) == 2:
        known = column_names(y)
    if known is None and isinstance(region, Region):
        known = region.names(data.shape[1])
    if known is None:
        return data
    names = list(known)
    if column_labels(data) != names and set(column_labels(data) or ()) == set(names):
        data = data[names]
    check_columns({name: data}, Known(names, "the names of the decision variables", repr(names)))
    return data


def read_log(
    X: Any,
    y: ArrayLike,
    decisions: ArrayLike | None,
    propensity: Any,
    region: Region | None,
    *,
    shared: bool = False,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    region_params: RegionParams | None = None,
) -> tuple[Log, Region]:
    """Validate what was seen; returns it, and the region of these samples."""
    with np.errstate(over="ignore", invalid="ignore"):  # the check for infinity adds up all values
        given = check_array(y, dtype=np.float64, ensure_2d=False, ensure_all_finite="allow-nan", input_name="y")
    check_consistent_length(X, given)
    n, W, z = len(given), None, None
    C = given.reshape(n, -1)
    if decisions is not None:
        check_values("decisions", decisions)
        W = check_array(decisions, dtype=np.float64, ensure_2d=False, input_name="decisions")
        if W.ndim != 2 or len(W) != n:
            raise ValueError(
                f"decisions must have one row for each of the {n} samples and one column for each decision variable, "
                f"got shape {W.shape}."
            )
        C = np.full_like(W, np.nan) if given.ndim == 1 else C
        if W.shape != C.shape:
            raise ValueError(
                f"y has {C.shape[1]} columns, but decisions has {W.shape[1]}. y must have the cost of each decision "
                "variable, with NaN where it was not seen, or one dimension: the total cost of each past decision."
            )
    else:
        check_not_labels(region, given.shape)
    d = C.shape[1]
    region = check_region(region, n_dim=d)
    view = region.with_rows(region_params, n, d)
    possible, weight, known = view.possible(n, d), check_weight(sample_weight, C), check_offset(offset, (n, d))
    if W is not None:
        check_feasible(W, view, possible)
    if W is not None and given.ndim == 1:
        z = _read_totals(given, W, known)
    else:
        C = _read_seen(C, W, known, possible, view.names(d))
    shape = (d,) if z is None else (d, d)
    by_row = is_array(propensity) and np.ndim(propensity) > len(shape)
    worst, flat = -1.0 if region.sense == "max" else 1.0, z is None and given.ndim == 1
    rows = None if region_params is None else row_params(**read_rows(region, region_params, n, d))
    log = Log(X, C, W, z, weight, known, possible, rows, shared=shared, worst=worst, flat=flat)
    if by_row:
        log = log._replace(propensity=read_propensity(propensity, log, (n, *shape)))
    return log, view


def _read_seen(
    C: np.ndarray, W: np.ndarray | None, offset: np.ndarray | None, possible: np.ndarray | None, names: Any
) -> np.ndarray:
    """Costs that were seen, less the offset."""
    C = C if possible is None else np.where(possible, C, np.nan)
    empty = np.isnan(C).all(axis=1) if possible is None else np.isnan(C).all(axis=1) & possible.any(axis=1)
    if empty.any():
        raise ValueError(
            f"Input y contains NaN only in {np.count_nonzero(empty)} rows, the first of which is row "
            f"{int(empty.argmax())}: no cost was seen there. Leave these rows out. If only the total of a past "
            "decision is known, pass the totals as y and the decisions as decisions=..."
        )
    if W is not None and bool((np.isnan(C) & (W != 0.0)).any()):
        row, column = np.argwhere(np.isnan(C) & (W != 0.0))[0]
        raise ValueError(
            f"The past decision of row {row} uses {say_variable(names, int(column))}, but its cost in y is NaN. If "
            "only the total was seen, y must have one dimension."
        )
    return C if offset is None else C - offset


def check_feasible(
    W: np.ndarray, region: Region, possible: np.ndarray | None, name: str = "decisions", what: str = "past decision"
) -> None:
    """Raise an error if a decision is not in the region, as far as the oracle shows it.

    No decision is below the least cost.  The costs are the direction from the decision to a center: for decisions of 0
    and 1 and the center 1/2 the test finds every point that is not in the region.
    """
    closed = np.zeros(W.shape, dtype=bool) if possible is None else ~possible
    binary = np.isin(W, (0.0, 1.0)).all()
    D = (0.5 if binary else 0.5 * (W.min(axis=0) + W.max(axis=0))) - W
    best = region.solve_min(D)
    size = 1.0 + np.abs(D).max(axis=1) * np.abs(W).sum(axis=1)
    outside = np.einsum("ij,ij->i", D, W - best) < -ORACLE_TOLERANCE * size
    normals = region._always_hidden(W.shape[1])
    outside |= np.abs((W - best) @ normals.T).max(axis=1, initial=0.0) > ORACLE_TOLERANCE * size
    outside |= (closed & (W != 0.0)).any(axis=1)
    if outside.any():
        row = int(outside.argmax())
        raise ValueError(
            f"The {what} of row {row} is not in {region.label}, and {np.count_nonzero(outside)} of {len(W)} rows are "
            f"not. {name} must have one feasible decision for each sample; check the order of the columns, and "
            "region_params."
        )


def _read_totals(z: np.ndarray, W: np.ndarray, offset: np.ndarray | None) -> np.ndarray:
    if np.isnan(z).any():
        raise ValueError(
            f"Input y contains NaN: the total of {np.count_nonzero(np.isnan(z))} past decisions, the first of which is "
            f"row {int(np.isnan(z).argmax())}, is not known. Leave these rows out."
        )
    nothing = (W == 0.0).all(axis=1) & (z != 0.0)
    if nothing.any():
        row = int(nothing.argmax())
        raise ValueError(
            f"Row {row} of decisions is zero, but its total in y is {z[row]:g}. y must be the cost of the decision; "
            "subtract costs that do not depend on it."
        )
    return z if offset is None else z - np.einsum("ij,ij->i", offset, W)


def read_propensity(propensity: Any, log: Log, shape: tuple[int, ...]) -> np.ndarray:
    """Propensities that were given, of this shape."""
    P = check_array(
        propensity, dtype=np.float64, ensure_2d=False, allow_nd=True, ensure_all_finite=False, input_name="propensity"
    )
    if P.shape != shape:
        what = "probability that each cost is seen" if log.z is None else "second moment of past decisions, E[w w^T]"
        n, d = log.C.shape
        one = (d,) if log.z is None else (d, d)
        raise ValueError(f"propensity must be the {what}, of shape {one}, or {(n, *one)} in fit, got {P.shape}.")
    if log.z is not None:
        if not np.isfinite(P).all() or not np.allclose(P, np.swapaxes(P, -1, -2)):
            raise ValueError("propensity must be finite and symmetric: the second moment of past decisions.")
        values = np.linalg.eigvalsh(P)
        if (values[..., 0] < -RANK * values[..., -1]).any() or (values[..., -1] <= 0.0).any():
            raise ValueError("propensity must be positive semidefinite and not zero: the second moment E[w w^T].")
        return P
    wrong = log.seen & ~((P > 0.0) & (P <= 1.0))  # NaN where nothing was seen is fine
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise ValueError(
            f"propensity must be above 0 and at most 1 where a cost was seen, got "
            f"{np.broadcast_to(P, log.C.shape)[row, column]:g} in row {row}, column {column}. It is the probability of "
            "seeing this cost, not its inverse."
        )
    return P
