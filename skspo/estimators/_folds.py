"""One fold of a cross-validation: a path of models on its training part, and their scores on its held-out part."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from numbers import Integral
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from sklearn import get_config
from sklearn.model_selection import BaseCrossValidator, GroupKFold, KFold, check_cv
from sklearn.utils import check_consistent_length

from .._training.design import apply_model
from .._training.in_memory import InMemoryObjective
from .._training.inputs import TrainingData, known_in, learn_region
from .._training.run import Run
from .._utils.frames import take_rows
from .._utils.limits import Deadline, TimeIsUp, check_time, count_workers
from .._utils.progress import Activity, silent
from .._utils.scaling import relative_weight
from ..losses import SPOPlusLoss
from ..regions.base import Region
from ._path import Outcome, PathPoint, PenaltyPath

#: Folds by default, as in scikit-learn.
N_FOLDS = KFold().n_splits

#: Standard errors by which the SPO loss of another candidate must be lower to replace the one that is preferred.
#: Measured for ``SPORegressorCV`` on paths and on the portfolio (``benchmarks/spo_cv.py``, 36 draws): the worst draw
#: loses 6 % against the start with 1 and with 1.5, and less than 0.1 % with 2.
SIGNIFICANT = 2.0

#: as everywhere in scikit-learn
Splitter: TypeAlias = int | BaseCrossValidator | Iterable[tuple[np.ndarray, np.ndarray]]

#: training and held-out rows of each fold
Splits: TypeAlias = list[tuple[np.ndarray, np.ndarray]]

#: returns training and held-out data of a fold, from all data and the rows of both
Parts: TypeAlias = Callable[[TrainingData, np.ndarray, np.ndarray], Iterable[TrainingData]]

#: coefficients and intercept
Model: TypeAlias = tuple[np.ndarray, np.ndarray | float]


def cv_splits(
    cv: Splitter | None,
    X: Any,
    C: np.ndarray,
    weight: np.ndarray | None,
    groups: ArrayLike | None = None,
    *,
    scored: bool = True,
) -> Splits:
    """Training and held-out rows of each fold; None means five folds, or as many as there are samples.

    With groups, None and numbers mean folds of whole groups.
    ``scored``: held-out losses are averaged with the weights, which then must not all be zero.
    """
    n = X.shape[0]
    if n < 2:
        raise ValueError(f"Cross-validation needs at least 2 samples to hold some out, got n_samples={n}.")
    check_consistent_length(X, groups)
    if groups is not None and (cv is None or isinstance(cv, Integral)):
        n_groups = len(np.unique(np.asarray(groups)))
        if n_groups < 2:
            raise ValueError("Cross-validation needs at least 2 groups to hold some out, got 1.")
        cv = GroupKFold(min(N_FOLDS, n_groups) if cv is None else int(cv))
    splits = list((KFold(min(N_FOLDS, n)) if cv is None else check_cv(cv)).split(X, C, groups))
    if not any(len(test) for _, test in splits):
        raise ValueError("cv holds no sample out. Use another cv.")
    if weight is not None and any(not weight[train].any() for train, _ in splits):
        raise ValueError("sample_weight is zero for every training sample of a fold. Use another cv.")
    if scored and weight is not None and not any(weight[test].any() for _, test in splits):
        raise ValueError("sample_weight is zero for every sample that cv holds out. Use another cv.")
    return splits


def numbers_in_memory() -> int:
    """How many numbers fit into the working memory of scikit-learn's configuration, 1 GB by default."""
    return int(get_config()["working_memory"] * 2**20) // 8


class Scores(NamedTuple):
    """Mean losses of a model on held-out samples, its score, and the regret of each sample."""

    spo: float
    spo_plus: float
    score: float
    regret: np.ndarray


