"""Tell the processes of a service apart by ``service.instance.id``, which keeps their series apart."""

from __future__ import annotations

import uuid

from opentelemetry.sdk.resources import SERVICE_INSTANCE_ID, Resource

from ragtrace.telemetry.setup.exporters import say_once
from ragtrace.telemetry.setup.zeros import readers_of

_NONE_OF_ITS_OWN = (
    "ragtrace: the application's MeterProvider has no service.instance.id, so the series of two such processes"
    " overwrite each other; give each process another one, with Resource.create({'service.instance.id':"
    " str(uuid.uuid4())}) or in OTEL_RESOURCE_ATTRIBUTES"
)
_OF_THE_PARENT = (
    "ragtrace: this forked process uses its parent's MeterProvider and service.instance.id, so the series of both"
    " overwrite each other; make the MeterProvider in each process, for example in gunicorn's post_fork"
)


def own_resource(*, is_forked: bool = False) -> Resource:
    """Return the resource of our own providers, with a ``service.instance.id``.

    Newer SDKs draw a random one and older ones draw none; OTEL_RESOURCE_ATTRIBUTES goes before both. A forked
    child always has a random one, since it inherits the variable.

    Args:
        is_forked: whether this process is a forked child of one that has the same settings.

    Example:
        >>> one, other = (own_resource(is_forked=True).attributes for _ in range(2))
        >>> one["service.instance.id"] == other["service.instance.id"]
        False
    """
    found = Resource.create()
    if found.attributes.get(SERVICE_INSTANCE_ID) and not is_forked:
        return found
    return found.merge(Resource({SERVICE_INSTANCE_ID: str(uuid.uuid4())}))


def instance_of(meter_provider: object) -> object:
    """Return the ``service.instance.id`` of an SDK's meter provider, None without one."""
    resource = _resource_of(meter_provider)
    return (resource.attributes.get(SERVICE_INSTANCE_ID) or None) if resource is not None else None


def warn_of_shared_series(meter_provider: object, parents: object = None) -> None:
    """Log one line where series that an application's provider pushes are overwritten by another process.

    Scraped series are told apart by their target, and a provider that is not the SDK's is not looked into.

    Args:
        meter_provider: the application's.
        parents: the ``service.instance.id`` that the same provider had in the parent of a forked child.
    """
    if _resource_of(meter_provider) is None or not _pushes(meter_provider):
        return
    instance = instance_of(meter_provider)
    if instance is None:
        say_once(_NONE_OF_ITS_OWN)
    elif instance == parents:
        say_once(_OF_THE_PARENT)


def _resource_of(meter_provider: object) -> Resource | None:
    """Return its resource, which the SDK shows of tracer providers alone."""
    found = getattr(getattr(meter_provider, "_sdk_config", None), "resource", None)
    return found if isinstance(found, Resource) else None


def _pushes(meter_provider: object) -> bool:
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader  # noqa: PLC0415 - when it is there

    return any(isinstance(reader, PeriodicExportingMetricReader) for reader in readers_of(meter_provider))
