"""Checks the links between the pages of a built mdBook: `book_links.py FOLDER`."""

import html.parser
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.links = []
        self.anchors = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.anchors.add(attributes.get("id"))
        self.links += [attributes[name] for name in ("href", "src") if attributes.get(name)]


book = pathlib.Path(sys.argv[1]).resolve()
# One page with the whole book, and one whose links are relative to the root of a site.
pages = {path: Page(path) for path in book.rglob("*.html") if path.name not in ("print.html", "404.html")}
broken = []
checked = 0
for path, page in pages.items():
    for link in page.links:
        url = urllib.parse.urlsplit(link)
        target = pathlib.Path(path.parent, urllib.parse.unquote(url.path)).resolve() if url.path else path
        if url.scheme or not target.is_relative_to(book):
            continue
        checked += 1
        anchor = urllib.parse.unquote(url.fragment)
        if not target.exists() or anchor and target in pages and anchor not in pages[target].anchors:
            broken.append(f"{path.relative_to(book)}: {link}")
if broken or not checked:
    sys.exit("\n".join(broken) or f"no links in {book}")
print(f"{len(pages)} pages, {checked} links")
