"""An agent made of notebooks: declare what is tracked, how it is updated and where it is used; `build_agent` runs it.

Read `graph` first; `spec` says what an agent is made of, `nodes` what its nodes do, `team` how several share notebooks.
"""
