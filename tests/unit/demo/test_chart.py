"""The chart draws what it is given, in the cells it is given."""

from __future__ import annotations

from ragtrace.demo.chart import chart, running
from ragtrace.demo.progress import Point


def points(values: list[float]) -> list[Point]:
    return [Point(question=n, value=value) for n, value in enumerate(values, start=1)]


def draw(values: list[float], **changes: object) -> list[str]:
    options = {"total": 100, "width": 50, "height": 5, "baseline": 0.9, "incident_at": 51, **changes}
    return [line.plain for line in chart(points(values), **options)]  # type: ignore[arg-type]


def test_every_row_has_the_width_asked_for() -> None:
    for values in ([], [0.9] * 3, [0.9] * 100, [0.2] * 100):
        assert {len(line) for line in draw(values)} == {54}


def test_a_fall_is_drawn_lower() -> None:
    rows = draw([1.0] * 50 + [0.55] * 50)
    top, bottom = rows[0], rows[4]
    assert any("\u2800" < cell < "\u28ff" for cell in top[4:24])
    assert not any("\u2800" < cell < "\u28ff" for cell in bottom[4:24])
    assert any("\u2800" < cell < "\u28ff" for cell in bottom[44:])


def test_the_axis_begins_at_zero_when_it_has_to() -> None:
    assert draw([0.9] * 100)[4].startswith("0.5")
    assert draw([0.1] * 100)[4].startswith("0.0")


def test_the_axis_marks_the_incident() -> None:
    assert draw([0.9] * 60)[5].index("▲") == 4 + 25
    assert "▲" not in draw([0.9] * 60, incident_at=None)[5]


def test_the_line_ends_with_the_last_question_scored() -> None:
    line = running(points([1.0] * 40), total=100, columns=10)
    assert line[3] == 1.0
    assert line[4:] == [None] * 6
