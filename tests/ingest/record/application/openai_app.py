"""The help centre on OpenAI's client alone; its retrieval is plain Python that no instrumentation sees."""

from __future__ import annotations

import openai
import shop


def ask(text: str) -> str:
    found = [shop.ARTICLES[name].text for name, _ in shop.question(text).results[: shop.TOP_K]]
    answer = openai.OpenAI().chat.completions.create(
        model=shop.MODEL,
        temperature=0,
        messages=[
            {"role": "system", "content": shop.SYSTEM},
            {"role": "user", "content": shop.USER.format(context="\n\n".join(found), question=text)},
        ],
    )
    return str(answer.choices[0].message.content)
