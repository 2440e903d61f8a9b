"""What a person says of each drawn application; written before any of them ran with ragtrace.

Reasons that are not plain from the application:

- A report that is put together goes back to the memos and summaries in it, and these to the pages in their prompts.
- A page that was joined with tags around it is that page.
- A calculator's result comes from outside the model. It stands in the prompt, and nothing searched for it.
- The text of a picture's caption was found as any other text was.
- Notes, hand-offs, to-dos, "report written" and "done" are no evidence, and neither is what a tool was given and gives back.
- Where nothing was searched, each text of a tool that reaches the prompt was found; so are a list of tables, a schema and rows.
- A run that waits for a person was asked what the state holds, and has no answer. Another run goes on.
- Building an index is no question.
"""

from __future__ import annotations

from tests.public.kit import Said

EXPECTED: dict[str, tuple[Said, ...]] = {
    "academy-research-assistant": (
        Said(question="How does Lake Ilm get through the winter?", answer="", outcome="interrupted", replies=1),
        Said(
            question="How does Lake Ilm get through the winter?",
            answer=(
                "# Winter under the lid\n\n---\n\nIce closes the lake from above [1], and perch feed below it [2].\n\n"
                "---\n\nThe lake sleeps less than it seems."
            ),
            pool=("#ice", "#thaw", "#wiki_ice", "#perch", "#wiki_perch"),
            prompt=("#ice", "#thaw", "#wiki_ice", "#perch", "#wiki_perch"),
            replies=13,  # five for each of two analysts, and three for the report
            tools=frozenset({"tavily_search_results_json"}),
        ),
    ),
    "llm-compiler": (
        Said(
            question="How old was the oldest pike, and how many years is that above the average?",
            answer="It was 33 years old, 22 above the average.",
            pool=("#pike", "#pike_average"),
            prompt=("#pike", "#pike_average", "#difference"),
            replies=3,  # the plan, the calculator's expression, the joiner
            tools=frozenset({"tavily_search_results_json", "math"}),
        ),
    ),
    "caching-embeddings": (
        Said(question="What does a mooring cost?", answer="", pool=("#mooring", "#dues"), replies=0),
    ),
    "research-assistant-template": (
        Said(
            question="Is the lake safe for skating in December?",
            answer="# Skating in December\n\nNot yet: the ice measures 6 cm, and the track opens at 12 cm.",
            pool=("#page_ice", "#page_club", "#page_town"),
            prompt=("#page_ice", "#page_club", "#page_town"),
            replies=6,  # the role, the queries, three summaries, the report
        ),
    ),
    "gemini-fullstack": (
        Said(
            question="When may I skate on Lake Ilm?",
            answer="Once the town opens it https://town.example/by-laws, at 10 cm https://ice.example/measures.",
            pool=("#snip_law", "#snip_ice", "#snip_club", "#snip_fine"),
            prompt=("#snip_law", "#snip_ice", "#snip_club", "#snip_fine"),
            replies=7,  # the queries, three summaries, two reflections, the answer
            tools=frozenset({"brave_search"}),
        ),
    ),
    "chat-model-caching": (
        Said(
            question="Tell me a joke about a pike.", answer="It took the bait and the sauce.", replies=1, tokens=13
        ),
        Said(
            question="Tell me a joke about a pike.", answer="It took the bait and the sauce.", replies=1, tokens=0
        ),
    ),
    "qa-citations": (
        Said(
            question="Where do perch spend the winter?",
            answer="Under the ice, near reed beds.",
            pool=("#perch", "#wiki_perch", "#pike"),
            prompt=("#perch", "#wiki_perch", "#pike"),
            replies=1,
        ),
    ),
    "advanced-text-to-sql": (
        Said(
            question="Which fish gets the oldest?",
            answer="The pike, with 33 years.",
            pool=("#table_fish", "#table_lakes", "#rows_fish"),
            prompt=("#rows_fish",),
            replies=2,
        ),
    ),
    "captioned-images": (
        Said(
            question="How deep is the north basin?",
            answer="It is 41 m deep.",
            pool=("#caption",),
            prompt=("#caption",),
            replies=1,
        ),
    ),
    "structured-refine": (
        Said(
            question="Who is warden in the year 2050?",
            answer="Ida Moen",
            pool=("#warden_2040", "#warden_2050", "#warden_2060"),
            prompt=("#warden_2040", "#warden_2050", "#warden_2060"),
            replies=3,
        ),
    ),
    "metadata-replacement": (
        Said(
            question="What keeps the ice thin?",
            answer="Warm springs along the east shore.",
            pool=("#sentence_3", "#sentence_2"),
            chosen=("#sentence_3", "#sentence_2"),  # the step wrote them anew, with their neighbours
            prompt=("#sentence_3", "#sentence_2"),
            replies=1,
        ),
    ),
    "corrective-rag-workflow": (
        Said(
            question="What did the council decide on night skating?",
            answer="Skating is allowed until 22 h.",
            pool=("#perch", "#pike", "#web_council"),
            prompt=("#web_council",),
            replies=4,  # two grades, the rewritten question, the answer
        ),
    ),
    # the reserve
    "rag-research-agent": (
        Said(
            question="May I fish through the ice, and what does it cost?",
            answer="Yes, from 15 January on, for 12,50 € a day.",
            pool=("rules", "ice", "thaw", "dues"),
            prompt=("rules", "ice", "thaw", "dues"),
            replies=5,
        ),
    ),
    "semi-structured-rag": (
        Said(
            question="Which basin is deeper?",
            answer="The north basin, with 41 m.",
            pool=("#table_depths", "#paragraph"),
            prompt=("#table_depths", "#paragraph"),
            replies=1,
        ),
    ),
    "sql-large-db": (
        Said(
            question="How many albums does alis morisset have?",
            answer="SELECT COUNT(*) FROM Album WHERE Artist = 'Alanis Morissette'",
            pool=("#name_band", "#name_choir", "#name_other"),
            prompt=("#name_band", "#name_choir", "#name_other"),
            replies=1,
        ),
    ),
    "sql-agent": (
        Said(
            question="Which genre on average has the longest tracks?",
            answer="Sci Fi & Fantasy, with 48 minutes.",
            pool=("#tables", "#schema", "#rows_genres"),
            prompt=("#tables", "#schema", "#rows_genres"),
            replies=4,
            tools=frozenset({"sql_db_list_tables", "sql_db_schema", "sql_db_query"}),
        ),
    ),
    "python-agents-hitl": (
        Said(
            question="I want to open the lock.",
            answer="The boat can pass now.",
            replies=2,
            tools=frozenset({"dangerous_task"}),
        ),
    ),
    "agent-workflow-multi": (
        Said(
            question="Write me a report on the history of the ferry.",
            answer="The report is done: the ferry ran from 1891 to 1962.",
            pool=("#web_results",),
            prompt=("#web_results",),
            replies=7,
            tools=frozenset({"search_web", "record_notes", "handoff", "write_report", "review_report"}),
        ),
    ),
    "raptor": (
        Said(
            question="Why does ice bear me?",
            answer="Since the lake freezes from above, and 10 cm carry a person.",
            pool=("#summary", "#ice"),
            prompt=("#summary", "#ice"),
            replies=1,
        ),
    ),
    "storm": (
        Said(
            question="The ferry of Lake Ilm",
            answer="# The ferry of Lake Ilm\n\nFrom 1891 to 1962 a steam ferry crossed the lake [1].",
            pool=("wiki_ice", "#ferry", "#boiler"),
            prompt=("#ferry", "#boiler"),
            replies=9,
            tools=frozenset({"search_engine"}),
        ),
    ),
    "review-tool-calls": (
        Said(question="What's the weather at Näs?", answer="", outcome="interrupted", replies=1),
        Said(
            question="What's the weather at Näs?",
            answer="It is sunny at Näs, and cold.",
            pool=("#weather",),
            prompt=("#weather",),
            replies=1,
            tools=frozenset({"weather_search"}),
        ),
    ),
    "hierarchical-indices": (
        Said(question="When does ice bear me?", answer="", pool=("#ice", "#thaw"), replies=0),
    ),
    "long-term-memory-agent": (
        Said(
            question="I like smoked pike.",
            answer="Good to know, Anna.",
            replies=2,
            tools=frozenset({"search_recall_memories", "save_recall_memory"}),
        ),
        Said(
            question="Where should I go for dinner?",
            answer="To the smokehouse at the pier: it serves pike today.",
            pool=("#memory", "#restaurant"),
            prompt=("#memory", "#restaurant"),
            replies=2,
            tools=frozenset({"search_recall_memories", "tavily_search_results_json"}),
        ),
    ),
    "gpt4v-multi-modal-retrieval": (
        Said(question="What is in this picture?", answer="An old pike, as long as a man's arm.", replies=1),
        Said(question="An old pike, as long as a man's arm.", answer="", pool=("pike", "photograph"), replies=0),
    ),
}
