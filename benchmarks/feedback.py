"""Costs that were seen only for what was chosen: training on them, and what decisions cost by them.

    python benchmarks/feedback.py                       about 45 minutes of a core that does nothing else
    python benchmarks/feedback.py --only paths --sizes 400 --runs 2
    python benchmarks/feedback.py --quick               small versions, as a test
    SKSPO_ENERGY_DATA=FOLDER python benchmarks/feedback.py --out docs/benchmarks/README.md

Rows that are in the results already, from this code, are not measured again.  Four parts:

published   5x5 paths and totals of random paths, as in table 1 of Hu, Kallus, Mao and Wu (2024): three features and
            their products F, E c = B F + 3.  Mean regret on 2000 samples.  As in the published code, the rows of B are
            the edges node by node, to the right and then down (other orders have other regrets), "doubly_robust" clips
            eigenvalues below 1, and "doubly_robust_lambda" adds 1.  That code has n samples more, with which it chooses
            the penalty of the policy and fits nuisances too.  Here the penalty is fixed and the log has n samples in
            all, so that the published figures for n / 2 samples ("of half") are of as many samples.
paths       5x5 paths with polynomial costs; the costs of one path of each sample are seen: a random one, or the best
            one for least squares on 200 earlier samples.  Regret in % of the best cost on 2000 samples.
real        Data whose costs are known, but are shown of one past decision only, which is random or, nine times of ten,
            that of least squares on a tenth of the samples.  "kept" is the share of what the model with all costs gains
            over past decisions that the model with partial feedback gains; and what ``estimated_cost`` says of it.
coverage    Share of 95 % intervals of ``estimated_cost`` that contain the expected cost of a policy, of all, and of
            those without the warning about poor overlap.  "rare": past decisions were often the opposite of it.
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from real_problems import PROBLEMS
from results import Table, out_option
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, StandardScaler

from skspo import (
    ItemTransformer,
    PartialFeedbackRegressor,
    ShortestPath,
    Simplex,
    SPOPlusRegressor,
    SPOPlusRegressorCV,
    TwoStageRegressor,
    decide,
    estimated_cost,
)
from skspo.estimators._feedback_costs import default_nuisances
from skspo.estimators._feedback_log import Log

GRID = ShortestPath.grid(5, 5)
PATHS = np.unique(GRID.argmin(np.random.default_rng(0).exponential(size=(20_000, 40))), axis=0)
DIRECT, NUISANCE = "direct", "nuisance"
ROBUST, LAMBDA, PINV = "doubly_robust", "doubly_robust_lambda", "doubly_robust_pinv"

#: edge of each row of B in the published problem
NODE_BY_NODE = np.lexsort((GRID.edges[:, 1], GRID.edges[:, 0]))

#: published means of 50 runs, by size of the log: features of nuisance and policy, method
PUBLISHED = {
    ("F, F", NUISANCE): (0.678, 0.210, 0.070),
    ("F, F", DIRECT): (0.467, 0.130, 0.032),
    ("F, linear", DIRECT): (0.824, 0.494, 0.418),
    ("F, linear", PINV): (0.980, 0.674, 0.551),
    ("F, linear", LAMBDA): (0.878, 0.549, 0.457),
    ("F, linear", ROBUST): (0.931, 0.590, 0.483),
    ("linear, linear", NUISANCE): (2.507, 2.350, 2.109),
    ("linear, linear", DIRECT): (2.528, 2.262, 1.968),
    ("linear, linear", ROBUST): (2.386, 2.145, 1.817),
}


#: two-stage model: ridge on products of features
SQUARES = make_pipeline(StandardScaler(), PolynomialFeatures(2, include_bias=False), RidgeCV(np.logspace(-3, 5, 17)))

SEEN = "random", "self-selected"


def mean_error(values: list[float]) -> tuple[float, float | None]:
    """Mean and standard error."""
    return float(np.mean(values)), float(np.std(values, ddof=1) / len(values) ** 0.5) if len(values) > 1 else None


def interval(name: str, digits: int) -> Callable[[dict[str, Any]], str]:
    """Column with a mean and its standard error."""

    def cell(row: dict[str, Any]) -> str:
        if row.get(name) is None:
            return "-"
        mean, error = row[name]
        return f"{mean:.{digits}f}" + ("" if error is None else f" ± {error:.{digits}f}")

    return cell


# -- the published table -----------------------------------------------------------------------------------------------


def products(X: np.ndarray) -> np.ndarray:
    """Three features and all their products."""
    a, b, c = X.T
    return np.column_stack([X, a * b, a * c, b * c, a * b * c])


def first_three(Z: np.ndarray) -> np.ndarray:
    return Z[:, :3]


def published(sizes: tuple[int, ...], runs: range, options: dict[str, Any]) -> None:
    methods = [*PUBLISHED, *((case, "auto") for case in dict.fromkeys(case for case, _ in PUBLISHED))]
    columns: dict[str, Any] = {"nuisance, policy": "", "method": "", "n": ",", "runs": ""}
    columns |= {"regret": interval("regret", 3), "published": ".3f", "of half": ".3f"}
    table = Table("feedback_published", key=("nuisance, policy", "method", "n"), columns=columns, **options)
    print(table.head(), flush=True)
    coef = np.empty((40, 7))
    coef[NODE_BY_NODE] = np.random.RandomState(18).rand(40, 7)
    ridge = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 5, 17)))
    for n in sizes:
        if all((*key, n) in {table.key_of(row) for row in table.added()} for key in methods):
            continue
        found: dict[tuple[str, str], list[float]] = {key: [] for key in methods}
        for run in runs:
            rng = np.random.default_rng([n, run, 34])
            X = rng.normal(size=(n + 2000, 3))
            mean = products(X) @ coef.T + 3
            past = PATHS[rng.integers(len(PATHS), size=n)]
            total = (past * (mean[:n] + rng.uniform(-0.5, 0.5, size=(n, 40)))).sum(axis=1)
            test = mean[n:]
            best = (GRID.argmin(test) * test).sum(axis=1).mean()
            for case, method in methods:
                features = X if case == "linear, linear" else products(X)
                policy = SPOPlusRegressor(GRID, alpha=1e-3)
                if case == "F, linear":
                    policy = make_pipeline(FunctionTransformer(first_three), policy)
                model = PartialFeedbackRegressor(policy, nuisance=ridge, method=method, cv=3)
                W = model.fit(features[:n], total, decisions=past).decide(features[n:])
                found[case, method].append(float((W * test).sum(axis=1).mean() - best))
        for (case, method), values in found.items():
            known = dict(zip((400, 800, 1600), PUBLISHED.get((case, method), ()), strict=False))
            row = {"nuisance, policy": case, "method": method, "n": n, "runs": len(runs), "regret": mean_error(values)}
            print(table.add({**row, "published": known.get(n), "of half": known.get(n // 2)}), flush=True)
    notes = []
    for n in sorted({row["n"] for row in table.rows}):
        for case in dict.fromkeys(case for case, _ in PUBLISHED):
            rows = [r for r in table.rows if r["n"] == n and r["nuisance, policy"] == case]
            own = [r["regret"][0] for r in rows if r["method"] == "auto"]
            if own:
                ratio = own[0] / min(r["regret"][0] for r in rows if r["method"] != "auto")
                notes.append(f"{case}, n={n}: auto is {ratio:.2f} times the best method")
    for column, what in (("of half", "as many samples in all"), ("published", "n training samples and n more")):
        rows = [row for row in table.rows if row[column] is not None]
        worse = [row for row in rows if row["regret"][0] - 2 * (row["regret"][1] or 0.0) > row[column]]
        cells = ", ".join(f"{row['nuisance, policy']} {row['method']} n={row['n']}" for row in worse)
        notes.append(
            f"worse than published with {what} by two standard errors: {len(worse)} of {len(rows)} cells"
            + (f" ({cells})" if worse else "")
        )
    table.write("Mean regret, in units of cost.", notes)


# -- paths -------------------------------------------------------------------------------------------------------------


def polynomial(n: int, degree: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.RandomState(seed)
    B, X = rng.binomial(1, 0.5, (40, 5)), rng.normal(size=(n, 5))
    mean = ((X @ B.T / np.sqrt(5) + 3) ** degree + 1) / 3.5**degree
    return X, mean * rng.uniform(0.5, 1.5, size=mean.shape)


def regret(W: np.ndarray, C: np.ndarray) -> float:
    """In % of the best cost."""
    best = (GRID.argmin(C) * C).sum()
    return float(100 * ((W * C).sum() - best) / best)


def least_squares(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
    """One regression for each cost, on what was seen of it; what was never seen counts as the worst."""
    seen = ~np.isnan(y)
    columns = [
        LinearRegression().fit(X[o], c[o]).predict(new) if o.any() else None for o, c in zip(seen.T, y.T, strict=True)
    ]
    worst = np.max([column for column in columns if column is not None], axis=0)
    return np.column_stack([worst if column is None else column for column in columns])


def paths(sizes: tuple[int, ...], degrees: tuple[int, ...], runs: range, options: dict[str, Any]) -> None:
    names = [
        "least squares",
        "quadratic ridge",
        "nuisance",
        "SPO+ direct",
        "SPO+ robust",
        "quadratic SPO+",
        "auto",
        "all costs",
    ]
    columns: dict[str, Any] = {"seen": "", "degree": "", "n": ",", "runs": ""}
    columns |= {name: interval(name, 1) for name in names} | {"chosen nuisance": ""}
    columns |= dict.fromkeys(("ratio", "ratio to all", "auto ratio", "auto to all"), ".2f")
    table = Table("feedback_paths", key=("seen", "degree", "n"), columns=columns, **options)
    print(table.head(), flush=True)

    def spo_plus() -> SPOPlusRegressorCV:
        return SPOPlusRegressorCV(GRID, n_alphas=5, cv=3)

    def quadratic() -> Any:
        policy = SPOPlusRegressorCV(GRID, n_alphas=5, cv=3, prior="ridge")
        return make_pipeline(StandardScaler(), PolynomialFeatures(2, include_bias=False), policy)

    for n in sizes:
        for degree in degrees:
            if (SEEN[1], degree, n) in {table.key_of(row) for row in table.added()}:
                continue
            found: dict[str, dict[str, list[float]]] = {seen: {x: [] for x in names} for seen in SEEN}
            chosen: dict[str, list[str]] = {seen: [] for seen in found}
            for run in runs:
                X, C = polynomial(n + 2200, degree, 34_000 + run)
                new, C_new = X[n : n + 2000], C[n : n + 2000]
                whole = regret(spo_plus().fit(X[:n], C[:n]).decide(new), C_new)
                before = TwoStageRegressor(region=GRID).fit(X[n + 2000 :], C[n + 2000 :])
                random = PATHS[np.random.default_rng(run).integers(len(PATHS), size=n)]
                for seen, past in (("random", random), ("self-selected", before.decide(X[:n]))):
                    y = np.where(past > 0, C[:n], np.nan)
                    direct = PartialFeedbackRegressor(spo_plus(), method=DIRECT, random_state=0).fit(X[:n], y)
                    chosen[seen].append(direct.nuisance_name_)
                    again = dict(default_nuisances(Log(X[:n], y), 0))[direct.nuisance_name_]
                    robust = PartialFeedbackRegressor(spo_plus(), nuisance=again, method=ROBUST).fit(X[:n], y)
                    auto = PartialFeedbackRegressor(spo_plus(), nuisance=again, cv=3).fit(X[:n], y)
                    ridge = PartialFeedbackRegressor(TwoStageRegressor(region=GRID), nuisance=SQUARES, method=DIRECT)
                    decisions = [
                        GRID.argmin(least_squares(X[:n], y, new)),
                        GRID.argmin(ridge.fit(X[:n], y).nuisance_.predict(new)),
                        GRID.argmin(direct.nuisance_.predict(new)),
                        direct.decide(new),
                        robust.decide(new),
                        decide(quadratic().fit(X[:n], direct.pseudo_costs_), new),
                        auto.decide(new),
                    ]
                    for name, W in zip(names, decisions, strict=False):
                        found[seen][name].append(regret(W, C_new))
                    found[seen]["all costs"].append(whole)
            for seen, values in found.items():
                means = {name: mean_error(value) for name, value in values.items()}
                listed = min(means["least squares"][0], means["quadratic ridge"][0])
                first = min(listed, means["nuisance"][0])
                own, auto = min(means[name][0] for name in names[3:6]), means["auto"][0]
                most = max(chosen[seen], key=chosen[seen].count)
                row = {"seen": seen, "degree": degree, "n": n, "runs": len(runs), **means, "chosen nuisance": most}
                row |= {"ratio": own / listed, "ratio to all": own / first}
                print(table.add({**row, "auto ratio": auto / listed, "auto to all": auto / first}), flush=True)
    table.write(
        "Regret in % of the best cost. Ratios: the best of the three SPO+ models with partial feedback, by the better "
        "one of least squares and quadratic ridge on what was seen, and by the best that predicts and then decides; "
        "then the same of auto, which chooses among nuisance, SPO+ direct and SPO+ robust on the log."
    )


# -- real data ---------------------------------------------------------------------------------------------------------


def real(names: tuple[str, ...], splits: int, options: dict[str, Any]) -> None:
    columns: dict[str, Any] = {"problem": "", "seen": "", "splits": ""}
    columns |= {name: interval(name, 2) for name in ("past", "nuisance", "direct", "auto", "all costs")}
    columns |= {
        "kept": ".0%",
        "estimated saving": interval("estimated saving", 2),
        "true saving": interval("true saving", 2),
    }
    table = Table("feedback_real", key=("problem", "seen"), columns=columns, **options)
    print("", table.head(), sep="\n", flush=True)
    for name in names:
        problem = PROBLEMS[name]()
        region, sign = problem.region, -1.0 if problem.region.sense == "max" else 1.0
        if (problem.name, SEEN[1]) in {table.key_of(row) for row in table.added()}:
            continue
        for seen in SEEN:
            found: dict[str, list[float]] = {key: [] for key in (*list(columns)[3:8], "estimated", "true")}
            for k, (train, test) in enumerate(problem.splits(splits, seed=34)):
                rng = np.random.default_rng(k)
                X, C = problem.X, problem.C
                past = region.argmin(rng.normal(size=C.shape))
                P = np.tile(region.argmin(rng.normal(size=(20_000, C.shape[1]))).mean(axis=0), (len(C), 1))
                if seen == SEEN[1]:
                    first = train[: len(train) // 10]
                    usual = TwoStageRegressor(Ridge(), region, shared=problem.shared).fit(X[first], C[first]).decide(X)
                    past = np.where(rng.random((len(C), 1)) < 0.9, usual, past)
                    P = 0.9 * usual + 0.1 * P  # the log has them
                y = np.where(past > 0, C, np.nan)

                policy = make_pipeline(
                    ItemTransformer(StandardScaler()) if problem.shared else StandardScaler(),
                    SPOPlusRegressorCV(region, shared=problem.shared, n_alphas=5, cv=3),
                )
                whole = decide(policy.fit(X[train], C[train]), X[test])
                models = {}
                for method in (DIRECT, "auto"):
                    models[method] = PartialFeedbackRegressor(policy, method=method, cv=3, random_state=0)
                    models[method].fit(X[train], y[train], propensity=P[train])
                W = models["auto"].decide(X[test])
                nuisance = region.argmin(models[DIRECT].nuisance_.predict(X[test]))
                saved = estimated_cost(
                    models["auto"], X[test], y[test], decisions=past[test], other="past", propensity=P[test]
                )
                decisions = (past[test], nuisance, models[DIRECT].decide(X[test]), W, whole)
                costs = [float(sign * (V * C[test]).sum(axis=1).mean()) for V in decisions]
                for key, value in zip(list(found)[:5], costs, strict=True):
                    found[key].append(value)
                found["estimated"].append(-sign * saved.difference)
                found["true"].append(costs[0] - costs[3])
            means = {key: mean_error(values) for key, values in found.items()}
            kept = (means["past"][0] - means["auto"][0]) / (means["past"][0] - means["all costs"][0])
            row = {"problem": problem.name, "seen": seen, "splits": splits, **means, "kept": kept}
            row |= {"estimated saving": means["estimated"], "true saving": means["true"]}
            print(table.add(row), flush=True)
    table.write("Mean cost, or minus the mean value, on the test samples, ± the standard error over splits.")


# -- coverage ----------------------------------------------------------------------------------------------------------

SETTINGS = (
    "equal propensities",
    "skewed costs",
    "very skewed costs",
    "small propensities",
    "rare, propensities known",
    "rare, classifier",
    "rare, propensity=None",
    "rarer, propensities known",
    "less rare, classifier",
    "less rare, propensity=None",
    "totals",
    "groups",
)


def setting_of(
    name: str, n: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, dict[str, Any], np.ndarray]:
    """Features, what was seen, arguments of ``estimated_cost``, and decisions of the policy."""
    X = rng.normal(size=(n, 2))
    given: dict[str, Any] = {}
    day = np.arange(n) // 4
    if name == "groups":  # four samples of a day have the same features and a common error
        X = X[day]
        given["groups"] = day
    mean = np.column_stack([X[:, 0], -X[:, 0], X[:, 1]]) + 2
    noise = 0.5 * rng.normal(size=mean.shape)
    if name == "skewed costs":
        noise = rng.exponential(size=mean.shape) - 1  # skewness 2
    if name == "very skewed costs":
        noise = rng.exponential(size=mean.shape) ** 2 / 2 - 1  # skewness 6.6
    if name == "groups":
        noise += rng.normal(size=n)[day][:, None]
    C, W, P = mean + noise, Simplex().argmin(mean), np.full((n, 3), 1 / 3)
    if name == "small propensities":
        P = given["propensity"] = np.where(X[:, :1] > 0, [[0.05, 0.05, 0.9]], [[0.05, 0.9, 0.05]])
    strength = {"less rare": 0.4, "rare": 1.0, "rarer": 1.5}.get(name.split(", ")[0])
    if strength is not None:
        score = np.exp(strength * np.column_stack([X[:, 0], 0 * X[:, 0], -X[:, 0]]))
        P = score / score.sum(axis=1, keepdims=True)
        if name.endswith("known"):
            given["propensity"] = P
        elif name.endswith("classifier"):
            given["propensity"] = make_pipeline(PolynomialFeatures(2), LogisticRegression())
    past = np.eye(3)[np.minimum((rng.random((n, 1)) > P.cumsum(axis=1)).sum(axis=1), 2)]
    if name == "totals":
        return X, (past * C).sum(axis=1), {"decisions": past}, W
    return X, np.where(past > 0, C, np.nan), given, W


def coverage(runs: int, n: int, options: dict[str, Any]) -> None:
    columns: dict[str, Any] = {"setting": "", "n": ",", "runs": "", "covered": ".1%", "standard error": ".1%"}
    columns |= {"bias / standard error": ".2f", "length": ".3f", "poor overlap": ".0%", "covered else": ".1%"}
    table = Table("feedback_coverage", key=("setting", "n"), columns=columns, **options)
    print("", table.head(), sep="\n", flush=True)
    X = np.random.default_rng(1).normal(size=(4_000_000, 2))
    expected = float((np.minimum(-np.abs(X[:, 0]), X[:, 1]) + 2).mean())
    for name in SETTINGS:
        if (name, n) in {table.key_of(row) for row in table.added()}:
            continue
        found = []
        for run in range(runs):
            X, y, given, W = setting_of(name, n, np.random.default_rng([run, 34]))
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                result = estimated_cost(W, X, y, region=Simplex(), nuisance=Ridge(), **given)
            poor = any("Few past decisions were like these" in str(warning.message) for warning in said)
            low, high = result.interval
            found.append((low <= expected <= high, (result.cost - expected) / result.standard_error, high - low, poor))
        covered, bias, length, poor = np.mean(found, axis=0)
        error = (covered * (1 - covered) / runs) ** 0.5
        row = {"setting": name, "n": n, "runs": runs, "covered": covered, "standard error": error}
        row |= {"bias / standard error": bias, "length": length, "poor overlap": poor}
        rest = [hit for hit, _, _, warned in found if not warned]
        # Fewer than twenty say nothing.
        print(table.add({**row, "covered else": np.mean(rest) if len(rest) >= 20 else None}), flush=True)
    table.write("95 % intervals of doubly robust estimates of the cost of the best policy, nuisance: ridge.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = ("published", "paths", "real", "coverage")
    parser.add_argument("--only", nargs="+", choices=parts, default=list(parts))
    parser.add_argument("--sizes", type=int, nargs="+", help="of published and paths")
    parser.add_argument("--degrees", type=int, nargs="+", default=[2, 4, 6, 8])
    parser.add_argument("--runs", type=int, help="of every part")
    parser.add_argument("--first", type=int, default=1000, help="number of the first draw of published and paths")
    parser.add_argument("--quick", action="store_true", help="small versions, as a test")
    out_option(parser)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    options = {"packages": ("numpy", "scikit-learn"), "file": args.out, "quick": args.quick}
    quick, begun = args.quick, time.process_time()

    def numbers(runs: int) -> range:
        return range(args.first, args.first + runs)

    if "published" in args.only:
        sizes = (60,) if quick else tuple(args.sizes or (400, 800, 1600, 3200))
        published(sizes, numbers(args.runs or (1 if quick else 20)), options)
    if "paths" in args.only:
        sizes = (80,) if quick else tuple(args.sizes or (400, 1000, 4000))
        paths(sizes, (4,) if quick else tuple(args.degrees), numbers(args.runs or (1 if quick else 3)), options)
    if "real" in args.only:
        wanted = ("energy60", "energy120", "energy180", "digits", "credit", "churn", "spam", "deliveries")
        names = tuple(name for name in wanted if name in PROBLEMS)
        real(("digits",) if quick else names, args.runs or (1 if quick else 3), options)
    if "coverage" in args.only:
        coverage(args.runs or (4 if quick else 400), 60 if quick else 400, options)
    print(f"{time.process_time() - begun:.0f} s of the processor")


if __name__ == "__main__":
    main()
