"""Pages: what an agent keeps in graph state (not Jupyter notebooks)."""
