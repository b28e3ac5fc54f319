"""Which crew does which job, on days when crews are absent."""

import numpy as np
import pandas as pd

from skspo import Assignment, SPOPlusRegressor, chosen, decide

rng = np.random.default_rng(0)
crews, jobs = ["Ann", "Bob", "Cem", "Dee"], ["roof", "wall", "pump"]
region = Assignment(workers=crews, tasks=jobs)
n, train, pairs = 160, 120, list(region.variable_names)  # "Ann -> roof" and so on
X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["rain", "traffic", "heat"])
level = np.exp(0.5 * X.to_numpy() @ rng.normal(size=(3, len(pairs))))
hours = pd.DataFrame(4 * level * rng.uniform(0.7, 1.3, size=level.shape), columns=pairs)

here = rng.random((n, len(crews))) < 0.8  # who is there on which day
available = pd.DataFrame(np.repeat(here, len(jobs), axis=1), columns=pairs)
past, new = {"available": available[:train]}, {"available": available[train:]}
model = SPOPlusRegressor(region, alpha=0.1).fit(X[:train], hours[:train], region_params=past)

W = decide(model, X[train:], region_params=new, as_frame=True)
for day, words in enumerate(chosen(model, X[train:], region_params=new)[:3], start=train):
    absent = [crew for crew, there in zip(crews, here[day], strict=True) if not there]
    print(f"day {day}: {words}, {(W * hours).sum(axis=1)[day]:.1f} hours; absent: {absent}")
# Today's rule is a list: Ann first to the roof, Bob to the wall, ..., and a neighbor in the list if they are absent.
preference = np.tile(np.abs(np.subtract.outer(range(4), range(3))).ravel() ** 2.0, (n - train, 1))
rule = region.with_rows(new, *preference.shape).argmin(preference)
print(model.report(X[train:], hours[train:], region_params=new, baselines={"today's rule": rule}))
