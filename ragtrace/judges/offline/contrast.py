"""Finds evidence in contexts against a sentence.

Evidence is only given where the contexts hold nearly the same sentence; a paraphrase gives none.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import accumulate, islice, pairwise, permutations
from typing import TYPE_CHECKING

from ragtrace.judges.offline.clauses import (
    Clause,
    Written,
    amount_words,
    amounts_differ,
    are_turned,
    bounding_words,
    bounds_differ,
    clauses_of,
    forbidding_words,
    opposite_in,
    opposites,
    polarity_differs,
    soft_terms,
    subject_of,
    written_in,
)
from ragtrace.judges.offline.notation import MONTHS, WEEKDAYS, units
from ragtrace.judges.offline.relations import (
    COMPARED,
    ORDERED,
    ORDERING,
    Related,
    crossed_pair,
    relate_otherwise,
    roles_differ,
)
from ragtrace.judges.offline.specifics import YEAR, Specific, specifics_of
from ragtrace.judges.offline.tables import words
from ragtrace.judges.offline.words import TermPlaces, stem, stems

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence

NEARLY_ALL = 0.85  # of the words that the contexts know at all
MOST = 0.45  # of all words
ALIKE = 0.6  # of the words of the shorter of two sentences
MARGIN = 0.1
ALL_BACK = 0.3  # the same where it holds all words of the answer's
ROW = 0.35  # the same where one more fact may stand beside, as in the row of a table
MOST_ALONE = 0.6  # of the rest, where what is said stands nowhere near it
ROW_ALONE = 0.2  # the same where what is said stands nowhere near the rest
SHORT = 10  # terms of a unit beside its numbers
MOST_PARALLEL = 4  # sentences that are held beside one another
MOST_NEAR = 12  # sentences that are read closely for one of the answer
MOST_SPECIFICS = 50  # of a sentence, as they are compared in pairs
LEAST = 0.4  # of the known words: a sentence with fewer is not looked at
MOST_ASKED = 256  # terms of a question; a longer one is a text
SAFE = 1.0 - 1e-9  # against the rounding of sums
BACK = 0.5  # of the words of the contexts' sentence: it says little else

_CLAUSE_END = re.compile(  # of at most 8,000 characters: a sentence in one notation
    r"(?:[;,]|\s[\u2013—-]\s|\b(?:and|but|while|whereas|or)\b)(?=\s)|,(?=\S{0,40}[A-Za-z])", re.IGNORECASE
)
_POSSESSIVE = re.compile(r"\b(?:its|their|his|her|your|our|my)\b", re.IGNORECASE)
_PRONOUNS = frozenset({"it", "its", "they", "their", "he", "his", "she", "her", "this", "these"})
_MEASURE_TERM = re.compile(rf"\d|^(?:{'|'.join(word[:-1] for word in (*MONTHS, *WEEKDAYS))})")
_LISTED = re.compile(r",? (?:(?:and|or|&) )?")
_LETTER = re.compile(r"(?<=[a-z] )[A-HJ-Z](?![\w'])")
_COUNTED = re.compile(r"[ -]([a-z]{3,})\b")
_SMALL_WORD = re.compile(r"\b[a-z][^\W\d_]+")
_TOKEN = re.compile(r"[^\W_]+")


def _content(terms: frozenset[str]) -> frozenset[str]:
    return frozenset(term for term in terms if not _MEASURE_TERM.search(term)) - _unit_terms()


@cache
def _unit_terms() -> frozenset[str]:
    return frozenset(term for name in units() for term in stems(name))


@dataclass(frozen=True)
class TextUnit:
    """A sentence or a clause as it is compared. What few comparisons need is read when it is first asked for.

    Attributes:
        small: returns the words that the contexts have in lower case; as a first word these are no names.
        above: terms of a question that the sentence answers.
    """

    text: str
    small: Callable[[], Container[str]] = frozenset
    above: frozenset[str] = frozenset()

    @cached_property
    def stems(self) -> tuple[str, ...]:
        """The terms in order."""
        return tuple(stems(self.text))

    @cached_property
    def terms(self) -> frozenset[str]:
        """The terms of the text, as of `terms_of`, and those above it."""
        return frozenset((*self.stems, *_letters(self.text))) | self.above

    @cached_property
    def content(self) -> frozenset[str]:
        """The terms that are no number, unit, date or time."""
        return self.above or _content(self.terms)

    @cached_property
    def words(self) -> frozenset[str]:
        """All words as written."""
        return frozenset(_TOKEN.findall(self.text))

    @cached_property
    def plain(self) -> str:
        """The words in lower case, each between blanks."""
        return f" {' '.join(_TOKEN.findall(self.text.lower()))} "

    @cached_property
    def specifics(self) -> tuple[Specific, ...]:
        """The specifics, without first words that are no names."""
        its = (it for it in _compared(self.text) if it.kind != "name" or it.key not in self.small())
        return tuple(islice(its, MOST_SPECIFICS))

    @cached_property
    def counts(self) -> frozenset[tuple[str, str]]:
        """The numbers, each with the noun directly behind it."""
        numbers = (it for it in self.specifics if it.kind == "number")
        behind = ((it.key, _COUNTED.match(self.text, it.start + len(it.key))) for it in numbers)
        return frozenset((key, stem(noun[1])) for key, noun in behind if noun)


@dataclass(frozen=True)
class Sentence:
    """A sentence as it is compared, and its clauses.

    `above` are the first term of the sentence before, where a pronoun stands for it, and all terms of a question.
    """

    whole: TextUnit
    above: frozenset[str] = frozenset()

    @cached_property
    def clauses(self) -> tuple[TextUnit, ...]:
        """The clauses in order. Commas, semicolons and conjunctions end one. A sentence without is its own clause.

        Example:
            >>> [clause.text for clause in Sentence(TextUnit("Plan A costs 10 and plan B costs 20.")).clauses]
            ['Plan A costs 10', 'plan B costs 20.']
        """
        parts = [stripped for part in _CLAUSE_END.split(self.whole.text) if (stripped := part.strip())]
        is_one = len(parts) < 2 or bool(self.whole.above)
        return (self.whole,) if is_one else tuple([TextUnit(part, self.whole.small) for part in parts])

    @cached_property
    def related(self) -> Related:
        """Roles, comparisons and orders in it."""
        return Related(self.whole.text)

    @cached_property
    def read(self) -> tuple[Clause, ...]:
        """Clauses in it, with their polarity."""
        return clauses_of(self.whole.text)

    @cached_property
    def written(self) -> Written:
        """Terms and forms of its clauses, unread."""
        return written_in(self.whole.text)


def terms_of(text: str) -> frozenset[str]:
    """Return the terms of a normalised text.

    A single capital within it ("plan A") is a term too.

    Example:
        >>> sorted(terms_of("The plan A costs 10 euro."))
        ['10', '=A', 'cost', 'euro', 'plan']
    """
    return frozenset((*stems(text), *_letters(text)))


def _letters(text: str) -> list[str]:
    return [f"={letter}" for letter in _LETTER.findall(text)]


def _compared(text: str) -> list[Specific]:
    """Return the specifics of a text, and the years of its dates; "first" and "second" tell little."""
    found = [it for it in specifics_of(text, has_first=True) if it.kind != "ordinal" or int(it.key) > 2]
    years = [Specific("number", it.unit, it.unit, it.start) for it in found if it.kind == "date" and it.unit]
    return [*found, *years]


@dataclass(slots=True)
class ContrastFinder:
    """Looks for evidence against sentences in the sentences of the contexts.

    Attributes:
        sentences: of all contexts, normalised, with their terms; read closely when they are first needed.
        weights: of each term of the contexts, higher for a rarer one.
        unknown_weight: of a term that the contexts lack.
        asked: the terms of the question.
    """

    sentences: Sequence[tuple[str, frozenset[str]]]
    weights: Mapping[str, float]
    unknown_weight: float
    asked: frozenset[str] = frozenset()
    _read: dict[int, Sentence] = field(default_factory=dict, init=False)
    places: TermPlaces = field(init=False)  # sentences of the terms
    _small: frozenset[str] | None = field(default=None, init=False)  # words that the contexts have in lower case
    _subjects: dict[int, frozenset[str]] = field(default_factory=dict, init=False)  # of answers and of pronouns

    def __post_init__(self) -> None:
        for i, ((before, terms), (text, _)) in enumerate(pairwise(self.sentences), 1):
            if before.endswith("?"):  # as in a list of questions and answers
                self._subjects[i] = terms
            elif not _PRONOUNS.isdisjoint(text[:40].lower().split(None, 4)[:4]):
                self._subjects[i] = subject_of(before) or self._subjects.get(i - 1, frozenset())
        seen: Counter[tuple[str, frozenset[str]]] = Counter()
        terms_at = []
        for i, (text, terms) in enumerate(self.sentences):
            above = self._subjects.get(i, frozenset())
            seen[text, above] += 1
            is_near = seen[text, above] <= MOST_NEAR  # of equal sentences the first are nearest
            terms_at.append((terms | above if above else terms) if is_near else frozenset())
        self.places = TermPlaces(terms_at)

    def against(self, text: str) -> str:
        """Return the evidence against a normalised sentence, "" without any."""
        terms = terms_of(text)
        is_whole = bool(_content(terms)) or len(self.asked) > MOST_ASKED
        asked = frozenset() if is_whole else self.asked  # "It is 28 days." answers the question alone
        near = self._near(terms | asked)
        if not near:
            return ""
        said = Sentence(TextUnit(text, self._small_words, asked))
        if any(said.whole.plain in sentence.whole.plain for sentence in near):
            return ""  # word for word
        alike = [one for one in near if _share_words(said.whole, one.whole)]
        settled, found = _ordered_otherwise(said, near)
        return (
            found
            or _roles_changed(said, alike)
            or self._contrary(said, asked, near, settled)
            or _counted_otherwise(said.whole, near)
            or self._misplaced(said, near)
            or _given_to_another(said, near)
            or _paired_otherwise(said, alike)
        )

    def _near(self, terms: frozenset[str]) -> list[Sentence]:
        """Return the sentences that hold most of the terms. Only these are read closely."""
        weights = {term: self.weights[term] for term in terms if term in self.weights}
        plain = {term: weight for term, weight in weights.items() if not _MEASURE_TERM.search(term)}
        floor, plain_floor = (LEAST * math.fsum(its.values()) for its in (weights, plain))
        if floor <= 0.0:
            return []
        held = []
        for i in self._candidates(weights, plain, floor, plain_floor):
            own = self.sentences[i][1]
            shared = terms & (own | self._subjects[i] if i in self._subjects else own)
            if len(shared) > 1 or len(terms) < 4:
                score = math.fsum(weights[term] for term in shared)
                if score >= floor or (plain and math.fsum(plain.get(term, 0.0) for term in shared) >= plain_floor):
                    held.append((score, -i))
        best = sorted(held, reverse=True)[:MOST_NEAR]
        near = []
        for place in (-i for _, i in best):
            if place not in self._read:
                unit = TextUnit(self.sentences[place][0], self._small_words)
                self._read[place] = Sentence(unit, self._subjects.get(place, frozenset()))
            near.append(self._read[place])
        return near

    def _small_words(self) -> frozenset[str]:
        if self._small is None:
            self._small = frozenset(
                word for text in {text for text, _ in self.sentences} for word in _SMALL_WORD.findall(text)
            )
        return self._small

    def _candidates(
        self, weights: Mapping[str, float], plain: Mapping[str, float], floor: float, plain_floor: float
    ) -> set[int]:
        """Return the sentences with one of the rarer terms, without which none holds enough."""
        found: set[int] = set()
        places = self.places.of(weights)
        rarest = sorted(places, key=lambda term: (len(places[term]), term))
        left, plain_left = (_sums_behind([its.get(term, 0.0) for term in rarest]) for its in (weights, plain))
        for i, first in enumerate(rarest):
            is_little = left[i] < floor * SAFE
            if is_little and not (plain and plain_left[i] >= plain_floor * SAFE):
                break
            found.update(places[first])
        return found

    def _cover(self, terms: Iterable[str], unit: TextUnit, above: frozenset[str] = frozenset()) -> float:
        """Return the weighted share of the known terms that a unit holds, or the sentence above it."""
        total, held = 0.0, 0.0
        for term in sorted(terms):  # in one order: a set's changes with the process
            if term in self.weights:
                weight = self.weights[term]
                total += weight
                if term in unit.terms or term in above:
                    held += weight
        return held / total if total else 0.0

    def _is_known_enough(self, terms: frozenset[str], n_opposite: int = 0) -> bool:
        """Return whether the contexts have most of some terms, beside those of which they have the opposite."""
        total = math.fsum(self.weights.get(term, self.unknown_weight) for term in terms)
        known = terms & self.weights.keys()
        return (total > 0 or n_opposite > 0) and (
            3 * (len(known) + n_opposite) >= 2 * (len(terms) + n_opposite)
            or math.fsum(self.weights[term] for term in known) >= MOST * total
        )

    def _contrary(
        self, said: Sentence, asked: frozenset[str], near: list[Sentence], settled: frozenset[str]
    ) -> str:
        """Return the evidence that the contexts say the opposite of a clause.

        `settled` are the words of an order that the contexts have too: "A is lighter than B", "B is heavier".
        """
        clauses = said.read
        if asked:
            clauses = tuple(replace(it, terms=it.terms | asked) for it in clauses[:1])
        for clause in clauses:
            if (
                clause.is_open
                or len(clause.terms | clause.subject) < 2
                or not clause.forms.isdisjoint(settled & ORDERING[COMPARED])
            ):
                continue
            own = near if len(clauses) == 1 else self._near(clause.terms | clause.subject)
            if found := self._contrary_to(clause, own, settled):
                return found
        return ""

    def _contrary_to(self, said: Clause, near: list[Sentence], settled: frozenset[str] = frozenset()) -> str:
        may_differ = said.denied or said.forbids or said.bounds or said.amounts
        if not may_differ and not any(
            one.written.denies or not one.written.forms.isdisjoint(said.opposing) for one in near
        ):
            return ""  # nobody denies anything, or says an opposite, a bound or an amount
        found = ""
        for sentence in near:
            if "?" in sentence.whole.text or not self._may_meet(said, sentence):
                continue
            met = [
                (len(theirs.terms), reason)
                for theirs in sentence.read
                if (reason := self._opposed(said, theirs, sentence, settled)) is not None
                and not (reason and theirs.is_open)
            ]
            if not met:
                continue
            least = min(size for size, _ in met)  # a longer one holds what another clause says
            if any(not reason for size, reason in met if size == least):
                return ""
            found = found or next(reason for size, reason in met if size == least)
        return found

    def _may_meet(self, said: Clause, sentence: Sentence) -> bool:
        """Return whether a sentence has enough of a clause's words, or their opposites, for one of its clauses."""
        terms, forms, _ = sentence.written
        held = terms | forms | sentence.above
        for hidden in (frozenset(), soft_terms()) if said.modality else (frozenset(),):
            its = (said.terms - hidden) or said.terms
            its = its | said.subject if len(its) < 2 else its
            turned = {term for term in its - held if opposite_in(term, forms) is not None}
            if self._share_met(its, its & (held | turned), turned) >= NEARLY_ALL * SAFE:
                return True
        return False

    def _share_met(self, terms: frozenset[str], met: frozenset[str], turned: Collection[str]) -> float:
        """Return the weighted share of a clause's known terms that another one has, or turns."""
        known = {term: self.weights.get(term, self.unknown_weight) for term in terms if self._knows(term, turned)}
        total = math.fsum(known.values())
        return math.fsum(known.get(term, 0.0) for term in met) / total if total else 0.0

    def _opposed(self, said: Clause, theirs: Clause, sentence: Sentence, settled: frozenset[str]) -> str | None:
        """Return why a clause is the opposite of another; "" where it is not, None where they do not meet."""
        hidden = soft_terms() if said.modality and theirs.modality else frozenset()
        terms, others = (said.terms - hidden) or said.terms, (theirs.terms - hidden) or theirs.terms
        held = others | theirs.subject | sentence.above
        is_other = said.subject.isdisjoint(held) and not said.subject.isdisjoint(self.weights)
        if is_other and not _POSSESSIVE.search(said.text):
            return None
        if len(terms) < 2:
            terms |= said.subject
        turned = {
            term: other
            for term in sorted(terms - held)
            if (other := opposite_in(term, theirs.forms)) is not None and other not in said.forms
        }
        unsaid = {
            word: other
            for word in sorted(said.forms - terms - theirs.forms)
            if word in opposites() and (other := opposite_in(word, theirs.forms - terms)) is not None
        }
        met = terms & (held | turned.keys())
        cover = self._share_met(terms, met, turned)
        if cover < NEARLY_ALL or not met or not self._is_known_enough(terms - turned.keys(), len(turned)):
            return None
        back = len(others & (terms | said.subject | set(turned.values())))
        if back < (ALL_BACK if cover >= 1.0 else BACK) * len(others):
            return None
        is_bounded, is_counted = bounds_differ(said, theirs), amounts_differ(said, theirs)
        read = settled | (bounding_words() if is_bounded is not None else frozenset())
        read |= amount_words() if said.amounts and theirs.amounts else frozenset()
        pairs = {word: other for word, other in (turned | unsaid).items() if word not in read and other not in read}
        forbids = said.forbids != theirs.forbids and forbidding_words().isdisjoint({*pairs, *pairs.values()})
        is_flipped = polarity_differs(said, theirs, {*pairs, *pairs.values()}, self.weights)
        is_turned = are_turned(said.text, theirs.text)
        n_opposites = len(set(pairs.values()))
        if (is_flipped + n_opposites + is_turned + bool(is_bounded) + is_counted + forbids) % 2 == 0:
            return ""
        shown = sentence.whole.text[:160]
        if pairs:
            return f"the contexts say the opposite of {next(iter(pairs))!r}: {shown}"
        if is_turned or is_bounded or is_counted:
            return f"the contexts say the opposite: {shown}"
        return f"the contexts {'affirm' if said.is_negated else 'deny'} it: {shown}"

    def _knows(self, term: str, turned: Container[str]) -> bool:
        return term in self.weights or term in turned

    def _misplaced(self, said: Sentence, near: list[Sentence]) -> str:
        """Return the evidence that a specific belongs to something else."""
        for clause in said.clauses:
            for it in clause.specifics:
                row = [one for one in said.whole.specifics if one.kind == it.kind]
                if len(row) > 1 and any(
                    _holds_in_order(sentence.whole, row)
                    or (_are_listed(said.whole, row) and _are_listed(sentence.whole, row))
                    for sentence in near
                ):
                    continue
                other = self._in_place_of(it, clause, said.whole, near)
                if other is not None:
                    return f"the contexts have {other[0]!r} in place of {it.shown!r}: {other[1][:160]}"
        return ""

    def _in_place_of(
        self, it: Specific, said: TextUnit, whole: TextUnit, near: list[Sentence]
    ) -> tuple[str, str] | None:
        """Return the rival of a specific and the sentence that has it there."""
        others = said.terms - terms_of(f"x {it.shown}")
        rest = frozenset(term for term in others if term in self.weights)
        if it.kind == "name" and not all(term in self.weights for term in stems(it.shown)):
            return None  # an invented one, or no name
        if not rest or not self._is_known_enough(others):
            return None
        with_it = [sentence for sentence in near if _holds(sentence.whole, it)]
        without = [sentence for sentence in near if not _holds(sentence.whole, it)]
        return (
            self._elsewhere(it, rest, said, whole, without, with_it)
            or self._in_another_clause(it, rest, said, whole, with_it)
            or self._tighter(it, rest, said, without, with_it)
        )

    def _elsewhere(
        self,
        it: Specific,
        rest: frozenset[str],
        said: TextUnit,
        whole: TextUnit,
        without: list[Sentence],
        with_it: list[Sentence],
    ) -> tuple[str, str] | None:
        """Return the rival in a sentence that says the rest better than those with the specific."""
        best = max((self._cover(rest, sentence.whole, sentence.above) for sentence in with_it), default=0.0)
        least = NEARLY_ALL if best or it.kind == "name" else MOST_ALONE
        for sentence in without:
            if self._cover(rest, sentence.whole, sentence.above) < max(least, best + MARGIN):
                continue
            units = (sentence.whole, *sentence.clauses)
            fitting = (unit for unit in units if self._cover(rest, unit, sentence.above) >= least)
            unit = min(fitting, key=lambda unit: len(unit.terms))
            is_row = len(unit.terms & said.terms) >= ROW * len(unit.terms)
            if not is_row and (it.kind == "name" or not _says_little_else(unit, said, ROW if best else ROW_ALONE)):
                continue
            for other in _rivals(sentence.whole, it, whole):
                if _is_in_its_slot(other, sentence.whole, it, said):
                    return other.shown, sentence.whole.text
        return None

    def _in_another_clause(
        self, it: Specific, rest: frozenset[str], said: TextUnit, whole: TextUnit, with_it: list[Sentence]
    ) -> tuple[str, str] | None:
        """Return the rival in a sentence that has the specific in another clause."""
        found = None
        for sentence in with_it:
            cover = self._cover(rest, sentence.whole)
            if cover < (NEARLY_ALL if it.kind == "name" else MOST):
                continue
            clause = self._rival_clause(it, rest, said, whole, sentence, is_alone=cover < NEARLY_ALL)
            if clause is None and cover >= NEARLY_ALL:
                return None  # this sentence has it as it is said
            found = clause or found
        return found

    def _tighter(
        self,
        it: Specific,
        rest: frozenset[str],
        said: TextUnit,
        without: list[Sentence],
        with_it: list[Sentence],
    ) -> tuple[str, str] | None:
        """Return the rival in a sentence that says only what is said, where those with the specific say more."""
        if it.kind == "name" or any(_adds_nothing(unit, said, it) for one in with_it for unit in one.clauses):
            return None
        for sentence in without:
            for unit in (*sentence.clauses, sentence.whole):
                rivals = [one for one in unit.specifics if one.kind == it.kind and _share(one.unit, it.unit)]
                if rivals and unit.content <= said.terms and self._cover(rest, unit, sentence.above) >= NEARLY_ALL:
                    return rivals[0].shown, sentence.whole.text
        return None

    def _rival_clause(
        self,
        it: Specific,
        rest: frozenset[str],
        said: TextUnit,
        whole: TextUnit,
        sentence: Sentence,
        *,
        is_alone: bool,
    ) -> tuple[str, str] | None:
        """Return the rival of a specific in another clause of the sentence.

        `is_alone` asks that its own clause has no word of the rest.
        """
        places = [i for i, clause in enumerate(sentence.clauses) if _holds(clause, it)]
        if len(places) != 1 or len(sentence.clauses) == 1 or not _tells_more(sentence.clauses[places[0]]):
            return None
        place, clause = places[0], sentence.clauses[places[0]]
        for i, other in enumerate(sentence.clauses):
            rivals = _rivals(other, it, whole if len(whole.specifics) == 1 else None) or _of_one_dimension(
                other, it, whole
            )
            if i == place or not rivals or _holds(other, it) or not _tells_more(other):
                continue
            if it.kind == "name" and not any(_is_in_its_slot(r, sentence.whole, it, said) for r in rivals):
                continue
            if is_alone and not _share(rivals[0].unit, it.unit):
                continue
            # What a later clause says of its own holds for it alone; the first one's verb may hold for both.
            is_short = _begins_with_number(other)
            own = _behind(it, clause) if is_short else clause.terms
            ours = math.fsum(self.weights[t] for t in rest & own - other.terms)
            theirs = math.fsum(self.weights[t] for t in rest & other.terms - clause.terms)
            if theirs > 0 and (ours == 0 or (place < i and theirs >= ours and not is_alone and not is_short)):
                return rivals[0].shown, sentence.whole.text
        return None


