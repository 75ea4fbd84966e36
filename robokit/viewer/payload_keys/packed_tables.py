"""Long tables of numbers are strings, made by :mod:`robokit.viewer.data.packing`."""

Packed = str
"""Base64 of little-endian float32."""

PackedBits = str
"""Base64 of single bits."""

Deflated = str
"""Base64 of deflated bytes (RFC 1950): little-endian uint16 or float32, as the key's description says."""
