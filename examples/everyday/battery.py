"""When to charge a battery and when to discharge it, against the prices of the next twelve hours.

A decision is what is bought in each hour less what is sold, and each morning the battery is filled differently.
"""

import numpy as np

from skspo import LinearImage, Polyhedron, SPOPlusRegressorCV, decide

T, capacity, power, efficiency = 12, 4.0, 1.0, 0.9
so_far = np.tril(np.ones((T, T)))
stored = np.hstack([efficiency * so_far, -so_far])  # after each hour, from what is charged and what is discharged
hours = [f"{8 + t} h" for t in range(T)]
# At most `capacity` and at least nothing is in the battery, and in the evening as much as in the morning.
inner = Polyhedron(np.vstack([stored, -stored, -stored[-1]]), np.full(2 * T + 1, capacity), bounds=(0, power))
region = LinearImage(inner, np.hstack([np.eye(T), -np.eye(T)]), labels=hours)  # bought less sold

rng = np.random.default_rng(0)
n, train = 200, 150
X = rng.normal(size=(n, 3))  # wind, sun, temperature
usual = 50 + 20 * np.sin(np.arange(T) / 2)
prices = usual * np.exp(0.3 * X @ rng.normal(size=(3, T))) * rng.uniform(0.8, 1.2, size=(n, T))
morning = rng.uniform(0, 3, size=(n, 1))
sides = {"b_ub": np.hstack([np.tile(capacity - morning, T), np.tile(morning, T), np.zeros((n, 1))])}
past, new = {"b_ub": sides["b_ub"][:train]}, {"b_ub": sides["b_ub"][train:]}
model = SPOPlusRegressorCV(region, cv=3, tol=1e-2).fit(X[:train], prices[:train], region_params=past)

bought = decide(model, X[train:], region_params=new, as_frame=True)
print(bought.head(3).round(2) + 0.0)
every_day = region.with_rows(new, n - train, T).argmin(np.tile(usual, (n - train, 1)))
rules = {"usual prices": every_day, "no trades": np.zeros((n - train, T))}
print(model.report(X[train:], prices[train:], region_params=new, baselines=rules))
