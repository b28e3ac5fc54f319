"""The step of interior-point methods where numbers overflow or vanish."""

import numpy as np
import pytest

from skspo.solvers.predictor_corrector import LEAST_CENTERING, step


class System:
    """A system of one product that notes what the corrector aims at."""

    most, one_step = 0.995, True

    def __init__(self, mu, after):
        self.size, self.left, self.goal = mu, after, None

    def mu(self):
        return self.size

    def factor(self, mu):
        return True

    def predictor(self):
        return 0.0

    def corrector(self, move, goal):
        self.goal = goal
        return goal

    def decreases(self, move):
        return 0.5, 0.5

    def after(self, move, primal, dual):
        return self.left

    def finite(self, move):
        return np.isfinite(move)

    def advance(self, move, primal, dual):
        pass


@pytest.mark.parametrize(
    ("mu", "after", "goal"),
    [(2.0, 1.0, 0.25), (1.0, 0.0, LEAST_CENTERING), (1.0, 1e200, 1.0), (1e-300, 1e300, 1e-300), (1.0, np.inf, 1.0)],
)
def test_goal_is_between_its_bounds(mu, after, goal):
    system = System(mu, after)
    assert step(system) == (1.0, 1.0)
    assert system.goal == goal


@pytest.mark.parametrize(("mu", "after"), [(0.0, 0.0), (1.0, np.nan)])
def test_no_step_where_the_goal_is_not_a_number(mu, after):
    assert step(System(mu, after)) == (0.0, 0.0)
