"""What a person says of six applications of the ninth draw; written before any of them ran with ragtrace.

The reasons of the earlier draws hold here too. Further ones:

- Pieces of a debate that overlap are a passage each, and stand in the prompt with their tags.
- A tool that is made of a retriever, and that nobody is given, was not called.
- A chain that an agent asks is asked by the agent: its question is none. What it answers is no evidence; what it found is. Where
  the agent only routes, the chain's answer is the answer, as it is.
- An answer of two hops rests on both: on all passages that either chain found, also where the second says that nothing is there.
- A greeting is what a person typed, and so their question. A question back is what they were told.
- A form from which a prompt is written is no answer, and its call, which the graph answers itself, is no tool's. The prompt that
  is written from it is the answer. That one was generated is no evidence.
- A reader that is called as a plain function replies where the application tells of it; a trial of it, which asks nothing of the
  documents, is no run.
- The first passages of what was found, all of which the prompt shows, were not chosen. What a re-ranker keeps was.
- Results of a web search that come as a list were found one by one. Data that a service reads out of a page, with an abstract among
  them, are that page as one text.
- That a page was navigated to is no evidence, and neither is that it did not load. The tool ran both times.
- Of details that are told on the way and others that are told in the end, the last message is the answer: the workflow ends with it.
- A report that stands beside the last call of a to-do list is what the person reads. An agent that says nothing behind it has
  not taken it back.
- To-dos, reflections, saved files and an empty list of files are no evidence.
- A page that was fetched and summarised inside a search was found, though the agents see its summary alone; of a page that is not
  there the piece which the search returned. The report goes back through the sub-agent's findings to both.
"""

from tests.public.kit import Said

ON_MARSH = "What did the president say about Lena Marsh in the address to the valley?"
ON_PLUMBLINE = "Why use Tilt over Plumbline?"
MARSH = ("#address_marsh", "#address_petri", "#address_court", "#address_bus")
PLUMBLINE = ("#tilt_plumbline", "#tilt_rules", "#tilt_install", "#tilt_fix")
HOPS = (
    *("#tilt_sheets", "#tilt_fix", "#tilt_plumbline", "#tilt_install"),
    *("#address_dairy", "#address_bus", "#address_marsh", "#address_court"),
)
ADDRESS_TOOL, TILT_TOOL = "State of Valley QA System", "Tilt QA System"
NEAREST = ("#loom_changes", "#loom_device", "#loom_object", "#loom_licence", "#loom_batch")
RERANKED = ("#loom_object", "#loom_custom", "#loom_device", "#loom_colours", "#loom_batch")
GARDENS = ("#garden_beds", "#garden_shop", "#garden_towns", "#garden_review", "#garden_lots")
DEBATE = ("#seance_brassac", "#seance_rapporteur")

