"""The offline judge's reading of texts: markup, notation, specifics, evidence, language. English only."""