def _sums_behind(numbers: list[float]) -> list[float]:
    """Return for each place the sum of what stands there and behind it."""
    return [*accumulate(reversed(numbers))][::-1]


def _of_one_dimension(unit: TextUnit, it: Specific, whole: TextUnit) -> list[Specific]:
    """Return the numbers in another unit of the same dimension, without the answer's own."""
    said = {(one.key, one.unit) for one in whole.specifics}
    return [
        one
        for one in unit.specifics
        if it.unit and one.kind == it.kind and _share(one.unit, it.unit) and (one.key, one.unit) not in said
    ]


def _begins_with_number(clause: TextUnit) -> bool:
    """Return whether a clause has subject and verb from the one before it, as in "and 5 euros for students"."""
    return any(it.start == 0 and it.kind in {"number", "date", "time"} for it in clause.specifics)


def _behind(it: Specific, clause: TextUnit) -> frozenset[str]:
    """Return the terms behind a specific in its clause."""
    place = next((one.start + len(one.shown) for one in clause.specifics if one.key == it.key), 0)
    return terms_of(f"x {clause.text[place:]}")


def _counted_otherwise(said: TextUnit, near: list[Sentence]) -> str:
    """Return the evidence that the contexts count a noun otherwise."""
    if not said.counts:
        return ""
    held = frozenset().union(*(sentence.whole.counts for sentence in near))
    for unit in (sentence.whole for sentence in near):
        numbers = {number for number, _ in unit.counts}
        for number, noun in sorted(said.counts - held):
            others = [(n, counted) for n, counted in unit.counts if counted == noun]
            if number in numbers and len(others) == 1 and others[0] not in said.counts:
                return f"the contexts have {' '.join(others[0])!r}: {unit.text[:160]}"
    return ""


