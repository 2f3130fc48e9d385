"""Makes a site of pages that are written to be read on GitHub.

The chapters are those of docs/README.md. Pages above the folder docs that it names become pages of the site; links to
other files of the repository lead to GitHub. Lists are indented as Python-Markdown wants them.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
GITHUB = "https://github.com/bottlerocket-os/bottlerocket-update-operator/blob/main/"

# Pages above docs, by the place that they have in the site.
ABOVE = {
    "README.md": "overview.md",
    "CHANGELOG.md": "changes.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "reporting.md",
    "charts/bottlerocket-update-operator/README.md": "helm-chart.md",
}
PLACE = {site: repository for repository, site in ABOVE.items()}

FENCE = re.compile(r"(^ *```.*?^ *```[ \t]*$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^()\s]+)\)")
ITEM = re.compile(r"^( *)([-*]|\d+\.)( +)\S")


def on_config(config):
    nav = [{"Contents": "README.md"}]
    for line in (ROOT / "docs/README.md").read_text().splitlines():
        if line.startswith("## "):
            nav.append({line[3:]: []})
        elif entry := re.match(r"- \[(.+?)\]\((.+?)\)", line):
            chapter = next(iter(nav[-1].values()))
            chapter.append({entry[1]: inside(entry[2], "docs")})
    config.nav = nav
    return config


def on_files(files, config):
    for repository, site in ABOVE.items():
        files.append(File.generated(config, site, content=(ROOT / repository).read_text()))
    return files


def on_page_markdown(markdown, page, config, files):
    site = page.file.src_uri
    folder = posixpath.dirname(PLACE.get(site, "docs/" + site))

    def link(found):
        target = found[1]
        if "://" in target or target.startswith("#"):
            return found[0]
        leads = inside(target, folder)
        if not leads.startswith(GITHUB):
            leads = posixpath.relpath(leads, posixpath.dirname(site) or ".")
        return f"]({leads})"

    parts = FENCE.split(indented(markdown))
    return "".join(p if i % 2 else LINK.sub(link, p) for i, p in enumerate(parts))


def inside(target, folder):
    """Returns where a link of a page in a folder of the repository leads to, from the top of the site or on GitHub."""
    path, _, anchor = target.partition("#")
    path = posixpath.normpath(posixpath.join(folder, path))
    anchor = "#" + anchor if anchor else ""
    if path in ABOVE:
        return ABOVE[path] + anchor
    if path.startswith("docs/"):
        return path.removeprefix("docs/") + anchor
    return GITHUB + path + anchor


def indented(markdown):
    """Returns the text with four spaces for each level of a list, where GitHub takes what aligns with the item's text."""
    out, items = [], []
    for line in markdown.splitlines():
        indent = len(line) - len(line.lstrip(" "))
        if line.strip():
            while items and indent < items[-1]:
                items.pop()
            line = " " * (4 * len(items) + indent - (items[-1] if items else 0)) + line.lstrip(" ")
        out.append(line)
        if item := ITEM.match(" " * indent + line.lstrip(" ")):
            items.append(indent + len(item[2]) + len(item[3]))
    return "\n".join(out) + "\n"
