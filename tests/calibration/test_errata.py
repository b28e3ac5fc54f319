"""Every entry of docs/errata.md: the statement as printed fails, the corrected one holds."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from level_set_steps import decision_cost_bounds, gradient_bounds, spo_plus_term_bound
from numpy.testing import assert_allclose
from paper_examples import TightnessExample
from polyhedral_steps import conditional_excess_bound, transitions
from rotational_steps import mean_cosine_bound
from scipy.integrate import quad
from scipy.special import gammainc, gammaln
from scipy.stats import norm

import skspo as sk
from skspo.calibration import (
    PolyhedralCalibration,
    StronglyConvexCalibration,
    diameter,
    excess_risks,
    generalization_bound,
    region_geometry,
    spo_plus_range,
)


def test_e1_constant_of_the_tightness_example():
    for b, ratio in ((2.0, 64.0), (3.0, 96.0)):
        example = TightnessExample(a=1.0, b=b, n_dim=3, shift=1e-4)
        printed = 1e-8 / (2 * math.sqrt(2 * math.pi)) * b**2 / (1 + b**2)
        assert example.excess_spo_plus() / printed == pytest.approx(ratio, rel=1e-3)
        assert example.excess_spo_plus() == pytest.approx(example.limit(), rel=1e-3)


def test_e2_tightness_needs_a_at_least_b_not_b_large():
    """The printed upper bound (1/(8 sqrt(2 pi))) (D_S/d_S)^(1-d) eps^2 / sigma is violated the more the larger b is."""
    ratios = []
    for b in (1.0, 10.0, 100.0):
        example = TightnessExample(a=1.0, b=b, n_dim=4, shift=1e-4 / b)
        D, width, _ = region_geometry(example.region, 4)
        printed = (D / width) ** -3 * example.excess_spo() ** 2 / (8 * math.sqrt(2 * math.pi))
        ratios.append(example.excess_spo_plus() / printed)
    assert ratios[0] > 1 and ratios[2] > ratios[1] > ratios[0]


def test_e3_range_of_the_loss():
    """At the prediction 0 the printed range is 0; the loss is the range of the cost over the region."""
    region, c = sk.Box(-1.0, 1.0), np.array([[3.0, 4.0]])
    loss = sk.SPOPlusLoss(region).value(c, np.zeros((1, 2)))[0]
    printed = 2 * float(diameter(region, 2)) * 0.0
    assert loss == pytest.approx(14.0) and loss > printed
    assert loss <= spo_plus_range(diameter(region, 2), 5.0, 0.0)


def test_e4_incomplete_gamma_function():
    """The radial integral in the proof, for sigma = 2: D^2 / (2 sigma^2) is right and D^2 is not."""
    for d, D, sigma, zeta in ((3, 2.0, 2.0, 0.5), (6, 3.0, 1.5, 0.0), (11, 4.0, 2.0, 1.0)):
        m2 = 1 + 3 * zeta**2

        def integrand(r, d=d, m2=m2, sigma=sigma):
            return math.exp(-(r**2) * m2 / (2 * sigma**2)) * r ** (d - 2) / (2 * math.pi * sigma**2) ** ((d - 1) / 2)

        integral = quad(integrand, 0.0, D / math.sqrt(m2), epsabs=1e-15)[0]

        def closed(x, d=d, m2=m2):
            a = (d - 1) / 2
            return gammainc(a, x) * math.exp(gammaln(a)) / (2 * math.pi**a) * m2**-a

        assert_allclose(integral, closed(D**2 / (2 * sigma**2)), rtol=1e-8)
        assert closed(D**2) > 1.3 * integral


def test_e4_makes_the_theorem_false_in_high_dimension():
    """A ball (a limit of polyhedra), sigma = M = D, the mass outside the small ball far away.

    All that is left of the excess SPO+ risk is at most 2 kappa D_S P(|c|^2 <= 2 D^2 or its mirror image).
    """
    d, beta, kappa = 400, 0.5, 0.02
    D = sigma = M = float(d)
    # Mean of length beta sigma; the prediction is its opposite direction, at distance kappa sigma beyond zero.
    length = kappa * sigma + beta * sigma
    eps = 2 * beta * sigma  # cbar.(w*(-cbar) - w*(cbar)) on the unit ball, D_S = d_S = 2
    # |c|^2 / sigma^2 is noncentral chi^2; it is below x less often than a central one, and that at most this often.
    log_mass = (d / 2) * math.log(2 * D**2 / sigma**2 / 2) - gammaln(d / 2 + 1)
    log_excess = math.log(2 * length * 2.0) + math.log(2.0) + log_mass
    log_xi = (1 - d) * math.log1p(2 * math.sqrt(3))
    log_rest = log_xi - math.log(4 * math.sqrt(2 * math.pi)) - 1.5 * (1 + beta**2)
    log_rest += math.log(min(eps**2 / (2 * M), eps))
    log_printed = log_rest + math.log(gammainc((d - 1) / 2, D**2))
    assert log_printed > log_excess + 50
    # The corrected factor is 0 to double precision; in logarithms it is at most x^a / Gamma(a + 1) with x = 1/2.
    a = (d - 1) / 2
    log_corrected = log_rest + a * math.log(0.5) - gammaln(a + 1)
    assert log_corrected < log_excess
    assert PolyhedralCalibration(2.0, 2.0, d, M, 1.0, beta, domain=D).domain_factor < 1e-300


def test_e5_gradient_lemmas_have_a_square_too_many():
    region = sk.Ellipsoid()
    for size, lower_fails in ((0.1, True), (0.9, False)):
        gradient = 2 * size  # of |w|^2, with mu = L = 2
        printed = math.sqrt(2 * 2 * size**2)
        assert (gradient**2 < printed) == lower_fails  # Lemma 10 as printed
        assert (gradient**2 > printed) != lower_fails  # Lemma 11 as printed
        sides = gradient_bounds(region, [[size, 0.0]])
        assert_allclose([sides.lower, sides.value, sides.upper], gradient)


def test_e6_sign_of_the_entropy():
    """{-sum w log w <= r} is not convex and contains the vertices; its minimizer is no softmax."""
    r, c = 0.5 * math.log(3), np.array([1.0, 2.0, 3.0])

    def printed(w):
        return -sum(x * math.log(x) for x in w if x > 0)

    first, second = np.eye(3)[0], np.eye(3)[1]
    assert printed(first) <= r and printed(second) <= r < printed((first + second) / 2)
    assert c @ first == 1.0  # the least cost of the whole simplex: the constraint does nothing
    w = sk.EntropySimplex(-0.9).argmin(c)
    logits = np.log(w)
    assert_allclose(np.diff(logits), np.diff(logits)[0], rtol=1e-6)  # softmax(-c/u), evenly spaced for even costs


def test_e7_lower_limit_at_the_boundary():
    """inf sup is the limit superior, 0 for the entropy; with r below it decisions have zeros and f is not smooth."""
    d = 4
    near = 1e-9
    at_vertex = np.array([1 - 3 * near, near, near, near])
    at_facet = np.array([near, (1 - near) / 3, (1 - near) / 3, (1 - near) / 3])
    entropy = [float((w * np.log(w)).sum()) for w in (at_vertex, at_facet)]
    assert entropy[0] == pytest.approx(0.0, abs=1e-6) and entropy[1] == pytest.approx(-math.log(d - 1), abs=1e-6)
    assert np.isinf(sk.EntropySimplex(-0.3).strong_convexity(d).L)  # -0.3 < 0, yet not smooth
    assert np.isfinite(sk.EntropySimplex(-1.2).strong_convexity(d).L)  # -1.2 < -log 3


def test_e8_upper_bound_of_lemma_one_at_zero():
    """The unit ball, c2 = 0, an oracle that returns the center: 1 <= 1/2 is false."""
    region = sk.Ellipsoid()
    w1, w2 = region.argmin([1.0, 0.0]), region.argmin([0.0, 0.0])
    value = np.array([1.0, 0.0]) @ (w2 - w1)
    k = region.strong_convexity(2)
    printed = k.L / (2 * math.sqrt(2 * k.mu * (k.r - k.f_min))) * np.sum((w1 - w2) ** 2)
    assert value == pytest.approx(1.0) and printed == pytest.approx(0.5)
    with pytest.raises(ValueError, match="without effect on decisions"):
        decision_cost_bounds(region, [[1.0, 0.0]], [[0.0, 0.0]])


def test_e9_one_dimension():
    """S = [-1, 1], c = 3 or -1 (a little spread), prediction just below 0: no excess SPO+ risk, SPO risk 2."""
    rng = np.random.default_rng(0)
    c = 1.0 + rng.choice([-2.0, 2.0], size=(1000, 1)) + rng.uniform(-0.1, 0.1, size=(1000, 1))
    risks = excess_risks(sk.Ellipsoid(), [-0.1], c, c_bar=[1.0], symmetric=True)
    assert risks.spo[0] == pytest.approx(2.0) and risks.spo_plus[0] == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(ValueError, match="at least 2"):
        StronglyConvexCalibration.from_region(sk.Ellipsoid(), n_dim=1, beta=2.1)


class Disc(sk.Region):
    """Unit disc in the plane sum w = 0 of three dimensions: mu = L = 2 for |w|^2."""

    def __init__(self, *, sense="min"):
        self.sense = sense

    def _argmin(self, C, data):
        V = C - C.mean(axis=1, keepdims=True)
        size = np.linalg.norm(V, axis=1, keepdims=True)
        return -V / np.where(size > 0, size, 1.0)

    def equalities(self, n_dim=None):
        return np.full((1, 3), 1 / math.sqrt(3))

    def strong_convexity(self, n_dim=None, A=None):
        return sk.Ellipsoid().strong_convexity(2)


def test_e10_the_class_must_be_that_of_the_projected_costs():
    rng = np.random.default_rng(1)
    visible = 0.05 * np.array([1.0, -1.0, 0.0])
    mean = visible + 50.0  # almost all of it changes no decision
    noise = rng.normal(size=(20_000, 3))
    risks = excess_risks(Disc(), mean - 2 * visible, mean + noise, c_bar=mean, symmetric=True)
    spread = math.sqrt(3)
    printed = StronglyConvexCalibration(2.0, 2.0, 2, beta=spread / np.linalg.norm(mean))(risks.spo[0])
    assert risks.spo_plus[0] + 5 * risks.spo_plus_error[0] < printed
    corrected = StronglyConvexCalibration(2.0, 2.0, 2, beta=math.sqrt(2) / np.linalg.norm(visible))(risks.spo[0])
    assert corrected <= risks.spo_plus[0] - 5 * risks.spo_plus_error[0]


def test_e11_projection_in_another_norm():
    """{w : w^T A w <= 1, w_1 + w_2 = 0}: with the orthogonal projection Lemma 8 is false."""
    A, c = np.diag([1.0, 99.0]), np.array([1.0, 0.0])
    u = np.array([1.0, -1.0]) / math.sqrt(2)
    end = u / math.sqrt(u @ A @ u)  # S is the segment from -end to end; mu = L = 2 in the A-norm, r - f_min = 1
    value = c @ (end - -end)  # w = end against w*(c) = -end
    size = 4.0 * end @ A @ end
    orthogonal, quotient = math.sqrt((c @ u) ** 2 * (u @ np.linalg.inv(A) @ u)), abs(c @ u) / math.sqrt(u @ A @ u)
    factor = 2.0 / (2.0 * math.sqrt(2.0 * 2.0))
    assert factor * orthogonal * size > 4 * value
    assert factor * quotient * size == pytest.approx(value)


def test_e12_lq_balls_are_not_smooth():
    """q = 1.5: the decision moves like s^2 when the cost moves like s, so no L satisfies the lower bound of Lemma 2."""
    region, ratios = sk.LqBall(1.5), []
    for s in (1e-1, 1e-2, 1e-3):
        c1, c2 = np.array([1.0, 0.0]), np.array([1.0, s])
        gap = np.linalg.norm(c1 - c2 / np.linalg.norm(c2))
        ratios.append(np.linalg.norm(region.argmin(c1) - region.argmin(c2)) / gap)
    assert ratios[1] < 0.2 * ratios[0] and ratios[2] < 0.2 * ratios[1]
    assert np.isinf(region.strong_convexity(2).L)


def test_e13_corollary_for_polyhedra_has_an_infinite_range():
    """The class wants a positive density everywhere; then the loss has no upper bound, and b is infinite."""
    c = np.array([[1.0, 0.0]]) * 10.0 ** np.arange(1, 7)[:, None]
    losses = sk.SPOPlusLoss(sk.Box(-1, 1)).value(c, np.zeros_like(c))
    assert_allclose(losses, 2 * c[:, 0])
    assert norm.pdf(c[0, 0] / 10) > 0
    assert generalization_bound(0.1, 2.0, losses.max(), 100, 0.1) > 1e5


def test_e14_probability_in_the_plane():
    """P(|u_1| <= s) >= s for a uniform direction holds from three dimensions on; in the plane it is 2 asin(s) / pi."""
    angle = np.linspace(0, 2 * math.pi, 1_000_001)[:-1]
    for s in (0.2, 0.5, 0.8):
        share = float((np.abs(np.cos(angle)) <= s).mean())
        assert share == pytest.approx(2 * math.asin(s) / math.pi, abs=1e-5) and share < s
        assert mean_cosine_bound(s, 1.0, 2).hold()  # the proposition is still true


def test_e15_proposition_two_is_about_the_mean():
    """With |c| for |cbar| on the right, |c| = s + t for parallel vectors, the bound is above 1, a cosine is not."""
    s, t = 1.0, 0.5
    longest = s + t
    printed = longest**2 * min(longest, t) / (t**2 + s * t)  # bound on E[cbar.c / |c|] for |cbar| = 1
    assert printed > 1.0 > float(mean_cosine_bound(s, t, 3).value)


def test_e16_projection_on_the_cone_of_multiples():
    """min over u1, u2 >= 1 of |u1 c1 - u2 c2| is |c1 - c2| for unit vectors of an inner product, not of max norms."""
    c1, c2 = np.array([1.0, 1.0]), np.array([0.5, 1.0])
    u = np.linspace(1.0, 2.0, 1001)
    stretched = np.abs(c1[None] - u[:, None] * c2).max(axis=1).min()
    assert np.abs(c1).max() == np.abs(c2).max() == 1.0
    assert stretched == pytest.approx(1 / 3, abs=1e-3) and np.abs(c1 - c2).max() == 0.5
    v1, v2 = c1 / np.linalg.norm(c1), c2 / np.linalg.norm(c2)
    assert np.linalg.norm(v1[None] - u[:, None] * v2, axis=1).min() == pytest.approx(np.linalg.norm(v1 - v2))


def test_e17_square_root_of_sigma():
    """Lemma 6 with sqrt(2 pi sigma) instead of sqrt(2 pi sigma^2) fails for a large sigma."""
    t = transitions(sk.Box(-1.0, 1.0), [0.0], [1.0])
    sigma = 100.0
    sides = conditional_excess_bound(t, xi_bar=0.0, sigma=sigma, kappa=1.0)
    assert sides.hold()
    assert float(sides.lower) * math.sqrt(sigma) > float(sides.value)


def test_e18_lost_factors_of_two():
    """Theorem 7 in the A-norm is half of what it follows from: on the ball the full bound is an equality."""
    c, delta = np.array([[1.0, 0.0]]), np.array([[-0.5, 0.5]])
    sides = spo_plus_term_bound(sk.Ellipsoid(), c, delta)
    moved = (c + 2 * delta)[0]
    k = sk.Ellipsoid().strong_convexity(2)
    printed = k.mu**2 / (math.sqrt(2) * k.L**2.5) * (np.linalg.norm(moved) - moved[0])
    assert float(sides.value[0]) == pytest.approx(float(sides.lower[0])) == pytest.approx(2 * printed)


def test_e19_the_window_leaves_the_ball():
    """zeta = D/2, kappa = D: |c'|^2 + 3 zeta^2 <= D^2 holds, but zeta - 2 kappa is outside |c|^2 <= 2 D^2."""
    D = 1.0
    zeta, size = -0.5, 0.5
    assert size**2 + 3 * zeta**2 <= D**2
    assert size**2 + (zeta - 2 * D) ** 2 > 2 * D**2 and size**2 + (zeta - D) ** 2 > 2 * D**2
    # The corrected proof uses sqrt(2/3) D, which stays inside and loses less than the available factor 3.
    for z in np.linspace(0, D / math.sqrt(3), 50):
        assert D**2 - 3 * z**2 + (z + math.sqrt(2 / 3) * D) ** 2 <= 2 * D**2 + 1e-12
    assert 1.5 * math.sqrt(2 / 3) > 0.5


