"""Long tables: one row per sample and item, stacked into the arrays of a shared model."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from problems import items_data
from sklearn.model_selection import TimeSeriesSplit

from skspo import Simplex, stack_items


@pytest.fixture
def table():
    X, C = items_data(4, n=6)
    df = pd.DataFrame(X.reshape(-1, 3), columns=["a", "b", "c"])
    df["day"] = np.repeat(pd.date_range("2024-01-01", periods=6), 4)
    df["hour"] = np.tile(["h1", "h2", "h3", "h4"], 6)
    df["price"] = C.ravel()
    return df, X, C


def test_stack_items(table):
    df, X, C = table
    mixed = df.sample(frac=1.0, random_state=0)
    stacked = stack_items(mixed, sample="day", item="hour", features=["a", "b", "c"], cost="price")
    np.testing.assert_array_equal(stacked.samples, pd.date_range("2024-01-01", periods=6))
    np.testing.assert_array_equal(stacked.X, X)
    np.testing.assert_array_equal(stacked.C, C)
    assert list(stacked.items) == ["h1", "h2", "h3", "h4"]
    # And back, for rows in any order.
    np.testing.assert_array_equal(stacked.unstack(stacked.C), mixed["price"])
    mixed["chosen"] = stacked.unstack(Simplex().argmin(stacked.C))
    cheapest = mixed.loc[mixed.groupby("day")["price"].idxmin()]
    assert (cheapest["chosen"] == 1).all()
    assert mixed["chosen"].sum() == 6


def test_stack_items_of_new_data_in_a_given_order(table):
    df, X, _ = table
    stacked = stack_items(df, sample="day", item="hour", features=["b"], items=["h3", "h1", "h4", "h2"])
    assert stacked.C is None
    np.testing.assert_array_equal(stacked.X, X.reshape(6, 4, 3)[:, [2, 0, 3, 1], 1])
    np.testing.assert_array_equal(stacked.unstack(stacked.X), df["b"])


def test_stack_items_sorts_by_category_and_by_time(table):
    df, _, C = table
    df["hour"] = pd.Categorical(df["hour"], ["h4", "h3", "h2", "h1"], ordered=True)
    stacked = stack_items(df, sample="day", item="hour", features=["a"], cost="price")
    np.testing.assert_array_equal(stacked.C, C[:, ::-1])
    df["hour"] = pd.to_datetime(df["hour"].astype(str).str.replace("h", "2024-01-01 0") + ":00")
    stacked = stack_items(df, sample="day", item="hour", features=["a"], cost="price")
    np.testing.assert_array_equal(stacked.C, C)


def test_stack_items_keeps_the_order_of_time(table):
    """Folds of a time series are in its order, for any order of the table."""
    df, X, _ = table
    names = {"sample": "day", "item": "hour", "features": ["a", "b", "c"]}
    for mixed in (df.iloc[::-1], df.sample(frac=1.0, random_state=1), df.sort_values("price")):
        stacked = stack_items(mixed, **names)
        np.testing.assert_array_equal(stacked.X, X)
        for train, test in TimeSeriesSplit(3).split(stacked.X):
            assert stacked.samples[train].max() < stacked.samples[test].min()
        np.testing.assert_array_equal(stacked.unstack(stacked.X[:, ::3]), mixed["a"])
    # Categories keep their own order, numbers are sorted.
    day = pd.Categorical(np.repeat(list("ywxvuz"), 4), list("zywxvu"), ordered=True)
    assert list(stack_items(df.assign(day=day), **names).samples) == list("zywxvu")
    day = np.repeat([10, 9, 100, -1, 2, 3], 4)
    assert list(stack_items(df.assign(day=day), **names).samples) == [-1, 2, 3, 9, 10, 100]
    with pytest.raises(ValueError, match=r"column 'day' cannot be sorted\. Give the samples numbers or dates"):
        stack_items(df.assign(day=[day for day in (1, "two", 3, 4, 5, 6) for _ in range(4)]), **names)


def test_stack_items_prints_plain_values(table):
    df, _, _ = table
    names = {"sample": "day", "item": "hour", "features": ["a"]}
    numbers = df.assign(day=np.repeat(np.arange(6), 4), hour=np.tile([1, 2, 3, 4], 6))
    days = df.assign(day=df["day"].dt.date)
    for table, drop, item, sample in (
        (df, 2, "'h3'", "2024-01-01 00:00:00"),
        (days, 2, "'h3'", "2024-01-01"),
        (df.assign(hour=df["hour"].astype("category")), 2, "'h3'", "2024-01-01 00:00:00"),
        (numbers, 5, "2", "1"),
        (numbers.assign(hour=numbers["hour"] / 2), 5, "1.0", "1"),
    ):
        with pytest.raises(ValueError) as caught:
            stack_items(table.drop(index=drop), **names)
        assert f"but item {item} of sample {sample} is missing (1 such pairs in all)" in str(caught.value)
    items = stack_items(df, **names).items
    with pytest.raises(ValueError, match=r"different names, got \['h1', 'h2', 'h3', 'h4', 'h1'\]"):
        stack_items(df, **names, items=[*items, items[0]])
    with pytest.raises(ValueError, match="has the item 4, which is not among items"):
        stack_items(numbers, **names, items=np.array([1, 2, 3]))


@pytest.mark.parametrize("kind", ["text", "numbers", "time", "date", "order"])
def test_stack_items_of_polars(table, kind):
    pl = pytest.importorskip("polars")
    df, X, C = table
    names = {"sample": "day", "item": "hour", "features": ["a", "b", "c"], "cost": "price"}
    if kind == "numbers":
        df = df.assign(day=np.repeat([1, 2, 3, 9, 10, 100], 4), hour=np.tile([1, 2, 3, 4], 6))
    mixed = df.sample(frac=1.0, random_state=0)
    frame = pl.DataFrame({name: mixed[name].tolist() for name in mixed})
    if kind == "date":
        frame = frame.with_columns(pl.col("day").dt.date())
    elif kind == "time":
        frame = frame.with_columns(pl.col("day").cast(pl.Datetime("ns")))
    elif kind == "order":  # not alphabetical
        frame = frame.with_columns(pl.col("hour").cast(pl.Enum(["h4", "h3", "h2", "h1"])))
        X, C = X.reshape(6, 4, 3)[:, ::-1].reshape(6, -1), C[:, ::-1]
    stacked = stack_items(frame, **names)
    np.testing.assert_array_equal(stacked.X, X)
    np.testing.assert_array_equal(stacked.C, C)
    np.testing.assert_array_equal(stacked.unstack(stacked.C), frame["price"].to_numpy())
    assert (np.diff(stacked.samples.astype("M8[ns]").astype(int)) > 0).all()
    # New data in the order of the old.
    again = stack_items(frame, **(names | {"sample": "hour", "item": "day"}))
    other = stack_items(frame, **(names | {"sample": "hour", "item": "day", "items": list(again.items[::-1])}))
    np.testing.assert_array_equal(other.C, again.C[:, ::-1])


def test_stack_items_of_polars_errors(table):
    pl = pytest.importorskip("polars")
    df, _, _ = table
    frame = pl.DataFrame({name: df[name].tolist() for name in df})
    names = {"sample": "day", "item": "hour", "features": ["a"], "cost": "price"}
    for bad, error, message in (
        (frame.lazy(), TypeError, r"got LazyFrame. Call its method collect\(\) first"),
        (frame[[0, 1, *range(3, 24)]], ValueError, "item 'h3' of sample 2024-01-01 00:00:00 is missing"),
        (pl.concat([frame, frame[5:6]]), ValueError, "item 'h2' of sample 2024-01-02 00:00:00 occurs 2 times"),
        (frame[:0], ValueError, "df has no rows"),
        (frame.drop("price"), ValueError, r"df has no column 'price'; it has \['a', 'b', 'c', 'day', 'hour'\]"),
        (frame.with_columns(a=pl.lit("x")), ValueError, r"must be numbers, but \['a'\] are not"),
        (frame.with_columns(hour=pl.lit(None)), ValueError, "'hour' has missing values"),
        (frame.with_columns(hour=pl.lit(np.nan)), ValueError, "'hour' has missing values"),
    ):
        with pytest.raises(error, match=message):
            stack_items(bad, **names)
    with pytest.raises(ValueError, match="has the item 'h4', which is not among items"):
        stack_items(frame, **names, items=["h1", "h2", "h3"])


def test_stack_items_errors(table):
    df, _, C = table
    names = {"sample": "day", "item": "hour", "features": ["a"], "cost": "price"}
    with pytest.raises(ValueError, match=r"item 'h3' of sample .*2024-01-01.* is missing \(1 such"):
        stack_items(df.drop(index=2), **names)
    with pytest.raises(ValueError, match=r"item 'h2' of sample .*2024-01-02.* occurs 2 times \(1 such"):
        stack_items(pd.concat([df, df.iloc[[5]]]), **names)
    with pytest.raises(ValueError, match="df has no column 'cost'"):
        stack_items(df, **(names | {"cost": "cost"}))
    with pytest.raises(ValueError, match="has the item 'h4', which is not among items"):
        stack_items(df, items=["h1", "h2", "h3"], **names)
    with pytest.raises(ValueError, match="different names"):
        stack_items(df, items=["h1", "h1"], **names)
    with pytest.raises(ValueError, match="must be numbers, but \\['hour'\\]"):
        stack_items(df, **(names | {"features": ["a", "hour"]}))
    with pytest.raises(TypeError, match=r"Use \['a'\]"):
        stack_items(df, **(names | {"features": "a"}))
    with pytest.raises(ValueError, match="features is empty"):
        stack_items(df, **(names | {"features": []}))
    with pytest.raises(TypeError, match=r"df must be a DataFrame of pandas or polars.*got ndarray"):
        stack_items(C, **names)
    with pytest.raises(ValueError, match="no rows"):
        stack_items(df.iloc[:0], **names)
    df.loc[3, "hour"] = None
    with pytest.raises(ValueError, match="'hour' has missing values"):
        stack_items(df, **names)
    mixed = df.assign(hour=[1, "two", 3, 4] * 6)
    with pytest.raises(ValueError, match="cannot be sorted"):
        stack_items(mixed, **names)
    with pytest.raises(ValueError, match=r"shape \(6, 4\), got \(6, 3\)"):
        stack_items(table[0].assign(hour=["h1", "h2", "h3", "h4"] * 6), **names).unstack(C[:, :3])


def test_samples_are_sorted():
    df = pd.DataFrame({"day": [9, 9, 2, 2, 5, 5], "item": list("abbaab"), "x": np.arange(6.0)})
    stacked = stack_items(df, sample="day", item="item", features=["x"])
    assert list(stacked.samples) == [2, 5, 9]
    assert_array_equal(stacked.X, [[3.0, 2.0], [4.0, 5.0], [0.0, 1.0]])
