"""Judges that read an answer against its contexts.

Owns: tasks, verdicts and their checks. Imports: prompts, model, errors. Made by `ragtrace.judges.registry`.
"""

from typing import TYPE_CHECKING

from ragtrace.lazy_names import lazy_names

if TYPE_CHECKING:
    from ragtrace.judges.base import Audit, CitationVerdict, Claim, Judge, JudgePanel, PairSignals, Reseeded
    from ragtrace.judges.cache.grade_cache import CachedGrade, GradeLru, grade_key, text_key, universe_key
    from ragtrace.judges.cache.grade_file import GradeFile
    from ragtrace.judges.cache.lru import Lru
    from ragtrace.judges.kinds import JudgeParameters
    from ragtrace.judges.limiter import ALLOWANCE_TOKENS, USAGE_INVALID, AttemptResult, Fate, JudgeRequest, Permit
    from ragtrace.judges.llm.chat import ChatModel, ChatReply
    from ragtrace.judges.llm.judge import LLMJudge
    from ragtrace.judges.llm.nuggets import AssignedNugget, AssignedNuggets, NuggetSet, nugget_key, nuggets_of
    from ragtrace.judges.llm.numbering import grading_batches
    from ragtrace.judges.llm.scripted import ScriptedChat
    from ragtrace.judges.nli.onnx import OnnxPairScorer
    from ragtrace.judges.offline.embedder import OverlapEmbedder
    from ragtrace.judges.offline.judge import OverlapJudge
    from ragtrace.judges.offline.static_vectors import StaticEmbedder
    from ragtrace.judges.openai.client import OpenAIChat, OpenAIEmbedder
    from ragtrace.judges.openai.transport import RetryPolicy
    from ragtrace.judges.panel import ConsensusPanel
    from ragtrace.judges.registry import make_embedder, make_grade_cache, make_judge, make_judges, make_pairs
    from ragtrace.judges.scales import from_umbrela, to_umbrela
else:
    __getattr__ = lazy_names(
        __name__,
        {
            "base": "Audit CitationVerdict Claim Judge JudgePanel PairSignals Reseeded",
            "cache.grade_cache": "CachedGrade GradeLru grade_key text_key universe_key",
            "cache.grade_file": "GradeFile",
            "cache.lru": "Lru",
            "kinds": "JudgeParameters",
            "limiter": "ALLOWANCE_TOKENS AttemptResult Fate JudgeRequest Permit USAGE_INVALID",
            "llm.chat": "ChatModel ChatReply",
            "llm.judge": "LLMJudge",
            "llm.nuggets": "AssignedNugget AssignedNuggets NuggetSet nugget_key nuggets_of",
            "llm.numbering": "grading_batches",
            "llm.scripted": "ScriptedChat",
            "nli.onnx": "OnnxPairScorer",
            "offline.embedder": "OverlapEmbedder",
            "offline.judge": "OverlapJudge",
            "offline.static_vectors": "StaticEmbedder",
            "openai.client": "OpenAIChat OpenAIEmbedder",
            "openai.transport": "RetryPolicy",
            "panel": "ConsensusPanel",
            "registry": "make_embedder make_grade_cache make_judge make_judges make_pairs",
            "scales": "from_umbrela to_umbrela",
        },
    )

__all__ = ["Audit", "CitationVerdict", "Claim", "Judge", "JudgePanel", "LLMJudge", "OverlapJudge"]
