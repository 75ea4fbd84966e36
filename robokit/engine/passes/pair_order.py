"""The order of evaluation of a program in which some operations are done two at once (paired.py)."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from robokit.engine.trace.blocks import called
from robokit.engine.trace.ops import CALL
from robokit.engine.trace.program import Program


def units(program: Program, pairs: dict[int, int]) -> Iterator[list[int]]:
    """What is computed at once, in an order of evaluation: about the order of the later of two twins.

    Args:
        program: the graph.
        pairs: node -> its twin, in both directions. Twins that wait for each other are taken out.
    """
    nodes, order = program.nodes, program.order
    body, computed = program.bodies(), bytearray(len(nodes))
    for n in order:
        computed[n] = 1
    mate = [0] * len(nodes)
    for n, m in pairs.items():
        mate[n] = m
    readers: list[list[int]] = [[] for _ in nodes]
    wanting = [0] * len(nodes)  # what is still to come before each node
    left = [0] * len(program.blocks)  # and of each body, before its calls
    for n in order:
        for x in nodes[n][1:]:
            if computed[x]:
                readers[x].append(n)
                wanting[n] += 1
        if n in body:
            left[body[n]] += 1
    calls: list[list[int]] = [[] for _ in left]
    for n in order if left else ():
        if nodes[n][0] == CALL:
            block = called(program, n)
            calls[block].append(n)
            wanting[n] += left[block] > 0
            for r in program.blocks[block].results:
                if type(r) is int and computed[r] and r not in body:
                    readers[r].append(n)
                    wanting[n] += 1
    heap = [n for n in order if not wanting[n] and n > mate[n] and not (mate[n] and wanting[mate[n]])]
    heapq.heapify(heap)
    done, count, rest = bytearray(len(nodes)), 0, iter(order)
    while count < len(order):
        if not heap:  # some twins wait for each other
            n = next(n for n in rest if not done[n])
            m, mate[n] = mate[n], 0
            if m:
                mate[m] = 0
                del pairs[n], pairs[m]
                heap = [x for x in sorted((n, m)) if not wanting[x]]
            continue
        n = heapq.heappop(heap)
        m = mate[n]
        members = [m, n] if m else [n]
        count += len(members)
        yield members
        for each in members:
            done[each] = 1
            freed = readers[each]
            block = body.get(each, -1)
            if block >= 0:
                left[block] -= 1
                if not left[block]:
                    freed = [*freed, *calls[block]]
            for reader in freed:
                wanting[reader] -= 1
                if not wanting[reader]:
                    m = mate[reader]
                    if not m:
                        heapq.heappush(heap, reader)
                    elif not wanting[m]:
                        heapq.heappush(heap, max(m, reader))
