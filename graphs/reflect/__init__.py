"""Reflection: a graph that asks questions about new facts, draws insights that cite them, and judges contradictions.

Read `graph` first. A machine that reflects inherits its settings from `questbook.graphs.settings`, and compiles
`graph.build_graph` with its own store; `graph.graph` is the same for LangGraph Server. It reads a campaign's facts and
exchanges (`state.namespaces_of`), and knows no application.
"""
