"""The companion: a personal assistant with a memory of its own that it edits.

Read `graph` first. Others may use `graph.build_graph`, `context.CompanionContext`, `ltm.ltm_of`, and the edits by a
person in `core_memory`. Its nodes are in `nodes`, and `use_tools` beside the tools in `tools`.
"""
