"""Who works in which shift, if some are ill; an agency fills what is left, at a known price.

Without the agency there would be days on which no plan exists, which is an error.  Cross-validation chooses the
penalty: with alpha=0.1 decisions cost more than those of least squares.
"""

import numpy as np
import pandas as pd

from skspo import MixedInteger, SPOPlusRegressorCV, chosen, decide

staff, shifts, need = ["Ann", "Bob", "Cem", "Dee", "Eva", "Fay"], ["early", "late", "night"], [2, 2, 1]
names = [f"{who} {shift}" for who in [*staff, "agency"] for shift in shifts]
own = np.eye(6, 7)[:, :, None] * np.ones(3)  # one shift a day for each person
region = MixedInteger(
    A_ub=own.reshape(6, 21),
    b_ub=np.ones(6),
    A_eq=np.tile(np.eye(3), 7),  # everyone in a shift, the agency included
    b_eq=need,
    bounds=[(0, 1)] * 18 + [(0, 2)] * 3,
    variable_names=names,
)

rng = np.random.default_rng(0)
n, train, agency = 200, 150, 400.0
X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["season", "events", "holidays"])
level = np.exp(0.4 * X.to_numpy() @ rng.normal(size=(3, 18))) * rng.uniform(0.8, 1.2, size=(n, 18))
cost = pd.DataFrame(np.hstack([150 * level, np.full((n, 3), agency)]), columns=names)  # with overtime
ill = rng.random((n, 6)) < 0.15
upper = np.hstack([np.repeat(~ill, 3, axis=1), np.full((n, 3), 2.0)])
past, new = {"upper": upper[:train]}, {"upper": upper[train:]}
model = SPOPlusRegressorCV(region, cv=3, tol=1e-2).fit(X[:train], cost[:train], region_params=past)

for day, plan in enumerate(chosen(model, X[train:], region_params=new)[:3], start=train):
    print(f"day {day}, ill: {[who for who, gone in zip(staff, ill[day], strict=True) if gone]}\n  {plan}")
W = decide(model, X[train:], region_params=new, as_frame=True)
print("shifts of the agency:", int(W[names[18:]].to_numpy().sum()), "in", len(W), "days")
usual = np.tile(cost[:train].mean(), (n - train, 1))
rule = {"usual costs": region.with_rows(new, n - train, 21).argmin(usual)}
print(model.report(X[train:], cost[train:], region_params=new, baselines=rule))
