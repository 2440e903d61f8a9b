"""Another number or date for the same thing is not supported; the right one in other words is."""

from __future__ import annotations

import pytest

from tests.cases.numbers.judging import judged

QUERY = "What is the rule?"

SHOP = (
    "Returns are accepted within 14 days of delivery. The warranty on all devices is 28 days. Orders above 50 euros ship "
    "for free, and a smaller order costs 4 euros to ship. Gift cards stay valid for 3 years."
)
HOTEL = (
    "Check-in begins at 15:00 and check-out ends at 11:00. Breakfast is served from 7:00 until 10:00 and costs 18 euros. "
    "Parking costs 12 euros a night. The pool closes at 21:00. Children below 6 stay for free."
)
PLANT = (
    "The plant was built in 1964 and modernised in 1998. It has 420 employees and makes 75,000 engines a year. "
    "The site covers 31 hectares and lies 12 km from the harbour."
)
LEAVE = (
    "Full-time staff have 25 days of annual leave. Sick leave must be reported within 2 days. Parental leave lasts 16 weeks. "
    "Requests for annual leave are answered within 5 working days."
)

FAQ = (
    "## Returns\nHow long can I return an item? You have 14 days from delivery.\n\n## Warranty\n"
    "How long is the warranty? Every device has a warranty of 28 months.\n\n## Refunds\n"
    "How long does a refund take? Refunds are paid within 7 days after the item has arrived."
)
SHIPPING = "Shipping times:\n- Standard shipping: 5 days\n- Express shipping: 2 days\n- Freight: 12 days"
PRICES = "The plans differ in their price and in the number of their seats.\n\n| Plan | Price a month | Seats |\n|---|---|---|\n| Basic | 10 euros | 3 |\n| Pro | 20 euros | 8 |\n| Team | 50 euros | 25 |"
LOAN = (
    "Books can be borrowed for 21 days and renewed twice. Films can be borrowed for 7 days and cannot be renewed. "
    "The fee for a late book is 20 cents a day; the fee for a late film is 1 euro a day. "
    "A card costs 15 euros a year for adults and 5 euros a year for students."
)

# context, an answer with another number or date for the same thing
CONTRADICTED = (
    ("Returns are accepted within 14 days.", "You can return it within 28 days."),
    ("The fee is 12 euros a month.", "You pay 15 euros each month."),
    ("The discount is 10 % for students.", "Students get 25 % off."),
    ("The course begins on 3 March 2024.", "The course starts on 13 March 2024."),
    ("The museum opens at 9:00 every day.", "You can visit the museum from 8:00."),
    ("You must be 18 to sign the contract.", "The contract can be signed from the age of 16."),
    ("The bridge was finished in 1932.", "The bridge was completed in 1937."),
    ("The lake is 40 km from the city.", "The city lies 60 km from the lake."),
    ("The hall seats 300 guests.", "There is room for 450 guests in the hall."),
    ("The password must have at least 12 characters.", "A password needs at least 8 characters."),
    ("The invoice is due on the 15th of each month.", "Invoices must be paid by the 20th of each month."),
    ("The battery lasts eight hours.", "The battery runs for twelve hours."),
    ("The tablet weighs 450 g.", "The weight of the tablet is 540 g."),
    ("The meeting is on Tuesday.", "The meeting takes place on Thursday."),
    ("The application closes in June.", "You can apply until August."),
    ("The interest rate is 3.5 %.", "The loan has an interest rate of 5.3 %."),
    ("The trial lasts 30 days.", "You can try it for 60 days."),
    ("A refund takes 5 working days.", "It takes 10 working days to get the refund."),
    ("The train leaves at 6:45 pm.", "The train departs at 7:15 pm."),
    ("The company was founded in 1998 by two brothers.", "Two brothers founded the company in 1989."),
    ("The server has 64 GB of memory.", "There are 32 GB of memory in the server."),
    ("Up to 5 users can share a licence.", "A licence can be shared by up to 8 users."),
    ("The speed limit in the tunnel is 80 km/h.", "You may drive 100 km/h in the tunnel."),
    ("Keep the vaccine at 4 °C.", "The vaccine has to be kept at 8 °C."),
    ("The dose is two tablets a day.", "Take four tablets every day."),
    ("The report is due on 31 May.", "The report has to be handed in by 30 April."),
    (SHOP, "You can return your order within 28 days of delivery."),
    (SHOP, "The warranty on a device is 14 days."),
    (SHOP, "Gift cards are valid for 14 years."),
    (SHOP, "It costs 50 euros to ship a smaller order."),
    (HOTEL, "Check-in begins at 11:00."),
    (HOTEL, "Breakfast costs 12 euros."),
    (HOTEL, "Parking is 18 euros a night."),
    (HOTEL, "The pool is open until 22:00."),
    (PLANT, "The plant was built in 1998."),
    (PLANT, "The plant has 75,000 employees."),
    (PLANT, "The harbour is 31 km away from the site."),
    (PLANT, "The plant makes 57,000 engines each year."),
    (LEAVE, "Annual leave for full-time staff is 16 days."),
    (LEAVE, "Sick leave has to be reported within 5 days."),
    (LEAVE, "Parental leave lasts 25 weeks."),
    (LEAVE, "You get an answer to a request for annual leave within 2 working days."),
)

