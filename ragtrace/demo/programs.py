"""The programs of the local stack, as Debian packages them."""

from __future__ import annotations

import shutil
from dataclasses import dataclass

from ragtrace.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """Paths of the programs."""

    prometheus: str
    alertmanager: str


def find_programs(path: str | None = None) -> Programs:
    """Find Prometheus and Alertmanager.

    Debian calls the second one ``prometheus-alertmanager``, its authors ``alertmanager``: both are looked for.

    Args:
        path: folders as in ``PATH``; None = those of ``PATH``.

    Raises:
        ConfigError: one is missing; the line says which, and how to get it.

    Example:
        >>> find_programs("")
        Traceback (most recent call last):
        ragtrace.errors.ConfigError: --stack local needs prometheus and alertmanager, which are not on the PATH; \
on Debian and Ubuntu: apt-get install prometheus prometheus-alertmanager
    """
    prometheus = shutil.which("prometheus", path=path)
    names = ("prometheus-alertmanager", "alertmanager")
    alertmanager = next((found for name in names if (found := shutil.which(name, path=path))), None)
    if prometheus and alertmanager:
        return Programs(prometheus=prometheus, alertmanager=alertmanager)
    missing = [
        (program, package)
        for program, package, found in (
            ("prometheus", "prometheus", prometheus),
            ("alertmanager", "prometheus-alertmanager", alertmanager),
        )
        if not found
    ]
    programs, packages = zip(*missing, strict=True)
    raise ConfigError(
        f"--stack local needs {' and '.join(programs)}, which {'are' if len(missing) > 1 else 'is'} not on the"
        f" PATH; on Debian and Ubuntu: apt-get install {' '.join(packages)}"
    )
