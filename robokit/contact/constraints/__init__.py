"""Forces as constraints: adding, collecting; contacts, spin, damping, dry_friction, limits, motors, loops."""
