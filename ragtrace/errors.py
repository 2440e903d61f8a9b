"""Every exception that ragtrace raises on purpose.

::

    RagtraceError
    ├── ConfigError            a setting, flag or argument a person gave is wrong
    ├── InputError             a file a person gave has a broken line
    ├── MissingExtra           an optional package is not installed
    ├── QueueError             a queue cannot take or give a unit
    ├── StoreError             a store cannot be opened
    └── JudgeError             a judge gave no usable verdict; carries a reason of the closed list
        ├── JudgeUnsupported   this judge cannot do this task at all (a score of state ``na``)
        ├── JudgeRefused       the model declined
        ├── JudgeFiltered      a content filter stopped the reply
        ├── JudgeTruncated     the reply hit the output limit
        ├── JudgeContextsTruncated  the judge cannot hold all contexts (a score of state ``na``)
        ├── JudgeInvalidOutput the reply was not of the asked form, also after one repair
        ├── JudgeIncomplete    verdicts are missing, doubled or unknown, also after one repair
        ├── JudgeTimeout       no reply in time
        ├── JudgeRateLimited   the server said 429 for longer than we wait
        ├── JudgeOverBudget    today's budget has nothing left for the call
        └── JudgeUnavailable   the server cannot be reached or is broken
            └── JudgePromptTooLong  the prompt is longer than the model can read

None of them is ever raised into the user's application from a capture call: see ``ragtrace.capture.guard``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ragtrace.usage import JudgeUsage


class RagtraceError(Exception):
    """Base of every error that ragtrace raises on purpose."""


class ConfigError(RagtraceError, ValueError):
    """A setting, flag or argument is wrong; the message is one line that says what, where and what to do."""


class InputError(RagtraceError, ValueError):
    """A file that a person gave is broken; the message names file, line and reason."""


class MissingExtra(RagtraceError, ModuleNotFoundError):
    """An optional package is missing; the message names the extra that brings it."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f'{package} is not installed: pip install ".[{extra}]" in your clone;'
            f' of a release "ragtrace-otel[{extra}]"'
        )


class QueueError(RagtraceError):
    """A queue cannot take or give a unit."""


class StoreError(RagtraceError):
    """A store cannot be opened, or was written by a newer ragtrace."""


class JudgeError(RagtraceError):
    """A judge gave no usable verdict.

    Attributes:
        reason: of the closed list in `ragtrace.model.score`.
        status: HTTP status of the server's answer; None without one.
        retry_after_s: when to ask again, in seconds; None where nobody said.
        usage: calls and tokens until then; None where nobody counted.
    """

    reason: ClassVar[str] = "judge_error"
    status: int | None = None
    retry_after_s: float | None = None
    usage: JudgeUsage | None = None


class JudgeUnsupported(JudgeError):
    """This judge cannot do this task: the metric is ``na``, not an error."""

    reason = "unsupported_by_judge"


class JudgeRefused(JudgeError):
    """The model declined to judge, or its server does not take this input."""

    reason = "judge_refused"


class JudgeFiltered(JudgeError):
    """A content filter stopped the reply."""

    reason = "judge_filtered"


class JudgeTruncated(JudgeError):
    """The reply hit the output limit."""

    reason = "judge_truncated"


class JudgeContextsTruncated(JudgeError):
    """The judge cannot hold all contexts of the record: the metric is ``na``, not an error."""

    reason = "contexts_truncated"


class JudgeInvalidOutput(JudgeError):
    """The reply was not of the asked form, also after the one repair."""

    reason = "judge_invalid_output"


class JudgeIncomplete(JudgeError):
    """Verdicts are missing, doubled or unknown, also after the one repair."""

    reason = "judge_incomplete"


class JudgeTimeout(JudgeError):
    """No reply in time."""

    reason = "judge_timeout"


class JudgeRateLimited(JudgeError):
    """The server answered 429 for longer than the client waits."""

    reason = "judge_unavailable"


class JudgeOverBudget(JudgeError):
    """The budget of the day has nothing left for the call, which was not made."""

    reason = "budget_exceeded"


class JudgeUnavailable(JudgeError):
    """The server cannot be reached, or answers with an error of its own."""

    reason = "judge_unavailable"


class JudgePromptTooLong(JudgeUnavailable):
    """The server refuses a prompt that is longer than its model can read."""


def nearest(name: str, valid: Iterable[str]) -> str:
    """Return the hint ``; did you mean 'x'?`` for a misspelt name, or the list of valid names.

    Args:
        name: what the person wrote.
        valid: the names that exist.

    Returns:
        A clause to append to an error line; never empty unless `valid` is.

    Example:
        >>> nearest("fathfulness", ["faithfulness", "mrr"])
        "; did you mean 'faithfulness'?"
        >>> nearest("zzz", ["faithfulness", "mrr"])
        '; valid: faithfulness, mrr'
    """
    import difflib  # noqa: PLC0415 - for errors alone

    names = sorted(valid)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; valid: {', '.join(names)}" if names else ""