class Fold:
    """Path of models of one fold; it grows by ``advance``, and can go to another process between two calls.

    ``model`` is the ``SPOPlusRegressorCV``; ``score`` scores its models on held-out data, and None means minus their
    mean SPO+ loss, or SPO loss.  ``n_fits`` is the number of fits of all folds.  ``parts`` returns both parts of the
    data, if their features are not rows of those of ``data``.  ``groups`` has the number of the group of each sample.
    """

    def __init__(
        self,
        model: Any,
        region: Region,
        training_region: Region,
        data: TrainingData,
        train: np.ndarray,
        test: np.ndarray,
        *,
        name: str,
        score: Callable[[PathPoint, TrainingData], float] | None,
        n_fits: int,
        parts: Parts | None,
        groups: np.ndarray | None,
    ) -> None:
        learned = learn_region(region, data.C, data.weight, data.possible, train)
        self.region, self.held_out = learned.take(test), data.take(test)
        weight = self.held_out.weight
        self.weight = np.ones(len(test)) if weight is None else weight
        self.size, self.groups = float(self.weight.sum()), take_rows(groups, test)
        #: numbers in the training part: features, costs and decisions
        self.numbers = len(train) * (data.X.shape[1] + 4 * data.C.shape[1])
        self.model, self.name, self.score, self.n_fits = model, name, score, n_fits
        self.scores: list[Scores | None] = []  # of the models so far; None if there was no time
        self.outcomes: list[Outcome] = []
        self.models: list[Model] = []
        self._path: PenaltyPath | None = None
        self._optimal: np.ndarray | None = None  # decisions
        # The training part is copied when it is needed.
        training_region = learned if training_region is region else training_region
        self._begin: Any = (training_region, data, train, test, parts)

    def advance(self, alphas: np.ndarray, n_left: int, deadline: Deadline, part: float) -> Fold:
        """Fit and score models for the next alphas; the first call also computes the optimal decisions.

        From now on, this fold gets a part of the time that is left, for all of its ``n_left`` remaining alphas.
        """
        deadline = deadline.share(part)
        if self._path is None:
            training_region, data, train, test, parts = self._begin
            with deadline.enforced():
                known, self.held_out = (data.take(train), self.held_out) if parts is None else parts(data, train, test)
                objective = self.model._training_problem(training_region.take(train), known)
            options = self.model._options()._replace(tol=self.model._cv_tol)
            self._path = PenaltyPath(objective, Run(n_fits=self.n_fits), float(self.model.l1_ratio), options)
            self._begin = None
        with Activity(self.name, self.model.verbose):
            points = self._path.extend(alphas, deadline, n_left, lambda point: self._judge(point, deadline))
        for point in points:
            self.outcomes.append(point.outcome)
            self.models.append(point.objective.to_user(point.result.coef))
        return self

    @property
    def objective(self) -> InMemoryObjective:
        """Training problem."""
        assert self._path is not None
        return self._path.objective

    @property
    def inexact(self) -> bool:
        """Whether an oracle, of training or of decisions, was found not to be optimal."""
        return self.region._fault is not None or any(outcome.inexact for outcome in self.outcomes)

    def table(self) -> np.ndarray:
        """SPO losses, SPO+ losses and scores of the models, shape (3, n_models); zero if there was no time for any."""
        known = [scores for scores in self.scores if scores is not None]
        if not known:
            return np.zeros((3, len(self.outcomes)))
        return np.array([(known[0] if scores is None else scores)[:3] for scores in self.scores]).T

    @property
    def share(self) -> float:
        """Weight of the held-out samples; zero if no model was scored."""
        return self.size if any(scores is not None for scores in self.scores) else 0.0

    def _judge(self, point: PathPoint, deadline: Deadline) -> None:
        last = self.scores[-1] if self.scores else None
        # A copied model has the score of the original; if nothing is held out, there is no score.
        if point.fitted and self.size > 0:
            try:
                with deadline.enforced():
                    check_time()
                    last = self._scores_of(point)
            except TimeIsUp:
                pass  # repeat the last score
        self.scores.append(last)

    def _scores_of(self, point: PathPoint) -> Scores:
        region, relative = self.region, relative_weight(self.held_out.weight)
        C_hat = self.predict(*point.objective.to_user(point.result.coef))
        regret = self.regret(C_hat)
        plus = SPOPlusLoss(region).value_min(region, region.to_min(self.held_out.C), C_hat, self._optimal)
        spo, spo_plus = (float(np.average(losses, weights=relative)) for losses in (regret, plus))
        score = -spo if self.model.scoring == "spo_loss" else -spo_plus
        return Scores(spo, spo_plus, score if self.score is None else self.score(point, self.held_out), regret)

    def predict(self, coef: np.ndarray, intercept: np.ndarray | float) -> np.ndarray:
        """Predictions of the held-out samples, to be minimized, with the offset and what is known of the costs."""
        X, C, _, offset, *_ = self.held_out
        C_hat = apply_model(X, coef, intercept)
        C_hat = self.region.to_min(C_hat if offset is None else C_hat + offset)
        known = known_in(self.region, C)
        C_hat[:, known] = self.region.to_min(C)[:, known]
        return C_hat

    def regret(self, C_hat: np.ndarray) -> np.ndarray:
        """Regret of each held-out sample."""
        costs = self.region.to_min(self.held_out.C)
        if self._optimal is None:
            self._optimal = self.region.solve_min(costs)
        regret = np.einsum("ij,ij->i", costs, self.region._decide_min(C_hat) - self._optimal)
        # A regret of -1e-17 is zero; with a heuristic, negative regrets are real.
        return np.maximum(regret, 0.0) if self.region._fault is None else regret


