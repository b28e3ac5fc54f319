"""To which customers an offer is sent: at most three a day, and fewer if it does not pay."""

import numpy as np
import pandas as pd
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skspo import SPOPlusRegressor, TopK, chosen, decide, decision_report

rng = np.random.default_rng(0)
customers, n, train = [f"customer {j}" for j in range(1, 9)], 300, 200
X = pd.DataFrame(rng.normal(size=(n, 4)), columns=["season", "price", "weather", "news"])
interest = 1 / (1 + np.exp(-X.to_numpy() @ rng.normal(size=(4, 8))))
profit = pd.DataFrame(20 * interest**3 * rng.uniform(0, 2, size=(n, 8)) - 8, columns=customers)  # an offer costs 8

pipeline = make_pipeline(StandardScaler(), SPOPlusRegressor(TopK(3, at_most=True, sense="max")))
search = GridSearchCV(pipeline, {"spoplusregressor__alpha": [0.01, 0.1, 1.0]}, cv=3).fit(X[:train], profit[:train])

for words in chosen(search, X[train : train + 3]):
    print(words)
W = decide(search, X[train:], as_frame=True)
print("days by number of offers:", W.sum(axis=1).astype(int).value_counts().sort_index().to_dict())
three = np.tile(TopK(3, sense="max").argmin(profit[:train].mean()), (n - train, 1))
print(decision_report(search, X[train:], profit[train:], baselines={"always the same three": three}))