EXPECTED: dict[str, tuple[Said, ...]] = {
    "mistral-french-parliament": (
        Said(
            question="What did the French parliament talk about the last time?",
            answer=(
                "A bill to open two night trains again, at a cost of 86 million euros. Its method was called "
                "ineffective ('peu efficace'), since nobody had asked the railway workers."
            ),
            pool=DEBATE,
            prompt=DEBATE,
            replies=1,
        ),
    ),
    "agent-vectorstore": (
        Said(
            question=ON_MARSH,
            answer="Lena Marsh is a sharp legal mind who goes on with Petri's legacy.",
            pool=MARSH,
            prompt=MARSH,
            replies=3,  # the action, the chain's answer, the answer
            tools=frozenset({ADDRESS_TOOL}),
        ),
        Said(
            question=ON_PLUMBLINE,
            answer="Tilt replaces Plumbline if few plug-ins are used, and is faster.",
            pool=PLUMBLINE,
            prompt=PLUMBLINE,
            replies=3,
            tools=frozenset({TILT_TOOL}),
        ),
        Said(
            question=ON_MARSH,
            answer="She is one of the sharpest legal minds, and goes on with Judge Petri's legacy.",
            pool=MARSH,
            prompt=MARSH,
            replies=2,  # the action, the chain's answer
            tools=frozenset({ADDRESS_TOOL}),
        ),
        Said(
            question=ON_PLUMBLINE,
            answer="It takes the place of Plumbline where few plug-ins are used, and is 40 times faster.",
            pool=PLUMBLINE,
            prompt=PLUMBLINE,
            replies=2,
            tools=frozenset({TILT_TOOL}),
        ),
        Said(
            question=(
                "What tool does Tilt use to run over spreadsheets? "
                "Did the president mention that tool in the address to the valley?"
            ),
            answer="It uses sheetQA, and the president did not mention it.",
            pool=HOPS,
            prompt=HOPS,
            replies=5,  # two actions, two answers of chains, the answer
            tools=frozenset({ADDRESS_TOOL, TILT_TOOL}),
        ),
    ),
    "information-gather-prompting": (
        Said(question="hi!", answer="Hello! How can I assist you today?", replies=1),
        Said(
            question="a prompt for tide notices",
            answer=(
                "Sure! Could you please provide me with the following information?\n\n"
                "1. What is the objective of the prompt?\n2. What variables will be passed into it?\n"
                "3. Any constraints for what the output should NOT do?\n4. Any requirements that it MUST adhere to?"
            ),
            replies=1,
        ),
        Said(
            question="1 tell guests of high water, 2 date and height, 3 no jokes, 4 one sentence",
            answer="Tell guests in one sentence when water is highest on {date}, and its {height}.",
            replies=2,  # the form, the prompt
        ),
        Said(
            question="12 May, 3.1 m",
            answer="On 12 May the water rises to 3.1 m, its highest of the day.",
            replies=1,
        ),
    ),
    "hf-advanced-rag": (
        Said(
            question="How to create a warp plan?",
            answer="Write `plan`, the word that `pattern` was dropped for (Document 0), and call it (Document 2).",
            pool=NEAREST,
            prompt=NEAREST,
            replies=1,
        ),
        Said(
            question="how to create a warp plan?",
            answer="Call `warp_plan` with a weave's name (Document 0), or inherit from `WarpPlan` (Document 1).",
            pool=(*NEAREST, "#loom_custom", "#loom_colours"),
            chosen=RERANKED,
            prompt=RERANKED,
            replies=1,
        ),
    ),
    "research-assistant-workflow": (
        Said(
            question=(
                "Use DuckDuckGoSearch to find URL resources on the web that are relevant to the research topic: "
                "What is the relationship between gardening and sleep?\n"
                "    Go through each resource found. For each different resource, use Playwright to click on link to the "
                "resource, then use AgentQL to extract information, including the name of the resource, author name(s), "
                "link to the resource, publishing date, journal name, volume number, issue number, and the abstract.\n"
                "    Find more resources until there are two different resources that can be successfully extracted from."
            ),
            answer=(
                "I successfully extracted information from a second resource. Here are the details:\n\n"
                "- **Title**: Plots by Lot: Two Years of Nights in Four Towns\n- **Authors**: Aino Salo\n"
                "- **Abstract**: Households with a plot woke less often in summer, and as often as others in winter.\n\n"
                "Both resources provide valuable insights into the relationship between gardening and sleep."
            ),
            pool=GARDENS,
            prompt=GARDENS,
            replies=7,  # the search, three pages of which one does not load, two extractions, the answer
            tools=frozenset({"duckduckgo_full_search", "navigate_to", "extract_web_data_from_browser"}),
        ),
    ),
    "deep-agents-from-scratch": (
        Said(
            question="Give me an overview of the Open Buoy Protocol (OBP).",
            answer=(
                "# Open Buoy Protocol (OBP) - Comprehensive Overview\n\n## What is OBP?\nA radio protocol by which ships "
                "ask buoys; the port of Tarn made it in 2023.\n\n## Adoption\nIt is used in seventeen ports, and three "
                "makers build for it."
            ),
            pool=("#buoy_overview", "#buoy_adoption"),
            prompt=("#buoy_overview", "#buoy_adoption"),
            replies=17,  # eleven of the agent with an empty one, five of the sub-agent, one summary
            tools=frozenset(
                {
                    "write_todos",
                    "ls",
                    "write_file",
                    "read_todos",
                    "task",
                    "think_tool",
                    "tavily_search",
                }
            ),
        ),
        Said(
            question="Give me a very brief overview of what a buoy of the Open Buoy Protocol (OBP) does.",
            answer="## OBP - Brief Overview\n\nA buoy tells readings, keeps them for a while, and passes them along.",
            pool=("#buoy_primer",),
            prompt=("#buoy_primer",),
            replies=9,  # five of the agent with an empty one, three of the sub-agent, one summary
            tools=frozenset({"write_todos", "task", "think_tool", "tavily_search"}),
        ),
    ),
}
