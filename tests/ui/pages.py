"""Reads pages as a browser does: elements, attributes and links."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser


@dataclass
class Page:
    """Elements of a page.

    Attributes:
        elements: name and attributes of each, in their order.
        text: everything that a person reads.
    """

    elements: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    text: str = ""

    def shapes(self) -> set[tuple[str, str]]:
        """Return each pair of an element and an attribute that occurs."""
        return {(name, attribute) for name, attributes in self.elements for attribute in ["", *attributes]}

    def values(self, attribute: str) -> list[str]:
        return [attributes[attribute] for _, attributes in self.elements if attribute in attributes]

    def links(self) -> dict[str, str]:
        """Return the addresses of links that say something in their own text, by that text."""
        return dict(self._links)

    _links: list[tuple[str, str]] = field(default_factory=list)


def read_page(html: str) -> Page:
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.page


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.page = Page()
        self._link: tuple[str, list[str]] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.page.elements.append((tag, attributes))
        if tag == "a" and "href" in attributes:
            self._link = attributes["href"], []

    def handle_endtag(self, tag: str) -> None:
        if tag == "a" and self._link:
            self.page._links.append((" ".join("".join(self._link[1]).split()), self._link[0]))
            self._link = None

    def handle_data(self, data: str) -> None:
        self.page.text += data
        if self._link:
            self._link[1].append(data)
