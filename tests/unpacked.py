"""What assets/packed.js does, in Python."""

from __future__ import annotations

import json
import zlib
from typing import Any

import numpy as np


def unpacked(raw: bytes) -> dict[str, Any]:
    """JSON data with its arrays."""
    plain = zlib.decompress(raw)
    length = int.from_bytes(plain[:4], "little")
    data: dict[str, Any] = json.loads(plain[4 : 4 + length])
    for about in data.pop("arrays"):
        data[about["name"]] = np.frombuffer(plain, about["dtype"], about["length"], 4 + length + about["at"])
        assert (4 + length + about["at"]) % 8 == 0
    return data
