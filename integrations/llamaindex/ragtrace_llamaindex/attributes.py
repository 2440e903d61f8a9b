"""Reads attributes and arguments of LlamaIndex objects cheaply: a miss on a pydantic model costs 4 us."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inspect import BoundArguments

MAX_KNOWN = 1_024  # classes, which an application may make at run time


def first_of(owner: object, names: tuple[str, ...]) -> object:
    """Return the first of these attributes that is there and not None; None where there is none.

    Example:
        >>> class Retriever:
        ...     top_k = 3
        >>> first_of(Retriever(), ("similarity_top_k", "top_k"))
        3
    """
    own = getattr(owner, "__dict__", None) or {}
    kind: type = type(owner)
    on_class = _names_on(kind, names)
    for name in names:
        value = own.get(name)
        if value is None and name in on_class and name not in own:
            value = getattr(owner, name, None)
        if value is not None:
            return value
    return None


def settings_of(owner: object, names: tuple[str, ...]) -> dict[str, object]:
    """Return those of these attributes that an object or its class has.

    Example:
        >>> class Model:
        ...     temperature = 0.1
        >>> settings_of(Model(), ("temperature", "top_p"))
        {'temperature': 0.1}
    """
    own = getattr(owner, "__dict__", None) or {}
    kind: type = type(owner)
    on_class = {name: getattr(owner, name, None) for name in _names_on(kind, names)}
    return {**on_class, **{name: own[name] for name in names if name in own}}


@lru_cache(maxsize=MAX_KNOWN)
def _names_on(kind: type, names: tuple[str, ...]) -> frozenset[str]:
    private = getattr(kind, "__private_attributes__", None)
    known = private.keys() if isinstance(private, dict) else ()
    return frozenset(name for name in names if name in known or any(name in base.__dict__ for base in kind.__mro__))


def argument(bound: BoundArguments, *names: str) -> object:
    """Return the first positional argument of a call, else the first of these keyword arguments.

    Looks into ``*args`` and ``**kwargs``, since LlamaIndex wraps what it decorates.

    Example:
        >>> from inspect import signature
        >>> argument(signature(lambda *args, **kwargs: None).bind(prompt="Where?"), "prompt")
        'Where?'
        >>> argument(signature(lambda nodes, query=None: None).bind(["a"]))
        ['a']
    """
    for name, value in bound.arguments.items():
        if type(value) is tuple and name == "args":
            if value:
                return value[0]
        elif type(value) is dict and name not in names:
            return next((value[key] for key in names if key in value), None)
        else:
            return value
    return None
