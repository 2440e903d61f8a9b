"""Records and scores into OpenTelemetry: spans, events, instruments, and the providers behind them.

Owns: what goes on the wire, its byte budgets, and our own delivery deadlines.
Imports: capture, semconv, model, errors; of third parties OpenTelemetry alone (numpy never: the
application's process stays light).
"""
