"""Paths in directed graphs: ShortestPath."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from .._utils.errors import InfeasibleRegionError, warn_once
from .._utils.limits import BLOCK_NUMBERS
from .._utils.shown import shown
from ._cost_bounds import CostBounds, Limits
from ._names import Names, number_names, ones_of
from ._oracles.flows import drop_free_cycles, has_cycle, walk_edges
from ._oracles.highs import NOTHING, solve_rows, worst_rows
from ._rows import forbid, refuse_rows, row_error, rows_among, rows_like
from ._tolerances import ROUNDING
from .image import LinearImage
from .polyhedral import InequalityForm, PolyhedralRegion

if TYPE_CHECKING:
    import networkx as nx

Node: TypeAlias = Hashable
Edges: TypeAlias = "Sequence[Sequence[Node]] | np.ndarray | nx.DiGraph"
#: lower bound of predictions with ``cost_bounds="auto"``, as a share of the mean training cost of the edge: the best of
#: nothing, zero, 0.02 to 0.3 of the mean of the edge or of all edges, and smallest costs (docs/guide/regions.md)
AUTO_SHARE = 0.2

BLOCKED = "ShortestPath: the region of {row} is empty, no path of available edges leads from source to target."


class Step(NamedTuple):
    """One incoming edge for each of several consecutive nodes of one level: the k-th edge enters the k-th node."""

    nth: int  # first, second, ... edge of these nodes
    nodes: slice
    edges: np.ndarray  # their indices in the user's order
    places: slice  # their positions in ``Sweep.order``
    tails: np.ndarray


class Sweep(NamedTuple):
    """Dynamic programming over the nodes of an acyclic graph, in vectorized steps.

    Nodes are numbered by level (the number of edges of the longest path from the source, which is node 0).
    """

    steps: list[Step]
    order: np.ndarray  # edges in the order of the steps
    entering: np.ndarray  # (n_nodes, most) edges that enter each node; d where there are none
    tails: np.ndarray  # (d + 1,) node number of each edge's tail; entry d is the source
    target: int
    length: int  # number of edges of the longest path

    def forward(self, C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Cost of the best path to each node, and which of the entering edges is its last; ``C`` is (d, n)."""
        C = C[self.order]
        n_nodes, most = self.entering.shape
        value = np.zeros((n_nodes, C.shape[1]))
        nth = np.zeros((n_nodes, C.shape[1]), dtype=np.min_scalar_type(most))
        for step in self.steps:
            through = value[step.tails]
            through += C[step.places]
            best = value[step.nodes]
            if step.nth == 0:
                best[:] = through
            else:
                # Only if strictly better: edges come in increasing order, so the lowest index is kept.
                better = (through < best).astype(nth.dtype)
                better *= nth.dtype.type(step.nth)
                np.maximum(nth[step.nodes], better, out=nth[step.nodes])
                np.minimum(best, through, out=best)
        return value, nth

    def shortest(self, C: np.ndarray) -> np.ndarray:
        """Paths of least cost, (n, d), for costs (d, n); an infinite cost excludes an edge."""
        d, n = C.shape
        value, nth = self.forward(C)
        refuse_rows(np.isinf(value[self.target]), InfeasibleRegionError, lambda _: BLOCKED)
        # A path that has reached the source stays there, on the artificial edge d.
        W = np.zeros((n, d + 1))
        rows, node = np.arange(n), np.full(n, self.target)
        for _ in range(self.length):
            edge = self.entering[node, nth[node, rows]]
            W[rows, edge] = 1.0
            node = self.tails[edge]
        return W[:, :d]


