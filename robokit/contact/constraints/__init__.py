"""Forces as constraints.

contacts spin damping dry_friction limits motors loops: the forces. adding collecting closing: shared.
"""
