"""Problems of ``benchmarks/auto.py``: a grid, families that are not on it, and problems that are drawn at random."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from large import assignment, box, classes, knapsack, one_hot, packing, paths, portfolios, top


class Problem(NamedTuple):
    """One problem; ``d`` is the side of the grid for paths and streets, and ``p`` the features per item if shared."""

    family: str
    n: int
    p: int
    d: int
    alpha: float
    l1_ratio: float = 0.0
    tol: float = 1e-6
    seed: int | None = None  # that of a problem that was drawn

    @property
    def name(self) -> str:
        """Name of the row."""
        text = f"{self.family} n={self.n} p={self.p} d={self.d} alpha={self.alpha:g}"
        text += f" l1_ratio={self.l1_ratio:g}" * (self.l1_ratio > 0) + f" tol={self.tol:g}" * (self.tol != 1e-6)
        return text if self.seed is None else f"{text} seed={self.seed}"


class Data(NamedTuple):
    """What is fitted: parameters of the estimator, and those of ``fit``."""

    region: Any
    X: Any
    C: np.ndarray
    params: dict[str, Any] = {}
    fit: dict[str, Any] = {}


def entropy(d: int, rng: Any) -> Any:
    import skspo as sk

    return sk.EntropySimplex()


def l1_ball(d: int, rng: Any) -> Any:
    import skspo as sk

    return sk.L1Ball()


REGIONS: dict[str, Any] = {
    "simplex": None,
    "top": top,
    "fractional": knapsack,
    "assignment": assignment,
    "packing": packing,
    "box": box,
    "entropy": entropy,
    "l1ball": l1_ball,
}


def grid(quick: bool) -> Iterator[Problem]:
    """Problems of regular sizes, from a thousand to a hundred thousand samples, from 5 to 1000 features."""
    if quick:
        for alpha in (0.01, 0.0):
            for p in (5, 50, 200):
                yield Problem("simplex", 2000, p, 10, alpha)
                yield Problem("paths", 1000, p, 5, alpha)
        yield Problem("packing", 1000, 20, 32, 0.01)
        yield Problem("top", 1000, 5, 200, 0.01)
        return
    for alpha in (0.01, 0.0):
        for n in (1000, 10_000, 100_000):
            for p in (5, 50, 200, 1000):
                if n * p <= 10_000_000:
                    yield Problem("simplex", n, p, 10, alpha)
                    yield Problem("paths", n, p, 5, alpha)
        for family in ("simplex", "top", "fractional"):
            for d in (100, 1000):
                yield Problem(family, 1000, 5, d, alpha)
        yield Problem("assignment", 500, 5, 400, alpha)
        for family in ("box", "entropy", "l1ball"):
            for n, p, d in ((1000, 5, 20), (1000, 50, 20), (1000, 5, 200), (20_000, 5, 20)):
                yield Problem(family, n, p, d, alpha)
        for n, d in ((300, 20), (2000, 20), (300, 60)):
            yield Problem("markowitz", n, 5, d, alpha)
        for p in (5, 20, 100):
            yield Problem("packing", 1000, p, 32, alpha)


# -- families that are not on the grid ---------------------------------------------------------------------------------


def costs(problem: Problem, d: int, rng: np.random.Generator, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Features, and positive costs: powers of linear functions of some features, with multiplicative noise."""
    n, p = problem.n, problem.p
    used, degree, noise = min(p, int(rng.integers(3, 21))), int(rng.choice([1, 2, 4, 6])), rng.uniform(0.1, 0.8)
    X = rng.normal(size=(n, p))
    signal = X[:, :used] @ rng.normal(size=(used, d)) / np.sqrt(used)
    C = (np.abs(signal / 3.0 + 1.0) ** degree + 0.1) * rng.uniform(1.0 - noise, 1.0 + noise, (n, d))
    return X, scale * C


#: makes the region of a family, from the number of costs; and its data
MakeRegion = Callable[[int, np.random.Generator], Any]
MakeData = Callable[[Problem, np.random.Generator], Data]


