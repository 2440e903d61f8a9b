"""Local web server of ``ragtrace ui``: routes, forms and live updates."""
