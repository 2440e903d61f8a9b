"""Base of the integrations' instrumentors for OpenTelemetry's auto-instrumentation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Callable

_LOADER_OPTIONS = frozenset({"skip_dep_check", "raise_exception_on_conflict"})  # of opentelemetry-instrument
_PROVIDERS = ("tracer_provider", "meter_provider", "logger_provider")


class Instrumentor:
    """Instrumentor for OpenTelemetry's auto-instrumentation.

    ``opentelemetry-instrument python app.py`` finds a subclass by its entry point. It has the methods of
    OpenTelemetry's ``BaseInstrumentor`` and needs no package of it. Settings come from the environment.

    Attributes:
        dependencies: the framework's package and the versions that are supported.
        configure: ``ragtrace.configure``.
        capture: the integration's ``instrument``.
        release: the integration's ``uninstrument``.
        is_capturing: the integration's ``is_instrumented``.

    Example:
        >>> class Mine(Instrumentor):
        ...     dependencies = ("mine >= 1.0",)
        ...     capture = staticmethod(lambda **options: print("instrument", options))
        >>> Mine().instrument(workflow="support", skip_dep_check=True)
        instrument {'workflow': 'support'}
    """

    dependencies: ClassVar[tuple[str, ...]]
    configure: ClassVar[Callable[..., object]]
    capture: ClassVar[Callable[..., None]]
    release: ClassVar[Callable[[], None]]
    is_capturing: ClassVar[Callable[[], bool]]

    @property
    def is_instrumented_by_opentelemetry(self) -> bool:
        """True while calls are captured."""
        return type(self).is_capturing()

    def instrumentation_dependencies(self) -> tuple[str, ...]:
        """Return the framework's package and the versions that are supported."""
        return self.dependencies

    def instrument(self, **options: Any) -> None:
        """Capture every call of the framework in this process.

        Args:
            **options: arguments of the integration's ``instrument``. OpenTelemetry's ``tracer_provider``,
                ``meter_provider`` and ``logger_provider`` are passed to ``ragtrace.configure``; options of its
                loader are ignored.

        Raises:
            TypeError: an option is unknown.
        """
        own = {name: option for name, option in options.items() if name not in _LOADER_OPTIONS}
        providers = {name: own.pop(name) for name in _PROVIDERS if name in own}
        if providers:
            type(self).configure(**providers)
        type(self).capture(**own)

    def uninstrument(self, **_options: object) -> None:
        """Stop capturing; runs that are open go on to their end."""
        type(self).release()
