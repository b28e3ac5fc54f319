"""The built site in a browser: search works, and no page has an error in its console.

It is skipped without Chromium and unless the site was built: ``python -m sphinx -b html docs docs/_build/html``.
"""

import functools
import re
import shutil
import subprocess
import threading
import zlib
from html import unescape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

SITE = Path(__file__).parents[2] / "docs/_build/html"
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.skipif(BROWSER is None, reason="no Chromium"),
    pytest.mark.skipif(not (SITE / "index.html").exists(), reason="the site is not built"),
]
#: one page of each kind
KINDS = (
    "index.html",
    "quickstart.html",
    "guide/which_estimator.html",
    "theory.html",
    "benchmarks/README.html",
    "api/regions.html",
    "generated/skspo.Simplex.html",
    "generated/skspo.SPOPlusRegressor.html",
    "gallery/index.html",
    "gallery/plot_regions.html",
    "genindex.html",
)


class Quiet(SimpleHTTPRequestHandler):
    """A file server that writes no log, and remembers what was not found."""

    missing: list[str] = []

    def log_message(self, *args):
        pass

    def do_GET(self):
        if self.path == "/favicon.ico":  # browsers ask for it
            self.send_response(204)
            self.end_headers()
        else:
            super().do_GET()

    def send_error(self, code, *args, **kwargs):
        self.missing.append(self.path)
        super().send_error(code, *args, **kwargs)


@pytest.fixture(scope="module")
def site():
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def open_page(url, folder):
    """The page after its scripts ran, and errors of its console."""
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}", "--virtual-time-budget=5000"]
    logging = ["--enable-logging=stderr", "--log-level=0", "--dump-dom"]
    done = subprocess.run([BROWSER, *options, *logging, url], capture_output=True, text=True, timeout=60, check=True)
    # "[...:CONSOLE(12)] "Uncaught ...", source: ...": errors of scripts, and files that could not be loaded
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return done.stdout, [line for line in console if re.search(r"Uncaught|Error|Failed to load", line)]


def test_errors_are_seen(tmp_path):
    """Otherwise the tests below could not fail."""
    (tmp_path / "page.html").write_text("<p>before</p><script>document.body.append('made'); nothing()</script>")
    page, errors = open_page((tmp_path / "page.html").as_uri(), tmp_path / "browser")
    assert "made" in page
    assert any("nothing is not defined" in line for line in errors)


@pytest.mark.parametrize("name", KINDS)
def test_no_error_in_the_console(site, name, tmp_path):
    page, errors = open_page(f"{site}/{name}", tmp_path)
    assert "</html>" in page
    assert errors == []
    assert Quiet.missing == []
    assert not re.search(r'(?:src|href)="https?://[^"]*\.(?:js|css|woff2?)"', page), "loads a file from elsewhere"


@pytest.mark.parametrize(
    ("query", "expected"),
    [("Simplex", "skspo.Simplex"), ("warm start", "many_coefficients"), ("region_params", "items")],
)
def test_search(site, query, expected, tmp_path):
    page, errors = open_page(f"{site}/search.html?q={query.replace(' ', '+')}", tmp_path)
    results = re.findall(r'<li[^>]*>\s*<a href="([^"]*)"', page[page.index('id="search-results"') :])
    assert errors == []
    assert any(expected in unescape(link) for link in results), results[:10]


def test_internals_of_regions_are_in_no_index():
    """Methods that only solvers call are hidden."""
    inventory = (SITE / "objects.inv").read_bytes().split(b"\n", 4)[4]
    for text in ((SITE / "genindex.html").read_text(), zlib.decompress(inventory).decode()):
        assert "argmin" in text
        for name in ("support_epigraph", "standard_form", "with_rows", "solve_min"):
            assert name not in text
