"""What the applications find: a guide to a lake, pages of its town, rows and names. Each text has a name."""

from __future__ import annotations

FOG = (
    "Fog lies on the bay in most of October. The foghorn at the pier sounds twice a minute then, "
    "and boats keep to the lane that buoys mark. In a storm the horn is silent."
)

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
    # of the third draw
    **{f"fog_{place}": FOG[start : start + 60] for place, start in enumerate(range(0, len(FOG), 40))},
    "blue": "The lake looks blue since water swallows red light first.",
    "reed": "Reeds clean the water; their roots hold the mud of the shore.",
    "warm": 'Since 1960 the lake\'s surface has warmed by 1,7 °C ("Näs series").',
    "essay_boats": (
        "The boats of the lake are built of larch, plank on plank.\n\n"
        "A hull lasts forty years where it is tarred each spring."
    ),
    "essay_nets": (
        "Nets are hung to dry on the north side of the sheds.\n\nA torn net is mended with birch needles, at night."
    ),
    "asked_boats_1": "Which wood are the lake's boats made of?",
    "asked_boats_2": "For how long can a tarred hull be used?",
    "asked_nets_1": "Where are the nets dried?",
    "asked_nets_2": "What is a net mended with?",
    "mill": "The mill at the outlet ground rye from 1740 on; its wheel had 24 paddles.",
    "dam": "The dam above the mill was raised twice – in 1802 and in 1871.",
    "outlet": 'The outlet is called "Kvarnån"; it leaves the lake at its south end.',
    "smelt": "Smelt spawn in April, at the mouths of streams; they eat opossum shrimps.",
    "shrimps": "Opossum shrimps live on the ground of the lake, and rise to the surface at night.",
    "sauna": "The public sauna stands on the east shore and is heated on Fridays.",
    "eels": "Eels leave for the sea when they are 15 years old.",
    "calendar": "Available times on 16 May: 9:00, 14:00, 16:00",
    "policy": (
        "1. A ticket of the economy class may be cancelled until 24 hours before the ferry leaves.\n\n"
        "2. Half of the fare is paid back, within a week."
    ),
    "page_freezing": (
        "The lake was frozen on 97 days of a year around 1900, and on 41 days around 2020.\n\n"
        "The museum's shop sells postcards of skaters."
    ),
    "page_races": "Horse races were held on the lake until 1931.\n\nThe winner got a silver cup and a cheese.",
    "page_trend": (
        "Each decade takes five days of ice; the last full freeze was in 2011.\n\nSubscribe to our newsletter."
    ),
    "page_buoys": (
        "Two buoys have measured the freezing point since 1998, at 1 m and at 30 m.\n\nTours start at the pier."
    ),
    "page_inflow": (
        "Warm water of the paper mill reaches the lake, 12 m³ a second.\n\nThe mill employs 300 people."
    ),
    "chapter_8": "Chapter: The keeper Ask lets the lock stand open for a night, and the meadow is flooded.",
    "lock_night": 'Ask wrote into the book: "Lock left open, 14 April", and went to bed at nine.',
    "quote_guilt": '"It was I who left it open," said Ask.',
    "quote_meadow": '"The meadow is a mirror," said Rut, "and it\'s your doing."',
    "rows_purchases": "[(98, 1, '2026-03-11', 'Näs', 3.98), (12, 1, '2025-09-02', 'Näs', 0.99)]",
    "rows_albums": "[{'Title': 'War', 'Name': 'U2'}, {'Title': 'Zooropa', 'Name': 'U2'}]",
    "rows_towns": "[('Storby', 41000)]",
    "storby_arts": "Storby's glass is blown in nine huts, and shown in the old customs house.",
    "storby_quay": "On the quay of Storby puppets play from June on.",
    "lillby_arts": "In Lillby wood is carved.",
    "web_history": str(
        {
            "query": "history of the lighthouse",
            "results": [
                {"url": "https://light.example/1", "content": "The lighthouse was lit on 3 November 1857."},
                {
                    "url": "https://light.example/2",
                    "content": "Electric light came in 1949; nobody lives there now.",
                },
            ],
        }
    ),
    # of the fourth draw
    "nets_gill": 'Gill nets of at least 40 mm are allowed from June on; "drifting" ones are not.',
    "nets_trap": "Trap nets need a permit – the office at Näs gives them out.",
    "nets_shop": "The shop at the ramp sells floats and lead lines.",
    "nets_museum": "A net of nettle yarn hangs in the museum; it is 300 years old.",
    "nets_bank": "West of the bank the ground is stony.",
    "race_founded": (
        "The first regatta of the lake was sailed in 1887, by nine boats with tan sails. "
        "In 1911 motor boats were shut out."
    ),
    "race_women": "Since 1974 women steer boats of their own; one of them won at once.",
    "race_course": "The course is a triangle around three buoys, and takes two hours in a good wind.",
    "paper_found": (
        "* ID: 7741,\n* Title: Depth of smelt in warming lakes,\n* Published Date: 2021-03-02,\n"
        "* Authors: Berg, Tove and Lund, Per,\n* Abstract: We followed shoals by echo sounder in 2014–2019.,\n"
        "* Paper URLs: ['https://papers.example/7741.pdf']"
    ),
    "paper_text": (
        "Depth of smelt in warming lakes\nIn six summers the shoals sank from 9 m to 15 m.\n"
        'None was met above 16 °C ("the lid").'
    ),
    "mole_built": "The mole of Näs was built by convicts, from 1861 to 1868.",
    "mole_storm": "A storm broke its head in 1902; granite was put in place of oak.",
    "mole_rented": "Since 1990 anglers rent it by the day, for 4 €.",
    "page_layer": "Smelt shun warm water. In July they stand at 14 m, under the layer that the sun has warmed.",
    "page_springs": "Off Näs cold springs rise from 20 m. Divers meet shoals of smelt there until September.",
    "regatta_2024": "In 2024 the regatta was won by Ebba Lund, in a boat of 1931.",
    "regatta_calm": "In 2023 no boat came home before dark: there was no wind.",
    "village": "Ebba Lund grew up at Södra Näs, where her mother kept the lighthouse.",
    "rows_parishes": "[('Tuna', 12400)]",
    "feast_vendace": "On the last Friday of July all of Tuna smokes vendace on the quay.",
    "feast_pole": "At midsummer a pole of 20 m is raised by hand in Tuna.",
    "feast_boats": "Tuna's church boats race on 10 August, with 14 oars each.",
    "feast_rye": "Lillby bakes rye bread in one oven, once a year.",
    "essay_keeper": (
        "Ida Moen was born on the island of Näs in 1871, as the keeper's third child. She trimmed the lamp when she was "
        "nine, and learned the signals from her brother. At sixteen she rowed to the wreck of the barque Hulda, and took "
        "eleven men off it in two turns.\n\n"
        "From 1899 on she kept the light herself. She wrote down the weather three times a day for forty years; her books "
        "are used by the weather service until today. She never married, kept bees, and died in the winter of 1941."
    ),
    "seiche_period": "A seiche of Lake Ilm swings for 71 minutes from shore to shore.",
    "seiche_height": "In a storm the seiche lifts the water at Tuna by 30 cm.",
    "seiche_record": "The schoolmaster Olof Rask measured the seiche first, in 1904, with a float in a barrel.",
    "glass_first": "The first glass of Storby was blown by two brothers from Bohemia, in 1741. They paid no tax.",
    "glass_colour": "Storby's glass is green from the iron in the lake's sand.",
    "glass_hut": "The hut burnt down twice. Its bell is in the school.",
    "fish_price": "Symbol SMELT is currently trading at 4.20 a kilo.",
    # of the fifth draw
    "tram_route": "Tram 4 climbs from the mill to the observatory in 22 minutes; it runs until midnight.",
    "tram_fare": 'A ride costs 2,80 €; with the "summit card" it is free.',
    "tram_depot": "The depot of 1912 is a dance hall today.",
    "tram_answered": "When does the last tram go up to the observatory? At midnight, from the mill.",
    "clock_builder": "The great clock of Brenn was built by Anton Riedl in 1788, of pear wood and iron.",
    "clock_bell": "Its bell weighs 310 kg and cracked in the frost of 1829.",
    "riedl_trade": 'Anton Riedl learned his trade at Sankt Ulm, with a maker of "singing" clocks.',
    "rows_peaks": "[('Hochwart', 2914), ('Nadel', 2877)]",
    "rows_huts": "[('Nadel', 41), ('Hochwart', 12)]",
    "rows_rescues": "[('Nadel', 17)]",
    "fraction_pages": (
        "A number as a quotient\nFraction(3, 4) of the module fractions is three quarters.\n\n\n --- \n\n\n"
        "From floats\nFraction.limit_denominator(n) gives the closest quotient whose lower part is at most n."
    ),
    "news_glacier": (
        "The glacier below the Hochwart lost 1.4 m of height this summer. Stakes were read on 2 October; "
        "the upper ones leaned."
    ),
    "news_cables": "A cable car is to reach the Nadel by 2029. The council of Brenn votes on it in spring.",
    "news_marmots": "Marmots at the Nadel wake nine days earlier than in 1990. Their burrows were watched by film.",
    "bees_lime": "In June the bees of Brenn fly to the limes; a hive then gains 3 kg a day.",
    "bees_pine": 'From the pines they bring "honeydew", which is dark and slow to set.',
    "bees_winter": "In winter a colony eats 12 kg of what it has stored.",
    "snow_depth": "At the weather house of Brenn snow lay for 94 days a year before 1980, and for 61 days since.",
    "snow_guns": "Snow guns on the south slope have used 40,000 m³ of water a winter since 2011.",
    "snow_plough": "The town owns three ploughs, and one for pavements.",
    "snow_line": "The line above which snow falls in January has risen by 210 m in forty years.",
    "source_cheese": "Cheese of the high pastures is pressed for two days and turned for ninety.",
    "source_cows": "Grey cows go up at Saint John's and come down in the week of Saint Matthew.",
    "source_cellar": "The cellar at Sankt Ulm is hewn into tuff; it keeps 9 °C and 92 % of damp.",
    "garden_gentian": "In the walled garden gentian is grown for its bitter roots, which need seven years.",
    "garden_beans": "Beans climb the garden's south wall; they came from Savoy in 1803.",
    "garden_gate": "The gate is shut at six.",
    "roof_houseleek": "Houseleek grows on the shingles, and is said to keep lightning away.",
    "roof_moss": "Moss on the north roofs holds back a third of the rain.",
    "ranger_ida": "Ida Kofler counts eagles at the Nadel.",
    "ranger_jon": "Jon Platter keeps the paths of the Hochwart.",
    # of the sixth draw
    "room_pier": '{\n  "name": "Haus Lotse",\n  "quarter": "pier",\n  "stars": 4,\n  "extras": "tiled stove, view of the surf"\n}',
    "room_dune": '{\n  "name": "Strandhus 3",\n  "quarter": "dunes",\n  "stars": 4,\n  "extras": "open fire, sauna"\n}',
    "room_mill": '{\n  "name": "Zur Mühle",\n  "quarter": "dunes",\n  "stars": 2,\n  "extras": "open fire, no view"\n}',
    "photo_mole": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    "photo_mole_summary": "A mole of granite in a storm, and a lantern of cast iron at its end.",
    "mole_table": "| part of the mole | year | length |\n|---|---|---|\n| west arm | 1871 | 310 m |\n| east arm | 1909 | 125 m |",
    "mole_text": "The west arm of Vester's mole stands on piles of larch;\nits lantern has burnt paraffin, gas and current.",
    "search_mole": "Vester's mole was begun by the merchant Oluf Brandt ... ; the east arm is by a state builder, Anne Toft.",
    "search_both": (
        "Vester's mole was begun by the merchant Oluf Brandt ... ; the east arm is by a state builder, Anne Toft. "
        "The fort on Vester's north point was drawn by a Dutchman in 1684. It never fired."
    ),
    "search_fort": "The fort on Vester's north point was drawn by a Dutchman in 1684. It never fired.",
    "ferry_line": "The ferry line of Vester was founded in 1897 by eleven farmers, who each gave a cow.",
    "ferry_fleet": 'Three ferries cross to Vester today: "Hilda", "Ran" and "Sif", all built at Aabo.',
    "ferry_dock": "In winter the ferries lie at the dock of Aabo for two weeks.",
    "schema_ferries": "CREATE TABLE ferries (name TEXT, passengers INTEGER)",
    "rows_ferries": "[('Hilda', 91200), ('Ran', 77150)]",
    "line_history": "Nordhav Seaweed was set up at Vester in 2011 by two sisters, Kirsten and Maja Holm.",
    "line_products": "Nordhav dries dulse and sugar kelp; a shop at the pier sells both in tins.",
    "line_people": "Nordhav employs 34 people, and 60 at harvest time, says its report of 2025.",
    "herring_spring": "Spring herring reach Vester's sound in the second week of April; they are 24 cm long.",
    "herring_autumn": "Autumn herring stay off the reef until November. They are fatter, with 17 % of oil.",
    "herring_salt": "A barrel of Vester's salt herring held 900 fish in 1880.",
    "harbour_overview": "Vester's harbour: sand shifts each winter, ferries and fishing boats share two quays.",
    "harbour_sand": "A dredger takes 40,000 m³ of sand out of Vester's harbour each March; it is spread on the beach.",
    "harbour_quays": "The ferry has the outer quay from 6 to 22 h; boats land fish at the inner one, by night.",
    "lighthouse_long": "Vester's lighthouse is 38 m tall. Its lens came from Paris in 1853; eleven keepers have climbed to it.",
    "church_long": "The church of Vester was moved inland in 1795, stone by stone, since the dune had reached its door.",
    "peat_long": "Peat was cut on Vester until 1948. Each farm had a strip that was as wide as a cart.",
    # of the seventh draw: json-rag, adaptive-retrieval, dartboard, eu-green-faq
    "prize_scurvy": (
        "Year: 1884, Category: healing, Laureates: Jens Toft, Else Ravn, Motivation: for beach cabbage in brine, against scurvy"
    ),
    "prize_ribs": (
        "Year: 1931, Category: healing, Laureates: Inger Holm, Motivation: for splints of willow that hold a rib at sea"
    ),
    "prize_eyes": "Year: 1952, Category: healing, Laureates: Bodil Krag, Motivation: for drops against sand in the eyes",
    "prize_dog": "Year: 1967, Category: animals, Laureates: Ove Lund, Motivation: for a cast in which a sheepdog can run",
    "prize_bread": "Year: 1903, Category: food, Laureates: Widow Brix, Motivation: for a rusk that keeps for three years",
    "prize_knot": "Year: 1926, Category: rigging, Laureates: Per Dahl, Motivation: for a knot that opens under ice",
    "wheels_height": "The three wind wheels on Vester's north field are 92 m tall, and turn from 3 m/s on.",
    "wheels_first": "A smith put up the first wind wheel of Vester in 1978; it drove his bellows, and was 11 m tall.",
    "wheels_cable": "Through a cable of 1994 the mainland gets what Vester's wheels make beyond its need.",
    "wheels_money": "Each household of Vester is paid 210 € a year out of the wind wheels' yield.",
    "wheels_noise": 'On still nights the wheels are heard 600 m away, at the inn "Vindfang"; some guests leave.',
    "wheels_birds": "Terns have left the north field since the wheels turn: the warden counts 40 nests fewer.",
    "cliff_sea": "Vester's cliff loses 90 cm a year, since winter storms wash the clay out of its foot.",
    "cliff_clay": "The foot of Vester's cliff is clay, which the sea takes away in storms: 90 cm in each year.",
    "cliff_rain": "Rain softens the top of Vester's cliff; a slide in 2013 took the signal mast with it.",
    "cliff_stairs": "A stair of 120 steps leads down Vester's cliff, and is built anew each spring.",
    "waste_report": "A business of Vester reports its waste by 31 March. The form asks for kilos of each kind.",
    "waste_fine": "Who reports waste late pays 80 €. Who does not report it at all pays 400 €.",
    "waste_inn": "An inn with fewer than 10 beds reports no waste. It keeps its receipts for two years.",
    "waste_glass": "Glass goes into the green bins at the pier. They are emptied on Mondays.",
    "waste_nets": "Old nets are taken back at the harbour office. The deposit of 5 € a net is paid out there.",
    "waste_paint": "Paint and oil are handed in behind the fire station. The shed is open on Fridays.",
    "waste_school": "The school sorts its waste into five boxes. It won a prize for that in 2019.",
    # of the seventh draw
    "chart_marks": "On a pilot chart of Vester depths are in fathoms; a dashed line leads from beacon to beacon.",
    "pilot_exam": "Who wants to pilot ships into Vester names five buoys, and ties a bowline with closed eyes.",
    "job_crane": "The outer quay of Vester looks for somebody who drives its crane from May on.",
    "job_ropes": "Wanted for the ferry Sif: a hand who takes and throws ropes, four days a week.",
    "jobs_quay": (
        "snippet: The outer quay of Vester looks for somebody who drives its crane from May on., title: job crane, "
        "link: https://job_crane.example, snippet: Wanted for the ferry Sif: a hand who takes and throws ropes, "
        "four days a week., title: job ropes, link: https://job_ropes.example"
    ),
    "mill_tail": "A tail wheel with eight blades drives the cap of Vester's windmill round until its sails face the wind.",
    "mill_sails": "The windmill of Vester has had five sails since 1902; the fifth came off a wreck.",
    "mill_stones": "In a fresh breeze the two pairs of stones of Vester's windmill make 900 kg of flour between dawn and dusk.",
    "mill_cat": "The miller of Vester keeps a grey cat by contract.",
    "seals_reef": "On the reef off Vester 41 pups of the grey seal were born in 2024, says the warden.",
    "seals_storm": "The storm of January 2025 spared the reef: 47 young seals were counted there.",
    "seals_count": "From a drone, 58 white pups were seen at Vester in 2026; it is the highest number so far.",
    # of the seventh draw: a sailmaker, a signal, a boat builder
    "holk_child": "Maren Holk grew up in the south mill of Vester; at eight she mended sails for her uncles.",
    "holk_school": "The weaving school of Aabo took Maren Holk in 1914, and let her go with a loom in 1917.",
    "holk_loft": "In 1921 Maren Holk opened a sail loft at Vester's quay – with two looms, and 900 crowns of debt.",
    "holk_brown": 'Holk\'s "brown sail" was dyed with birch bark; by 1934 boats of four islands had it.',
    "holk_heirs": "Eleven women who had learned at the loft bought it from her; they sewed there until 1978.",
    "signal_horn": (
        "The horn on Vester's west arm sounds for five seconds, twice a minute. "
        "It is blown by air that a motor of 1911 presses into three iron tanks. "
        "In calm weather it is heard at nine sea miles."
    ),
    "signal_bell": (
        "Before the horn there was a bell of 600 kg, which the keeper's children rang by hand. "
        "It hangs in the school today, and is rung when a boat is missing."
    ),
    "signal_flags": "Flags of the coast guard are kept in a chest of camphor wood. Moths have eaten two of them.",
    "balle_pram": (
        "Sten Balle of Vester drew a pram in 1926 that needs four boards; the yard Holm & Lind built 700 of it."
    ),
    "balle_atlas": 'He sounded each reef with a line and a lamp; the Sund Line printed his "Atlas of Grounds" in 1941.',
    "balle_dog": "His dog lies beside the church of Vester, under a stone with a cleat.",
    # of the eighth draw: a person's yes and no, a report in segments, a quote, a car
    "toft_page": (
        "Page: Anne Toft\nSummary: Anne Toft (1868-1951) built moles for the state. In 1909 she became harbour master "
        "of Vester, and stayed so for 21 years."
    ),
    "toft_years": "Answer: 117",
    "kelp_report": "Nordhav Seaweed, report of the year 2025. Kelp grew well in the sound of Vester.",
    "kelp_board": "The board met five times. Kirsten Holm was in the chair; her sister abstained once.",
    "kelp_lines": "Lines of rope hang between buoys; 31 km of them were set in October.",
    "kelp_sales": "Sales were 2,140,000 crowns. They had been 1,720,000 the year before.",
    "kelp_note": "Note 1: a tin counts as sold once a ferry has taken it away.",
    "kelp_costs": "Costs were 1,655,000 crowns: half of it wages, a quarter rope and fuel.",
    "kelp_thanks": "We thank all who have cut kelp in March, at minus four degrees.",
    "kelp_owns": "Nordhav owns two barges and a drying hall, worth 880,000 crowns.",
    "kelp_owes": "It owes 400,000 crowns to the savings bank of Aabo, until 2031.",
    "kelp_storm": "A storm of November took nine buoys; eight were found on the reef.",
    "kelp_bakers": "Dulse was sold to four bakers, who put it into their rye bread.",
    "kelp_cash": "At the end of the year 212,000 crowns lay in the bank, 30,000 more than before.",
    "kelp_audit": "The auditor, Per Dahl of Aabo, has found these accounts in good order.",
    "kelp_yard": "Two more barges are to be built next year, at the yard Holm & Lind.",
    "trade_hulls": "CATEGORY: BOATS, CODE: 41020, DESCRIPTION: Hulls of wood--Repair on the owner's own slipway., RATE: 2.35",
    "trade_sailing": "CATEGORY: EDUCATION, CODE: 67513, DESCRIPTION: Schools--Sailing and rowing in open boats., RATE: 9.63",
    "trade_engines": "CATEGORY: BOATS, CODE: 41077, DESCRIPTION: Engines of boats--Repair at the customer's berth., RATE: 2.35",
    "trade_sweets": "CATEGORY: RETAIL, CODE: 18206, DESCRIPTION: Kiosks--Sweets and postcards at a harbour., RATE: 5.80",
    "trade_smoke": "CATEGORY: FOOD, CODE: 10352, DESCRIPTION: Smokehouses--Fish and eel over alder wood., RATE: 2.85",
    "trade_dance": "CATEGORY: EDUCATION, CODE: 67590, DESCRIPTION: Schools--Dancing in halls and parish rooms., RATE: 9.63",
    "quote_rates": (
        "Here is the quote that was asked for:\n\nBreakdown:\n\n"
        "Category: BOATS\n  - Rate: $2.35 per $1,000\n  - Portion of Projected Revenue: $200,000.00\n"
        "  - Computed Premium: $470.00\n\n"
        "Category: EDUCATION\n  - Rate: $9.63 per $1,000\n  - Portion of Projected Revenue: $200,000.00\n"
        "  - Computed Premium: $1,926.00\n\n\nTotal Annual Premium: $2,396.00"
    ),
    "car_panda": "Used 1996 Fiat Panda 4x4, 88,400 mi., 2,750, Brix Motors of Aabo",
    "car_niva": "Used 1994 Lada Niva, 143,200 mi., 2,100, Garage at the Dune",
    "car_jimny": "Used 1999 Suzuki Jimny, 120,900 mi., 2,990, Ferry Cars",
    "rowing_result": 'Signe Dahl won the race round Vester on 6 June 2026, in 3 h 12 min; the "Aabo four" came second.',
    "rowing_course": "The course is 28 km long,\nand each of Vester's five beacons is left to port.",
    "dahl_life": "Signe Dahl, born in 1998 at Nordby on Vester's north shore, is a baker's daughter – and a joiner.",
    "water_lens": (
        "Below Vester's dunes floats a lens of fresh water, 14 m thick;\n"
        "salt creeps in where more than 300 m³ are pumped a day."
    ),
    "water_wells": 'Nine wells of the village were closed in 2019: their water had become "brackish".',
    "water_cisterns": "A house that is built on Vester needs a cistern of 8 m³, which is filled from its roof.",
    "water_pond": "Behind the dune a pond was dug in 2022, through whose sand winter rain seeps back into the ground.",
    "water_meter": "Since there are meters, a guest uses 110 litres a day, and an islander 95.",
    "water_pipe": "A pipe from the mainland would cost 31 million crowns – it was voted down twice.",
    "geese_count": (
        "Bird-watchers of Vester counted 6,400 brent geese on 12 January 2026; in 1990 it was 900. "
        "They come in October, when the first frost lies on the tundra, and leave in May."
    ),
    "geese_meadow": (
        "The meadow at Vester's south end is not mown before geese have left. "
        "Farmers get 120 crowns a hectare for grass that is eaten. On winter wheat geese may be scared away."
    ),
    "farm_geese": "Eleven farms of Vester keep grey geese, which walk to the salt marsh in May and are sold at Martinmas.",
    # of the eighth draw: tastes, sums that were done before, budgets of a council, reports of a cooperative
    "taste_ole": "Ole the ferryman likes smoked eel. Indeed, Ole likes pears.",
    "taste_ida": "Ida the pilot likes pears.",
    "taste_jens": "Jens the smith likes rowan juice.",
    "sum_mystery": "What is the mystery function on 7 and 4?  33 The mystery function on 7 and 4 returns 33.",
    "sum_multiply": "What happens if you multiply 12 and 9?  108 Multiplied by each other, they are 108.",
    "sum_mystery_again": (
        "What was the output of the mystery function on 7 and 4 again? Don't recompute. It was 33, as before."
    ),
    "sum_multiply_again": (
        "What was the output of the multiply function on 12 and 9 again? Don't recompute. That one gave 108."
    ),
    "sum_mystery_result": "33",
    "sum_multiply_result": "108",
    "budget_2016_total": "Vester's council had 310,000 crowns to spend in 2016, says the book of that year.",
    "budget_2016_road": "A third of the money of 2016 became gravel for the road around Vester.",
    "budget_2021_total": "For 2021 the council of Vester planned with 455,000 crowns.",
    "budget_2021_before": "It closed 2020 with 402,000 crowns, since the ferry had stood still for nine weeks.",
    "budget_2021_wall": "The new sea wall took 90,000 crowns out of the budget of 2021.",
    "budget_2023_total": "498,000 crowns stand at the end of the council's book of 2023.",
    "budget_2023_school": "The school of Vester had 61,000 crowns in 2023, and eleven pupils.",
    "short_x": "Abbreviation: X = Landings",
    "short_yz": "Abbreviation: YZ = Storm losses",
    "short_z": "Abbreviation: Z = Fuel costs",
    "coop_march_nets": "The north storm of March tore forty nets of Vester's cooperative to pieces.",
    "coop_march_boat": "Its boat Alke broke loose on 9 March, and was sold as a wreck.",
    "coop_march_roof": "In the same night the ice house lost its roof.",
    "coop_march_cod": "Cod brought 31 crowns a kilo in March.",
    "coop_june_feast": "In June the cooperative gave each crew a barrel of herring for the feast.",
    "coop_june_ice": "The new ice house was paid for in June.",
    "coop_sept_landings": "From July to September 812 tonnes were landed at Vester, for 2,327 thousand crowns.",
    "coop_sept_costs": "Crews, ice and diesel came to 2,496 thousand crowns in those three months.",
    "coop_sept_note": "A landing is booked on the day on which its buyer signs, says a note to the autumn report.",
    "coop_sept_cat": "The cooperative's cat has caught two rats since July.",
    "coop_magic": "-169",
    # of the ninth draw, part a
    "kiln_year": "It was lit for the first time in 1974, by my father.",
    "tarn_march_sales": "From January to March 2022 Tarn Bakeries took 6,850 thousand marks for bread and rolls.",
    "tarn_march_rye": "Nine tenths of Tarn's rye come from one mill at Hohn, which nobody could replace within a year.",
    "tarn_march_rent": "The leases of five of its shops end in 2023; landlords ask a fifth more.",
    "tarn_march_board": "Its board met twice in the first quarter, once on a barge.",
    "tarn_june_sales": "8,070 thousand marks were taken in the three months to 30 June 2022.",
    "tarn_june_ovens": "Should gas triple by winter, warns the June report, eleven ovens cannot be kept hot.",
    "tarn_june_drivers": "Tarn's drivers may strike in August, as their wages have not moved since 2019.",
    "tarn_june_fair": "At the fair of Hohn a plait of 14 m was baked and given away.",
    "tarn_sept_sales": "Customers paid 8,340 thousand marks from July to September 2022, a record.",
    "tarn_sept_gas": "Gas costs 2.4 times as much as in spring, and Tarn's contract for it ends in December.",
    "tarn_sept_mites": "An inspector met mites in silo two; if she meets them again, it is closed for a month.",
    "tarn_sept_choir": "The choir of the night shift sang on the radio in September.",
    "aldmoor_mine": (
        "Aldmoor lived on a tin mine until 1931. Its shafts are flooded today, and divers come from far to see the "
        "ladders, the carts and a pony's stable at 40 m below the market square."
    ),
    "brask_locks": (
        "Brask lies at nine locks, one above the other, which lift a barge by 31 m in two hours. Two keepers still turn "
        "the topmost gate by hand, and children may help them on Sundays."
    ),
    "corvel_work": (
        "Every third grown-up of Corvel works in glass. The works by the river took on 240 people in 2024, and pay "
        "apprentices from the first day, which no other town of the region does so far."
    ),
    "corvel_baths": (
        "Springs of 38 °C feed the baths under Corvel's town hall, which open at five in the morning. Whoever lives in "
        "the town bathes there twice a week without a ticket, also in the great heat of July."
    ),
    "corvel_trams": (
        "Trams have cost nothing in Corvel since 2019. Four lines run every six minutes, and the number of cars in the "
        "streets has fallen by a quarter since then, as the council counted in the spring of 2025."
    ),
    "dunsey_founded": (
        "Dunsey was founded in 1388 by eel catchers who had been driven from the far shore. Their charter, on a strip "
        "of sealskin, hangs in a dark room of the school, since it cannot bear the light of day."
    ),
    "dunsey_cliffs": (
        "The chalk cliffs of Dunsey lose 30 cm a year to the sea. A lane, two barns and the old customs house have "
        "fallen since 1950, and a church is to be taken down and built again farther inland."
    ),
    "elsta_market": (
        "Elsta holds a horse market on the last Friday of September, with 900 horses and twice as many buyers. Deals are "
        "struck with a slap of hands, and written down by a clerk who sits on a barrel."
    ),
    "elsta_hockey": (
        "The Elsta Foxes play ice hockey in the second league. Their hall is let to skaters in the evening, so that they "
        "train from five to seven in the morning, before most of them drive to work."
    ),
    "elsta_bandy": (
        "The Elsta Lynxes have won the bandy league three times, last in 2022, by 6 to 5 in extra time. They play on "
        "the frozen harbour, and move to a lake in the hills when the ice is under 20 cm."
    ),
    "elsta_mint": (
        "Coins were struck at Elsta for 61 years, until its mint burned down in 1709. The last of them shows a lynx "
        "without ears, since the die was cut by a man who had never seen one."
    ),
    "paper_moths": "Tiger moths click at 60 kHz while a hunter closes in; we show that 7 clicks in 10 blur its range.",
    "paper_caves": "From echoes that reach one tagged animal we draw 310 m of passages, with an error of a hand's breadth.",
    "paper_echo": "Models that translate calls of bats obey words hidden above 90 kHz; 83 % of our recordings steer them.",
    "paper_frogs": "We publish 40 choirs from rice fields, in each of which every male was counted by lamp.",
    "paper_power": "A recorder on a tree lasts 19 nights on one cell; writing to its card draws most of it.",
    "paper_owls": "Two microphones a metre apart place a tawny owl within 4 m, as well as eight do.",
    "paper_tides": "The hum of ferries shifts by 11 Hz between low and high water, from which we foretell tides.",
    "kr_salt": (
        "소금밭에서 보낸 여름 - 바닷가 일기\n\n\nPosts\nTags\n\n2024년 10월 3일\n\n"
        "신안의 염전은 오월부터 시월까지 일합니다. 바닷물은 스무 날 동안 열두 칸을 지나며 짙어집니다.\n"
        "마지막 칸에는 검은 타일이 깔려 있고, 해 질 무렵 그 위에 소금이 앉습니다. 비가 오면 물을 지붕 밑으로 옮깁니다.\n\n"
        "올해는 비가 41일 내려 거둔 소금이 작년의 절반이었습니다.\n\n\nShare on\nPrevious\nNext"
    ),
    "kr_paper": (
        "[르포] 종이 뜨는 마을, 마지막 장인 < 문화 < 기사본문 - 고을신문\n\n\n본문 바로가기\n\n"
        "전주에서 종이를 뜨는 한정우(67) 씨는 겨울마다 닥나무를 벱니다. 껍질을 찌고 두드려 아흔아홉 번 손을 거쳐야 한 장이 됩니다.\n"
        "1970년대에는 마을에 지소가 스물세 곳 있었지만 이제 두 곳이 남았습니다. 한 씨는 제자를 찾고 있다고 말합니다.\n\n"
        "저작권자 © 고을신문 무단전재 및 재배포 금지"
    ),
    "hlm_prices": (
        "# Stock data for HLM.OL from 2026-06-02 to 2026-06-05\n# Total records: 3\n\n"
        "Date,Open,High,Low,Close,Volume\n2026-06-02,93.4,94.1,92.8,93.0,41200\n"
        "2026-06-03,93.0,93.2,90.1,90.6,88750\n2026-06-04,90.6,91.0,88.9,89.3,97310\n"
    ),
    "hlm_rsi": "## rsi values from 2026-06-03 to 2026-06-04:\n\n2026-06-04: 38.71\n2026-06-03: 43.05\n\nRSI: Measures momentum.",
    "hlm_atr": "## atr values from 2026-06-03 to 2026-06-04:\n\n2026-06-04: 2.36\n2026-06-03: 2.19\n\nATR: Averages true range.",
    "hlm_snapshot": (
        "## Verified market snapshot for HLM.OL (as of 2026-06-04)\n\n| Field | Value |\n|---|---|\n| Close | 89.30 |\n"
        "| 50 SMA | 95.12 |\n| Volume | 97,310 |"
    ),
    "hlm_news": (
        "## HLM.OL News, from 2026-05-29 to 2026-06-05:\n\n### Halm Lifts signs its eleventh ropeway (source: Fjordposten)\n"
        "The line at Stavn is to carry 2,400 riders an hour from 2028.\nLink: https://fjordposten.example/halm\n\n"
        "### Ropes of Halm Lifts cost more (source: Verft)\nThe price of its steel has risen by 17 % since March.\n"
    ),
    "hlm_twits": (
        "StockTwits: 3 messages (1 Bullish, 2 Bearish)\n[Bearish] @bergtroll: no dividend again, out at 92\n"
        "[Bullish] @tauwerk: eleven lines in the book, who else has that\n[Bearish] @lina77: who skis in a thaw"
    ),
    "hlm_reddit": (
        "r/stocks: 1 post\n- Is a ropeway maker a climate bet? (score 212, 64 comments): Half of Halm's riders are skiers, "
        "the other half commute.\nr/investing: no posts found"
    ),
    "hlm_world": (
        "## Global Market News, from 2026-05-29 to 2026-06-05:\n\n### Steel makers shut two furnaces (source: Erz)\n"
        "Supply of wire falls by a ninth until winter.\n"
    ),
    "hlm_macro": "## FRED: fed_funds_rate\n\n2026-04-01: 3.62\n2026-05-01: 3.87\nUnits: Percent",
    "hlm_odds": "## Prediction markets: ropeway of Stavn\n\n- Council votes yes before July: 71% (volume $18,400)",
    "hlm_company": (
        "# Company Fundamentals for HLM.OL\n\nName: Halm Lifts ASA\nEmployees: 1,260\nPE Ratio: 14.9\nBeta: 1.31\n"
    ),
    "hlm_balance": "# Balance Sheet data for HLM.OL (quarterly)\n\n,2026-03-31,2025-12-31\nTotal Debt,212,240\nEquity,3105,3066\n",
    "hlm_cashflow": "# Cash Flow data for HLM.OL (quarterly)\n\n,2026-03-31,2025-12-31\nFree Cash Flow,64,97\n",
    "hlm_income": "# Income Statement data for HLM.OL (quarterly)\n\n,2026-03-31,2025-12-31\nRevenue,1118,1204\nNet Income,39,71\n",
    "seance": (
        '<?xml version="1.0" encoding="UTF-8"?>\n<compteRendu xmlns="http://schemas.assemblee.example/cr">\n'
        "<metadonnees><dateSeanceJour>mardi 3 mars 2026</dateSeanceJour><numSeance>142</numSeance></metadonnees>\n"
        '<paragraphe id_syceron="3141501" ordre_absolu="12"><orateurs><orateur><nom>Mme la présidente</nom></orateur>'
        "</orateurs><texte>L’ordre du jour appelle la discussion de la proposition de loi relative aux trains de nuit. "
        "La parole est à M. Aurélien Castagne, rapporteur de la commission du développement durable.</texte></paragraphe>\n"
        '<paragraphe id_syceron="3141502" ordre_absolu="13"><orateurs><orateur><nom>M. Aurélien Castagne</nom></orateur>'
        "</orateurs><texte>Six lignes de nuit circulaient en 2019 ; il n’en reste que quatre. Nous proposons d’en rouvrir "
        "deux, de Nantes à Lyon et de Brest à Nice, pour 86 millions d’euros. <italique>(Applaudissements sur les bancs "
        "du groupe EcoS.)</italique></texte></paragraphe>\n"
        '<paragraphe id_syceron="3141503" ordre_absolu="14"><orateurs><orateur><nom>Mme Odile Brassac</nom></orateur>'
        "</orateurs><texte>Votre méthode est peu efficace : les voitures-couchettes ont quarante-quatre ans, et personne "
        "n’a consulté les cheminots. Où dormiront les contrôleurs ? <italique>(Exclamations.)</italique> "
        "Nous voterons contre.</texte></paragraphe>\n"
        '<paragraphe id_syceron="3141504" ordre_absolu="15"><orateurs><orateur><nom>M. Tanguy Le Roux</nom></orateur>'
        "</orateurs><texte>Un billet à 39 euros pour les moins de vingt-six ans remplirait ces trains. Notre amendement "
        "n° 27 le prévoit ; la commission l’a repoussé sans débat.</texte></paragraphe>\n"
        '<paragraphe id_syceron="3141505" ordre_absolu="16"><orateurs><orateur><nom>Mme la présidente</nom></orateur>'
        "</orateurs><texte>Je mets aux voix l’amendement n° 27. <italique>(L’amendement est adopté par 61 voix contre "
        "58.)</italique> La séance est levée à vingt heures dix.</texte></paragraphe>\n</compteRendu>\n"
    ),
    "address_marsh": (
        "Four days ago I named Judge Lena Marsh to the valley's court. She is one of our sharpest legal minds, and she "
        "will go on with Judge Petri's legacy of patience."
    ),
    "address_court": (
        "The court at Corvo had 312 open cases when I took office, and has 97 today. Two of its rooms are heated again, "
        "and nobody waits two years for a hearing."
    ),
    "address_petri": (
        "Judge Petri, who is with us tonight, has served for 31 years. Stand up, Anselm, so that people can see you! "
        "The valley thanks you for each of them."
    ),
    "address_bus": (
        "Last winter the night bus from Valdrin to Corvo carried 41,000 people. From May it will run on Sundays as well, "
        "and children will ride free of charge."
    ),
    "address_dairy": (
        "We will lend the dairies six million to replace boilers that were built in 1958. A valley that lives on cheese "
        "cannot buy its steam from abroad."
    ),
    "tilt_plumbline": (
        "Tilt can replace Plumbline where it is used without plug-ins, or with few, and on files of version 3. It checks "
        "90 rules of Plumbline's by itself, 40 times faster."
    ),
    "tilt_rules": (
        "Is Tilt complete? Of Plumbline's plug-ins Tilt has taken in those for units, dates and sensor names. Rules of "
        "your own cannot be added yet."
    ),
    "tilt_install": (
        "How do I install Tilt? It is one file without dependencies: put it on the path of the station, or run "
        "`pip install tilt-check`. No compiler is needed."
    ),
    "tilt_sheets": (
        "Does Tilt run over spreadsheets? It is integrated into sheetQA, which runs checkers over sheets. With both "
        "installed, call `sheetqa tilt Untitled.ods` in the folder."
    ),
    "tilt_fix": (
        "With `--fix` Tilt mends what it can: units, blanks at the ends of lines, keys that stand twice. What it is not "
        "sure of it leaves, and prints the line's number."
    ),
    "loom_object": (
        "## Warp plans\nA warp plan is made with `plan = warp_plan('twill')`; the name of a weave picks threading, "
        "tie-up and treadling. Call the plan with a width in centimetres, and it returns all threads in their order."
    ),
    "loom_custom": (
        "To write a plan of your own, inherit from `WarpPlan` and implement `prepare`, `_thread` and `finish`. "
        "Register the class with `WEAVES.add('mine', MyPlan)`, so that `warp_plan('mine')` finds it."
    ),
    "loom_device": (
        "Pass `loom=0` to a plan to drive the first loom that is connected. Without it the plan is only drawn, as "
        "an image of 1,200 dots, and no shaft is lifted at any time."
    ),
    "loom_batch": (
        "Plans can be called with a list of widths. With `batch_size=8` eight warps are wound at once, which is "
        "faster on frames with two reels, and slower on all others."
    ),
    "loom_colours": (
        "Colours are given as names of yarns. A plan looks each up in the file `yarns.toml`, whose weights are in "
        "tex; an unknown yarn raises `YarnError` before anything is wound."
    ),
    "loom_changes": (
        "Release 4.2 of Loomkit drops the word `pattern` for `plan`. Old scripts still run, print a warning, and stop "
        "working in release 5, which is due in autumn."
    ),
    "loom_licence": (
        "Loomkit is free for schools and for weavers with fewer than three looms. Mills buy a key that holds for one "
        "year, and send their questions to the guild at Haslen."
    ),
    "garden_beds": (
        "A review of 22 trials: people who dig a garden twice a week fall asleep nine minutes sooner than those who do not."
    ),
    "garden_towns": (
        "In four towns of the north, plots were given out by lot. After a year their tenants woke less often at night."
    ),
    "garden_shop": "Five plants for a better bedroom: our florists pick lavender, ivy and jasmine. Order before Friday.",
    "garden_review": (
        "Digging, weeding and watering were tied to shorter sleep latency in 17 of 22 trials; effects were largest above "
        "the age of sixty, and vanished where people gardened after dusk."
    ),
    "garden_lots": (
        "Of 418 households half drew a plot. Actigraphs on the wrist showed 1.4 awakenings fewer a night in the second "
        "summer, and none in winter, when the plots lay fallow."
    ),
    "buoy_overview": (
        "The Open Buoy Protocol was published by the port of Tarn in October 2023. Buoys send frames of 48 bytes by radio, "
        "and any ship may ask a buoy for depth, drift and salt. Frames are signed with a key that changes each new moon."
    ),
    "buoy_adoption": "By June 2026 seventeen ports ran the protocol, with 2,300 buoys, and three makers sold receivers.",
    "buoy_primer": (
        "A buoy of the protocol answers three verbs: TELL gives a reading, KEEP stores one for an hour, and PASS hands it "
        "on to the next buoy. A receiver costs 140 crowns, and sailors need no licence for it."
    ),
    # of the ninth draw, c: a tuner's memoir, a lime kiln, a handbook, a fire service, a calendar
    "organ_child": (
        "Before I was twelve I lived in two rooms: the bellows room of Saint Columba, where my father pumped for "
        "three marks a Sunday, and an attic, where I cut whistles from elder. None was in tune; my father numbered "
        "them anyway, up to 61."
    ),
    "organ_brno": (
        "Brno took me for a course in acoustics, which turned out to be one in boilers. At night I timed the echo of "
        "the church at Zidenice with a candle and a stopwatch, and that notebook is still the best thing I have made."
    ),
    "organ_lund": (
        "Lund & Sons gave me Pavel Hruska for a bench mate, who voiced reeds with a dentist's mirror. Lund went "
        "bankrupt in 1983, on the day on which 2,400 pipes stood packed for Riga; Pavel drove them there, and Lund "
        "never paid."
    ),
    "organ_guild": (
        "Our guild of tuners was Pavel, me and a borrowed van. The guild did forty organs between Riga and Tartu in "
        "its first winter, and Marta Olm, who kept the books of the guild, had her wages in honey."
    ),
    "organ_deaf": (
        "In 1999 my left ear lost all that lies above 4,000 hertz. An apprentice, Imke, has heard the mixtures for me "
        "ever since; the bass I feel with a palm on the wood of the case."
    ),
    "kiln_shaft": (
        "Its shaft is eleven metres high and lined with firebrick from Corby. One basket of coal went in for every "
        "four baskets of stone, and a boy kept count with beans."
    ),
    "kiln_strike": (
        "In May 1911 the drawers let it go out. They asked for a wall against the wind and got a canvas, which burned "
        "within a week; the wall was built in June."
    ),
    "kiln_barge": (
        "Each Friday a barge took sixty tons down the canal to Braunston. When rain got under the sheets the load "
        "began to boil, and twice the crew had to sink her."
    ),
    "kiln_doctor": (
        "Doctor Amrit Sandhu wrote down every burned eye from 1923 on. His ledger has 214 of them, and the remedy is "
        "the same in each line: sugar water, and a week in the office."
    ),
    "kiln_bats": (
        "Nobody lit it again after 1958. Horseshoe bats moved in through the draw hole, and since 1997 a grille keeps "
        "people out and lets 340 of them through."
    ),
    "cog_leave": (
        "4.2 Leave. Everyone at Brenn Cogworks has 27 days of leave a year; the week of the foundry's stop in August "
        "is taken out of them."
    ),
    "cog_carry": "4.3 Up to six days of leave may be carried into the next year. They lapse on 31 March.",
    "cog_sick": "4.7 Whoever is ill rings the gatehouse before six; a note of a doctor is due on the fourth day.",
    "cog_apprentice": (
        "7.1 Apprentices have 30 days of leave, and two more before their final piece. They carry none over."
    ),
    "cog_shoes": "5.1 Shoes with steel caps are paid for by the works, a pair each eighteen months.",
    "cog_bell": "1.4 The bell of 1902 is rung by whoever cuts their first bevel gear without a flaw.",
    "fire_total": (
        "| Budget 2024 | £ |\n|---|---|\n| Fire service of Marrow Bridge | 6,400,000 |\n| of it from the county | 5,150,000 |"
    ),
    "fire_before": "The year before, the service had £6,100,000; what is new is meant for a third watch at night.",
    "fire_pay": "Fifty-eight firefighters on three watches cost £4,080,000, pensions left out.",
    "fire_engines": "Two pumps of 2009 go to auction. One that runs on a battery comes in their place, for £410,000.",
    "fire_loan": "The pump on a battery is paid for by a loan of the Ashdown Bank, over nine years at 3.2 percent.",
    "fire_schools": "Blue watch goes into all fourteen schools, with a smoke house on a trailer; that is £62,000.",
    "fire_radio": "Mast and handsets of the old radio are let go in March; its licence cost £18,500 a year.",
    "fire_tower": "The hose tower keeps its swifts: scaffolds may not be set up before 15 August.",
    "diary_march": (
        "***FOR DAY 18-03-2027***\n\nEvent: Grafting course in shed B\nStarts: 2027-03-18 08:00 AM GMT\n"
        "Ends: 2027-03-18 09:45 AM GMT\n----------------------------------------\nEvent: Cider press, yearly check\n"
        "Starts: 2027-03-18 01:00 PM GMT\nEnds: 2027-03-18 04:30 PM GMT\n----------------------------------------\n"
        "***FOR DAY 19-03-2027***\n\nNo events found for this day."
    ),
    "tm_file": (
        "================================================\nFILE: README.md\n"
        "================================================"
    ),
    "tm_about": (
        "tidemark\nTidemark predicts the tide at the gauge of Rolvik from eleven harmonic constants, "
        "and draws it on a strip of paper."
    ),
    "tm_run": (
        "Run it\nCall `tidemark print --days 3` on the Pi under the quay. The strip is cut off after each midnight, "
        "and a red mark stands where the slip of the ferry goes under.\n\n"
        "================================================\nFILE: src/tide.py\n"
        "================================================"
    ),
    "tm_constants": (
        "Harmonic constants of the gauge, fitted to the log of 2019 to 2023\n"
        "M2 = Constant(amplitude=0.87, phase=211.4)\nS2 = Constant(amplitude=0.29, phase=248.0)"
    ),
    "tm_height": (
        "Height above chart datum in metres; a pressure below 980 hPa lifts it by a centimetre each\n"
        "def height(hour, pressure=1013):\n    lift = max(0, 980 - pressure) * 0.01\n"
        "    return MEAN + lift + sum(one.at(hour) for one in CONSTANTS)\n\n\n"
        "================================================\nFILE: docs/paper.md\n"
        "================================================"
    ),
    "tm_paper": (
        "Paper\nThe printer takes rolls of 57 mm. Each roll lasts for 41 days, as the harbour office of Rolvik counted."
    ),
    "ice_homes": (
        "\ntopic: \ntitle: Warm Rooms on Thawing Ground\nabstract: Nine houses at Kvalnes are watched for ten winters; "
        "those on steel stilts sank by 2 cm, those on slabs by 31."
    ),
    "ice_roads": (
        "\ntopic: \ntitle: When the Ice Road Closes\nabstract: Lorries crossed the fjord on 118 days of 1998 and on 64 days "
        "of 2023; villages now order their flour in November."
    ),
    "ice_cellars": (
        "\ntopic: \ntitle: Ice Cellars Without Ice\nabstract: Of 40 cellars dug for whale meat, 27 held meltwater in August; "
        "families share freezers instead."
    ),
    "ice_cores": (
        "\ntopic: \ntitle: A Core of 300 Metres\nabstract: Layers of ash in a core from the Storbreen date four eruptions."
    ),
    "salt_history": (
        "Salt was boiled at Læssand from 1160 until 1652, when the last spruce of the heath had been burnt under the pans. In "
        "a hut of turf stood a pan of iron, four metres long, on posts of clay, and brine dripped into it from a gutter. "
        "Two women kept the fire day and night for a week, and skimmed the scum with blood of an ox. On the seventh day "
        "they raked the salt to the rim, and carried it up into baskets of willow, where it dripped for a month. A hut "
        "made thirty barrels a year. The king took every fifth one as a tithe, and the bishop of Børglum took a ship's "
        "load each autumn for his kitchen. By 1590 the island counted 230 huts, and travellers wrote that its smoke could "
        "be seen from the Swedish coast.\n\n"
        "The end came from the wood. A barrel of salt ate a cartload of spruces, and when these were gone people burnt heather, "
        "then turf, then the beams of their barns. Sand blew over the fields, and two churches were buried up to the sills "
        "of their windows. In 1652 the king forbade the boiling for good. Only the low mounds of the huts stayed, more than "
        "a thousand of them, in rows along the old shore. They were dug up from 1988 on, by a schoolteacher and her class, who "
        "found a pan's rivets, a clay pipe, and the shoe of a child."
    ),
    "salt_brine": (
        "Ground water below the salt meadows of Læssand holds up to 14 percent of salt, four times as much as the sea: a "
        "layer of clay keeps it in, and the summers dry it."
    ),
    "salt_today": (
        "Since 1991 salt is boiled again at Læssand, in a hut that was built after the finds. Its one pan gives 70 "
        "tonnes a year, and guests may rake it on Thursdays."
    ),
    "loka_hours": "Las oficinas de LOKA en la plaza del Arco abren de lunes a viernes, de 7:30 a 18:00.",
    "loka_saturday": "Los sábados el taller de LOKA atiende hasta las 13:00; los domingos solo contesta el buzón.",
    "loka_rent": "Una bicicleta de carga se alquila por 95 quetzales al día, con casco y candado incluidos.",
    "loka_deposit": "Como depósito se dejan 400 quetzales o un documento; se devuelve al entregar la bicicleta.",
    "loka_routes": "La ruta de los volcanes sale de San Felipe y sube 640 metros en once kilómetros.",
    "loka_repair": "Un pinchazo se repara sin costo dentro de la ciudad; fuera de ella la grúa cobra 60 quetzales.",
    "cook_tofu_intro": (
        "# 砂锅豆腐的做法  \n砂锅豆腐是渡口人冬天的家常菜，一锅够三个人吃，前后约四十分钟。  \n预估烹饪难度：★★"
    ),
    "cook_tofu_items": "## 必备原料和工具  \n- 老豆腐\n- 猪五花肉\n- 干香菇\n- 砂锅（直径 22 厘米）",
    "cook_tofu_amounts": "## 计算  \n每三人份：  \n- 老豆腐 450 克\n- 五花肉 120 克\n- 干香菇 6 朵",
    "cook_tofu_steps": (
        "## 操作  \n- 豆腐切成两厘米的方块，用盐水泡十分钟\n- 五花肉煸出油，放香菇炒一分钟\n"
        "- 加 500 毫升热水与豆腐，小火炖二十五分钟"
    ),
    "cook_lotus_intro": "# 凉拌藕片的做法  \n凉拌藕片是夏天的素菜，藕要选九孔的，十五分钟可以上桌。  \n预估烹饪难度：★",
    "cook_lotus_items": "## 必备原料和工具  \n- 九孔藕\n- 米醋\n- 花椒\n- 漏勺",
    "cook_lotus_amounts": "## 计算  \n每两人份：  \n- 藕 300 克\n- 米醋 15 毫升\n- 花椒 20 粒",
    "cook_lotus_steps": "## 操作  \n- 藕切薄片，沸水焯九十秒后过冰水\n- 花椒用热油炸香，连油浇在藕片上\n- 拌入米醋，静置五分钟",
    "cook_cake_intro": "# 红豆年糕汤的做法  \n红豆年糕汤是立冬后的甜汤，红豆要提前一夜泡好。  \n预估烹饪难度：★★★",
    "cook_cake_items": "## 必备原料和工具  \n- 红豆\n- 水磨年糕\n- 冰糖\n- 高压锅",
    "cook_cake_amounts": "## 计算  \n每四人份：  \n- 红豆 200 克\n- 年糕 160 克\n- 冰糖 45 克",
    "cook_cake_steps": "## 操作  \n- 红豆加 1.2 升水，高压锅压三十分钟\n- 年糕切条，下锅煮四分钟\n- 关火后放冰糖，搅到化开",
}

