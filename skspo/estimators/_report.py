"""Report on the decisions of a model, compared with two baselines."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array

from .._training.baselines import Baselines, fit_baselines
from .._training.fitted import (
    check_frames,
    check_metadata,
    decision_names,
    fitted_region,
    innermost,
    innermost_features,
    metadata_checked,
)
from .._training.inputs import existing_costs, say_training_share, training_share
from .._utils.confidence import NO_INTERVAL, Bootstrap, Interval, group_terms
from .._utils.errors import import_pandas
from .._utils.frames import LISTED
from .._utils.params import number
from .._utils.scaling import SMALLEST
from .._utils.shown import shown
from .._utils.types import Predictor, RegionParams
from ..losses import check_costs, check_offset, check_weight
from ..metrics import _prepare, _regrets
from ..regions._tolerances import SOLVER as ORACLE_TOLERANCE
from ..regions.base import Region
from ..regions.check import check_region

if TYPE_CHECKING:
    import pandas as pd

#: columns of the table: key, title, format
COLUMNS = (
    ("cost", "cost", "{:.4g}"),
    ("spo_loss", "regret", "{:.4g}"),
    ("normalized_spo_loss", "of best cost", "{:.2%}"),
    ("share_optimal", "optimal", "{:.1%}"),
    ("rmse", "RMSE", "{:.4g}"),
    ("size", "size", "{:.3g}"),
)

Certificate: TypeAlias = dict[str, str | float]

LEAST_SQUARES, CONSTANT = "least squares", "constant prediction"

check_level = number(above=0.0, below=1.0)

#: the report says that predictions are not costs if their size differs from that of least squares by this factor
UNLIKE = 2.0

#: resamples of each bootstrap
N_RESAMPLES = 2000


@dataclass(eq=False)
class DecisionReport:
    """Result of :func:`~skspo.decision_report`: prints as a table, also in notebooks.

    Attributes
    ----------
    rows : dict of str to dict of str to float
        Figures by model; the first is the model reported on.  NaN where a figure does not exist.
    n_samples : int
        Number of samples.
    region : Region
        Where decisions were made.
    certificate : dict
        "solver", "objective", "lower_bound" and "duality_gap" of the fit; empty if the model has none.
    note : str
        What the baselines were fitted to.
    intervals : dict of str to (float, float)
        Bootstrap intervals of the model reported on: "spo_loss", "normalized_spo_loss", and the ratio of its regret to
        that of each baseline, by its name.  NaN where there is none.
    level : float
        Level of these intervals.
    training_share : float
        Share of samples that the model was fitted to, as far as features and costs show it; NaN if it is not known.
    chosen : dict of str to (float, float)
        Mean of each decision variable in the decisions of the model and in the best ones in hindsight, by its name;
        empty if there are no names.  The largest ones are printed.
    """

    rows: dict[str, dict[str, float]]
    n_samples: int
    region: Region
    certificate: Certificate
    note: str
    intervals: dict[str, Interval]
    level: float
    training_share: float
    chosen: dict[str, tuple[float, float]]

    def to_dict(self) -> dict[str, object]:
        """Return the figures as a dictionary.

        Returns
        -------
        report : dict
            "models" (figures by model), "n_samples", "region" (as text), "certificate", "intervals", "level",
            "chosen" and "training_share".
        """
        return {
            "models": {name: dict(row) for name, row in self.rows.items()},
            "n_samples": self.n_samples,
            "region": describe_region(self.region),
            "certificate": dict(self.certificate),
            "intervals": {name: tuple(interval) for name, interval in self.intervals.items()},
            "level": self.level,
            "chosen": dict(self.chosen),
            "training_share": self.training_share,
        }

    def to_frame(self) -> pd.DataFrame:
        """Return the table with all digits.

        Returns
        -------
        table : DataFrame
            One row for each model, one column for each figure.
        """
        return import_pandas().DataFrame.from_dict(self.rows, orient="index")

    def _titles(self) -> list[str]:
        return ["value" if title == "cost" and self.region.sense == "max" else title for _, title, _ in COLUMNS]

    def _table(self) -> list[tuple[str, list[str]]]:
        return [
            (name, ["-" if np.isnan(row[key]) else form.format(row[key] + 0.0) for key, _, form in COLUMNS])
            for name, row in self.rows.items()
        ]

    def _remarks(self) -> list[str]:
        remarks = []
        name = next(iter(self.rows))
        own = self.rows[name]["spo_loss"]
        ratios = [
            f"{own / self.rows[other]['spo_loss']:.2f} times that of {other}" + self._ends(other, " ({})", "{:.2f}")
            for other in self.rows
            if other in self.intervals and self.rows[other]["spo_loss"] > 0
        ]
        if ratios:
            remarks.append(f"Its regret is {', '.join(ratios[:-1])}{' and ' * (len(ratios) > 1)}{ratios[-1]}.")
        ends = self._ends("spo_loss", "regret {}") + self._ends("normalized_spo_loss", ", {} of best cost", "{:.2%}")
        if ends:
            brackets = ", and in brackets" if any(other in self.intervals for other in self.rows) else ""
            remarks.append(f"Approximate {100 * self.level:g} % intervals (bootstrap): {ends}{brackets}.")
        ratio = self.rows[name]["size"]
        usual = self.rows.get(LEAST_SQUARES, {}).get("size") or 1.0  # below 1, by what features do not explain
        if not np.isnan(ratio) and not usual / UNLIKE <= ratio <= usual * UNLIKE:
            remarks.append(
                f"Its predictions are {ratio:.3g} times as large as the costs: they are scores for deciding. "
                "predict_rescaled returns them in the size of the costs."
            )
        if self.chosen:
            largest = sorted(self.chosen.items(), key=lambda item: -max(map(abs, item[1])))[:LISTED]
            means = ", ".join(f"{name} {mean:.3g} ({best:.3g})" for name, (mean, best) in largest)
            more = "" if len(largest) == len(self.chosen) else f"; {len(self.chosen) - len(largest)} more in chosen"
            remarks.append(f"Mean decisions (and best in hindsight): {means}{more}.")
        remarks += filter(None, [say_training_share(self.training_share)])
        remarks.append(self.note)
        if self.certificate:
            remarks.append(
                "Fit: {solver}, objective {objective:.6g}, lower bound {lower_bound:.6g}, relative gap "
                "{duality_gap:.1e}.".format_map(self.certificate)
            )
        return remarks

    def _ends(self, name: str, frame: str, form: str = "{:.4g}") -> str:
        """Interval in a frame of words; empty if there is none."""
        interval = self.intervals.get(name, NO_INTERVAL)
        return "" if np.isnan(interval.low) else frame.format(interval.text(form))

    def _title(self) -> str:
        return f"Decisions on {self.n_samples:,} samples, {describe_region(self.region)}"

    def __str__(self) -> str:
        table = self._table()
        width = max(len(name) for name in self.rows)
        widths = [max(len(t), *(len(cells[k]) for _, cells in table)) for k, t in enumerate(self._titles())]
        lines = [self._title(), ""]
        for name, cells in [("", self._titles()), *table]:
            lines.append(f"{name:<{width}}  " + "  ".join(f"{c:>{w}}" for c, w in zip(cells, widths, strict=True)))
        return "\n".join([*lines, "", *self._remarks()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(title)}</th>" for title in ("", *self._titles()))
        body = "".join(
            f"<tr><th style='text-align: left'>{html.escape(name)}</th>"
            + "".join(f"<td style='text-align: right'>{html.escape(cell)}</td>" for cell in cells)
            + "</tr>"
            for name, cells in self._table()
        )
        remarks = "<br>".join(html.escape(remark) for remark in self._remarks())
        return (
            f"<div><p><b>{html.escape(self._title())}</b></p><table><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table><p>{remarks}</p></div>"
        )


def _baselines(
    estimator: Any,
    inner: Any,
    region: Region,
    X: ArrayLike | None,
    C: ArrayLike | None,
    sample_weight: ArrayLike | None,
    offset: ArrayLike | None,
    region_params: RegionParams | None,
) -> tuple[Baselines | None, str]:
    """Baselines of the training data that ``decision_report`` was given, or those of the model; and what they are."""
    fitted: Baselines | None = getattr(inner, "_baselines", None)
    note = "The baselines were fitted to the same data as the model."
    if X is not None and C is not None:
        given = {"C_train": C, "offset_train": offset, "sample_weight": sample_weight}
        check_frames(estimator, region, X=X, region_params=region_params, **given)
        C_fit = np.asarray(C, dtype=np.float64).reshape(len(np.asarray(C)), -1)
        C_fit, possible = existing_costs(C_fit, region.with_rows(region_params, *C_fit.shape))
        fitted = fit_baselines(
            innermost_features(estimator, X),
            C_fit,
            check_weight(sample_weight, C_fit),
            check_offset(offset, C_fit.shape),
            possible,
            shared=bool(getattr(inner, "shared", False)),
            fit_intercept=bool(getattr(inner, "fit_intercept", True)),
        )
        note = "The baselines were fitted to the training data given."
    if fitted is None:
        return None, (
            "There is nothing to compare with, because this model does not keep baselines. Pass X_train and C_train, "
            "the data that it was fitted to."
        )
    if fitted.coef is None:
        note += f" No least squares: {fitted.why}"
        if X is None:
            note += " X_train and C_train, the data that the model was fitted to, are another way to get it."
    return fitted, note


def decision_report(
    estimator: Predictor,
    X: ArrayLike,
    C: ArrayLike,
    *,
    X_train: ArrayLike | None = None,
    C_train: ArrayLike | None = None,
    region: Region | None = None,
    name: str | None = None,
    sample_weight: ArrayLike | None = None,
    sample_weight_train: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    offset_train: ArrayLike | None = None,
    region_params: RegionParams | None = None,
    region_params_train: RegionParams | None = None,
    groups: ArrayLike | None = None,
    baselines: Mapping[str, Any] | None = None,
    level: float = 0.95,
) -> DecisionReport:
    """Report on the decisions of a fitted model, compared with least squares and a constant prediction.

    The two baselines are fitted to the same data as the model: least squares, on the features of the last step of a
    pipeline, and the mean cost.  Without these data there are no baselines, and no ratio is printed.

    Parameters
    ----------
    estimator : fitted estimator
        Any regressor of costs.
    X : array-like of shape (n_samples, n_features)
        Features, preferably of samples that were not used for fitting.
    C : array-like of shape (n_samples, d)
        True costs.
    X_train, C_train : array-likes, optional
        Training data, for models that do not store baselines: those of other packages, and those after
        ``partial_fit``.
    region : Region or None, default=None
        Where decisions are made; None means the estimator's own ``region_``.
    name : str or None, default=None
        Name of the model in the table; None means that of its class.
    sample_weight, sample_weight_train : array-like of shape (n_samples,), optional
        Weights of the samples in all figures, and of those of ``X_train``.
    offset, offset_train : array-likes of shape (n_samples, d) or (d,), optional
        Known part of the costs ``C`` and ``C_train``: models predict the rest.
    region_params, region_params_train : dict of array-like, or the like, optional
        Parameters of the region that vary by sample, one row per sample (see :func:`row_params`).  Those of the
        training data say which costs of ``C_train`` exist.
    groups : array-like of shape (n_samples,), optional
        Labels of samples that depend on each other, such as those of one day: intervals are computed by drawing groups.
    baselines : dict of str to array-like of shape (n_samples, d) or fitted estimator, optional
        What else to compare with, by name: decisions, such as those of the past or of today's rule, or another model.
    level : float, default=0.95
        Level of the intervals.

    Returns
    -------
    report : DecisionReport
        Prints as a table.  For each model: the mean cost of its decisions (value, if the region maximizes), the mean
        regret (SPO loss), its ratio to the mean best cost (normalized SPO
        loss), the share of samples with an optimal decision, the root mean squared error of the predicted costs, and
        the size of the predictions relative to that of the costs.  For a model that is trained for its decisions the
        last two may be large: its predictions are scores.  Intervals are BCa bootstrap intervals with a fixed seed:
        approximate, for samples that were not used for fitting, and with at least ten samples or groups.

    See Also
    --------
    held_out_risk : Proved bounds, and the comparison with any other model.
    skspo.plotting.RegretDisplay : The regret of each sample as a picture.

    Examples
    --------
    >>> from skspo import ShortestPath, SPOPlusRegressor, decision_report
    >>> from skspo.datasets import make_shortest_path
    >>> X, C = make_shortest_path(300, grid=(3, 3), degree=6, random_state=0)
    >>> model = SPOPlusRegressor(ShortestPath.grid(3, 3)).fit(X[:200], C[:200])
    >>> report = decision_report(model, X[200:], C[200:])
    >>> print(report)
    Decisions on 100 samples, ShortestPath, 12 variables
    <BLANKLINE>
                         cost  regret  of best cost  optimal  RMSE   size
    SPOPlusRegressor ...
    least squares ...
    constant prediction ...
    <BLANKLINE>
    Its regret is ... times that of least squares (...) and ... times that of constant prediction (...).
    Approximate 95 % intervals (bootstrap): regret ... to ..., ...% to ...% of best cost, and in brackets.
    The baselines were fitted to the same data as the model.
    Fit: interior-point, objective ..., lower bound ..., relative gap ...
    >>> sorted(report.to_dict()["models"]["least squares"])
    ['cost', 'normalized_spo_loss', 'rmse', 'share_optimal', 'size', 'spo_loss']

    Beside a rule of one's own, here the same path every day:

    >>> import numpy as np
    >>> rule = np.tile(model.region_.argmin(C[:200].mean(axis=0)), (100, 1))
    >>> decision_report(model, X[200:], C[200:], baselines={"our rule": rule}).to_frame().loc["our rule", "cost"]
    np.float64(...)
    """
    if (X_train is None) != (C_train is None):
        raise ValueError("X_train and C_train must be given together.")
    check_level("level", level)
    baselines = {} if baselines is None else baselines
    if not (isinstance(baselines, Mapping) and all(isinstance(other, str) for other in baselines)):
        raise TypeError(
            f"baselines must be a dict from names to decisions or fitted estimators, such as {{'our rule': W}}, got "
            f"{shown(baselines)}."
        )
    inner = innermost(estimator)
    known: Any = {"sample_weight": sample_weight, "groups": groups, "offset": offset, "region_params": region_params}
    samples = Samples.of([estimator], X, C, "report", region, **known)
    region, d = samples.region, samples.C.shape[1]
    rows: dict[str, dict[str, float]] = {}
    losses: dict[str, np.ndarray] = {}

    def add(name: str, predicted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rows[name], losses[name], size, means = samples.figures(predicted)
        return size, means

    size, means = add(type(inner).__name__ if name is None else name, samples.predicted[0])
    # Names that are only numbers, such as those of the edges of a grid, would say little.
    named = hasattr(inner, "cost_names_in_") or "variable_names" in region.get_params(deep=False)
    names = decision_names(estimator, region, d) if named else None
    known_train = sample_weight_train, offset_train, region_params_train
    fitted, note = _baselines(estimator, inner, region, X_train, C_train, *known_train)
    if fitted is not None:
        if fitted.coef is not None:
            add(LEAST_SQUARES, fitted.least_squares(innermost_features(estimator, X)))
        add(CONSTANT, np.broadcast_to(fitted.mean, samples.C.shape))
    for other, rule in baselines.items():
        if other in rows:
            raise ValueError(f"There is already a row {other!r} in the report: choose another name in baselines.")
        if hasattr(rule, "predict"):
            add(other, Samples.of([rule], X, C, "report", region, **known).predicted[0])
        else:
            check_frames(estimator, region, X=X, C=C, **{f"baselines[{other!r}]": rule})
            figures, losses[other] = samples.figures_of_rule(other, rule)
            rows[other] = {key: figures.get(key, np.nan) for key, _, _ in COLUMNS}
    certificate: Certificate = {}
    if hasattr(inner, "duality_gap_"):
        figures = {key: float(getattr(inner, f"{key}_")) for key in ("objective", "lower_bound", "duality_gap")}
        certificate = {"solver": inner.solver_, **figures}
    # Columns: weight, best cost, the model's regret, that of others.
    bootstrap = Bootstrap(samples.terms(size, *losses.values()), level, N_RESAMPLES, np.random.default_rng(0))
    intervals = {"spo_loss": bootstrap.interval(2, 0), "normalized_spo_loss": bootstrap.interval(2, 1)}
    intervals |= {other: bootstrap.interval(2, 2 + k) for k, other in enumerate(losses) if k}
    return DecisionReport(
        rows,
        n_samples=len(samples.C),
        region=region,
        certificate=certificate,
        note=note,
        intervals=intervals,
        level=float(level),
        training_share=training_share(estimator, X, samples.C),
        chosen={} if names is None else {str(x): (float(a), float(b)) for x, a, b in zip(names, *means, strict=True)},
    )


class Samples(NamedTuple):
    """True costs, predictions of fitted models, and what is known about the samples."""

    C: np.ndarray  # costs may be missing where no decision can use them
    predicted: list[np.ndarray]  # by model, without the offset
    region: Region
    weight: np.ndarray | None
    offset: np.ndarray | None
    region_params: RegionParams | None
    groups: ArrayLike | None

    @classmethod
    def of(
        cls, models: Sequence[Predictor], X: ArrayLike, C: ArrayLike, method: str, region: Region | None, **known: Any
    ) -> Samples:
        """Check the arguments of ``method``, and predict; the region is that of the first model if none is given.

        ``known`` has sample_weight, groups, offset and region_params.
        """
        predicted = []
        for model in models:
            check_metadata(model, method, offset=known["offset"], region_params=known["region_params"])
            check_frames(model, region, X=X, C=C, **known)
            with metadata_checked():  # the offset is added later
                values, C_hat = check_costs(C, model.predict(X), may_miss=True)
            predicted.append(C_hat)
        region = check_region(fitted_region(models[0], region), n_dim=values.shape[1])
        weight, offset = check_weight(known["sample_weight"], values), check_offset(known["offset"], values.shape)
        return cls(values, predicted, region, weight, offset, known["region_params"], known["groups"])

    def figures(self, C_hat: np.ndarray) -> tuple[dict[str, float], np.ndarray, np.ndarray, np.ndarray]:
        """Figures of predictions without the offset.

        Then regret and absolute best cost of each sample, and the mean of its decisions and of the best ones, (2, d).
        """
        C_hat = C_hat.reshape(self.C.shape)
        view, C_min, C_hat_min = _prepare(self.C, C_hat, self.region, self.offset, self.region_params)
        C, possible = view.to_min(C_min), view.possible(*self.C.shape)  # 0 where no cost exists
        W_hat, W = view._decide_min(C_hat_min), view.solve_min(C_min)
        figures, loss, size = self._figures_of_decisions(C_min, W_hat, W)
        C_hat = C_hat if self.offset is None else C_hat + self.offset
        own = _rmse(C, self.weight, possible)
        figures["rmse"] = _rmse(C_hat - C, self.weight, possible)
        figures["size"] = _rmse(C_hat, self.weight, possible) / own if own > 0 else np.nan
        return figures, loss, size, np.average(np.stack([W_hat, W]), axis=1, weights=self.weight)

    def figures_of_rule(self, name: str, decisions: ArrayLike) -> tuple[dict[str, float], np.ndarray]:
        """Figures and regrets of decisions that were not made by a model."""
        what = f"baselines[{name!r}]"
        if self.C.shape[1] > 1 and np.shape(decisions) != self.C.shape:
            raise ValueError(
                f"{what} must be decisions of shape {self.C.shape} or a fitted estimator, got an array of shape "
                f"{np.shape(decisions)}."
            )
        W_rule = check_array(decisions, dtype=np.float64, ensure_2d=False, input_name=what).reshape(self.C.shape)
        view, C_min, _ = _prepare(self.C, W_rule, self.region, None, self.region_params)
        W = view.solve_min(C_min)
        terms = (np.abs(C_min) * (np.abs(W_rule) + np.abs(W))).sum(axis=1)
        better = np.einsum("ij,ij->i", C_min, W_rule - W) < -ORACLE_TOLERANCE * terms
        if better.any():
            raise ValueError(
                f"{what}: decision {int(np.argmax(better))} is better than all decisions of the region "
                f"({describe_region(view)}), so it does not belong to it. Check its order, units and region_params."
            )
        return self._figures_of_decisions(C_min, W_rule, W)[:2]

    def _figures_of_decisions(
        self, C_min: np.ndarray, W_hat: np.ndarray, W: np.ndarray
    ) -> tuple[dict[str, float], np.ndarray, np.ndarray]:
        """Figures of decisions, their regret, and the absolute best cost of each sample; ``W`` are the best ones."""
        loss, z = _regrets(C_min, W_hat, W)
        size = np.average(np.abs(z), weights=self.weight)
        # Costs of two equal decisions differ by rounding.
        optimal = loss <= 1e-9 * np.maximum(np.abs(z), np.abs(C_min).max(axis=1))
        mean = np.average(loss, weights=self.weight)
        cost = np.average(np.einsum("ij,ij->i", C_min, W_hat), weights=self.weight)
        figures = {
            "cost": float(-cost if self.region.sense == "max" else cost),
            "spo_loss": float(mean),
            "normalized_spo_loss": float(mean / size) if size > 0 else np.nan,
            "share_optimal": float(np.average(optimal, weights=self.weight)),
        }
        return figures, loss, np.abs(z)

    def terms(self, *columns: np.ndarray) -> np.ndarray:
        """Weights and weighted figures of samples, or of groups."""
        return group_terms(np.column_stack(columns), self.weight, self.groups)


def _rmse(errors: np.ndarray, weight: np.ndarray | None, possible: np.ndarray | None) -> float:
    """Root of the mean squared error of the costs that exist; 0 if none does."""
    squares = np.square(errors)
    if possible is None:
        return float(np.sqrt(np.average(squares.mean(axis=1), weights=weight)))
    share = possible if weight is None else possible * weight[:, None]
    return float(np.sqrt((share * squares).sum() / max(float(share.sum()), SMALLEST)))


def describe_region(region: Region) -> str:
    """Short description of a region, without parameters, which may be large arrays."""
    words = [type(region).__name__]
    if region.n_dim is not None:
        words.append(f"{region.n_dim} variables")
    if region.sense == "max":
        words.append("maximized")
    return ", ".join(words)
