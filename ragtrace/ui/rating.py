"""The form with which a person rates one run, and the answer to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlencode

from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse
from starlette.routing import Route

from ragtrace.pages.formats import words
from ragtrace.settings import Settings
from ragtrace.stores.base import FEEDBACK
from ragtrace.ui.security import read_form
from ragtrace.ui.site import Site, site_of
from ragtrace.views.types import NewRating

if TYPE_CHECKING:
    from starlette.datastructures import FormData
    from starlette.requests import Request
    from starlette.responses import Response

    from ragtrace.views.types import RatingRow, RunView, ScoreRow

RATER_COOKIE = "ragtrace-rater"
_MOST_CHARS = {"comment": 2_000, "rater": 100}
_YEAR_S = 31_536_000
_NOT_KEPT = "Ratings of this source cannot be kept. Open a store, or a scored file of this machine."
_READ_ONLY = "These pages are read-only. Start `ragtrace ui` without --read-only to rate runs."


@dataclass(frozen=True, slots=True, kw_only=True)
class RatingForm:
    """A person's rating of one run.

    Attributes:
        action: the address that takes it.
        metric: the rated metric; ``feedback`` is the answer as a whole.
        choices: what can be rated instead, with the address of the page for it.
        judged: the score that is agreed with; None for the answer as a whole.
        agree: the rating that agrees with the judge: 1 where the score meets its threshold, else 0. None for the
            answer as a whole, and where the score meets its threshold and `against` forbids to call it good.
        against: the worst claim against the answer, else a verdict that is not good; None where there is neither.
        own: this person's latest rating of the same.
        rater: name that was given last.
        back: the page after the rating.
        has_comments: whether a comment is kept.
        refusal: why nothing can be rated; None where it can.
    """

    action: str
    metric: str
    choices: tuple[tuple[str, str], ...]
    judged: ScoreRow | None
    agree: int | None
    against: str | None
    own: RatingRow | None
    rater: str
    back: str
    has_comments: bool
    refusal: str | None

    @property
    def is_down(self) -> bool:
        """Whether a lower score is better."""
        return self.judged is not None and self.judged.direction == "down"

    @staticmethod
    def title(metric: str) -> str:
        """Return what is rated, in words."""
        return "the whole answer" if metric == FEEDBACK else metric


def routes() -> list[Route]:
    """Return the routes of these pages."""
    return [Route("/rate/{run:path}", rate, methods=["POST"])]


def rating_form(
    request: Request, run: RunView, *, metric: str | None = None, back: str | None = None
) -> RatingForm:
    """Return the form of a run.

    Args:
        request: of the page that shows the form; ``rate`` in its query names what is rated.
        run: the run.
        metric: what is rated first where the query names nothing; a metric without a pass and a fail is not rated.
        back: the page after the rating, by default the same one.
    """
    site = site_of(request)
    scores = {score.key.metric: score for score in run.scores if is_rated(score)}
    names = [*scores, FEEDBACK]
    chosen = next(name for name in (request.query_params.get("rate"), metric, names[0]) if name in names)
    rater = unquote(request.cookies.get(RATER_COOKIE, ""))
    judged = scores.get(chosen)
    against = run.claim or (None if run.word in {"good", None} else words(run.verdict))
    own = [it for it in run.ratings if it.metric == chosen and it.rater == rater]
    return RatingForm(
        action=f"/rate/{quote(run.id, safe='', errors='replace')}",
        metric=chosen,
        choices=tuple((name, _with(request, rate=name)) for name in names),
        judged=judged,
        agree=None if judged is None or (judged.passed and against) else int(judged.passed or False),
        against=against,
        own=own[-1] if own else None,
        rater=rater,
        back=back or _with(request, rate=chosen),
        has_comments=not site.views.is_store or Settings.resolve({}).content == "full",
        refusal=refusal_of(site),
    )


def is_rated(score: ScoreRow) -> bool:
    """Tell whether a person can agree with a score: a judge gave it without labels, and it passes or fails."""
    is_judged = score.key.judge is not None and score.key.universe is None and score.key.k is None
    return is_judged and score.value is not None and score.passed is not None


def refusal_of(site: Site) -> str | None:
    """Return why no rating is taken; None where it is."""
    return _READ_ONLY if site.links.is_read_only else None if site.views.can_label else _NOT_KEPT


async def rate(request: Request) -> Response:
    """Keep a rating, and go on to the page that its form names."""
    site = site_of(request)
    refusal = refusal_of(site)
    if refusal is not None:
        raise HTTPException(403, refusal)
    form = await read_form(request, site.token)
    rater = _text(form, "rater")
    rating = NewRating(
        run_id=request.path_params["run"],
        metric=_text(form, "metric") or FEEDBACK,
        value=_value(form),
        rater=rater,
        comment=_text(form, "comment") or None,
    )
    site.views.rate([rating])
    answer = RedirectResponse(_own_page(_text(form, "back")), 303)
    answer.set_cookie(RATER_COOKIE, quote(rater), max_age=_YEAR_S, httponly=True, samesite="strict")
    return answer


def _value(form: FormData) -> float:
    given = _text(form, "value") or _text(form, "correction")
    try:
        return float(given)
    except ValueError:
        raise HTTPException(400, "A rating is a number from 0 (bad) to 1 (good).") from None


def _text(form: FormData, name: str) -> str:
    found = form.get(name, "")
    return found.strip()[: _MOST_CHARS.get(name, 4_000)] if isinstance(found, str) else ""


def _with(request: Request, **query: str) -> str:
    given = urlencode({**request.query_params, **query}, errors="replace")
    return f"{quote(request.url.path, errors='replace')}?{given}"


def _own_page(address: str) -> str:
    """Return an address of this server; any other becomes the overview.

    Example:
        >>> [_own_page(address) for address in ("/queue?metric=mrr", "//evil.example", "https://evil.example", "")]
        ['/queue?metric=mrr', '/', '/', '/']
    """
    is_own = address.startswith("/") and not address.startswith(("//", "/\\")) and address.isprintable()
    return address if is_own else "/"
