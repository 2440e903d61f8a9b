"""What a person says of six applications of the ninth draw; written before any of them ran with ragtrace.

The reasons of the earlier draws hold here too. Further ones:

- A section of a repository's file is a passage as the reader cut it, with the line that names the next file behind it. The
  name `tree` stands unfilled in the prompt, and the file's path before each section is no part of it.
- The rows that a statement of a graph gives back are evidence, each on its own, in the order of the list that a prompt shows.
  The statement and the schema are none. The model that tells the rows replies too, though the chain hands on its callbacks in a
  way that nobody reads.
- An article that was found stands in the prompt with the names of its properties, also where the answer leaves it out.
- A description of a product, of which a promotion is to be made, is what is asked of the chain that makes one, and so is the
  line of which a picture is to be made. Where the state has a task beside it, the task is the question, and the description is
  its matter: the person's own word, and nothing found.
- The agent that a person picks while the run goes on is a tool's word, and no evidence. The agents themselves are no tools.
- A tool that a program runs for the call of a model, as a function of its own, was called. What it says of the file that it
  wrote is all that the person is told: it is the answer, and no evidence.
- A file that is given to be made into a notebook asks nothing: there is no run, neither of the workflow nor of the mind map that
  a server beside it has a model make for it.
- A server's tool that passes a question on to an engine is the way to it, as a route is: the run is the engine's, the answer is
  what the engine gave, without the headings and sources that the tool writes around it, and no model called a tool.
- Whether an answer holds is a check of it, also where a person asks for one by a button: there is no run.
- A follow-up is what the person typed. The question that a model makes of it, and the talk of two minutes that it is made from,
  are neither a question nor evidence.
- Pieces of recipes were found, by vectors first and then by words: a piece that both found stands once, where it was found
  first. The three at the top of the joined ranks were chosen.
- The recipes behind the chosen pieces are written into the prompt whole, and so each piece of them that was found stands in it,
  in the order of the recipe, chosen or not. A blank line more or less between its lines changes nothing.
- A list of dishes that plain code writes is the answer, and goes back to no prompt.
"""

from __future__ import annotations

from tests.public.kit import Said

ARTICLES = ("#ice_homes", "#ice_roads", "#ice_cellars", "#ice_cores")
PAIRS = ("#pair_aune_lindqvist", "#pair_lindqvist_sarre")
HOURS = ("#loka_hours", "#loka_saturday", "#loka_deposit", "#loka_rent")
SATURDAY = ("#loka_saturday", "#loka_hours", "#loka_repair", "#loka_routes")
RENT = ("#loka_rent", "#loka_deposit", "#loka_repair", "#loka_routes")
DEPOSIT = ("#loka_deposit", "#loka_rent", "#loka_repair", "#loka_hours")
TOFU = ("#cook_tofu_intro", "#cook_tofu_items", "#cook_tofu_amounts", "#cook_tofu_steps")
CAKE = ("#cook_cake_intro", "#cook_cake_items", "#cook_cake_amounts", "#cook_cake_steps")

