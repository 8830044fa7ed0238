"""Links of a built book that lead nowhere: to a file that is not there, or to a place that a page does not have.

Usage: book_links.py FOLDER
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.places = set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.places.add(attributes.get("id"))
        if tag in ("a", "link"):
            self.links.add(attributes.get("href"))
        if tag in ("img", "script"):
            self.links.add(attributes.get("src"))


def dead_links(folder):
    pages = {path: Page(path.read_text()) for path in folder.rglob("*.html")}
    if not pages:
        yield f"{folder} has no pages"
    for path, page in pages.items():
        # The pages that mdBook makes for itself have links from the root of a site.
        if path.name in ("404.html", "toc.html", "print.html"):
            continue
        for link in filter(None, page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            places = pages[target].places if target in pages else None
            if not target.exists() or (parts.fragment and places and unquote(parts.fragment) not in places):
                yield f"{path.relative_to(folder)}: {link}"


def main():
    dead = sorted(dead_links(Path(sys.argv[1]).resolve()))
    for line in dead:
        print(f"dead link: {line}", file=sys.stderr)
    sys.exit(1 if dead else 0)


main()