def excess_regret(
    regret: np.ndarray, weight: np.ndarray, codes: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Mean regret of each candidate above the lowest one, and the standard error of this difference.

    All candidates have the same samples, so these are paired differences.  ``regret`` has shape (m, k); with ``codes``,
    the number of the group of each sample, groups are independent, and not samples.
    """
    share = weight / weight.sum()
    best = int(np.argmin(share @ regret))
    difference = regret - regret[:, [best]]
    mean = share @ difference
    terms = share[:, None] * (difference - mean)
    if codes is not None:
        samples, terms = terms, np.zeros((codes.max() + 1, terms.shape[1]))
        np.add.at(terms, codes, samples)
    return mean, np.sqrt(np.square(terms).sum(axis=0))


def protected(best: int, folds: list[Fold], n_fitted: int) -> int:
    """Return the candidate chosen by the SPO+ loss, unless its decisions are significantly worse than another's."""
    parts, codes = [], []
    for fold in folds:
        known = [scores.regret for scores in fold.scores[:n_fitted] if scores is not None]
        if len(known) == n_fitted:  # otherwise there was no time, or nothing was held out
            parts.append((np.stack(known, axis=1), fold.weight))
            codes += [] if fold.groups is None else [fold.groups]
    if not any(weight.any() for _, weight in parts):
        return best
    regret, weights = (np.concatenate(values) for values in zip(*parts, strict=True))
    excess, error = excess_regret(regret, weights, np.concatenate(codes) if codes else None)
    return int(np.argmin(excess)) if excess[best] > SIGNIFICANT * error[best] else best


class Table(NamedTuple):
    """Results of folds (rows) for alphas (columns); NaN where no model was fitted."""

    scores: np.ndarray
    spo: np.ndarray
    spo_plus: np.ndarray
    size: np.ndarray  # weight of the held-out samples of each fold
    pooled: bool  # whether scores are losses, which are averaged over samples; others are averaged over folds
    n_fitted: int  # number of alphas with models

    def mean(self, values: np.ndarray) -> np.ndarray:
        """Mean over folds."""
        return np.average(values, axis=0, weights=self.size if self.pooled else None)


def choose(folds: list[Fold], table: Table, *, guarded: bool) -> int:
    """Best candidate; ``guarded``: unless another has significantly better decisions (see ``protected``)."""
    mean = table.mean(table.scores)
    # Ties, up to rounding, go to the larger alpha.
    best = int(np.flatnonzero(mean >= np.nanmax(mean) - 1e-9 * np.nanmax(np.abs(mean)))[0])
    exact = guarded and not any(fold.inexact for fold in folds)
    return protected(best, folds, table.n_fitted) if exact else best


def tabulate(folds: list[Fold], n_alphas: int, pooled: bool, guarded: bool, n_fitted: int | None = None) -> Table:
    """Table of what the folds have, of the first alphas; ``guarded``: scores are SPO losses if an oracle is inexact."""
    n_fitted = len(folds[0].outcomes) if n_fitted is None else n_fitted
    values = np.full((3, len(folds), n_alphas), np.nan)
    for k, fold in enumerate(folds):
        values[:, k, :n_fitted] = fold.table()[:, :n_fitted]
    spo, spo_plus, scores = values
    if guarded and any(fold.inexact for fold in folds):
        # If the oracle is not optimal, the SPO+ loss is not reliable; the cost of decisions is.
        scores = -spo
    size = np.array([fold.share for fold in folds])
    if not size.any():  # there was no time for any fold
        size = np.ones(len(folds))
    return Table(scores, spo, spo_plus, size, pooled, n_fitted)


def end_of_path(table: Table, patience: int) -> int | None:
    """Number of alphas after which the path ends, because scores and SPO+ losses have become worse; None: it goes on.

    Both end when ``patience`` in a row are worse than the best by more than a standard error over folds.  The SPO+ loss
    is less noisy than most scores.
    """
    ends = []
    for scores in (table.scores, -table.spo_plus):
        mean, best, worse = table.mean(scores), 0, 0
        for k in range(1, table.n_fitted):
            if mean[k] > mean[best]:
                best, worse = k, 0
                continue
            loss = scores[:, best] - scores[:, k]
            error = np.sqrt(table.mean((loss - mean[best] + mean[k]) ** 2) / max(len(scores) - 1, 1))
            worse = worse + 1 if mean[best] - mean[k] > error else 0
            if worse == patience:
                ends.append(k + 1)
                break
        else:
            return None
    return max(ends)


def fit_folds(
    folds: list[Fold],
    alphas: np.ndarray,
    deadline: Deadline,
    n_jobs: int | None,
    patience: int | None,
    *,
    pooled: bool,
    guarded: bool,
    activity: Activity,
) -> tuple[list[Fold], Table]:
    """Fit and score the paths of all folds, ``n_jobs`` at the same time.

    Folds take turns, a few alphas each, so that the paths end where the mean score over folds says so
    (``end_of_path``).  If all folds together are too large to be kept in memory, each is fitted to its end.  The
    deadline is that of the folds and of the fit to all data.  The table does not depend on ``n_jobs``.
    """
    jobs = count_workers(n_jobs, len(folds))
    turns = -(-len(folds) // jobs)
    step = len(alphas)
    if patience is not None and sum(fold.numbers for fold in folds) <= numbers_in_memory():
        step = 1 if jobs == 1 else patience
    n_left = len(alphas)
    # The first turn is for the optimal decisions; they may take longer than the time of one model.
    size = 0 if step < n_left else n_left
    run = (lambda func: func) if jobs == 1 else silent
    with Parallel(n_jobs=jobs, return_as="generator") as parallel:
        while True:
            batch = alphas[len(alphas) - n_left :][:size]
            # Fits until the end, one after the other: those of folds that have had their turn, the others, and the
            # fit to all data, which gets as much time as a path.
            after = n_left - len(batch)
            ahead = [(turns - k) * n_left + k * after + len(alphas) for k in range(turns)]
            advanced = parallel(
                delayed(run(fold.advance))(batch, n_left, deadline, n_left / ahead[k // jobs])
                for k, fold in enumerate(folds)
            )
            folds = []
            for fold in advanced:
                folds.append(fold)
                activity.advance(len(batch))
                now = f"{len(fold.outcomes)} of {len(alphas)} alphas" if len(batch) else "optimal decisions"
                activity.update("" if jobs == 1 else f"{fold.name}, {now}")
            n_left = after
            table = tabulate(folds, len(alphas), pooled, guarded)
            end = None if patience is None else end_of_path(table, patience)
            if end is not None:
                return folds, tabulate(folds, len(alphas), pooled, guarded, end)
            if not n_left:
                return folds, table
            # Without time the other candidates are copies, all at once.
            size = step if deadline.left() > 0 else n_left


class Search(NamedTuple):
    """Folds with their models, and the candidate that was chosen by them."""

    folds: list[Fold]
    table: Table
    alphas: np.ndarray
    best: int
    splits: Splits
    guarded: bool

    @property
    def outcomes(self) -> list[Outcome]:
        """How well the fits converged."""
        return [outcome for fold in self.folds for outcome in fold.outcomes[: self.table.n_fitted]]

    def chosen_without(self) -> list[int]:
        """For each fold, the best candidate of the folds that hold out other samples; ``best`` if there are none."""
        choices = []
        for _, test in self.splits:
            separate = [not np.isin(other, test).any() for _, other in self.splits]
            others = np.flatnonzero(np.array(separate) & (self.table.size > 0))
            scores, spo, spo_plus, size = (values[others] for values in self.table[:4])
            rest = self.table._replace(scores=scores, spo=spo, spo_plus=spo_plus, size=size)
            folds = [self.folds[k] for k in others]
            choices.append(choose(folds, rest, guarded=self.guarded) if folds else self.best)
        return choices

    def results(self) -> dict[str, np.ndarray]:
        """Scores and losses of the candidates, as ``cv_results_``."""
        table = self.table
        return cv_table("alpha", self.alphas, table.scores, table.mean(table.scores), table.mean) | {
            "mean_test_spo_loss": np.average(table.spo, axis=0, weights=table.size),
            "mean_test_spo_plus_loss": np.average(table.spo_plus, axis=0, weights=table.size),
        }


def cv_table(
    name: str,
    candidates: np.ndarray,
    scores: np.ndarray,
    mean: np.ndarray,
    over_folds: Callable[[np.ndarray], np.ndarray],
) -> dict[str, np.ndarray]:
    """Scores of folds (rows) and candidates, as in ``cv_results_``; candidates that were not fitted are last."""
    known = np.nan_to_num(mean, nan=-np.inf)
    return {
        name: candidates,
        **{f"split{k}_test_score": score for k, score in enumerate(scores)},
        "mean_test_score": mean,
        "std_test_score": np.sqrt(over_folds((scores - mean) ** 2)),
        "rank_test_score": 1 + (known[:, None] < known).sum(axis=1),
    }


def held_out_mean(shape: tuple[int, int], parts: Iterable[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Mean of the predictions for each row, given rows and their predictions; NaN if there are none."""
    total, count = np.zeros(shape), np.zeros((shape[0], 1))
    for rows, predictions in parts:
        total[rows] += predictions
        count[rows] += 1.0
    with np.errstate(invalid="ignore"):  # 0 / 0 is NaN
        return total / count


def held_out_predictions(data: TrainingData, search: Search, choices: list[int]) -> np.ndarray:
    """Predictions of each sample by the models of the folds that hold it out: their mean, or NaN if there are none.

    ``choices`` has the number of the model of each fold.
    """
    folds = zip(search.splits, search.folds, choices, strict=True)
    parts = ((test, apply_model(fold.held_out.X, *fold.models[k])) for (_, test), fold, k in folds)
    C_hat = held_out_mean(data.C.shape, parts)
    C_hat = C_hat if data.offset is None else C_hat + data.offset
    return C_hat.ravel() if data.input_attributes["_y_is_1d"] else C_hat
