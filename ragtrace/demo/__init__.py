"""The demo: a real chain over the project's own handbook, scored while a person watches.

Owns: the handbook with its graded questions, the chain, the incident, the live view. Imports: the facade, the
service, metrics' results, `ragtrace_langchain` and langchain-core, which `options` and `console` leave out.
"""

from typing import TYPE_CHECKING

from ragtrace.lazy_names import lazy_names

if TYPE_CHECKING:
    from ragtrace.demo.answers import OfflineWriter, ServerWriter, best_sentences, has_answer, render_prompt
    from ragtrace.demo.console import PlainConsole
    from ragtrace.demo.display import own_command, print_closing
    from ragtrace.demo.handbook import questions, shuffled_questions
    from ragtrace.demo.inbox import DeliveredAlert, Inbox, serve_inbox
    from ragtrace.demo.incident import Incident, channel_of
    from ragtrace.demo.options import DemoOptions
    from ragtrace.demo.outfile import ScoredFile
    from ragtrace.demo.processes import find_programs, free_port, run_server
    from ragtrace.demo.search import rerank
    from ragtrace.demo.stack import check_pace, stack_config, stack_files
    from ragtrace.demo.tally import Fall, MetricScores, Progress, Tally, WorstAnswer
    from ragtrace.demo.verdict import Verdict, describe_verdict
    from ragtrace.demo.view import DemoHeading, running_means
else:
    __getattr__ = lazy_names(
        __name__,
        {
            "answers": "OfflineWriter ServerWriter best_sentences has_answer render_prompt",
            "console": "PlainConsole",
            "display": "own_command print_closing",
            "handbook": "questions shuffled_questions",
            "inbox": "DeliveredAlert Inbox serve_inbox",
            "incident": "Incident channel_of",
            "options": "DemoOptions",
            "outfile": "ScoredFile",
            "processes": "find_programs free_port run_server",
            "search": "rerank",
            "stack": "check_pace stack_config stack_files",
            "tally": "Fall MetricScores Progress Tally WorstAnswer",
            "verdict": "Verdict describe_verdict",
            "view": "DemoHeading running_means",
        },
    )
