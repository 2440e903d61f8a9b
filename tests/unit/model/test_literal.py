"""Texts of lists and objects: what is read, what is refused, and that no text takes long."""

from __future__ import annotations

import re
import time

import pytest

from ragtrace.errors import InputError
from ragtrace.model.literal import nested_value

READ = {
    "JSON": ('["a", {"b": null}]', ["a", {"b": None}]),
    "texts of Python": ("""['it\\'s', "it's", 'a\\n\\x41\\u00e9']""", ["it's", "it's", "a\nA\xe9"]),
    "a tuple": ("('a', ('b',), ())", ["a", ["b"], []]),
    "words and numbers": ("[None, True, False, nan, -1.5e+3, 7]", [None, True, False, None, -1500.0, 7]),
    "objects": ("{'a': {'b': []}, 'c': [1,]}", {"a": {"b": []}, "c": [1]}),
    "lines": ("['a',\n  'b' ]", ["a", "b"]),
}
REFUSED = {
    "an array of numpy": ("['a' 'b']", "a list without commas, as numpy prints an array"),
    "an array of numpy over lines": ("['a'\n 'b']", "a list without commas, as numpy prints an array"),
    "an array in a list": ("[array(['a'])]", "it holds array(...), an object of Python"),
    "documents": ("[Document(page_content='a')]", "it holds Document(...), an object of Python"),
    "a call": ("[__import__('os').getcwd()]", "it holds __import__(...), an object of Python"),
    "a cut text": ("['a', 'b", "it ends too early"),
    "a cut list": ("['a', ", "it ends too early"),
    "a set": ("{'a', 'b'}", "a set, which has no order"),
    "a key twice": ("{'a': 1, 'a': 2}", "the key 'a' a second time"),
    "text behind it": ("['a'] [1]", "neither JSON nor a list of Python"),
    "no key": ("{['a']: 1}", "neither JSON nor a list of Python"),
    "too deep": ("['a', " + "[" * 200, "nested too deeply"),
    "bytes": ("[b'a']", "neither JSON nor a list of Python"),
}  # fmt: skip
LONG = 2**18
HOSTILE = (
    "[" + "'" * LONG, "['" + "\\" * LONG, "[" + "9" * LONG + "x", "[" + "a." * LONG, "[" + " " * LONG + "x",
    "['" + "a" * LONG, "[" + "'a'," * LONG + "(", "[" + "-" * LONG, '["' + '\\"' * LONG, "[1e" + "+" * LONG,
)  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_a_literal_is_its_value(name):
    text, value = READ[name]
    assert nested_value(text) == value


@pytest.mark.parametrize("name", REFUSED)
def test_another_text_is_refused_in_words(name):
    text, said = REFUSED[name]
    with pytest.raises(InputError, match=re.escape(said)):
        nested_value(text)


def test_no_text_takes_long():
    began = time.process_time()
    for text in HOSTILE:
        with pytest.raises(InputError):
            nested_value(text)
    assert time.process_time() - began < 10  # a square of the length would be hours
