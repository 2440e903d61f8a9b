"""Our own judges pass the suite for judges."""

from __future__ import annotations

from ragtrace.judges import LLMJudge, OverlapJudge, ScriptedChat
from ragtrace.testing.judge_conformance import JudgeConformance


class TestOverlapJudge(JudgeConformance):
    def judge(self):
        return OverlapJudge()


class TestJudgeWhoseServerIsGone(JudgeConformance):
    def judge(self):
        return LLMJudge(ScriptedChat())


class TestJudgeWhoseServerTalksNonsense(JudgeConformance):
    def judge(self):
        return LLMJudge(ScriptedChat(always={"claims": 3, "grades": [{"id": 1, "grade": 9}]}))
