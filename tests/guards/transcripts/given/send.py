"""Post a file of OTLP as JSON to an address, and print the status and the body of the response."""

import sys
import urllib.error
import urllib.request
from pathlib import Path

url, name = sys.argv[1:]
request = urllib.request.Request(url, Path(name).read_bytes(), {"Content-Type": "application/json"})
try:
    response = urllib.request.urlopen(request)
except urllib.error.HTTPError as refused:
    response = refused
print(response.status, response.read().decode())