def _rivals(unit: TextUnit, it: Specific, whole: TextUnit | None) -> list[Specific]:
    """Return the specifics that may replace one, without the answer's own."""
    said = {(one.kind, one.key) for one in whole.specifics} if whole is not None else set()
    return [one for one in _alike(unit, it) if one.key != it.key and (one.kind, one.key) not in said]


def _adds_nothing(clause: TextUnit, said: TextUnit, it: Specific) -> bool:
    return _holds(clause, it) and clause.content <= said.terms


def _tells_more(clause: TextUnit) -> bool:
    """Return whether a clause has a term beside its numbers, dates and later names. "In 1882," has none."""
    told = (it for it in clause.specifics if it.kind != "name" or it.start > 0)
    own = frozenset().union(*(terms_of(f"x {it.shown}") for it in told))
    return bool(clause.terms - own)


def _holds_in_order(unit: TextUnit, row: list[Specific]) -> bool:
    if not all(_holds(unit, it) for it in row):
        return False
    lowered = unit.text.lower()
    places = [lowered.find(it.shown.lower()) for it in row]
    return places == sorted(places)


def _are_listed(unit: TextUnit, row: list[Specific]) -> bool:
    """Return whether specifics stand in one list, in any order: "Ann, Ben and Cid"."""
    places = sorted((unit.text.find(it.shown), len(it.shown)) for it in row)
    return places[0][0] >= 0 and all(
        _LISTED.fullmatch(unit.text[at + length : behind]) for (at, length), (behind, _) in pairwise(places)
    )


