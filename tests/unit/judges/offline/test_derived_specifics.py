"""Sound rewordings, each with the twin that is wrong, by the kind of reading that they need."""

from __future__ import annotations

import pytest

from ragtrace.judges import OverlapJudge
from ragtrace.metrics import EvalContext, evaluate, select
from tests import make

KINDS = [
    # a share of a unit
    (
        "Pour in 250 ml of milk.",
        "Pour in a quarter of a litre of milk.",
        "Pour in three quarters of a litre of milk.",
    ),
    ("The film lasts 135 minutes.", "The film lasts two and a quarter hours.", "The film lasts 3 1/4 hours."),
    ("The sack weighs 1.5 tonnes.", "The sack weighs 1½ tonnes.", "The sack weighs 2½ tonnes."),
    ("Pay a deposit of 20%.", "Pay a fifth as a deposit.", "Pay a tenth as a deposit."),
    # a time of day
    ("The talk begins at 19:10.", "The talk begins at ten past seven.", "The talk begins at twenty past seven."),
    ("The talk begins at 19:30.", "The talk begins at half seven.", "The talk begins at half nine."),
    ("The gate shuts at midnight.", "The gate shuts at 24:00.", "The gate shuts at 23:00."),
    ("The last bus goes at 23:15.", "The last bus goes at 11:15 at night.", "The last bus goes at 10:15 at night."),
    ("The pool is open from 7-10am.", "The pool is open from 07:00.", "The pool is open from 08:00."),
    # a year in words or with two digits
    ("The dam was built in 1987.", "The dam was built in nineteen eighty-seven.", "The dam was built in '89."),
    ("The 2019/20 season was cut short.", "The season 2019-2020 was cut short.", "The 2019-2021 season was short."),
    # what a length is after or before something
    ("The talk starts at 9:45 and lasts 90 minutes.", "The talk ends at 11:15.", "The talk ends at 11:45."),
    (
        "Work begins at 23:30 on Saturday and takes two hours.",
        "It ends at 1:30 on Sunday.",
        "It ends at 1:30 on Friday.",
    ),
    ("The invoice of 3 May is due in 14 days.", "It is due on 17 May.", "It is due on 27 May."),
    ("The lease starts on 1 June 2021 for three years.", "It ends on 31 May 2024.", "It ends on 30 April 2024."),
    ("Founded in 1950, the club closed 40 years later.", "The club closed in 1990.", "The club closed in 1985."),
    ("A decade later, in 1990, the club closed.", "The club opened in 1980.", "The club opened in 1970."),
    ("It is due on the last day of June.", "It is due on 30 June.", "It is due on 29 June."),
    # lengths, and ages
    ("Work began in May 1930 and ended in November 1932.", "It took two and a half years.", "It took four years."),
    ("The train leaves at 22:40 and arrives at 06:10.", "It takes 7.5 hours.", "It takes 9.5 hours."),
    ("Ida Moe was born on 2 May 1902. She won in 1969.", "She was 67 when she won.", "She was 57 when she won."),
    ("The fair is closed on Sundays.", "The fair is open six days a week.", "The fair is open four days a week."),
    # how often
    ("The bulletin comes out twice a year.", "It comes out every six months.", "It comes out every four months."),
    ("The bulletin comes out quarterly.", "It comes out four times a year.", "It comes out six times a year."),
    ("Take one tablet every 8 hours.", "Take three tablets a day.", "Take five tablets a day."),
    # sums, differences and counts
    ("The first prize is 500 euros, the second 300.", "Prizes add up to 800 euros.", "Prizes add up to 900 euros."),
    ("The team won 14, drew 6 and lost 10 matches.", "The team played 30 matches.", "The team played 32 matches."),
    (
        "The estimate was 52,000. The bill was 47,500.",
        "The bill was 4,500 under the estimate.",
        "It was 6,500 under it.",
    ),
    ("The kit has two cables, a charger and a manual.", "It has four items.", "It has six items."),
    ("Membership tripled to 900.", "Before, there were 300 members.", "Before, there were 400 members."),
    ("A box of 6 eggs costs 3 euros.", "An egg costs 50 cents.", "An egg costs 70 cents."),
    (
        "Lamb needs 480 minutes on low, half that on high.",
        "Allow 8 hours, or 4 on high.",
        "Allow 8 hours, or 6 on high.",
    ),
    # units
    ("Bake it at 180 °C.", "Bake it at 180 degrees.", "Bake it at 220 degrees."),
    ("Add 2 tablespoons of oil.", "Add 30 ml of oil.", "Add 50 ml of oil."),
    ("He is 1.88 m tall.", "He is 6'2\" tall.", "He is 6'5\" tall."),
    # names
    ("Residents of Glasgow like it.", "It is liked by Glaswegians.", "It is liked by Liverpudlians."),
    ("Professor William Cole teaches.", "Latin: Prof. Bill Cole teaches.", "Latin: Prof. Fred Cole teaches."),
]


@pytest.mark.parametrize(("context", "sound", "wrong"), KINDS, ids=[sound for _, sound, _ in KINDS])
async def test_what_follows_from_the_contexts_is_not_invented_and_its_twin_is(
    context: str, sound: str, wrong: str
) -> None:
    flagged = []
    for answer in (sound, wrong):
        record = make.record(context, query="What is told?", answer=answer)
        results = await evaluate(select(["invented_specifics"]), EvalContext(record, judge=OverlapJudge()))
        flagged.append(bool(results[0].value))
    assert flagged == [False, True]
