"""Validation of training data, and the attributes that describe them.

An estimator keeps hashes of some of its training rows, so that figures on training data can say so.  The smallest
hashes are kept.  Of the rows of other data, those with a hash below the largest kept one are a random sample, and the
share of them that is kept estimates the share of training rows.  It is exact if all hashes are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator
from sklearn.utils import get_tags
from sklearn.utils.validation import check_array, check_consistent_length, validate_data

from .._utils.errors import warn_once
from .._utils.frames import check_values, column_names
from .._utils.limits import BLOCK_ELEMENTS, check_interrupt, interrupts_arrive
from .._utils.scaling import SMALLEST, check_largest, largest, power_of_two, relative_weight
from .._utils.types import RegionParams
from ..losses import check_existing, check_offset, check_weight
from ..regions._names import say_variable
from ..regions.base import Region
from ..regions.capabilities import project_visible
from ..regions.check import check_not_labels, same_value
from .design import apply_model, check_blocks
from .fitted import check_frames, check_metadata, innermost, innermost_features
from .sparse import as_csr, is_small, to_dense

#: so many times all other costs is a price and not data: there is no cost in between, over two powers of ten
PRICE = 1e2

#: attributes of a fitted estimator, by name
Attributes: TypeAlias = dict[str, Any]


def check_ndim(y: object) -> None:
    """Raise an error if costs have more than two dimensions."""
    # The error of scikit-learn does not say whether it is about X or y.
    if getattr(y, "ndim", 1) > 2:
        raise ValueError(f"y must have shape (n_samples, n_costs) or (n_samples,), got {getattr(y, 'shape', None)}.")


class TrainingData(NamedTuple):
    """Validated data, and the attributes that the estimator gets if the fit succeeds."""

    X: np.ndarray | csr_array
    C: np.ndarray
    weight: np.ndarray | None
    offset: np.ndarray | None
    input_attributes: Attributes
    possible: np.ndarray | None = None  # which costs exist, the others are 0

    def nearest_factor(self, coef: np.ndarray, intercept: np.ndarray | float, region: Region) -> float:
        """Factor of ``predict_rescaled`` for a linear model; known costs leave no choice."""
        if known_in(region, self.C).size:
            return 1.0
        C_hat = apply_model(self.X, coef, intercept)
        C_hat = C_hat if self.offset is None else C_hat + self.offset
        return nearest_factor(self.C, C_hat, region._always_hidden(self.C.shape[1]), self.weight, self.possible)

    @property
    def mean_cost(self) -> np.ndarray:
        """Mean of the costs minus the offset."""
        return mean_cost(self.C, self.weight, self.offset, self.possible)

    def take(self, rows: np.ndarray) -> TrainingData:
        """Some of the samples."""
        by_row = (self.weight, self.offset, self.possible)
        weight, offset, possible = (None if array is None else array[rows] for array in by_row)
        return TrainingData(self.X[rows], self.C[rows], weight, offset, self.input_attributes, possible)

    def within(self, *regions: Region) -> TrainingData:
        """The same with 0 for costs that no decision of these regions can use; an error if others are missing."""
        C, possible = existing_costs(self.C, *regions, names=self.input_attributes.get("cost_names_in_"))
        check_largest(y=C)
        return self._replace(C=C, possible=possible)

    def learn_bounds(self, region: Region, view: Region, previous: Any = None) -> Region:
        """Region to be stored: ``learn_region``, or that of an earlier call of ``partial_fit``."""
        if previous is not None and same_value(region, previous.region_):
            return previous.region_
        view._check_true_costs(view.to_min(self.C))
        return learn_region(region, self.C, self.weight, self.possible)


def learn_region(
    region: Region, C: np.ndarray, weight: np.ndarray | None, possible: np.ndarray | None, rows: Any = slice(None)
) -> Region:
    """Region with ``cost_bounds`` that are learned from some rows of the costs, if they are to be learned."""
    some, weight, possible = (None if array is None else array[rows] for array in (C, weight, possible))
    assert some is not None
    return region._learn_bounds(some, mean_cost(some, weight, None, possible))


def existing_costs(
    C: np.ndarray, *regions: Region, names: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray | None]:
    """``check_existing`` for training: warn about costs that exist in no row, although others are missing in some rows.

    Costs and the mask are those of ``check_existing``.
    """
    C, possible = check_existing(C, *regions, names=names)
    warn_prices(C, regions[0], names)
    if possible is None:
        return C, None
    never = np.flatnonzero(~possible.any(axis=0))
    if never.size and (possible != possible[:1]).any():
        warn_once(
            f"No sample has a cost for {never.size} of {C.shape[1]} decision variables, the first of which is number "
            f"{never[0]}: none of them is possible in any row (region_params). Nothing can be learned about them, and "
            "models with one regression per cost predict 0. Add samples where they are possible, or leave them out.",
        )
    return C, possible


def warn_prices(C: np.ndarray, region: Region, names: np.ndarray | None) -> None:
    """Warn about costs that are far above all others of their decision variable: prices of forbidden options.

    Costs near the largest one of their decision are the same price.  A constant price is compared with the costs of
    other decisions, which may have another unit, so that it must be much larger.
    """
    sizes = np.abs(np.asarray(C, dtype=np.float64))
    top = sizes.max(axis=0, initial=0.0)
    high = sizes > PRICE**-0.5 * top
    low = np.where(high, 0.0, sizes).max(axis=0, initial=0.0)
    is_price = (low > np.finfo(float).eps * top) & (PRICE**-0.5 * top > PRICE * low)
    # Of usual costs below a tenth of the largest one, one in a hundred is that low by chance, and three never are.
    is_price &= (~high).sum(axis=0) >= 3
    constant = high.all(axis=0) & (sizes.min(axis=0, initial=np.inf) == top)
    is_price |= constant & (top > PRICE**3 * top[~is_price & ~constant].max(initial=np.inf if constant.all() else 0.0))
    prices = high & is_price
    prices &= ~prices.all(axis=1)[:, None]  # nothing is forbidden where all costs are high: the sample has another unit
    if not prices.any():
        return
    rows, columns = np.nonzero(prices)
    row, column = int(rows[0]), int(columns[0])
    where = say_variable(region.names(C.shape[1]) if names is None else names, column)
    by_row = [name for name in ("available", "upper") if name in region.row_shapes(C.shape[1])]
    remedy = f"region_params={{{by_row[0]!r}: ...}}" if by_row else "a region without it"
    warn_once(
        f"{rows.size} costs are more than {PRICE:.0f} times as large as all others of their decision, the first of "
        f"which is {C[row, column]:.4g}, in row {row}, of {where}. If such a price forbids an option, exclude it with "
        f"{remedy}; its cost may then be NaN. Here the prices dominate the loss, so that the relative gap says "
        "little about the other costs, and least squares predicts prices everywhere. A price somewhat above what the "
        "other costs of a decision add up to is high enough."
    )


#: attributes that not every fit sets
OPTIONAL = ("feature_names_in_", "cost_names_in_", "cv_predictions_", "_baselines", "prediction_factor_", "_seen")


def set_fitted(estimator: object, learned: Attributes, forget: tuple[str, ...] = ()) -> None:
    """Set the fitted attributes, in one step so that an interrupt cannot leave half of them, and remove older ones."""
    check_interrupt()
    attributes = vars(estimator)
    attributes.update(learned)
    for name in {*OPTIONAL, *forget} - learned.keys():
        attributes.pop(name, None)


@contextmanager
def restore_rng_on_failure(estimator: object, rng: object) -> Iterator[None]:
    """Restore a ``RandomState`` if a fit fails, so that a second try draws the same numbers; Ctrl-C is not lost.

    Nothing is restored once ``set_fitted`` has set the attributes.
    """
    state = rng.get_state() if isinstance(rng, np.random.RandomState) else None
    before = vars(estimator).get("_columns_in")  # every fit has its own
    try:
        with interrupts_arrive():
            yield
    except BaseException:
        if state is not None and vars(estimator).get("_columns_in") is before:
            rng.set_state(state)  # type: ignore[attr-defined]
        raise


def feature_attributes(noted: object) -> Attributes:
    """Number and names of features, as scikit-learn has stored them on an estimator."""
    names = ("n_features_in_", "feature_names_in_")
    return {name: vars(noted)[name] for name in names if name in vars(noted)}


def has_no_names(data: object) -> bool:
    """Whether an argument is an array of numbers, or not given: it has neither names nor index, and no text."""
    return data is None or (type(data) is np.ndarray and data.dtype.kind in "biuf")


def frame_attributes(
    estimator: object,
    X: object,
    y: object,
    *,
    reset: bool,
    sample_weight: object = None,
    groups: object = None,
    offset: object = None,
    region_params: RegionParams | None = None,
) -> Attributes:
    """Names of the costs and of the metadata, checked against each other, and against the last fit unless ``reset``."""
    rows = {"X": X, "y": y, "sample_weight": sample_weight, "groups": groups, "offset": offset}
    model, region = None if reset else estimator, getattr(estimator, "region", None)
    columns: Attributes = {}
    if not (reset and region_params is None and all(map(has_no_names, rows.values()))):
        columns = check_frames(model, region, region_params=region_params, **rows)
    metadata = {"offset": offset, "region_params": region_params}
    names = None if has_no_names(y) else column_names(y)
    given = frozenset(name for name, value in metadata.items() if value is not None)
    if not reset:
        check_metadata(estimator, "partial_fit", **metadata)
        names = getattr(estimator, "cost_names_in_", None)
        given |= getattr(estimator, "_fitted_with", frozenset())
    attributes: Attributes = {"_fitted_with": given, "_columns_in": columns, "_known_costs": known_in(region, y)}
    return attributes if names is None else attributes | {"cost_names_in_": names}


def check_training_data(
    estimator: BaseEstimator,
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    offset: ArrayLike | None,
    region_params: RegionParams | None = None,
    *,
    reset: bool,
) -> TrainingData:
    """Validate features, costs, weights and offset, and names and index of ``region_params``.

    Costs may be NaN or infinite until ``TrainingData.within`` has looked at the region.
    """
    check_ndim(y)
    attributes = frame_attributes(
        estimator, X, y, reset=reset, sample_weight=sample_weight, offset=offset, region_params=region_params
    )
    if not has_no_names(X):
        check_values("X", X)
    # On a copy: if the fit fails, an earlier model is unchanged.
    noted = object.__new__(type(estimator))
    vars(noted).update(vars(estimator))
    accepted = "csr" if get_tags(estimator).input_tags.sparse else False
    with np.errstate(over="ignore", invalid="ignore"):  # the check for infinity computes a sum
        X_arr, C = validate_data(
            noted,
            X,
            y,
            reset=reset,
            validate_separately=(
                {"dtype": np.float64, "accept_sparse": accepted, "estimator": noted},
                {"dtype": np.float64, "ensure_2d": False, "ensure_all_finite": False, "estimator": noted},
            ),
        )
        check_consistent_length(X_arr, C)
    check_not_labels(getattr(estimator, "region", None), C.shape)
    attributes |= feature_attributes(noted) | {"_y_is_1d": C.ndim == 1}
    C = C.reshape(X_arr.shape[0], -1)
    if getattr(estimator, "shared", False):
        check_blocks(X_arr.shape[1], C.shape[1])
    if issparse(X_arr):
        X_arr = as_csr(X_arr)
        if not getattr(estimator, "_keeps_sparse", False) or getattr(estimator, "shared", False):
            X_arr = to_dense(X_arr, type(estimator).__name__)
        elif is_small(X_arr):
            X_arr = X_arr.toarray()
    seen, before = Seen.of(X_arr, C), None if reset else getattr(estimator, "_seen", None)
    attributes["_seen"] = seen if before is None else seen | before
    known = check_offset(offset, C.shape)
    check_largest(X=X_arr.data if issparse(X_arr) else X_arr, offset=known)
    return TrainingData(X_arr, C, relative_weight(check_weight(sample_weight, X_arr)), known, attributes)


# -- what describes the costs ------------------------------------------------------------------------------------------


def known_in(region: object, y: Any) -> np.ndarray:
    """Indices of the costs that the region knows to be 1 (``LinearImage.extend``), and that are 1 in the data."""
    d = region.n_dim if isinstance(region, Region) else None
    known = np.zeros(0, dtype=np.intp)
    if isinstance(region, Region) and d is not None:
        known = np.array(region._known_costs(d), dtype=np.intp)
    if not known.size or np.shape(y)[1:] != (d,):
        return known[:0]
    return known[(np.asarray(y)[:, known] == 1.0).all(axis=0)]


def mean_cost(
    C: np.ndarray, weight: np.ndarray | None, offset: np.ndarray | None, possible: np.ndarray | None = None
) -> np.ndarray:
    """Weighted mean of the costs minus the offset, of those that exist; 0 if none does."""
    target = C if offset is None else C - offset
    if possible is None:
        return np.average(target, axis=0, weights=weight)
    share = possible if weight is None else possible * weight[:, None]
    total = share.sum(axis=0)
    return (share * target).sum(axis=0) / np.where(total > 0, total, 1.0)


def nearest_factor(
    C: np.ndarray,
    C_hat: np.ndarray,
    normals: np.ndarray,
    weight: np.ndarray | None = None,
    possible: np.ndarray | None = None,
) -> float:
    """Positive number for the visible component of predictions that brings them nearest to the costs; 1 if none does.

    Both include the offset.  ``possible`` says which costs exist.
    """
    # In units of the largest entries (powers of two: exact), so that squares neither overflow nor vanish.
    unit, unit_hat = (power_of_two(max(largest(x), SMALLEST)) for x in (C, C_hat))
    scaled = C_hat.reshape(C.shape) / unit_hat
    visible = project_visible(scaled, normals)
    weighted = visible if weight is None else visible * weight[:, None]
    weighted = weighted if possible is None else np.where(possible, weighted, 0.0)
    with np.errstate(over="ignore", under="ignore"):
        rest = C / unit - (scaled - visible) * (unit_hat / unit)
        product, square = float(np.vdot(weighted, rest)), float(np.vdot(weighted, visible))
        factor = product / square * (unit / unit_hat) if product > 0.0 < square else 1.0
    return factor if 0.0 < factor < np.inf else 1.0


# -- which samples a model was trained with ----------------------------------------------------------------------------

#: number of hashes that are kept: 8 kB
KEPT = 1024


class Seen(NamedTuple):
    """Hashes of training rows."""

    hashes: np.ndarray  # sorted, the smallest ones
    complete: bool  # whether these are all

    @classmethod
    def of(cls, X: Any, C: np.ndarray) -> Seen:
        """Hashes of rows of features and costs."""
        hashes = np.unique(row_hashes(X, C))
        return cls(hashes[:KEPT], hashes.size <= KEPT)

    def __or__(self, other: Seen) -> Seen:
        """Hashes of the rows of both."""
        ends = [part.hashes[-1] for part in (self, other) if not part.complete]
        hashes = np.union1d(self.hashes, other.hashes)
        hashes = hashes[hashes <= min(ends)] if ends else hashes
        return Seen(hashes[:KEPT], hashes.size <= KEPT and not ends)

    def share(self, X: Any, C: np.ndarray) -> float:
        """Share of rows that are training rows, or equal to one; NaN if no row can be judged."""
        hashes = row_hashes(X, C)
        hashes = hashes if self.complete else hashes[hashes <= self.hashes[-1]]
        return float(np.isin(hashes, self.hashes).mean()) if hashes.size else np.nan


def row_hashes(X: Any, C: np.ndarray) -> np.ndarray:
    """One hash of 64 bits for each row of features and costs, in single precision: rounding changes few.

    A zero adds nothing, so that sparse and dense features have the same hash.
    """
    p, d = X.shape[1], C.shape[1]
    factors = _mix(np.arange(1, p + d + 1, dtype=np.uint64)) | np.uint64(1)
    total = np.empty(C.shape[0], dtype=np.uint64)
    block = max(1, BLOCK_ELEMENTS // (p + d))
    for start in range(0, C.shape[0], block):
        rows = slice(start, start + block)
        total[rows] = _bits(C[rows]) @ factors[p:]
        if issparse(X):
            part = csr_array(X[rows])
            bits = csr_array((_bits(part.data), part.indices, part.indptr), shape=part.shape)
            total[rows] += bits @ factors[:p]
        else:
            total[rows] += _bits(X[rows]) @ factors[:p]
    return _mix(total)


def _bits(values: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        single = np.ascontiguousarray(values, dtype=np.float32) + np.float32(0.0)  # -0 is 0
    return single.view(np.uint32).astype(np.uint64)


def _mix(x: np.ndarray) -> np.ndarray:
    """Spread the bits of 64-bit numbers (splitmix64, Steele, Lea and Flood, 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def seen_or_none(X: ArrayLike, C: np.ndarray) -> Seen | None:
    """Hashes of rows; None if the features are not numbers."""
    features = _numbers(X)
    return None if features is None else Seen.of(features, C)


def training_share(estimator: object, X: ArrayLike, C: np.ndarray) -> float:
    """Share of samples that are training rows of a fitted model, or equal to one; NaN if it is not known."""
    seen = getattr(innermost(estimator), "_seen", None)
    if seen is None:
        return np.nan
    features = _numbers(innermost_features(estimator, X))
    return np.nan if features is None or features.shape[0] != len(C) else seen.share(features, C)


def _numbers(X: ArrayLike) -> Any:
    try:
        return check_array(X, dtype=np.float64, accept_sparse="csr", ensure_all_finite=False)
    except (TypeError, ValueError):
        return None


def say_training_share(share: float) -> str:
    """Remark on figures; empty if no sample is known to be one of training."""
    if not share > 0:
        return ""
    which = "All samples are" if share == 1 else f"About {share:.0%} of the samples are"
    return f"{which} among those that the model was fitted to: such figures are too good. Use other samples."