def _is_in_its_slot(other: Specific, unit: TextUnit, it: Specific, said: TextUnit) -> bool:
    """Return whether two specifics share a unit or a neighbouring word."""
    if it.kind not in {"name", "number"} or (it.unit and it.unit == other.unit) or _are_years(it, other):
        return True
    ours, theirs = _beside(it, said.text), _beside(other, unit.text)
    if it.kind == "number" and any(word in said.terms for word in theirs if word):
        return True
    return any(mine and mine == their for mine, their in zip(ours, theirs, strict=True))


def _says_little_else(unit: TextUnit, said: TextUnit, least: float) -> bool:
    """Return whether a short unit's words are the answer's, its numbers aside."""
    return len(unit.content) <= SHORT and len(unit.content & said.terms) >= least * len(unit.content)


def _are_years(*its: Specific) -> bool:
    return all(not it.unit and YEAR.fullmatch(it.key) for it in its)


def _beside(it: Specific, text: str) -> tuple[str, str]:
    place = text.find(it.shown)
    before, behind = stems(text[:place]), stems(text[place + len(it.shown) :])
    return (before[-1] if before else "", behind[0] if behind else "")


def _ordered_otherwise(said: Sentence, near: list[Sentence]) -> tuple[frozenset[str], str]:
    """Return the words of orders that the contexts have too, and the evidence that they have another one."""
    settled: set[str] = set()
    for kind, its in ((COMPARED, said.related.compared), (ORDERED, said.related.ordered)):
        found = ""
        for sentence in near if its else ():
            differs = relate_otherwise(its, getattr(sentence.related, kind))
            if differs is False:
                settled |= ORDERING[kind]
                break
            if differs:
                found = found or f"the contexts have it the other way round: {sentence.whole.text[:160]}"
        else:
            if found:
                return frozenset(), found
    return frozenset(settled), ""