# question, contexts, an answer with another number for the same thing: the question has it, or another passage
ASKED = (
    ("Can I return my order within 28 days?", ["Returns are accepted within 14 days."], "Yes, you can return your order within 28 days."),
    ("Is the warranty 36 months?", ["The device has a warranty of 24 months."], "Yes, the device has a warranty of 36 months."),
    ("Does the museum open at 8:00?", ["The museum opens at 9:00 every day."], "Yes, the museum opens at 8:00 every day."),
    ("Was the bridge finished in 1937?", ["The bridge was finished in 1932."], "The bridge was finished in 1937."),
    ("Do students get 25 % off?", ["Students get a discount of 10 %."], "Students get a discount of 25 %."),
    ("How long can I return my order?", ["Returns are accepted within 14 days.", "The warranty is 28 days."], "You can return your order within 28 days."),
    ("How long is the warranty?", ["Returns are accepted within 14 days.", "The warranty is 28 days."], "The warranty is 14 days."),
    ("How long is the return window?", ["The return window is 14 days. Exchanges are possible for 28 days."], "The return window is 28 days."),
    ("How long is the return window?", ["The return window is 14 days. Exchanges are possible for 28 days."], "It is 28 days."),
    ("What does the pro plan cost?", ["The basic plan costs 10 euros. The pro plan costs 20 euros. The team plan costs 50 euros."], "The pro plan costs 50 euros."),
    ("When was the hall opened?", ["The hall was opened on 3 May 1911. It burned down on 9 June 1940."], "The hall was opened on 9 June 1940."),
    ("When was the hall opened?", ["The hall was opened in 1911.", "The theatre was opened in 1940."], "The hall was opened in 1940."),
    ("How many rooms are there?", ["The hotel has 80 rooms and 200 beds."], "The hotel has 200 rooms."),
    ("How old must a driver be?", ["Drivers must be at least 21 years old; passengers must be at least 12 years old."], "Drivers must be at least 12 years old."),
    ("When do you close?", ["On weekdays we close at 20:00. On Saturdays we close at 16:00."], "On Saturdays we close at 20:00."),
    ("How long do transfers take?", ["Transfers within the country take 1 day. Transfers abroad take 4 days."], "Transfers abroad take 1 day."),
    ("How long can I return an item?", [FAQ], "You can return an item within 28 days of delivery."),
    ("How long can I return an item?", [FAQ], "You have 7 days from delivery to return an item."),
    ("How long can I return an item?", [FAQ], "28 days."),
    ("How long does a refund take?", [FAQ], "Refunds are paid within 14 days."),
    ("How long is the warranty?", [FAQ], "Every device has a warranty of 14 months."),
    ("How long does express shipping take?", [SHIPPING], "Express shipping takes 5 days."),
    ("How long does standard shipping take?", [SHIPPING], "Standard shipping takes 2 days."),
    ("How long does freight take?", [SHIPPING], "Freight takes 5 days."),
    ("What does Pro cost?", [PRICES], "The Pro plan costs 50 euros a month."),
    ("How many seats has Basic?", [PRICES], "The Basic plan has 8 seats."),
    ("How long can I keep a film?", [LOAN], "Films can be borrowed for 21 days."),
    ("How long can I keep a book?", [LOAN], "You can borrow a book for 7 days."),
    ("What does a late book cost?", [LOAN], "The fee for a late book is 1 euro a day."),
    ("What does a card cost for students?", [LOAN], "A card costs 15 euros a year for students."),
    ("What does a card cost for adults?", [LOAN], "Adults pay 5 euros a year for a card."),
    ("How long can I return it?", ["Returns are accepted within 14 days.", "Gift cards can be returned within 28 days."], "Returns are accepted within 28 days. Gift cards can be returned within 14 days."),
    ("Can I return it within 28 days?", ["Returns are accepted within 14 days of purchase."], "Yes, within 28 days."),
    ("Is parking 12 euros?", ["Parking costs 20 euros a night."], "Yes, it costs 12 euros."),
    ("What time does the shop close?", ["The shop opens at 9 am and closes at 6 pm."], "The shop closes at 9 am."),
    ("When did the war end?", ["The war began in 1618 and ended in 1648."], "The war ended in 1618."),
    ("When was she born?", ["She was born in 1950 and died in 2010."], "She was born in 2010."),
)  # fmt: skip

