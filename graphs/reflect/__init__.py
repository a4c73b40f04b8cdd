"""Reflection: questions about what was noted since the last one, insights that cite, contradictions judged."""
