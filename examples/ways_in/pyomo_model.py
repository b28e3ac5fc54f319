"""From a Pyomo model: shifts with predicted wages; the fee of an agency is known."""

import numpy as np
import pyomo.environ as pyo

from skspo import SPOPlusRegressor, read_region

m, need = pyo.ConcreteModel(), [2, 4, 3, 1]
m.staff = pyo.Var(range(4), bounds=(0, 5))
m.agency = pyo.Var(range(4), bounds=(0, 5))
m.cover = pyo.Constraint(range(4), rule=lambda m, t: m.staff[t] + m.staff[(t - 1) % 4] + m.agency[t] >= need[t])
m.cost = pyo.Objective(expr=25 * sum(m.agency[t] for t in range(4)))
region, rng = read_region(m, variables=m.staff), np.random.default_rng(0)
X = rng.normal(size=(100, 3))
C = 30 + 2 * X @ rng.normal(size=(3, 4)) + rng.normal(size=(100, 4))
model = SPOPlusRegressor(region, alpha=0.1).fit(X[:70], region.extend(C[:70]))
print(model.decide(X[70:], as_frame=True).head())
