"""Reads the clauses of a sentence: what each says, of what, and whether it denies it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

from ragtrace.judges.offline.tables import table, words
from ragtrace.judges.offline.words import stem, stems, verb_forms

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Mapping

Modality = Literal["", "must", "may"]

_MOST_CLAUSES = 24  # of a sentence; what is behind them is one clause
_TOKEN = re.compile(  # of at most 8,000 characters: a sentence in one notation
    r"[^\W_]+(?:[.,:]\d+)*|[,;:()\u2013\u2014!?]"
)
_WORD = re.compile(r"[^\W_]+")
_NEGATION = re.compile(  # of at most 8,000 characters: a sentence in one notation
    r"\b(?:not(?! only\b| just\b| necessarily\b)|never|"
    r"(?<!-)no(?! (?:longer than|later than|sooner|matter|doubt)\b)"
    r"(?=\s)|none|neither|without|nobody|nothing|unable|hardly|lacks?|lacking|fails? to|failed to|free (?:of|from)|"
    r"nor|unless|instead of|rather than)\b",
    re.IGNORECASE,
)
_DENYING = frozenset({  # one of them is in each match of the above and of the next, and what forbids, or says few
    "not", "never", "no", "none", "neither", "without", "nobody", "nothing", "unable", "hardly", "lack", "lacks",
    "lacking", "fail", "fails", "failed", "free", "nor", "instead", "rather",
    "unless", "few", "rarely", "seldom", "scarcely", "forbid", "forbids", "forbade", "forbidden", "prohibit",
    "prohibits",
    "prohibited", "bans", "banned", "disallow", "disallows", "disallowed",
})  # fmt: skip
_OF_VERB = re.compile(r"\b(?:not|never)\b", re.IGNORECASE)
_FREE = re.compile(r"(?<=\w)-free\b")
_NON = re.compile(r"\bnon-(?=\w)", re.IGNORECASE)
_OR_MORE = re.compile(r"\s(?:more|less|fewer|so|over|above|under|below|[a-z]+er)\b")
_OR_NOT = re.compile(r" or not\b")
_CUT = re.compile(  # of at most 8,000 characters: a sentence in one notation
    r"\s(?:if|unless|when|until|since|as long as|provided|in case)\s", re.IGNORECASE
)
_DUTY = re.compile(  # of at most 8,000 characters: a sentence in one notation
    r"\b(?:must|(?:ha(?:ve|s|d)|ought) to|shall|should|need(?:s|ed)?|require\w*|requiring|necessary|mandatory|"
    r"compulsory|obligatory|obliged|optional|voluntary)\b",
    re.IGNORECASE,
)
_LEAVE = re.compile(  # of at most 8,000 characters: a sentence in one notation
    r"\b(?:may|can|could|might|able|allow\w*|permit\w*|possible|forb[ai]d\w*|prohibit\w*|banned|disallow\w*)\b",
    re.IGNORECASE,
)
_FORBIDS = re.compile(  # of at most 8,000 characters: a sentence in one notation
    r"\b(?:forb[ai]d(?:s|den)?|prohibit(?:s|ed)?|bans|banned|disallow(?:s|ed)?)\b", re.IGNORECASE
)
_LOWER = re.compile(  # of at most 8,000 characters: a sentence in one notation
    r"\b(?:at least|minimum(?: of)?|no (?:fewer|less|earlier|sooner|younger) than|"
    r"not (?:less|fewer|earlier|before|under|below)(?: than)?|"
    r"from|over|above|after|since|exceed(?:s|ed|ing)?|"
    r"(?:more|older|heavier|larger|longer|higher|greater|taller|later|further|bigger) than) ?$",
    re.IGNORECASE,
)
_UPPER = re.compile(  # of at most 8,000 characters: a sentence in one notation
    r"\b(?:at most|maximum(?: of)?|no (?:more|later|longer|older|higher|larger|heavier|further) than|"
    r"not (?:more than|over|above|later than|exceed(?:s|ed|ing)?|after)|"
    r"up to|under|below|until|till|by|before|within|"
    r"(?:less|fewer|younger|lighter|smaller|shorter|lower|earlier|sooner) than) ?$",
    re.IGNORECASE,
)
_MORE_BEHIND = re.compile(
    r"(?: [a-z]+)? (?:or|and) (?:more|over|above|older|later|longer|up|upwards|higher|heavier)\b", re.IGNORECASE
)
_LESS_BEHIND = re.compile(
    r"(?: [a-z]+)? (?:or|and) (?:less|fewer|under|below|younger|earlier|shorter|lower|lighter)\b", re.IGNORECASE
)
_RANGE_BEHIND = re.compile(r"(?: [a-z]+)?(?: ?[-\u2013] ?| (?:to|until|till|and|through) )\d", re.IGNORECASE)
_RANGE_BEFORE = re.compile(r"\d(?: [a-z]+)?(?: ?[-\u2013] ?| (?:to|until|till|and|through) )$", re.IGNORECASE)
_BOUNDED = re.compile(r"\d+(?:[.,:]\d+)*")
_MOST_BEFORE = 24  # characters before a number that tell whether it is a bound
_MOST_BOUNDS = 12  # numbers of a clause
_PREFIXES = (
    ("un", 3), ("non", 4), ("in", 5), ("im", 5), ("il", 5), ("ir", 5), ("dis", 5), ("anti", 4), ("counter", 4),
    ("de", 6), ("mis", 5),
)  # fmt: skip
_PARTICLES = {"on": "off", "off": "on", "up": "down", "down": "up", "in": "out", "out": "in"}
_STRONG = frozenset({";", ":", "but", "whereas", "although", "though", "because", "\u2014", "\u2013", "("})
_WEAK = frozenset({",", "and", "or", "nor", "&", ")", "!", "?", "while"})
_RELATIVE = frozenset({"who", "which", "that"})
_CONDITIONS = frozenset(
    {"if", "unless", "when", "whenever", "once", "until", "as", "after", "before", "since", "in", "for"}
)
_SOFT = frozenset(
    stems(
        "requires required require need needs needed necessary mandatory compulsory obligatory obliged always ever "
        "allowed allow permitted permit possible able welcome get gets simply please either otherwise "
        "forbid forbids forbidden prohibit prohibited banned disallowed"
    )
)


@dataclass(frozen=True)
class Clause:
    """The words of a clause.

    Attributes:
        text: as it stands in the sentence.
        terms: of its words, without adverbs of its polarity.
        subject: the terms of a subject that it has from another clause.
        is_negated: whether it denies what its terms say.
        is_open: whether a negation before it may hold for it: "do not soak it and rinse it".
        inherited: what a negation before it denies of it.
    """

    text: str
    terms: frozenset[str]
    subject: frozenset[str]
    is_negated: bool
    is_open: bool = False
    inherited: frozenset[str] = frozenset()

    @cached_property
    def forms(self) -> frozenset[str]:
        """All its words, stemmed."""
        return frozenset(map(stem, _WORD.findall(self.text.lower())))

    @cached_property
    def modality(self) -> Modality:
        """Whether it tells a duty or a leave. "Must not" denies a leave, "need not" a duty."""
        is_duty, is_leave = _DUTY.search(self.text) is not None, _LEAVE.search(self.text) is not None
        if is_duty == is_leave:
            return ""
        return "may" if is_leave or (self.is_negated and "must not" in self.text.lower()) else "must"

    @cached_property
    def forbids(self) -> bool:
        """Whether it forbids what its terms say."""
        return len(_FORBIDS.findall(self.text)) % 2 == 1

    @cached_property
    def bounds(self) -> Mapping[str, int]:
        """For each number that is a bound, 1 where more is meant, -1 where less is: "at least 5", "up to 5"."""
        found: dict[str, int] = {}
        for it in islice(_BOUNDED.finditer(self.text), _MOST_BOUNDS):
            before = self.text[max(0, it.start() - _MOST_BEFORE) : it.start()]
            if _RANGE_BEHIND.match(self.text, it.end()) or _RANGE_BEFORE.search(before):
                continue
            is_upper = _UPPER.search(before) is not None or _LESS_BEHIND.match(self.text, it.end()) is not None
            is_lower = not is_upper and (
                _LOWER.search(before) is not None or _MORE_BEHIND.match(self.text, it.end()) is not None
            )
            if is_upper or is_lower:
                found[it[0]] = 1 if is_lower else -1
        return found

    @cached_property
    def amounts(self) -> Mapping[str, int]:
        """How many of its things it means, and how often: 4 all, 3 most, 2 some, 1 few."""
        found: dict[str, int] = {}
        said = _WORD.findall(self.text.lower())
        for i, word in enumerate(said):
            kind, level = _amounts().get(word, ("", 0))
            before = said[i - 1] if i else ""
            if not level or before in _NO_AMOUNT_BEHIND or (word == "most" and before == "the"):
                continue
            if word == "few" and before == "a":
                level = 2
            if kind == "things" and not words("times").isdisjoint(said[i + 1 : i + 4]):
                kind = "often"
            found.setdefault(kind, level)
        if "often" not in found and _AT_ALL_TIMES.search(self.text):
            found["often"] = 4
        return found

    @cached_property
    def denied(self) -> frozenset[str]:
        """The first term behind each negation."""
        return self.inherited | _denied(self.text)

    @cached_property
    def behind_negation(self) -> frozenset[str]:
        """The terms behind a negation of its verb."""
        found = _OF_VERB.search(self.text)
        return frozenset(stems(self.text[found.end() :])) if found else frozenset()

    @cached_property
    def opposing(self) -> frozenset[str]:
        """The forms of which a clause needs one to say the opposite, where neither of the two denies anything."""
        found = {other for word in self.forms | self.terms for other in _opposites_of(word)}
        found.update([_PARTICLES[word] for word in self.forms & _PARTICLES.keys()])
        return frozenset(found)


@dataclass(slots=True)
class _Draft:
    parts: list[str]
    own: str  # the part with its predicate
    subject: frozenset[str] = frozenset()
    rests: list[tuple[str, bool, bool]] = field(default_factory=list)  # text, whether negated, whether open
    is_relative: bool = False


def clauses_of(text: str) -> tuple[Clause, ...]:
    """Return the clauses of a normalised sentence.

    A part without a verb of its own belongs to the clause before it, and is also read as one in its place: "not
    safe for adults or children" denies both. A clause without a subject has that of the one before it.

    Example:
        >>> said = clauses_of("The drug is not safe for children and may be taken with milk.")
        >>> [(sorted(clause.terms), clause.is_negated) for clause in said]
        [(['children', 'drug', 'safe'], True), (['milk', 'taken'], False)]
    """
    text = _joined_prefix(text)
    found: list[Clause] = []
    for draft in _drafts(text):
        whole = " ".join(draft.parts)
        is_negated = _n_negations(draft.own) % 2 == 1
        before = [part for part in draft.parts[: draft.parts.index(draft.own)] if part]
        is_negated ^= sum(map(_n_negations, before)) % 2 == 1
        found.append(_clause(whole, draft.subject, is_negated=is_negated))
        if before and not draft.is_relative:
            found.append(_clause(draft.own, draft.subject, is_negated=_n_negations(draft.own) % 2 == 1))
        if draft.rests:
            found.append(_clause(draft.own, draft.subject, is_negated=is_negated))
        if cut := _CUT.search(draft.own):
            main = draft.own[: cut.start()]
            found.append(_clause(main, draft.subject, is_negated=_n_negations(main) % 2 == 1, is_open=True))
        subject = draft.subject or subject_of(draft.own)
        for rest, is_denied, is_open in draft.rests:
            found.append(
                _clause(rest, subject, is_negated=is_denied, is_open=is_open, inherited=_inherited(draft.own, rest))
            )
    return tuple(dict.fromkeys(clause for clause in found if clause.terms or clause.subject))


class Written(NamedTuple):
    """Terms and forms of the clauses of a sentence, and whether one may deny something."""

    terms: frozenset[str]
    forms: frozenset[str]
    denies: bool


def written_in(text: str) -> Written:
    """Return what the clauses of a normalised sentence may have, without reading them.

    Example:
        >>> found = written_in("The non-stop train is late.")
        >>> sorted(found.terms), sorted(found.forms), found.denies
        (['late', 'nonstop', 'train'], ['is', 'late', 'nonstop', 'the', 'train'], False)
    """
    text = _joined_prefix(text)
    said = _WORD.findall(text.lower())
    return Written(frozenset(stems(text)), frozenset(map(stem, said)), not _DENYING.isdisjoint(said))


def _joined_prefix(text: str) -> str:
    """Return a text with "non-" joined to its word, and without "or not"."""
    return _OR_NOT.sub("", _NON.sub("non", text) if "-" in text else text)


def _drafts(text: str) -> list[_Draft]:
    verbs, subjects = words("verbs"), words("subjects")
    drafts: list[_Draft] = []
    pending: list[tuple[str, str]] = []
    subject: frozenset[str] = frozenset()
    for given, part in _parts(text):
        mark = given.removeprefix(", ") or given
        said = [word.lower() for word in _WORD.findall(part)]
        verb = next((i for i, word in enumerate(said) if word in verbs), -1)
        denies = (negation := _NEGATION.search(part)) is not None and negation[0].lower() != "nor"
        is_clause = verb >= 0 or denies or mark in _STRONG or (len(said) > 1 and said[0] in subjects)
        is_bare = said[0] in verbs or said[0] in {
            "not",
            "never",
            "no",
            "also",
            "nothing",
            "without",
            "nor",
            "then",
        }
        if mark in _RELATIVE:
            before = pending[-1][1] if pending else drafts[-1].parts[-1] if drafts else ""
            its = frozenset(stems(before)[-1:])
            if pending and verb >= 0 and (at := _main_verb(part)) > 0:
                drafts.append(_Draft([part[:at].strip()], part[:at].strip(), its, is_relative=True))
                rest = part[at:].strip()
                subject = frozenset(stems(" ".join(one for _, one in pending)))
                drafts.append(_Draft([rest], rest, subject))
                pending = []
            else:
                drafts.append(_Draft([part], part, its if is_bare or verb < 0 else frozenset(), is_relative=True))
        elif pending and drafts and is_bare:  # "The ticket, which is cheap, may be changed"
            subject = frozenset(stems(" ".join(one for _, one in pending)))
            drafts.append(_Draft([part], part, subject))
            pending = []
        elif said[0] in _CONDITIONS and not drafts and mark == "" and not pending:
            pending.append((given, part))
        elif pending and is_clause and (mark in _STRONG or (given != mark and not is_bare)):
            drafts += [_Draft([one], one) for one in _joined(pending)]
            subject = subject_of(pending[0][1]) if is_bare else subject_of(part)
            drafts.append(_Draft([part], part, subject if is_bare else frozenset()))
            pending = []
        elif not [one for one in drafts if not one.is_relative]:
            if is_clause:
                before_it = _joined(pending)
                drafts += [_Draft([one], one) for one in before_it[:-1]]
                drafts.append(_Draft([*before_it[-1:], part], part))
                subject, pending = subject_of(part) or subject, []
            else:
                pending.append((given, part))
        elif is_clause:
            own = frozenset() if not is_bare or pending else subject
            drafts.append(_Draft([*_joined(pending), part], part, own))
            subject, pending = (subject_of(part) or subject) if not own else subject, []
        else:
            last = next(one for one in reversed(drafts) if not one.is_relative)
            is_denied = _n_negations(last.own) % 2 == 1
            last.parts.append(part)
            last.rests.append((part, is_denied, is_denied and mark not in {"or", "nor"}))
    return [*drafts, *(_Draft([part], part) for part in _joined(pending))]


def _joined(pending: list[tuple[str, str]]) -> list[str]:
    """Return the parts without a verb as clauses: a new one begins behind a strong mark, or a comma and "and"."""
    found: list[str] = []
    for mark, part in pending:
        is_new = not found or mark in _STRONG or mark.startswith(", ")
        found[len(found) - 1 + is_new :] = [part if is_new else f"{found[-1]} {part}"]
    return found


def _parts(text: str) -> list[tuple[str, str]]:
    """Return the parts between commas, conjunctions and relative words, each with the mark before it."""
    parts: list[tuple[str, str]] = []
    mark, begin = "", 0
    for token in _TOKEN.finditer(text):
        word = token[0].lower()
        is_mark = word in _STRONG or word in _WEAK or word in _RELATIVE
        if not is_mark or len(parts) >= _MOST_CLAUSES or (word == "or" and _OR_MORE.match(text, token.end())):
            continue
        if word == "that" and text[: token.start()].rstrip()[-1:] in {"", ",", ";"}:
            continue  # the thing itself
        part = text[begin : token.start()].strip(" ,.")
        if _WORD.search(part):
            parts.append((mark, part))
            mark = word
        elif mark in {"", ",", ";"} or word in _RELATIVE:
            mark = (f", {word}" if mark == "," and word in _WEAK else word) if parts else ""
        begin = token.start() if word == "nor" else token.end()
    part = text[begin:].strip(" ,.;:!?)")
    if _WORD.search(part):
        parts.append((mark, part))
    return parts


def _main_verb(part: str) -> int:
    """Return where a relative clause ends and the verb of its main clause stands; 0 where none does."""
    found = [it for it in _WORD.finditer(part) if it[0].lower() in words("verbs")]
    is_own = bool(found) and len(_WORD.findall(part[: found[0].start()])) < 2
    rest = found[1:] if is_own else found
    for it in rest:
        before = _WORD.findall(part[: it.start()])
        if before and before[-1].lower() not in {"to", "not", *words("verbs")}:
            return it.start()
    return 0


def subject_of(part: str) -> frozenset[str]:
    """Return the terms before the first verb, else the first term."""
    verbs = words("verbs")
    for it in _WORD.finditer(part):
        if (word := it[0].lower()) in verbs or word in {"not", "never"}:
            return frozenset(stems(part[: it.start()]))
    return frozenset(stems(part)[:1])


def _n_negations(text: str) -> int:
    return len(_NEGATION.findall(text)) + len(_FREE.findall(text))


def _denied(text: str) -> frozenset[str]:
    """Return the first term behind each negation: what it denies."""
    found = {its for it in _FREE.finditer(text) for its in stems(text[: it.start()])[-1:]}
    for it in _NEGATION.finditer(text):
        its = [word for word in _WORD.findall(text[it.end() : it.end() + 80]) if not word.endswith("ly")]
        found.update(stems(" ".join(its))[:1])
    return frozenset(found)


def _inherited(own: str, rest: str) -> frozenset[str]:
    """Return what a negation before a part denies of it."""
    denied = _denied(own)
    return denied if denied <= _SOFT else frozenset(stems(rest)[:1])


def _clause(
    text: str,
    subject: frozenset[str],
    *,
    is_negated: bool,
    is_open: bool = False,
    inherited: frozenset[str] = frozenset(),
) -> Clause:
    own = frozenset(stems(text))
    # A word whose opposite the clause has belongs to a parallel clause: "the right ... and the left ventricle".
    subject = frozenset(term for term in subject - own if opposite_in(term, own) is None)
    return Clause(text, (own - _hidden()) or own, subject, is_negated, is_open, inherited)


@cache
def _hidden() -> frozenset[str]:
    """Return the words of negation, and adverbs that change no polarity."""
    return frozenset(
        stems("never none neither without nobody nothing hardly rarely lack lacks lacking fails failed non unable "
              "always ever instead rather")
    )  # fmt: skip


@cache
def opposites() -> Mapping[str, frozenset[str]]:
    """Return for each stemmed word those that say the opposite.

    Example:
        >>> "last" in opposites()["first"], "shut" in opposites()["open"]
        (True, True)
    """
    found: dict[str, set[str]] = {}
    for heading in ("opposites", "opposite_verbs", "opposite_qualities", "degrees"):
        forms_of = verb_forms if heading == "opposite_verbs" else _one_form
        for pair in " ".join(table("words.txt")[heading]).split():
            left, right = (
                {form for word in side.split("/") for form in forms_of(word)} for side in pair.split(":")
            )
            for ours, theirs in ((left, right), (right, left)):
                for word in ours:
                    found.setdefault(word, set()).update(theirs)
    return {word: frozenset(others) for word, others in found.items()}


def _one_form(word: str) -> tuple[str, ...]:
    return (stem(word),)


def opposite_in(word: str, forms: frozenset[str]) -> str | None:
    """Return the form that says the opposite of a stemmed word: one of the table, or one made with a prefix.

    Example:
        >>> opposite_in("valid", frozenset({"invalid"})), opposite_in("harmless", frozenset({"harmful"}))
        ('invalid', 'harmful')
        >>> opposite_in("port", frozenset({"import"})) is None
        True
    """
    others = _opposites_of(word)
    return None if forms.isdisjoint(others) else next(other for other in others if other in forms)


@lru_cache(maxsize=4_096)
def _opposites_of(word: str) -> tuple[str, ...]:
    """Return the forms that say the opposite of a stemmed word, those of the table first."""
    found = sorted(opposites().get(word, ()))
    for prefix, least in _PREFIXES:
        plain = word.removeprefix(prefix)
        found += [plain] if plain != word and len(plain) >= least else []
        found += [prefix + word] if len(word) >= least else []
    for ending, other in (("less", "ful"), ("ful", "less")):
        found += [word.removesuffix(ending) + other] if word.endswith(ending) else []
    found += [word.removesuffix("less")] if word.endswith("less") and len(word) > 7 else [f"{word}less"]
    return tuple(dict.fromkeys([*found, *(one[:-1] for one in found if one.endswith("e"))]))


def particles(text: str) -> dict[str, str]:
    """Return the words with a particle behind them that has an opposite: "switched off"."""
    said = _WORD.findall(text.lower())
    return {stem(word): behind for word, behind in pairwise(said) if behind in _PARTICLES}


def are_turned(ours: str, theirs: str) -> bool:
    """Return whether two words have opposite particles: "switched on", "switched off"."""
    left, right = particles(ours), particles(theirs)
    return any(_PARTICLES[left[word]] == right[word] for word in left.keys() & right.keys())


def soft_terms() -> frozenset[str]:
    """Return the terms that only tell a duty or a leave."""
    return _SOFT


_AT_ALL_TIMES = re.compile(r"\bat all times\b", re.IGNORECASE)
_NO_AMOUNT_BEHIND = frozenset({"not", "at", "after", "above", "no", "nearly", "almost"})


@cache
def _amounts() -> Mapping[str, tuple[str, int]]:
    """Return the kind and the level of each word that tells how many, or how often."""
    found: dict[str, tuple[str, int]] = {}
    for line in table("words.txt")["amounts"]:
        kind, level, *its = line.split()
        found.update(dict.fromkeys(its, (kind, int(level))))
    return found


@cache
def amount_words() -> frozenset[str]:
    """Return the words, stemmed, that tell how many, or how often."""
    return frozenset(map(stem, _amounts()))


@cache
def bounding_words() -> frozenset[str]:
    """Return the words, stemmed, that make a number a bound."""
    return frozenset(map(stem, words("bounding")))


@cache
def forbidding_words() -> frozenset[str]:
    """Return the words, stemmed, that forbid."""
    return frozenset(map(stem, words("forbidding")))


def bounds_differ(ours: Clause, theirs: Clause) -> bool | None:
    """Return whether a number is the least in one clause and the most in the other; None where it is no bound.

    Example:
        >>> texts = ("At least 6 players are needed.", "It needs up to 6 players.")
        >>> said, held = (clauses_of(text)[0] for text in texts)
        >>> bounds_differ(said, held)
        True
    """
    shared = ours.bounds.keys() & theirs.bounds.keys()
    return any(ours.bounds[number] != theirs.bounds[number] for number in shared) if shared else None


def amounts_differ(ours: Clause, theirs: Clause) -> bool:
    """Return whether a clause says more, or clearly less, than another one of how many, or how often.

    Example:
        >>> texts = ("It is always full.", "It is sometimes full.", "It is full.")
        >>> clauses = [clauses_of(text)[0] for text in texts]
        >>> [amounts_differ(clauses[0], other) for other in clauses]
        [False, True, False]
    """
    for kind in ("things", "often"):
        our, their = ours.amounts.get(kind, 0), theirs.amounts.get(kind, 0)
        if not our or not their:
            if 1 in {our, their} and not (ours.denied or theirs.denied):
                return True
            continue
        is_limited = kind == "often" or "only" in ours.forms
        if (
            (our == 4 and their < 4)
            or (our == 3 and their < (3 if kind == "things" else 2))
            or (our == 2 and (their == 1 or (their == 4 and is_limited)))
            or (our == 1 and their > 1)
        ):
            return not (ours.denied or theirs.denied)
    return False


def polarity_differs(
    ours: Clause, theirs: Clause, opposed: Collection[str] = (), known: Container[str] | None = None
) -> bool:
    """Return whether one of two clauses denies what the other one says, opposites aside.

    A negation counts where the other clause has the word that it denies: "without a key" denies the key. "Not
    allowed" denies what any other negation does. A leave denies no missing duty: "you may wear it" and "you need
    not wear it".

    Args:
        ours: one clause.
        theirs: the other one.
        opposed: the words of one clause for which the other one has an opposite.
        known: the words of the texts; a word of our clause that is none is one in other words.
    """
    n_met = 0
    soft, rest, within = [], [], []
    for its, other in ((ours, theirs), (theirs, ours)):
        denied = its.denied - other.denied
        met = {
            word
            for word in denied
            if word in other.terms or word in other.subject or word in opposed
            or (known is not None and its is ours and word not in known and word not in _SOFT)
        }  # fmt: skip
        n_met += len(met)
        within.append(len(met & (other.behind_negation | (met - other.terms - other.subject - {*opposed}))))
        soft.append(len((denied & _SOFT) - met))
        rest.append(len(denied - met - _SOFT))
    if n_met == 1 and ((within[0] and rest[1]) or (within[1] and rest[0])):
        n_met = 0  # "not outdoors" and "not to be used outdoors" deny the same
    n_denied = n_met + max(0, soft[0] - rest[1]) + max(0, soft[1] - rest[0])
    if {ours.modality, theirs.modality} == {"must", "may"}:
        duty, leave = (ours, theirs) if ours.modality == "must" else (theirs, ours)
        return n_denied > 0 and leave.is_negated and not duty.is_negated
    return n_denied % 2 == 1
