"""Pages of regions: a picture below the first sentence, and only the methods that users call.

What solvers ask of a region is documented in ``skspo/regions/capabilities.py``.
"""

import inspect
from pathlib import Path
from typing import Any

#: methods and properties that are shown
SHOWN = (
    "argmin",
    "decide",
    "inner_argmin",
    "extend",
    "offset",
    "grid",
    "chosen",
    "describe",
    "relaxation",
    "visible_costs",
    "possible",
    "variable_names",
    "n_dim",
)

FOLDER = Path(__file__).parents[1] / "generated" / "pictures"


def examples() -> dict[str, tuple[Any, int]]:
    """A region of two or three variables of each class that can be drawn, and their number."""
    import cvxpy as cp

    import skspo as sk

    corner = {"A_ub": [[1.0, 2.0], [3.0, 1.0]], "b_ub": [4.0, 6.0], "bounds": (0, 3)}
    return {
        "Box": (sk.Box(), 2),
        "CvxpyRegion": (sk.CvxpyRegion(lambda w: [w >= 0, cp.sum(w) <= 1.2, cp.norm(w) <= 1], n_dim=2), 2),
        "Ellipsoid": (sk.Ellipsoid([[2.0, 1.0], [1.0, 1.0]]), 2),
        "EntropySimplex": (sk.EntropySimplex(-0.8), 3),
        "Knapsack": (sk.Knapsack([2, 3, 4], 6), 3),
        "L1Ball": (sk.L1Ball(), 2),
        "LinearImage": (sk.LinearImage(sk.TopK(2), [[1.0, 0.0, 2.0, 1.0], [0.0, 2.0, 1.0, -1.0]]), 2),
        "LogBarrierSimplex": (sk.LogBarrierSimplex(), 3),
        "LqBall": (sk.LqBall(q=1.5), 2),
        "Markowitz": (sk.Markowitz([[1.0, 0.2, 0.0], [0.2, 1.0, 0.1], [0.0, 0.1, 1.0]], max_risk=0.5), 3),
        "MixedInteger": (sk.MixedInteger(**corner), 2),
        "Polyhedron": (sk.Polyhedron(**corner), 2),
        "Product": (sk.Product([sk.Simplex(), sk.Box()], sizes=[2, 1]), 3),
        "Simplex": (sk.Simplex(), 3),
        "TopK": (sk.TopK(2), 3),
    }


def draw(app: Any) -> None:
    """Before the pages are read."""
    import matplotlib.pyplot as plt

    from skspo.plotting import RegionDisplay

    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, (region, d) in examples().items():
        RegionDisplay.from_region(region, n_dim=d, n_angles=361).figure_.savefig(FOLDER / f"{name}.png", dpi=110)
        plt.close("all")


def add_picture(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Insert the picture of a region after the first paragraph of its docstring."""
    if what != "class" or not (FOLDER / f"{obj.__name__}.png").exists() or not name.startswith("skspo."):
        return
    first = next(k for k, line in enumerate(lines) if line.strip())
    end = next((k for k in range(first, len(lines)) if not lines[k].strip()), len(lines))
    text = f"{obj.__name__}: region, and the best decision as the costs turn"
    lines[end:end] = ["", f".. image:: pictures/{obj.__name__}.png", f"   :alt: {text}", "   :width: 100%", ""]


def skip(app: Any, what: str, name: str, obj: Any, skipped: bool, options: Any) -> bool | None:
    """Hide what users do not call."""
    function = obj.fget if isinstance(obj, property) else inspect.unwrap(getattr(obj, "__func__", obj))
    module = str(getattr(function, "__module__", None))
    return True if module.startswith("skspo.regions") and name not in SHOWN else None


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("builder-inited", draw, priority=100)
    app.connect("autodoc-process-docstring", add_picture, priority=900)
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True}
