"""Do the tests notice mistakes?  Plant one at a time, in a copy of the source tree, and see whether some test fails.

    python tools/mutants.py [--only WORD ...] [--jobs N] [--timeout SECONDS] [--baseline] [--list]

Each mutant is a mistake that somebody could have made: a lost factor, a sign, a weight that is forgotten, a bound that
is not clipped, what was remembered of the wrong rows.  ``old`` is text that occurs exactly once in the file (the tests
check that it still does), ``new`` replaces it, and ``tests`` are arguments of pytest: those tests that should fail.

    killed     a test failed                              survived   all of them passed
    timeout    they did not end in time; not counted as killed
    error      pytest found nothing to run, or could not import the package: the entry must be mended

The exit code is 1 if less than 90 % are killed, or if there are errors.  ``--baseline`` runs the same tests without any
mutant, where all must pass; a kill means nothing otherwise.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import signal
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

ROOT = Path(__file__).parents[1]

#: smallest share of mutants that the tests must notice
ENOUGH = 0.9

#: packages that the tests need, without skspo itself
PRELOAD = ["pytest", "hypothesis.extra.numpy", "sklearn.linear_model", "sklearn.model_selection", "sklearn.utils"]
PRELOAD += ["scipy.optimize", "scipy.stats", "cvxpy", "highspy", "pandas", "networkx", "matplotlib.pyplot"]


class Mutant(NamedTuple):
    """One mistake."""

    name: str
    file: str  # inside skspo
    old: str
    new: str
    tests: str  # arguments of pytest, with "tests/test_" and ".py" left out of the file's name
    equivalent: str = ""  # why it changes nothing that anybody could observe; such a mutant is not run


MUTANTS = [
    # -- losses --------------------------------------------------------------------------------------------------------
    Mutant(
        "loss: offset counts once instead of twice",
        "losses.py",
        "(C - 2.0 * offset, None)",
        "(C - offset, None)",
        "offset -k 'exact_training or smooth_regions'",
    ),
    Mutant(
        "loss: subgradient without its factor two",
        "losses.py",
        "difference *= 2.0",
        "difference *= 1.0",
        "losses",
    ),
    Mutant(
        "loss: gradient not turned back for sense=max",
        "losses.py",
        "return value, region.to_min(G)",
        "return value, G",
        "losses",
    ),
    Mutant(
        "loss: negative weights accepted",
        "losses.py",
        "dtype=np.float64, ensure_non_negative=True)",
        "dtype=np.float64)",
        "metrics -k weights",
    ),
    Mutant(
        "loss: offset of length n taken for a column whatever d is",
        "losses.py",
        "if known.shape == (n,) and d == 1:",
        "if known.shape == (n,):",
        "mutants_found -k as_many_costs_as_samples",
    ),
    Mutant(
        "loss: gradient of the SPO loss in the wrong direction",
        "losses.py",
        "return value, region.derivative(C_hat, C)",
        "return value, -region.derivative(C_hat, C)",
        "spo -k gradient",
    ),
    Mutant(
        "loss: given optimal decisions of another shape accepted",
        "losses.py",
        "if W_true.shape != C.shape:",
        "if W_true.ndim != C.ndim:",
        "mutants_found -k decisions_of_one_sample",
    ),
    # -- metrics -------------------------------------------------------------------------------------------------------
    Mutant(
        "metric: weights forgotten in the denominator",
        "metrics.py",
        "size = float(_average(np.abs(z), sample_weight, False))",
        "size = float(_average(np.abs(z), None, False))",
        "metrics",
    ),
    Mutant(
        "metric: normalised by the sum, not by the sizes",
        "metrics.py",
        "size = float(_average(np.abs(z), sample_weight, False))",
        "size = float(abs(_average(z, sample_weight, False)))",
        "metrics",
    ),
    Mutant(
        "metric: rounding makes a loss negative",
        "metrics.py",
        "return np.maximum(loss, 0.0), np.einsum",
        "return loss, np.einsum",
        "mutants_found -k rounding_makes_negative",
    ),
    Mutant(
        "metric: scorer with the wrong sign",
        "metrics.py",
        "greater_is_better=False",
        "greater_is_better=True",
        "metrics",
    ),
    Mutant(
        "metric: worst tie of the truth, not of the prediction",
        "metrics.py",
        "region.worst_argmin(C_hat, C) - W",
        "region.worst_argmin(C, C_hat) - W",
        "metrics",
    ),
    Mutant(
        "metric: offset subtracted",
        "metrics.py",
        "else C_hat + known",
        "else C_hat - known",
        "offset -k 'every_estimator or known_tolls or exact_training'",
    ),
    Mutant(
        "metric: warning although nothing is lost",
        "metrics.py",
        '    if np.any(loss):\n        warnings.warn(\n            "All best',
        '    if True:\n        warnings.warn(\n            "All best',
        "mutants_found -k nothing_is_lost",
    ),
    # -- objective -----------------------------------------------------------------------------------------------------
    Mutant(
        "objective: gap relative to the objective alone, no floor",
        "objective.py",
        "size = max(abs(objective), GAP_FLOOR * self.trivial_value())",
        "size = abs(objective)",
        "mutants_found -k gap_is_relative",
    ),
    Mutant(
        "objective: residual of the certificate not charged",
        "objective.py",
        " - CERTIFICATE_RADIUS * float(np.linalg.norm(R))",
        "",
        "solvers -k 'bound or dual or lying or exhausted'",
    ),
    Mutant(
        "objective: residual of the certificate centred at zero, not at the prior",
        "objective.py",
        "float(np.vdot(Theta - self.prior, R))",
        "float(np.vdot(Theta, R))",
        "mutants_found -k line_in_a_ball",
    ),
    Mutant(
        "objective: conjugate of the ridge with half its size",
        "objective.py",
        "- 0.5 * float(((excess**2)",
        "- 0.25 * float(((excess**2)",
        "solvers -k 'bound or dual or vertices'",
    ),
    Mutant(
        "objective: lasso absorbs nothing in the bound",
        "objective.py",
        "np.maximum(np.abs(G) - self.l1, 0.0)",
        "np.abs(G)",
        "solvers -k 'vertices'",
    ),
    Mutant(
        "objective: weights not normalised by their sum",
        "objective.py",
        "weight = weight / weight.sum()",
        "weight = weight / weight.size",
        "mutants_found -k ratios_of_weights",
    ),
    Mutant(
        "objective: weights of a sample of rows not normalised",
        "objective.py",
        "return self.take(rows, float(self.weight[rows].sum()))",
        "return self.take(rows, 1.0)",
        "interior_point -k thinned",
    ),
    Mutant(
        "objective: intercept penalised with prior zero",
        "objective.py",
        "penalized[p:] = self.anchored",
        "penalized[p:] = True",
        "solvers -k vertices",
    ),
    Mutant(
        "objective: ridge scaled with the spread, not with its square",
        "objective.py",
        "(alpha * (1.0 - l1_ratio) / s) * (cost_scale / s)",
        "(alpha * (1.0 - l1_ratio) / s) * cost_scale",
        "solvers -k vertices",
    ),
    Mutant(
        "objective: lasso multiplied by the spread instead of divided",
        "objective.py",
        "alpha * l1_ratio / s",
        "alpha * l1_ratio * s",
        "solvers -k vertices",
    ),
    Mutant(
        "objective: penalised slopes keep what decisions cannot see",
        "objective.py",
        "self._hidden[:, :p] = 0.0",
        "pass",
        "solvers shared -k 'cannot_see or penalty_decides or agrees'",
    ),
    Mutant(
        "objective: hidden component shared by all penalties",
        "objective.py",
        "self._hidden = self.coordinates.hidden.copy()",
        "self._hidden = self.coordinates.hidden",
        "mutants_found -k another_penalty",
    ),
    Mutant(
        "objective: history goes on with another penalty",
        "objective.py",
        "other.history = []\n        other._set_penalty",
        "other._set_penalty",
        "history",
    ),
    Mutant(
        "objective: sample of rows keeps the loss of the zero prediction of all",
        "objective.py",
        "other.memory, other.history, other._trivial = {}, [], None",
        "other.memory, other.history = {}, []",
        "mutants_found -k trivial_loss_of_its_own",
    ),
    Mutant(
        "objective: another loss forgets the offset",
        "objective.py",
        "other._set_costs(self.plain_costs, self.plain_offset)",
        "pass",
        "mutants_found -k another_loss",
    ),
    Mutant(
        "objective: regions of the first rows for every batch",
        "objective.py",
        "region = self.region if memory is not None else self.region.take(rows)",
        "region = self.region if memory is not None else self.region.take(np.arange(self.C[rows].shape[0]))",
        "mutants_found -k rows_of_a_batch",
    ),
    Mutant(
        "objective: only the last block of a group counts",
        "objective.py",
        "A[g] += self.design.adjoint(share, mine)",
        "A[g] = self.design.adjoint(share, mine)",
        "bundle -k blocks",
    ),
    Mutant(
        "objective: blocks have the regions of the first rows",
        "objective.py",
        "self.region if len(slices) == 1 else self.region.take(rows)",
        "self.region if len(slices) == 1 else self.region.take(slice(rows.stop - rows.start))",
        "bundle -k vary_by_row",
    ),
    Mutant(
        "objective: rounding is taken for differences of costs",
        "objective.py",
        "same = size <= ROUNDING * whole",
        "same = size <= 0.0 * whole",
        "solvers -k same_for_all",
    ),
    Mutant(
        "objective: constants of cuts twice as large",
        "objective.py",
        "b[g] -= 0.5 * float(",
        "b[g] -= 1.0 * float(",
        "bundle -k agrees",
    ),
    Mutant(
        "objective: bound from decisions that are not in the region",
        "objective.py",
        "        V = self.region.repair(V)\n        best",
        "        best",
        "mutants_found -k outside_the_region",
    ),
    Mutant(
        "objective: moments corrected against the penalty",
        "objective.py",
        "-np.sign(D) * self.l1 - D * self.l2",
        "np.sign(D) * self.l1 + D * self.l2",
        "mutants_found -k residual_moments",
    ),
    Mutant(
        "objective: rows of weight zero kept",
        "objective.py",
        "keep = np.flatnonzero(weight > 0)",
        "keep = np.flatnonzero(weight >= 0)",
        "solvers estimators -k 'weight'",
    ),
    Mutant(
        "objective: samples that differ only in their offset merged",
        "objective.py",
        "merge_rows(sample_weight, X, y, offset, region",
        "merge_rows(sample_weight, X, y, None, region",
        "offset -k equal_samples",
    ),
    Mutant(
        "objective: rows with equal keys not sorted further",
        "objective.py",
        "order = np.lexsort((*rows.T[::-1], key))",
        "order = np.argsort(key, kind='stable')",
        "mutants_found -k equal_keys",
    ),
    Mutant(
        "objective: start has the hidden component twice",
        "objective.py",
        "return Theta - self._hidden",
        "return Theta",
        "mutants_found -k there_and_back",
    ),
    Mutant(
        "objective: typical cost of a component, not of a vector",
        "objective.py",
        "np.square(C / unit).sum(axis=1)",
        "np.square(C / unit).mean(axis=1)",
        "chunks -k coordinates",
    ),
    Mutant(
        "objective: prior fitted to all costs, known part included",
        "objective.py",
        "unknown = C if known is None else C - known",
        "unknown = C",
        "offset -k 'large_alpha or cannot_see'",
    ),
    # -- design --------------------------------------------------------------------------------------------------------
    Mutant(
        "design: column that is constant up to rounding counts as a feature",
        "design.py",
        "used = spread > 16 * np.finfo(float).eps * largest",
        "used = spread > 0",
        "mutants_found -k constant_up_to_rounding",
    ),
    Mutant(
        "design: features centred although the intercept is penalised",
        "design.py",
        "if fit_intercept and center else",
        "if fit_intercept else",
        "solvers -k vertices",
    ),
    Mutant(
        "design: weights of a shared model's rows do not sum to one",
        "design.py",
        "np.repeat(weight, self.d) / self.d",
        "np.repeat(weight, self.d)",
        "chunks shared -k 'shared or coordinates or units or contract'",
    ),
    Mutant(
        "design: intercept of centred features moved the wrong way",
        "design.py",
        "(intercept + coef @ (self.mean / unit))[:, None]",
        "(intercept - coef @ (self.mean / unit))[:, None]",
        "estimators solvers -k 'warm or see'",
    ),
    Mutant(
        "design: hidden component of penalised coefficients dropped",
        "design.py",
        "return visible if free is None else np.where(free, visible, Theta)",
        "return visible",
        "solvers -k 'vertices or cannot_see'",
    ),
    Mutant(
        "design: rounding left in hidden columns of a shared model",
        "design.py",
        "self.Z = np.where(left > INVISIBLE * size, visible, 0.0)",
        "self.Z = visible",
        "mutants_found -k hidden_features",
    ),
    Mutant(
        "design: hidden coefficients fitted as if the others were zero",
        "design.py",
        "((reference - Theta) @ self.full_gram",
        "(reference @ self.full_gram",
        "shared -k hidden",
    ),
    Mutant(
        "design: least squares without weights",
        "design.py",
        "self._regression(features, C, self.weight)",
        "self._regression(features, C, np.ones_like(self.weight))",
        "mutants_found -k prior_has_weights",
    ),
    Mutant(
        "design: reweighted least squares with an unweighted right-hand side",
        "design.py",
        "((weight * C).T @ self.Z)[:, :, None]",
        "(C.T @ self.Z)[:, :, None]",
        "spo -k least_absolute",
    ),
    Mutant(
        "design: Hessian of a shared model without the weights",
        "design.py",
        "(np.matmul(M, Z) * self.weight[rows, None, None])",
        "(np.matmul(M, Z) / len(self.weight))",
        "mutants_found -k curvature",
    ),
    # -- solvers: what they share --------------------------------------------------------------------------------------
    Mutant(
        "solver: bound above the value",
        "solvers/base.py",
        "bound = min(bound, value)",
        "bound = bound + 0.0",
        "mutants_found -k never_above",
    ),
    Mutant(
        "solver: iterations of the second solver counted from zero",
        "solvers/base.py",
        "self.before[1] + n_iter",
        "n_iter",
        "history",
    ),
    Mutant(
        "solver: full history loses its first row",
        "solvers/base.py",
        "del history[1::2]",
        "del history[::2]",
        "history",
    ),
    Mutant(
        "solver: auto takes newton for a lasso",
        "solvers/__init__.py",
        "newton = not NewtonSolver.missing(region) and objective.smooth_penalty",
        "newton = not NewtonSolver.missing(region)",
        "solvers -k auto",
    ),
    Mutant(
        "solver: auto takes bundle first where the oracle is a solver",
        "solvers/__init__.py",
        "n_coef <= BUNDLE_FIRST and not region.asks_solver",
        "n_coef <= BUNDLE_FIRST",
        "solvers -k auto",
    ),
    Mutant(
        "bundle: all idle cuts thrown away at once",
        "solvers/bundle.py",
        "enough = max(self.enough_cuts - self.n_groups, int((self.idle == 0).sum()))",
        "enough = int((self.idle == 0).sum())",
        "bundle -k while_there_is_room",
    ),
    Mutant(
        "bundle: cuts averaged as soon as there are enough",
        "solvers/bundle.py",
        "room = self.max_cuts - self.n_groups",
        "room = self.enough_cuts - self.n_groups",
        "bundle -k while_there_is_room",
    ),
    Mutant(
        "interior point: an oracle that is a solver is asked in each iteration",
        "solvers/interior_point.py",
        "state.bound() + gap if region.asks_solver else state.value()",
        "state.value()",
        "solvers -k asked_rarely",
    ),
    # -- interior point ------------------------------------------------------------------------------------------------
    Mutant(
        "interior point: corrector of second order with the wrong sign",
        "solvers/interior_point_blocks.py",
        "return goal / self.us - du * ds, goal / self.tr - dt * dr",
        "return goal / self.us + du * ds, goal / self.tr + dt * dr",
        "interior_point",
    ),
    Mutant(
        "interior point: nothing holds coefficients where the loss is flat",
        "solvers/interior_point.py",
        "curvature = 0.25 * self.l2 + mu * self.hold",
        "curvature = 0.25 * self.l2",
        "interior_point",
    ),
    Mutant(
        "interior point: ridge towards zero whatever the prior",
        "solvers/interior_point.py",
        "0.25 * self.l2 * (self.P - self.prior)",
        "0.25 * self.l2 * self.P",
        "interior_point -k agrees",
    ),
    Mutant(
        "interior point: curvature of the ridge twice as large",
        "solvers/interior_point.py",
        "curvature = 0.25 * self.l2 + mu * self.hold",
        "curvature = 0.5 * self.l2 + mu * self.hold",
        "interior_point",
    ),
    Mutant(
        "interior point: outlying products pulled down without limit",
        "solvers/interior_point_blocks.py",
        "return np.maximum(np.clip(product, low, high) - product, -high)",
        "return np.clip(product, low, high) - product",
        "interior_point",
    ),
    Mutant(
        "interior point: targets of the l1 part with the wrong sign",
        "solvers/interior_point.py",
        "kappa = lp / self.slack_p - ln / self.slack_n",
        "kappa = lp / self.slack_p + ln / self.slack_n",
        "interior_point -k agrees",
    ),
    Mutant(
        "interior point: may end worse than it started",
        "solvers/interior_point.py",
        "if n_iter and not close:",
        "if False:",
        "mutants_found -k never_worse",
    ),
    Mutant(
        "interior point: every single equality taken for a plain sum",
        "solvers/interior_point.py",
        "self.plain = m == 1 and bool((form.A == 1.0).all())",
        "self.plain = m == 1",
        "interior_point -k 'agrees or random'",
    ),
    Mutant(
        "interior point: rounding of A u = b adds up",
        "solvers/interior_point_blocks.py",
        "            self.base += self.restore(self.F, self.D, self.u)",
        "            pass",
        "interior_point",
    ),
    Mutant(
        "interior point: step of the multipliers used for the decisions",
        "solvers/interior_point_blocks.py",
        "self.u = self.u * (1.0 + ap * du)",
        "self.u = self.u * (1.0 + ad * du)",
        "interior_point",
    ),
    Mutant(
        "reduced form: variables with only an upper bound not mirrored",
        "solvers/reduced_form.py",
        "sign = np.where(low_, 1.0, -1.0)[kept]",
        "sign = np.ones(N)[kept]",
        "interior_point -k reduced_form",
    ),
    Mutant(
        "reduced form: variables fixed at their upper bound put at the lower one",
        "solvers/reduced_form.py",
        "fixed = np.where(strict_low, upper, lower)",
        "fixed = lower",
        "mutants_found -k fixed_at_their_upper",
    ),
    # -- bundle --------------------------------------------------------------------------------------------------------
    Mutant(
        "bundle: absolute values vanish too early",
        "solvers/bundle.py",
        "lasso * (lasso - steepest)",
        "lasso * lasso",
        "bundle -k quadratic",
    ),
    Mutant(
        "bundle: bound above the value",
        "solvers/bundle.py",
        "        bound = min(bound, value)\n",
        "",
        "mutants_found -k never_above",
    ),
    Mutant(
        "bundle: bound proved around an earlier point",
        "solvers/bundle.py",
        "                bound = max(0.0, objective.dual_value_from_moments(*moments, centre)[0])\n",
        "",
        "mutants_found -k around_the_point",
    ),
    Mutant(
        "bundle: active cuts grow old like idle ones",
        "solvers/bundle.py",
        "self.idle = np.where(multipliers > IDLE, 0, self.idle + 1)",
        "self.idle = self.idle + 1",
        "bundle",
    ),
    Mutant(
        "bundle: coefficients of a lasso nearly zero instead of zero",
        "solvers/bundle.py",
        "        Theta.flat[zero] = obj.prior.flat[zero]\n",
        "",
        "mutants_found -k lasso_to_zero",
    ),
    Mutant(
        "bundle: ridge of the model towards zero whatever the prior",
        "solvers/bundle.py",
        "origin = (centre / step + obj.l2 * obj.prior) * root**2",
        "origin = (centre / step) * root**2",
        "bundle -k agrees",
    ),
    Mutant(
        "bundle: groups with a single cut move the origin the wrong way",
        "solvers/bundle.py",
        "shift = -np.delete(A, several, axis=0).sum(axis=0)",
        "shift = np.delete(A, several, axis=0).sum(axis=0)",
        "bundle -k 'quadratic or agrees'",
    ),
    Mutant(
        "bundle: absolute values not moved with the origin",
        "solvers/bundle.py",
        "(offset + lasso * shift)[which]",
        "offset[which]",
        "bundle -k 'quadratic or agrees'",
    ),
    # -- the other exact solvers ---------------------------------------------------------------------------------------
    Mutant(
        "lbfgs: gradient of the negative parts with the wrong sign",
        "solvers/lbfgs.py",
        "(objective.l1 - G).ravel()",
        "(objective.l1 + G).ravel()",
        "solvers -k lbfgs",
    ),
    Mutant(
        "lbfgs: gradient of an elastic net without its ridge",
        "solvers/lbfgs.py",
        "G = G + D * objective.l2",
        "G = G + 0.0 * D",
        "mutants_found -k elastic_net",
    ),
    Mutant(
        "lbfgs: never asks for a smaller gradient",
        "solvers/lbfgs.py",
        "pgtol, last_gap = 1e-2 * pgtol, gap",
        "pgtol, last_gap = pgtol, gap",
        "mutants_found -k smaller_gradient",
    ),
    Mutant(
        "newton: smoothed value without its level",
        "solvers/newton.py",
        'np.einsum("ij,ij->i", V, difference) - mu * level',
        'np.einsum("ij,ij->i", V, difference)',
        "newton",
    ),
    Mutant(
        "newton: Hessian with half its size",
        "solvers/newton.py",
        "curvature(4.0 * self.region",
        "curvature(2.0 * self.region",
        "mutants_found -k newton_needs",
    ),
    Mutant(
        "newton: may end worse than it started",
        "solvers/newton.py",
        "if coef_init is not None or objective.deadline.reached:",
        "if objective.deadline.reached:",
        "mutants_found -k never_worse",
    ),
    Mutant(
        "newton: stops before the moments match",
        "solvers/newton.py",
        "proved = CERTIFICATE_RADIUS * float",
        "proved = 1e-9 * float",
        "newton",
    ),
    Mutant(
        "conic: dual decisions not divided by the weights",
        "solvers/conic.py",
        "-dual / np.maximum(weight, NEGLIGIBLE)",
        "-dual",
        "mutants_found -k certified_with_weights",
    ),
    Mutant(
        "conic: lasso of one sample instead of all",
        "solvers/conic.py",
        "objective.n_samples * cp.sum(T @ objective.l1)",
        "cp.sum(T @ objective.l1)",
        "solvers -k vertices",
    ),
    Mutant(
        "conic: last attempt counts instead of the best",
        "solvers/conic.py",
        "if best is None or result.objective - result.lower_bound < best.objective - best.lower_bound:",
        "if True:",
        "mutants_found -k best_of_its_attempts",
    ),
    # -- sgd -----------------------------------------------------------------------------------------------------------
    Mutant(
        "sgd: gradient of a batch smaller than that of all",
        "solvers/sgd.py",
        "weight = objective.weight[rows] * (n / rows.size)",
        "weight = objective.weight[rows]",
        "solvers -k sgd",
    ),
    Mutant(
        "sgd: averaged decisions are mirror images",
        "solvers/sgd.py",
        "objective.W[rows] - 0.5 * G_pred - V[rows]",
        "objective.W[rows] + 0.5 * G_pred - V[rows]",
        "mutants_found -k sgd_averages",
    ),
    Mutant(
        "sgd: first moment not corrected for its start at zero",
        "solvers/sgd.py",
        "m_hat, v_hat = self.m / (1 - 0.9**self.t)",
        "m_hat, v_hat = self.m",
        "mutants_found -k adam",
    ),
    Mutant(
        "sgd: averaging goes on in the best coefficients themselves",
        "solvers/sgd.py",
        "self.average = Theta.copy()",
        "self.average = Theta",
        "mutants_found -k averages_of_a_stream",
    ),
    # -- the SPO loss itself -------------------------------------------------------------------------------------------
    Mutant(
        "spo: gradient keeps the direction in which nothing may change",
        "solvers/spo_descent.py",
        "g = g - unit * float(unit @ g)",
        "g = g + 0.0",
        "mutants_found -k sphere",
    ),
    Mutant(
        "spo: jumps of the loss along a line without weights",
        "solvers/spo_descent.py",
        "jump.append(a[rows[closed]] * ",
        "jump.append(a[0] * ",
        "mutants_found -k lines_with_weights",
    ),
    Mutant(
        "spo: narrowest of the best pieces",
        "solvers/spo_descent.py",
        "i = best[int(np.argmax((right - left)[best]))]",
        "i = best[int(np.argmin((right - left)[best]))]",
        "mutants_found -k widest",
    ),
    Mutant(
        "spo: no step along a plateau",
        "solvers/spo_descent.py",
        "elif new <= value:",
        "elif new < value:",
        "mutants_found -k plateau",
    ),
    Mutant(
        "spo: last piece of a line ends where the next line begins",
        "solvers/spo_descent.py",
        "    end[np.append(start[1:], which.size) - 1] = REACH\n",
        "",
        "spo -k line_search",
    ),
    Mutant(
        "spo: used up budget reported although nobody set one",
        "solvers/spo_descent.py",
        "stopped = stopped and (late or self.max_iter is not None)",
        "stopped = bool(stopped)",
        "mutants_found -k budget",
    ),
    Mutant(
        "spo: starts that are worse replace the best",
        "solvers/spo_descent.py",
        "            if new < value:\n                best, value = Theta, new\n            if exhausted:",
        "            best, value = Theta, new\n            if exhausted:",
        "spo -k 'never or line_searches or reproducible'",
    ),
    Mutant(
        "milp: weights of the samples forgotten",
        "solvers/milp.py",
        "(a[:, None] * costs).ravel()",
        "(costs / n).ravel()",
        "mutants_found -k milp_counts",
    ),
    Mutant(
        "milp: bound of the models with a margin kept for a better start",
        "solvers/milp.py",
        "        bound = min(bound, values[i])\n",
        "",
        "mutants_found -k milp_bound",
    ),
    Mutant(
        "milp: points that are no vertices listed",
        "solvers/milp.py",
        "vertices = vertices[[_is_extreme(vertices, i) for i in range(len(vertices))]]",
        "pass",
        "spo -k vertices",
    ),
    Mutant(
        "milp: other decisions may be as good",
        "solvers/milp.py",
        'format="csr"), MARGIN - reach, np.inf)',
        'format="csr"), -reach, np.inf)',
        "spo -k milp",
    ),
    # -- regions -------------------------------------------------------------------------------------------------------
    Mutant(
        "simplex: nothing positive left is repaired to zero",
        "regions/simplex.py",
        "np.where(total > 0, total, 1.0), 1.0 / W.shape[1])",
        "np.where(total > 0, total, 1.0), 0.0)",
        "regions -k repair",
    ),
    Mutant(
        "box: a zero cost chooses the upper bound",
        "regions/simplex.py",
        "return np.where(C < 0, upper, lower)",
        "return np.where(C <= 0, upper, lower)",
        "mutants_found -k ties_of_box",
    ),
    Mutant(
        "box of each row: a zero cost chooses the upper bound",
        "regions/simplex.py",
        'np.where(C < 0, data["upper"], data["lower"])',
        'np.where(C <= 0, data["upper"], data["lower"])',
        "region_params -k ties",
    ),
    Mutant(
        "top k: sort that does not keep the order of ties",
        "regions/simplex.py",
        'np.argsort(C, axis=1, kind="stable")[:, :data]',
        "np.argsort(C, axis=1)[:, :data]",
        "mutants_found -k ties_of_box",
    ),
    Mutant(
        "top k: best instead of worst of the ties",
        "regions/simplex.py",
        "np.lexsort((-C_true, C), axis=1)",
        "np.lexsort((C_true, C), axis=1)",
        "regions metrics -k 'worst or ties'",
    ),
    Mutant(
        "l1 ball: zero cost on the other side",
        "regions/balls.py",
        "np.where(C[rows, best] < 0, data, -data)",
        "np.where(C[rows, best] <= 0, data, -data)",
        "regions_smooth -k ties",
    ),
    Mutant(
        "lq ball: repaired to the unit ball whatever the radius",
        "regions/balls.py",
        "size = size * np.abs(W).max(axis=1, keepdims=True) / radius",
        "size = size * np.abs(W).max(axis=1, keepdims=True)",
        "regions regions_smooth -k repair",
    ),
    Mutant(
        "ellipsoid: longest axis without the root",
        "regions/balls.py",
        "CertifiedFloat(2.0 * radius / np.sqrt(smallest))",
        "CertifiedFloat(2.0 * radius / smallest)",
        "mutants_found -k axes",
    ),
    Mutant(
        "ellipsoid: shortest axis from the smallest eigenvalue",
        "regions/balls.py",
        "_, _, (_, largest), _, radius = self._data(self.resolve_dim(n_dim))",
        "_, _, (largest, _), _, radius = self._data(self.resolve_dim(n_dim))",
        "mutants_found -k axes",
    ),
    Mutant(
        "region: parameters that changed not noticed",
        "regions/base.py",
        "if d == n_dim and len(seen) == len(params) and all(a is b for a, b in zip(seen, params, strict=True)):",
        "if d == n_dim and len(seen) == len(params):",
        "regions -k 'parameters or sense or dimensions'",
    ),
    Mutant(
        "region: what was prepared is pickled",
        "regions/base.py",
        'state.pop("_cache", None)',
        "pass",
        "regions -k pickle",
    ),
    Mutant(
        "polyhedron: vertices of earlier parameters",
        "regions/polyhedral_base.py",
        'self.__dict__.get("_vertices_cache")\n        if cached is None or cached[0] is not entry:',
        'self.__dict__.get("_vertices_cache")\n        if cached is None:',
        "mutants_found -k vertices_follow",
    ),
    Mutant(
        "polyhedron: repaired without the equalities",
        "regions/polyhedral_base.py",
        "        step = step @ geo.directions @ geo.directions.T\n",
        "",
        "regions -k repair",
    ),
    Mutant(
        "polyhedron: lower bounds enter the support function with the wrong sign",
        "regions/polyhedral_base.py",
        "value = value - excess @ np.where(low, form.lower, 0.0)",
        "value = value + excess @ np.where(low, form.lower, 0.0)",
        "regions -k support",
    ),
    Mutant(
        "polyhedron: a bound on the diameter called exact",
        "regions/polyhedral_base.py",
        'CertifiedFloat(float(np.linalg.norm(high - low)), "upper bound")',
        "CertifiedFloat(float(np.linalg.norm(high - low)))",
        "mutants_found -k called_one",
    ),
    Mutant(
        "shortest path: ties go to the highest edge",
        "regions/graphs.py",
        "better = (through < best)",
        "better = (through <= best)",
        "regions_linear -k dag",
    ),
    Mutant(
        "shortest path: paths that tie up to rounding do not",
        "regions/graphs.py",
        "np.where(excess <= tolerance, -C_true, np.inf)",
        "np.where(excess <= 0.0, -C_true, np.inf)",
        "mutants_found -k paths_that_tie",
    ),
    Mutant(
        "knapsack: capacity that misses an integer by rounding is rounded down",
        "regions/integer.py",
        "room = capacity * (1.0 + 1e-12)\n    binding",
        "room = capacity * 1.0\n    binding",
        "regions_linear -k rounding",
    ),
    Mutant(
        "knapsack: ties go to the highest item",
        "regions/integer.py",
        "np.greater_equal(with_item[after], best[after]",
        "np.greater(with_item[after], best[after]",
        "regions_linear -k ties",
    ),
    Mutant(
        "knapsack: items without weight take room",
        "regions/integer.py",
        "    share[sorted_weights == 0] = 1.0\n",
        "",
        "mutants_found -k take_no_room",
    ),
    Mutant(
        "highs: a decision that violates a constraint is passed on",
        "regions/_highs.py",
        "if not excess[i] <= FEASIBLE:",
        "if False:",
        "faults -k decisions_of_highs",
    ),
    Mutant(
        "highs: optimal face of the row before",
        "regions/_highs.py",
        "                model.release_face()\n",
        "",
        "regions_linear -k worst",
    ),
    Mutant(
        "entropy: decision infeasible by rounding",
        "regions/barriers.py",
        "W[active] = _nudge(P, entropy_value(P), r, -np.log(d))",
        "W[active] = P",
        "mutants_found -k last_digit",
    ),
    Mutant(
        "log barrier: decision infeasible by rounding",
        "regions/barriers.py",
        "W[active] = _nudge(P, log_barrier_value(P), r, f_min)",
        "W[active] = P",
        "mutants_found -k last_digit",
    ),
    Mutant(
        "rows: costs of other samples accepted",
        "regions/rows.py",
        "if C.shape[0] != self.n_rows:",
        "if C.shape[0] > self.n_rows:",
        "mutants_found -k as_many_costs_as_rows",
    ),
    Mutant(
        "markowitz: a portfolio may spend less than all",
        "regions/modelled.py",
        '[("zero", 1), ("nonneg", d)] if equal',
        '[("nonneg", d + 1)] if equal',
        "regions_smooth -k 'argmin or equalities'",
    ),
    # -- estimators ----------------------------------------------------------------------------------------------------
    Mutant(
        "estimator: names of an earlier fit's features kept",
        "linear.py",
        'forget=("feature_names_in_", "_stream")',
        'forget=("_stream",)',
        "mutants_found -k names_of_features",
    ),
    Mutant(
        "estimator: rate of a stream does not fall",
        "spo_plus_regressor.py",
        "0.1 * stream.first_rate / np.sqrt(1.0 + stream.epoch)",
        "0.1 * stream.first_rate",
        "mutants_found -k rate_of_a_stream",
    ),
    Mutant(
        "estimator: a pass that fails changes the stream",
        "spo_plus_regressor.py",
        "stream = deepcopy(stream)",
        "stream = stream",
        "mutants_found -k pass_that_fails",
    ),
    Mutant(
        "estimator: fit does not end a stream",
        "linear.py",
        'forget=("feature_names_in_", "_stream")',
        'forget=("feature_names_in_",)',
        "mutants_found -k fit_ends",
    ),
    Mutant(
        "estimator: lower bound in the solver's units",
        "linear.py",
        '"lower_bound_": result.lower_bound * objective.scale',
        '"lower_bound_": result.lower_bound',
        "mutants_found -k in_units_of_cost",
    ),
    Mutant(
        "estimator: weights of shared items in the wrong order",
        "two_stage.py",
        "np.repeat(weight, d)",
        "np.tile(weight, d)",
        "shared -k two_stage",
    ),
    Mutant(
        "estimator: worst of the solvers tried",
        "linear.py",
        "result_gap(objective, result) < result_gap(objective, best[0])",
        "result_gap(objective, result) > result_gap(objective, best[0])",
        "mutants_found -k best_counts",
    ),
    Mutant(
        "estimator: number of jobs of the region overruled",
        "linear.py",
        'get("n_jobs", 0) is None',
        'get("n_jobs", 0) != 0',
        "mutants_found -k number_of_jobs",
    ),
    Mutant(
        "two stages: known part added before fitting",
        "two_stage.py",
        "C = C - known.reshape(C.shape)",
        "C = C + known.reshape(C.shape)",
        "offset -k two_stage",
    ),
    # -- path ----------------------------------------------------------------------------------------------------------
    Mutant(
        "path: ties go to whatever is largest by rounding",
        "path.py",
        "best = int(np.flatnonzero(mean >= mean.max() - 1e-9 * np.abs(mean).max())[0])",
        "best = int(np.argmax(mean))",
        "mutants_found -k ties_of_the_path",
    ),
    Mutant(
        "path: folds of different size count the same",
        "path.py",
        "share = size if self._pooled else np.ones(len(folds))",
        "share = np.ones(len(folds))",
        "mutants_found -k folds_count",
    ),
    Mutant(
        "path: ranks upside down",
        "path.py",
        "(mean[:, None] < mean)",
        "(mean[:, None] > mean)",
        "mutants_found -k rank_one",
    ),
    Mutant(
        "path: lasso grid starts below the first coefficient",
        "path.py",
        "np.abs(G[:, lasso] / unit.l1[lasso]).max()",
        "np.abs(G[:, lasso] / unit.l1[lasso]).mean()",
        "mutants_found -k lasso_path",
    ),
    Mutant(
        "path: regions of the training samples for the held-out ones",
        "path.py",
        "here = region.take(test)",
        "here = region.take(train[: len(test)])",
        "region_params -k path",
    ),
    Mutant(
        "path: held-out losses without weights",
        "path.py",
        '{} if weight is None else {"sample_weight": weight}',
        "{}",
        "path -k weights",
    ),
    Mutant(
        "path: grid from the zero model, not from the mean cost",
        "path.py",
        "        Theta[:, p:] = objective.least_squares[:, p:]  # the mean cost\n",
        "        pass\n",
        "mutants_found -k grid_without_a_prior",
    ),
    Mutant(
        "path: known part left out of held-out predictions",
        "path.py",
        "C_hat = C_hat if offset is None else C_hat + offset",
        "C_hat = C_hat + 0.0",
        "offset -k path",
    ),
    # -- SPORegressor --------------------------------------------------------------------------------------------------
    Mutant(
        "spo regressor: penalty ignored",
        "spo_regressor.py",
        "alpha=float(self.alpha),",
        "alpha=0.0,",
        "spo -k penalty",
    ),
    Mutant(
        "spo regressor: warm start ignored",
        "spo_regressor.py",
        "if self.warm_start and self._fits(data.C.shape[1], data.X.shape[1]):",
        "if False:",
        "mutants_found -k warm_start_of",
    ),
    Mutant(
        "deadline: no time at all accepted as a limit",
        "deadline.py",
        "(number and value > 0)",
        "(number and value >= 0)",
        "time_limit -k invalid",
    ),
    Mutant(
        "spo regressor: weights forgotten",
        "spo_regressor.py",
        "            data.weight,\n",
        "            None,\n",
        "spo estimator_checks -k 'weight or SPORegressor'",
    ),
    # -- data in chunks ------------------------------------------------------------------------------------------------
    Mutant(
        "chunked: sizes of costs added, not their squares",
        "chunked.py",
        "float(np.hypot(self.size, other.size))",
        "float(self.size + other.size)",
        "chunks -k coordinates",
    ),
    Mutant(
        "chunked: rows of a shared model weigh d times as much",
        "chunked.py",
        "np.repeat(root, d) / np.sqrt(d)",
        "np.repeat(root, d)",
        "mutants_found -k coordinates_of_a_shared",
    ),
    Mutant(
        "chunked: fractions of decisions cut off",
        "chunked.py",
        "self._keep(small if (small == W).all() else W)",
        "self._keep(small)",
        "chunks -k 'convex'",
    ),
    Mutant(
        "chunked: chunks that are missing in a later pass not noticed",
        "chunked.py",
        "        if next(expected, None) is None:\n            return",
        "        return",
        "mutants_found -k missing_in_a_later",
    ),
    Mutant(
        "chunked: sample of rows depends on the chunks",
        "chunked.py",
        "slice(-start % self.step, None, self.step)",
        "slice(start % self.step, None, self.step)",
        "chunks -k so_manieth",
    ),
    Mutant(
        "chunked: groups that two chunks share lose the first one's cuts",
        "chunked.py",
        "            b[where] += one.b\n",
        "            b[where] = one.b\n",
        "chunks -k cuts",
    ),
    Mutant(
        "chunked: parts remember what the oracle found",
        "chunked.py",
        "    part = copy(part)\n    part.memory = {}\n    return part",
        "    return part",
        "mutants_found -k parts_forget",
    ),
    Mutant(
        "chunked: moments corrected in the wrong direction",
        "chunked.py",
        "V + room[:, None] * part.design.predict(K)",
        "V - room[:, None] * part.design.predict(K)",
        "chunks -k convex",
    ),
    Mutant(
        "chunked: centred although the intercept is penalised",
        "chunked.py",
        'center=prior != "least_squares"',
        "center=True",
        "chunks -k 'polyhedron_equals or convex or coordinates'",
    ),
    Mutant(
        "chunked: intercept of least squares without the mean",
        "chunked.py",
        "intercept = target[0] / ones[0, 0] - coef @ mean",
        "intercept = target[0] / ones[0, 0]",
        "chunks -k coordinates",
    ),
    Mutant(
        "chunks: offset of length n cut into rows whatever y is",
        "chunks.py",
        "known.shape[0] == n and known.ndim == y.ndim",
        "known.shape[0] == n",
        "mutants_found -k as_many_costs_as_samples",
    ),
    Mutant(
        "chunks: a chunk that weighs nothing refused",
        "chunks.py",
        "weight = check_weight(self.sample_weight, X) if np.any(self.sample_weight) else 0.0 * weight",
        "weight = check_weight(self.sample_weight, X)",
        "mutants_found -k weigh_nothing",
    ),
    Mutant(
        "chunks: last row of the last slice left out",
        "chunks.py",
        "rows = slice(start, min(start + step, n))",
        "rows = slice(start, min(start + step, n - 1))",
        "chunks -k 'source or equals'",
    ),
    Mutant(
        "dask: rows of a partition counted from its end",
        "distributed.py",
        "np.cumsum((0, *total.sizes[:-1]))",
        "np.cumsum(total.sizes)",
        "dask -k 'two_workers or weights'",
    ),
    Mutant(
        "dask: score without weights in the denominator",
        "distributed.py",
        "float(weight @ np.abs(best))",
        "float(np.abs(best).sum())",
        "mutants_found -k dask_scores",
    ),
    Mutant(
        "dask: score without the offset",
        "distributed.py",
        "C_hat = estimator.predict(chunk.X, offset=chunk.offset)",
        "C_hat = estimator.predict(chunk.X)",
        "mutants_found -k dask_scores",
    ),
    # -- calibration ---------------------------------------------------------------------------------------------------
    Mutant(
        "calibration: exponent of Xi off by one",
        "calibration/functions.py",
        "return (1 - self.n_dim) * log1p(",
        "return -self.n_dim * log1p(",
        "calibration_functions",
    ),
    Mutant(
        "calibration: inverse of the envelope beyond the knee",
        "calibration/functions.py",
        "np.sqrt(height * self.knee), height + self.knee / 4.0)",
        "np.sqrt(height * self.knee), height + self.knee / 2.0)",
        "calibration_functions",
    ),
    Mutant(
        "calibration: spread beyond the ball in which the density is bounded",
        "calibration/functions.py",
        "0.5 * (self.domain / min(self.domain, self.M)) ** 2",
        "0.5 * (self.domain / self.M) ** 2",
        "calibration_functions",
    ),
    Mutant(
        "calibration: standard deviation called standard error",
        "calibration/empirical.py",
        "terms.std(axis=1, ddof=1) / np.sqrt(C.shape[0])",
        "terms.std(axis=1, ddof=1)",
        "calibration_use calibration_bounds",
    ),
    Mutant(
        "calibration: Lipschitz constant without its factor two",
        "calibration/generalization.py",
        "return 4.0 * sqrt(2.0) * float(diameter) * rademacher",
        "return 2.0 * sqrt(2.0) * float(diameter) * rademacher",
        "calibration_use -k generalization",
    ),
    Mutant(
        "calibration: complexity divided by the root of n",
        "calibration/generalization.py",
        "values *= radius / X_arr.shape[0]",
        "values *= radius / np.sqrt(X_arr.shape[0])",
        "calibration_use -k rademacher",
    ),
    Mutant(
        "calibration: sample size one too large",
        "calibration/generalization.py",
        "            n -= 1\n",
        "            break\n",
        "mutants_found -k sample_size_steps",
    ),
    Mutant(
        "calibration: upper bound of Lemma 1 twice as large",
        "calibration/strongly_convex.py",
        "k.L / (2.0 * np.sqrt(2.0 * k.mu * k.depth)) * size",
        "k.L / np.sqrt(2.0 * k.mu * k.depth) * size",
        "calibration_lemmas",
    ),
    Mutant(
        "calibration: angle bound with a power of mu too few",
        "calibration/strongly_convex.py",
        "lower = k.mu**2.5 / ",
        "lower = k.mu**1.5 / ",
        "calibration_lemmas",
    ),
    Mutant(
        "calibration: slope of the radial bound twice as steep",
        "calibration/rotational.py",
        "(mu / L) ** 4.5 / 2.0",
        "(mu / L) ** 4.5",
        "mutants_found -k rotationally",
    ),
    Mutant(
        "calibration: prediction of negative length",
        "calibration/rotational.py",
        "s * max(np.cos(angle), 0.0)",
        "s * np.cos(angle)",
        "calibration_lemmas -k least_risky",
    ),
    Mutant(
        "calibration: exponent of a transition sum off by one",
        "calibration/polyhedral_steps.py",
        "** (-(t.n_dim - 1) / 2.0) * -np.diff(t.y)).sum()",
        "** (-t.n_dim / 2.0) * -np.diff(t.y)).sum()",
        "calibration_lemmas -k transition",
    ),
    Mutant(
        "calibration: tightness example with the power of d",
        "calibration/examples.py",
        "** ((self.n_dim - 1) / 2.0)",
        "** (self.n_dim / 2.0)",
        "calibration_bounds -k tightness",
    ),
    # -- data sets and tables ------------------------------------------------------------------------------------------
    Mutant(
        "datasets: ends of the noise in the wrong order for negative signals",
        "datasets.py",
        "return np.minimum(*ends), np.maximum(*ends)",
        "return ends",
        "mutants_found -k negative_values",
    ),
    Mutant(
        "datasets: expected ceiling off by one step",
        "datasets.py",
        "k * (k - 1.0) / 2.0",
        "k * (k + 1.0) / 2.0",
        "datasets",
    ),
    Mutant(
        "datasets: label at a threshold is the next one",
        "datasets.py",
        'signal * eps, side="left")',
        'signal * eps, side="right")',
        "datasets",
    ),
    Mutant(
        "datasets: returned coefficients are the argument itself",
        "datasets.py",
        "B = np.array(coef, dtype=np.float64)",
        "B = np.asarray(coef, dtype=np.float64)",
        "mutants_found -k are_a_copy",
    ),
    Mutant(
        "datasets: largest weight never drawn",
        "datasets.py",
        "rng.randint(300, 800, size=(m, d))",
        "rng.randint(300, 799, size=(m, d))",
        "mutants_found -k both_ends",
    ),
    Mutant(
        "items: samples sorted instead of in the order of the table",
        "items.py",
        "names = pd.unique(column)",
        "names = np.unique(column)",
        "mutants_found -k order_of_the_table",
    ),
    Mutant(
        "items: way back in the wrong direction",
        "items.py",
        "column[self.rows.ravel()] = array.ravel()",
        "column[:] = array.ravel()[self.rows.ravel()]",
        "shared -k stack_items",
    ),
    Mutant(
        "items: two rows of the same item accepted",
        "items.py",
        '((count > 1, "occurs {} times"), (count == 0, "is missing"))',
        '((count > 2, "occurs {} times"), (count == 0, "is missing"))',
        "shared -k stack_items",
    ),
]


def mutated(mutant: Mutant, root: Path = ROOT) -> str:
    """Text of the file with the mistake in it."""
    text = (root / "skspo" / mutant.file).read_text()
    count = text.count(mutant.old)
    if count != 1 or mutant.old == mutant.new:
        raise ValueError(f"{mutant.name}: the old text must occur once in {mutant.file}, but occurs {count} times.")
    return text.replace(mutant.old, mutant.new)


def pytest_arguments(tests: str) -> list[str]:
    """Arguments of pytest from those of a mutant."""
    words = shlex.split(tests)
    files = words[: words.index("-k")] if "-k" in words else words
    return [f"tests/test_{name}.py" for name in files] + words[len(files) :]


def run_pytest(tree: str, arguments: list[str], log: str) -> None:
    """Run pytest on a copy of the tree, in a process of its own; its exit code is that of the process."""
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.chdir(tree)
    os.setpgid(0, 0)  # so that it can be stopped with all that it starts
    sys.path.insert(0, tree)
    os.environ["PYTHONPATH"] = tree
    # No byte code: two versions of a file of the same length within a second would be taken for the same.
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.dont_write_bytecode = True
    import pytest

    import skspo

    code: int = 99
    if Path(skspo.__file__).is_relative_to(tree):  # not from where it may be installed
        code = pytest.main(["-x", "-q", "--no-header", "-p", "no:cacheprovider", *arguments])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


class Trees:
    """Copies of the source tree, one for each job."""

    def __init__(self, folder: Path, jobs: int) -> None:
        self.free: SimpleQueue[Path] = SimpleQueue()
        for k in range(jobs):
            tree = folder / str(k)
            for name in ("skspo", "tests", "examples", "docs", "tools"):
                shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__", "_build"))
            for path in (p for p in ROOT.iterdir() if p.suffix in (".md", ".toml") or p.name == "LICENSE"):
                shutil.copy(path, tree)
            self.free.put(tree)
        # What takes longest is to import what the package needs: that is done once, by the process that all fork from.
        self.context = get_context("forkserver")
        self.context.set_forkserver_preload(PRELOAD)

    def test(self, tests: str, timeout: float, mutant: Mutant | None = None) -> tuple[str, float, str]:
        """Outcome, seconds, and the line that says what failed."""
        tree = self.free.get()
        log = tree / "log.txt"
        path = tree / "skspo" / mutant.file if mutant else None
        text = path.read_text() if path else ""
        try:
            if mutant and path:
                path.write_text(mutated(mutant, tree))
            start = time.monotonic()
            process = self.context.Process(target=run_pytest, args=(str(tree), pytest_arguments(tests), str(log)))
            process.start()
            process.join(timeout)
            if process.is_alive() and process.pid is not None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.join()
                outcome = "timeout"
            else:
                outcome = {0: "survived", 1: "killed"}.get(process.exitcode or 0, "error")
            seconds = time.monotonic() - start
            output = log.read_text(errors="replace").splitlines()
        finally:
            if path:
                path.write_text(text)
            self.free.put(tree)
        failed = [line for line in output if line.startswith(("FAILED", "ERROR"))]
        return outcome, seconds, (failed or output[-1:] or [""])[0]


def main() -> int:
    """Run the mutants and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[], help="mutants with one of these words in name or file")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time (default 1)")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds for one mutant (default 600)")
    parser.add_argument("--baseline", action="store_true", help="run the tests without mutants: all must pass")
    parser.add_argument("--list", action="store_true", help="print the mutants and run nothing")
    args = parser.parse_args()
    chosen = [
        mutant
        for mutant in MUTANTS
        if not args.only or any(word.lower() in f"{mutant.name} {mutant.file}".lower() for word in args.only)
    ]
    for mutant in chosen:
        mutated(mutant)
    if args.list:
        print("\n".join(f"{mutant.file:32}  {mutant.name}" for mutant in chosen))
        return 0
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    os.environ["MPLBACKEND"] = "Agg"
    with tempfile.TemporaryDirectory(prefix="skspo-mutants-") as folder, ThreadPoolExecutor(args.jobs) as pool:
        trees = Trees(Path(folder), args.jobs)
        if args.baseline:
            selections = sorted({mutant.tests for mutant in chosen if not mutant.equivalent})
            failed = 0
            for tests, (outcome, seconds, last) in zip(
                selections, pool.map(lambda t: trees.test(t, args.timeout), selections), strict=True
            ):
                failed += outcome != "survived"
                word = "passed" if outcome == "survived" else outcome
                print(f"{word:9} {seconds:6.1f} s  {tests}  {last}", flush=True)
            return int(failed > 0)
        run = [mutant for mutant in chosen if not mutant.equivalent]
        outcomes: list[str] = []
        for mutant, (outcome, seconds, last) in zip(
            run, pool.map(lambda m: trees.test(m.tests, args.timeout, m), run), strict=True
        ):
            outcomes.append(outcome)
            print(f"{outcome:9} {seconds:6.1f} s  {mutant.file:28}  {mutant.name}\n{'':21}{last[:150]}", flush=True)
    for mutant in chosen:
        if mutant.equivalent:
            print(f"equivalent          {mutant.file:28}  {mutant.name}: {mutant.equivalent}")
    killed = outcomes.count("killed")
    share = killed / max(len(run), 1)
    print(
        f"{killed} of {len(run)} mutants killed, {share:.1%}; "
        + ", ".join(f"{outcomes.count(name)} {name}" for name in ("survived", "timeout", "error"))
    )
    return int(share < ENOUGH or "error" in outcomes)


if __name__ == "__main__":
    sys.exit(main())