EXPECTED: dict[str, tuple[Said, ...]] = {
    "github-rag": (
        Said(
            question="How long does a roll of paper last?",
            answer="A roll of 57 mm lasts for 41 days, by the count of the harbour office.",
            pool=("#tm_paper", "#tm_run"),
            prompt=("#tm_paper", "#tm_run"),
            replies=1,
        ),
        Said(
            question="How does a storm change the height that is predicted?",
            answer="Below 980 hPa each hectopascal lifts the height by a centimetre.",
            pool=("#tm_height", "#tm_constants"),
            prompt=("#tm_height", "#tm_constants"),
            replies=1,
        ),
    ),
    "hf-knowledge-graph-rag": (
        Said(
            question=(
                "which articles discuss how thawing ice might affect our daily life? "
                "include the article titles and abstracts."
            ),
            answer="Two do: **Warm Rooms on Thawing Ground**, on houses that sink, and **Ice Cellars Without Ice**.",
            pool=ARTICLES,
            prompt=ARTICLES,
            replies=1,
        ),
        Said(
            question="How many articles has published Tora Lindqvist?",
            answer="Tora Lindqvist has published 7 articles.",
            pool=("#count_lindqvist",),
            prompt=("#count_lindqvist",),
            replies=2,  # the statement, the answer
        ),
        Said(
            question="are there any pair of researchers who have published more than three articles together?",
            answer="Yes: Ilse Aune and Tora Lindqvist share four, Tora Lindqvist and Bo Sarre five.",
            pool=PAIRS,
            prompt=PAIRS,
            replies=2,
        ),
        Said(
            question="Which researcher has collaborated with the most peers?",
            answer="Ilse Aune has collaborated with 6 peers.",
            pool=("#most_peers",),
            prompt=("#most_peers",),
            replies=2,
        ),
    ),
    "nvidia-hitl-multi-agents": (
        Said(
            question="A lamp of birch veneer, folded by hand at Sundby, which dims when you clap once.",
            answer=(
                '{"Title": "Clap, and it is evening", "Message": "Birch that dims at one clap.", '
                '"Tags": ["#birch", "#sundby"]}'
            ),
            replies=1,
        ),
        Said(
            question="Sundby lights quiet evenings",
            answer="the output of the generated image will be stored in this path : output.jpg",
            replies=2,  # the call, the theme of the picture
            tools=frozenset({"generate_image"}),
        ),
        Said(
            question="create a good promotion message for social promotion events using the following inputs",
            answer="Fourteen hours of folded light\nTake it down to the jetty: no cable, no hum.\n#foldedlight#jetty",
            replies=1,
            tools=frozenset({"human"}),
        ),
        Said(
            question="generate an image for me from the below promotion message",
            answer="the output of the generated image will be stored in this path : output.jpg",
            replies=2,
            tools=frozenset({"human", "generate_image"}),
        ),
    ),
    "notebookllama": (
        Said(
            question="Why did the boiling of salt end at Læssand?",
            answer="Each barrel ate a cartload of spruces [1], and in 1652 the king forbade it [2]. One hut boils again [3].",
            pool=("#salt_history", "#salt_today"),
            prompt=("#salt_history", "#salt_today"),
            replies=1,
        ),
        Said(
            question="How salty is the ground water, and can I see it boiled?",
            answer="It holds up to 14 percent [1]; guests rake the pan on Thursdays [2].",
            pool=("#salt_brine", "#salt_today"),
            prompt=("#salt_brine", "#salt_today"),
            replies=1,
        ),
    ),
    "garay-virtual-assistant": (
        Said(
            question="¿A qué hora abren las oficinas?",
            answer="¡Hola! Abrimos a las siete y media, de lunes a viernes, en la plaza del Arco.",
            pool=HOURS,
            prompt=HOURS,
            replies=1,
        ),
        Said(
            question="¿Y los sábados?",
            answer="Con gusto: los sábados el taller atiende hasta la una de la tarde.",
            pool=SATURDAY,
            prompt=SATURDAY,
            replies=2,  # the question on its own, the answer
        ),
        Said(
            question="¿Cuánto cuesta alquilar una bicicleta de carga?",
            answer="¡Hola! Son 95 quetzales al día, y el casco va incluido.",
            pool=RENT,
            prompt=RENT,
            replies=1,
        ),
        Said(
            question="¿Y el depósito?",
            answer="Son 400 quetzales, o un documento suyo, que devolvemos con la entrega.",
            pool=DEPOSIT,
            prompt=DEPOSIT,
            replies=2,
        ),
    ),
    "all-in-rag-recipes": (
        Said(
            question="砂锅豆腐怎么做？",
            answer="先用盐水泡豆腐，再煸五花肉出油，最后加热水小火炖二十五分钟。",
            pool=(
                "#cook_tofu_steps",
                "#cook_tofu_intro",
                "#cook_tofu_items",
                "#cook_tofu_amounts",
                "#cook_lotus_intro",
                "#cook_cake_steps",
                "#cook_cake_amounts",
                "#cook_cake_items",
                "#cook_cake_intro",
                "#cook_lotus_steps",
            ),
            chosen=("#cook_tofu_steps", "#cook_cake_steps", "#cook_tofu_intro"),
            prompt=(*TOFU, *CAKE),
            replies=3,  # the route, the query, the answer
        ),
        Said(
            question="推荐两道简单的菜",
            answer="为您推荐以下菜品：\n1. 凉拌藕片\n2. 红豆年糕汤",
            pool=(
                "#cook_lotus_intro",
                "#cook_lotus_steps",
                "#cook_cake_intro",
                "#cook_tofu_intro",
                "#cook_lotus_items",
                "#cook_cake_steps",
                "#cook_cake_amounts",
                "#cook_cake_items",
            ),
            chosen=("#cook_lotus_steps", "#cook_cake_intro", "#cook_lotus_intro"),
            replies=1,  # the route
        ),
        Said(
            question="天冷了，想喝点甜的",
            answer="可以煮红豆年糕汤：红豆先压半小时，年糕后放，冰糖在关火以后加。",
            pool=(
                "#cook_cake_intro",
                "#cook_cake_items",
                "#cook_lotus_intro",
                "#cook_tofu_intro",
                "#cook_tofu_items",
                "#cook_cake_steps",
                "#cook_cake_amounts",
                "#cook_lotus_steps",
            ),
            chosen=("#cook_cake_intro", "#cook_cake_items", "#cook_cake_steps"),
            prompt=CAKE,
            replies=3,
        ),
    ),
}
