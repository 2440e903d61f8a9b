"""Clauses and quantities of the offline judge: what is said otherwise is sound, what differs in one fact is not.

The tables were written beside the reading that they hold; what it reaches on texts that nobody tuned it on stands in
docs/how-to/choose-a-judge.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ragtrace.judges.offline.clauses import clauses_of
from ragtrace.judges.offline.notation import normalise, readings
from ragtrace.judges.offline.specifics import measures_of
from tests.unit.judges.offline.scoring import results

if TYPE_CHECKING:
    from ragtrace.model import MetricResult

# A context and the same in another notation, unit, span, count or name of people.
SOUND: tuple[tuple[str, str], ...] = (
    ("Shipping costs kr 79 within Norway.", "Shipping within Norway is 79 kroner."),
    ("Shipping costs 79 kr within Sweden.", "Shipping within Sweden is SEK 79."),
    ("The annual fee is EUR 1.200.", "The annual fee is €1,200."),
    ("The plot measures 2.500 m².", "The plot measures 2,500 square metres."),
    ("The tank holds 1,5 litres.", "The tank holds 1.5 l."),
    ("The rent is 850,- euros a month.", "The rent is €850 per month."),
    ("The population is 83,2 million.", "The country has 83.2 million inhabitants."),
    ("The dam stores ₹1,50,00,000 worth of water.", "The dam stores 15 million rupees worth of water."),
    ("The project was awarded Rs. 3 crore.", "The project was awarded 30 million rupees."),
    ("The prize is 1.5 lakh rupees.", "The prize is 150,000 rupees."),
    ("The fare is CHF 4.20.", "The fare is 4.20 Swiss francs."),
    ("The fare is 4 francs 20.", "The fare is CHF 4.20."),
    ("Deliveries arrive between 8.30 and 17.00.", "Deliveries arrive between 8:30 am and 5 pm."),
    ("The train departs at 17h45.", "The train departs at 5:45 pm."),
    ("The train departs at 18.05.", "The train departs at 6:05 p.m."),
    ("The meeting starts at 14:00 hrs.", "The meeting starts at 2 pm."),
    ("The film runs for 135 minutes.", "The film runs for 2 hours 15 minutes."),
    ("The film runs 1h45.", "The film runs for 105 minutes."),
    ("She is 5 ft 7 in tall.", "She is about 170 cm tall."),
    ("The baby weighed 7 lb 8 oz.", "The baby weighed 3.4 kg."),
    ("The trip takes a fortnight.", "The trip takes two weeks."),
    ("The warranty is 18 months.", "The warranty is a year and a half."),
    ("Open Monday to Friday.", "It is open five days a week, Monday to Friday."),
    ("The fair runs from 3 to 17 May 2022.", "The fair runs from May 3 to May 17, 2022."),
    ("The camp runs from 10 July to 24 July.", "The camp lasts two weeks."),
    ("The lease began on 1 March 2020 and ended on 28 February 2022.", "The lease lasted two years."),
    ("The shop is open from 9 to 17.", "The shop is open for eight hours a day."),
    ("The subscription costs 9 euros a month.", "The subscription costs 108 euros a year."),
    ("The subscription costs 120 euros a year.", "The subscription comes to 10 euros a month."),
    ("Staff work 8 hours a day, Monday to Friday.", "Staff work 40 hours a week."),
    ("The wage is 15 euros an hour.", "For 10 hours the wage is 150 euros."),
    ("The colours on offer are red, green, blue and black.", "Four colours are on offer."),
    ("Colours: red, green, blue.", "There are three colours: red, green and blue."),
    ("The club has offices in Rome, Milan and Turin.", "The club has three offices."),
    ("Available sizes: S, M, L, XL.", "It is available in four sizes."),
    ("The final ended 88-71.", "The final was won by 17 points."),
    ("The team won 3-1.", "The team won by two goals."),
    ("Tickets cost 40 euros. Students get 25 % off.", "Students pay 30 euros."),
    ("Of 80 applicants, 20 were admitted.", "A quarter of the applicants were admitted."),
    ("Of 80 applicants, 20 were admitted.", "One in four applicants was admitted."),
    ("One third of the staff work part-time.", "33 % of the staff work part-time."),
    ("The tax rate is 0.5 percent.", "The tax rate is half a percent."),
    ("About two thirds of members voted.", "Some 67 percent of members voted."),
    ("Norwegians voted in September.", "The people of Norway voted in September."),
    ("The people of Norway eat a lot of fish.", "Norwegians eat a lot of fish."),
    ("Londoners use the Tube.", "People in London use the Tube."),
    ("The citizens of Vienna pay less.", "The Viennese pay less."),
    ("Berliners can vote online.", "Residents of Berlin can vote online."),
    ("The workshop is on Tues 4 Feb 2025.", "The workshop is on Tuesday, 4 February 2025."),
    ("The course runs Jan\u2013Mar.", "The course runs from January to March."),
    ("Payment is due on 2024-11-05.", "Payment is due on 5 Nov 2024."),
    ("Payment is due on 5.11.2024.", "Payment is due on November 5, 2024."),
    ("Payment is due on 05/11/24.", "Payment is due on 5 November 2024."),
    ("Membership was founded in the sixties.", "It was founded in the 1960s."),
    ("Ring us on +44 20 7946 0182.", "Call 020 7946 0182."),
    ("Call (030) 1234 5678 for help.", "Call 030 12345678 for help."),
    ("The hall is 25 m long and 12 m wide.", "The hall covers 300 square metres."),
    ("The box has 6 rows of 8 eggs.", "The box has 48 eggs."),
    ("The fine is £1.2k.", "The fine is £1,200."),
    ("The company earned $3bn.", "The company earned 3 billion dollars."),
    ("Entry costs 3 euros 50 cents.", "Entry costs €3.50."),
    ("It weighs 0.75 kg.", "It weighs 750 grams."),
    ("The speed limit is 80 km/h.", "The speed limit is 80 kilometres per hour."),
    ("It happens every second week.", "It happens every two weeks."),
    ("Pay in 12 monthly instalments of 50 euros.", "You pay 600 euros in total."),
    ("Three buses carry 50 children each.", "The three buses carry 150 children."),
    ("The lake froze at minus 5 °C.", "The lake froze at -5 degrees Celsius."),
    ("Bake at 180 °C.", "Bake at 356 °F."),
    ("The museum is open 24/7.", "The museum is open 24 hours a day, seven days a week."),
    ("The loan is 50 000 kroner.", "The loan is NOK 50,000."),
    ("The loan is kr 50.000.", "The loan is 50,000 kroner."),
    ("Rates rose from 3.25% to 3.75%.", "Rates rose by half a percentage point."),
    ("The average age is 42,7 years.", "The average age is 42.7."),
    ("Scores: Ann 8, Ben 6, Cid 10.", "The average score is 8."),
    ("Anna is 34 and Ben is 31.", "Anna is three years older than Ben."),
    ("Doors open at a quarter to seven.", "Doors open at 6:45."),
    ("A dozen people attended.", "Twelve people attended."),
    ("A couple of hours are needed.", "Two hours are needed."),
    ("Up to 1,000 guests fit in.", "The capacity is a thousand guests."),
    ("The hike is 10 miles.", "The hike is roughly 16 kilometres."),
    ("The order was placed on 3 June and arrived on 10 June.", "The order arrived one week later."),
    ("The ticket is valid for 72 hours.", "The ticket is valid for three days."),
    (
        "The first edition appeared in 1998, the second in 2005.",
        "The second edition appeared seven years after the first.",
    ),
    ("The vote was 12 for and 3 against.", "15 people voted."),
    ("Half the seats are free; the hall has 400 seats.", "200 seats are free."),
    ("The printer prints 30 pages per minute.", "The printer prints 1,800 pages an hour."),
    ("| Item | Price (EUR) |\n|---|---|\n| Lamp | 45 |\n| Chair | 80 |", "The lamp costs 45 euros."),
    ("| Dose | mg |\n|---|---|\n| Adults | 500 |", "Adults take 500 mg."),
    ("Prices in euros: adults 12, children 5.", "Adults pay 12 euros."),
    ("Length: 4.20 m. Width: 1.80 m.", "It is 4.2 metres long and 1.8 metres wide."),
    ("Notice period: three (3) months.", "The notice period is 3 months."),
    ("The course is aimed at children aged 8 to 12.", "It is for children between 8 and 12 years old."),
    ("Cancel at least 14 days before.", "Cancel at least two weeks before."),
    ("Interest is 4.5 % p.a.", "The yearly interest rate is 4.5 percent."),
)

# A context and an answer with a number of another unit, of another thing, or of another period.
INVENTED: tuple[tuple[str, str], ...] = (
    (
        "Returns are accepted within 30 days. The office is open from 8 to 18.",
        "Returns are accepted within 18 days.",
    ),
    ("The manual has 45 pages. The fee is low.", "The fee is 45 euros."),
    ("See page 45 for the fee.", "The fee is 45 euros (page 45)."),
    ("Room 12 is on floor 3.", "Room 12 is open for 3 hours."),
    ("The lift carries 8 people.", "The lift carries 8 tonnes."),
    ("The course has 12 lessons.", "The course takes 12 weeks."),
    ("Line 7 goes to the airport.", "Line 7 goes to the airport every 7 minutes."),
    ("The clinic opens at 8:30.", "The clinic opens at 8:30 and treats 30 patients a day."),
    ("The warranty is 24 months.", "The warranty is 24 months and covers 24 parts."),
    ("The event is on 12 May.", "The event is on 12 May and has 12 speakers."),
    ("Version 3.2 fixes the bug.", "Version 3.2 fixes the bug in 3.2 seconds."),
    ("The rent is 900 euros a month.", "The rent is 900 euros a week."),
    ("The pool is 25 metres long.", "The pool is 25 feet long."),
    ("The share rose to 12 percent.", "The share rose to 21 percent."),
    ("There are 3 colours: red, green and blue.", "There are 5 colours."),
    ("The concert starts at 19:30.", "The concert starts at 7:45 pm."),
    ("Ring the office.", "Ring the office on 020 7946 0000."),
    ("The fine is £3.50.", "The fine is £5.30."),
    ("Open Monday to Friday.", "Open Monday to Saturday."),
    ("The fee is 30 euros a month.", "The fee is 350 euros a year."),
    ("The survey ran from 3 to 17 May.", "The survey ran for three weeks in May."),
    ("The course has 12 lessons of 2 hours.", "The course takes 30 hours in all."),
    ("The ticket costs 12 euros.", "The ticket costs 12 euros, and children pay 6 euros."),
    ("The flight takes 2 hours.", "The flight takes 2 hours and 20 minutes."),
    ("He was born in 1960.", "He was born in 1960 and had 7 children."),
    ("Half of the users agreed.", "Three quarters of the users agreed."),
    ("The battery lasts for 10 hours.", "The battery lasts for 10 hours and charges in 90 minutes."),
    ("The lake is 3.2 km long.", "The lake is 32 km long."),
    ("The train leaves at noon.", "The train leaves at noon from platform 4."),
    ("Revenue was 1,250 million euros.", "Revenue was 12.5 million euros."),
)

# A context and an answer of which a clause says the opposite.
CONTRADICTED: tuple[tuple[str, str], ...] = (
    (
        "The garden is open to visitors in summer. Dogs must be kept on a lead.",
        "The garden is closed to visitors in summer, and dogs may run free.",
    ),
    ("Late payments are always fined.", "Late payments are never fined."),
    ("The password must contain a digit.", "The password need not contain a digit."),
    ("You need a visa for the trip.", "No visa is needed for the trip."),
    ("Smoking is forbidden on the terrace.", "You may smoke on the terrace."),
    ("The policy covers theft but not fire.", "The policy covers fire but not theft."),
    ("The app works offline.", "The app does not work offline."),
    ("The app works offline.", "The app only works with an internet connection, not offline."),
    ("The test is voluntary.", "The test is compulsory."),
    ("The museum is not suitable for wheelchairs, but the cafe is.", "The museum is suitable for wheelchairs."),
    (
        "The manager approves the request and the clerk files it.",
        "The clerk approves the request and the manager files it.",
    ),
    ("Ann is taller than Bea.", "Bea is taller than Ann."),
    ("The blue line is faster than the red line.", "The blue line is slower than the red line."),
    (
        "The contract was signed by Norwick and ended by Soltra.",
        "The contract was signed by Soltra and ended by Norwick.",
    ),
    ("Prices include VAT.", "Prices exclude VAT."),
    ("Close the valve before starting the pump.", "Close the valve after starting the pump."),
    ("All rooms have a balcony.", "None of the rooms has a balcony."),
    ("Every employee gets a laptop.", "Not every employee gets a laptop."),
    ("The offer is valid online.", "The offer is invalid online."),
    ("The offer is available to new customers only.", "The offer isn't available to new customers."),
    ("The heating is switched on in October.", "The heating is switched off in October."),
    ("The study found an increase in sales.", "The study found a decrease in sales."),
    (
        "Members can bring a guest and use the sauna for free.",
        "Members can't bring a guest or use the sauna for free.",
    ),
    (
        "The bridge is safe for lorries. It is lit at night.",
        "The bridge is unsafe for lorries and is not lit at night.",
    ),
    ("Guests may neither cook nor smoke in the rooms.", "Guests may cook in the rooms."),
    ("The dish contains nuts. It is served hot.", "The dish contains no nuts and is served cold."),
    ("Applications are accepted without a photo.", "Applications are not accepted without a photo."),
    ("Tickets can be refunded and exchanged.", "Tickets can be neither refunded nor exchanged."),
    (
        "The trail is open all year and leads to the summit.",
        "The trail is closed in winter and does not lead to the summit.",
    ),
    ("The file is deleted automatically.", "The file has to be deleted manually."),
    ("The seller pays for delivery.", "The buyer pays for delivery, not the seller."),
    ("Batteries are included. Assembly is required.", "Batteries aren't included, and no assembly is required."),
    ("The lecture is public. It is recorded.", "The lecture is private, and it isn't recorded."),
    ("Employees must report accidents within a day.", "Employees do not have to report accidents within a day."),
)


async def scored(answer: str, context: str) -> dict[str, MetricResult]:
    return await results(answer, context, metrics=("faithfulness", "invented_specifics"))


def verdicts(found: dict[str, MetricResult]) -> list[str]:
    claims: Any = found["faithfulness"].details["claims"]
    return [claim["verdict"] for claim in claims]


@pytest.mark.parametrize(("context", "answer"), SOUND, ids=[answer for _, answer in SOUND])
async def test_what_is_said_otherwise_is_neither_invented_nor_contradicted(context: str, answer: str) -> None:
    found = await scored(answer, context)
    assert found["invented_specifics"].details["invented"] == []
    assert "contradicted" not in verdicts(found)


@pytest.mark.parametrize(("context", "answer"), INVENTED, ids=[answer for _, answer in INVENTED])
async def test_a_number_of_another_thing_is_invented(context: str, answer: str) -> None:
    assert (await scored(answer, context))["invented_specifics"].value == 1.0


@pytest.mark.parametrize(("context", "answer"), CONTRADICTED, ids=[answer for _, answer in CONTRADICTED])
async def test_a_clause_that_says_the_opposite_is_not_supported(context: str, answer: str) -> None:
    found = await scored(answer, context)
    assert any(verdict != "supported" for verdict in verdicts(found))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("It is not safe and may not be sold.", [({"safe"}, True), ({"sold"}, True)]),
        ("Rooms without a view, which are cheap, may be booked.", [({"cheap"}, False), ({"book"}, False)]),
        ("It is neither safe nor legal.", [({"safe", "legal"}, True), ({"safe"}, True), ({"legal"}, True)]),
    ],
)
def test_each_clause_has_its_own_polarity(text: str, said: list[tuple[set[str], bool]]) -> None:
    found = [(set(clause.terms), clause.is_negated) for clause in clauses_of(normalise(text))]
    assert all(one in found for one in said), found


@pytest.mark.parametrize(
    ("written", "values"),
    [
        ("1.234.567,89 EUR", ["1234567.89"]),
        ("1'234'567.89 EUR", ["1234567.89"]),
        ("12,34,567 rupees", ["1234567"]),
        ("1 200,50 EUR", ["1200.50"]),
        ("1.250 EUR and 3,50 EUR", ["1250", "3.50"]),
        ("1.250 kg and 3.50 kg", ["1.25", "3.50"]),
        ("USD 2.5m", ["2500000"]),
        ("3 pounds 50", ["3.50"]),
        ("40 euros and 12 stamps", ["40", "12"]),
    ],
)
def test_a_number_has_one_value_in_the_notations_of_countries(written: str, values: list[str]) -> None:
    assert [it.key for it in measures_of(normalise(written)) if it.kind == "number"] == values


def test_a_number_whose_notation_is_open_has_both_values() -> None:
    assert (readings("1.250"), readings("1,250")) == (("1.25", "1250"), ("1250", "1.25"))