def _share_words(one: TextUnit, other: TextUnit) -> bool:
    """Return whether two sentences have so many words in common that they may relate the same things."""
    shared = len(one.terms & other.terms)
    return shared > 1 and shared >= ALIKE * min(len(one.terms), len(other.terms))


def _roles_changed(said: Sentence, near: list[Sentence]) -> str:
    """Return the evidence that two things have changed their parts: who does it, to whom, from where, to where."""
    own = frozenset(said.related.terms) - {""}
    evidence = ""
    for sentence in near if len(own) > 2 else ():
        shared = own & frozenset(sentence.related.terms)
        is_near = len(shared) > 2 and len(shared) >= said.related.least_shared * len(own)
        differ = roles_differ(said.related, sentence.related, shared) if is_near else None
        if differ is False:
            return ""
        if isinstance(differ, tuple) and not evidence:
            one, other = differ
            evidence = f"the contexts have {one!r} and {other!r} the other way round: {sentence.whole.text[:160]}"
    return evidence


def _paired_otherwise(said: Sentence, near: list[Sentence]) -> str:
    """Return the evidence that a clause puts together what the contexts have in two parallel ones."""
    if not near:
        return ""
    near = near[:MOST_PARALLEL]
    rows = [pair for sentence in near for pair in pairwise(sentence.related.parts)]
    short = [sentence.related for sentence in near if len(sentence.related.parts) == 1]
    rows += permutations(short, 2)
    for clause in said.related.parts if rows else ():
        own = frozenset(clause.terms) - {""}
        for one, other in rows if len(own) > 1 else ():
            if (pair := crossed_pair(own, one, other)) is not None:
                return f"the contexts do not have {pair[0]!r} with {pair[1]!r}: {one.text[:80]} / {other.text[:80]}"
    return ""


