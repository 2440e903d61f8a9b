"""What a text was made of, and the order of searches by what is shown."""

from __future__ import annotations

import pytest

from ragtrace.capture import Origin, Origins, by_first_shown

LOAN = Origin("Books may be kept for 28 days. Students have 12 weeks.", {"source": "loan.md", "score": 0.4})
FINE = Origin("A late fee is 0.50 euros a day. It ends at 20 euros.", {"source": "fine.md"})


@pytest.mark.parametrize(
    ("text", "facts", "places"),
    [
        ("Students have 12 weeks.", {}, [0]),
        ("STUDENTS\nHAVE 12 WEEKS", {}, [0]),
        ("Books may be kept for 28 days.\n...\nStudents have 12 weeks.", {}, [0]),
        (f"Title: fees\n{FINE.text}\nAsk the desk.", {}, [1]),
        (f"{LOAN.text}\n\n{FINE.text}", {}, [0, 1]),
        ("Books may be kept for 28 days. It ends at 20 euros.", {}, [0, 1]),
        ("Books may be kept for 28 days. Soup is served from 11 to 14.", {}, []),
        (f"{LOAN.text}\n\n{FINE.text}", {"source": "fine.md"}, [0, 1]),
        (f"{LOAN.text}\n\n{FINE.text}\n{'Soup is served from 11 to 14. ' * 5}", {"source": "fine.md"}, [1]),
        ("In short: 28 days, students 12 weeks.", {"source": "loan.md", "score": 0.9}, [0]),
        ("Bøker kan lånes i 28 dager.", {"source": "loan.md"}, []),
        ("Soup is served from 11 to 14.", {"source": "menu.md"}, []),
        ("", {}, []),
    ],
)  # fmt: skip
def test_the_passages_that_a_text_was_made_of(text, facts, places):
    assert Origins([LOAN, FINE]).of(text, facts) == places


def test_metadata_are_enough_where_a_model_wrote_the_text():
    finder = Origins([LOAN, FINE])
    assert finder.of("Bøker kan lånes i fire uker.", {"source": "loan.md"}, is_written=True) == [0]
    assert finder.of("In short: 28 days.", {"source": "loan.md"}, is_given=False) == []


def test_searches_in_the_order_in_which_they_are_shown():
    assert by_first_shown([["b1", "a1"], ["a1", "a2"]], ["a1", "a2", "b1"]) == ["a1", "a2", "b1"]
    assert by_first_shown([["x"], ["b1"], ["a1"]], ["a1", "b1"]) == ["x", "a1", "b1"]
    assert by_first_shown([["a1"], ["b1"]], []) == ["a1", "b1"]
