"""Models that cannot be regions: the error of read_region names what was wrong."""

import gzip
import warnings
from pathlib import Path

import cvxpy as cp
import highspy
import numpy as np
import pytest
from model_sources import INTEGER, LP, MPS, highs_model, linopy_model, pyomo_model, scipy_arguments, write
from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint

import skspo as sk
from skspo import read_region


def section(text, before="ENDATA"):
    return MPS.replace(before, f"{text}\n{before}")


#: file name, content, pattern of the error
FILES = {
    "no-file": ("model.mps", None, "there is no file .*model.mps"),
    "suffix": ("model.nl", LP, r"called \*.mps, \*.lp, .*got .*model.nl"),
    "gz-suffix": ("model.gz", LP, r"called \*.mps"),
    "empty": ("model.lp", "", "has no variables|HiGHS cannot read"),
    "not-a-model": ("model.lp", "hello world", "has no variables|HiGHS cannot read"),
    "broken": ("model.lp", LP.replace("<= 4", "<="), "HiGHS cannot read .*Parser error"),
    "lp-indicator": ("model.lp", LP.replace("<= 4", "<= 4\n c2: y = 1 -> x <= 2"), r"indicator constraints \(line 5\)"),
    "lp-sos": ("model.lp", LP.replace("End", "SOS\n s1: S1:: x:1 y:2\nEnd"), "special ordered sets"),
    "lp-general": ("model.lp", LP.replace("Bounds", "General Constraints\n g: x = MAX(y, 3)\nBounds"), "general const"),
    "lp-lazy": ("model.lp", LP.replace("Bounds", "Lazy Constraints\n c2: x <= 1\nBounds"), "lazy constraints"),
    "lp-quadratic-row": ("model.lp", LP.replace("<= 4", "<= 4\n q: [ x^2 + y^2 ] <= 4"), "Quadratic constraints not"),
    "lp-quadratic": ("model.lp", LP.replace("2 y", "2 y + [ x^2 ] / 2"), "has a quadratic objective"),
    "lp-semi": ("model.lp", LP.replace("End", "Semi-continuous\n x\nEnd"), "semi-continuous variable x"),
    "lp-unbounded": ("model.lp", LP.replace(" y <= 5", " y free"), r"unbounded: decision 1 \('y'\) has no limit below"),
    "lp-infeasible": ("model.lp", LP.replace("<= 4", ">= 40"), "empty|infeasible"),
    "lp-no-integer": ("model.lp", LP.replace("<= 4", "= 4.5").replace("End", "General\n x y\nEnd"), "empty|infeasible"),
    "mps-indicator": ("model.mps", section("INDICATORS\n IF c1 x 1"), r"indicator constraints \(line 13\)"),
    "mps-sos": ("model.mps", section("SOS\n S1 s1\n x 1\n y 2"), "special ordered sets"),
    "mps-quadratic-row": ("model.mps", section("QCMATRIX c1\n x x 1"), "quadratic constraints"),
    "mps-quadratic": ("model.mps", section("QUADOBJ\n x x 1"), "quadratic objective"),
    "mps-lazy": ("model.mps", MPS.replace("COLUMNS", "LAZYCONS\n L c2\nCOLUMNS"), "lazy constraints"),
    "mps-general": ("model.mps", section("GENCONS\n MAX g\n x\n y"), "general constraints"),
    "mps-semi": ("model.mps", MPS.replace("UP bnd x", "SC bnd x"), "semi-continuous variable x"),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_files_that_cannot_be_read(name, tmp_path, capfd):
    file, text, message = FILES[name]
    path = tmp_path / file if text is None else write(tmp_path, file, text)
    kind = FileNotFoundError if text is None else ValueError
    with pytest.raises(kind, match=message):
        read_region(path)
    assert capfd.readouterr().out == ""


#: text in the model, malformed text, and where it is
NUMBERS = {
    "coefficient": ("x obj 1", "x obj 1,5", r"'1,5' in line \d+, field 3 \(COLUMNS\)"),
    "second coefficient": ("c1 1", "c1 1_000", r"'1_000' in line \d+, field [35]"),
    "right-hand side": ("rhs c1 4", "rhs c1 --3", r"'--3' in line \d+, field 3 \(RHS\)"),
    "no name of the set": ("rhs c1 4", "c1 4x", r"'4x' in line \d+, field 2 \(RHS\)"),
    "bound": ("UP bnd x", "UP bnd x abc\n UP bnd x", r"'abc' in line \d+, field 4 \(BOUNDS\)"),
    "Fortran": ("rhs c1 4", "rhs c1 4d0", r"'4d0'"),
    "nan": ("rhs c1 4", "rhs c1 nan", r"'nan'"),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", NUMBERS)
def test_malformed_numbers_are_refused(name, packed, tmp_path):
    good, bad, message = NUMBERS[name]
    assert good in MPS
    path = write(tmp_path, "model.mps", MPS.replace(good, bad, 1))
    if packed:
        path = Path(f"{path}.gz")
        path.write_bytes(gzip.compress(path.with_suffix("").read_bytes()))
    with pytest.raises(ValueError, match=message):
        read_region(path)


FIXED = """NAME          names with blanks
* a comment, with numbers such as 1,5
ROWS
 N  cost
 L  a row 1
COLUMNS
    my x      cost               1.0   a row 1            -.5
    my x      a row 1           2e+0
    y         cost               3.0
RHS
    RHS       a row 1            4.0
BOUNDS
 UP BND       my x               Inf
 UP BND       my x               1e1
 UP BND       y                   7.
ENDATA
"""


@pytest.mark.parametrize("seed", range(20))
def test_good_numbers_are_read_exactly(seed, tmp_path):
    """As Python reads them, in all the ways in which they can be written; names in the fixed format may have blanks."""
    rng = np.random.default_rng(seed)
    numbers = rng.uniform(1, 9, 4)
    numbers[2] = rng.uniform(0.6, 1.4)  # a right-hand side that binds: loose rows are left out of the form
    texts = [form % x for form, x in zip(["%.17g", "%+.3e", "%.0f.", "%r"], numbers, strict=True)]
    a, b, rhs, upper = (t.replace("np.float64(", "").rstrip(")") for t in texts)
    rhs_line = f" c1 {rhs}" if seed % 2 else f" RHS c1 {rhs}"
    text = (
        f"NAME\nROWS\n N obj\n L c1\nCOLUMNS\n x obj 1 c1 {a}\n y obj {b}\n y c1 1\nRHS\n{rhs_line}\n"
        f"BOUNDS\n UP bnd x {upper}\n UP bnd y 1\n LO bnd y .5\nENDATA\n"
    )
    region = read_region(write(tmp_path, "model.mps", text))
    form = (region if isinstance(region, sk.Polyhedron) else region.region).inequality_form()
    np.testing.assert_array_equal(form.A_ub.toarray(), [[float(a), 1.0]])
    np.testing.assert_array_equal(form.b_ub, [float(rhs)])
    np.testing.assert_array_equal(form.upper, [float(upper), 1.0])


def test_fixed_format_with_blanks_in_names(tmp_path):
    assert "not a number" not in _message(write(tmp_path, "model.mps", FIXED))
    assert "not a number" in _message(write(tmp_path, "bad.mps", FIXED.replace("4.0", "1,5")))


def _message(path):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read_region(path)
    except ValueError as error:
        return str(error)
    return ""


def test_packed_files_that_are_not_whole(tmp_path):
    packed = gzip.compress(MPS.encode())
    for content in (packed[:-12], packed[:30], MPS.encode(), packed[:20] + bytes(20) + packed[40:]):
        path = tmp_path / "model.mps.gz"
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"model.mps.gz' is not a complete gzip file"):
            read_region(path)


def test_packed_files_have_a_limit(tmp_path):
    """A file that unpacks to a thousand times its size is not read to its end."""
    path = tmp_path / "model.mps.gz"
    with gzip.open(path, "wb") as file:
        for _ in range(200):
            file.write(bytes(2**20))
    with pytest.raises(ValueError, match="unpacks to more than 64 MB"):
        read_region(path)


def variable(name="x", shape=2, **attributes):
    return cp.Variable(shape, name=name, **attributes)


def with_box(w, *constraints):
    return [w >= 0, w <= 1, *constraints]


x, b, n = variable(), variable("b", boolean=True), variable("n", nonneg=True)
BOX = with_box(x)
TWO = highs_model()
NONLINEAR = highs_model()
NONLINEAR.passHessian(
    6, 1, int(highspy.HessianFormat.kTriangular), np.array([0, 1, 1, 1, 1, 1]), np.array([0]), np.array([1.0])
)

#: each case: action of the user, class of the error, pattern of the message
MISTAKES = {
    "nothing": (lambda: read_region(None), TypeError, "source must be a path to an .mps.*got None"),
    "number": (lambda: read_region(3), TypeError, "source must be a path.*got 3"),
    "array": (lambda: read_region(np.eye(2)), TypeError, "source must be a path"),
    "region": (lambda: read_region(sk.Simplex()), TypeError, r"got Simplex\(\)"),
    "class": (lambda: read_region(highspy.Highs), TypeError, "got the class Highs"),
    "empty-list": (lambda: read_region([]), TypeError, "got a list of nothing"),
    "mixed-list": (lambda: read_region([*BOX, Bounds(0, 1)]), TypeError, "got a list of Bounds, Inequality"),
    "highs-lp": (lambda: read_region(highspy.HighsLp()), TypeError, "must be a highspy.Highs, got HighsLp"),
    "highs-empty": (lambda: read_region(highspy.Highs()), ValueError, "the HiGHS model has no variables"),
    "highs-quadratic": (lambda: read_region(NONLINEAR), ValueError, "HiGHS model has a quadratic objective"),
    "variables-unknown": (lambda: read_region(TWO, ["x00"]), ValueError, "no variable 'x00'.*Similar names: 'x0'"),
    "variables-far": (lambda: read_region(TWO, "price"), ValueError, "no variable 'price'.*first names: 'x0', 'x1'"),
    "variables-number": (lambda: read_region(TWO, [6]), ValueError, "number 6, but the model has variables 0 to 5"),
    "variables-negative": (lambda: read_region(TWO, [-1]), ValueError, "number -1"),
    "variables-twice": (lambda: read_region(TWO, ["x0", 0]), ValueError, "variables has 'x0' more than once"),
    "variables-empty": (lambda: read_region(TWO, []), ValueError, "variables is empty"),
    "variables-float": (lambda: read_region(TWO, [1.5]), TypeError, "must be names, numbers or variables.*1.5"),
    "variables-bool": (lambda: read_region(TWO, True), TypeError, "must be names, numbers or variables.*True"),
    "variables-other": (lambda: read_region(BOX, variable("z")), ValueError, "no variable 'z'"),
    "variables-no-names": (lambda: read_region(scipy_arguments(), "x0"), ValueError, "have no names.*give their numb"),
    "scipy-nonlinear": (
        lambda: read_region(NonlinearConstraint(np.sum, 0, 1)),
        TypeError, "a scipy NonlinearConstraint cannot be represented",
    ),
    "scipy-bounds": (lambda: read_region([Bounds([0], 1), Bounds([0], 1)]), ValueError, "there are 2 Bounds"),
    "scipy-size": (lambda: read_region({"bounds": (0, 1)}), ValueError, "number of variables is not given"),
    "scipy-c": (lambda: read_region({"c": [1, 2], "A_ub": [[1, 1, 1]], "b_ub": [1]}), ValueError, "each of the 3 var"),
    "scipy-c-nan": (lambda: read_region({"c": [1, np.nan], "bounds": (0, 1)}), ValueError, "c must be finite"),
    "scipy-c-words": (lambda: read_region({"c": ["a"], "bounds": (0, 1)}), ValueError, "c must be a number or"),
    "scipy-key": (lambda: read_region({"A": [[1]], "options": {}}), ValueError, "got 'A', 'options'"),
    "scipy-semi": (lambda: read_region(scipy_arguments(2 * INTEGER)), ValueError, "semi-continuous decisions"),
    "scipy-unbounded": (lambda: read_region(LinearConstraint([1, -1], ub=1)), ValueError, "decision 0 has no limit"),
    "scipy-infeasible": (lambda: read_region([LinearConstraint([1, 1], 5), Bounds(0, 1)]), ValueError, "infeasible"),
    "cvxpy-expression": (lambda: read_region(x), TypeError, "a Problem or a list of constraints, got a Variable"),
    "cvxpy-objective": (
        lambda: read_region(cp.Problem(cp.Minimize(cp.sum_squares(x)), BOX)), ValueError,
        "objective of the CVXPY problem is not linear.*pass problem.constraints",
    ),
    "cvxpy-integer-cone": (lambda: read_region([cp.norm(b) <= 1]), ValueError, r"variable 'b\[0\]' and .*not lin"),
    "cvxpy-finite-set": (lambda: read_region([cp.FiniteSet(x, [1, 2])]), ValueError, "cannot be represented. Use bool"),
    "cvxpy-not-convex": (lambda: read_region(with_box(x, cp.norm(x) >= 1)), ValueError, "is not DCP"),
    "cvxpy-unbounded": (lambda: read_region([n[0] <= 1]), ValueError, r"decision 1 \('n\[1\]'\) has no limit above"),
    "cvxpy-unbounded-cone": (lambda: read_region([cp.abs(n[0]) <= 1]), ValueError, r"unbounded, 'n\[1\]' can be"),
    "cvxpy-infeasible": (lambda: read_region([n <= -1]), ValueError, r"empty.*decision 0 \('n\[0\]'\)"),
    "cvxpy-parameter": (lambda: read_region([x <= cp.Parameter(name="most")]), ValueError, "parameter 'most' has no v"),
    "cvxpy-names": (lambda: read_region([*BOX, variable() <= 2]), ValueError, r"variables are called 'x\[0\]'"),
    "cvxpy-complex": (lambda: read_region([cp.abs(variable("c", complex=True)) <= 1]), ValueError, "'c' is complex"),
    "cvxpy-constant": (lambda: read_region([cp.Constant(1) <= 2]), ValueError, "have no variables"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name):
    action, kind, message = MISTAKES[name]
    with pytest.raises(kind, match=message):
        action()


def pyomo_problem(change):
    pyo = pytest.importorskip("pyomo.environ")
    m = pyomo_model()
    change(m, pyo)
    return m


def add(**components):
    """Add components to a Pyomo model."""

    def change(m, pyo):
        for name, make in components.items():
            m.add_component(name, make(m, pyo))

    return change


PYOMO = {
    "quadratic": (add(q=lambda m, pyo: pyo.Constraint(expr=m.x[0] * m.x[1] <= 1)), "constraint 'q' .*is not linear"),
    "nonlinear": (add(q=lambda m, pyo: pyo.Constraint(expr=pyo.exp(m.x[0]) <= 1)), r"'q' .*not linear.*exp\(x\[0\]\)"),
    "objectives": (add(o=lambda m, pyo: pyo.Objective(expr=m.y0)), "several objectives, 'profit', 'o'"),
    "sos": (add(q=lambda m, pyo: pyo.SOSConstraint(var=m.x, sos=1)), "has the SOSConstraint 'q'"),
    "disjunction": (
        add(q=lambda m, _: pytest.importorskip("pyomo.gdp").Disjunction(expr=[[m.x[0] <= 1], [m.x[0] >= 2]])),
        "has the Disj",
    ),
    "domain": (add(z=lambda m, pyo: pyo.Var(domain=pyo.RangeSet(0, 10, 2))), "variable 'z' .*has the domain"),
    "unbounded": (add(z=lambda m, pyo: pyo.Var()), r"unbounded: decision . \('z'\) has no limit (above|below)"),
    "never": (add(q=lambda m, pyo: pyo.Constraint(expr=m.fixed <= 1)), "constraint 'q' has no variable that is not"),
}  # fmt: skip


@pytest.mark.parametrize("name", PYOMO)
def test_mistakes_in_pyomo_models(name):
    change, message = PYOMO[name]
    with pytest.raises(ValueError, match=message):
        read_region(pyomo_problem(change))


def test_other_objects_of_pyomo():
    pyo = pytest.importorskip("pyomo.environ")
    model = pyomo_model()
    model.profit.set_value(model.x[0] ** 2)
    with pytest.raises(ValueError, match="the objective 'profit' of the Pyomo model is not linear"):
        read_region(model)
    with pytest.raises(TypeError, match="must be a ConcreteModel, got ScalarVar"):
        read_region(model.y0)
    with pytest.raises(ValueError, match=r"create_instance\(\)"):
        read_region(pyo.AbstractModel())
    with pytest.raises(ValueError, match="no variables"):
        read_region(pyo.ConcreteModel())
    with pytest.raises(ValueError, match="no variable 'fixed'"):
        read_region(pyomo_model(), "fixed")


def test_mistakes_in_linopy_models():
    linopy = pytest.importorskip("linopy")
    with pytest.raises(ValueError, match="linopy model has no variables"):
        read_region(linopy.Model())
    model = linopy_model()
    with pytest.raises(TypeError, match=r"must be a linopy\.Model, got Variable"):
        read_region(model.variables["x"])
    s = model.variables["s"]
    model.add_objective(s * s, overwrite=True)
    with pytest.raises(ValueError, match="quadratic objective"):
        read_region(model)
    model = linopy_model()
    model.add_variables(lower=0, name="free")
    with pytest.raises(ValueError, match=r"\('free'\) has no limit above"):
        read_region(model)
    model = linopy_model()
    if hasattr(model, "semi_continuous"):
        model.add_variables(lower=1, upper=2, semi_continuous=True, name="sometimes")
        with pytest.raises(ValueError, match="semi-continuous variables 'sometimes'"):
            read_region(model)
    model = linopy_model()
    if hasattr(model, "add_indicator_constraints"):
        v = model.variables
        model.add_indicator_constraints(v["y1"], 1, 1.0 * v["y0"], "<=", 1, name="only")
        with pytest.raises(ValueError, match="indicator constraints 'only'"):
            read_region(model)
    model = linopy_model()
    if hasattr(model, "add_sos_constraints"):
        model.add_sos_constraints(model.variables["x"], sos_type=1, sos_dim="i")
        with pytest.raises(ValueError, match="special ordered sets of the variables 'x'"):
            read_region(model)
