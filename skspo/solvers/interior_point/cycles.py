"""A sparse basis of the flows that satisfy A u = 0, where A is the incidence matrix of a planar graph.

The faces of a planar drawing, less one for each connected piece, are such a basis: each edge borders at most two of
them, once in either direction.  With the faces as columns of N, N^T diag(c) N is the Laplacian of the dual graph with
weights c, whose band is narrow if the graph is a grid, and which can be factored without a subtraction (``banded``).

The drawing is found by the method of Demoucron, Malgrange and Pertuiset: start with a cycle; as long as edges remain,
take a connected fragment of what is left, find a face with all nodes at which it is attached, and split this face by a
path through the fragment.  A fragment without such a face proves that the graph is not planar.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Container
from itertools import count

import numpy as np

#: an edge in the direction of travel: (node where it starts, edge, +1 if traveled from tail to head and else -1)
Step = tuple[int, int, int]

#: edges beyond which no drawing is looked for: the matrices of such a region would be too large anyway
MAX_EDGES = 5000


def cycle_basis(A: np.ndarray) -> np.ndarray | None:
    """Faces of the graph with incidence matrix ``A``, (m, N), whose rows are linearly independent.

    A column has at most one entry 1 and one entry -1; edges with a single entry end at one more node.  Returns a basis
    of null(A), (N, N - m), with at most one entry 1 and one entry -1 in a row; None if ``A`` does not have this form,
    or the graph is not planar.
    """
    m, N = A.shape
    tails, heads = A == 1.0, A == -1.0
    if not m or N > MAX_EDGES or not ((A == 0.0) | tails | heads).all():
        return None
    if (tails.sum(axis=0) > 1).any() or (heads.sum(axis=0) > 1).any() or not (A != 0.0).any(axis=0).all():
        return None
    tail = np.where(tails.any(axis=0), tails.argmax(axis=0), m).tolist()
    head = np.where(heads.any(axis=0), heads.argmax(axis=0), m).tolist()
    faces: list[list[Step]] = []
    for edges in _biconnected(tail, head, m + 1):
        if len(edges) > 1:  # a bridge carries no flow
            drawn = _draw(edges, tail, head)
            if drawn is None:
                return None
            # Leaving out the longest face, in a grid the outer one, keeps the band narrow.
            drawn.remove(max(drawn, key=len))
            faces += drawn
    basis = np.zeros((N, len(faces)))
    for j, face in enumerate(faces):
        for _, edge, sign in face:
            basis[edge, j] = sign
    return basis if basis.shape[1] == N - m and not (A @ basis).any() else None


def _biconnected(tail: list[int], head: list[int], n_nodes: int) -> list[list[int]]:
    """Edges of each biconnected component (Hopcroft and Tarjan's depth-first search, without recursion)."""
    around: list[list[tuple[int, int]]] = [[] for _ in range(n_nodes)]
    for edge, (x, y) in enumerate(zip(tail, head, strict=True)):
        around[x].append((edge, y))
        around[y].append((edge, x))
    order, low = [-1] * n_nodes, [0] * n_nodes
    used = [False] * len(tail)
    components, clock = [], 0
    for root in range(n_nodes):
        if order[root] >= 0:
            continue
        order[root] = low[root] = clock
        clock += 1
        path: list[tuple[int, int]] = [
            (root, 0)
        ]  # nodes on the way from the root, and edges seen when they were reached
        stack: list[int] = []
        position = [0] * n_nodes
        while path:
            node, size = path[-1]
            if position[node] < len(around[node]):
                edge, other = around[node][position[node]]
                position[node] += 1
                if used[edge]:
                    continue
                used[edge] = True
                if order[other] < 0:
                    path.append((other, len(stack)))
                    order[other] = low[other] = clock
                    clock += 1
                else:
                    low[node] = min(low[node], order[other])
                stack.append(edge)
                continue
            path.pop()
            if path:
                parent = path[-1][0]
                low[parent] = min(low[parent], low[node])
                if low[node] >= order[parent]:  # nothing below leads past the parent
                    components.append(stack[size:])
                    del stack[size:]
    return components


def _draw(edges: list[int], tail: list[int], head: list[int]) -> list[list[Step]] | None:
    """Faces of a planar drawing of a biconnected graph, all in the same sense; None if there is none."""
    first = _path(edges[1:], tail, head, head[edges[0]], {tail[edges[0]]}, set())
    cycle = [(tail[edges[0]], edges[0], 1), *first]
    faces = {0: cycle, 1: _reversed(cycle, tail, head)}
    at: dict[int, set[int]] = {node: {0, 1} for node, _, _ in cycle}  # faces around a node
    labels = count(2)
    on_cycle = {edge for _, edge, _ in cycle}
    pending = _fragments([edge for edge in edges if edge not in on_cycle], tail, head, at)
    while pending:
        admissible = [set.intersection(*(at[node] for node in contacts)) for _, contacts in pending]
        chosen = min(range(len(pending)), key=lambda i: len(admissible[i]))
        if not admissible[chosen]:
            return None
        fragment, contacts = pending.pop(chosen)
        label = min(admissible[chosen])
        start = min(contacts)
        path = _path(fragment, tail, head, start, contacts - {start}, contacts)
        _, edge, sign = path[-1]
        end = head[edge] if sign > 0 else tail[edge]
        face = faces.pop(label)
        nodes = [node for node, _, _ in face]
        i = nodes.index(start)
        face = face[i:] + face[:i]
        j = [node for node, _, _ in face].index(end)
        for node in nodes:
            at[node].remove(label)
        for part in (face[:j] + _reversed(path, tail, head), path + face[j:]):
            new = next(labels)
            faces[new] = part
            for node, _, _ in part:
                at.setdefault(node, set()).add(new)
        taken = {edge for _, edge, _ in path}
        pending += _fragments([edge for edge in fragment if edge not in taken], tail, head, at)
    return list(faces.values())


def _reversed(path: list[Step], tail: list[int], head: list[int]) -> list[Step]:
    """Travel the other way."""
    return [(head[edge] if sign > 0 else tail[edge], edge, -sign) for _, edge, sign in reversed(path)]


def _path(
    edges: list[int], tail: list[int], head: list[int], start: int, goals: set[int], blocked: set[int]
) -> list[Step]:
    """Shortest path along ``edges`` from a node to the nearest goal, past no blocked node."""
    around: defaultdict[int, list[Step]] = defaultdict(list)
    for edge in edges:
        around[tail[edge]].append((head[edge], edge, 1))
        around[head[edge]].append((tail[edge], edge, -1))
    came: dict[int, Step] = {}
    queue, node = deque([start]), start
    while node not in goals:
        node = queue.popleft()
        for other, edge, sign in around[node]:
            if other in goals or (other not in came and other not in blocked and other != start):
                came[other] = (node, edge, sign)
                queue.append(other)
                if other in goals:
                    node = other
                    break
    path = []
    while node != start:
        path.append(came[node])
        node = came[node][0]
    return path[::-1]


def _fragments(
    edges: list[int], tail: list[int], head: list[int], drawn: Container[int]
) -> list[tuple[list[int], set[int]]]:
    """Connected pieces of ``edges`` once they are cut at the nodes drawn so far, each with its nodes among these."""
    around: defaultdict[int, list[int]] = defaultdict(list)
    for edge in edges:
        for node in (tail[edge], head[edge]):
            if node not in drawn:
                around[node].append(edge)
    pieces, seen = [], set()
    for first in edges:
        if first in seen:
            continue
        seen.add(first)
        piece, contacts = [first], set()
        for edge in piece:  # grows while it is read
            for node in (tail[edge], head[edge]):
                if node in drawn:
                    contacts.add(node)
                for other in around.pop(node, ()):
                    if other not in seen:
                        seen.add(other)
                        piece.append(other)
        pieces.append((piece, contacts))
    return pieces