def plan_sweep(tails: np.ndarray, heads: np.ndarray, source: int, target: int, used: np.ndarray) -> Sweep | None:
    """Order the nodes by level and group their incoming edges into steps; None if there is a cycle."""
    incoming: dict[int, list[int]] = {source: []}
    for e in used.tolist():
        incoming.setdefault(int(heads[e]), []).append(e)
    sorter = TopologicalSorter({node: tails[entering].tolist() for node, entering in incoming.items()})
    try:
        sorter.prepare()
    except CycleError:
        return None
    levels = []
    while sorter.is_active():
        ready = sorter.get_ready()
        sorter.done(*ready)
        # Nodes with many incoming edges first: the k-th edges of a level then enter consecutive nodes.
        levels.append(sorted(ready, key=lambda node: -len(incoming[node])))
    order = [node for level in levels for node in level]
    number = np.zeros(int(max(tails.max(), heads.max())) + 1, dtype=np.intp)
    number[order] = np.arange(len(order))
    entering = np.full((len(order), max(map(len, incoming.values()))), tails.size)
    steps = []
    start, place = 1, 0
    for level in levels[1:]:
        for k in range(max((len(incoming[node]) for node in level), default=0)):
            edges = np.array([incoming[node][k] for node in level if len(incoming[node]) > k])
            nodes, places = slice(start, start + edges.size), slice(place, place + edges.size)
            steps.append(Step(k, nodes, edges, places, number[tails[edges]]))
            entering[nodes, k] = edges
            place += edges.size
        start += len(level)
    ordered = np.concatenate([step.edges for step in steps])
    return Sweep(steps, ordered, entering, np.append(number[tails], 0), int(number[target]), len(levels) - 1)


