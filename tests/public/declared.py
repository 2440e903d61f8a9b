# ruff: noqa: C408 - arguments, as a user writes them
"""What a user would declare of the applications that are not right at first sight, as arguments of the handler."""

DECLARED = {
    "research-assistant-template": dict(evidence={"RunnableParallel<question,text,url>": "output.text"}),
    "python-agents-hitl": dict(evidence={"dangerous_task": False}),
    "agent-workflow-multi": dict(
        evidence={"search_web": True, "record_notes": False, "write_report": False, "review_report": False}
    ),
    "long-term-memory-agent": dict(evidence={"search_recall_memories": True, "save_recall_memory": False}),
    "email-assistant-hitl": dict(
        question="input.email_input.email_thread",
        evidence={"check_calendar_availability": True, "schedule_meeting": False, "write_email": False},
    ),
    "customer-support-bot": dict(
        evidence={"lookup_policy": True, "fetch_user_ferry_information": True, "cancel_ticket": False}
    ),
    "agents-as-tools": dict(
        evidence={
            "search_web": True,
            "call_write_agent": False,
            "call_research_agent": False,
            "call_review_agent": False,
        }
    ),
    "local-deep-researcher": dict(
        question="input.research_topic",
        answer="output.running_summary",
        evidence={"state.web_research_results": True},
    ),
    "code-assistant": dict(evidence={"input.concatenated_content": True, "state.messages": False}),
    "news-tldr": dict(question="input.news_query", answer="output.formatted_results"),
    "database-discovery-fleet": dict(evidence={"sql_db_query": True}),
    "company-researcher": dict(question="input.company", answer="output.info"),
    "rewrite-retrieve-read": dict(evidence={"retriever": "output"}),
    "open-deep-research-legacy": dict(
        question="state.topic", answer="output.final_report", evidence={"state.source_str": True}
    ),
    "human-approval-tools": dict(evidence={"wikipedia": True, "Calculator": True, "terminal": False}),
    "contextual-quoting": dict(
        evidence={
            "ToUnderwritingAssistant": False,
            "ToQuoteAssistant": False,
            "CompleteOrEscalate": False,
            "fetch_rates": True,
        }
    ),
    "return-direct-agent": dict(
        evidence={"create_booking": False, "update_booking": False, "confirm_booking": False}
    ),
    "sql-research-assistant": dict(evidence={"state.response": True}),
    "data-enrichment": dict(question="input.topic", answer="output.info"),
    "car-buyer-agent": dict(question="input.web_interfaces[-1]"),
    "open-deep-research": dict(
        evidence={"tavily_search": True, "think_tool": False, "ConductResearch": False, "ResearchComplete": False}
    ),
    # the ninth draw
    "garay-virtual-assistant": dict(answer="output.answer"),
    "notebookllama": dict(roots=["CitationQueryEngine"]),
}
