"""SHA-256 from CPython's own module: ``hashlib`` loads OpenSSL."""

from __future__ import annotations

try:
    from _sha256 import sha256 as _new  # type: ignore[import-not-found,unused-ignore]  # 3.11
except ImportError:
    from _sha2 import sha256 as _new  # type: ignore[import-not-found,no-redef,unused-ignore]


def sha256(data: bytes) -> str:
    """Return the SHA-256 of *data*, in hexadecimal."""
    return str(_new(data).hexdigest())
