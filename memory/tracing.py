"""OpenTelemetry spans, where a program has set it up: names and numbers, never what people wrote.

`opentelemetry` is not imported: a program that wants spans has imported it. Without it, or without a provider, a span
costs next to nothing. An error's class is noted and not its message, which may quote somebody.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SCOPE = "questbook"
"""Name of the instrumentation, as a collector shows it."""


@contextmanager
def traced(name: str, **attributes: str | int | bool) -> Iterator[dict[str, str | int | bool]]:
    """Do some work in a span; what is put into the yielded dict before its end becomes attributes, too.

    Of a name "sql.read" the span is "questbook.sql.read". In attributes, "__" stands for a dot: `db__system__name`.
    """
    more: dict[str, str | int | bool] = {}
    trace: Any = sys.modules.get("opentelemetry.trace")
    if trace is None or isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        yield more
        return
    begun = {key.replace("__", "."): value for key, value in attributes.items()}
    options = {"record_exception": False, "set_status_on_exception": False}
    with trace.get_tracer(SCOPE).start_as_current_span(f"{SCOPE}.{name}", attributes=begun, **options) as current:
        try:
            yield more
        except BaseException as error:
            current.set_attribute("error.type", type(error).__name__)
            current.set_status(trace.StatusCode.ERROR)
            raise
        finally:
            current.set_attributes(more)
