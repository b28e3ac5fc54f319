"""Schedules as images of regions against programs with one variable for each start."""

import os
from pathlib import Path

import numpy as np
import pytest
from image_problems import random_costs
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import Bounds, LinearConstraint, milp

import skspo as sk


@pytest.mark.parametrize("integer", [True, False])
def test_a_schedule_against_a_direct_model(integer):
    """Tasks of several hours on one machine, prices per hour, and a fee for late starts."""
    duration, power, use, hours, capacity = [2, 3, 1], [4.0, 1.0, 2.5], [1.0, 2.0, 1.0], 6, 2.5
    starts = [(task, t) for task in range(3) for t in range(hours - duration[task] + 1)]
    runs = np.zeros((3, hours, len(starts)))
    for column, (task, t) in enumerate(starts):
        runs[task, t : t + duration[task], column] = 1.0
    once = np.array([[float(task == k) for task, _ in starts] for k in range(3)])
    kind = sk.MixedInteger if integer else sk.Polyhedron
    tasks = kind(np.tensordot(use, runs, 1), np.full(hours, capacity), once, np.ones(3), (0, 1))
    fee = np.array([0.7 * t for _, t in starts])
    region = sk.LinearImage(tasks, np.tensordot(power, runs, 1), fee)
    limits = [LinearConstraint(once, 1, 1), LinearConstraint(np.tensordot(use, runs, 1), ub=capacity)]
    for price in random_costs(hours, 10) + 1.0:
        cost = fee + sum(power[task] * price[t : t + duration[task]].sum() * (np.array(starts) == (task, t)).all(axis=1)
                         for task, t in starts)  # fmt: skip
        direct = milp(cost, constraints=limits, bounds=Bounds(0, 1), integrality=int(integer))
        z = region.inner_argmin(region.extend(price))
        assert region.extend(price) @ region.argmin(region.extend(price)) == pytest.approx(direct.fun)
        assert cost @ z == pytest.approx(direct.fun)


def direct_schedule(text, price):
    """Least cost of a day, from the lines of an instance: variables for tasks, machines and starts, one by one."""
    lines = [[float(x) for x in line.split()] for line in text.splitlines()]
    n_machines = int(lines[2][0])
    capacity, body = lines[4 : 3 + 2 * n_machines : 2], lines[4 + 2 * n_machines :]
    tasks = list(zip(body[::2], body[1::2], strict=True))
    assert len(tasks) == lines[3 + 2 * n_machines][0]
    names = [(j, k, t) for j, ((_, length, first, last, _), _) in enumerate(tasks) for k in range(n_machines)
             for t in range(48) if first <= t and t + length <= last]  # fmt: skip
    cost = [tasks[j][0][4] * price[t : t + int(tasks[j][0][1])].sum() for j, _, t in names]
    limits = [LinearConstraint([float(j == i) for j, _, _ in names], 1, 1) for i in range(len(tasks))]
    for k in range(n_machines):
        for r, most in enumerate(capacity[k]):
            for t in range(48):
                use = [tasks[j][1][r] * (kk == k and s <= t < s + tasks[j][0][1]) for j, kk, s in names]
                limits.append(LinearConstraint(use, ub=most))
    found = milp(cost, constraints=limits, bounds=Bounds(0, 1), integrality=1, options={"mip_rel_gap": 0.0})
    assert found.success
    return found.fun


TWO_MACHINES = (
    "30\n2\n2\n0 0 0 0\n10 7\n1 0 0 0\n6 8\n4\n0 6 2 30 12.5\n6 3\n1 20 1 40 6\n5 4\n2 4 0 7 15\n5 5\n3 9 5 44 4\n6 2"
)
DATA = os.environ.get("SKSPO_ENERGY_DATA")


def scheduling_example():
    """Functions of the example that need no data."""
    example = {}
    source = (Path(__file__).parents[2] / "examples" / "plot_scheduling.py").read_text()
    exec(source.split("folder = ")[0], example)
    return example, source


def test_the_schedule_of_the_example_is_short():
    """Instance and region, from the text of a file: under 40 lines."""
    _, source = scheduling_example()
    lines = source.split("def read_instance")[1].split("folder = ")[0].splitlines()
    assert len([line for line in lines if line.strip()]) < 40


def days_of_prices():
    """The last 20 days of the market without gaps, or some that are made up."""
    if DATA is None:
        return 50 + 20 * random_costs(48, 5)
    lines = (Path(DATA) / "energy_scheduling" / "prices2013.dat").read_text().splitlines()[1:]
    prices = np.array([float(line.split()[-1].replace("NA", "nan")) for line in lines]).reshape(-1, 48)
    return prices[~np.isnan(prices).any(axis=1)][-20:]


@pytest.mark.parametrize("name", ["two machines", "load1", "load2", "load3"])
def test_the_schedule_of_the_example_against_a_direct_model(name):
    """The real instances only where they are: the data are not part of the package."""
    if DATA is None and name != "two machines":
        pytest.skip("SKSPO_ENERGY_DATA is not set")
    example, _ = scheduling_example()
    folder = Path(DATA or "") / "energy_scheduling"
    text = TWO_MACHINES if name == "two machines" else (folder / f"{name}.txt").read_text().strip()
    region, starts = example["schedule"](*example["read_instance"](text))
    C = days_of_prices()
    value = [direct_schedule(text, price) for price in C]
    assert_allclose((C * region.argmin(C)).sum(axis=1), value, rtol=1e-9)
    Z = region.inner_argmin(C)
    assert Z.shape[1] == len(starts)
    assert_array_equal(Z.sum(axis=1), np.full(len(C), len({task for task, _, _ in starts})))
