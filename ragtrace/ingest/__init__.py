"""Traces of other instrumentations: received, assembled, and read into records."""

from typing import TYPE_CHECKING

from ragtrace.lazy_names import lazy_names

if TYPE_CHECKING:
    from ragtrace.ingest.assembly.assembler import AssembledTrace, Assembler, AssemblyLimits
    from ragtrace.ingest.base import RawLog, RawSpan
    from ragtrace.ingest.dialects.registry import all_dialects
    from ragtrace.ingest.reading import ReadRun, probability_in, read_trace
    from ragtrace.ingest.receiving import ListenAddress, Receiver, ReceiverLimits, ServerTls
    from ragtrace.ingest.receiving.inflate import inflated
    from ragtrace.ingest.receiving.refusal import ReceiverRefusal
    from ragtrace.ingest.receiving.wire import span_portions
else:
    __getattr__ = lazy_names(
        __name__,
        {
            "assembly.assembler": "AssembledTrace Assembler AssemblyLimits",
            "base": "RawLog RawSpan",
            "dialects.registry": "all_dialects",
            "reading": "ReadRun probability_in read_trace",
            "receiving": "ListenAddress Receiver ReceiverLimits ServerTls",
            "receiving.inflate": "inflated",
            "receiving.refusal": "ReceiverRefusal",
            "receiving.wire": "span_portions",
        },
    )