def _has_verb(unit: TextUnit) -> bool:
    """Return whether a clause seems to have a verb: a small one, or a form in -s or -ed behind its first word."""
    said = _TOKEN.findall(unit.text)[1:]
    return any(word in words("verbs") or (word.islower() and word.endswith(("s", "ed"))) for word in said)


def _given_to_another(said: Sentence, near: list[Sentence]) -> str:
    """Return the evidence that a sentence tells of one thing what the contexts tell of another one.

    Both stand first in clauses of one sentence, and the clauses share a word ("A pays for the roof and B pays for
    the door"), or the sentence tells of the other thing what is the first one's.
    """
    own = [(unit.stems[0], frozenset(unit.stems[1:])) for unit in said.clauses if len(unit.stems) > 1]
    for sentence in near if own else ():
        if not any(rest <= sentence.whole.terms for _, rest in own):
            continue
        theirs = [(one.stems[0], one) for one in sentence.clauses if one.stems]
        for ours, rest in own:
            for first, one in theirs:
                if first == ours or not rest <= one.terms or ours in one.terms or any(first in it for _, it in own):
                    continue
                of_ours = [
                    other for other_first, other in theirs if other_first == ours and not rest <= other.terms
                ]
                is_parallel = (
                    len(rest) > 1
                    and all(first != it for it, _ in own)
                    and any(other.terms & one.terms & rest or _has_verb(other) for other in of_ours)
                )
                is_swapped = any(it == first and its & other.terms for other in of_ours for it, its in own)
                if is_parallel or is_swapped:
                    return f"the contexts have {first!r} in place of {ours!r}: {sentence.whole.text[:160]}"
    return ""


def _holds(unit: TextUnit, it: Specific) -> bool:
    if it.kind == "name":
        return all(word in unit.words or (len(word) < 3 and word.islower()) for word in _TOKEN.findall(it.shown))
    return any(one.key == it.key for one in _alike(unit, it))


def _share(unit: str, other: str) -> bool:
    """Return whether two units are of one dimension."""
    return unit == other or not {it.dimension for it in units().get(unit, ())}.isdisjoint(
        it.dimension for it in units().get(other, ())
    )


def _alike(unit: TextUnit, it: Specific) -> list[Specific]:
    """Return a unit's specifics of the same kind and unit."""
    return [
        one
        for one in unit.specifics
        if one.kind == it.kind and (one.unit == it.unit or _may_be_one(one, it) or it.kind == "date")
    ]


def _may_be_one(one: Specific, other: Specific) -> bool:
    """Return whether a number without a unit may have that of another one: none that counts something has."""
    return (not one.unit and (not one.noun or not other.unit)) or (not other.unit and not other.noun)
