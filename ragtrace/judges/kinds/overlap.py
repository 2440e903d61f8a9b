"""The offline judge and embedder, which compare words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.errors import ConfigError

if TYPE_CHECKING:
    from ragtrace.judges.kinds import JudgeParameters
    from ragtrace.judges.offline.embedder import OverlapEmbedder
    from ragtrace.judges.offline.judge import OverlapJudge

IS_OFFLINE = True


def judge(model: str, options: JudgeParameters) -> OverlapJudge:
    """Return the judge. Raises ConfigError with a model or another form of judging."""
    _refuse_model("judge", model)
    options.refuse_forms("overlap")
    from ragtrace.judges.offline.judge import OverlapJudge  # noqa: PLC0415 -- only the chosen one is loaded

    return OverlapJudge()


def embedder(model: str, options: JudgeParameters) -> OverlapEmbedder:  # noqa: ARG001 -- it has no settings
    """Return the embedder; raises ConfigError with a model."""
    _refuse_model("embedder", model)
    from ragtrace.judges.offline.embedder import OverlapEmbedder  # noqa: PLC0415 -- the same

    return OverlapEmbedder()


def _refuse_model(kind: str, model: str) -> None:
    if model:
        raise ConfigError(f"{kind} 'overlap' has no models, got {model!r}: write 'overlap'")
