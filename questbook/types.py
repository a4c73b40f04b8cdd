"""Types that every room shares."""

from __future__ import annotations

from typing import Any, TypeAlias

JSON: TypeAlias = dict[str, Any]
"""A JSON object: what pages, records and patches are in state and in stores."""