def of_region(make: MakeRegion, scale: float = 1.0) -> MakeData:
    """A family with nothing but a region; a scale of -1 is for regions where doing nothing is feasible."""

    def data(problem: Problem, rng: np.random.Generator) -> Data:
        region = make(problem.d, rng)
        return Data(region, *costs(problem, problem.d, rng, scale))

    return data


def simplex(d: int, rng: np.random.Generator) -> Any:
    import skspo as sk

    return sk.Simplex()


def some(d: int, rng: np.random.Generator) -> Any:
    import skspo as sk

    return sk.TopK(max(d // 6, 2))


def production(d: int, rng: np.random.Generator) -> Any:
    """Goods that need scarce resources, at most one of each."""
    import skspo as sk

    A = rng.uniform(size=(max(d // 3, 2), d)) * (rng.uniform(size=(max(d // 3, 2), d)) < 0.6)
    return sk.Polyhedron(A_ub=A, b_ub=0.3 * A.sum(axis=1) + 0.1, bounds=(0, 1))


def transport(d: int, rng: np.random.Generator) -> Any:
    """Shipments from about root of d sources to as many destinations."""
    import skspo as sk

    m = round(d**0.5)
    A = np.vstack([np.kron(np.eye(m), np.ones(m)), np.kron(np.ones(m), np.eye(m))])
    supply, demand = (w / w.sum() for w in rng.uniform(0.5, 1.5, (2, m)))
    return sk.Polyhedron(A_eq=A, b_eq=np.concatenate([supply, demand]))


def programs(d: int, rng: np.random.Generator) -> Any:
    """Zero-one programs with two capacities."""
    import skspo as sk

    A = rng.integers(3, 9, size=(2, d)).astype(float)
    return sk.MixedInteger(A_ub=A, b_ub=np.floor(0.3 * A.sum(axis=1)), bounds=(0, 1))


def product(d: int, rng: np.random.Generator) -> Any:
    """Choices of one among five, and one in three of two among five."""
    import skspo as sk

    kinds = [sk.TopK(2) if rng.uniform() < 1 / 3 else sk.Simplex() for _ in range(d // 5)]
    return sk.Product(kinds, sizes=[5] * (d // 5))


def in_cvxpy(d: int, rng: np.random.Generator) -> Any:
    """A simplex without its corners."""
    import cvxpy as cp

    import skspo as sk

    largest = float(rng.uniform(0.6, 0.95))
    return sk.CvxpyRegion(lambda w: [w >= 0, cp.sum(w) == 1, cp.norm(w) <= largest], n_dim=d)


def linear_in_cvxpy(d: int, rng: np.random.Generator) -> Any:
    """Goods and resources, in CVXPY."""
    import cvxpy as cp

    import skspo as sk

    A = rng.uniform(size=(3, d))
    return sk.CvxpyRegion(lambda w: [w >= 0, w <= 1, A @ w <= 0.3 * A.sum(axis=1), cp.sum(w) >= 0.2 * d], n_dim=d)


def prices(d: int, rng: np.random.Generator) -> Any:
    """Tasks of different power, each in one of d periods: prices are predicted, schedules decided."""
    import skspo as sk

    power = rng.uniform(1.0, 5.0, 3)
    once, capacity = np.kron(np.eye(3), np.ones((1, d))), np.kron(np.ones((1, 3)), np.eye(d))
    tasks = sk.Polyhedron(A_eq=once, b_eq=np.ones(3), A_ub=capacity, b_ub=np.ones(d), bounds=(0, 1))
    return sk.LinearImage(tasks, np.kron(power[None], np.eye(d)))


def groups(d: int, rng: np.random.Generator) -> Any:
    """Four variables of each price, of which a fifth are chosen."""
    import skspo as sk

    return sk.LinearImage(sk.TopK(max(4 * d // 5, 2)), np.kron(np.eye(d), rng.uniform(0.5, 1.5, (1, 4))))


def listed(d: int, rng: np.random.Generator) -> Any:
    """A function that looks at all feasible sets."""
    import skspo as sk

    size = min(2**d // 2, int(10 ** rng.uniform(1.5, 3.0)))
    V = np.unique((rng.uniform(size=(size, d)) < 0.4).astype(float), axis=0)
    V = V[V.any(axis=1)]
    return sk.OracleRegion(lambda C: V[np.argmin(C @ V.T, axis=1)], d)


def sorted_out(d: int, rng: np.random.Generator) -> Any:
    """A function that sorts."""
    import skspo as sk

    k = max(d // 5, 2)

    def smallest(C: np.ndarray) -> np.ndarray:
        W = np.zeros_like(C)
        np.put_along_axis(W, np.argsort(C, axis=1, kind="stable")[:, :k], 1.0, axis=1)
        return W

    return sk.OracleRegion(smallest, d)


def portfolio(d: int, rng: np.random.Generator) -> Any:
    """Long-only portfolios with a limit of the variance."""
    import skspo as sk

    root = rng.normal(size=(d, d)) / np.sqrt(d) + np.diag(rng.uniform(0.5, 2.0, d))
    covariance = root @ root.T
    return sk.Markowitz(
        covariance, rng.uniform(0.9, 1.5) * float(covariance.mean())
    )  # that of equal shares is the mean


def barrier(d: int, rng: np.random.Generator) -> Any:
    """Simplex with an entropy or a logarithmic barrier."""
    import skspo as sk

    return sk.EntropySimplex() if rng.uniform() < 0.5 else sk.LogBarrierSimplex()


def ball(d: int, rng: np.random.Generator) -> Any:
    """Ball of the l1 norm, or of an lq norm."""
    import skspo as sk

    return sk.L1Ball() if rng.uniform() < 0.5 else sk.LqBall(q=float(rng.choice([1.5, 2.0])))


def tours(d: int, rng: np.random.Generator) -> Any:
    """Round trips through few places."""
    import skspo as sk

    return sk.TravellingSalesman(round((1 + (1 + 8 * d) ** 0.5) / 2))


def shared(make: MakeRegion) -> MakeData:
    """A model for all items."""

    def data(problem: Problem, rng: np.random.Generator) -> Data:
        n, q, d = problem.n, problem.p, problem.d
        X = rng.normal(size=(n, d, q))
        signal = X @ rng.normal(size=q) / np.sqrt(q)
        C = np.abs(signal / 3.0 + 1.0) ** int(rng.choice([1, 2, 4])) * rng.uniform(0.5, 1.5, (n, d))
        return Data(make(d, rng), X.reshape(n, d * q), C, {"shared": True})

    return data


def shared_paths(problem: Problem, rng: np.random.Generator) -> Data:
    import skspo as sk

    region = sk.ShortestPath.grid(problem.d, problem.d)
    return shared(lambda d, rng: region)(problem._replace(d=2 * problem.d * (problem.d - 1)), rng)


def streets(problem: Problem, rng: np.random.Generator) -> Data:
    """Streets both ways, with ends of their own for each row."""
    import networkx as nx

    import skspo as sk

    edges = list(nx.grid_2d_graph(problem.d, problem.d).to_directed().edges)
    nodes = list(range(problem.d**2))
    edges = [(a * problem.d + b, c * problem.d + e) for (a, b), (c, e) in edges]
    X, C = costs(problem, len(edges), rng)
    source, steps = rng.choice(nodes, size=problem.n), rng.integers(1, len(nodes), size=problem.n)
    ends = {"source": source, "target": (source + steps) % len(nodes)}
    return Data(sk.ShortestPath(edges, nodes[0], nodes[-1]), X, C, fit={"region_params": ends})


def masked(make: MakeRegion) -> MakeData:
    """Options that are not always available."""

    def data(problem: Problem, rng: np.random.Generator) -> Data:
        region = make(problem.d, rng)
        X, C = costs(problem, problem.d, rng)
        order = rng.uniform(size=C.shape).argsort(axis=1)
        available = (rng.uniform(size=C.shape) < rng.uniform(0.5, 0.9)) | (order < max(problem.d // 3, 2))
        return Data(region, X, C, fit={"region_params": {"available": available}})

    return data


def decaying(make: MakeData) -> MakeData:
    """Weights that halve again and again, up to two hundred times."""

    def data(problem: Problem, rng: np.random.Generator) -> Data:
        plain, half_life = make(problem, rng), problem.n * 10 ** rng.uniform(-2.3, -1.0)
        return plain._replace(fit={"sample_weight": 0.5 ** (np.arange(problem.n)[::-1] / half_life)})

    return data


def plain_paths(problem: Problem, rng: np.random.Generator) -> Data:
    return Data(*paths(problem.n, problem.p, problem.d, int(rng.integers(2**31))))


FAMILIES: dict[str, MakeData] = {
    "choices": of_region(simplex),
    "some": of_region(some),
    "routes": plain_paths,
    "production": of_region(production, -1.0),
    "transport": of_region(transport),
    "programs": of_region(programs, -1.0),
    "product": of_region(product),
    "cvxpy": of_region(in_cvxpy),
    "linear cvxpy": of_region(linear_in_cvxpy),
    "prices": of_region(prices),
    "groups": of_region(groups),
    "listed": of_region(listed),
    "sorted": of_region(sorted_out),
    "portfolio": of_region(portfolio, -1.0),
    "barrier": of_region(barrier),
    "ball": of_region(ball),
    "jobs": of_region(assignment),
    "tours": of_region(tours),
    "shared simplex": shared(simplex),
    "shared top": shared(some),
    "shared paths": shared_paths,
    "streets": streets,
    "masked simplex": masked(simplex),
    "masked top": masked(some),
    "decaying simplex": decaying(of_region(simplex)),
    "decaying paths": decaying(plain_paths),
    "one-hot": lambda problem, rng: Data(*one_hot(problem.n, problem.p, problem.d, int(rng.integers(2**31)))),
}


def families(quick: bool) -> Iterator[Problem]:
    """Problems of families that are not on the grid, of sizes that users have."""
    if quick:
        yield Problem("production", 50, 5, 12, 0.01)
        yield Problem("streets", 30, 5, 4, 0.0)
        return
    for family, n, p, d in (("choices", 2000, 20, 10), ("routes", 500, 20, 5), ("some", 1000, 10, 30)):
        yield Problem(family, n, p, d, 0.01, 1.0)
        yield Problem(family, n, p, d, 0.001, 0.5)
    for alpha in (0.0, 0.01):
        yield Problem("choices", 100_000, 50, 10, alpha, tol=1e-4)
        yield Problem("shared simplex", 2000, 5, 20, alpha)
        yield Problem("shared paths", 300, 5, 5, alpha)
        yield Problem("production", 200, 5, 24, alpha)
        yield Problem("transport", 200, 5, 36, alpha)
        yield Problem("product", 1000, 10, 50, alpha)
        yield Problem("listed", 100, 5, 16, alpha)
        yield Problem("streets", 200, 5, 8, alpha, tol=1e-4)
        yield Problem("masked simplex", 2000, 10, 20, alpha)
        yield Problem("one-hot", 20_000, 500, 10, alpha, tol=1e-4)
    yield Problem("choices", 400_000, 50, 10, 0.0, tol=1e-4)
    yield Problem("streets", 100, 5, 12, 0.0, tol=1e-2)
    yield Problem("cvxpy", 60, 5, 8, 0.0)
    yield Problem("linear cvxpy", 60, 5, 8, 0.01)
    yield Problem("prices", 100, 5, 12, 0.01)
    yield Problem("groups", 300, 5, 12, 0.0)
    yield Problem("programs", 100, 5, 16, 0.01)
    yield Problem("programs", 100, 5, 32, 0.01, tol=1e-2)
    yield Problem("decaying paths", 1500, 5, 5, 0.1)
    yield Problem("decaying simplex", 3000, 10, 10, 0.0)


#: family: ranges of n, p and d, from which sizes are drawn, equally likely on a logarithmic scale
RANGES = {
    "choices": ((100, 50_000), (2, 200), (3, 200)),
    "some": ((100, 10_000), (2, 100), (12, 100)),
    "routes": ((100, 5000), (3, 100), (3, 12)),
    "production": ((50, 500), (2, 30), (6, 40)),
    "transport": ((50, 500), (2, 30), (9, 64)),
    "programs": ((30, 200), (2, 20), (8, 24)),
    "product": ((100, 5000), (2, 50), (10, 100)),
    "cvxpy": ((20, 150), (2, 20), (3, 15)),
    "linear cvxpy": ((20, 150), (2, 20), (3, 15)),
    "prices": ((30, 200), (2, 20), (4, 20)),
    "groups": ((50, 2000), (2, 30), (4, 40)),
    "listed": ((50, 2000), (2, 30), (6, 20)),
    "sorted": ((50, 5000), (2, 50), (10, 60)),
    "portfolio": ((50, 1000), (2, 20), (5, 60)),
    "barrier": ((100, 5000), (2, 100), (4, 60)),
    "ball": ((100, 20_000), (2, 50), (4, 60)),
    "jobs": ((50, 1000), (2, 30), (9, 100)),
    "tours": ((30, 300), (2, 20), (10, 28)),
    "shared simplex": ((100, 10_000), (2, 30), (3, 50)),
    "shared top": ((100, 5000), (2, 30), (12, 50)),
    "shared paths": ((50, 1000), (2, 30), (3, 8)),
    "streets": ((30, 400), (2, 20), (4, 10)),
    "masked simplex": ((100, 10_000), (2, 50), (4, 50)),
    "masked top": ((100, 3000), (2, 50), (12, 50)),
    "decaying simplex": ((200, 10_000), (2, 50), (3, 50)),
    "decaying paths": ((200, 2000), (2, 20), (3, 7)),
    "one-hot": ((2000, 50_000), (100, 2000), (3, 30)),
}

#: largest number of samples, times features, times costs of a problem that is drawn: fits of about a minute; and for
#: --quick
LARGEST, SMALL = 2e7, 1e5


def drawn(seed: int, number: int, quick: bool = False) -> Iterator[Problem]:
    """Problems whose family, sizes, penalties and data are drawn; all families in turn."""
    rng = np.random.default_rng(seed)
    for family in np.concatenate([rng.permutation(list(RANGES)) for _ in range(number // len(RANGES) + 1)])[:number]:
        while True:
            n, p, d = (round(np.exp(rng.uniform(*np.log(ends)))) for ends in RANGES[family])
            if family == "product":
                d -= d % 5
            if family in ("transport", "jobs"):
                d = round(d**0.5) ** 2
            if family == "tours":
                d = (nodes := round((1 + (1 + 8 * d) ** 0.5) / 2)) * (nodes - 1) // 2
            columns = 2 * d * (d - 1) if family in ("routes", "shared paths", "streets", "decaying paths") else d
            if float(n * columns) * (5 if family == "one-hot" else p) <= (SMALL if quick else LARGEST):
                break
        alpha = float(rng.choice([0.0, 0.0, 0.001, 0.01, 0.1]))
        l1_ratio = float(rng.choice([0.0, 0.0, 0.5, 1.0])) if alpha else 0.0
        tol = 1e-4 if family in ("streets", "one-hot") else 1e-6
        yield Problem(str(family), n, p, d, alpha, l1_ratio, tol, int(rng.integers(10_000)))


def make(problem: Problem, seed: int) -> Data:
    """Data of a problem; ``seed`` is for problems that have none of their own."""
    seed = seed if problem.seed is None else problem.seed
    if problem.family in FAMILIES:
        return FAMILIES[problem.family](problem, np.random.default_rng(seed))
    if problem.family == "paths":
        return Data(*paths(problem.n, problem.p, problem.d, seed))
    if problem.family == "markowitz":
        return Data(*portfolios(problem.n, problem.d, seed))
    return Data(*classes(problem.n, problem.p, problem.d, seed, REGIONS[problem.family]))
