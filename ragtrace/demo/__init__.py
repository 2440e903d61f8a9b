"""The demo: a real chain over the project's own handbook, scored while a person watches.

Owns: the handbook with its graded questions, the chain, the incident, the live view. Imports: the facade, the
service, metrics' results, `ragtrace_langchain` and langchain-core, which `options` and `console` leave out.
"""
