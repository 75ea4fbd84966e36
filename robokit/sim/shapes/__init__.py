"""What of a robot touches the ground: contact points that lie, or move, on the surfaces of its links.

contact_points   contact points from collision shapes
contact_shapes   points that lie or move on a shape: corners, balls, the lowest of several corners, rims
contact_patches  which corners of a hull share a contact point
body_surface     what of a body's shapes can touch a plane, within a stated error
touching_size    how large that is, for the softness of the ground
"""
