"""Questbook: long-term memory for LangGraph agents, modelled as graph state.

What an app needs is importable from here: `__init__.pyi` lists the names, docs/reference.md describes them. A name is
loaded when it is first used, so that `import questbook` costs nothing.
"""

import ast
import pkgutil
from importlib import import_module

__version__ = "0.2.1"

_STUB = ast.parse(pkgutil.get_data(__name__, "__init__.pyi"))
_MODULES = {alias.name: node.module for node in _STUB.body if isinstance(node, ast.ImportFrom) for alias in node.names}
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'questbook' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(str(_MODULES[name])), name)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
