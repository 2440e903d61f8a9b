"""What the applications find: a guide to a lake, pages of its town, rows and names. Each text has a name."""

from __future__ import annotations

TEXTS = {
    "pike": 'The oldest pike reached 33 years;\nit was caught in "Lough Ree" – tagged in 1982.',
    "pike_average": "Pike live 11 years on average; few reach 20.",
    "difference": "22",
    "ice": "Lake ice bears a person from 10 cm on;\n\tgrey ice is half as strong.",
    "thaw": "At 4 °C water is densest – that's why a lake freezes from above.",
    "wiki_ice": "Ice grows from the shore inwards, once the whole lake has cooled to 4 °C.",
    "perch": "Perch gather under the ice near reed beds, 3–5 m deep.",
    "wiki_perch": "The perch (Perca fluviatilis) feeds all winter, unlike the carp.",
    "rules": "Fishing through the ice is allowed from 15 January;\nholes are marked with a branch.",
    "dues": "A licence costs 12,50 € a day, and 80 € a year.",
    "mooring": 'A mooring costs 240 € a season; ask "Fru Åkesson" at the pier.',
    "page_ice": "Ice report of 3 December: 6 cm in the bay, open water off the pier. Do not enter.",
    "page_club": 'The skating club "Isfåglarna" measures each Friday and opens its track at 12 cm.',
    "page_town": "The town closes the beach from 1 November to 15 March; rescue: call 112.",
    "snip_law": "By-law 7: nobody enters the lake's ice before the town has opened it.",
    "snip_ice": "The ice is opened at 10 cm, measured at four places.",
    "snip_club": "Tickets for the track are sold at the kiosk, 3 € each.",
    "snip_fine": "Who enters closed ice pays a fine of 50 €, twice as much at night.",
    "table_fish": (
        "Schema of table fish:\nTable 'fish' has columns: name (VARCHAR), oldest (INTEGER), .\n"
        "Context of table fish:\nfish of the lake and the greatest age of each"
    ),
    "table_lakes": (
        "Schema of table lakes:\nTable 'lakes' has columns: name (VARCHAR), depth (INTEGER), .\n"
        "Context of table lakes:\nlakes of the county and their depths"
    ),
    "rows_fish": "[('pike', 33)]",
    "caption": "A map of the lake: the north basin is 41 m deep, the south basin 17 m.",
    "warden_2040": "The warden in the year 2040 is Jon Ek.",
    "warden_2050": "The warden in the year 2050 is Ida Moen.",
    "warden_2060": 'The warden in the year 2060 is Bo "the Rock" Ås.',
    "sentence_1": "The lake lies in a bowl of slate.",
    "sentence_2": "Its springs are 7 °C warm in every season.",
    "sentence_3": "They keep the ice thin along the east shore.",
    "sentence_4": "In March the snow on the ice turns grey.",
    "sentence_5": "Skaters then stay on the west side.",
    "web_council": (
        "On 9 January the council allowed skating until 22 h.\nLamps are put up along the west shore by the town."
    ),
    "table_depths": "| basin | depth |\n|---|---|\n| north | 41 m |\n| south | 17 m |",
    "paragraph": "The north basin was carved by a glacier, and is the colder of the two.",
    "name_band": "Alanis Morissette",
    "name_choir": "Aisha Duo",
    "name_other": "Alice In Chains",
    "tables": "Genre, Track",
    "schema": "CREATE TABLE Genre (GenreId INTEGER, Name TEXT)\n\nCREATE TABLE Track (GenreId INTEGER, Milliseconds INTEGER)",
    "rows_genres": "[('Sci Fi & Fantasy', 2911783.04), ('Science Fiction', 2625549.08)]",
    "summary": "Ice of 10 cm bears a person, since lakes freeze from above while the water below keeps 4 °C.",
    "web_results": str(
        {
            "query": "history of the ferry",
            "results": [
                {"url": "https://ferry.example/1", "content": "The ferry ran from 1891 to 1962."},
                {"url": "https://ferry.example/2", "content": "Its boiler stands in the museum."},
            ],
        }
    ),
    "ferry": "The steam ferry crossed the lake from 1891 to 1962; it burnt peat.",
    "boiler": "The ferry's boiler stands in the museum at Näs, open on Sundays.",
    "weather": "Sunny, −2 °C, no wind until noon.",
    "memory": "Anna likes smoked pike.",
    "restaurant": "The smokehouse at the pier serves pike from Thursday to Sunday.",
}