# context, an answer with the right number in other words
AGREEING = (
    ("Returns are accepted within 14 days.", "You can return it within 14 days."),
    ("The fee is 12 euros a month.", "The monthly fee is 12 euros."),
    ("The discount is 10 % for students.", "Students get a discount of 10 %."),
    ("The course begins on 3 March 2024.", "The course starts on 3 March 2024."),
    ("The bridge was finished in 1932.", "The bridge was finished in the year 1932."),
    ("The hall seats 300 guests.", "There are seats for 300 guests in the hall."),
    ("The password must have at least 12 characters.", "A password needs at least 12 characters."),
    ("The battery lasts eight hours.", "The battery lasts for 8 hours."),
    ("The tablet weighs 450 g.", "The weight of the tablet is 450 g."),
    ("The meeting is on Tuesday.", "The meeting will be on Tuesday."),
    ("The company was founded in 1998 by two brothers.", "Two brothers founded the company in 1998."),
    ("Up to 5 users can share a licence.", "A licence can be shared by up to 5 users."),
    (SHOP, "You can return your order within 14 days of delivery."),
    (SHOP, "The warranty on a device is 28 days."),
    (SHOP, "It costs 4 euros to ship a smaller order."),
    (HOTEL, "Check-in begins at 15:00."),
    (HOTEL, "Breakfast costs 18 euros."),
    (HOTEL, "Parking is 12 euros a night."),
    (PLANT, "The plant was built in 1964."),
    (PLANT, "The plant has 420 employees."),
    (LEAVE, "Annual leave for full-time staff is 25 days."),
    (LEAVE, "Parental leave lasts 16 weeks."),
)

# The judge compares words, and misses these. kind, context, an answer that says something else
MISSED = (
    ("roles", "The tenant pays the landlord a deposit.", "The landlord pays the tenant a deposit."),
    ("roles", "The nurse called the doctor.", "The doctor called the nurse."),
    ("place", "The lab moved from Lyon to Nantes.", "The lab moved from Nantes to Lyon."),
    ("person", "Ida Holm leads sales and Per Dahl leads support.", "Per Dahl leads sales."),
    ("person", "Ask Lena about invoices and Tom about contracts.", "Ask Tom about invoices."),
    ("reason", "The flight was late because of fog.", "The flight was late because of a strike."),
)
# The same, which it sees.
OTHER_KINDS = (
    ("negation", "Pets are allowed in the garden.", "Pets are not allowed in the garden."),
    ("negation", "The card cannot be used abroad.", "You can use the card abroad."),
    ("negation", "A receipt is required for a refund.", "You don't need a receipt for a refund."),
    ("negation", "The app works without an account.", "The app does not work without an account."),
    ("negation", "The lift never stops on the second floor.", "The lift stops on the second floor."),
    ("opposite", "The update makes the app faster.", "The app becomes slower with the update."),
    ("opposite", "Payment is due before delivery.", "You pay after delivery."),
    ("opposite", "Entry is free on Sundays.", "On Sundays you have to pay for entry."),
    ("opposite", "The shop is closed on holidays.", "The shop is open on holidays."),
    ("opposite", "Profits rose in the last quarter.", "Profits fell in the last quarter."),
    ("roles", "Apex bought Solvay in the spring.", "Solvay bought Apex in the spring."),
    ("roles", "Norway beat Sweden in the final.", "Sweden beat Norway in the final."),
    ("place", "The fair takes place in Hamburg. The office is in Munich.", "The fair takes place in Munich."),
    ("place", "Parcels are sent from Rotterdam.", "Parcels are sent from Antwerp."),
    ("person", "The novel was written by Clara Voss.", "The novel was written by Emil Brandt."),
    ("quantifier", "Some rooms have a balcony.", "All rooms have a balcony."),
    ("quantifier", "At least three people must sign.", "At most three people must sign."),
    ("quantifier", "Only members may vote.", "Everyone may vote."),
)  # fmt: skip


def test_another_number_or_date_for_the_same_thing_is_not_supported() -> None:
    found = judged([(QUERY, context, answer) for context, answer in CONTRADICTED])
    wrong = [
        (answer, one.faithfulness)
        for (_, answer), one in zip(CONTRADICTED, found, strict=True)
        if not one.is_unsupported or not {"contradicted", "not_supported"} & set(one.verdicts)
    ]
    assert wrong == []


def test_a_number_of_the_question_or_of_another_thing_is_not_supported() -> None:
    found = judged(ASKED)
    wrong = [
        (answer, one.faithfulness)
        for (_, _, answer), one in zip(ASKED, found, strict=True)
        if not one.is_unsupported or not {"contradicted", "not_supported"} & set(one.verdicts)
    ]
    assert wrong == []


def test_the_right_number_in_other_words_is_supported() -> None:
    found = judged([(QUERY, context, answer) for context, answer in AGREEING])
    wrong = [
        (answer, one.faithfulness)
        for (_, answer), one in zip(AGREEING, found, strict=True)
        if not one.is_supported or set(one.verdicts) != {"supported"}
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("kind", "context", "answer"),
    [
        *OTHER_KINDS,
        *(
            pytest.param(
                *row, marks=pytest.mark.xfail(strict=False, reason=f"{row[0]}: a judge of words misses it")
            )
            for row in MISSED
        ),
    ],
)
def test_a_contradiction_of_another_kind_is_not_supported(kind: str, context: str, answer: str) -> None:
    (found,) = judged([(QUERY, context, answer)])
    assert found.is_unsupported
