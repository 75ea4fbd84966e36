"""Robot to URDF text.

describe  a robot back to its description
xml       a description to text
dump      both
"""
