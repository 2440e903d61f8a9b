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
}
