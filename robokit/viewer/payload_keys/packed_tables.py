"""Long tables of numbers are strings, made by :mod:`robokit.viewer.data.packing`."""

Packed = str
"""Base64 of little-endian float32."""

PackedBits = str
"""Base64 of single bits."""

Deflated = str
"""Base64 of deflated bytes (RFC 1950): uint8, or little-endian float64, as the key's description says."""

Whole = str
"""Base64 of deflated whole numbers, positive or negative (``deflated_whole``)."""
