"""Base of the integrations' instrumentors for OpenTelemetry's auto-instrumentation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

_LOADER_OPTIONS = frozenset({"skip_dep_check", "raise_exception_on_conflict"})  # of opentelemetry-instrument
_PROVIDERS = ("tracer_provider", "meter_provider", "logger_provider")


class Instrumentor(ABC):
    """Instrumentor for OpenTelemetry's auto-instrumentation.

    ``opentelemetry-instrument python app.py`` finds a subclass by its entry point. It has the methods of
    OpenTelemetry's ``BaseInstrumentor`` and needs no package of it. Settings come from the environment.

    Attributes:
        dependencies: the framework's package and the versions that are supported.

    Example:
        >>> class Mine(Instrumentor):
        ...     dependencies = ("mine >= 1.0",)
        ...     is_instrumented_by_opentelemetry = False
        ...
        ...     def _configure(self, **providers):
        ...         print("configure", providers)
        ...
        ...     def _instrument(self, **options):
        ...         print("instrument", options)
        ...
        ...     def _uninstrument(self):
        ...         print("uninstrument")
        >>> Mine().instrument(workflow="support", skip_dep_check=True)
        instrument {'workflow': 'support'}
    """

    dependencies: ClassVar[tuple[str, ...]]

    @property
    @abstractmethod
    def is_instrumented_by_opentelemetry(self) -> bool:
        """True while calls are captured."""

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
            self._configure(**providers)
        self._instrument(**own)

    def uninstrument(self, **_options: object) -> None:
        """Stop capturing; runs that are open go on to their end."""
        self._uninstrument()

    @abstractmethod
    def _configure(self, **providers: Any) -> None: ...

    @abstractmethod
    def _instrument(self, **options: Any) -> None: ...

    @abstractmethod
    def _uninstrument(self) -> None: ...
