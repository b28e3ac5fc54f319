"""Decisions that are made side by side: products of regions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from sklearn.utils.metaestimators import available_if

from .._utils.shown import shown
from ._names import Names, names_side_by_side
from .base import Region
from .capabilities import Memory, equalities_of
from .polyhedral import StandardForm

if TYPE_CHECKING:
    import cvxpy as cp


def _all_have(name: str) -> Callable[[Product], bool]:
    """Whether every region has a capability."""
    return lambda product: all(hasattr(region, name) for region in product.regions)


class Product(Region):
    """Product of regions: decisions that are made side by side, with costs that add up.

    The decision variables of the regions follow each other.  Training takes the regions one at a time,
    whatever the solver, so that many small ones are fitted as fast as their number allows.

    Parameters
    ----------
    regions : list of Region
        At least one.  Their ``sense`` must be that of the product.
    sizes : list of int, default=None
        How many decision variables each region has.  None asks the regions, which works if all of them know.
    sense : {"min", "max"}, default="min"
        Whether the predicted numbers are costs or values.

    Examples
    --------
    One of three machines, and any of two orders:

    >>> from skspo import Box, Product, Simplex
    >>> region = Product([Simplex(), Box()], sizes=[3, 2])
    >>> region.argmin([[3.0, 1.0, 2.0, -1.0, 4.0]])
    array([[0., 1., 0., 1., 0.]])
    """

    def __init__(self, regions: Sequence[Region], sizes: Sequence[int] | None = None, *, sense: str = "min") -> None:
        self.regions = regions
        self.sizes = sizes
        self.sense = sense

    @property
    def n_dim(self) -> int | None:
        """Sum of the sizes; None if a region without a size of its own has been given none."""
        sizes = self._sizes()
        return None if any(size is None for size in sizes) else sum(int(size) for size in sizes if size is not None)

    def _sizes(self) -> list[int | None]:
        return [region.n_dim for region in self.regions] if self.sizes is None else list(self.sizes)

    @property
    def variable_names(self) -> Names:  # type: ignore[override]
        """Names of the variables of the regions, one after the other; None if they have none."""
        return None if self.n_dim is None else self._names(self.n_dim)

    def _names(self, d: int) -> Names:
        parts = [(k.stop - k.start, region) for k, region in self._data(d)]
        return names_side_by_side([(size, region.names(size)) for size, region in parts])

    def _describe(self, W: np.ndarray, names: np.ndarray) -> list[Any]:
        own = self._names(W.shape[1])
        numbered = own is not None and list(names) == list(own)
        parts = []
        for columns, region in self._data(W.shape[1]):
            # The number of a region, which may be part of a name, is not needed here.
            theirs = region.names(columns.stop - columns.start) if numbered else None
            parts.append(region._describe(W[:, columns], names[columns] if theirs is None else theirs))
        return [list(words) for words in zip(*parts, strict=True)]

    def _known_costs(self, d: int) -> list[int]:
        parts = [(k.start, region._known_costs(k.stop - k.start)) for k, region in self._data(d)]
        return [start + j for start, known in parts for j in known]

    def _inside(self) -> list[Region]:
        return list(self.regions)

    def _prepare(self, d: int) -> list[tuple[slice, Region]]:
        regions = list(self.regions)
        if not regions or not all(isinstance(region, Region) for region in regions):
            raise ValueError(f"Product: regions must be a list with at least one region, got {shown(self.regions)}.")
        sizes = self._sizes()
        if len(sizes) != len(regions):
            raise ValueError(f"Product: there are {len(regions)} regions, but sizes has {len(sizes)} entries.")
        for i, (region, size) in enumerate(zip(regions, sizes, strict=True)):
            if size is None:
                raise ValueError(
                    f"Product: regions[{i}], {region._title}, exists in every dimension: say in sizes how many "
                    "decision variables each region has."
                )
            if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 1:
                raise ValueError(f"Product: sizes must be positive integers, got {shown(size)} for regions[{i}].")
            if region.sense != self.sense:
                raise ValueError(
                    f"Product: regions[{i}], {region._title}, has sense={region.sense!r}, but the product "
                    f"sense={self.sense!r}. Costs and values cannot be mixed: give all of them the same sense."
                )
            region._data(int(size))  # checks its parameters
        ends = np.cumsum([0, *sizes])
        return [(slice(int(a), int(b)), region) for a, b, region in zip(ends, ends[1:], regions, strict=False)]

    def _each(self, solve: Callable[..., np.ndarray], *arrays: np.ndarray) -> np.ndarray:
        """Decisions of each region, ``solve(region, *its columns)``, side by side."""
        return np.concatenate(
            [
                solve(region._named(self._row_names), *(np.ascontiguousarray(array[:, columns]) for array in arrays))
                for columns, region in self._data(arrays[0].shape[1])
            ],
            axis=1,
        )

    def _argmin_again(self, C: np.ndarray, data: Any, memory: Memory) -> np.ndarray:
        """Each region minimizes its columns, starting from what it remembers."""
        memories = iter(memory.setdefault("product", [{} for _ in data]))
        return self._each(lambda region, own: region.solve_min(own, next(memories)), C)

    def _decide_min(self, C: np.ndarray) -> np.ndarray:
        """Each region clips its columns to its own ``cost_bounds``."""
        return self._each(lambda region, own: region._decide_min(own), C)

    def _decide_worst(self, C: np.ndarray, C_true: np.ndarray) -> np.ndarray:
        return self._each(lambda region, own, true: region._decide_worst(own, true), C, C_true)

    def _clips(self, d: int) -> bool:
        return any(region._clips(k.stop - k.start) for k, region in self._data(d))

    def _learn_bounds(self, C: np.ndarray, mean: np.ndarray) -> Product:
        return self._of([region._learn_bounds(C[:, k], mean[k]) for k, region in self._data(C.shape[1])])

    def _check_true_costs(self, C: np.ndarray) -> None:
        for k, region in self._data(C.shape[1]):
            region._named(self._row_names)._check_true_costs(C[:, k])

    def relaxation(self) -> Product:
        """Return the product of the relaxations."""
        return self._of([region.relaxation() for region in self.regions])

    def _of(self, regions: list[Region]) -> Product:
        """Product of other regions, of the same sizes."""
        same = all(a is b for a, b in zip(regions, self.regions, strict=True))
        return self if same else Product(**(self.get_params(deep=False) | {"regions": regions}))

    def possible(self, n_rows: int, n_dim: int) -> np.ndarray | None:
        """Those of the regions, side by side."""
        parts = [(k.stop - k.start, region) for k, region in self._data(self.resolve_dim(n_dim))]
        masks = [region.possible(n_rows, size) for size, region in parts]
        if all(mask is None for mask in masks):
            return None
        whole = [np.ones((n_rows, size), dtype=bool) for size, _ in parts]
        return np.concatenate([b if a is None else a for a, b in zip(masks, whole, strict=True)], axis=1)

    def blocks(self, n_dim: int | None = None) -> list[tuple[np.ndarray, Region]]:
        """Columns and regions whose product this is; regions that are products themselves are split further."""
        d = self.resolve_dim(n_dim)
        found: list[tuple[np.ndarray, Region]] = []
        for columns, region in self._data(d):
            own, split = np.arange(d)[columns], getattr(region, "blocks", None)
            parts = [(np.arange(own.size), region)] if split is None else split(own.size)
            found += [(own[part], inner) for part, inner in parts]
        return found

    def equalities(self, n_dim: int | None = None) -> np.ndarray:
        """Those of the regions, side by side."""
        d = self.resolve_dim(n_dim)
        E: Any = [equalities_of(region, columns.stop - columns.start) for columns, region in self._data(d)]
        return scipy.linalg.block_diag(*E).reshape(-1, d)

    @available_if(_all_have("repair"))
    def repair(self, W: np.ndarray) -> np.ndarray:
        """Repair the decisions of each region."""
        return self._each(lambda region, own: region.repair(own), W)

    @available_if(_all_have("worst_argmin"))
    def worst_argmin(self, C: np.ndarray, C_true: np.ndarray) -> np.ndarray:
        """Among the decisions optimal for ``C``, the one that costs most under ``C_true`` (both minimized)."""
        return self._each(lambda region, own, true: region.worst_argmin(own, true), C, C_true)

    @available_if(_all_have("standard_form"))
    def standard_form(self, n_dim: int | None = None) -> StandardForm:
        """Return the region as {A u = b, lower <= u <= upper}, each region with its own equalities."""
        parts = [(k.stop - k.start, region) for k, region in self._data(self.resolve_dim(n_dim))]
        forms = [region.standard_form(size) for size, region in parts]
        maps = [form.map_to(size) for (size, _), form in zip(parts, forms, strict=True)]
        return StandardForm(
            sp.csr_array(sp.block_diag([form.A for form in forms])),
            np.concatenate([form.b for form in forms]),
            np.concatenate([form.lower for form in forms]),
            np.concatenate([form.upper for form in forms]),
            sp.csr_array(sp.block_diag(maps)),
        )

    @available_if(_all_have("support_epigraph"))
    def support_epigraph(self, V: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """Cone form of the support function: the sum of those of the regions."""
        parts = [region.support_epigraph(V[:, columns]) for columns, region in self._data(V.shape[1])]
        return sum(t for t, _ in parts), [constraint for _, constraints in parts for constraint in constraints]
