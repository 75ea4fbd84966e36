"""Long tables of numbers are strings, made by :mod:`robokit.viewer.data.packing`."""

Packed = str
"""Base64 of little-endian float32."""

PackedBits = str
"""Base64 of single bits."""