class _Network(NamedTuple):
    form: InequalityForm
    used: np.ndarray  # indices of the edges on some walk from source to target
    sweep: Sweep | None  # None if these edges contain a cycle
    ends: tuple[np.ndarray, np.ndarray]  # tails and heads of all edges, numbered
    terminals: tuple[int, int]
    has_cycle: bool  # whether the whole graph has one
    nodes: list[Node]  # in the order in which edges mention them
    pair: np.ndarray | None = None  # (n,) number of the ends of each sample, if they vary
    between: Callable[[int], _Network] | None = None  # paths between the ends with a number
    available: np.ndarray | None = None  # (n, d); None means that all edges are open

    def groups(self, n: int) -> Iterator[tuple[np.ndarray, _Network]]:
        """Rows with the same ends, and their paths; without cycles, as many rows as are swept together."""
        pair = np.zeros(n, dtype=np.intp) if self.pair is None else self.pair
        order = np.argsort(pair, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(pair[order])) + 1) if order.size else ():
            network = self if self.between is None else self.between(int(pair[rows[0]]))
            # With fewer rows the overhead of a step dominates in large graphs.
            step = rows.size if network.sweep is None else max(BLOCK_NUMBERS // network.form.lower.size, 256)
            yield from ((rows[a : a + step], network) for a in range(0, rows.size, step))

    def closed(self, network: _Network, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Upper bounds of the edges of some rows, whose ends are those of a network, if edges are closed."""
        if self.available is None:
            return {}
        return {"upper": np.where(self.available[rows], network.form.upper, 0.0)}


class ShortestPath(PolyhedralRegion):
    r"""Paths from source to target in a directed graph: one decision per edge, 1 if the path takes it.

    On an acyclic graph the region is the convex hull of all paths, and the best one is found by dynamic programming,
    for all rows at once and for costs of any sign.  On a graph with cycles it is the flow polytope, one unit from
    source to target with :math:`0 \le w \le 1`, and a linear program: the best flow is a path, and all cycles whose
    costs are negative and that pay beside it.  It never contains a cycle of cost zero.  Training uses this polytope,
    with costs of any sign; decisions are made with predictions clipped to ``cost_bounds``, which are paths if the lower
    bounds are not negative.  Edges that no walk from source to target uses are fixed at 0.

    Parameters
    ----------
    edges : list of (tail, head) pairs, array of shape (d, 2), or directed networkx graph
        Nodes are any hashable labels; parallel edges are allowed.  The order of the edges is the order of the costs.
    source, target : node labels, default=None
        None means the only node that no edge enters, or leaves.  Both may vary by sample, with
        ``region_params={"source": ..., "target": ...}``, arrays of node labels, in the methods of an estimator, and so
        may the edges that are open: ``region_params={"available": ...}``, a boolean array of shape (n_samples, d).
    n_jobs : int, default=None
        Number of threads; used only if the graph has a cycle.
    sense : {"min", "max"}, default="min"
        Whether the predicted numbers are costs or values.
    cost_bounds : "auto", tuple (lower, upper) or None, default="auto"
        Bounds that :meth:`decide` clips predictions to: numbers, arrays of shape (d,), or None for no bound.  "auto"
        is for graphs with cycles; without cycles it is None.  ``fit`` of an estimator then stores lower bounds in its
        ``region_``: a fifth of the mean training cost of each edge, or None if a training cost is negative.  Without a
        fit the lower bound is zero, and a metric that is given a negative true cost does not clip.  With "auto" or
        bounds, there is a warning if the true costs of a cycle are negative, so that the best decision contains it.

    Examples
    --------
    >>> from skspo import ShortestPath
    >>> region = ShortestPath([("a", "b"), ("b", "c"), ("a", "c")], source="a", target="c")
    >>> region.argmin([[1.0, 1.0, 3.0], [1.0, 1.0, 1.0]])
    array([[1., 1., 0.],
           [0., 0., 1.]])
    >>> ShortestPath.grid(5, 5).n_dim
    40
    """

    edges: Any  # ``_read`` validates it

    def __init__(
        self,
        edges: Edges,
        source: Node = None,
        target: Node = None,
        *,
        n_jobs: int | None = None,
        sense: str = "min",
        cost_bounds: CostBounds = "auto",
    ) -> None:
        self.edges = edges
        self.source = source
        self.target = target
        self.n_jobs = n_jobs
        self.sense = sense
        self.cost_bounds = cost_bounds

    @classmethod
    def grid(cls, rows: int, cols: int, *, sense: str = "min") -> ShortestPath:
        """Paths from the top left to the bottom right node of a grid, moving right and down.

        Parameters
        ----------
        rows, cols : int
            Number of nodes in each direction.
        sense : {"min", "max"}, default="min"
            Whether the predicted numbers are costs or values.

        Returns
        -------
        region : ShortestPath
            Nodes are numbered row by row.  Edges: for each row its horizontal edges, then the vertical edges to the
            next row.
        """
        if not all(isinstance(k, (int, np.integer)) and k >= 1 for k in (rows, cols)) or rows * cols < 2:
            raise ValueError(
                f"ShortestPath: rows and cols must be positive integers, at least two nodes in all; got "
                f"{shown(rows)} x {shown(cols)}."
            )
        edges = []
        for v in range(0, rows * cols, cols):
            edges += [(v + j, v + j + 1) for j in range(cols - 1)]
            if v + cols < rows * cols:
                edges += [(v + j, v + j + cols) for j in range(cols)]
        return cls(np.array(edges), 0, rows * cols - 1, sense=sense)

    @classmethod
    def undirected(
        cls,
        edges: Edges,
        source: Node,
        target: Node,
        *,
        n_jobs: int | None = None,
        sense: str = "min",
        cost_bounds: CostBounds = "auto",
    ) -> LinearImage:
        """Paths along streets that can be used in both directions, at the same cost.

        Parameters
        ----------
        edges : list of pairs of nodes, array of shape (d, 2), or undirected networkx graph
            Their order is the order of the costs.
        source, target : node labels
            Both may vary by sample, as in :class:`ShortestPath`.  So may ``available``, with one column for each
            direction: ``np.hstack([there, back])``.
        n_jobs : int, default=None
            Number of threads.
        sense : {"min", "max"}, default="min"
            Whether the predicted numbers are costs or values.
        cost_bounds : "auto", tuple (lower, upper) or None, default="auto"
            As in :class:`ShortestPath`; arrays have one entry for each street.

        Returns
        -------
        region : LinearImage
            Its decision is how often each street is used.

        Examples
        --------
        >>> from skspo import ShortestPath
        >>> region = ShortestPath.undirected([("a", "b"), ("c", "b"), ("a", "c")], "a", "c")
        >>> region.chosen([[1.0, 1.0, 3.0]]), list(region.variable_names)
        ([['a', 'b', 'c']], ['a - b', 'c - b', 'a - c'])
        """
        graph: Any = edges
        if hasattr(graph, "is_directed"):
            if graph.is_directed():
                raise ValueError("ShortestPath.undirected: the graph is directed; use ShortestPath(graph).")
            graph = list(graph.edges())
        there = cls(graph)._pairs()
        both = [*there, *((head, tail) for tail, head in there)]
        auto = isinstance(cost_bounds, str)
        inner = cls(both, source, target, n_jobs=n_jobs, sense=sense, cost_bounds=cost_bounds if auto else None)
        once = sp.eye_array(len(there), format="csr")
        both_ways, names = sp.hstack([once, once], format="csr"), number_names([f"{a} - {b}" for a, b in there])
        region = LinearImage(inner, both_ways, labels=names, cost_bounds=None if auto else cost_bounds)
        region._made_by = f"{cls.__name__}.undirected"
        return region

    @property
    def n_dim(self) -> int:
        """Number of edges."""
        if hasattr(self.edges, "number_of_edges"):
            return int(self.edges.number_of_edges())
        try:
            return len(self.edges)
        except TypeError:
            raise TypeError(
                "ShortestPath: edges must be a list of (tail, head) pairs, an array of shape (d, 2) or a directed "
                f"networkx graph, got {shown(self.edges)}."
            ) from None

    @property
    def oracle_is_solver(self) -> bool:
        """True if the graph has cycles between the ends of a sample: HiGHS."""
        return any(network.sweep is None for _, network in self._data(self.n_dim).groups(1))

    @property
    def variable_names(self) -> Names:  # type: ignore[override]
        """Names "tail -> head" of the edges; parallel edges are numbered, "tail -> head (2)"."""
        return number_names([f"{tail} -> {head}" for tail, head in self._pairs()])

    def _prepare(self, d: int) -> _Network:
        return self._network(*self._read())

    def _network(self, nodes: list[Node], tails: np.ndarray, heads: np.ndarray, source: int, target: int) -> _Network:
        """Paths between two nodes."""
        d, n_nodes = tails.size, len(nodes)
        from_source, to_target = _reached(source, tails, heads, n_nodes), _reached(target, heads, tails, n_nodes)
        used = np.flatnonzero(from_source[tails] & to_target[heads])
        if not used.size:
            raise InfeasibleRegionError(
                "ShortestPath: the region is empty, no path leads from source to target (unreachable), "
                f"source={nodes[source]!r}, target={nodes[target]!r}. Edges are directed, (tail, head): check their "
                "direction."
            )
        # One row per node, flow out minus flow in; the target's follows from the others.
        inner = np.setdiff1d(np.union1d(tails[used], heads[used]), [target])
        flow = _flow(tails, heads, n_nodes, used)
        plan = plan_sweep(tails, heads, source, target, used)
        upper = np.zeros(d)
        # Without cycles no edge can carry more than one unit, so an upper bound is redundant.
        upper[used] = 1.0 if plan is None else np.inf
        form = InequalityForm.build(d, A_eq=flow[inner], b_eq=(inner == source).astype(float), upper=upper)
        graph = sp.csr_array((np.ones(d), (tails, heads)), shape=(n_nodes, n_nodes))
        graph.sum_duplicates()  # SciPy 1.13 does not end if there are parallel edges
        has_cycle = sp.csgraph.connected_components(graph, connection="strong")[0] < n_nodes
        return _Network(form, used, plan, (tails, heads), (source, target), has_cycle, nodes)

    def _pairs(self) -> list[tuple[Node, Node]]:
        """Tail and head of each edge."""
        edges = self.edges
        if hasattr(edges, "is_directed"):  # a networkx graph
            if not edges.is_directed():
                raise ValueError(
                    "ShortestPath: the graph is undirected. ShortestPath.undirected(graph) has one cost for each edge; "
                    "ShortestPath(graph.to_directed()) has one for each direction."
                )
            edges = list(edges.edges())
        else:
            edges = edges.tolist() if isinstance(edges, np.ndarray) else list(edges)
        if not edges:
            raise ValueError("ShortestPath: there are no edges.")
        pairs = []
        for i, edge in enumerate(edges):
            try:
                tail, head = edge
                hash((tail, head))
            except (TypeError, ValueError):
                raise ValueError(
                    f"ShortestPath: every edge must be a pair (tail, head) of hashable nodes, edge {i} is {edge!r}."
                ) from None
            pairs.append((tail, head))
        return pairs

    def _read(self) -> tuple[list[Node], np.ndarray, np.ndarray, int, int]:
        """Nodes, and edges and terminals as integers."""
        pairs = self._pairs()
        number: dict[Node, int] = {}
        ends = np.empty((len(pairs), 2), dtype=np.intp)
        for i, (tail, head) in enumerate(pairs):
            ends[i] = [number.setdefault(node, len(number)) for node in (tail, head)]
            if ends[i, 0] == ends[i, 1]:
                raise ValueError(f"ShortestPath: edge {i} leads from {tail!r} to itself; leave such edges out.")
        terminals = []
        for name, there in (("source", ends[:, 1]), ("target", ends[:, 0])):
            label = getattr(self, name)
            if label is None:
                free = np.setdiff1d(np.arange(len(number)), there)
                if free.size != 1:
                    kind = "incoming" if name == "source" else "outgoing"
                    raise ValueError(
                        f"ShortestPath: {name} must be given, it is ambiguous: {free.size} nodes have no {kind} edge."
                    )
                terminals.append(int(free[0]))
            elif not isinstance(label, Hashable) or label not in number:
                raise ValueError(f"ShortestPath: {name} {shown(label)} is unknown, it is not a node of any edge.")
            else:
                terminals.append(number[label])
        if terminals[0] == terminals[1]:
            raise ValueError("ShortestPath: source and target must be different nodes.")
        return list(number), ends[:, 0], ends[:, 1], terminals[0], terminals[1]

    def _argmin(self, C: np.ndarray, data: _Network) -> np.ndarray:
        W, D = np.empty_like(C), forbid(C, data.available)
        cyclic = []
        for rows, network in data.groups(len(C)):
            if network.sweep is None:
                cyclic.append((rows, network))
                continue
            with rows_among(rows):
                W[rows] = network.sweep.shortest(np.ascontiguousarray(D[rows].T))
        if data.pair is None and cyclic:
            W = self._flows(C, data)
        elif data.pair is not None and cyclic:
            # One linear program, of which ends change the right-hand sides.
            rows = np.sort(np.concatenate([rows for rows, _ in cyclic]))
            some = None if data.available is None else data.available[rows]
            form = self._form_of_rows(data._replace(pair=data.pair[rows], available=some))
            (own, *_), network = cyclic[0]  # its paths without closed edges, of which there are some
            first = replace(form, b_eq=form.b_eq[np.searchsorted(rows, own)], upper=network.form.upper)
            with rows_among(rows):
                W[rows] = solve_rows(first, C[rows], n_jobs=self.n_jobs, rows=form.varying())
            for rows, network in cyclic:
                W[rows] = drop_free_cycles(W[rows], C[rows], *network.ends, *network.terminals)
        return W

    def _flows(self, C: np.ndarray, network: _Network, rows: Mapping[str, np.ndarray] = NOTHING) -> np.ndarray:
        """Best flows if there are cycles."""
        W = solve_rows(network.form, C, n_jobs=self.n_jobs, rows=rows)
        return drop_free_cycles(W, C, *network.ends, *network.terminals)

    def _describe(self, W: np.ndarray, names: np.ndarray) -> list[Any]:
        pairs, taken = self._pairs(), ones_of(W)
        if taken is None:  # a mixture of paths
            return super()._describe(W, names)
        return [walk_edges([pairs[e] for e in own]) for own in taken]

    def worst_argmin(self, C: np.ndarray, C_true: np.ndarray) -> np.ndarray:
        """Among the decisions optimal for ``C``, the one that costs most under ``C_true`` (both minimized)."""
        W, data = np.empty_like(C), self._data(C.shape[1])
        D = forbid(C, data.available)
        for rows, network in data.groups(len(C)):
            if network.sweep is None:
                closed = data.closed(network, rows)
                W[rows] = worst_rows(network.form, C[rows], C_true[rows], n_jobs=self.n_jobs, rows=closed)
                continue
            W[rows] = network.sweep.shortest(self._tied(D[rows].T, C_true[rows].T, network))
        return W

    @staticmethod
    def _tied(C: np.ndarray, C_true: np.ndarray, data: _Network) -> np.ndarray:
        """Minus the true costs on the edges of optimal paths to any node, infinite costs elsewhere; (d, n)."""
        sweep, used = data.sweep, data.used
        assert sweep is not None
        value, _ = sweep.forward(np.ascontiguousarray(C))
        excess = np.full(C.shape, np.inf)
        for step in sweep.steps:
            with np.errstate(invalid="ignore"):  # closed edges, and nodes that only they lead to
                excess[step.edges] = value[step.tails] + C[step.edges] - value[step.nodes]
        # Equal costs of two paths may differ by rounding.
        tolerance = ROUNDING * sweep.length * np.abs(np.where(np.isfinite(C[used]), C[used], 0.0)).max(axis=0)
        return np.where(excess <= tolerance, -C_true, np.inf)

    def _limits(self, d: int) -> Limits | None:
        if not isinstance(self.cost_bounds, str):
            return super()._limits(d)
        if self.cost_bounds != "auto":
            raise ValueError(
                f"ShortestPath: cost_bounds must be 'auto', None or a pair (lower, upper), got "
                f"{shown(self.cost_bounds)}."
            )
        # Values to be maximized are usually positive, which makes cycles profitable: nothing is known about them.
        if self.sense == "max" or not self._data(d).has_cycle:
            return None
        return np.zeros(d), np.full(d, np.inf)

    def _learn_bounds(self, C: np.ndarray, mean: np.ndarray) -> ShortestPath:
        """Return the region with numbers instead of ``cost_bounds="auto"``, if the graph has a cycle."""
        if not isinstance(self.cost_bounds, str) or not self._data(C.shape[1]).has_cycle:
            return self
        bounds = None
        if (self.to_min(C) >= 0).all():
            end = AUTO_SHARE * mean
            bounds = (None, end) if self.sense == "max" else (end, None)
        other = cast("ShortestPath", self._named(self._row_names))
        other.cost_bounds, other._cache = bounds, {}
        return other

    def _check_true_costs(self, C: np.ndarray) -> None:
        """Warn if the costs of a cycle add up to less than zero, unless ``cost_bounds`` is None."""
        if self.cost_bounds is None:
            return
        found: list[int] = []
        data = self._data(C.shape[1])
        for rows, network in data.groups(len(C)):
            if network.sweep is None:
                rows = rows[(C[np.ix_(rows, network.used)] < 0).any(axis=1)]
                W = self._flows(C[rows], network, data.closed(network, rows))
                found += rows[has_cycle(W, *network.ends, *network.terminals)].tolist()
        if found:
            warn_once(
                f"The true costs of {self._row_names.of(min(found))} make a cycle of the graph profitable: they add "
                "up to less than zero along it, and the best decision of ShortestPath is a path and the cycle. If this "
                "is meant, pass cost_bounds=None, which turns off this warning; otherwise check the costs."
            )

    def row_shapes(self, d: int) -> dict[str, tuple[int, ...]]:
        """Source and target may vary by sample, and edges may be closed."""
        return {"source": (), "target": (), "available": (d,)}

    def _read_row_param(self, name: str, value: ArrayLike) -> ArrayLike:
        """Numbers of nodes."""
        if name == "available":
            return value
        number = {node: float(i) for i, node in enumerate(self._data(self.n_dim).nodes)}
        if isinstance(value, Hashable) and value in number:
            return number[value]  # one label for all rows
        labels = value if isinstance(value, (list, tuple)) else np.asarray(value).tolist()
        if not isinstance(labels, (list, tuple)):
            raise ValueError(f"ShortestPath: {name} {shown(labels)} is unknown, it is not a node of any edge.")
        found = []
        for row, label in enumerate(labels):
            node = tuple(label) if isinstance(label, list) else label
            if not isinstance(node, Hashable) or node not in number:
                text = f"ShortestPath: {name} {shown(label)} of {{row}} is unknown, it is not a node of any edge."
                raise row_error(ValueError, row, text)
            found.append(number[node])
        return found

    def _read_rows(self, rows: dict[str, np.ndarray], data: _Network, d: int) -> dict[str, np.ndarray]:
        source, target = data.terminals
        ends = np.stack([rows_like(rows, "source", source, ()), rows_like(rows, "target", target, ())], axis=1)
        text, nodes = "ShortestPath: source and target of {row} must be different nodes, both are", data.nodes
        refuse_rows(ends[:, 0] == ends[:, 1], ValueError, lambda row: f"{text} {nodes[int(ends[row, 0])]!r}.")
        pair = (ends @ [len(nodes), 1]).astype(np.intp)
        for number, row in zip(*(found.tolist() for found in np.unique(pair, return_index=True)), strict=True):
            try:
                self._between(data, number)
            except InfeasibleRegionError as error:
                raise row_error(InfeasibleRegionError, row, f"{error} (source and target of {{row}})") from None
        return {"pair": pair} | {name: rows[name] for name in ("available",) if name in rows}

    def _with_values(self, data: _Network, values: dict[str, np.ndarray]) -> _Network:
        network: Any = data
        return network._replace(**values, between=partial(self._between, data))

    def _between(self, data: _Network, pair: int) -> _Network:
        """Paths between two nodes, source * n_nodes + target; kept until a parameter is replaced."""
        cached = self._cache.get("pairs")
        if cached is None or cached[0] is not data:
            cached = self._cache["pairs"] = (data, {})
        if pair not in cached[1]:
            cached[1][pair] = self._network(data.nodes, *data.ends, *divmod(pair, len(data.nodes)))
        return cached[1][pair]

    def inequality_form(self, n_dim: int | None = None) -> InequalityForm:
        """Return the flows of one unit from source to target, {flow out - flow in = 1 at the source, 0 elsewhere}."""
        return self._form_of_rows(self._data(self.resolve_dim(n_dim)))

    def _form_of_rows(self, data: _Network) -> InequalityForm:
        if data.pair is None:
            return data.form
        # Conservation at all nodes, so that the matrix is the same for all pairs.
        (tails, heads), d = data.ends, data.form.lower.size
        n_nodes = len(data.nodes)
        b_eq, upper = np.zeros((data.pair.size, n_nodes)), np.zeros((data.pair.size, d))
        for rows, network in data.groups(data.pair.size):
            source, target = network.terminals
            b_eq[rows, source], b_eq[rows, target] = 1.0, -1.0
            upper[rows] = data.closed(network, rows).get("upper", network.form.upper)
        return InequalityForm.build(d, A_eq=_flow(tails, heads, n_nodes, np.arange(d)), b_eq=b_eq, upper=upper)

    def _own_bounds(self, d: int) -> tuple[np.ndarray, np.ndarray]:
        form = self.inequality_form(d)
        return form.lower, form.upper


def _flow(tails: np.ndarray, heads: np.ndarray, n_nodes: int, used: np.ndarray) -> sp.csr_array:
    """Flow out of each node minus flow into it, on some of the edges."""
    one, shape = np.ones(used.size), (n_nodes, tails.size)
    return sp.csr_array((one, (tails[used], used)), shape=shape) - sp.csr_array((one, (heads[used], used)), shape=shape)


def _reached(start: int, tails: np.ndarray, heads: np.ndarray, n_nodes: int) -> np.ndarray:
    """Which nodes can be reached from ``start``."""
    graph = sp.csr_array((np.ones(tails.size), (tails, heads)), shape=(n_nodes, n_nodes))
    reached = np.zeros(n_nodes, dtype=bool)
    reached[sp.csgraph.breadth_first_order(graph, start, return_predecessors=False)] = True
    return reached