def test_every_entry_of_the_page_has_a_test_here():
    page = Path(__file__).parents[2] / "docs" / "errata.md"
    lines = page.read_text().splitlines()
    entries = [line.split(".")[0].removeprefix("## ") for line in lines if line.startswith("## E")]
    source = Path(__file__).read_text()
    assert len(entries) >= 19
    assert [entry for entry in entries if f"def test_{entry.lower()}_" not in source] == []


def test_e20_slips():
    # 3 |cbar|^2 <= 3 beta^2 sigma^2, not 3 alpha^2 sigma^2.
    alpha, beta, sigma = 1.0, 2.0, 1.0
    length = beta * sigma
    assert 3 * alpha**2 * sigma**2 < 3 * length**2 <= 3 * beta**2 * sigma**2
    # The display in the proof of Theorem 7 without its 1/L: |w*(c) - w*(-c)| = 2 >= sqrt(2 mu r) |u - u'| = 4 is false.
    k = sk.Ellipsoid().strong_convexity(2)
    distance = np.linalg.norm(sk.Ellipsoid().argmin([1.0, 0.0]) - sk.Ellipsoid().argmin([-1.0, 0.0]))
    assert distance < math.sqrt(2 * k.mu * k.r) * 2.0
    assert distance >= math.sqrt(2 * k.mu * k.r) / k.L * 2.0


