"""The algorithms, one a file, in plain Python over generic scalars.

    file                     what                              source                       cost
    kinematics               poses of the bodies               RBDA 4.4, seeds 003          O(n)
    rnea                     inverse dynamics                  RBDA 5.1, seeds 001          O(n)
    rnea_world               the same at the world origin      seeds 003                    O(n)
    bias                     C and G                           seeds 000, notes 13-14       O(n)
    crba                     H                                 RBDA 6.2, seeds 000          O(n d)
    mass_matrix_columns      H by inverse dynamics             notes 15                     O(n^2)
    ltdl                     H = L^T D L, solve                seeds 000, RBDA 6.3-6.5      O(n d^2)
    forward_dynamics         RNEA + CRBA + LTDL                seeds 000                    O(n d^2)
    aba                      articulated-body algorithm        RBDA 7.1, seeds 002          O(n)
    center_of_mass           p_G                               RBDA 2.13                    O(n)
    coupling                 all of these under v_full = G v   RBDA 3.3, 6.4                O(n d^2)
    energy                   T, V                              seeds 000                    O(n)
    centroidal               A_G, h_G, Ad_G qd from the links  notes 20-22                  O(n)
    centroidal_from_h        A_G, Ad_G qd from H and C         notes 23-26                  O(n)

RBDA is R. Featherstone, Rigid Body Dynamics Algorithms, 2008. The other sources are the five that robokit
is built from: seeds 000, Featherstone's slides on the CRBA and branch-induced sparsity; 001, S. Caron's
page on the RNEA; 002, Featherstone's slides on the ABA; 003, the CusToM slides of C. Pontonnier and
P. Puchaud on inverse dynamics, connectivity and mobile bases; 004 ("notes"), dynamics notes with the
centroidal momentum matrix.

Each takes the tree and its arguments by joint (``tree.split_q``, ``tree.split_v``); n bodies, d the
tree's depth. None knows of arrays, lanes or caches: robokit.dynamics runs them.
"""
