"""Which of three units run in the next six hours; starts cost extra, and costs of running and of fuel are predicted."""

import numpy as np

from skspo import MixedInteger, SPOPlusRegressor, chosen

units, T = ["gas", "coal", "oil"], 6
most, least = np.array([[60.0, 80.0, 40.0], [15.0, 40.0, 5.0]])  # power of a unit that runs
demand = [60.0, 75.0, 110.0, 130.0, 100.0, 70.0]
k = len(units) * T
run, start, power = np.eye(3 * k).reshape(3, 3, T, 3 * k)  # one row for each variable, by unit and hour
before = np.concatenate([np.zeros((3, 1, 3 * k)), run[:, :-1]], axis=1)  # nothing runs before the first hour
at_most_zero = [power - most[:, None, None] * run, least[:, None, None] * run - power, run - before - start]
region = MixedInteger(
    A_ub=np.concatenate([-power.sum(axis=0), *(A.reshape(k, 3 * k) for A in at_most_zero)]),
    b_ub=np.concatenate([-np.array(demand), np.zeros(3 * k)]),
    bounds=[(0, 1)] * (2 * k) + [(0, 100)] * k,
    integrality=np.repeat([1, 1, 0], k),
    variable_names=[f"{what} {unit} {t}" for what in ("run", "start", "power") for unit in units for t in range(T)],
)

rng = np.random.default_rng(0)
n, train = 100, 70
X = rng.normal(size=(n, 3))  # wind, temperature, news of the market
price = np.array([[100, 80, 60], [150, 400, 40], [3, 2, 4]])  # of running, a start, and fuel on a usual day
level = np.exp(0.4 * X @ rng.normal(size=(3, 3)))[:, None, :, None] * rng.uniform(0.8, 1.2, size=(n, 3, 3, T))
level /= level.mean(axis=0)
level[:, 1] = 1.0  # the cost of a start is known
usual = np.repeat(price, T)
C = usual * level.reshape(n, -1)
model = SPOPlusRegressor(region, alpha=0.1, surrogate_region="relaxation", tol=1e-2).fit(X[:train], C[:train])

plan = chosen(model, X[train : train + 1])[0]
for unit in units:
    print(f"{unit:4}", [round(plan.get(f"power {unit} {t}", 0.0)) for t in range(T)])
all_run = region.with_rows({"lower": [np.repeat([1.0, 0.0, 0.0], k)]}, 1, 3 * k).argmin(usual[None])
rule = {"all units run": np.tile(all_run, (n - train, 1))}
print(model.report(X[train:], C[train:], baselines=rule))
