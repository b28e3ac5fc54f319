"""Adam: its steps are those of the formula with the moments written out as sums."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skspo._utils.adam import Adam


def test_first_step_is_the_learning_rate():
    gradient = np.array([3.0, -0.02, 1e-3])
    adam = Adam((3,), epsilon=1e-12, correct_first=True)
    assert_allclose(adam.step(gradient, 0.25), 0.25 * np.sign(gradient), rtol=1e-6)


@pytest.mark.parametrize("correct_first", [False, True])
def test_steps_follow_the_formula(correct_first):
    gradients = np.random.default_rng(0).normal(size=(30, 2, 3))
    epsilon = 0.1  # large, so that its place matters
    adam = Adam((2, 3), epsilon=epsilon, correct_first=correct_first)
    for t in range(1, len(gradients) + 1):
        step = adam.step(gradients[t - 1], 0.5)
        age = np.arange(t)[::-1, None, None]
        first = (0.1 * 0.9**age * gradients[:t]).sum(axis=0) / (1 - 0.9**t)
        second = (0.001 * 0.999**age * gradients[:t] ** 2).sum(axis=0) / (1 - 0.999**t)
        added = epsilon if correct_first else epsilon / np.sqrt(1 - 0.999**t)
        assert_allclose(step, 0.5 * first / (np.sqrt(second) + added), rtol=1e-10)
