"""Print the words of a page, a line for each heading, paragraph or row of a table, or the status of a refusal."""

import re
import sys
import urllib.error
import urllib.request
from html import unescape
from pathlib import Path

page = sys.argv[1]
try:
    html = urllib.request.urlopen(page).read() if "://" in page else Path(page).read_bytes()
except urllib.error.HTTPError as refused:
    html = f"{refused.code} ".encode() + refused.read()
text = re.sub(r"(?s)<(style|script|svg|head|dialog)\b.*?</\1>|<!--.*?-->", " ", html.decode())
for block in re.split(
    r"</?(?:p|h\d|tr|li|div|section|form|table|caption|summary|dl|dt|pre|nav|main)\b[^>]*>", text
):
    if words := " ".join(unescape(re.sub(r"<[^>]*>", " ", block)).split()):
        print(words)