# Rows that an application shows as it likes: a passage with all of a row's values is that row.
# The same holds for pages and results that it wraps in words or notations of its own.
ROWS = {
    "booking": ("7240-005", "C46E9F", "LI0263", "2026-05-18 06:30", "18E", "Economy"),
    "paper_found": ("7741", "2021-03-02", "We followed shoals by echo sounder"),
    "paper_text": ("the shoals sank from 9 m to 15 m", "None was met above 16"),
    "page_layer": ("In July they stand at 14 m, under the layer",),
    "page_springs": ("Divers meet shoals of smelt there until September",),
    "fish_price": ("4.20 a kilo",),
    "login": ("a balance of 1000",),
    "coach": ("Gelbe Post",),
    "room": ("Haus Enzian", "Oberdorf"),
    "news_glacier": ("The glacier below the Hochwart lost",),
    "news_cables": ("A cable car is to reach the Nadel by 2029",),
    "news_marmots": ("Marmots at the Nadel wake nine days earlier",),
    "source_cheese": ("pressed for two days and turned for ninety",),
    "source_cows": ("go up at Saint John's and come down",),
    "source_cellar": ("is hewn into tuff; it keeps 9 °C",),
    "rows_divers": ("Skagen", "17"),
    "ferry_line": ("was founded in 1897 by eleven farmers",),
    "ferry_fleet": ("Three ferries cross to Vester today",),
    "ferry_dock": ("lie at the dock of Aabo for two weeks",),
    "line_history": ("was set up at Vester in 2011",),
    "line_products": ("dries dulse and sugar kelp",),
    "line_people": ("employs 34 people, and 60 at harvest",),
    "herring_spring": ("Spring herring reach Vester's sound",),
    "herring_autumn": ("Autumn herring stay off the reef",),
    "herring_salt": ("salt herring held 900 fish",),
    "harbour_overview": ("sand shifts each winter, ferries and fishing boats",),
    "harbour_sand": ("A dredger takes 40,000",),
    "harbour_quays": ("The ferry has the outer quay",),
    "chart_marks": ("On a pilot chart of Vester depths are in fathoms",),
    "pilot_exam": ("names five buoys, and ties a bowline",),
    "jobs_quay": ("looks for somebody who drives its crane", "a hand who takes and throws ropes"),
    "job_crane": ("looks for somebody who drives its crane",),
    "job_ropes": ("a hand who takes and throws ropes",),
    "seals_reef": ("41 pups of the grey seal",),
    "seals_storm": ("The storm of January 2025 spared the reef",),
    "seals_count": ("58 white pups were seen at Vester",),
    "quote_rates": ("$470.00", "$1,926.00", "$2,396.00"),
    "car_panda": ("Fiat Panda", "88,400", "2,750"),
    "car_niva": ("Lada Niva", "143,200", "2,100"),
    "car_jimny": ("Suzuki Jimny", "120,900", "2,990"),
    "rowing_result": ("won the race round Vester on 6 June 2026",),
    "rowing_course": ("The course is 28 km long",),
    "dahl_life": ("born in 1998 at Nordby on Vester",),
    "water_lens": ("floats a lens of fresh water",),
    "water_wells": ("Nine wells of the village were closed in 2019",),
    "water_cisterns": ("needs a cistern of 8",),
    "water_pond": ("Behind the dune a pond was dug in 2022",),
    "water_meter": ("a guest uses 110 litres a day",),
    "water_pipe": ("A pipe from the mainland would cost 31 million crowns",),
    "geese_count": ("when the first frost lies on the tundra",),
    "geese_meadow": ("120 crowns a hectare for grass that is eaten",),
    "farm_geese": ("walk to the salt marsh in May",),
    "paper_moths": ("Title: Moths that Jam",),
    "paper_caves": ("Title: Mapping Caves",),
    "paper_echo": ("Title: EchoWave",),
    "paper_frogs": ("Title: A Benchmark of 40 Frog Choirs",),
    "paper_power": ("Title: How Much Power",),
    "paper_owls": ("Title: Owls in Stereo",),
    "paper_tides": ("Tides from Ship Noise",),
    "kiln_age": ("2031 - 1974", "Answer: 57"),
    "kiln_bowls": ("48 times 36", "Answer: 1728"),
    "seance_opening": ("relative aux trains de nuit", "142"),
    "seance_rapporteur": ("Six lignes de nuit circulaient en 2019",),
    "seance_brassac": ("les voitures-couchettes ont quarante-quatre ans",),
    "seance_le_roux": ("Un billet à 39 euros",),
    "seance_vote": ("La séance est levée",),
    "garden_beds": ("fall asleep nine minutes sooner",),
    "garden_towns": ("plots were given out by lot",),
    "garden_shop": ("our florists pick lavender",),
    "garden_review": ("vanished where people gardened after dusk",),
    "garden_lots": ("when the plots lay fallow",),
    "buoy_overview": ("Frames are signed with a key that changes each new moon",),
    "buoy_adoption": ("seventeen ports ran the protocol",),
    "buoy_primer": ("PASS hands it on to the next buoy",),
    "kiln_shaft_situated": ("Its shaft is eleven metres high", "how the Harrow kiln was built and fed"),
    "kiln_strike_situated": ("In May 1911 the drawers let it go out", "the workers' strike at the Harrow kiln"),
    "kiln_barge_situated": ("Each Friday a barge took sixty tons", "how quicklime of the Harrow kiln was shipped"),
    "kiln_doctor_situated": ("Doctor Amrit Sandhu wrote down", "injuries of workers at the Harrow kiln"),
    "kiln_bats_situated": ("Nobody lit it again after 1958", "what became of the Harrow kiln"),
    "count_lindqvist": ("numberOfArticles", "7"),
    "pair_aune_lindqvist": ("Aune", "Lindqvist", "4"),
    "pair_lindqvist_sarre": ("Lindqvist", "Sarre", "5"),
    "most_peers": ("Ilse Aune", "6"),
}
