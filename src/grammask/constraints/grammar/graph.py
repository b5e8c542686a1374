"""Graphs of names: strongly connected components and cycles, without recursion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def components(graph: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Strongly connected components (Tarjan 1972); each after the components that it points to.

    graph: the successors of every vertex; successors that are not vertices are ignored.
    """
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    open_vertices: list[str] = []
    is_open: set[str] = set()
    result: list[list[str]] = []
    for root in graph:
        if root in index:
            continue
        walk = [(root, iter(graph[root]))]
        index[root] = low[root] = len(index)
        open_vertices.append(root)
        is_open.add(root)
        while walk:
            vertex, successors = walk[-1]
            for successor in successors:
                if successor not in graph:
                    continue
                if successor not in index:
                    index[successor] = low[successor] = len(index)
                    open_vertices.append(successor)
                    is_open.add(successor)
                    walk.append((successor, iter(graph[successor])))
                    break
                if successor in is_open:
                    low[vertex] = min(low[vertex], index[successor])
            else:
                walk.pop()
                if walk:
                    parent = walk[-1][0]
                    low[parent] = min(low[parent], low[vertex])
                if low[vertex] == index[vertex]:
                    component = []
                    while True:
                        member = open_vertices.pop()
                        is_open.discard(member)
                        component.append(member)
                        if member == vertex:
                            break
                    result.append(component)
    return result


def find_cycle(graph: Mapping[str, Iterable[str]]) -> list[str]:
    """The vertices of some cycle in their order, empty if there is none."""
    for component in components(graph):
        members = set(component)
        vertex = component[0]
        if len(component) == 1 and vertex not in graph[vertex]:
            continue
        path: dict[str, None] = {}
        while vertex not in path:
            path[vertex] = None
            vertex = next(successor for successor in graph[vertex] if successor in members)
        names = list(path)
        return names[names.index(vertex) :]
    return []
