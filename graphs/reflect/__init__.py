"""Reflection: a graph that asks questions about new facts, draws insights that cite them, and judges contradictions.

Read `graph` first, then `trigger`: when a machine runs it. It reads a campaign's facts and exchanges, and knows no
application.
"""
