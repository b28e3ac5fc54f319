"""Adam (Kingma and Ba, 2015): steps of stochastic gradient descent, scaled by the moments of the gradient."""

from __future__ import annotations

import numpy as np

#: learning rates at the start and at the end of a run, for parameters of order one
RATES = (0.1, 0.005)

#: steps of a run
N_STEPS = 200


class Adam:
    """Moments of the gradient of one array of parameters of this shape.

    ``epsilon`` is added to the root of the second moment, against division by zero.  With ``correct_first`` its bias is
    corrected before, as in Algorithm 1 of the paper, otherwise after, as in the variant at the end of its section 2.
    """

    def __init__(self, shape: tuple[int, ...], *, epsilon: float = 1e-8, correct_first: bool = False) -> None:
        self.epsilon, self.correct_first = epsilon, correct_first
        self.first, self.second = np.zeros(shape), np.zeros(shape)
        self.n_steps = 0

    def step(self, gradient: np.ndarray, rate: float) -> np.ndarray:
        """Return what is to be subtracted from the parameters."""
        self.n_steps += 1
        self.first += 0.1 * (gradient - self.first)
        self.second += 0.001 * (gradient * gradient - self.second)
        bias_1, bias_2 = 1.0 - 0.9**self.n_steps, 1.0 - 0.999**self.n_steps
        if self.correct_first:
            return rate * (self.first / bias_1) / (np.sqrt(self.second / bias_2) + self.epsilon)
        return rate * np.sqrt(bias_2) / bias_1 * self.first / (np.sqrt(self.second) + self.epsilon)
