"""The companion: a personal assistant with a memory of its own that it edits.

Read `graph.py` first. Others may use `graph.build_graph`, `context.CompanionContext`, `ltm.ltm_of`, and in `edits` the
edits of core memory by a person. Its nodes are in `nodes`, and `use_tools` beside the tools in `tools`.
"""
