"""The algorithms, one a file, in plain Python over generic scalars.

The folder's listing is the book's table of contents: the first lines of each file say what it computes,
after which source, where it differs from it, and what it costs. The manual's page on the algorithms is made
from them. ``robokit/dynamics/table.py`` has a row for each that is offered as a function.

RBDA is R. Featherstone, Rigid Body Dynamics Algorithms, 2008. The other sources are the five that robokit
is built from: seeds 000, Featherstone's slides on the CRBA and branch-induced sparsity; 001, S. Caron's
page on the RNEA; 002, Featherstone's slides on the ABA; 003, the CusToM slides of C. Pontonnier and
P. Puchaud on inverse dynamics, connectivity and mobile bases; 004 ("notes"), dynamics notes with the
centroidal momentum matrix. Papers are cited by authors, title and year.

Each takes the tree and its arguments by joint (``tree.split_q``, ``tree.split_v``); n bodies, d the
tree's depth. None knows of arrays, lanes or caches: robokit.dynamics runs them.
"""