def test_table_of_results():
    """Every function and every test named in docs/theory.md exists, and every numbered result has a line."""
    import re

    import level_set_steps
    import paper_examples
    import polyhedral_steps
    import rotational_steps

    import skspo.calibration as cal

    root = Path(__file__).parents[2]
    page = (root / "docs" / "theory.md").read_text()
    files = {key: (root / "tests" / "calibration" / f"test_calibration_{name}.py").read_text()
             for key, name in (("B", "bounds"), ("L", "lemmas"), ("U", "use"), ("F", "functions"))}  # fmt: skip
    table = page[page.index("## Results") : page.index("## Why the width")]
    rows = [line.split("|") for line in table.splitlines() if line.startswith("| ") and not line.startswith("| paper")]
    beside = {"P": polyhedral_steps, "S": level_set_steps, "R": rotational_steps, "X": paper_examples}
    for row in rows:
        for name, letter in re.findall(r"`([A-Za-z_]+)[^`]*`(?: \((\w)\))?", row[3]):
            assert hasattr(beside[letter], name) if letter else hasattr(cal, name) or hasattr(sk, name), name
        tests = row[4]
        for group in tests.split(";"):
            key = group.strip()[0]
            names = re.findall(r"`(test_\w+)`", group)
            assert names
            for name in names:
                assert f"def {name}(" in files[key], (key, name)
    results = " ".join(row[1] for row in rows)
    numbered = [*(f"Theorem {i}" for i in range(1, 9)), *(f"Lemma {i}" for i in range(1, 16)), "Proposition 1",
                "Proposition 2", "Corollary 3.1", "Corollary 4.1", "Example 3.1", "Example B.1",
                "Remark 3.1"]  # fmt: skip
    assert [name for name in numbered if not re.search(re.escape(name) + r"(?!\d)", results)] == []
    used = set(re.findall(r"\bE\d+", page))
    entries = set(re.findall(r"^## (E\d+)\.", (root / "docs" / "errata.md").read_text(), flags=re.M))
    assert used <= entries
