"""Reads what a sentence relates: who does what to whom, what comes first, and which of two has more."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from ragtrace.judges.offline.tables import table, words
from ragtrace.judges.offline.words import irregular, stem, verb_forms

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence

MOST_TOKENS = 120  # of a sentence; what is behind them relates nothing
MOST_VERBS = 16  # words that may be a verb with two things around it
LEAST_SHARED = 0.7  # of the terms of a clause, without which it tells of something else
LEAST_OF_SEVERAL = 0.5  # the same of a sentence of several clauses
MOST_PAIRS = 6  # relations of one kind of a sentence
LONGEST_SIDE = 14  # words on either side of a relation
_TOKEN = re.compile(r"[^\W_]+(?:[.:]\d+)*(?:'[^\W_]+)?|[,;:()!?\u2013\u2014]")
_BREAKS = frozenset(
    {";", ":", "(", ")", "!", "?", "\u2013", "\u2014", "but", "while", "whereas", "although", "though", "because"}
)
_JOINS = frozenset({",", "and", "or", "&", "nor"})
_RELATIVES = frozenset({"who", "which", "whom", "that"})
_BE = frozenset({"is", "are", "was", "were", "be", "been", "being", "get", "gets", "got"})
_BETWEEN = frozenset(
    {"not", "also", "been", "being", "only", "now", "still", "always", "never", "all", "both", "first"}
)
_FLOATING = frozenset({"all", "each", "both", "he", "she", "it", "they", "we", "you", "i", "who"})
_BEHIND_VERBS = frozenset({"over", "up", "down", "out", "off", "away", "back"})
_OF_TIME = frozenset({"in", "since", "on", "by", "until"})
_SAME_ROLE = {"into": "to", "onto": "to", "toward": "to", "towards": "to"}
_NO_ROLE = frozenset({"than", "as", "before", "after", "and"})  # what others read, or what is alike at either side


class _Order(NamedTuple):
    """Two sides of a relation: what has more, or comes first, and what has less, or comes later."""

    first: frozenset[str]
    second: frozenset[str]
    family: frozenset[str] = frozenset()


class _Role(NamedTuple):
    """Subject, object, or the preposition before a term, and the term of the same noun that it stands before."""

    name: str
    behind: str = ""


@dataclass(frozen=True)
class Related:
    """Relations in a normalised sentence, read when they are first asked for."""

    text: str

    @cached_property
    def tokens(self) -> list[str]:
        """Its words and marks in lower case."""
        return [it[0] for it in _TOKEN.finditer(self.text.lower())][:MOST_TOKENS]

    @cached_property
    def terms(self) -> list[str]:
        """The stem of each token, "" of a mark or a small word."""
        small = _small()
        first = irregular()
        return ["" if word in small else stem(first.get(word, word)) for word in self.tokens]

    @cached_property
    def _marked(self) -> list[tuple[str, int, int]]:
        """For each token the preposition before it, its place, and the number of its clause."""
        found: list[tuple[str, int, int]] = []
        mark, at, clause, begin, was_term = "", -1, 0, 0, False
        kinds, terms, tokens, is_relative = _kinds(), self.terms, self.tokens, False
        for i, word in enumerate(tokens):
            kind = kinds.get(word)
            if kind is not None:
                if kind == "break" or (kind == "comma" and is_relative):
                    mark, at, clause, begin = "", -1, clause + 1, i + 1
                    is_relative = word in _RELATIVES
                elif kind == "preposition":
                    mark, at = _SAME_ROLE.get(word, word), i
                elif (kind == "verb" or (kind == "determiner" and was_term)) and tokens[i - 1] != "of":
                    mark, at = "", i
                elif kind == "comma" and at == begin:
                    mark, at = "", i  # "In the final, they"
            elif at == begin and mark in _OF_TIME and terms[i] and tokens[i - 1].isdigit():
                mark, at = "", i  # "In 2016 they"
            found.append((mark, at, clause))
            was_term = bool(terms[i])
        return found

    @cached_property
    def outline(self) -> list[tuple[str, str]]:
        """The terms in order, each with its preposition; sentences with one outline relate the same."""
        return [(term, self._marked[i][0]) for i, term in enumerate(self.terms) if term]

    @cached_property
    def parts(self) -> tuple[Related, ...]:
        """Its clauses, at commas and conjunctions."""
        cuts = [i for i, word in enumerate(self.tokens) if word in _JOINS or word in _BREAKS]
        if not cuts:
            return (self,)
        found = []
        for begin, end in pairwise([-1, *cuts, len(self.tokens)]):
            if end - begin > 1:
                part = Related(" ".join(self.tokens[begin + 1 : end]))
                part.__dict__.update(tokens=self.tokens[begin + 1 : end], terms=self.terms[begin + 1 : end])
                found.append(part)
        return tuple(found)

    @cached_property
    def verbs(self) -> Mapping[str, list[int]]:
        """The terms that may be a verb with a noun on either side, and their places."""
        found: dict[str, list[int]] = {}
        for i, term in enumerate(self.terms):
            if term and term not in _mutual() and self._may_be_verb(i):
                found.setdefault(term, []).append(i)
        return found

    def roles_around(self, verb: str, wanted: Container[str]) -> Iterator[dict[str, _Role]]:
        """Yield for each place of a verb the roles of some terms."""
        for at in self.verbs.get(verb, ()):
            yield self._roles(at, wanted)

    def _may_be_verb(self, at: int) -> bool:
        before = self.tokens[at - 1] if at else ","
        behind = self.tokens[at + 1] if at + 1 < len(self.tokens) else ""
        is_noun = (
            before in _JOINS
            or (before in words("determiners") and before not in _FLOATING)
            or before in words("prepositions")
            or behind in _JOINS
            or before[0].isdigit()
        )
        is_bare = not self.tokens[at].endswith(("s", "ed", "ing")) and self.tokens[at] not in _irregular_forms()
        is_within = is_bare and bool(at and self.terms[at - 1] and self.terms[at + 1 : at + 2] not in ([], [""]))
        return not is_noun and not is_within

    def _named_behind(self, at: int, verb: int) -> str:
        """Return the term that a term stands before: "" of the last one of its noun."""
        behind = self.terms[at + 1] if at + 1 < len(self.terms) else ""
        return "" if at + 1 == verb else behind

    @cached_property
    def has_by(self) -> bool:
        """Whether it may tell who does something behind what is done."""
        return "by" in self.tokens

    @cached_property
    def least_shared(self) -> float:
        """The share of its terms that a sentence has at least, of which one of its clauses may tell the same."""
        return LEAST_SHARED if not self._marked or self._marked[-1][2] == 0 else LEAST_OF_SEVERAL

    def share_around(self, verb: str, held: frozenset[str]) -> float:
        """Return the share of the terms in the clause of a verb that are held."""
        clause = self._marked[self.verbs[verb][0]][2]
        its = [term for i, term in enumerate(self.terms) if term and self._marked[i][2] == clause]
        return sum(term in held for term in its) / len(its)

    def _is_passive(self, at: int) -> bool:
        if self.tokens[at].endswith("ing"):
            return False
        if self.tokens[at + 1 : at + 2] == ["by"]:
            return True
        for word in reversed(self.tokens[max(0, at - 4) : at]):
            if word in _BE:
                return True
            if word not in _BETWEEN and not word.endswith("ly"):
                return False
        return False

    def _roles(self, at: int, wanted: Container[str]) -> dict[str, _Role]:
        is_passive = self._is_passive(at)
        clause = self._marked[at][2]
        found: dict[str, _Role] = {}
        begin = next((i for i in range(at, -1, -1) if self._marked[i][2] != clause), -1) + 1
        is_relative = self.tokens[begin] in _RELATIVES
        is_of_object = is_relative and begin + 1 < at and self.tokens[begin + 1] in words("determiners")
        if is_relative and begin:
            before = next((self.terms[i] for i in range(begin - 1, -1, -1) if self.terms[i]), "")
            if before in wanted:
                found[before] = _Role("object" if is_of_object or is_passive else "subject")
        for i in range(begin, len(self.tokens)):
            mark, place, its = self._marked[i]
            if its != clause:
                break
            term = self.terms[i]
            if not term or i == at or term in found or term not in wanted:
                continue
            if mark and (i < at or place > at) and not (place == at + 1 and mark in _BEHIND_VERBS):
                role = "subject" if is_passive and mark == "by" else mark
            elif i < at:
                if is_relative and not is_of_object:
                    continue
                role = "object" if is_passive and not is_of_object else "subject"
            else:
                role = "object"
            found[term] = _Role(role, self._named_behind(i, at))
        return found

    @cached_property
    def slots(self) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
        """Its small words without determiners, and the terms before, between and behind them."""
        between: list[str] = []
        groups: list[list[str]] = [[]]
        for word, term in zip(self.tokens, self.terms, strict=True):
            if term:
                groups[-1].append(term)
            elif word[0].isalnum() and word not in words("determiners"):
                between.append(word)
                groups.append([])
        return tuple(between), tuple(map(tuple, groups))

    @cached_property
    def compared(self) -> list[_Order]:
        """Comparisons of two things: "A is taller than B", "B is not as tall as A"."""
        found: list[_Order] = []
        for i, word in enumerate(self.tokens):
            if word not in {"than", "as"} or len(found) >= MOST_PAIRS:
                continue
            degree = self._degree(i) if word == "than" else self._not_as(i)
            if degree is None:
                continue
            sign, family, place = degree
            own = family | {self.terms[place]}
            between = self._between(place + 1, i) if word == "than" else frozenset()
            left, right = (self._side(place, -1) | between) - own, self._side(i, 1) - own
            if left - right and right - left:
                found.append(_Order(left, right, family) if sign > 0 else _Order(right, left, family))
        return found

    def _degree(self, than: int) -> tuple[int, frozenset[str], int] | None:
        """Return the sign, what is measured, and the place of the word of degree before "than"."""
        for i in range(than - 1, max(-1, than - 7), -1):
            word = self.tokens[i]
            if word in _BREAKS or word == ",":
                return None
            sign, family = _degrees().get(word, (0, frozenset()))
            if not sign:
                continue
            if _AMOUNT in family:
                behind = [self.tokens[j] for j in range(i + 1, than) if self.terms[j]]
                other, its = _degrees().get(behind[0], (0, frozenset())) if behind else (0, frozenset())
                if other:
                    sign, family = sign * other, its
                elif len(behind) == 1:
                    family = frozenset({stem(behind[0])})
            elif i and self.tokens[i - 1] in {"more", "less"}:
                sign *= 1 if self.tokens[i - 1] == "more" else -1
            if not {"not", "no", "never"}.isdisjoint(self.tokens[max(0, i - 4) : i]):
                sign = -sign
            return sign, family, i
        word = self.tokens[than - 1] if than else ""
        return (1, frozenset({stem(word)}), than - 1) if word.endswith("er") and len(word) > 4 else None

    def _not_as(self, at: int) -> tuple[int, frozenset[str], int] | None:
        """Read "not as tall as", at its second "as"."""
        for i in range(at - 1, max(0, at - 4), -1):
            if self.tokens[i] in {"as", "so"}:
                if {"not", "never", "less"}.isdisjoint(self.tokens[max(0, i - 3) : i]):
                    return None
                word = self.tokens[i + 1]
                sign, family = _degrees().get(word, (1, frozenset({stem(word)})))
                return -sign, family, i + 1
        return None

    def _between(self, start: int, end: int) -> frozenset[str]:
        return frozenset(filter(None, self.terms[start:end]))

    def _side(self, at: int, step: int) -> frozenset[str]:
        """Return the terms on one side of a place, to the end of the clause."""
        found: set[str] = set()
        i = at + step
        while 0 <= i < len(self.tokens) and abs(i - at) <= LONGEST_SIDE:
            word = self.tokens[i]
            if word in _BREAKS or (word == "," and found) or word in {"than", "before", "after"}:
                break
            if self.terms[i]:
                found.add(self.terms[i])
            i += step
        return frozenset(found)

    @cached_property
    def ordered(self) -> list[_Order]:
        """Orders of two things: "A before B", "after B, A", "first A, then B"."""
        found: list[_Order] = []
        for i, word in enumerate(self.tokens):
            sign = _SEQUENCE.get(word, 0)
            if not sign or len(found) >= MOST_PAIRS:
                continue
            behind = self._side(i, 1)
            is_first = i == 0 or self.tokens[i - 1] in _BREAKS or (i < 2 and self.tokens[0] in {"only", "not"})
            if is_first:
                end = next((j for j in range(i + 1, len(self.tokens)) if self.tokens[j] == ","), -1)
                other = self._side(end, 1) if end > 0 else frozenset()
            else:
                other = self._side(i - 1, -1) | self._between(i - 1, i) if word == "then" else self._side(i, -1)
            if word == "then" and is_first:
                continue
            first, second = (other, behind) if sign > 0 else (behind, other)
            if first - second and second - first:
                found.append(_Order(first, second))
        return found


COMPARED, ORDERED = "compared", "ordered"
_AMOUNT = "more"
_SEQUENCE = {
    "before": 1, "then": 1, "precedes": 1, "preceded": 1, "precede": 1, "prior": 1, "afterwards": 0,
    "after": -1, "following": -1, "follows": -1, "once": -1,
}  # fmt: skip
ORDERING: Mapping[str, frozenset[str]] = {  # the words, stemmed, of which one makes an order
    COMPARED: frozenset({"than", "as"}), ORDERED: frozenset(map(stem, _SEQUENCE)),
}  # fmt: skip


@cache
def _small() -> frozenset[str]:
    """Return the words that relate, and those that tell nothing."""
    tables = ("english", "prepositions", "determiners", "verbs", "unrelated")
    return frozenset().union(*map(words, tables), _JOINS, _BREAKS, _RELATIVES, _BE)


@cache
def _kinds() -> Mapping[str, str]:
    """Return for each small word what it does to the part of the nouns behind it."""
    found = dict.fromkeys(words("determiners"), "determiner")
    found.update(dict.fromkeys((*words("verbs"), *_BE), "verb"))
    found.update(dict.fromkeys(words("prepositions") - {"of"}, "preposition"))
    found.update(dict.fromkeys((*_BREAKS, *_RELATIVES), "break"))
    return {**found, ",": "comma"}


@cache
def _irregular_forms() -> frozenset[str]:
    return frozenset((*irregular(), *irregular().values()))


@cache
def _degrees() -> Mapping[str, tuple[int, frozenset[str]]]:
    """Return for each word of degree its sign, and the first words of its pairs."""
    found: dict[str, tuple[int, frozenset[str]]] = {}
    for pair in " ".join(table("words.txt")["degrees"]).split():
        left, right = (side.split("/") for side in pair.split(":"))
        for sign, side in ((1, left), (-1, right)):
            for word in side:
                before, families = found.get(word, (sign, frozenset()))
                found[word] = (before, families | {left[0]} if before == sign else families)
    return found


_AMOUNTS = frozenset({"high", "long", "large", "expensive", "often", "heavy", _AMOUNT})


def _may_be_one(family: frozenset[str], other: frozenset[str]) -> bool:
    """Return whether two words of degree measure the same. "More" measures whatever grows with an amount."""
    if _AMOUNT in family | other:
        return bool(family & _AMOUNTS) and bool(other & _AMOUNTS)
    return family == other or not family.isdisjoint(other)


def relate_otherwise(ours: Sequence[_Order], theirs: Sequence[_Order]) -> bool | None:
    """Return whether two sentences order the same two things otherwise; None where they do not order the same.

    Example:
        >>> texts = ("A cat is older than a dog", "Dogs are younger than cats")
        >>> said, held = (Related(text).compared for text in texts)
        >>> relate_otherwise(said, held)
        False
    """
    for our in ours:
        for their in theirs:
            if not _may_be_one(our.family, their.family):
                continue
            first, second = our.first - our.second, our.second - our.first
            their_first, their_second = their.first - their.second, their.second - their.first
            straight = (len(first & their_first), len(second & their_second))
            crossed = (len(first & their_second), len(second & their_first))
            if all(crossed) and not all(straight):
                return True
            if all(straight) and not all(crossed):
                return False
    return None


def roles_differ(ours: Related, theirs: Related, shared: frozenset[str]) -> tuple[str, str] | bool | None:
    """Return two terms that have changed places around a verb; False where they stand alike, None where none do.

    Example:
        >>> texts = ("The cat chased the dog", "The dog chased the cat", "The cat was chased by the dog")
        >>> said, *held = (Related(text) for text in texts)
        >>> [roles_differ(said, one, frozenset(said.terms) - {""}) for one in held]
        [('cat', 'dog'), ('cat', 'dog')]
    """
    mine_all, theirs_all = ([it for it in one.outline if it[0] in shared] for one in (ours, theirs))
    is_in_order = [term for term, _ in mine_all] == [term for term, _ in theirs_all]
    marks = [sorted(mark for _, mark in its) for its in (mine_all, theirs_all)]
    if is_in_order and not ours.has_by and not theirs.has_by and (mine_all == theirs_all or marks[0] != marks[1]):
        return False
    is_alike = False
    for verb in sorted(shared & ours.verbs.keys() & theirs.verbs.keys())[:MOST_VERBS]:
        if ours.share_around(verb, shared) < LEAST_SHARED:
            continue
        others = shared - {verb}
        for mine in ours.roles_around(verb, others):
            if len({role.name for role in mine.values()}) < 2:
                continue
            for its in theirs.roles_around(verb, others):
                both = sorted(mine.keys() & its.keys())
                for i, one in enumerate(both):
                    for other in both[i + 1 :]:
                        ours_of, theirs_of = (mine[one], mine[other]), (its[one], its[other])
                        if len({role.name for role in ours_of}) < 2 or any(
                            role.name in _NO_ROLE for role in ours_of
                        ):
                            continue
                        if [role.name for role in ours_of] == [role.name for role in theirs_of]:
                            is_alike = True
                        elif [role.name for role in ours_of] == [role.name for role in theirs_of[::-1]] and all(
                            first.behind == second.behind for first, second in (ours_of, theirs_of)
                        ):
                            return (one, other)
    return False if is_alike else None


def _split(left: tuple[str, ...], right: tuple[str, ...]) -> list[tuple[list[str], list[str]]]:
    """Return what stands between the terms that two rows share; the rows whole where these do not fit."""
    shared = set(left) & set(right)
    rows: list[list[list[str]]] = []
    for row in (left, right):
        parts: list[list[str]] = [[]]
        for term in row:
            if term in shared:
                parts.append([])
            else:
                parts[-1].append(term)
        rows.append(parts)
    return list(zip(*rows, strict=True)) if len(rows[0]) == len(rows[1]) else [(list(left), list(right))]


def crossed_pair(said: frozenset[str], one: Related, other: Related) -> tuple[str, str] | None:
    """Return a term of either part of two parallel ones that a claim puts together, without what belongs to them.

    Example:
        >>> parts = Related("Ann works in Oslo for Norvik"), Related("in Rome for Sol")
        >>> [crossed_pair(frozenset(said), *parts) for said in ({"ann", "oslo", "sol"}, {"oslo", "norvik"})]
        [('oslo', 'sol'), None]
    """
    (marks, groups), (other_marks, other_groups) = one.slots, other.slots
    n = len(other_marks)
    if marks[len(marks) - n :] != other_marks or len(marks) < n:
        return None
    first, second = groups[-n - 1 :], other_groups
    lead = len(second[0])
    aligned = [
        (first[0][len(first[0]) - lead :] if lead else (), second[0]),
        *zip(first[1:], second[1:], strict=True),
    ]
    pairs = [(frozenset(left), frozenset(right)) for its in aligned for left, right in _split(*its)]
    pairs = [(left - right, right - left) for left, right in pairs if left - right and right - left]
    for i, (left, its) in enumerate(pairs):
        for right, theirs in (pair for j, pair in enumerate(pairs) if j != i):
            if left & said and theirs & said and not (right & said or its & said):
                return min(left & said), min(theirs & said)
    return None


@cache
def _mutual() -> frozenset[str]:
    """Return the verbs that hold in both directions: "A meets B"."""
    return frozenset(form for word in words("mutual") for form in verb_forms(word))
