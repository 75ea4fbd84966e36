"""The arrays of collision detection: what each holds, its shape and who writes it.

The shapes of everything that can touch are data. Shape k is a core, a convex set, and a radius around it:

    kind       core                                          radius
    SPHERE     a point                                       r
    CAPSULE    a segment                                     r
    BOX, HULL  the convex hull of corners, with faces        0
    CYLINDER   a cylinder about the shape's z axis           0
    CONE       a cone about it, its tip up                   0
    PLANE      the half-space below z = 0 of its placement   0
    FIELD      all that is below a height field (terrain.py) 0
    ELLIPSOID  an ellipsoid                                  0

Body 0 is the world: the ground, solids and height fields are its shapes. A pair (a, b) of shapes has
body(a) < body(b), so that the normal of a contact, from a to b, points away from the world.
"""

from __future__ import annotations

from robokit.engine.loops.fields import real, whole

POINT, SEGMENT, POLYTOPE, CYLINDER, CONE, PLANE, FIELD, ELLIPSOID = range(8)
"""Kinds of cores; those up to POLYTOPE have corners."""

SMOOTH = ELLIPSOID  # kinds from here on have neither faces nor edges
POINTS, FACES = 128, 256  # corners and faces of the polytope that grows in an overlap (gjk.py), at most

ROW = 11
"""Numbers of a corner of it: points w = a - b, a, b, and the features of a and b, rows of
corners or numbers of round_shapes.py."""

SHAPES = (
    whole("shape_body", "n_shapes"),  # body of each shape, 0 for the world
    whole("shape_kind", "n_shapes"),  # of its core
    real("shape_placement", "n_shapes", 12),  # rotation by rows and origin: x_body = R x_shape + r; of those
    # with corners the identity: these are in body coordinates
    real("shape_radius", "n_shapes"),  # around the core [m]
    real("shape_size", "n_shapes", 3),  # cylinder, cone: radius, half its height, 0; ellipsoid: half axes;
    # height field: cell along x and y, largest height [m]
    real("shape_centre", "n_shapes", 3),  # of the bounding sphere, in body coordinates [m]
    real("shape_bound", "n_shapes"),  # its radius [m]; infinite for a plane
    whole("shape_corners", "n_shapes", 2),  # first of its corners, and how many
    whole("shape_faces", "n_shapes", 2),  # first of its faces, and how many
    real("corners", "n_corners", 3),  # of points, segments and polytopes, in body coordinates [m]
    whole("corner_links", "n_corners", 2),  # first of a corner's neighbours along edges, and how many
    whole("neighbours", "n_neighbours"),  # numbers of corners, counted from the first of the shape
    whole("shape_starts", "n_shapes"),  # first of its entries of `starts`; -1 of those with few corners
    whole("starts", "n_starts"),  # a corner for each part of a cube of directions, where climbing begins
    whole("corner_climbs", "n_corners", 2),  # first of a corner's entries of `climbs`, and how many
    whole("climbs", "n_climbs"),  # numbers of corners: one is higher unless this one is highest
    real("face_normal", "n_faces", 3),  # outward, in body coordinates
    whole("face_corners", "n_faces", 2),  # first of a face's entries of `polygon`, and how many
    whole("polygon", "n_polygon"),  # corners of the faces, likewise, counter-clockwise seen from outside
    real("surface_velocity", "n_shapes", 6),  # of a belt: spin and velocity at the world's origin
    # First of those beside it, fixed ones with faces that touch it; how many; how many of them are of its
    # material, which come first.
    whole("shape_beside", "n_shapes", 3),
    whole("beside", "n_beside"),  # shapes beside others, whose edges they may hide (flush.py)
    real("heights", "n_heights"),  # of the height field, row by row, rows along x [m]
    whole("field", 2),  # how many rows and columns it has
    real("cell", 10, 3, role="work"),  # the triangle of it that is looked at (terrain.py)
    real("inner_points", POINTS, ROW, role="work"),  # what grows in an overlap (gjk.py): corners,
    real("inner_faces", FACES, 4, role="work"),  # normals and distances of its faces,
    whole("inner_corners", FACES, 3, role="work"),  # their corners,
    whole("inner_gone", FACES, 3, role="work"),  # and those of faces that went
)
"""What all steps share. A point core has one corner."""

PAIRS = (
    # Of its body, to number pairs by (support.pair_number): its first pair, how many shapes, the first one
    whole("shape_pairs", "n_shapes", 3),
    whole("shape_runs", "n_shapes", 2),  # first of a shape's entries of `runs`, and how many
    whole("runs", "n_runs", 2),  # first of later shapes that it may touch, and the end of them; ascending
)
"""Which shapes may touch. A pair is told by its shapes, or by its number, which ascends by bodies, then by
shapes, and is the same whichever pairs may touch."""

CANDIDATES = (
    whole("candidate", "n_candidates", role="inout"),  # pairs that may touch within some steps, ascending
    whole("candidate_shapes", "n_candidates", 2, role="inout"),  # the shapes of each of them
    whole("candidates", 2, role="inout"),  # how many; 1 once they are found
    real("ball_then", "n_shapes", 4, role="inout"),  # centre of each ball then, and its margin [m]
    whole("sweep", "n_shapes", role="inout"),  # shapes by the lower ends of their balls along an axis
    # Of each candidate, likewise: no contact has a smaller gap [m], or 0
    real("least_gap", "n_candidates", role="inout", is_hint=True),
    whole("apart_along", "n_candidates", role="inout"),  # number of the direction along which that was found
    whole("apart_corners", "n_candidates", 2, role="inout"),  # 1 + the rows of corners of a and b there
    real("centre_before", "n_shapes", 3, role="inout"),  # of each ball in the last step [m]
    real("R_before", "n_bodies", 9, role="inout"),  # rotation of each body then
)
"""What tells pairs that cannot touch. No contact depends on it: all 0 finds the same."""

POSES = (
    real("R", "n_bodies", 9),  # rotation of each body, by rows: x_world = R x_body + p
    real("p", "n_bodies", 3),  # its origin, from its seat [m]
    real("V", "n_bodies", 6),  # velocity, angular first, about the seat, in world axes
    real("seat", "n_bodies", 3),  # a place near it, from the origin of the step (`origin`) [m]
    real("origin", 3),  # of the step, in the world [m]
)
"""Where the bodies are."""

MEMORY = (
    whole("near_pair", "n_near", role="inout"),  # pairs that might touch in the last step, ascending; -1
    real("near_direction", "n_near", 3, role="inout"),  # their last normal, in axes of a: GJK begins there
    whole("near_corners", "n_near", 6, role="inout"),  # features of a and b in turn, of the last simplex
)
"""What detection hands to the next step. The first n entries count, the others are -1."""

CONTACTS = (
    whole("contact_bodies", "n_contacts", 2, role="out"),  # a (0: the world) and b
    whole("contact_shapes", "n_contacts", 2, role="out"),  # a and b
    whole("contact_pair", "n_contacts", role="out"),  # the number of this pair
    whole("contact_feature", "n_contacts", role="out"),  # of the pair: the same as long as the contact lasts
    real(
        "contact_place", "n_contacts", 3, role="out"
    ),  # half-way between the surfaces, on that of b where a is the
    # world, from the origin [m]
    real("contact_frame", "n_contacts", 9, role="out"),  # rows t1, t2, n; n points from a to b
    real("contact_gap", "n_contacts", role="out"),  # negative where they overlap [m]
    # of contacts, of near pairs, of all three that there was no place for, of candidates
    whole("counts", 4, role="out"),
)
"""What detection finds. Contacts of a pair, and of two bodies, are neighbours."""
