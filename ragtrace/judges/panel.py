"""A panel of judges whose numbers are combined."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from ragtrace.errors import ConfigError
from ragtrace.judges.base import Judge, Reseeded
from ragtrace.judges.openai.negotiate import SEED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ragtrace.judges.base import Task
    from ragtrace.modes import Consensus

MAX_REPEATS = 20


class ConsensusPanel(Judge):
    """Judges that `ragtrace.metrics.evaluate` asks one by one, each `repeats` times, and combines.

    The i-th repeat sends the seed 42 + i, so that it is another draw also at temperature 0; a judge without a seed
    gets the same request again. The panel itself does no task: asked for one it raises JudgeUnsupported.
    Coroutine-safe, as its members are.

    Args:
        members: the judges, at least one, each name once.
        repeats: how often each is asked, 1 to 20; 3 are advised.
        consensus: ``mean`` or ``median`` over the members that have a value.

    Raises:
        ConfigError: no member, a name twice, or a wrong number of repeats or consensus.

    Example:
        >>> from ragtrace.judges.llm.judge import LLMJudge
        >>> from ragtrace.judges.llm.scripted import ScriptedChat
        >>> panel = ConsensusPanel([LLMJudge(ScriptedChat(name=name)) for name in "ab"], repeats=3)
        >>> panel.name, [len(seat) for seat in panel.seats()]
        ('panel:openai:a,openai:b', [3, 3])
    """

    def __init__(self, members: Sequence[Judge], *, repeats: int = 1, consensus: Consensus = "mean") -> None:
        names = [member.name for member in members]
        if not members:
            raise ConfigError("a panel needs at least one judge")
        if len(set(names)) < len(names):
            raise ConfigError(f"a panel holds {max(names, key=names.count)} twice: name it once, with repeats")
        if not 1 <= repeats <= MAX_REPEATS:
            raise ConfigError(f"repeats of a panel are 1 to {MAX_REPEATS}, got {repeats}")
        if consensus not in {"mean", "median"}:
            raise ConfigError(f"the consensus of a panel is mean or median, got {consensus!r}")
        self.name = f"panel:{','.join(names)}"
        self.members = tuple(members)
        self.repeats = repeats
        self.consensus = consensus
        self.thresholds = _shared_thresholds(self.members)
        self._seats = tuple(tuple(_seeded(member, repeat) for repeat in range(repeats)) for member in self.members)

    def seats(self) -> Sequence[Sequence[Judge]]:
        """Return for each member one judge a repeat."""
        return self._seats

    def version(self, task: Task) -> str:
        """Return 8 hex digits over members, repeats and consensus rule."""
        known = [(member.name, member.version(task) if task in member.tasks else "") for member in self.members]
        return hashlib.sha256(repr((known, self.repeats, self.consensus)).encode()).hexdigest()[:8]

    async def aclose(self) -> None:
        """Release the connections of every member."""
        for member in self.members:
            await member.aclose()


def _seeded(member: Judge, repeat: int) -> Judge:
    return member.with_seed(SEED + repeat) if repeat and isinstance(member, Reseeded) else member


def _shared_thresholds(members: Sequence[Judge]) -> Mapping[str, float]:
    """Return the thresholds that all members share. Elsewhere the metric's own hold."""
    first, *others = members
    return {
        name: value
        for name, value in first.thresholds.items()
        if all(other.thresholds.get(name) == value for other in others)
    }
