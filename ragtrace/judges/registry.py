"""Makes judges, embedders and pair scorers by name."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Literal, Protocol

from ragtrace.capture.off_loop import off_loop
from ragtrace.errors import ConfigError, MissingExtra, nearest
from ragtrace.judges import kinds as kinds_package
from ragtrace.judges.cache.grade_cache import GradeLru
from ragtrace.judges.kinds import JudgeParameters

if TYPE_CHECKING:
    from types import ModuleType

    from ragtrace.judges.base import Embedder, Judge, PairModel
    from ragtrace.judges.cache.grade_cache import GradeCache
    from ragtrace.modes import Consensus

_DEFAULTS = JudgeParameters()


def kinds(spec: str) -> frozenset[str]:
    """Return the names before the colons of a judge, panel or embedder.

    Example:
        >>> sorted(kinds("overlap, openai:a,openai:b"))
        ['openai', 'overlap']
    """
    return frozenset(name.partition(":")[0].strip() for name in spec.split(","))


def costs(spec: str) -> bool:
    """Return whether a judge, panel or embedder may cost something.

    All but the offline ones do.

    Example:
        >>> costs("overlap"), costs("local:/opt/openai/x"), costs("overlap,openai:m"), costs("mine:m1")
        (False, False, True, True)
    """
    return not all(_is_offline(name) for name in kinds(spec))


def make_judge(spec: str, parameters: JudgeParameters = _DEFAULTS) -> Judge:
    """Make a judge by name; no network is used.

    Args:
        spec: ``overlap``, ``openai:MODEL``, or the name of an entry point of the group ``ragtrace.judges``
            (optionally ``NAME:MODEL``), which is called as ``factory(model, base_url=, api_key=, timeout_s=)``.
        parameters: of the judge; an entry point's judge keeps limits of its own.

    Raises:
        ConfigError: unknown name, no model, neither key nor base URL, or a form of judging that only ``openai``
            has; the message says how to mend it.
        MissingExtra: the package openai is not installed.

    Example:
        >>> make_judge("openai:llama3.1", JudgeParameters(base_url="http://localhost:11434/v1")).name
        'openai:llama3.1'
        >>> make_judge("openai:m")
        Traceback (most recent call last):
        ...
        ragtrace.errors.ConfigError: openai:m: set OPENAI_API_KEY, or a base URL of a server without keys
    """
    name, _, model = spec.strip().partition(":")
    module = _modules().get(name)
    if module is not None and hasattr(module, "judge"):
        judge: Judge = off_loop(module.judge)(model, parameters)  # imports of ours alone
        return judge
    factory = _third_party(name)
    parameters.refuse_forms(name)
    return factory(
        model or None,
        base_url=parameters.base_url,
        api_key=parameters.api_key,
        timeout_s=parameters.timeout_s,
    )


def make_grade_cache(spec: str, *, frozen: int | None = None) -> GradeCache | Literal["off"]:
    """Make a cache of grades: ``memory``, ``off``, or a file's path.

    Raises:
        ConfigError: the file cannot be opened, or `frozen` without a file.

    Example:
        >>> make_grade_cache("off")
        'off'
    """
    if spec in {"memory", "off"}:
        if frozen is not None:
            raise ConfigError(
                f"label_freeze={frozen}: grade_cache={spec} has no labels to freeze; set it to a file"
            )
        return GradeLru() if spec == "memory" else "off"
    if not spec.strip():
        raise ConfigError("grade_cache is memory, off, or the path of a file")
    from ragtrace.judges.cache.grade_file import GradeFile  # noqa: PLC0415 -- sqlite3 is loaded for a file alone

    return GradeFile(spec, frozen=frozen)


def make_judges(
    spec: str,
    parameters: JudgeParameters = _DEFAULTS,
    *,
    repeats: int = 1,
    consensus: Consensus = "mean",
) -> Judge:
    """Make a judge or a panel by name; no network is used.

    Args:
        spec: names as for `make_judge`, separated by commas.
        parameters: the same for each judge.
        repeats: how often each is asked, 1 to 20.
        consensus: how several judges become one number.

    Raises:
        ConfigError: a name is missing or stands twice, repeats of a judge that always says the same, a median of
            one judge, or what `make_judge` refuses.
        MissingExtra: the package openai is not installed.

    Example:
        >>> local = JudgeParameters(base_url="http://localhost:11434/v1")
        >>> make_judges("openai:a,openai:b", local, repeats=3).name
        'panel:openai:a,openai:b'
        >>> make_judges("overlap", repeats=3)
        Traceback (most recent call last):
        ...
        ragtrace.errors.ConfigError: judge 'overlap' never changes its mind: repeats are for judges that ask a model
    """
    names = [name.strip() for name in spec.split(",")]
    if not all(names):
        raise ConfigError(f"judge {spec!r}: a name is missing; write them as openai:MODEL,openai:OTHER")
    for name in kinds(spec) if repeats > 1 else ():
        if _is_offline(name):
            raise ConfigError(f"judge {name!r} never changes its mind: repeats are for judges that ask a model")
    if consensus == "median" and len(names) == 1:
        raise ConfigError(
            f"consensus median is taken over several judges, and {spec!r} is one; repeats are averaged"
        )
    judges = [make_judge(name, parameters) for name in names]
    if len(judges) == 1 and repeats == 1:
        return judges[0]
    from ragtrace.judges.panel import ConsensusPanel  # noqa: PLC0415 -- a single judge needs no panel

    return ConsensusPanel(judges, repeats=repeats, consensus=consensus)


def make_embedder(spec: str, parameters: JudgeParameters = _DEFAULTS) -> Embedder:
    """Make an embedder by name; no network is used.

    ``overlap``, ``openai:MODEL``, or static word vectors: ``local:FOLDER``, and ``local`` for those of the
    installed package wordllama.

    Example:
        >>> local = JudgeParameters(base_url="http://localhost:11434/v1")
        >>> make_embedder("openai:nomic-embed-text", local).name
        'openai:nomic-embed-text'
    """
    name, _, model = spec.strip().partition(":")
    module = _modules().get(name)
    if module is None or not hasattr(module, "embedder"):
        raise ConfigError(f"unknown embedder {name!r}{nearest(name, _names('embedder'))}")
    embedder: Embedder = module.embedder(model, parameters)
    return embedder


def make_pairs(spec: str) -> PairModel:
    """Make a pair scorer by name, ``onnx:FOLDER``.

    The model is loaded at once, and nothing is fetched.

    Raises:
        ConfigError: another name, no folder, or a folder without a model that can be read.
        MissingExtra: onnxruntime or tokenizers is not installed.

    Example:
        >>> make_pairs("onnx")
        Traceback (most recent call last):
        ...
        ragtrace.errors.ConfigError: pairs 'onnx' needs a folder: write onnx:FOLDER, for example onnx:models/nli
    """
    name, _, folder = spec.strip().partition(":")
    if name != "onnx":
        raise ConfigError(f"unknown pair scorer {name!r}{nearest(name, ('onnx',))}")
    if not folder:
        raise ConfigError(f"pairs {spec!r} needs a folder: write onnx:FOLDER, for example onnx:models/nli")
    from ragtrace.judges.nli.onnx import OnnxPairScorer  # noqa: PLC0415 -- no other judge needs it

    return OnnxPairScorer(folder)


def _modules() -> dict[str, ModuleType]:
    """Return the files of `ragtrace.judges.kinds` by name."""
    found = pkgutil.iter_modules(kinds_package.__path__)
    return {module.name: import_module(f"{kinds_package.__name__}.{module.name}") for module in found}


def _names(part: Literal["judge", "embedder"]) -> set[str]:
    return {name for name, module in _modules().items() if hasattr(module, part)}


def _is_offline(name: str) -> bool:
    return getattr(_modules().get(name), "IS_OFFLINE", False)


def _hint(name: str, valid: set[str]) -> str:
    """Return the nearest valid name.

    Another word may be a model's name: the hint is then the form that takes a model.

    Example:
        >>> _hint("overlpa", {"openai", "overlap"}), _hint("gpt-4o", {"openai", "overlap"})
        ("; did you mean 'overlap'?", "; did you mean 'openai:gpt-4o'? Judges: openai:MODEL, overlap")
    """
    near = nearest(name, valid)
    if near.startswith("; did you mean") or not name:
        return near
    names = ", ".join(sorted({"openai:MODEL", *valid} - {"openai"}))
    return f"; did you mean 'openai:{name}'? Judges: {names}"


class _JudgeFactory(Protocol):
    def __call__(
        self, model: str | None, /, *, base_url: str | None, api_key: str | None, timeout_s: float
    ) -> Judge: ...


def _third_party(name: str) -> _JudgeFactory:
    """Return the factory of an installed judge."""
    # Entry points are read here alone: a scan takes 29 ms.
    found = {entry.name: entry for entry in entry_points(group="ragtrace.judges")}
    if name not in found:
        raise ConfigError(f"unknown judge {name!r}{_hint(name, {*_names('judge'), *found})}")
    try:
        factory: _JudgeFactory = found[name].load()
    except MissingExtra:
        raise
    except Exception as error:
        raise ConfigError(
            f"judge {name!r} ({found[name].value}) cannot be loaded: {type(error).__name__}: {error}"
        ) from error
    return factory
