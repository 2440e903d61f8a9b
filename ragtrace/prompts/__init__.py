"""Judge prompts as files, and the fence around data.

Owns: every text that a judge model is told. Imports: errors alone.
"""

from typing import TYPE_CHECKING

from ragtrace.lazy_names import lazy_names

if TYPE_CHECKING:
    from ragtrace.prompts.fence import cleaned, fenced, new_key
    from ragtrace.prompts.loader import PROMPT_IDS, load
else:
    __getattr__ = lazy_names(
        __name__,
        {
            "fence": "cleaned fenced new_key",
            "loader": "PROMPT_IDS load",
        },
    )
